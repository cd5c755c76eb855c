/*
 * ResourceSlices of this node alone, as the cluster has them: a device that stands in one can be
 * used nowhere else, so that what becomes of it here concerns nobody else.
 */
#ifndef DEVICEMGR_THINGS_SLICE_H
#define DEVICEMGR_THINGS_SLICE_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/dra.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

/* As in dra.h. */
struct slice_counter {
    char *name;
    bool there;
    uint64_t much;
};

struct slice_draw {
    char *device;
    size_t counter; /* which of the slice's */
    uint64_t much;
};

struct slice {
    char *uid;
    char *driver;
    char *pool;
    struct ids devices;
    bool apart; /* none of them may be made of what another is */
    struct slice_counter *counters;
    size_t counters_len;
    struct slice_draw *draws;
    size_t draws_len;
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct slices {
    struct slice *by_uid;
};

void slices_fini(struct slices *table);
size_t slices_len(const struct slices *table);
/* Adds one that is not there; all is copied, but of too many devices the first ones, and of too
 * many counters or draws none. */
void slices_add(struct slices *table, const struct devicemgr_slice *is);
/* It is no more, if it was there. */
void slices_remove(struct slices *table, const char *uid);
/* Whether one of them has the device. */
bool slices_have(const struct slices *table, const char *driver, const char *pool,
                 const char *device);
/* Whether one has it, and says that no other device is made of the same. */
bool slices_apart(const struct slices *table, const char *driver, const char *pool,
                  const char *device);
/* The first one by which it draws on counters; NULL: it does on none. */
const struct slice *slices_drawing(const struct slices *table, const char *driver, const char *pool,
                                   const char *device);
/* How much of a counter it draws by that. */
uint64_t slice_draw(const struct slice *slice, const char *device, const char *counter);
/* Whether both are known to draw on counters, and on none together: neither is made of what the
 * other is. */
bool slices_draw_apart(const struct slices *table, const char *driver, const char *pool,
                       const char *one, const char *other);
/* How much of it there is in the pool; false: none of them says that. */
bool slices_counter(const struct slices *table, const char *driver, const char *pool,
                    const char *counter, uint64_t *much);

#endif
