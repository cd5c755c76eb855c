/*
 * What the shim's own parts (pools.h, lift_driver.h) have of it, in this world: the core's host,
 * the loop's timers, the table of orders (orders.h), the log, the clock.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/cluster/lift_driver.h"
#include "shim/cluster/pools.h"
#include "shim/log.h"
#include "tests/sim/heap.h"
#include "tests/sim/lift_world.h"

#define AGAIN_MS 1000

/* Its functions are given nothing by which to find it. */
static struct lift_world *world;

void lift_host_is(struct lift_world *h)
{
    world = h;
}

/* ---- the host ---- */

uint64_t boot_now_ms(void)
{
    return world->now_ms;
}

bool host_ready(const struct host *host)
{
    (void)host;
    return world->core;
}

struct devicemgr *host_core(struct host *host)
{
    (void)host;
    return world->core;
}

void host_kick(struct host *host)
{
    (void)host;
    world->kicked = true;
}

void log_write(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void log_write_about(enum log_level level, const struct log_about *about, const char *format, ...)
{
    (void)level;
    (void)about;
    (void)format;
}

/* ---- the loop ---- */

static struct lw_timer *timer_of(const uv_timer_t *handle)
{
    size_t i = 0;

    while (world->timers[i].handle != handle)
        i++;
    return &world->timers[i];
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *handle)
{
    size_t i = 0;

    (void)loop;
    while (world->timers[i].handle)
        i++;
    world->timers[i] = (struct lw_timer){.handle = handle, .due_ms = UINT64_MAX};
    return 0;
}

int uv_timer_start(uv_timer_t *handle, uv_timer_cb call, uint64_t timeout, uint64_t repeat)
{
    struct lw_timer *timer = timer_of(handle);

    (void)repeat;
    timer->call = call;
    timer->due_ms = world->now_ms + timeout;
    return 0;
}

int uv_timer_stop(uv_timer_t *handle)
{
    timer_of(handle)->due_ms = UINT64_MAX;
    return 0;
}

int uv_is_active(const uv_handle_t *handle)
{
    return timer_of((const uv_timer_t *)handle)->due_ms != UINT64_MAX;
}

void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    (void)closed;
    *timer_of((const uv_timer_t *)handle) = (struct lw_timer){0};
}

uint64_t lift_host_next_ms(const struct lift_world *h)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < sizeof h->timers / sizeof *h->timers; i++) {
        if (h->timers[i].handle && h->timers[i].due_ms < next_ms)
            next_ms = h->timers[i].due_ms;
    }
    return next_ms;
}

void lift_host_tick(struct lift_world *h)
{
    for (size_t i = 0; i < sizeof h->timers / sizeof *h->timers; i++) {
        struct lw_timer *timer = &h->timers[i];

        if (!timer->handle || timer->due_ms > h->now_ms)
            continue;
        timer->due_ms = UINT64_MAX;
        timer->call(timer->handle);
        lift_shim_run(h);
    }
}

/* ---- orders ---- */

static struct lw_order *find_order(uint64_t id)
{
    for (size_t i = 0; id && i < LW_ORDERS; i++) {
        if (world->orders[i].id == id)
            return &world->orders[i];
    }
    return NULL;
}

/* A copy, as the agent reads it. */
static void take(struct lw_order *order, const Agent__V1__Order *what)
{
    size_t len = agent__v1__order__get_packed_size(what);
    uint8_t *packed = heap_alloc(len + 1, 1);

    agent__v1__order__pack(what, packed);
    agent__v1__order__free_unpacked(order->what, NULL);
    order->what = agent__v1__order__unpack(NULL, len, packed);
    free(packed);
    order->id = ++world->number;
}

uint64_t cluster_orders_add(struct cluster_orders *orders, const Agent__V1__Order *what,
                            bool for_ever, cluster_order_done *done, void *user)
{
    struct lw_order *order = world->orders;

    (void)orders;
    while (order < world->orders + LW_ORDERS && order->id)
        order++;
    if (order == world->orders + LW_ORDERS)
        return 0;
    *order = (struct lw_order){.for_ever = for_ever, .done = done, .user = user};
    take(order, what);
    return order->id;
}

