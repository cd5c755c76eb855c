/*
 * Other rows in the place of those of a daemon that does not run.
 */
#ifndef SHIM_OFFLINE_REPLACE_H
#define SHIM_OFFLINE_REPLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/store/store.h"
#include "shim/offline/rows.h"

#define REPLACE_ERROR_BYTES_MAX (STORE_ERROR_BYTES_MAX + 64)

/*
 * Makes the checkpoint in `state_dir` have these rows and no others: one commit, so that whoever is
 * ended in the middle leaves the rows that were there. Before that they are copied aside: `kept` is
 * the copy's path, or "" if there were none; `*mended`: not as they were, since an index was
 * damaged, and made anew first. `whole`: no row was lost before. The next daemon is told that rows
 * may be missing, since containers were made after these were written: it asks the runtime before
 * it gives away anything.
 *
 * No daemon can have the checkpoint open meanwhile. Damage that is found, and what is done about
 * it, goes to stderr. Blocks on the disk. 0; or -1 with the reason in `err`, and the rows are as
 * they were.
 */
int replace_rows(const struct rows *rows, bool whole, const char *state_dir,
                 char kept[STORE_ASIDE_BYTES_MAX], bool *mended, char *err, size_t err_bytes)
    __attribute__((warn_unused_result));

#endif
