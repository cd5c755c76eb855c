/*
 * The cluster: which devices its claims have, the slices of the first driver, and the agent that
 * tells the shim of both, as long as it and the API server are there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "devicemgr/dra.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/world.h"

#define WATCHED_PERCENT 80
#define NETWORKED_PERCENT 50
#define STEP_MS_MAX 15000
#define TELLS_MS_MAX 5000
#define PUBLISHES_MS_MAX 10000
#define ADMIN_PERCENT 8
#define SHARED_PERCENT 8
#define FAILS_PERCENT 10
#define APART_PERCENT 50

/* ---- claims and their devices ---- */

static bool is_free(const struct world *w, size_t driver, unsigned device)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        const struct dra_claim *claim = &w->dra.claims[i];

        if (claim->allocated && dra_uses(i, driver) && claim->device[driver] == device)
            return false;
    }
    return true;
}

/* DRA_POOLS * DRA_POOL_DEVICES: there is none. */
static unsigned pick(const struct world *w, struct rng *rng, size_t driver)
{
    unsigned all = DRA_POOLS * DRA_POOL_DEVICES, first = (unsigned)rng_below(rng, all);

    for (unsigned i = 0; i < all; i++) {
        if (is_free(w, driver, (first + i) % all))
            return (first + i) % all;
    }
    return all;
}

bool dra_allocate(struct world *w, size_t id)
{
    struct rng rng = world_draw(w, DRAW_DRA_ALLOCATED, id, 0);
    struct dra_claim *claim = &w->dra.claims[id];
    unsigned device[DRA_DRIVERS] = {0};

    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (dra_uses(id, d))
            device[d] = pick(w, &rng, d);
        if (device[d] == DRA_POOLS * DRA_POOL_DEVICES)
            return false;
    }
    memcpy(claim->device, device, sizeof device);
    claim->allocated = true;
    claim->admin = rng_percent(&rng, ADMIN_PERCENT);
    claim->shared = rng_percent(&rng, SHARED_PERCENT);
    return true;
}

void dra_deallocate(struct world *w, size_t id)
{
    w->dra.claims[id].allocated = false;
}

bool dra_is_local(const struct world *w, size_t driver, unsigned device)
{
    return driver == 0 && (device < DRA_POOL_DEVICES || !w->dra.cluster.networked);
}

/* ---- what the agent tells ---- */

static bool sees(const struct world *w)
{
    return w->shim.core && w->dra.cluster.agent && !w->dra.cluster.away;
}

static void tell_slice(struct world *w, size_t pool)
{
    char names[DRA_POOL_DEVICES][16];
    const char *devices[DRA_POOL_DEVICES];

    for (unsigned i = 0; i < DRA_POOL_DEVICES; i++) {
        snprintf(names[i], sizeof names[i], "g%u", i);
        devices[i] = names[i];
    }
    world_note(w, "agent: a slice of pool%zu", pool);
    devicemgr_slice(
        w->shim.core, shim_now_ms(w),
        &(struct devicemgr_slice){.uid = pool ? "s1" : "s0",
                                  .driver = dra_driver_name(0),
                                  .pool = dra_pool_name((unsigned)pool * DRA_POOL_DEVICES),
                                  .devices = devices,
                                  .devices_len = DRA_POOL_DEVICES,
                                  .apart = w->dra.cluster.apart});
}

static void tell_slices(struct world *w, uint64_t pool, uint64_t unused)
{
    struct dra_cluster *cluster = &w->dra.cluster;

    (void)unused;
    if (!sees(w) || cluster->told[pool] == cluster->published[pool])
        return;
    cluster->told[pool] = cluster->published[pool];
    if (cluster->published[pool]) {
        tell_slice(w, pool);
    } else {
        world_note(w, "agent: no slice of pool%" PRIu64, pool);
        devicemgr_slice_gone(w->shim.core, shim_now_ms(w), pool ? "s1" : "s0");
    }
    shim_run(w);
}

static void slices_changed(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_AGENT, 1, 0);

    for (size_t pool = 0; pool < DRA_POOLS; pool++)
        world_after(w, &rng, rng_delay_ms(&rng, TELLS_MS_MAX) + 1, tell_slices, pool, 0);
}

