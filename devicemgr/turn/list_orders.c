/*
 * The list of what an operator has set.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

_Static_assert(DEVICEMGR_ORDER_KINDS == ORDER_KINDS, "who counts them has no room for all kinds");

/* By kinds in their own order, then by resource and id. */
static bool is_behind(const struct devicemgr_which *which, const struct order *order)
{
    const char *const key[] = {order->resource, order->id};
    enum order_kind kind;

    if (!which->after || !order_kind_find(which->after[0], &kind))
        return true;
    return order->kind > kind ||
           (order->kind == kind && meant_order(key, which->after + 1, DEVICEMGR_ORDER_KEY - 1) > 0);
}

static struct devicemgr_order row_of(const struct order *order)
{
    return (struct devicemgr_order){.kind = order_kind_name(order->kind),
                                    .resource = order->resource,
                                    .id = order->id,
                                    .reason = order->words.reason,
                                    .at_s = order->words.at_s,
                                    .more_ms = order->words.more_ms,
                                    .over = order->words.over};
}

void devicemgr_orders(const struct devicemgr *mgr, const struct devicemgr_which *which,
                      bool (*each)(void *user, const struct devicemgr_order *order), void *user)
{
    bool more = true;

    for (int kind = 0; more && kind < ORDER_KINDS; kind++) {
        size_t len;
        const struct order **orders =
            orders_sorted(&mgr->state.orders, (enum order_kind)kind, which->resource, &len);

        for (size_t i = 0; more && i < len; i++) {
            const struct devicemgr_order row = row_of(orders[i]);

            more = !is_behind(which, orders[i]) || each(user, &row);
        }
        free(orders);
    }
}
