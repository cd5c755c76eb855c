/*
 * The API server of the world of taints: it evicts pods, as their disruption budgets allow, and the
 * kubelet ends them.
 */
#include "devicemgr/endings.h"
#include "tests/sim/taint_world.h"

void taint_cluster_ordered(struct taint_world *t, uint64_t order,
                           const struct devicemgr_eviction *eviction)
{
    struct tw_pod *pod = taint_pod_of(t, eviction->pod_uid);

    check_that(t->w, t->cluster, "without a cluster none is asked to evict a pod");
    if (!pod)
        return;
    taint_note(t, "u%u is to be evicted by the API server", pod->uid);
    taint_judge_order(t, pod, eviction);
    pod->order = order;
    pod->forced = eviction->forced;
    t->leaves = t->leaves || (!t->calm && rng_percent(&t->agent_rng, 30));
}

void taint_cluster_cancelled(struct taint_world *t, uint64_t order)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (t->pods[i].order == order)
            t->pods[i].order = 0;
    }
}

void taint_cluster_reached(struct taint_world *t)
{
    if (!t->cluster)
        return;
    if (t->api_away)
        t->away_ms = t->now_ms;
    taint_note(t, "the API server is %s", t->api_away ? "away" : "there");
    devicemgr_cluster_reached(t->core, t->now_ms, !t->api_away);
}

void taint_cluster_waits(struct taint_world *t, uint64_t ms)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (t->api_away && t->pods[i].order)
            t->pods[i].unasked_ms += ms;
    }
}

void taint_cluster_proceeds(struct taint_world *t, struct tw_pod *pod)
{
    uint64_t order = pod->order;

    if (!order || t->api_away)
        return;
    if (!pod->is_static && !pod->forced && !t->calm && rng_percent(&t->rng, 60)) {
        count_add(COUNT_TAINT_BUDGET);
        return;
    }
    taint_note(t, "the API server answers for u%u", pod->uid);
    pod->order = 0;
    if (pod->is_static) {
        devicemgr_pod_evicted(t->core, t->now_ms, order, DEVICEMGR_IS_STATIC);
    } else {
        count_add(COUNT_TAINT_EVICTED);
        pod->accepted = true;
        pod->deleting = true;
        devicemgr_pod_evicted(t->core, t->now_ms, order, DEVICEMGR_EVICTED);
    }
    taint_shim_run(t);
}
