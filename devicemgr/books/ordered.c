#include "devicemgr/books/ordered.h"

#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"

void ordered_changed(struct state *state, const char *resource)
{
    state->tainted.changes++;
    state->tainted.ends_ms = 0;
    showing_offer_changed(state, resource);
    wake_resource(&state->wakes, resource);
}

/* What is published as a DRA driver's has it from then on (rules/lifted.c). */
static bool is_published(const struct state *state, const struct order *order)
{
    return order->kind == ORDER_TAINT && order->effect == TAINT_NO_EXECUTE &&
           state_settings_of(state, order->resource)->dra;
}

void ordered_committed(struct state *state, struct order *order, bool durable)
{
    if (durable && is_published(state, order))
        showing_offer_changed(state, order->resource);
    if (durable == (order->state == ORDER_ENDING)) /* else it is in force as it was */
        ordered_changed(state, order->resource);
    if (durable)
        orders_confirm(&state->orders, order);
    else
        orders_revert(&state->orders, order);
}

static void drop(struct state *state, struct order *order)
{
    dirty_touch_order(state, order);
    orders_remove(&state->orders, order);
}

void ordered_restored(struct state *state)
{
    struct order *order, *next;

    HASH_ITER(hh, state->orders.by_key, order, next) {
        if (order->kind == ORDER_GRACE && !resources_find(state->resources, order->resource))
            drop(state, order);
        else if (order->anew)
            dirty_touch_order(state, order); /* once in a boot, not with each restart in it */
    }
}

const struct order_words *ordered_grace(const struct state *state, const char *resource)
{
    const struct order *order = orders_find(&state->orders, ORDER_GRACE, resource, "");

    if (order && order->words.over && order->state == ORDER_SETTING)
        return order->before; /* nobody could take it back */
    return order ? &order->words : NULL;
}

uint64_t ordered_grace_ms(const struct state *state, const struct resource *resource)
{
    const struct order_words *words = ordered_grace(state, resource->name);
    const struct endpoint *endpoint = &resource->endpoint;
    uint64_t grace_ms = state_settings_of(state, resource->name)->grace_ms;

    if (words && words->over)
        return 0;
    if (endpoint->stopped)
        grace_ms = later_by(grace_ms, kubelet_away_ms(state, resource) - endpoint->stopped_ms);
    return words ? later_by(grace_ms, words->more_ms) : grace_ms;
}

void ordered_grace_over(struct state *state, const char *resource)
{
    struct order *order = orders_edit(&state->orders, ORDER_GRACE, resource, "");

    if (order)
        drop(state, order);
}
