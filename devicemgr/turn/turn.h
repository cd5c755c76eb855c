/*
 * The device manager as a whole: the state, and the tables that are one part's own. Known to the
 * turn alone, and to tests that look inside.
 */
#ifndef DEVICEMGR_TURN_TURN_H
#define DEVICEMGR_TURN_TURN_H

#include "devicemgr/books/state.h"
#include "devicemgr/machines/create.h"
#include "devicemgr/machines/end.h"
#include "devicemgr/machines/evict.h"
#include "devicemgr/machines/prefer.h"
#include "devicemgr/machines/release.h"
#include "devicemgr/machines/runtime.h"
#include "devicemgr/machines/shutdown.h"
#include "devicemgr/machines/steer.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/questions/calls.h"
#include "devicemgr/questions/check.h"

struct devicemgr {
    struct state state;
    struct calls calls;
    struct checks checks;
    struct creates creates;
    struct prefers prefers;
    struct runtime runtime;
    struct steers steers;
    struct releases releases;
    struct tasks tasks;
    struct ends ends;
    struct evicts evicts;
    struct shutdowns shutdowns;
    const struct devicemgr_ports *ports;
    void *user;
    bool running; /* inside devicemgr_run() */
    bool left;    /* creates that are woken are left to the next one */
};

/* A create names CDI devices: whether it is refused as they are of claims, for a taint or who has
 * them; else the claims know of it. */
bool turn_claims_refuse(struct devicemgr *mgr, uint64_t create,
                        const struct devicemgr_create *request);
/* The runtime has made its container, or its client gives it up: before it is over. */
void turn_claims_made(struct devicemgr *mgr, uint64_t create);

/* ---- who is to be ended: by whom a pod can be, once whatever an event has led to is done ---- */

/* Who is to be evicted for taints is found out, and asked for. */
void turn_evict(struct devicemgr *mgr);
/* Likewise who is to be ended since the machine goes down. */
void turn_shut_down(struct devicemgr *mgr);
/* Behind them, and before anything leaves: whoever is not known to be evicted still, and is wanted
 * by nobody else any more, has nothing sent. */
void turn_doubt_evictions(struct devicemgr *mgr);
/* Mostly neither finds anybody: nothing is tainted, and the machine does not go down. */
static inline bool turn_ends_nobody(const struct devicemgr *mgr)
{
    const struct state *state = &mgr->state;

    return tainted_quiet(&state->tainted, &state->orders) && evicts_quiet(&mgr->evicts) &&
           shutdowns_quiet(&mgr->shutdowns);
}

/* ---- operator.c, for operator_end.c too ---- */

/* Answers what an operator wants, and cannot have. */
void turn_refuse(struct devicemgr *mgr, uint64_t number, int code, const char *text);
/* Several pods are called so as he calls the one that he means. */
void turn_refuse_several(struct devicemgr *mgr, uint64_t number);
/* Whether one more is too many; it is refused then. */
bool turn_is_full(struct devicemgr *mgr, uint64_t number);
/* What is in the way of ending any pod, or of taking anything from it; NULL: nothing is. */
const char *turn_in_the_way(const struct devicemgr *mgr);

#endif
