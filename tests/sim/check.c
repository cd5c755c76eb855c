#include "tests/sim/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/options.h"
#include "devicemgr/request.h"
#include "tests/sim/world.h"

/* Far over what PODS_MAX pods can have at once, and have had since the last commit. */
#define ALLOCATIONS_MAX 100

/* ---- the core's own tables ---- */

static size_t count_calls(const struct devicemgr *core)
{
    size_t calls = 0;

    for (const struct create *c = core->creates; c; c = c->hh.next) {
        for (size_t i = 0; i < c->request.len; i++)
            calls += c->items[i].call != 0;
    }
    return calls;
}

static size_t count_checks(const struct devicemgr *core)
{
    size_t checks = 0;

    for (const struct allocation *a = core->allocations.by_key; a; a = a->hh.next)
        checks += a->check != 0;
    return checks;
}

void check_settled(struct world *w)
{
    const struct devicemgr *core = w->shim.core;
    size_t creates = HASH_COUNT(core->creates), open = client_open(w);
    size_t calls = count_calls(core), checks = count_checks(core);
    size_t asked = plugin_calls_open(w);

    check_that(w, !core->actions.first, "every action was carried out");
    check_that(w, creates == open, "creates: the core knows %zu, the kubelet waits for %zu",
               creates, open);
    check_that(w, calls <= asked && asked <= calls + bridge_open(w),
               "calls: the core waits for %zu, and for %zu preferences, the plugins have %zu",
               calls, bridge_open(w), asked);
    check_that(w, checks <= lister_checks_open(w),
               "checks: the core waits for %zu, the runtime has %zu", checks,
               lister_checks_open(w));
    check_that(w, core->checkpoint.commit == w->store.commit,
               "the commit under way is the store's");
    check_that(w, HASH_COUNT(core->allocations.by_key) <= ALLOCATIONS_MAX,
               "allocations are bounded");
    check_that(w, w->shim.port_calls <= PORT_CALLS_MAX, "one event makes %u port calls",
               w->shim.port_calls);
    check_creates(w);
    store_check(w);
    publisher_check(w);
    shown_check(w);
    bridge_check(w);
}

void check_nothing_left(struct world *w)
{
    const struct devicemgr *core = w->shim.core;

    for (const struct allocation *a = core->allocations.by_key; a; a = a->hh.next)
        check_that(w, false, "an allocation is left: %s of %s, %s", a->container, a->pod_uid,
                   a->resource);
    check_that(w, HASH_COUNT(core->pods.by_uid) == 0, "%u pods are left",
               HASH_COUNT(core->pods.by_uid));
    check_that(w, HASH_COUNT(core->pods.sandboxes) == 0, "%u sandboxes are left",
               HASH_COUNT(core->pods.sandboxes));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION) == 0,
               "%zu allocations are left in the checkpoint",
               store_count(&w->store, DEVICEMGR_RECORD_ALLOCATION));
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_POD) == 0,
               "%zu pods are left in the checkpoint", store_count(&w->store, DEVICEMGR_RECORD_POD));
    check_that(w, plugin_registrations_open(w) == 0, "%zu Register calls were never answered",
               plugin_registrations_open(w));
    check_that(w, shim_next_ms(w) == UINT64_MAX, "a node at rest waits for nothing");
}

/* ---- what truly runs ---- */

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

void check_exclusive(struct world *w, const struct rt_container *container)
{
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        const struct rt_container *other = &w->runtime.containers[i];

        if (other == container || !runtime_live(other) || may_share(container, other))
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++)
            check_that(w, (other->held[r] & container->held[r]) == 0 || !shim_exclusive(w, r),
                       "no device in two live containers: %x of resource %zu in c%u of u%u and "
                       "c%u of u%u",
                       other->held[r] & container->held[r], r, other->id, other->uid, container->id,
                       container->uid);
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
            check_that(w, (call->made.held[r] & container->held[r]) == 0 || !shim_exclusive(w, r),
                       "no device is given away that is in a container in the making: %x of "
                       "resource %zu, of u%u",
                       call->made.held[r], r, call->made.uid);
    }
}

/* As long as runtime and kubelet have not both listed, only what the shim was told, or saw end, in
 * this life ends a pod. */
void check_dropped(struct world *w, const char *uid, const char *container, const char *resource)
{
    unsigned pod = (unsigned)strtoul(uid + 1, NULL, 10);
    const struct claim *claim =
        claims_find(w, pod, container_sim_find(container), resource_sim_find(resource));

    if (!claim || claim->since_ms > w->shim.started_ms || claim->told_ms > w->shim.started_ms)
        return; /* made, and given back, in this life */
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (w->client.creates[i].number && w->client.creates[i].count[claim->resource] > 0)
            return; /* that may have taken it: it was in no container that runs */
    }
    for (size_t i = 0; i < PODS_MAX; i++) {
        for (size_t c = 0; c < POD_CONTAINERS_MAX; c++) {
            if (w->kubelet.pods[i].containers[c].ids[claim->resource] & claim->mask)
                return; /* the kubelet gave it to that one, or to itself again */
        }
    }
    check_that(w,
               claims_sources_ms(w) != UINT64_MAX || runtime_ended_ms(w, pod) >= w->shim.started_ms,
               "nothing restored is dropped before runtime and kubelet have listed: %s", uid);
}

void check_freed(struct world *w, const char *uid, const char *container, const char *resource)
{
    size_t r = resource_sim_find(resource);

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (!runtime_live(c) || c->abandoned || c->held[r] == 0 || c->heard_ms == UINT64_MAX ||
            strtoul(uid + 1, NULL, 10) != c->uid ||
            strcmp(container_sim_name(c->name), container) != 0)
            continue;
        check_that(w, false, "a device is freed when its container is gone: c%u of %s, %s", c->id,
                   uid, resource);
    }
}
