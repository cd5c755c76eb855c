/*
 * Which rows of the checkpoint differ from the state, and the commit under way.
 *
 * Rows are marked dirty by key and packed when a commit begins, from the state of that moment; one
 * commit is under way at a time, and the next takes all that became dirty meanwhile (group commit).
 * After a failed commit its rows are dirty again. They go with the next one, which comes by itself
 * after a pause that grows as long as the store fails.
 *
 * However long that is, there are no more dirty rows than there are things to keep and rows in the
 * store: a row that the store cannot have, and of which there is nothing to keep any more, is
 * forgotten.
 */
#ifndef DEVICEMGR_CHECKPOINT_H
#define DEVICEMGR_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/allocation.h"
#include "devicemgr/ports.h"

struct devicemgr;

/* A zeroed struct has nothing to write. */
struct checkpoint {
    struct dirty_row *dirty;
    struct dirty_row *carried; /* by the commit under way */
    uint64_t commit;           /* the commit under way; 0: none */
    bool due;                  /* some dirty row wants a commit of its own accord */
    uint64_t retry_ms;         /* when a failed one is tried again; 0: none failed */
    uint64_t pause_ms;         /* before the next attempt */
    char *error;               /* of the last commit; NULL: it was none */
};

void checkpoint_fini(struct checkpoint *checkpoint);

/* The row differs from the state. `due`: begin a commit soon; else it rides along with one. */
void checkpoint_touch_resource(struct devicemgr *mgr, const char *resource, bool due);
void checkpoint_touch_allocation(struct devicemgr *mgr, const struct allocation *allocation);
void checkpoint_touch_pod(struct devicemgr *mgr, const char *pod_uid);

/* Makes a commit due whose time to be tried again has come. */
void checkpoint_tick(struct devicemgr *mgr);
uint64_t checkpoint_next_ms(const struct devicemgr *mgr);

/* Whether checkpoint_begin() has something to do. */
bool checkpoint_ready(const struct devicemgr *mgr);
/* Queues the commit of all dirty rows; its number. */
uint64_t checkpoint_begin(struct devicemgr *mgr);
/* It is over: `error` NULL, durable. False: it is not the one under way. */
bool checkpoint_finish(struct devicemgr *mgr, uint64_t commit, const char *error);

#endif
