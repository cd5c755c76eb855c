#include "shim/control/steering.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"
#include "shim/must.h"

#define SAID_BYTES_MAX (EVENTS_TEXT_BYTES_MAX + 1)

struct steering {
    struct host *host;
    struct events *events;
    struct asked_book *asked;
};

struct steering *steering_new(struct host *host, struct events *events, struct asked_book *asked)
{
    struct steering *steering = must(calloc(1, sizeof *steering));

    steering->host = host;
    steering->events = events;
    steering->asked = asked;
    return steering;
}

void steering_free(struct steering *steering)
{
    free(steering);
}

/* ---- changing ---- */

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
}

uint64_t steering_ago_ms(uint64_t at_s)
{
    uint64_t now = now_s();

    return at_s < now ? (now - at_s) * 1000 : 0;
}

static void ask(const struct steering *steering, uint64_t number,
                const Control__V1__SteerRequest *request)
{
    struct devicemgr *core = host_core(steering->host);
    const char *const *ids = (const char *const *)request->ids;
    uint64_t now_ms = boot_now_ms();

    switch (request->what) {
    case CONTROL__V1__STEER_REQUEST__WHAT__CORDON:
        devicemgr_cordon(core, now_ms, number, request->resource, ids, request->n_ids,
                         request->reason, now_s());
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__UNCORDON:
        devicemgr_uncordon(core, now_ms, number, request->resource, ids, request->n_ids);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW:
        devicemgr_withdraw(core, now_ms, number, request->resource, request->reason, now_s());
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW_UNDO:
        devicemgr_withdraw_undo(core, now_ms, number, request->resource);
        break;
    case CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND:
        devicemgr_grace_extend(core, now_ms, number, request->resource, request->more_ms, now_s());
        break;
    default:
        devicemgr_grace_end(core, now_ms, number, request->resource, now_s());
        break;
    }
}

/* Who did it, and why. */
static void say(struct steering *steering, const struct asked *asked)
{
    static const char *const KINDS[] = {
        [CONTROL__V1__STEER_REQUEST__WHAT__CORDON] = "cordoned",
        [CONTROL__V1__STEER_REQUEST__WHAT__UNCORDON] = "uncordoned",
        [CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW] = "withdrawn",
        [CONTROL__V1__STEER_REQUEST__WHAT__WITHDRAW_UNDO] = "given-back",
        [CONTROL__V1__STEER_REQUEST__WHAT__GRACE_EXTEND] = "grace-extended",
        [CONTROL__V1__STEER_REQUEST__WHAT__GRACE_END] = "grace-ended",
    };
    const Control__V1__SteerRequest *request = (const void *)asked->request;
    char text[SAID_BYTES_MAX];
    const struct event_said said = {.kind = KINDS[request->what],
                                    .resource = request->resource,
                                    .ids = (const char *const *)request->ids,
                                    .ids_len = request->n_ids,
                                    .ids_total = request->n_ids,
                                    .text = text};

    if (request->more_ms > 0)
        snprintf(text, sizeof text, "by uid %u: %" PRIu64 " s longer", asked->uid,
                 request->more_ms / 1000);
    else
        asked_by(asked, request->reason, text, sizeof text);
    events_say(steering->events, &said);
}

static void answer(struct rpc_incoming *call, const struct devicemgr_steered *steered)
{
    Control__V1__SteerResponse response = CONTROL__V1__STEER_RESPONSE__INIT;

    response.text = (char *)(uintptr_t)steered->message;
    if (steered->code != RPC_OK)
        rpc_incoming_finish(call, steered->code, steered->message);
    else
        rpc_incoming_answer(call, &response.base);
}

static void on_done(void *user, const struct asked *asked, const struct devicemgr_steered *steered)
{
    struct steering *steering = user;

    if (steered->changed)
        say(steering, asked);
    if (asked->call)
        answer(asked->call, steered);
}

