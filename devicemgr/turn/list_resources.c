/*
 * The lists of resources, and of the plugins that serve them.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/books/ordered.h"
#include "devicemgr/lists.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/shown.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

static const char *const STATES[] = {[ENDPOINT_CONNECTING] = "connecting",
                                     [ENDPOINT_ACTIVE] = "active",
                                     [ENDPOINT_GRACE] = "grace",
                                     [ENDPOINT_GONE] = "gone"};

static bool is_meant(const struct devicemgr_which *which, const char *name)
{
    int order = which->after ? meant_order(&name, which->after, 1) : 1;

    return (!which->resource || strcmp(which->resource, name) == 0) &&
           (order > 0 || (order == 0 && which->again));
}

/* ---- resources ---- */

/* One that is mentioned, by `allocation`, or by `hold`: is this the first to say that it has it? */
static bool is_first(const struct state *state, const char *resource, const char *id,
                     const struct allocation *allocation, const struct kubelet_hold *hold)
{
    const struct owners *holders = allocations_holders(&state->allocations, resource, id);
    const struct owners *askers = allocations_askers(&state->allocations, resource, id);
    const struct owners *holds = kubelet_holders(state, resource, id);

    for (size_t i = 0; i < owners_len(holders); i++) {
        if (holders_keeps(state, holders->v[i]))
            return holders->v[i] == allocation;
    }
    for (size_t i = 0; i < owners_len(askers); i++) {
        const struct allocation *asker = askers->v[i];

        if (holders_keeps_asked(state, asker))
            return asker == allocation;
    }
    for (size_t i = 0; i < owners_len(holds); i++) {
        if (kubelet_hold_stands(state, holds->v[i]))
            return holds->v[i] == hold;
    }
    return false;
}

static void count(const struct state *state, const struct resource *resource, const struct ids *ids,
                  const struct allocation *allocation, const struct kubelet_hold *hold,
                  struct devicemgr_resource *row)
{
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (allocation && ids == &allocation->asked &&
            ids_contain_sorted(&allocation->ids, ids->v[i]))
            continue; /* it has it, too */
        if (!is_first(state, resource->name, ids->v[i], allocation, hold))
            continue;
        row->held++;
        if (row->exclusive && device && device->healthy &&
            !holders_nobody(state, resource->name, ids->v[i]))
            row->free--;
    }
}

/* Nobody new gets what is cordoned, tainted or withdrawn. */
static void count_kept_back(const struct state *state, const struct resource *resource,
                            struct devicemgr_resource *row)
{
    bool any = tainted_or_ordered(state, resource->name);

    for (size_t i = 0; any && i < resource->devices.len; i++) {
        const struct device *device = &resource->devices.items[i];

        if (!tainted_or_cordoned(state, resource->name, device->id))
            continue;
        if (device->healthy &&
            (!row->exclusive || holders_nobody(state, resource->name, device->id)))
            row->free--;
    }
    if (row->withdrawn)
        row->free = 0;
}

/* What is to be looked at. */
static size_t steps_of(const struct state *state, const struct resource *resource)
{
    size_t steps = tainted_or_ordered(state, resource->name) ? resource->devices.len : 0;

    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next)
        steps += strcmp(a->resource, resource->name) == 0 ? a->ids.len + a->asked.len : 0;
    for (const struct kubelet_hold *h = state->kubelet.holds; h; h = h->hh.next)
        steps += strcmp(h->resource, resource->name) == 0 ? h->ids.len : 0;
    return steps;
}

static void count_all(const struct state *state, const struct resource *resource,
                      struct devicemgr_resource *row)
{
    row->free = resource->devices.healthy;
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (strcmp(a->resource, resource->name) != 0)
            continue;
        count(state, resource, &a->ids, a, NULL, row);
        count(state, resource, &a->asked, a, NULL, row);
    }
    for (const struct kubelet_hold *h = state->kubelet.holds; h; h = h->hh.next) {
        if (strcmp(h->resource, resource->name) == 0)
            count(state, resource, &h->ids, NULL, h, row);
    }
    count_kept_back(state, resource, row);
    if (!resource_usable(resource))
        row->free = 0;
    shown_count(state, resource, &row->shown_devices, &row->shown_healthy);
}

