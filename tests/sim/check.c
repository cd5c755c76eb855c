#include "tests/sim/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/coming.h"
#include "tests/sim/move.h"
#include "tests/sim/over.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

/* Far over what PODS_MAX pods can have at once, and have had since the last commit. */
#define ALLOCATIONS_MAX 100

/* ---- what it keeps ---- */

void check_settled(struct world *w)
{
    size_t open = client_open(w), asked = plugin_calls_open(w);
    struct devicemgr_kept kept;

    devicemgr_kept(w->shim.core, &kept);
    check_that(w, kept.creates == open, "creates: the core knows %zu, the kubelet waits for %zu",
               kept.creates, open);
    check_that(w, kept.calls <= asked && asked <= kept.calls + bridge_open(w),
               "calls: the core waits for %zu, and for %zu preferences, the plugins have %zu",
               kept.calls, bridge_open(w), asked);
    check_that(w, kept.checks <= lister_checks_open(w),
               "checks: the core waits for %zu, the runtime has %zu", kept.checks,
               lister_checks_open(w));
    check_that(w, kept.allocations <= ALLOCATIONS_MAX, "allocations are bounded");
    check_that(w, w->shim.port_calls <= PORT_CALLS_MAX, "one event makes %u port calls",
               w->shim.port_calls);
    moves_note_known(w);
    operator_check(w);
    check_creates(w);
    store_check(w);
    over_check(w);
    publisher_check(w);
    shown_check(w);
    bridge_check(w);
    dra_check(w);
}

void check_nothing_left(struct world *w)
{
    struct devicemgr_kept kept;

    devicemgr_kept(w->shim.core, &kept);
    check_that(w, kept.allocations == 0, "%zu allocations are left", kept.allocations);
    check_that(w, kept.pods == 0, "%zu pods are left", kept.pods);
    check_that(w, kept.sandboxes == 0, "%zu sandboxes are left", kept.sandboxes);
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION) == 0,
               "%zu allocations are left in the checkpoint",
               store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_POD) == 0,
               "%zu pods are left in the checkpoint", store_count(&w->store, DEVICEMGR_RECORD_POD));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_ORDER) == 0,
               "%zu rows of what an operator has taken back are left",
               store_count(&w->store, DEVICEMGR_RECORD_ORDER));
    dra_check_nothing_left(w);
    check_that(w, plugin_registrations_open(w) == 0, "%zu Register calls were never answered",
               plugin_registrations_open(w));
    check_that(w, shim_next_ms(w) == UINT64_MAX, "a node at rest waits for nothing");
}

/* ---- what truly runs ---- */

/* Made for an init container that is done already: the kubelet goes on behind it. */
static bool comes_too_late(const struct world *w, const struct rt_container *made)
{
    const struct pod_sim *pod = kubelet_find_pod((struct world *)w, made->uid);

    return pod && made->name < pod->containers_len && pod->containers[made->name].init &&
           pod->containers[made->name].done;
}

/* The next attempt of the same container; or one that was made for a client who had given up, and
 * which nobody will ever start: the core knows one container per allocation, the last. A rival's
 * that the shim had not heard of yet. One of the same pod whose rows were damaged: what the rows
 * say that are left is believed until the runtime's list. */
static bool may_share(const struct rt_container *made, const struct rt_container *other)
{
    return (made->uid == other->uid && (made->name == other->name || made->damaged)) ||
           made->abandoned || other->abandoned ||
           (other->rival && other->heard_ms >= made->begun_ms);
}

/* What nobody else may get from the shim: not what came without a token, until it must know. */
static unsigned guarded(const struct rt_container *c, size_t r)
{
    return c->known[r] ? c->held[r] : c->held[r] & ~c->bare[r];
}

/* It came without a token while the call that made the other was under way: that passes untouched,
 * and what the kubelet gave to its pod counted for nothing while its sandbox was stopped. */
static bool came_untouched(const struct rt_container *other, const struct rt_container *made,
                           size_t r)
{
    return (other->bare[r] & made->held[r]) != 0 && other->known_ms[r] >= made->begun_ms;
}