void steering_call(struct steering *steering, struct rpc_incoming *call,
                   const Control__V1__SteerRequest *request)
{
    const struct asked *asked;

    if (request->what > CONTROL__V1__STEER_REQUEST__WHAT__GRACE_END) {
        rpc_incoming_finish(call, RPC_UNIMPLEMENTED, "of another release");
        return;
    }
    asked = asked_begin(steering->asked, call, &request->base, on_done, steering);
    if (!asked)
        return;
    ask(steering, asked->number, request);
    host_kick(steering->host);
}

/* ---- what is set ---- */

static const char *const ORDERS[STEERING_KINDS] = {[DEVICEMGR_ORDER_CORDON] = "cordon",
                                                   [DEVICEMGR_ORDER_WITHDRAWAL] = "withdrawal",
                                                   [DEVICEMGR_ORDER_GRACE] = "grace"};

/* Its texts are the core's. */
static void set_order(Control__V1__Order *out, const struct devicemgr_order *order)
{
    control__v1__order__init(out);
    out->kind = (char *)(uintptr_t)ORDERS[order->kind];
    out->resource = (char *)(uintptr_t)order->resource;
    out->id = (char *)(uintptr_t)order->id;
    out->reason = (char *)(uintptr_t)order->reason;
    out->since_ms = steering_ago_ms(order->at_s);
    out->more_ms = order->more_ms;
    out->over = order->over;
}

static void set_newest(struct steering_counts *counts, const struct devicemgr_order *order)
{
    size_t last = counts->len - 1;

    set_order(&counts->newest[last], order);
    if (told_id_is_cut(order->id)) {
        told_id_cut(order->id, counts->ids[last]);
        counts->newest[last].id = counts->ids[last];
    }
    counts->of[last].newest = &counts->newest[last];
}

/* Their kinds come one after the other. */
static void count_order(void *user, const struct devicemgr_order *order)
{
    struct steering_counts *counts = user;
    Control__V1__OrderCount *count = counts->len > 0 ? &counts->of[counts->len - 1] : NULL;
    uint64_t ago_ms = steering_ago_ms(order->at_s);

    if (!count || count->kind != ORDERS[order->kind]) {
        count = &counts->of[counts->len++];
        control__v1__order_count__init(count);
        count->kind = (char *)(uintptr_t)ORDERS[order->kind];
    }
    if (!count->newest || ago_ms < count->newest->since_ms)
        set_newest(counts, order);
    count->count++;
    if (ago_ms > count->oldest_ms)
        count->oldest_ms = ago_ms;
}

void steering_count(const struct devicemgr *core, struct steering_counts *counts)
{
    counts->len = 0;
    devicemgr_orders(core, NULL, count_order, counts);
}

/* The answer to Orders. */
struct orders {
    Control__V1__OrdersResponse response;
    struct list texts; /* its own, and how long they all are */
};

static void add_order(void *user, const struct devicemgr_order *order)
{
    struct orders *orders = user;
    Control__V1__OrdersResponse *response = &orders->response;
    Control__V1__Order *out;

    if (response->n_orders == CONTROL_ORDERS_MAX || orders->texts.bytes >= CONTROL_PAGE_BYTES_MAX) {
        response->more = true;
        return;
    }
    out = must(malloc(sizeof *out));
    set_order(out, order);
    out->id = list_id(&orders->texts, order->id);
    orders->texts.bytes += CONTROL_ROW_BYTES + strlen(order->resource) + strlen(order->reason);
    response->orders[response->n_orders++] = out;
}

void steering_orders(const struct steering *steering, struct rpc_incoming *call,
                     const Control__V1__OrdersRequest *request)
{
    struct orders orders = {.response = CONTROL__V1__ORDERS_RESPONSE__INIT};
    Control__V1__OrdersResponse *response = &orders.response;

    response->orders = must(calloc(CONTROL_ORDERS_MAX, sizeof *response->orders));
    devicemgr_orders(host_core(steering->host), request->resource[0] ? request->resource : NULL,
                     add_order, &orders);
    rpc_incoming_answer(call, &response->base);
    for (size_t i = 0; i < response->n_orders; i++)
        free(response->orders[i]);
    free(response->orders);
    list_fini(&orders.texts);
}
