#include "shim/cluster/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/kube_name.h"
#include "devicemgr/lift.h"
#include "shim/boot_clock.h"
#include "shim/cluster/limits.h"
#include "shim/cluster/pool_order.h"
#include "shim/log.h"
#include "shim/must.h"

struct pool {
    struct pools *pools;
    char *name;
    char *resource;                        /* NULL: it is to be gone */
    bool wanted;                           /* only while all are looked at */
    struct pool_sum wanted_sum, there_sum; /* as it is to be, as the cluster had it at the look */
    uint64_t version;                      /* pools->version, of wanted_sum; 0: of none */
    uint64_t order;                        /* 0: none is under way */
    uint64_t ordered;                      /* sum of what that says, or the last that was done */
    uint64_t changes;                      /* pools->changes, when it was given */
    size_t devices, left_out, bytes;       /* of what it says */
    bool done;                             /* one was */
    UT_hash_handle hh;
};

static void set_timer(struct pools *pools);

/* ---- the table ---- */

static struct pool *find(struct pools *pools, const char *name)
{
    struct pool *pool;

    HASH_FIND_STR(pools->by_name, name, pool);
    return pool;
}

/* NULL: there are too many. */
static struct pool *add(struct pools *pools, const char *name)
{
    struct pool *pool = find(pools, name);

    if (pool || HASH_COUNT(pools->by_name) == CLUSTER_POOLS_MAX)
        return pool;
    pool = must(calloc(1, sizeof *pool));
    pool->pools = pools;
    pool->name = must(strdup(name));
    HASH_ADD_KEYPTR(hh, pools->by_name, pool->name, strlen(pool->name), pool);
    return pool;
}

static void pool_free(struct pool *pool)
{
    HASH_DEL(pool->pools->by_name, pool);
    free(pool->name);
    free(pool->resource);
    free(pool);
}

static void count_orders(struct pools *pools)
{
    struct cluster_trouble trouble;

    pools->going = pools->ordered = pools->bytes = 0;
    for (const struct pool *pool = pools->by_name; pool; pool = pool->hh.next) {
        if (!pool->order)
            continue;
        pools->going += !cluster_orders_trouble(pools->orders, pool->order, &trouble);
        pools->ordered++;
        pools->bytes += pool->bytes;
    }
}

/* ---- orders ---- */

static void tell_done(const struct pool *pool)
{
    struct log_about about = {.resource = pool->resource};

    if (!pool->resource)
        log_info("cluster: the ResourceSlices of pool %s are gone", pool->name);
    else
        log_write_about(LOG_LEVEL_INFO, &about, "resource %s: %zu devices are published as pool %s",
                        pool->resource, pool->devices, pool->name);
    if (pool->left_out > 0)
        log_write_about(LOG_LEVEL_WARNING, &about,
                        "resource %s: %zu devices are not published: they are too many",
                        pool->resource, pool->left_out);
}

/* Of what is published again, since others had deleted it, nothing is said. */
static void on_done(void *user, const Agent__V1__AnswerRequest *answer)
{
    struct pool *pool = user;
    struct pools *pools = pool->pools;

    (void)answer;
    pool->order = 0;
    if (!pool->done)
        tell_done(pool);
    pool->done = true;
    set_timer(pools);
}

/* One that fails, for ever maybe, keeps no other from its turn. */
static bool has_room(const struct pool *pool, size_t bytes)
{
    const struct pools *pools = pool->pools;

    if (pool->order)
        return pools->bytes - pool->bytes + bytes <= CLUSTER_POOLS_BYTES_MAX;
    return pools->going < CLUSTER_POOLS_AT_ONCE && pools->ordered < CLUSTER_POOLS_ORDERED_MAX &&
           pools->bytes + bytes <= CLUSTER_POOLS_BYTES_MAX;
}

/* What an agent has is waited for: a pool that is written half is no pool. */
static void give(struct pool *pool, const struct pool_order *what)
{
    struct pools *pools = pool->pools;
    uint64_t order = 0;

    if (!has_room(pool, what->bytes))
        order = 0;
    else if (pool->order)
        order = cluster_orders_change(pools->orders, pool->order, &what->order);
    else
        order = cluster_orders_add(pools->orders, &what->order, true, on_done, pool);
    if (order == 0) {
        pools->owing = true;
        return;
    }
    pools->going += pool->order == 0;
    pools->ordered += pool->order == 0;
    pools->bytes += what->bytes - (pool->order ? pool->bytes : 0);
    pool->bytes = what->bytes;
    pool->done = pool->done && pool->ordered == what->sum.all;
    pool->order = order;
    pool->ordered = what->sum.all;
    pool->changes = pools->changes;
    pool->devices = what->devices;
    pool->left_out = what->left_out;
}

/* Whether the cluster has it otherwise; only if that is news, since what is told of a write comes
 * behind it. */
static bool is_spoilt(const struct pool *pool)
{
    const struct pools *pools = pool->pools;

    return pool->changes != pools->changes && pools->complete &&
           !pool_sum_equal(&pool->wanted_sum, &pool->there_sum);
}

static bool is_due(const struct pool *pool)
{
    if (pool->order)
        return pool->ordered != pool->wanted_sum.all;
    return !pool->done || pool->ordered != pool->wanted_sum.all || is_spoilt(pool);
}

