#include "devicemgr/books.h"

#include "devicemgr/core.h"

/* ---- what is so ---- */

bool core_pod_holds(const struct devicemgr *mgr, const char *pod_uid)
{
    const struct allocation *a = allocations_of_pod(&mgr->allocations, pod_uid);

    while (a && allocation_life(a) == ALLOCATION_IDLE)
        a = a->pod_next;
    return a != NULL;
}

bool core_pod_runs(const struct devicemgr *mgr, const struct pod *pod)
{
    const struct allocation *a = allocations_of_pod(&mgr->allocations, pod->uid);

    while (a && a->lives_len == 0 && !a->unknown_in)
        a = a->pod_next;
    return a != NULL;
}

bool core_pod_over(const struct devicemgr *mgr, const char *pod_uid)
{
    const struct pod *pod = pods_find(&mgr->pods, pod_uid);
    const struct sandbox *newest = pod ? pod->newest : NULL;

    if (!pod)
        return pods_gone(&mgr->pods, pod_uid);
    if (!mgr->listed || core_pod_holds(mgr, pod_uid)) /* a newer sandbox may exist */
        return false;
    return pod->removed || (newest && newest->state != SANDBOX_OPEN &&
                            (newest->state == SANDBOX_STOPPED || newest->dead) &&
                            mgr->now_ms >= newest->remade_by_ms);
}

bool core_sandbox_removed(const struct devicemgr *mgr, const char *sandbox_id)
{
    uint64_t epoch;

    return pods_find_end(&mgr->pods, sandbox_id, &epoch) == SANDBOX_END_REMOVED;
}

/* ---- what changes ---- */

/* What can run of one allocation says whether its pod is over, and so what all of them are. */
static void siblings_changed(struct devicemgr *mgr, const char *pod_uid, bool wakes)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, pod_uid); a;
         a = a->pod_next) {
        allocation_set_stale(a);
        if (wakes)
            wake_holders(mgr, a);
    }
    kubelet_pod_changed(mgr, pod_uid, wakes);
}

void core_pod_changed(struct devicemgr *mgr, const char *pod_uid)
{
    wake_pod(mgr, pod_uid);
    siblings_changed(mgr, pod_uid, true);
}

void core_touch_pod(struct devicemgr *mgr, const struct pod *pod)
{
    if (allocations_of_pod(&mgr->allocations, pod->uid))
        checkpoint_touch_pod(mgr, pod->uid);
}

/* What a create took and gave back in one look is no change: two that want the same devices and
 * others besides would wake each other for ever. That a create takes what was free concerns nobody
 * yet: it may be given up. */
void core_settle_allocations(struct devicemgr *mgr)
{
    struct allocation *a;

    while ((a = allocations_take_changed(&mgr->allocations))) {
        enum allocation_life before = a->known, life = allocation_life(a);

        if (before != life)
            siblings_changed(mgr, a->pod_uid,
                             before != ALLOCATION_ABSENT && life != ALLOCATION_BUSY);
        allocation_settle(a);
    }
}

void core_remove_allocation(struct devicemgr *mgr, struct allocation *allocation)
{
    if (allocation->known != ALLOCATION_ABSENT)
        siblings_changed(mgr, allocation->pod_uid, true);
    allocations_remove(&mgr->allocations, allocation);
}

void core_drop_allocation(struct devicemgr *mgr, struct allocation *allocation)
{
    checkpoint_touch_allocation(mgr, allocation);
    checkpoint_touch_pod(mgr, allocation->pod_uid);
    core_remove_allocation(mgr, allocation);
}

static void drop_pod_allocations(struct devicemgr *mgr, const char *pod_uid)
{
    struct allocation *allocation;

    while ((allocation = allocations_of_pod(&mgr->allocations, pod_uid)))
        core_drop_allocation(mgr, allocation);
}

void core_drop_pod(struct devicemgr *mgr, struct pod *pod)
{
    drop_pod_allocations(mgr, pod->uid);
    wake_pod(mgr, pod->uid);
    kubelet_pod_changed(mgr, pod->uid, true);
    pods_remove(&mgr->pods, pod);
}
