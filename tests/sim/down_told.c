/*
 * Who tells in the world of a machine that goes down: logind, by an agent that knows the cluster's
 * pods, or not; and the operator.
 */
#include <stdio.h>

#include "devicemgr/operator.h"
#include "devicemgr/shutdown.h"
#include "tests/sim/down_world.h"

#define GRACE_MS_MAX 40000
#define LIMIT_S_MAX 100
#define KUBELET_MS_MAX 30000

/* ---- the machine ---- */

void down_begins(struct down_world *d)
{
    d->goes_down = true;
    d->since_ms = d->now_ms;
    d->limit_ms = rng_percent(&d->rng, 30) ? 0 : 1000 * rng_between(&d->rng, 1, LIMIT_S_MAX);
    d->kubelet_ends = rng_percent(&d->rng, 12);
    d->kubelet_gone_ms = d->now_ms % 2 ? d->now_ms + d->now_ms % KUBELET_MS_MAX : DW_NEVER;
    down_note(d, "the machine is to go down, within %llu ms%s%s", (unsigned long long)d->limit_ms,
              d->kubelet_ends ? ", by the kubelet" : "",
              d->kubelet_ends && d->kubelet_gone_ms != DW_NEVER ? ", which dies in the middle"
                                                                : "");
}

void down_cancelled(struct down_world *d)
{
    d->goes_down = false;
    d->kubelet_ends = false;
    down_note(d, "the machine does not go down");
}

/* ---- what the shim is told of it ---- */

/* The rule in words: it is told of the same one again, or of another. */
static void note_told(struct down_world *d, const struct devicemgr_shutdown_said *said)
{
    struct dw_plan *plan = &d->plan;
    bool by_kubelet = said->kubelet_locked || d->kubelet_before;

    d->told_gone_ms =
        said->under_way && said->kubelet_gone ? earlier_ms(d->told_gone_ms, d->now_ms) : DW_NEVER;
    if (!said->under_way) {
        d->kubelet_before = said->kubelet_locked;
        if (plan->state != DW_NONE) {
            count_add(COUNT_DOWN_CANCELLED);
            down_plan_end(d);
        }
        d->given_up_ms = 0;
    } else if (d->off || (d->given_up_ms && said->since_ms <= d->given_up_ms)) {
        return;
    } else if (plan->state == DW_NONE) {
        down_plan_begin(d, said->since_ms ? said->since_ms : d->now_ms, said->limit_ms, by_kubelet);
    } else if (said->since_ms > plan->since_ms) {
        count_add(COUNT_DOWN_ANOTHER);
        down_plan_begin(d, said->since_ms, said->limit_ms, by_kubelet);
    } else {
        if (plan->state == DW_BEGUN && said->kubelet_locked)
            plan->by_kubelet = true;
        if (plan->limit_ms == 0)
            plan->limit_ms = said->limit_ms;
    }
}

void down_told(struct down_world *d, bool known, bool whole)
{
    struct devicemgr_priority pods[DW_PODS];
    char uids[DW_PODS][16], names[DW_PODS][16];
    struct devicemgr_shutdown_said said = {.under_way = d->goes_down,
                                           .since_ms = whole && d->goes_down ? d->since_ms : 0,
                                           .limit_ms = whole && d->goes_down ? d->limit_ms : 0,
                                           .kubelet_locked = d->kubelet_ends,
                                           .kubelet_gone =
                                               !d->kubelet_ends || d->now_ms >= d->kubelet_gone_ms,
                                           .pods = known ? pods : NULL};

    for (size_t i = 0; known && i < DW_PODS; i++) {
        const struct dw_pod *pod = &d->pods[i];

        d->known.is = true;
        d->known.uids[i] = 0;
        if (!pod->there || !pod->mirrored)
            continue;
        d->known.uids[i] = pod->uid;
        d->known.priorities[i] = pod->priority;
        snprintf(uids[said.pods_len], sizeof uids[0], "%c%u", pod->is_static ? 'm' : 'u', pod->uid);
        snprintf(names[said.pods_len], sizeof names[0], "u%u", pod->uid);
        pods[said.pods_len] = (struct devicemgr_priority){.pod_uid = uids[said.pods_len],
                                                          .pod_namespace = "ns",
                                                          .pod_name = names[said.pods_len],
                                                          .mirror = pod->is_static,
                                                          .priority = pod->priority};
        said.pods_len++;
    }
    down_note(d, "told that the machine %s%s%s", d->goes_down ? "goes down" : "does not go down",
              known ? ", with pods" : "", whole ? ", and when" : "");
    note_told(d, &said);
    devicemgr_shutdown(d->core, d->now_ms, &said);
    down_shim_run(d);
}

/* ---- the operator ---- */

static void end(struct down_world *d, struct dw_pod *pod)
{
    uint64_t grace_ms = 1000 * rng_between(&d->rng, 1, GRACE_MS_MAX / 1000);
    struct dw_pod was = *pod;
    unsigned uid = pod->uid;
    char text[16];

    snprintf(text, sizeof text, "u%u", uid);
    down_note(d, "an operator ends %s in %llu ms", text, (unsigned long long)grace_ms);
    if (pod->asks[DW_OPERATOR] == DW_NOT_ASKED)
        pod->end_grace_ms = DW_NEVER;
    pod->end_grace_ms = earlier_ms(pod->end_grace_ms, grace_ms);
    down_ask(pod, DW_OPERATOR);
    d->operator_refused = false;
    devicemgr_end(d->core, d->now_ms, ++d->number, text, grace_ms, false, "it is to", 1);
    down_shim_run(d);
    if (!d->operator_refused) {
        count_add(COUNT_DOWN_ENDED_TOO);
    } else if (pod->uid == uid) {
        pod->asks[DW_OPERATOR] = was.asks[DW_OPERATOR];
        pod->end_grace_ms = was.end_grace_ms;
    }
}

void down_operator_takes_back(struct down_world *d, struct dw_pod *pod)
{
    char text[16];

    if (pod->asks[DW_OPERATOR] == DW_NOT_ASKED || d->draining)
        return;
    snprintf(text, sizeof text, "u%u", pod->uid);
    down_note(d, "an operator does not end %s any more", text);
    pod->asks[DW_OPERATOR] = DW_NOT_ASKED;
    pod->end_grace_ms = DW_NEVER;
    devicemgr_end_cancel(d->core, d->now_ms, ++d->number, text);
    down_shim_run(d);
}

void down_operator_acts(struct down_world *d, struct dw_pod *pod)
{
    if (!pod->there || !pod->known || !d->listed)
        return;
    if (pod->asks[DW_OPERATOR] == DW_NOT_ASKED || rng_percent(&d->rng, 40))
        end(d, pod);
    else
        down_operator_takes_back(d, pod);
}
