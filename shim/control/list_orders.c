/*
 * The list of what an operator has set, as messages; and how much that is.
 */
#include "shim/control/list_orders.h"

#include <string.h>
#include <time.h>

#include "shim/control/limits.h"
#include "shim/control/told_id.h"

/* Protobuf-c's texts are not const; the messages here are only packed. */
static char *text(const char *words)
{
    return (char *)(uintptr_t)words;
}

uint64_t order_ago_ms(uint64_t at_s)
{
    uint64_t now_s = (uint64_t)time(NULL);

    return at_s < now_s ? (now_s - at_s) * 1000 : 0;
}

static void set_order(Control__V1__Order *out, const struct devicemgr_order *order)
{
    control__v1__order__init(out);
    out->kind = text(order->kind);
    out->resource = text(order->resource);
    out->id = text(order->id);
    out->reason = text(order->reason);
    out->since_ms = order_ago_ms(order->at_s);
    out->more_ms = order->more_ms;
    out->over = order->over;
}

/* ---- how much ---- */

static void set_newest(struct orders_count *counts, const struct devicemgr_order *order)
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
static bool count_order(void *user, const struct devicemgr_order *order)
{
    struct orders_count *counts = user;
    Control__V1__OrderCount *count = counts->len > 0 ? &counts->of[counts->len - 1] : NULL;
    uint64_t ago_ms = order_ago_ms(order->at_s);

    if (!count || strcmp(count->kind, order->kind) != 0) {
        count = &counts->of[counts->len++];
        control__v1__order_count__init(count);
        count->kind = text(order->kind);
    }
    if (!count->newest || ago_ms < count->newest->since_ms)
        set_newest(counts, order);
    count->count++;
    if (ago_ms > count->oldest_ms)
        count->oldest_ms = ago_ms;
    return true;
}

void orders_count(struct orders_count *counts, const struct devicemgr *core)
{
    const struct devicemgr_which all = {0};

    counts->len = 0;
    devicemgr_orders(core, &all, count_order, counts);
}

/* ---- which ---- */

struct orders {
    struct list *list;
    Control__V1__OrdersResponse *response;
};

static bool on_order(void *user, const struct devicemgr_order *is)
{
    struct orders *orders = user;
    Control__V1__OrdersResponse *response = orders->response;
    struct list *list = orders->list;
    Control__V1__Order *row = list_alloc(list, 1, sizeof *row);
    const char *key[DEVICEMGR_ORDER_KEY] = {is->kind, is->resource};

    set_order(row, is);
    row->id = list_id(list, is->id);
    list_text(list, is->resource);
    list_text(list, is->reason);
    key[2] = row->id;
    list_add(list, row, (void ***)&response->rows, &response->n_rows);
    return list_goes_on(list, key, DEVICEMGR_ORDER_KEY, &response->next, &response->n_next);
}

/* An id that was told cut, and the one it was of. */
struct looking {
    const char *told, *found;
};

static bool look(void *user, const struct devicemgr_order *order)
{
    struct looking *looking = user;

    if (told_id_is_of(looking->told, order->id))
        looking->found = order->id; /* the last of them */
    return true;
}

bool list_orders(struct list *list, const struct list_from *from,
                 const Control__V1__ListRequest *request)
{
    struct orders orders = {.list = list};
    const char *after[DEVICEMGR_ORDER_KEY];

    orders.response = list_begin(list, request, DEVICEMGR_ORDER_KEY, CONTROL_PAGE_ROWS_MAX,
                                 &control__v1__orders_response__descriptor);
    if (!orders.response)
        return false;
    if (list->which.after) {
        memcpy(after, list->which.after, sizeof after);
        list->which.after = after;
    }
    if (list->which.after && told_id_is_cut(after[2])) {
        const struct devicemgr_which which = {.resource = after[1]};
        struct looking looking = {.told = after[2]};

        devicemgr_orders(from->core, &which, look, &looking);
        after[2] = looking.found;
        if (!looking.found)
            return false;
    }
    devicemgr_orders(from->core, &list->which, on_order, &orders);
    return true;
}
