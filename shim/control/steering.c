#include "shim/control/steering.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

#include "devicemgr/operator.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/must.h"

/* One that the core has not answered yet. */
struct pending {
    struct steering *steering;
    uint64_t number;
    struct rpc_incoming *call;
    struct pending *prev, *next;
};

struct steering {
    struct host *host;
    uint64_t last_number;
    struct pending *pending;
};

struct steering *steering_new(struct host *host)
{
    struct steering *steering = must(calloc(1, sizeof *steering));

    steering->host = host;
    return steering;
}

static void forget(struct pending *pending)
{
    DL_DELETE(pending->steering->pending, pending);
    free(pending);
}

void steering_free(struct steering *steering)
{
    struct pending *pending, *next;

    DL_FOREACH_SAFE(steering->pending, pending, next)
    {
        forget(pending);
    }
    free(steering);
}

/* ---- changing ---- */

static void on_cancelled(void *user)
{
    forget(user);
}

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
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

void steering_call(struct steering *steering, struct rpc_incoming *call,
                   const Control__V1__SteerRequest *request)
{
    struct pending *pending;

    if (request->what > CONTROL__V1__STEER_REQUEST__WHAT__GRACE_END) {
        rpc_incoming_finish(call, RPC_UNIMPLEMENTED, "of another release");
        return;
    }
    pending = must(calloc(1, sizeof *pending));
    pending->steering = steering;
    pending->number = ++steering->last_number;
    pending->call = call;
    DL_APPEND(steering->pending, pending);
    rpc_incoming_on_cancel(call, on_cancelled, pending);
    ask(steering, pending->number, request);
    host_kick(steering->host);
}

void steering_done(struct steering *steering, uint64_t number,
                   const struct devicemgr_steered *steered)
{
    Control__V1__SteerResponse response = CONTROL__V1__STEER_RESPONSE__INIT;
    struct pending *pending = steering->pending;
    struct rpc_incoming *call;

    while (pending && pending->number != number)
        pending = pending->next;
    if (!pending)
        return; /* its client has gone */
    call = pending->call;
    forget(pending);
    response.text = (char *)(uintptr_t)steered->message;
    if (steered->code != RPC_OK)
        rpc_incoming_finish(call, steered->code, steered->message);
    else if (rpc_incoming_send(call, &response.base) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too much waits for this client already");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
}

/* ---- what is set ---- */

static void add_order(void *user, const struct devicemgr_order *order)
{
    static const char *const KINDS[] = {[DEVICEMGR_ORDER_CORDON] = "cordon",
                                        [DEVICEMGR_ORDER_WITHDRAWAL] = "withdrawal",
                                        [DEVICEMGR_ORDER_GRACE] = "grace"};
    Control__V1__OrdersResponse *response = user;
    Control__V1__Order *out;
    uint64_t now = now_s();

    if (response->n_orders == CONTROL_ORDERS_MAX) {
        response->more = true;
        return;
    }
    out = must(malloc(sizeof *out));
    control__v1__order__init(out);
    out->kind = must(strdup(KINDS[order->kind]));
    out->resource = must(strdup(order->resource));
    out->id = must(strdup(order->id));
    out->reason = must(strdup(order->reason));
    out->since_ms = order->at_s < now ? (now - order->at_s) * 1000 : 0;
    out->more_ms = order->more_ms;
    out->over = order->over;
    response->orders[response->n_orders++] = out;
}

void steering_orders(const struct steering *steering, struct rpc_incoming *call,
                     const Control__V1__OrdersRequest *request)
{
    Control__V1__OrdersResponse response = CONTROL__V1__ORDERS_RESPONSE__INIT;

    response.orders = must(calloc(CONTROL_ORDERS_MAX, sizeof *response.orders));
    devicemgr_orders(host_core(steering->host), request->resource[0] ? request->resource : NULL,
                     add_order, &response);
    if (rpc_incoming_send(call, &response.base) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too much waits for this client already");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
    for (size_t i = 0; i < response.n_orders; i++)
        control__v1__order__free_unpacked(response.orders[i], NULL);
    free(response.orders);
}
