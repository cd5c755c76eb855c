/*
 * Towards the plugins: the life of their endpoints, and their lists.
 */
#include "devicemgr/machines/plugin.h"

#include <string.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/ordered.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"
#include "devicemgr/words/reason.h"

static struct resource *find_by_endpoint(struct state *state, uint64_t endpoint)
{
    for (struct resource *r = state->resources; r; r = r->hh.next) {
        if (!r->builtin && r->endpoint.number == endpoint)
            return r;
    }
    return NULL;
}

/* The stop time goes into the checkpoint with what else does. */
static void store_stop(struct state *state, struct resource *resource)
{
    endpoint_set_stop_stored(&resource->endpoint, true);
    dirty_touch_resource(state, resource->name, true);
}

/* ---- two names at one socket: a plugin may have both, or has changed from one to another ---- */

/* Whether the plugins of these two resources were dialled at the same socket last; `other`'s
 * was dialled. */
static bool share_socket(const struct resource *one, const struct resource *other)
{
    const char *socket_name = one->endpoint.socket_name;

    return one != other && socket_name && socket_name[0] != '\0' &&
           strcmp(socket_name, other->endpoint.socket_name) == 0;
}

/* Whether there is another with its socket that was registered behind `number`; 0: or never was, in
 * this process. If that is the resource's last connection, the plugin that listens there now serves
 * the other one, and would list its devices for this one as well. */
static bool is_anothers(const struct state *state, const struct resource *resource, uint64_t number)
{
    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if (share_socket(r, resource) && (number == 0 || r->generation > number))
            return true;
    }
    return false;
}

/* The resource was registered just now: what the shim dialled at its socket by itself, for another,
 * is over. */
static void end_other_names(struct state *state, const struct resource *resource)
{
    struct text reason = {0};
    struct resource *r, *next;

    text_add(&reason, "what listens there registered resource %s since", resource->name);
    HASH_ITER(hh, state->resources, r, next) {
        const struct endpoint *endpoint = &r->endpoint;

        if (!share_socket(r, resource))
            continue;
        if (endpoint->number && endpoint->origin != ENDPOINT_REGISTERED) {
            action_push(&state->actions, ACTION_ENDPOINT_CLOSE, endpoint->number);
            plugin_take_loss(state, endpoint->number, reason.buf);
        } else if (endpoint->state == ENDPOINT_GRACE && !endpoint->stop_stored) {
            store_stop(state, r);
        }
    }
}

/* ---- the connection ---- */

void plugin_take_options(struct state *state, uint64_t number,
                         const V1beta1__DevicePluginOptions *options)
{
    struct resource *resource = find_by_endpoint(state, number);
    struct endpoint *endpoint;
    struct text none = {0};

    if (!resource)
        return;
    endpoint = &resource->endpoint;
    if (endpoint->socket_good && /* else its first list is worth a row */
        (endpoint->pre_start != options->pre_start_required ||
         endpoint->has_preference != options->get_preferred_allocation_available))
        dirty_touch_resource(state, resource->name, false);
    endpoint_set_options(endpoint, options->pre_start_required,
                         options->get_preferred_allocation_available);
    if (endpoint->origin == ENDPOINT_REGISTERED) {
        resource_set_generation(resource, state_number(state));
        happened_to_resource(state, DEVICEMGR_EVENT_REGISTERED, false, resource->name,
                             endpoint->socket_name);
    }
    plugin_answer(state, endpoint, CODE_OK, &none);
    if (endpoint->origin == ENDPOINT_REGISTERED)
        end_other_names(state, resource);
}

/* When what is untold of its lists may be logged, now or later; UINT64_MAX: nothing is. */
static uint64_t untold_ms(const struct resource *resource, uint64_t now_ms)
{
    const struct lists_untold *untold = &resource->untold;

    if (untold->lists == 0)
        return UINT64_MAX;
    return paced_ms(untold->paid_ms, now_ms, LISTS_TOLD_AT_ONCE, LIST_TOLD_EVERY_MS);
}

static void add_untold(struct lists_untold *untold, const struct devices_change *change)
{
    untold->lists++;
    untold->change.added += change->added;
    untold->change.removed += change->removed;
    untold->change.health += change->health;
    untold->change.topology += change->topology;
    untold->change.dropped = change->dropped;
    untold->change.nodes = change->nodes;
}

