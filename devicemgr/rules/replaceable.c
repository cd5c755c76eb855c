#include "devicemgr/rules/replaceable.h"

#include "devicemgr/rules/pool.h"
#include "devicemgr/things/moment.h"

#include "devicemgr/rules/rule.h"

uint64_t replaceable_from_ms(const struct wanted *wanted, const struct ids *ids)
{
    const struct resource *resource = wanted->resource;
    uint64_t since_ms = 0;
    size_t lost = 0;

    if (!wanted->settings->replace || wanted->want->claimed || !resource ||
        !resource_usable(resource))
        return UINT64_MAX;
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (device && device->healthy)
            continue;
        lost++;
        since_ms = later(since_ms, device ? device->since_ms : resource->devices.shrunk_ms);
    }
    if (!resource->builtin)
        since_ms = later(since_ms, resource->endpoint.since_ms); /* it is ACTIVE since then */
    return lost > 0 ? later_by(since_ms, wanted->settings->replace_after_ms) : UINT64_MAX;
}

/* What is the container's, or meant for it: what can be used of `ids`, or is back of what the kubelet
 * gave it; what the kubelet is being asked to let go of. */
static bool is_own(const struct state *state, const struct wanted *wanted, const struct ids *ids,
                   const char *id)
{
    return ids_contain_sorted(ids, id) || ids_contain_sorted(&wanted->want->ids, id) ||
           replacings_meant(&state->replacings, wanted->want->resource, id);
}

/* These stay: they go before what the pod's other containers had. */
static void keep_own(const struct state *state, const struct wanted *wanted, struct pool *pool,
                     const struct ids *ids)
{
    size_t reused = 0;

    for (size_t i = 0; i < pool->len; i++) {
        struct candidate *candidate = &pool->candidates[i];

        candidate->reused = candidate->reused || is_own(state, wanted, ids, candidate->device->id);
        reused += candidate->reused;
    }
    for (size_t i = 0; reused > ids->len && i < pool->len; i++)
        pool->candidates[i].reused = ids_contain_sorted(ids, pool->candidates[i].device->id);
}

bool replaceable_choose(const struct state *state, const struct wanted *wanted,
                        const struct ids *ids, struct ids *out)
{
    struct pool pool = pool_fill(state, wanted);
    bool enough = pool.len >= ids->len;

    keep_own(state, wanted, &pool, ids);
    if (enough)
        choose_devices(pool.candidates, pool.len, &wanted->want->preferred, ids->len, out);
    pool_fini(&pool);
    return enough;
}