/* As it is allocated now; only now and then the agent may not see it. */
static void tell_allocation(struct world *w, uint64_t id, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_DRA_AGENT, 2, id);
    struct dra_claim *claim = &w->dra.claims[id];
    struct devicemgr_claim_device devices[DRA_DRIVERS];
    char names[DRA_DRIVERS][16], uid[16];
    size_t len = 0;

    (void)unused;
    if (!sees(w) || !claim->looked_for)
        return;
    claim->looked_for = false;
    if (rng_percent(&rng, FAILS_PERCENT))
        return;
    dra_claim_names(id, uid);
    for (size_t d = 0; d < DRA_DRIVERS && claim->allocated; d++) {
        if (!dra_uses(id, d))
            continue;
        snprintf(names[d], sizeof names[d], "g%u", claim->device[d] % DRA_POOL_DEVICES);
        devices[len++] = (struct devicemgr_claim_device){.driver = dra_driver_name(d),
                                                         .pool = dra_pool_name(claim->device[d]),
                                                         .device = names[d],
                                                         .share_id = claim->shared ? "x" : NULL,
                                                         .admin_access = claim->admin};
    }
    world_note(w, "agent: %s is %s", uid, claim->allocated ? "allocated" : "not allocated");
    devicemgr_claim_allocation(w->shim.core, shim_now_ms(w), uid, claim->allocated, devices, len);
    shim_run(w);
}

static void tell_later(struct world *w, size_t id)
{
    struct rng rng = world_draw(w, DRAW_DRA_LOOKS, id, 0);

    world_after(w, &rng, rng_delay_ms(&rng, TELLS_MS_MAX) + 1, tell_allocation, id, 0);
}

void dra_look(struct world *w, const struct devicemgr_claim *claim)
{
    size_t id = dra_claim_find(claim->uid);

    w->dra.claims[id].looked_for = true;
    if (sees(w))
        tell_later(w, id);
}

/* It, or the API server, is back: what was asked meanwhile is answered. */
static void back(struct world *w)
{
    if (!sees(w))
        return;
    slices_changed(w);
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        if (w->dra.claims[i].looked_for)
            tell_later(w, i);
    }
}

void dra_cluster_shim_started(struct world *w)
{
    memset(w->dra.cluster.told, 0, sizeof w->dra.cluster.told);
    for (size_t i = 0; i < w->dra.claims_len; i++)
        w->dra.claims[i].looked_for = false;
    back(w);
}

/* ---- slices ---- */

static void publish(struct world *w, uint64_t pool, uint64_t unused)
{
    (void)unused;
    if (!dra_driver_there(&w->dra.drivers[0]) || w->dra.cluster.published[pool])
        return;
    w->dra.cluster.published[pool] = true;
    slices_changed(w);
}

void dra_publish(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_AGENT, 3, 0);

    for (size_t pool = 0; pool < DRA_POOLS; pool++) {
        if (dra_is_local(w, 0, (unsigned)pool * DRA_POOL_DEVICES))
            world_after(w, &rng, rng_delay_ms(&rng, PUBLISHES_MS_MAX) + 1, publish, pool, 0);
    }
}

void dra_unpublish(struct world *w)
{
    memset(w->dra.cluster.published, 0, sizeof w->dra.cluster.published);
    slices_changed(w);
}

/* ---- who is there ---- */

static void step(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_DRA_AGENT, 0, 0);
    struct dra_cluster *cluster = &w->dra.cluster;

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), step, 0, 0);
    if (rng_percent(&rng, 50)) {
        cluster->agent = !cluster->agent;
        memset(cluster->told, 0, sizeof cluster->told); /* it tells all anew */
        world_note(w, "agent: %s", cluster->agent ? "back" : "away");
    } else {
        cluster->away = !cluster->away;
        world_note(w, "API server: %s", cluster->away ? "away" : "back");
        count_add(COUNT_DRA_API_AWAY);
    }
    back(w);
}

void dra_cluster_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_AGENT, 0, 1);

    w->dra.cluster.watched = w->dra.cluster.agent = rng_percent(&rng, WATCHED_PERCENT);
    w->dra.cluster.networked = rng_percent(&rng, NETWORKED_PERCENT);
    if (w->dra.cluster.watched)
        world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), step, 0, 0);
    w->dra.cluster.apart = rng_percent(&rng, APART_PERCENT);
}

void dra_cluster_heal(struct world *w)
{
    w->dra.cluster.agent = w->dra.cluster.watched;
    w->dra.cluster.away = false;
    back(w);
}
