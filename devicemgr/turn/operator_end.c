/*
 * What an operator wants to end.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/operator.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* How well a pod fits: one that is called so and lives is meant before one that was. Its sandbox
 * stays for a minute, in which an owner has made another of its name
 * (pkg/kubelet/kuberuntime/kuberuntime_gc.go). */
enum fit { FITS_NOT, FITS_IS_OVER, FITS_LIVES, FITS_EXACTLY };

/* Of one pod that is looked for by whatever it is called. */
struct sought {
    const char *pod;
    const char *uid; /* NULL: not found yet */
    enum fit fit;
    bool several; /* that fit as well */
};

static bool lives(const struct state *state, const char *uid)
{
    const struct pod *pod = pods_find(&state->pods, uid);

    return pod && pod->newest && !pod->removed && !pod->newest->dead &&
           pod->newest->state != SANDBOX_STOPPED;
}

/* What has no uid is of several clients' pods, by the name of the last one. */
static void look_at(struct sought *sought, const struct state *state, const char *uid,
                    const char *pod_namespace, const char *name)
{
    bool meant = uid[0] != '\0' && meant_pod(sought->pod, uid, pod_namespace, name);
    enum fit fit = !meant                          ? FITS_NOT
                   : strcmp(sought->pod, uid) == 0 ? FITS_EXACTLY
                   : lives(state, uid)             ? FITS_LIVES
                                                   : FITS_IS_OVER;

    if (fit == FITS_NOT || fit < sought->fit)
        return;
    sought->several = fit == sought->fit;
    sought->fit = fit;
    sought->uid = uid;
}

/* Of a pod that is gone it waits to be forgotten by the store, and is nobody's any more. */
static void look_at_ending(struct sought *sought, const struct state *state,
                           const struct ending *ending)
{
    if (ending->state != ENDING_GONE)
        look_at(sought, state, ending->pod_uid, ending->pod_namespace, ending->pod_name);
}

/* False: it is answered. */
static bool may_begin(struct devicemgr *mgr, uint64_t number, const struct sought *sought,
                      const char *reason)
{
    const char *wrong = order_reason_judge(reason), *why = turn_in_the_way(mgr);

    if (wrong)
        turn_refuse(mgr, number, CODE_INVALID_ARGUMENT, wrong);
    else if (why)
        turn_refuse(mgr, number, CODE_FAILED_PRECONDITION, why);
    else if (sought->several)
        turn_refuse_several(mgr, number);
    else
        return !turn_is_full(mgr, number);
    return false;
}

void devicemgr_end(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod,
                   uint64_t grace_ms, bool here, const char *reason, uint64_t at_s)
{
    const struct end_request request = {.asker = END_OPERATOR,
                                        .grace_ms = grace_ms,
                                        .force_local = here,
                                        .why = reason,
                                        .at_s = at_s};
    struct state *state = &mgr->state;
    struct sought sought = {.pod = pod};

    state_at(state, now_ms);
    for (const struct pod *p = state->pods.by_uid; p; p = p->hh.next)
        look_at(&sought, state, p->uid, p->pod_namespace, p->name);
    for (const struct ending *e = state->endings.by_uid; e; e = e->hh.next) {
        if (!pods_find(&state->pods, e->pod_uid)) /* not listed since the start */
            look_at_ending(&sought, state, e);
    }
    if (!may_begin(mgr, number, &sought, reason))
        return;
    if (sought.uid)
        ends_order(&mgr->ends, number, sought.uid, &request);
    else if (!state->listing.listed)
        turn_refuse(mgr, number, CODE_FAILED_PRECONDITION,
                    "the runtime has not said yet what there is");
    else
        turn_refuse(mgr, number, CODE_NOT_FOUND, "the runtime knows no such pod");
}

void devicemgr_end_cancel(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod)
{
    struct state *state = &mgr->state;
    struct sought sought = {.pod = pod};

    state_at(state, now_ms);
    for (const struct ending *e = state->endings.by_uid; e; e = e->hh.next)
        look_at_ending(&sought, state, e);
    if (!may_begin(mgr, number, &sought, ""))
        return;
    if (!sought.uid || !ends_take_back(&mgr->ends, number, sought.uid))
        turn_refuse(mgr, number, CODE_NOT_FOUND, "no operator has asked for such a pod to end");
}