static void log_lists(struct state *state, struct resource *resource, bool activated)
{
    struct lists_untold *untold = &resource->untold;
    const struct devices_change *change = &untold->change;
    struct text text = {0};

    text_add(&text, "resource %s: ", resource->name);
    if (activated) {
        text_add(&text, "plugin endpoint \"");
        text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(&text, "\" is active: ");
    }
    text_add(&text, "%zu of %zu devices healthy", resource->devices.healthy, resource->devices.len);
    text_add(&text, " (%zu added, %zu removed, %zu changed", change->added, change->removed,
             change->health + change->topology);
    if (untold->lists > 1)
        text_add(&text, " by %zu lists", untold->lists);
    text_add(&text, ")");
    if (change->dropped > 0)
        text_add(&text, "; %zu list entries without an id in UTF-8, or repeated, count for nothing",
                 change->dropped);
    if (change->nodes > 0)
        text_add(&text,
                 "; %zu NUMA nodes that are repeated, or not from 0 to %d, count for nothing",
                 change->nodes, NUMA_NODES_MAX - 1);
    state_log_about(state, change->dropped + change->nodes > 0 ? LEVEL_WARNING : LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_LISTED, name_about_resource(resource->name)), &text);
    *untold = (struct lists_untold){
        .paid_ms =
            paced_paid_ms(untold->paid_ms, state->now_ms, LISTS_TOLD_AT_ONCE, LIST_TOLD_EVERY_MS),
    };
}

void plugin_log_list(struct state *state, struct resource *resource, bool activated,
                     const struct devices_change *change)
{
    add_untold(&resource->untold, change);
    if (activated || untold_ms(resource, state->now_ms) <= state->now_ms)
        log_lists(state, resource, activated);
}

/* Whether the devices of all plugins fit, with this list in the place of the resource's. */
static bool list_fits(const struct state *state, const struct resource *resource,
                      const V1beta1__ListAndWatchResponse *list)
{
    size_t bytes = 0;

    for (const struct resource *r = state->resources; r; r = r->hh.next)
        bytes += r == resource ? 0 : r->devices.bytes;
    for (size_t i = 0; i < list->n_devices && bytes <= DEVICES_BYTES_MAX; i++) {
        const V1beta1__Device *device = list->devices[i];

        bytes += devices_bytes_of(device->id, device->topology ? device->topology->n_nodes : 0);
    }
    return bytes <= DEVICES_BYTES_MAX;
}

/* As if the connection were lost: what it listed before stays for its grace period. */
static void refuse_list(struct state *state, uint64_t number)
{
    struct text reason = {0};

    text_add(&reason, "with its list the devices of all plugins would take over %zu MiB",
             DEVICES_BYTES_MAX / (1024 * 1024));
    action_push(&state->actions, ACTION_ENDPOINT_CLOSE, number);
    plugin_take_loss(state, number, reason.buf);
}

void plugin_take_list(struct state *state, uint64_t number,
                      const V1beta1__ListAndWatchResponse *list)
{
    struct resource *resource = find_by_endpoint(state, number);
    bool first, activated, new_socket, changed;
    struct devices_change change;
    struct endpoint *endpoint;

    if (!resource || !resource->endpoint.have_options)
        return;
    if (!list_fits(state, resource, list)) {
        refuse_list(state, number);
        return;
    }
    endpoint = &resource->endpoint;
    first = !endpoint->socket_good;
    activated = endpoint->state != ENDPOINT_ACTIVE;
    new_socket = first || strcmp(endpoint->socket_good, endpoint->socket_name) != 0 ||
                 endpoint->uid_good != endpoint->uid;
    changed = resource_list(resource, state->now_ms, list, &change);
    if (activated) {
        if (endpoint->stopped) /* after a restart: perhaps for others only */
            happened_to_resource(state, DEVICEMGR_EVENT_BACK, !endpoint->listed, resource->name,
                                 NULL);
        endpoint_set_state(endpoint, state->now_ms, ENDPOINT_ACTIVE);
        capacity_published(state, resource->name);
        ordered_grace_over(state, resource->name);
    }
    if (first)
        outbox_put(&state->outbox, OUTBOX_RESOURCE_SERVED, 0, resource->name);
    if (endpoint->stop_stored) {
        endpoint_set_stop_stored(endpoint, false);
        dirty_touch_resource(state, resource->name, true);
    }
    if (!changed && !activated)
        return;
    /* Not for health alone, which after a restart is asked for anew: the row has all devices. */
    if (new_socket || change.added + change.removed + change.topology > 0)
        dirty_touch_resource(state, resource->name,
                             new_socket || change.added + change.removed > 0);
    plugin_log_list(state, resource, activated, &change);
    wake_resource(&state->wakes, resource->name);
}