static struct devicemgr_resource resource_row(const struct state *state,
                                              const struct resource *resource)
{
    const struct resource_orders *of = orders_of(&state->orders, resource->name);
    struct devicemgr_resource row = {
        .name = resource->name,
        .steps = steps_of(state, resource),
        .state = resource->builtin ? "builtin" : STATES[resource->endpoint.state],
        .exclusive = state_settings_of(state, resource->name)->exclusive,
        .devices = resource->devices.len,
        .healthy = resource->devices.healthy,
        .cordoned = of ? of->cordons : 0,
        .shown = resource->shown.version != 0};

    if (of && of->withdrawal) {
        row.withdrawn = of->withdrawal->words.reason;
        row.withdrawn_at_s = of->withdrawal->words.at_s;
    }
    row.uncounted = row.steps > RESOURCE_COUNT_MAX;
    if (!row.uncounted)
        count_all(state, resource, &row);
    return row;
}

void devicemgr_resources(const struct devicemgr *mgr, uint64_t now_ms,
                         const struct devicemgr_which *which,
                         bool (*each)(void *user, const struct devicemgr_resource *resource),
                         void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct ids names = {0};
    bool more = true;

    resources_names(state->resources, &names);
    for (size_t i = 0; more && i < names.len; i++) {
        struct devicemgr_resource row;

        if (!is_meant(which, names.v[i]))
            continue;
        row = resource_row(state, resources_find(state->resources, names.v[i]));
        more = each(user, &row);
    }
    ids_fini(&names);
    free(state);
}

/* ---- plugins ---- */

static struct devicemgr_plugin plugin_row(const struct state *state, const struct resource *r)
{
    const struct order_words *order = ordered_grace(state, r->name);
    const struct endpoint *endpoint = &r->endpoint;
    uint64_t now_ms = state->now_ms;
    uint64_t end_ms = endpoint_end_ms(endpoint, ordered_grace_ms(state, r));
    struct devicemgr_plugin row = {.resource = r->name,
                                   .socket = "",
                                   .state = STATES[endpoint->state],
                                   .since_ms_ago = ago(now_ms, endpoint->since_ms),
                                   .stopped = endpoint->stopped,
                                   .have_options = endpoint->have_options,
                                   .pre_start = endpoint->pre_start,
                                   .preferred = endpoint->has_preference};

    if (endpoint->socket_name)
        row.socket = endpoint->socket_name;
    else if (endpoint->socket_good)
        row.socket = endpoint->socket_good;
    if (!row.stopped)
        return row;
    row.stopped_ms_ago = ago(now_ms, endpoint->stopped_ms);
    row.error = endpoint->stop_reason;
    if (end_ms != UINT64_MAX && end_ms > now_ms)
        row.grace_left_ms = end_ms - now_ms;
    if (order)
        row.grace_more_ms = order->more_ms;
    return row;
}

void devicemgr_plugins(const struct devicemgr *mgr, uint64_t now_ms,
                       const struct devicemgr_which *which,
                       bool (*each)(void *user, const struct devicemgr_plugin *plugin), void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct ids names = {0};
    bool more = true;

    resources_names(state->resources, &names);
    for (size_t i = 0; more && i < names.len; i++) {
        const struct resource *resource = resources_find(state->resources, names.v[i]);
        struct devicemgr_plugin row;

        if (resource->builtin || !is_meant(which, names.v[i]))
            continue;
        row = plugin_row(state, resource);
        more = each(user, &row);
    }
    ids_fini(&names);
    free(state);
}