void check_exclusive(struct world *w, const struct rt_container *container)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *other = &w->runtime.containers[i];

        if (other == container || !runtime_live(other) || may_share(container, other) ||
            comes_too_late(w, container))
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++)
            check_that(w,
                       (guarded(other, r) & container->noted[r]) == 0 || !shim_exclusive(w, r) ||
                           came_untouched(other, container, r),
                       "no device in two live containers: %x of resource %zu in c%u of u%u and "
                       "c%u of u%u",
                       guarded(other, r) & container->noted[r], r, other->id, other->uid,
                       container->id, container->uid);
    }
}

/* A call that nobody waits for may still make one, as long as its sandbox is open. */
void check_making(struct world *w, const struct rt_container *container)
{
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++) {
        const struct runtime_call *call = &w->runtime.calls[i];
        const struct rt_sandbox *s = runtime_find_sandbox(w, call->made.sandbox);

        if (!call->number || call->kind != CALL_CREATE_CONTAINER || call->effected || !s ||
            !s->ready || s->hidden || s->doomed || runtime_stopping(w, s->id) ||
            call->made.uid == container->uid)
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++)
            check_that(
                w, (guarded(&call->made, r) & container->noted[r]) == 0 || !shim_exclusive(w, r),
                "no device is given away that is in a container in the making: %x of "
                "resource %zu, of u%u",
                guarded(&call->made, r), r, call->made.uid);
    }
}

/* It takes what its container has had before, whoever was given that behind our back since. */
static bool is_own(const struct world *w, const struct create_sim *create,
                   const struct claim *claim)
{
    const struct claim *own = claims_seek(w, create->uid, create->name, claim->resource);

    return own && (own->mask & claim->mask) != 0;
}

/* Whether a create that is under way may have taken it: it was in no container that runs. What one
 * that chooses takes is told by its verdict only: it may be of any pod that was over before. */
static bool may_be_taken(const struct world *w, const struct claim *claim)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *c = &w->client.creates[i];

        if (c->number && c->count[claim->resource] > 0 &&
            (c->uid == claim->uid || c->ids[claim->resource] & claim->mask || is_own(w, c, claim) ||
             (!c->ids[claim->resource] && !runtime_runs(w, claim->uid))))
            return true;
    }
    return false;
}

/* As long as runtime and kubelet have not both listed, only what the shim was told, or saw end, in
 * this life ends a pod. */
void check_dropped(struct world *w, const char *uid, const char *container, const char *resource)
{
    unsigned pod = (unsigned)strtoul(uid + 1, NULL, 10);
    const struct claim *claim =
        claims_seek(w, pod, container_sim_find(container), resource_sim_find(resource));

    if (releaser_took(w, pod))
        return;
    if (!claim || claim->since_ms > w->shim.started_ms || claim->told_ms > w->shim.started_ms)
        return; /* made, and given back, in this life */
    if (!w->store.reset &&
        !store_find(&w->store, DEVICEMGR_RECORD_ALLOCATION, uid, container, resource))
        return; /* it never was durable: there was nothing to restore */
    if (may_be_taken(w, claim)) {
        claims_take(w, pod, claim->name, claim->resource);
        return;
    }
    for (size_t i = 0; i < PODS_MAX; i++) {
        for (size_t c = 0; c < POD_CONTAINERS_MAX; c++) {
            if (w->kubelet.pods[i].uid != pod &&
                w->kubelet.pods[i].containers[c].ids[claim->resource] & claim->mask)
                return; /* the kubelet gave it to that one */
        }
    }
    if (claims_taken(w, claim))
        return; /* and the create that took it is over */
    check_that(w,
               coming_sources_ms(w) != UINT64_MAX || runtime_ended_ms(w, pod) >= w->shim.started_ms,
               "nothing restored is dropped before runtime and kubelet have listed: %s", uid);
}

void check_freed(struct world *w, const char *uid, const char *container, const char *resource)
{
    size_t r = resource_sim_find(resource);

    if (!shim_exclusive(w, r) && reason_unlisted(w))
        return; /* what is shared is given out before it is known who has it: a list tells */
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (!runtime_live(c) || c->abandoned || c->held[r] == 0 || c->heard_ms == UINT64_MAX ||
            strtoul(uid + 1, NULL, 10) != c->uid ||
            strcmp(container_sim_name(c->name), container) != 0)
            continue;
        check_that(w, false, "a device is freed when its container is gone: c%u of %s, %s", c->id,
                   uid, resource);
    }
}