/* It counts as away from now on, if it did not before. */
static void stop(struct state *state, struct resource *resource, const char *reason)
{
    if (!resource->endpoint.stopped)
        happened_to_resource(state, DEVICEMGR_EVENT_LOST, false, resource->name, reason);
    endpoint_stop(&resource->endpoint, state->now_ms, reason);
}

void plugin_remove(struct state *state, struct resource *resource)
{
    plugin_hang_up(state, &resource->endpoint);
    endpoint_set_state(&resource->endpoint, state->now_ms, ENDPOINT_GONE);
    ordered_grace_over(state, resource->name);
    if (resource->endpoint.socket_good) { /* else it never had a row */
        dirty_touch_resource(state, resource->name, true);
        capacity_removed(state, resource->name);
    }
    wake_resource(&state->wakes, resource->name);
    resources_remove(&state->resources, resource);
}

static void log_lost(struct state *state, const struct resource *resource, const char *reason,
                     bool redial)
{
    uint64_t ends_ms = later_by(resource->endpoint.stopped_ms, ordered_grace_ms(state, resource));
    struct text text = {0};

    text_add(&text, "resource %s: plugin endpoint \"", resource->name);
    text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, "\" lost (");
    text_add_words(&text, reason, TEXT_WORDS_BYTES_MAX);
    if (redial) {
        text_add(&text, "), dialled once more");
    } else if (resource->endpoint.socket_good) {
        text_add(&text, "), its devices are unhealthy; stop grace period ends in ");
        text_add_duration(&text, time_left(state->now_ms, ends_ms));
    } else {
        text_add(&text, ") before it listed any device");
    }
    state_log_about(state, LEVEL_WARNING,
                    name_line(DEVICEMGR_LINE_AWAY, name_about_resource(resource->name)), &text);
}

void plugin_take_loss(struct state *state, uint64_t number, const char *reason)
{
    struct resource *resource = find_by_endpoint(state, number);
    struct endpoint *endpoint;
    bool renamed, redial;

    if (!resource)
        return;
    endpoint = &resource->endpoint;
    outbox_put(&state->outbox, OUTBOX_ENDPOINT_ENDED, number, NULL);
    endpoint_set_disconnected(endpoint);
    plugin_answer_failed(state, endpoint, reason);
    renamed = is_anothers(state, resource, number);
    redial = !renamed && endpoint_may_redial(endpoint, state->now_ms);
    stop(state, resource, reason);
    if (resource->untold.lists > 0)
        log_lists(state, resource, false);
    log_lost(state, resource, reason, redial);
    wake_resource(&state->wakes, resource->name);
    if (renamed && endpoint->socket_good)
        store_stop(state, resource); /* so that the next shim does not dial it either */
    if (redial)
        plugin_dial(state, resource, ENDPOINT_REDIALLED, endpoint->socket_good, endpoint->uid_good);
    else if (endpoint->socket_good)
        endpoint_set_state(endpoint, state->now_ms, ENDPOINT_GRACE);
    else if (!endpoint->put_off.socket_name)
        plugin_remove(state, resource);
}

/* ---- time ---- */

static void log_removed(struct state *state, const struct resource *resource)
{
    const struct order_words *order = ordered_grace(state, resource->name);
    struct text text = {0};

    text_add(&text, "resource %s: ", resource->name);
    reason_explain_endpoint(&resource->endpoint, state->now_ms, ordered_grace_ms(state, resource),
                            &text);
    state_log_about(state, LEVEL_WARNING, name_about_resource(resource->name), &text);
    text = (struct text){0};
    if (order && order->over) {
        text_add(&text, "resource %s: removed, its grace period was ended by the operator",
                 resource->name);
    } else {
        text_add(&text, "resource %s: removed, its plugin has not come back within ",
                 resource->name);
        text_add_duration(&text, ordered_grace_ms(state, resource));
    }
    state_log_about(state, LEVEL_WARNING,
                    name_line(DEVICEMGR_LINE_REMOVED, name_about_resource(resource->name)), &text);
}

