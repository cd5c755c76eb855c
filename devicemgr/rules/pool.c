#include "devicemgr/rules/pool.h"

#include <string.h>

#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/kept_back.h"
#include "devicemgr/rules/tainted.h"

#include "devicemgr/rules/rule.h"

/* Whether the pod has the device, and not by a claim. */
static bool is_own(const struct state *state, const struct wanted *wanted, const char *id)
{
    const struct owners *holders =
        allocations_holders(&state->allocations, wanted->want->resource, id);
    bool own = false;

    for (size_t i = 0; i < owners_len(holders) && !own; i++) {
        const struct allocation *holder = holders->v[i];

        own = !holder->claimed && strcmp(holder->pod_uid, wanted->demand->pod_uid) == 0;
    }
    return own;
}

static bool pod_has_any(const struct state *state, const struct wanted *wanted)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, wanted->demand->pod_uid);

    while (a && strcmp(a->resource, wanted->want->resource) != 0)
        a = a->pod_next;
    return a;
}

/* Whether the first ones are as good as any: none is rather to be had for its place, for who has
 * had it, or by the plugin's word. */
static bool are_alike(const struct state *state, const struct wanted *wanted)
{
    const struct resource *resource = wanted->resource;

    return !wanted->want->token && !pod_has_any(state, wanted) && resource->devices.on_nodes == 0 &&
           wanted->want->preferred.len == 0 &&
           (resource->builtin || !resource->endpoint.has_preference);
}

static void add(const struct state *state, const struct wanted *wanted, const struct device *device,
                struct pool *pool)
{
    bool reused;

    if (!holders_none(state, wanted, device->id, &reused) ||
        (wanted->settings->dra && !is_own(state, wanted, device->id)))
        return;
    pool->free++;
    if (!device->healthy)
        return;
    if (wanted->orders && kept_back_by(state, wanted, device->id)) {
        ids_add(&pool->kept_back, device->id);
        return;
    }
    if (wanted->tainted && tainted_for(state, wanted, device->id)) {
        ids_add(&pool->tainted, device->id);
        return;
    }
    pool->candidates[pool->len++] = (struct candidate){.device = device, .reused = reused};
    pool->reused += reused;
}

struct pool pool_fill(const struct state *state, const struct wanted *wanted)
{
    const struct devices *devices = &wanted->resource->devices;
    const size_t count = wanted->want->count;
    size_t most = devices->len, healthy = devices->healthy;
    struct pool pool = {0};

    if (count < most && are_alike(state, wanted))
        most = count;
    pool.candidates = mem_alloc(most, sizeof *pool.candidates);
    for (; pool.looks < devices->len && pool.len < most && (healthy > 0 || pool.free < count);
         pool.looks++) {
        const struct device *device = &devices->items[pool.looks];

        healthy -= device->healthy;
        if (device->healthy || pool.free < count)
            add(state, wanted, device, &pool);
    }
    return pool;
}

void pool_fini(struct pool *pool)
{
    free(pool->candidates);
    ids_fini(&pool->kept_back);
    ids_fini(&pool->tainted);
}
