/*
 * Pods that are to end, for whoever wants that: what one machine has for the machine that ends them
 * goes through here.
 */
#ifndef DEVICEMGR_TURN_END_H
#define DEVICEMGR_TURN_END_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/machines/end.h"
#include "devicemgr/turn/turn.h"

/* ends_ask(), ends_cancel(). In a turn: state_at() was called. */
void end_ask(struct devicemgr *mgr, const char *pod_uid, const struct end_request *request);
void end_cancel(struct devicemgr *mgr, const char *pod_uid, enum end_asker asker, uint64_t token);

/* Who is to be evicted for taints is found out, and asked for: once whatever an event has led to is
 * done. */
void evict_turn(struct devicemgr *mgr);
/* Likewise who is to be ended since the machine goes down. */
void shutdown_turn(struct devicemgr *mgr);
/* Behind them, and before anything leaves: whoever is not known to be evicted still, and is wanted
 * by nobody else any more, has nothing sent. */
void evict_doubt(struct devicemgr *mgr);
/* Mostly neither finds anybody: nothing is tainted, and the machine does not go down. */
static inline bool end_quiet(const struct devicemgr *mgr)
{
    const struct state *state = &mgr->state;

    return tainted_quiet(&state->tainted, &state->orders) && evicts_quiet(&mgr->evicts) &&
           shutdowns_quiet(&mgr->shutdowns);
}

#endif