/* UINT64_MAX: no dial waits. */
static uint64_t next_dial_ms(const struct state *state, const struct endpoint *endpoint)
{
    return endpoint->put_off.socket_name ? endpoint_dial_ms(endpoint, state->now_ms) : UINT64_MAX;
}

/* Connected, and no list: its grace period begins, though a list would still be welcome. */
static void stop_unlisted(struct state *state, struct resource *resource)
{
    struct text reason = {0}, text = {0};

    text_add(&reason, "no device list within ");
    text_add_duration(&reason, FIRST_LIST_MS);
    stop(state, resource, reason.buf);
    text_add(&text, "resource %s: ", resource->name);
    reason_explain_endpoint(&resource->endpoint, state->now_ms, ordered_grace_ms(state, resource),
                            &text);
    state_log_about(state, LEVEL_WARNING,
                    name_line(DEVICEMGR_LINE_AWAY, name_about_resource(resource->name)), &text);
}

/* The resource is removed; its plugin, which has registered only just now, is a new one's. */
static void begin_anew(struct state *state, struct resource *resource)
{
    char *name = mem_strdup(resource->name);
    uint64_t generation = resource->generation;
    struct endpoint endpoint;
    struct text text = {0};

    endpoint_move(&resource->endpoint, &endpoint);
    plugin_remove(state, resource);
    resource = resources_add(&state->resources, name);
    resource->endpoint = endpoint;
    resource_set_generation(resource, generation);
    text_add(&text, "resource %s: its plugin registered ", name);
    text_add_duration(&text, state->now_ms - endpoint.since_ms);
    text_add(&text, " ago, and is waited for as a new one");
    state_log_about(state, LEVEL_INFO, name_about_resource(name), &text);
    free(name);
}

static void endpoint_tick(struct state *state, struct resource *resource)
{
    struct endpoint *endpoint = &resource->endpoint;

    if (next_dial_ms(state, endpoint) <= state->now_ms)
        registration_dial_waiting(state, resource);
    if (endpoint_unlisted_ms(endpoint) <= state->now_ms)
        stop_unlisted(state, resource);
    if (endpoint_store_ms(endpoint) <= state->now_ms)
        store_stop(state, resource);
    if (endpoint_end_ms(endpoint, ordered_grace_ms(state, resource)) <= state->now_ms) {
        log_removed(state, resource);
        happened_to_resource(state, DEVICEMGR_EVENT_REMOVED, false, resource->name, NULL);
        if (endpoint_may_list(endpoint, state->now_ms)) {
            begin_anew(state, resource);
        } else {
            plugin_answer_failed(state, endpoint, "no answer");
            plugin_remove(state, resource);
        }
    }
}

void plugin_tick(struct state *state)
{
    struct resource *resource, *next;

    HASH_ITER(hh, state->resources, resource, next) {
        if (untold_ms(resource, state->now_ms) <= state->now_ms)
            log_lists(state, resource, false);
        if (!resource->builtin)
            endpoint_tick(state, resource);
    }
}

uint64_t plugin_next_ms(const struct state *state)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        next_ms = earlier(next_ms, untold_ms(r, state->now_ms));
        if (r->builtin)
            continue;
        next_ms = earlier(next_ms, endpoint_end_ms(&r->endpoint, ordered_grace_ms(state, r)));
        next_ms = earlier(next_ms, endpoint_store_ms(&r->endpoint));
        next_ms = earlier(next_ms, endpoint_unlisted_ms(&r->endpoint));
        next_ms = earlier(next_ms, next_dial_ms(state, &r->endpoint));
    }
    return next_ms;
}

void plugin_restored(struct state *state)
{
    for (struct resource *r = state->resources; r; r = r->hh.next) {
        bool renamed = r->endpoint.stopped && is_anothers(state, r, 0);

        endpoint_stop(&r->endpoint, state->now_ms, "the shim, or the node, was restarted");
        endpoint_set_state(&r->endpoint, state->now_ms, ENDPOINT_GRACE);
        if (r->endpoint.socket_good[0] != '\0' && !renamed)
            plugin_dial(state, r, ENDPOINT_RESTORED, r->endpoint.socket_good, r->endpoint.uid_good);
    }
}
