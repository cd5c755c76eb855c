#include "devicemgr/rules/replaceable.h"

#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/pool.h"
#include "devicemgr/things/moment.h"

#include "devicemgr/rules/rule.h"

uint64_t replaceable_from_ms(const struct state *state, const struct wanted *wanted,
                             const struct ids *ids)
{
    const struct resource *resource = wanted->resource;
    size_t gone = 0, displaced = 0;
    uint64_t since_ms = 0;

    /* What is published is the scheduler's to give, also where the pod has its own from before. */
    if (!wanted->settings->replace || wanted->settings->dra || wanted->want->claimed || !resource ||
        !resource_usable(resource))
        return UINT64_MAX;
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (device && device->healthy) {
            displaced += holders_displaced(state, wanted, device->id);
            continue;
        }
        gone++;
        since_ms = later(since_ms, device ? device->since_ms : resource->devices.shrunk_ms);
    }
    if (!resource->builtin)
        since_ms = later(since_ms, resource->endpoint.since_ms); /* it is ACTIVE since then */
    if (gone > 0)
        return later_by(since_ms, wanted->settings->replace_after_ms);
    return displaced > 0 ? 0 : UINT64_MAX;
}

/* Of a listed device: it is one of `ids`, and is not lost. */
static bool stays(const struct state *state, const struct wanted *wanted, const struct ids *ids,
                  const struct device *device)
{
    return device->healthy && ids_contain_sorted(ids, device->id) &&
           !holders_displaced(state, wanted, device->id);
}

/* What is the container's, or meant for it: what is back of what the kubelet gave it; what the
 * kubelet is being asked to let go of. */
static bool is_own(const struct state *state, const struct wanted *wanted, const char *id)
{
    return ids_contain_sorted(&wanted->want->ids, id) ||
           replacings_meant(&state->replacings, wanted->want->resource, id);
}

/* What stays is among the candidates, whoever had it besides. It goes before what the pod's other
 * containers had, and so does what else is the container's, if there is room for all of it. */
static void keep_own(const struct state *state, const struct wanted *wanted, struct pool *pool,
                     const struct ids *ids)
{
    const struct devices *devices = &wanted->resource->devices;
    struct candidate *all = mem_alloc(devices->len, sizeof *all);
    size_t len = 0, at = 0, reused = 0;

    for (size_t i = 0; i < devices->len; i++) {
        const struct device *device = &devices->items[i];
        bool is_free = at < pool->len && pool->candidates[at].device == device;
        bool own = stays(state, wanted, ids, device);

        if (!is_free && !own)
            continue;
        if (is_free) {
            own = own || pool->candidates[at].reused || is_own(state, wanted, device->id);
            at++;
        }
        all[len++] = (struct candidate){.device = device, .reused = own};
        reused += own;
    }
    for (size_t i = 0; reused > ids->len && i < len; i++)
        all[i].reused = stays(state, wanted, ids, all[i].device);
    free(pool->candidates);
    pool->candidates = all;
    pool->len = len;
}

bool replaceable_choose(const struct state *state, const struct wanted *wanted,
                        const struct ids *ids, struct ids *out)
{
    struct pool pool = pool_fill(state, wanted);
    bool enough;

    keep_own(state, wanted, &pool, ids);
    enough = pool.len >= ids->len;
    if (enough)
        choose_devices(pool.candidates, pool.len, &wanted->want->preferred, ids->len, out);
    pool_fini(&pool);
    return enough;
}
