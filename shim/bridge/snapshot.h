/*
 * What is shown, kept in a file over a restart of the bridge: it must not have to wait for the
 * daemon. Good for one boot only; a file that is missing, damaged, of another boot or too large is
 * as good as none.
 */
#ifndef SHIM_BRIDGE_SNAPSHOT_H
#define SHIM_BRIDGE_SNAPSHOT_H

#include <stdint.h>

#include "cri-proto/bridge_v1.pb-c.h"

/* In the directory of the feed's socket. */
#define SNAPSHOT_NAME "bridge.snapshot"

/* The state with all its lists; *lost_ms is when the feed was lost, CLOCK_BOOTTIME, or 0: it had
 * not been. The caller frees it with bridge__v1__watch_response__free_unpacked(). NULL: none, and
 * *why in a few words. */
Bridge__V1__WatchResponse *snapshot_read(const char *path, const char *boot_id, uint64_t *lost_ms,
                                         const char **why);

/* Replaces the file, mode 0600, in one step. 0 or a negative errno; -EFBIG: the state is over
 * SNAPSHOT_BYTES_MAX, and what was there is removed, as it is wrong by now. */
int snapshot_write(const char *path, const char *boot_id, uint64_t lost_ms,
                   const Bridge__V1__WatchResponse *state) __attribute__((warn_unused_result));

#endif
