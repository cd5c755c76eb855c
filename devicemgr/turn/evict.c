/*
 * Who is evicted for taints is ended by who ends pods.
 */
#include "devicemgr/endings.h"
#include "devicemgr/turn/turn.h"

static void take(struct devicemgr *mgr, const struct eviction_step *step)
{
    const struct end_request request = {
        .asker = END_EVICTION, .token = END_ONCE, .grace_ms = ENDING_POD_GRACE, .why = step->why};

    switch (step->kind) {
    case EVICTION_ASK:
        ends_ask(&mgr->ends, step->pod_uid, &request);
        break;
    case EVICTION_CONFIRM:
        ends_confirm(&mgr->ends, step->pod_uid);
        break;
    case EVICTION_TAKE_BACK:
        ends_cancel(&mgr->ends, step->pod_uid, END_EVICTION, END_ONCE);
        break;
    }
}

void turn_evict(struct devicemgr *mgr)
{
    struct eviction_step *step;

    evicts_review(&mgr->evicts);
    while ((step = evicts_take(&mgr->evicts))) {
        take(mgr, step);
        eviction_step_free(step);
    }
}

void turn_doubt_evictions(struct devicemgr *mgr)
{
    for (const struct ending *e = mgr->state.endings.by_uid; e; e = e->hh.next) {
        if (evicts_in_doubt(&mgr->evicts, e->pod_uid))
            ends_doubt(&mgr->ends, e->pod_uid);
    }
}

void devicemgr_evictions(const struct devicemgr *mgr, struct devicemgr_evictions *out)
{
    const struct evicts *evicts = &mgr->evicts;
    const struct health_guard *guard;

    *out = (struct devicemgr_evictions){.waiting = evicts_len(evicts, EVICTION_WAITS),
                                        .asked = evicts_len(evicts, EVICTION_ASKED),
                                        .stale = evicts->stale,
                                        .asked_total = evicts->asked - evicts->asked_before,
                                        .taken_back_total = evicts->taken_back};
    for (guard = mgr->state.tainted.guards; guard; guard = guard->hh.next)
        out->held_back += guard->held_back;
}
