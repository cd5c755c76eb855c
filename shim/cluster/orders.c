#include "shim/cluster/orders.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cri-proto/utf8.h"
#include "shim/boot_clock.h"
#include "shim/cluster/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/message.h"

enum order_state {
    ORDER_DUE,
    ORDER_SENT,
    ORDER_LATER,
};

struct cluster_order {
    TAILQ_ENTRY(cluster_order) entry;
    Agent__V1__Order *what;
    enum order_state state;
    bool for_ever;
    cluster_order_done *done;
    void *user;
    unsigned tries;
    unsigned unhurried;  /* so many tries are to fail before it is hurried (again) */
    uint64_t at_ms;      /* SENT, LATER: when it is due again */
    bool told;           /* that it was refused, which it was since it is here */
    char *trouble;       /* what was said of the last try; NULL: it has not failed */
    uint64_t trouble_ms; /* since the first that failed */
};

/* ---- time ---- */

uint64_t cluster_orders_wait_ms(unsigned tries)
{
    uint64_t wait_ms = CLUSTER_AGAIN_MS_MIN;

    while (tries-- > 1 && wait_ms < CLUSTER_AGAIN_MS_MAX)
        wait_ms *= 2;
    return wait_ms < CLUSTER_AGAIN_MS_MAX ? wait_ms : CLUSTER_AGAIN_MS_MAX;
}

static uint64_t spread(uint64_t wait_ms)
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        number = 0;
    return wait_ms + number % (wait_ms / 5 + 1);
}

static void on_time(uv_timer_t *timer);

static void set_timer(struct cluster_orders *orders)
{
    uint64_t now_ms = boot_now_ms(), next_ms = UINT64_MAX;
    const struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        uint64_t at_ms = order->state == ORDER_DUE ? now_ms : order->at_ms;

        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    if (next_ms == UINT64_MAX)
        uv_timer_stop(&orders->timer);
    else
        uv_timer_start(&orders->timer, on_time, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

/* Without an agent those that are due wait until there is one, and no timer runs for them. */
static void on_time(uv_timer_t *timer)
{
    struct cluster_orders *orders = timer->data;
    uint64_t now_ms = boot_now_ms();
    struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (order->state != ORDER_DUE && order->at_ms <= now_ms)
            order->state = ORDER_DUE;
    }
    orders->due(orders->user);
}

static void set_later(struct cluster_orders *orders, struct cluster_order *order, uint64_t wait_ms)
{
    assert(order->state == ORDER_SENT);
    order->state = ORDER_LATER;
    order->at_ms = boot_now_ms() + wait_ms;
    set_timer(orders);
}

/* What would wait for minutes does not; each second try at most, however often there is reason to:
 * what comes and goes is not to be asked for the more. */
static void hurry(struct cluster_order *order, uint64_t now_ms)
{
    if (order->state != ORDER_LATER || order->unhurried > 0 ||
        order->at_ms <= now_ms + 2 * CLUSTER_BACK_MS)
        return;
    order->at_ms = now_ms + spread(CLUSTER_BACK_MS);
    order->unhurried = 2;
}

/* ---- orders ---- */

static struct cluster_order *find(const struct cluster_orders *orders, uint64_t id)
{
    struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (order->what->id == id)
            return order;
    }
    return NULL;
}

static void order_free(struct cluster_orders *orders, struct cluster_order *order)
{
    TAILQ_REMOVE(&orders->all, order, entry);
    orders->len--;
    agent__v1__order__free_unpacked(order->what, NULL);
    free(order->trouble);
    free(order);
}

uint64_t cluster_orders_add(struct cluster_orders *orders, const Agent__V1__Order *what,
                            bool for_ever, cluster_order_done *done, void *user)
{
    struct cluster_order *order;

    if (orders->len == CLUSTER_ORDERS_MAX)
        return 0;
    order = must(calloc(1, sizeof *order));
    order->what = (Agent__V1__Order *)must(message_copy(&what->base));
    order->what->id = ++orders->last_id;
    order->for_ever = for_ever;
    order->done = done;
    order->user = user;
    TAILQ_INSERT_TAIL(&orders->all, order, entry);
    orders->len++;
    set_timer(orders);
    return order->what->id;
}

uint64_t cluster_orders_change(struct cluster_orders *orders, uint64_t id,
                               const Agent__V1__Order *what)
{
    struct cluster_order *order = find(orders, id);

    if (!order || order->state == ORDER_SENT)
        return 0;
    agent__v1__order__free_unpacked(order->what, NULL);
    order->what = (Agent__V1__Order *)must(message_copy(&what->base));
    order->what->id = ++orders->last_id;
    hurry(order, boot_now_ms());
    set_timer(orders);
    return order->what->id;
}

