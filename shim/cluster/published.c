#include "shim/cluster/published.h"

#include <string.h>

#include "devicemgr/lift.h"

/* ---- pools ---- */

struct telling {
    const struct cluster_orders *orders;
    void (*each)(void *to, const struct published_pool *pool);
    void *to;
};

static void on_pool(void *user, const struct pools_pool *is)
{
    const struct telling *telling = user;
    struct published_pool pool = {.resource = is->resource,
                                  .name = is->name,
                                  .devices = is->devices,
                                  .left_out = is->left_out,
                                  .there = is->there};
    struct cluster_trouble trouble;

    if (cluster_orders_trouble(telling->orders, is->order, &trouble)) {
        pool.trouble = trouble.words;
        pool.refused = trouble.refused;
        pool.trouble_ms = trouble.since_ms;
    }
    telling->each(telling->to, &pool);
}

void published_each(const struct pools *pools, const struct cluster_orders *orders,
                    void (*each)(void *to, const struct published_pool *pool), void *to)
{
    struct telling telling = {orders, each, to};

    pools_each(pools, on_pool, &telling);
}

/* ---- slices ---- */

/* NULL: it is none of that pool. */
static Agent__V1__Slice *slice_of(const struct fact *fact, const char *pool)
{
    Agent__V1__Slice *slice;

    if (fact->kind != AGENT__V1__KIND__SLICE || !fact->value)
        return NULL;
    slice = agent__v1__slice__unpack(NULL, fact->len, fact->value);
    if (slice && strcmp(slice->driver, DEVICEMGR_LIFT_DRIVER) == 0 &&
        strcmp(slice->pool, pool) == 0)
        return slice;
    agent__v1__slice__free_unpacked(slice, NULL);
    return NULL;
}

static int64_t newest_of(const struct facts *facts, const char *pool)
{
    const struct fact *fact = NULL;
    int64_t newest = INT64_MIN;

    while ((fact = facts_next(facts, fact))) {
        Agent__V1__Slice *slice = slice_of(fact, pool);

        if (slice && slice->generation > newest)
            newest = slice->generation;
        agent__v1__slice__free_unpacked(slice, NULL);
    }
    return newest;
}

void published_slices(const struct facts *facts, const char *pool,
                      void (*each)(void *to, const struct published_slice *slice), void *to)
{
    int64_t newest = newest_of(facts, pool);
    const struct fact *fact = NULL;

    while ((fact = facts_next(facts, fact))) {
        Agent__V1__Slice *slice = slice_of(fact, pool);

        if (slice && slice->generation == newest)
            each(to, &(struct published_slice){slice->name, slice->devices, slice->n_devices});
        agent__v1__slice__free_unpacked(slice, NULL);
    }
}
