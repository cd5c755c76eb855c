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

struct pool pool_fill(const struct state *state, const struct wanted *wanted)
{
    const struct devices *devices = &wanted->resource->devices;
    struct pool pool = {.candidates = mem_alloc(devices->len, sizeof *pool.candidates)};

    for (size_t i = 0; i < devices->len; i++) {
        const struct device *device = &devices->items[i];
        bool reused;

        if (!holders_none(state, wanted, device->id, &reused) ||
            (wanted->settings->dra && !is_own(state, wanted, device->id)))
            continue;
        pool.free++;
        if (!device->healthy)
            continue;
        if (wanted->orders && kept_back_by(state, wanted, device->id)) {
            ids_add(&pool.kept_back, device->id);
            continue;
        }
        if (wanted->tainted && tainted_for(state, wanted, device->id)) {
            ids_add(&pool.tainted, device->id);
            continue;
        }
        pool.candidates[pool.len++] = (struct candidate){.device = device, .reused = reused};
        pool.reused += reused;
    }
    return pool;
}

void pool_fini(struct pool *pool)
{
    free(pool->candidates);
    ids_fini(&pool->kept_back);
    ids_fini(&pool->tainted);
}