bool cluster_orders_cancel(struct cluster_orders *orders, uint64_t id)
{
    struct cluster_order *order = find(orders, id);
    bool sent = order && order->state == ORDER_SENT;

    if (order)
        order_free(orders, order);
    set_timer(orders);
    return sent;
}

size_t cluster_orders_fill(struct cluster_orders *orders, Agent__V1__Order **out, size_t max)
{
    uint64_t now_ms = boot_now_ms();
    struct cluster_order *order;
    size_t n = 0, bytes = 0;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (order->state != ORDER_DUE || n == max)
            continue;
        bytes += agent__v1__order__get_packed_size(order->what);
        if (n > 0 && bytes > CLUSTER_BATCH_BYTES_MAX)
            break;
        order->state = ORDER_SENT;
        order->at_ms = now_ms + CLUSTER_ANSWER_MS;
        out[n++] = order->what;
    }
    set_timer(orders);
    return n;
}

static void refused(struct cluster_order *order, const Agent__V1__AnswerRequest *answer)
{
    if (!order->told)
        log_warning("cluster: order %llu is refused: %s; it is tried on",
                    (unsigned long long)answer->id, answer->message);
    order->told = true;
}

static void set_trouble(struct cluster_order *order, const char *words)
{
    if (!order->trouble)
        order->trouble_ms = boot_now_ms();
    free(order->trouble);
    order->trouble = must(malloc(CLUSTER_TROUBLE_BYTES_MAX + 1));
    utf8_copy(order->trouble, CLUSTER_TROUBLE_BYTES_MAX + 1, words);
}

bool cluster_orders_answered(struct cluster_orders *orders, const Agent__V1__AnswerRequest *answer)
{
    struct cluster_order *order = find(orders, answer->id);
    bool is_refused = answer->outcome == AGENT__V1__OUTCOME__REFUSED;
    uint64_t wait_ms, at_least_ms = answer->retry_after_ms;
    cluster_order_done *done;
    void *user;

    if (!order || order->state != ORDER_SENT)
        return false;
    if (answer->outcome == AGENT__V1__OUTCOME__DONE || (is_refused && !order->for_ever)) {
        done = order->done;
        user = order->user;
        order_free(orders, order);
        set_timer(orders);
        done(user, answer);
        return true;
    }
    if (is_refused)
        refused(order, answer);
    set_trouble(order, answer->message);
    order->tries++;
    order->unhurried -= order->unhurried > 0;
    wait_ms = is_refused ? CLUSTER_AGAIN_MS_MAX : cluster_orders_wait_ms(order->tries);
    if (at_least_ms > CLUSTER_AGAIN_MS_MAX)
        at_least_ms = CLUSTER_AGAIN_MS_MAX;
    set_later(orders, order, spread(wait_ms > at_least_ms ? wait_ms : at_least_ms));
    return true;
}

bool cluster_orders_refused(const struct cluster_orders *orders, Agent__V1__Order__WhatCase what)
{
    const struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (order->told && order->what->what_case == what)
            return true;
    }
    return false;
}

bool cluster_orders_trouble(const struct cluster_orders *orders, uint64_t id,
                            struct cluster_trouble *out)
{
    const struct cluster_order *order = find(orders, id);

    if (!order || !order->trouble)
        return false;
    *out = (struct cluster_trouble){
        .words = order->trouble, .since_ms = order->trouble_ms, .refused = order->told};
    return true;
}

void cluster_orders_lost(struct cluster_orders *orders)
{
    struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (order->state == ORDER_SENT || order->told)
            order->state = ORDER_DUE;
    }
    uv_timer_start(&orders->timer, on_time, 0, 0);
}

void cluster_orders_reached(struct cluster_orders *orders)
{
    uint64_t now_ms = boot_now_ms();
    struct cluster_order *order;

    TAILQ_FOREACH(order, &orders->all, entry) {
        if (!order->told)
            hurry(order, now_ms);
    }
    set_timer(orders);
}

/* ---- life ---- */

void cluster_orders_init(struct cluster_orders *orders, uv_loop_t *loop, void (*due)(void *user),
                         void *user)
{
    *orders = (struct cluster_orders){.due = due, .user = user};
    /* Its ids go on from those of the daemon before, which an agent remembers: no daemon gives one
     * in each microsecond. */
    orders->last_id = boot_now_ms() * 1000;
    TAILQ_INIT(&orders->all);
    uv_timer_init(loop, &orders->timer);
    orders->timer.data = orders;
}

void cluster_orders_fini(struct cluster_orders *orders, uv_close_cb closed)
{
    while (!TAILQ_EMPTY(&orders->all))
        order_free(orders, TAILQ_FIRST(&orders->all));
    uv_close((uv_handle_t *)&orders->timer, closed);
}
