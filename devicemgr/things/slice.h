/*
 * ResourceSlices of this node alone, as the cluster has them: a device that stands in one can be
 * used nowhere else, so that what becomes of it here concerns nobody else.
 */
#ifndef DEVICEMGR_THINGS_SLICE_H
#define DEVICEMGR_THINGS_SLICE_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

struct slice {
    char *uid;
    char *driver;
    char *pool;
    struct ids devices;
    bool apart; /* none of them may be made of what another is */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct slices {
    struct slice *by_uid;
};

void slices_fini(struct slices *table);
size_t slices_len(const struct slices *table);
/* Adds one, or takes it for what it is now; all is copied. */
void slices_set(struct slices *table, const char *uid, const char *driver, const char *pool,
                const struct ids *devices, bool apart);
/* It is no more, if it was there. */
void slices_remove(struct slices *table, const char *uid);
/* Whether one of them has the device. */
bool slices_have(const struct slices *table, const char *driver, const char *pool,
                 const char *device);
/* Whether one has it, and says that no other device is made of the same. */
bool slices_apart(const struct slices *table, const char *driver, const char *pool,
                  const char *device);

#endif