uint64_t cluster_orders_change(struct cluster_orders *orders, uint64_t id,
                               const Agent__V1__Order *what)
{
    struct lw_order *order = find_order(id);

    (void)orders;
    if (!order || order->state == LW_SENT)
        return 0;
    take(order, what);
    return order->id;
}

bool cluster_orders_trouble(const struct cluster_orders *orders, uint64_t id,
                            struct cluster_trouble *out)
{
    const struct lw_order *order = find_order(id);

    (void)orders;
    if (!order || !order->failed)
        return false;
    *out = (struct cluster_trouble){.words = "it failed"};
    return true;
}

void lift_order_reset(struct lw_order *order)
{
    if (order->listed)
        pool_slices_fini(&order->slices);
    order->listed = false;
    order->slices = (struct pool_slices){0};
    order->deleted = 0;
}

static void order_free(struct lw_order *order)
{
    lift_order_reset(order);
    agent__v1__order__free_unpacked(order->what, NULL);
    *order = (struct lw_order){0};
}

void lift_order_ends(struct lift_world *h, struct lw_order *order, Agent__V1__Outcome outcome,
                     const char *message, Agent__V1__Claim *claim)
{
    Agent__V1__AnswerRequest answer = AGENT__V1__ANSWER_REQUEST__INIT;
    const struct lw_order is = *order;

    lift_order_reset(order);
    if (outcome == AGENT__V1__OUTCOME__AGAIN ||
        (outcome == AGENT__V1__OUTCOME__REFUSED && order->for_ever)) {
        order->state = LW_LATER;
        order->due_ms = h->now_ms + AGAIN_MS;
        order->failed = true;
        lift_host_answered(h);
        return;
    }
    order->what = NULL; /* taken, below */
    order_free(order);
    answer.id = is.id;
    answer.outcome = outcome;
    answer.message = (char *)(uintptr_t)message;
    answer.claim = claim;
    is.done(is.user, &answer);
    agent__v1__order__free_unpacked(is.what, NULL);
    lift_host_answered(h);
    lift_shim_run(h);
}

/* As the driver takes one back. */
static void cancel(void *cluster, uint64_t id)
{
    struct lw_order *order = find_order(id);

    (void)cluster;
    if (order)
        order_free(order);
}

/* ---- the daemon's parts ---- */

struct lift_daemon {
    struct pools pools;
    struct lift_driver driver;
};

void lift_host_looks(struct lift_world *h)
{
    pools_look(&h->daemon->pools);
}

void lift_host_reported(struct lift_world *h, bool whole, bool slices)
{
    Agent__V1__ReportRequest report = AGENT__V1__REPORT_REQUEST__INIT;
    Agent__V1__Fact fact = AGENT__V1__FACT__INIT, *facts[] = {&fact};

    fact.kind = AGENT__V1__KIND__SLICE;
    report.whole = whole;
    report.facts = facts;
    report.n_facts = slices;
    pools_reported(&h->daemon->pools, &report);
}

void lift_host_answered(struct lift_world *h)
{
    pools_answered(&h->daemon->pools);
}

void lift_host_complete(struct lift_world *h, bool complete)
{
    pools_complete(&h->daemon->pools, complete);
}

void lift_host_prepare(struct lift_world *h, uint64_t call, const struct devicemgr_claim *claim,
                       uint64_t timeout_ms)
{
    lift_driver_prepare(&h->daemon->driver, call, claim, timeout_ms);
}

void lift_host_cancel(struct lift_world *h, uint64_t call)
{
    lift_driver_cancel(&h->daemon->driver, call);
}

void lift_host_starts(struct lift_world *h)
{
    h->daemon = heap_alloc(1, sizeof *h->daemon);
    pools_init(&h->daemon->pools, NULL, NULL, NULL, h, &h->facts, LW_NODE);
    lift_driver_init(&h->daemon->driver, NULL, NULL, NULL, cancel, h);
}

void lift_host_ends(struct lift_world *h)
{
    pools_fini(&h->daemon->pools, NULL);
    lift_driver_fini(&h->daemon->driver, NULL);
    free(h->daemon);
    for (size_t i = 0; i < LW_ORDERS; i++)
        order_free(&h->orders[i]);
    facts_fini(&h->facts);
    h->facts = (struct facts){0};
}
