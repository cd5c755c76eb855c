/*
 * The commit under way: what of the checkpoint's dirty rows (dirty.h) the store is writing.
 *
 * One commit is under way at a time, and the next takes all that became dirty meanwhile (group
 * commit). After a failed commit its rows are dirty again. They go with the next one, which comes
 * by itself after a pause that grows as long as the store fails.
 *
 * However long that is, there are no more dirty rows than there are things to keep and rows in the
 * store: a row that the store cannot have, and of which there is nothing to keep any more, is
 * forgotten.
 */
#ifndef DEVICEMGR_BOOKS_CHECKPOINT_H
#define DEVICEMGR_BOOKS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/books/dirty.h"

struct state;

/* A zeroed struct has nothing to write. */
struct checkpoint {
    struct dirty_row *carried; /* by the commit under way */
    uint64_t commit;           /* the commit under way; 0: none */
    uint64_t by_ms;            /* when one is due by itself, as after one that failed, or never */
    uint64_t pause_ms;         /* before the next attempt */
    char *error;               /* of the last commit; NULL: it was none */
    uint64_t failing_ms;       /* since when there are errors only; with `error` */
};

void checkpoint_fini(struct checkpoint *checkpoint);

/* One is due within so long, for what only rides along else: with the next, or when one that failed
 * is tried again; at once where the process is about to end. */
void checkpoint_within(struct state *state, uint64_t ms);
/* The process is about to end: what is to be stored within some time is now. Not where the store
 * has failed last: its end may be as long in coming as before. */
void checkpoint_drain(struct state *state);
/* Makes a commit due whose time has come. */
void checkpoint_tick(struct state *state);
uint64_t checkpoint_next_ms(const struct state *state);

/* Whether checkpoint_begin() has something to do. */
static inline bool checkpoint_ready(const struct checkpoint *checkpoint, const struct dirty *dirty)
{
    return dirty->due && dirty->rows && !checkpoint->commit;
}
/* Queues the commit of all dirty rows; its number. */
uint64_t checkpoint_begin(struct state *state);
/* It is over: `error` NULL, durable. False: it is not the one under way. */
bool checkpoint_finish(struct state *state, uint64_t commit, const char *error);
/* devicemgr_store_reset() */
void checkpoint_store_reset(struct state *state);

#endif