/* ---- looking ---- */

/* Its order is made only if the core may have it otherwise, or it is to be given: 100,000 devices
 * take some 75 ms. */
static void on_lifted(void *user, const struct devicemgr_lifted *lifted)
{
    struct pools *pools = user;
    char name[2 * KUBE_SUBDOMAIN_BYTES_MAX + 256];
    struct pool_order what;
    struct pool *pool;

    snprintf(name, sizeof name, "%s/%s", pools->node, lifted->pool);
    pool = add(pools, name);
    if (!pool)
        return;
    pool->wanted = true;
    if (!pool->resource)
        pool->resource = must(strdup(lifted->resource));
    if (pool->version == pools->version && !is_due(pool))
        return;
    pool_order_init(&what, pool->name, host_core(pools->host), lifted);
    pool->wanted_sum = what.sum;
    pool->version = pools->version;
    if (is_due(pool))
        give(pool, &what);
    pool_order_fini(&what);
}

/* All there are of our driver, as the cluster has them. */
static void look_there(struct pools *pools)
{
    const struct fact *fact = NULL;

    for (struct pool *pool = pools->by_name; pool; pool = pool->hh.next)
        pool->there_sum = (struct pool_sum){0};
    while ((fact = facts_next(pools->facts, fact))) {
        Agent__V1__Slice *slice = fact->kind == AGENT__V1__KIND__SLICE && fact->value
                                      ? agent__v1__slice__unpack(NULL, fact->len, fact->value)
                                      : NULL;
        struct pool *pool = slice && strcmp(slice->driver, DEVICEMGR_LIFT_DRIVER) == 0
                                ? add(pools, slice->pool)
                                : NULL;

        if (pool)
            pool_sum_add(&pool->there_sum, slice);
        agent__v1__slice__free_unpacked(slice, NULL);
    }
}

/* One that is not wanted: it is taken away if it is there, or may be, and forgotten then. */
static void drop(struct pool *pool)
{
    struct pool_order none;

    free(pool->resource);
    pool->resource = NULL;
    pool->version = 0;
    pool_order_init(&none, pool->name, NULL, NULL);
    pool->wanted_sum = none.sum;
    if (!pool->order && pool->done && pool->ordered == none.sum.all && !is_spoilt(pool))
        pool_free(pool);
    else if (is_due(pool))
        give(pool, &none);
    pool_order_fini(&none);
}

static void on_look(uv_timer_t *timer)
{
    struct pools *pools = timer->data;
    struct pool *pool, *next;

    pools->looked_ms = boot_now_ms();
    if (!host_ready(pools->host) || !*pools->node)
        return;
    pools->version = devicemgr_lifted_version(host_core(pools->host));
    look_there(pools);
    count_orders(pools);
    pools->owing = false;
    for (pool = pools->by_name; pool; pool = pool->hh.next)
        pool->wanted = false;
    devicemgr_lifted(host_core(pools->host), on_lifted, pools);
    for (pool = pools->by_name; pool; pool = next) {
        next = pool->hh.next;
        if (!pool->wanted)
            drop(pool);
    }
}

static void set_timer(struct pools *pools)
{
    if (!uv_is_active((uv_handle_t *)&pools->timer))
        uv_timer_start(&pools->timer, on_look, boot_left_ms(pools->looked_ms + CLUSTER_LOOK_MS), 0);
}

void pools_look(struct pools *pools)
{
    if (host_ready(pools->host) &&
        devicemgr_lifted_version(host_core(pools->host)) != pools->version)
        set_timer(pools);
}

static void told(struct pools *pools)
{
    pools->changes++;
    set_timer(pools);
}

void pools_reported(struct pools *pools, const Agent__V1__ReportRequest *report)
{
    bool slices = report->whole;

    for (size_t i = 0; !slices && i < report->n_facts; i++)
        slices = report->facts[i]->kind == AGENT__V1__KIND__SLICE;
    if (slices)
        told(pools);
}

void pools_complete(struct pools *pools, bool complete)
{
    if (complete && !pools->complete)
        told(pools);
    pools->complete = complete;
}

void pools_answered(struct pools *pools)
{
    if (pools->owing)
        set_timer(pools);
}

/* ---- telling ---- */

void pools_each(const struct pools *pools, void (*each)(void *to, const struct pools_pool *pool),
                void *to)
{
    for (const struct pool *pool = pools->by_name; pool; pool = pool->hh.next) {
        if (!pool->resource)
            continue;
        each(to, &(struct pools_pool){.resource = pool->resource,
                                      .name = pool->name,
                                      .devices = pool->devices,
                                      .left_out = pool->left_out,
                                      .there = pool->order == 0 && !is_due(pool),
                                      .order = pool->order});
    }
}

/* ---- life ---- */

void pools_init(struct pools *pools, uv_loop_t *loop, struct host *host,
                struct cluster_orders *orders, void *cluster, const struct facts *facts,
                const char *node)
{
    *pools = (struct pools){
        .host = host, .orders = orders, .cluster = cluster, .facts = facts, .node = node};
    uv_timer_init(loop, &pools->timer);
    pools->timer.data = pools;
}

void pools_fini(struct pools *pools, uv_close_cb closed)
{
    while (pools->by_name)
        pool_free(pools->by_name);
    uv_close((uv_handle_t *)&pools->timer, closed);
}
