/*
 * Towards the plugins: registration, the life of their endpoints, their lists.
 */
#include <string.h>

#include "cri-proto/methods.h"
#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/limits.h"
#include "cri-proto/resource_name.h"

#define KUBELET_SOCKET "kubelet.sock"

static uint64_t grace_of(const struct devicemgr *mgr, const struct resource *resource)
{
    return core_settings_of(mgr, resource->name)->grace_ms;
}

static struct resource *find_by_endpoint(const struct devicemgr *mgr, uint64_t endpoint)
{
    for (struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (!r->builtin && r->endpoint.number == endpoint)
            return r;
    }
    return NULL;
}

static void push_register_done(struct devicemgr *mgr, uint64_t registration, int code,
                               const struct text *text)
{
    struct action *action = action_push(&mgr->actions, ACTION_REGISTER_DONE, registration);

    action->code = code;
    action->text = text->len > 0 ? mem_strdup(text->buf) : NULL;
}

/* Answers the Register call that waits for this endpoint, if one does. */
static void answer_register(struct devicemgr *mgr, struct endpoint *endpoint, int code,
                            const struct text *text)
{
    if (!endpoint->registration)
        return;
    push_register_done(mgr, endpoint->registration, code, text);
    endpoint->registration = 0;
}

static void dial(struct devicemgr *mgr, struct resource *resource, enum endpoint_origin origin,
                 const char *socket_name)
{
    struct action *action;

    endpoint_dial(&resource->endpoint, mgr->now_ms, core_number(mgr), origin, socket_name);
    action = action_push(&mgr->actions, ACTION_ENDPOINT_OPEN, resource->endpoint.number);
    action->text = mem_strdup(resource->name);
    action->socket_name = mem_strdup(resource->endpoint.socket_name);
}

/* Answers both Register calls there may be: of the connection, and of the dial that waits. */
static void answer_registers(struct devicemgr *mgr, struct endpoint *endpoint, int code,
                             const struct text *text)
{
    answer_register(mgr, endpoint, code, text);
    if (endpoint->next_registration)
        push_register_done(mgr, endpoint->next_registration, code, text);
    endpoint->next_registration = 0;
}

/* Ends the connection from our side; creates that wait for an answer on it are held. */
static void hang_up(struct devicemgr *mgr, struct endpoint *endpoint)
{
    if (!endpoint->number)
        return;
    action_push(&mgr->actions, ACTION_ENDPOINT_CLOSE, endpoint->number);
    calls_drop(mgr, endpoint->number);
    endpoint->number = 0;
}

/* ---- Register ---- */

/* The kubelet's checks, in its order and words, then ours. 0, or the code of the refusal. */
static int check_register(const struct devicemgr *mgr, const char *version, const char *socket_name,
                          const char *name, struct text *text)
{
    const struct resource *resource = resources_find(mgr->resources, name);

    if (strcmp(version, DEVICEPLUGIN_VERSION) != 0) {
        text_add(text, "requested API version \"");
        text_add_words(text, version, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\" is not supported by kubelet. Supported version is [\"%s\"]",
                 DEVICEPLUGIN_VERSION);
        return CODE_UNKNOWN;
    }
    if (!resource_name_valid(name)) {
        text_add(text, "the ResourceName \"");
        text_add_words(text, name, TEXT_WORDS_BYTES_MAX);
        text_add(text, "\" is invalid");
        return CODE_UNKNOWN;
    }
    if (socket_name[0] == '\0' || strchr(socket_name, '/') || strcmp(socket_name, ".") == 0 ||
        strcmp(socket_name, "..") == 0 || strcmp(socket_name, KUBELET_SOCKET) == 0 ||
        strlen(socket_name) > SOCKET_NAME_BYTES_MAX) {
        text_add(text, "the endpoint \"");
        text_add_words(text, socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(text,
                 "\" is not the name of a socket in the plugin directory: expected 1 to %d "
                 "characters without '/', not \".\", \"..\" or \"%s\"",
                 SOCKET_NAME_BYTES_MAX, KUBELET_SOCKET);
        return CODE_INVALID_ARGUMENT;
    }
    if (resource && resource->builtin) {
        text_add(text, "resource %s is a built-in device of this node's configuration", name);
        return CODE_INVALID_ARGUMENT;
    }
    if (!resource && HASH_COUNT(mgr->resources) >= RESOURCES_MAX) {
        text_add(text, "%d resources are registered already", RESOURCES_MAX);
        return CODE_RESOURCE_EXHAUSTED;
    }
    return 0;
}

static void log_registering(struct devicemgr *mgr, const struct resource *resource)
{
    struct text text = {0};

    text_add(&text, "resource %s: plugin registers with endpoint \"", resource->name);
    text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, "\"");
    core_log(mgr, LEVEL_INFO, &text);
}

/* The newest registration's socket takes the place of what there is. */
static void dial_registered(struct devicemgr *mgr, struct resource *resource, uint64_t registration,
                            const char *socket_name)
{
    hang_up(mgr, &resource->endpoint);
    dial(mgr, resource, ENDPOINT_REGISTERED, socket_name);
    resource->endpoint.registration = registration;
    log_registering(mgr, resource);
    wake_resource(mgr, resource->name);
}

/* The plugin registers too often: its dial waits for its turn, and an older one that waits is not
 * made at all. */
static void dial_later(struct devicemgr *mgr, struct resource *resource, uint64_t registration,
                       const char *socket_name)
{
    struct endpoint *endpoint = &resource->endpoint;
    struct text text = {0};

    free(endpoint->next_socket);
    endpoint->next_socket = mem_strdup(socket_name);
    endpoint->next_registration = registration;
    if (endpoint->hasty)
        return;
    endpoint->hasty = true;
    text_add(&text, "resource %s: plugin registers too often, it is dialled at most every ",
             resource->name);
    text_add_duration(&text, DIAL_EVERY_MS);
    text_add(&text, " now");
    core_log(mgr, LEVEL_WARNING, &text);
}

static void dial_waiting(struct devicemgr *mgr, struct resource *resource)
{
    char *socket_name = resource->endpoint.next_socket;
    uint64_t registration = resource->endpoint.next_registration;

    resource->endpoint.next_socket = NULL;
    resource->endpoint.next_registration = 0;
    dial_registered(mgr, resource, registration, socket_name);
    free(socket_name);
}

void devicemgr_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                        const char *version, const char *socket_name, const char *name)
{
    struct text text = {0};
    struct resource *resource;
    int code;

    core_at(mgr, now_ms);
    code = check_register(mgr, version, socket_name, name, &text);
    if (code != 0) {
        push_register_done(mgr, registration, code, &text);
        core_log(mgr, LEVEL_WARNING, &text);
        return;
    }
    resource = resources_find(mgr->resources, name);
    if (!resource)
        resource = resources_add(&mgr->resources, name);
    text_add(&text, "a newer registration of resource %s has come", name);
    answer_registers(mgr, &resource->endpoint, CODE_ABORTED, &text);
    if (resource->endpoint.next_socket ||
        endpoint_dial_ms(&resource->endpoint, mgr->now_ms) > mgr->now_ms)
        dial_later(mgr, resource, registration, socket_name);
    else
        dial_registered(mgr, resource, registration, socket_name);
}

void devicemgr_register_cancelled(struct devicemgr *mgr, uint64_t registration)
{
    for (struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (r->endpoint.registration == registration)
            r->endpoint.registration = 0; /* the plugin may serve all the same */
        if (r->endpoint.next_registration == registration)
            r->endpoint.next_registration = 0;
    }
}

/* ---- the connection ---- */

void devicemgr_endpoint_options(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                                const V1beta1__DevicePluginOptions *options)
{
    struct resource *resource = find_by_endpoint(mgr, number);
    struct endpoint *endpoint;
    struct text none = {0};

    core_at(mgr, now_ms);
    if (!resource)
        return;
    endpoint = &resource->endpoint;
    if (endpoint->socket_good && /* else its first list is worth a row */
        (endpoint->pre_start != options->pre_start_required ||
         endpoint->preferred != options->get_preferred_allocation_available))
        checkpoint_touch_resource(mgr, resource->name, false);
    endpoint->have_options = true;
    endpoint->pre_start = options->pre_start_required;
    endpoint->preferred = options->get_preferred_allocation_available;
    if (endpoint->origin == ENDPOINT_REGISTERED)
        resource->generation = core_number(mgr);
    answer_register(mgr, endpoint, CODE_OK, &none);
}

static void log_list(struct devicemgr *mgr, const struct resource *resource, bool activated,
                     const struct devices_change *change)
{
    struct text text = {0};

    text_add(&text, "resource %s: ", resource->name);
    if (activated) {
        text_add(&text, "plugin endpoint \"");
        text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
        text_add(&text, "\" is active: ");
    }
    text_add(&text, "%zu of %zu devices healthy", resource->devices.healthy, resource->devices.len);
    text_add(&text, " (%zu added, %zu removed, %zu changed)", change->added, change->removed,
             change->health + change->topology);
    if (change->dropped > 0)
        text_add(&text, "; %zu list entries without an id in UTF-8, or repeated, count for nothing",
                 change->dropped);
    if (change->nodes > 0)
        text_add(&text,
                 "; %zu NUMA nodes that are repeated, or not from 0 to %d, count for nothing",
                 change->nodes, NUMA_NODES_MAX - 1);
    core_log(mgr, change->dropped + change->nodes > 0 ? LEVEL_WARNING : LEVEL_INFO, &text);
}

void devicemgr_endpoint_list(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             const V1beta1__ListAndWatchResponse *list)
{
    struct resource *resource = find_by_endpoint(mgr, number);
    bool first, activated, new_socket, changed;
    struct devices_change change;
    struct endpoint *endpoint;

    core_at(mgr, now_ms);
    if (!resource || !resource->endpoint.have_options)
        return;
    endpoint = &resource->endpoint;
    first = !endpoint->socket_good;
    activated = endpoint->state != ENDPOINT_ACTIVE;
    new_socket = first || strcmp(endpoint->socket_good, endpoint->socket_name) != 0;
    changed = resource_list(resource, mgr->now_ms, list, &change);
    if (activated) {
        endpoint_set_state(endpoint, mgr->now_ms, ENDPOINT_ACTIVE);
        capacity_published(mgr, resource->name);
    }
    if (first)
        adopt_served(mgr, resource->name);
    if (endpoint->stop_stored) {
        endpoint->stop_stored = false;
        checkpoint_touch_resource(mgr, resource->name, true);
    }
    if (!changed && !activated)
        return;
    /* Not for health alone, which after a restart is asked for anew: the row has all devices. */
    if (new_socket || change.added + change.removed + change.topology > 0)
        checkpoint_touch_resource(mgr, resource->name,
                                  new_socket || change.added + change.removed > 0);
    log_list(mgr, resource, activated, &change);
    wake_resource(mgr, resource->name);
}

static void remove_resource(struct devicemgr *mgr, struct resource *resource)
{
    hang_up(mgr, &resource->endpoint);
    endpoint_set_state(&resource->endpoint, mgr->now_ms, ENDPOINT_GONE);
    if (resource->endpoint.socket_good) { /* else it never had a row */
        checkpoint_touch_resource(mgr, resource->name, true);
        capacity_removed(mgr, resource->name);
    }
    wake_resource(mgr, resource->name);
    resources_remove(&mgr->resources, resource);
}

/* The dial of a Register call failed; `reason` may say already, in the kubelet's words, how. */
static void fail_register(struct devicemgr *mgr, struct endpoint *endpoint, const char *reason)
{
    struct text text = {0};

    if (strncmp(reason, "failed to ", strlen("failed to ")) != 0)
        text_add(&text, "failed to dial device plugin: ");
    text_add_words(&text, reason, 2 * TEXT_WORDS_BYTES_MAX);
    answer_register(mgr, endpoint, CODE_UNKNOWN, &text);
}

static void log_lost(struct devicemgr *mgr, const struct resource *resource, const char *reason,
                     bool redial)
{
    uint64_t away_ms = mgr->now_ms - resource->endpoint.stopped_ms;
    uint64_t grace_ms = grace_of(mgr, resource);
    uint64_t left_ms = away_ms < grace_ms ? grace_ms - away_ms : 0;
    struct text text = {0};

    text_add(&text, "resource %s: plugin endpoint \"", resource->name);
    text_add_words(&text, resource->endpoint.socket_name, TEXT_WORDS_BYTES_MAX);
    text_add(&text, "\" lost (");
    text_add_words(&text, reason, TEXT_WORDS_BYTES_MAX);
    if (redial) {
        text_add(&text, "), dialled once more");
    } else if (resource->endpoint.socket_good) {
        text_add(&text, "), its devices are unhealthy; stop grace period ends in ");
        text_add_duration(&text, left_ms);
    } else {
        text_add(&text, ") before it listed any device");
    }
    core_log(mgr, LEVEL_WARNING, &text);
}

void devicemgr_endpoint_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             const char *reason)
{
    struct resource *resource = find_by_endpoint(mgr, number);
    struct endpoint *endpoint;
    bool redial;

    core_at(mgr, now_ms);
    if (!resource)
        return;
    endpoint = &resource->endpoint;
    calls_drop(mgr, number);
    endpoint->number = 0;
    fail_register(mgr, endpoint, reason);
    redial = endpoint_may_redial(endpoint, mgr->now_ms);
    endpoint_stop(endpoint, mgr->now_ms, reason);
    log_lost(mgr, resource, reason, redial);
    wake_resource(mgr, resource->name);
    if (redial)
        dial(mgr, resource, ENDPOINT_REDIALLED, endpoint->socket_good);
    else if (endpoint->socket_good)
        endpoint_set_state(endpoint, mgr->now_ms, ENDPOINT_GRACE);
    else if (!endpoint->next_socket)
        remove_resource(mgr, resource);
}

/* ---- time ---- */

static void log_removed(struct devicemgr *mgr, const struct resource *resource)
{
    struct text text = {0};

    text_add(&text, "resource %s: ", resource->name);
    endpoint_explain(&resource->endpoint, mgr->now_ms, grace_of(mgr, resource), &text);
    core_log(mgr, LEVEL_WARNING, &text);
    text = (struct text){0};
    text_add(&text, "resource %s: removed, its plugin has not come back within ", resource->name);
    text_add_duration(&text, grace_of(mgr, resource));
    core_log(mgr, LEVEL_WARNING, &text);
}

/* UINT64_MAX: no dial waits. */
static uint64_t next_dial_ms(const struct devicemgr *mgr, const struct endpoint *endpoint)
{
    return endpoint->next_socket ? endpoint_dial_ms(endpoint, mgr->now_ms) : UINT64_MAX;
}

/* Connected, and no list: its grace period begins, though a list would still be welcome. */
static void stop_unlisted(struct devicemgr *mgr, struct resource *resource)
{
    struct text reason = {0}, text = {0};

    text_add(&reason, "no device list within ");
    text_add_duration(&reason, FIRST_LIST_MS);
    endpoint_stop(&resource->endpoint, mgr->now_ms, reason.buf);
    text_add(&text, "resource %s: ", resource->name);
    endpoint_explain(&resource->endpoint, mgr->now_ms, grace_of(mgr, resource), &text);
    core_log(mgr, LEVEL_WARNING, &text);
}

/* The resource is removed; its plugin, which has registered only just now, is a new one's. */
static void begin_anew(struct devicemgr *mgr, struct resource *resource)
{
    char *name = mem_strdup(resource->name);
    uint64_t generation = resource->generation;
    struct endpoint endpoint;
    struct text text = {0};

    endpoint_move(&resource->endpoint, &endpoint);
    remove_resource(mgr, resource);
    resource = resources_add(&mgr->resources, name);
    resource->endpoint = endpoint;
    resource->generation = generation;
    text_add(&text, "resource %s: its plugin registered ", name);
    text_add_duration(&text, mgr->now_ms - endpoint.since_ms);
    text_add(&text, " ago, and is waited for as a new one");
    core_log(mgr, LEVEL_INFO, &text);
    free(name);
}

static void endpoint_tick(struct devicemgr *mgr, struct resource *resource)
{
    struct endpoint *endpoint = &resource->endpoint;

    if (next_dial_ms(mgr, endpoint) <= mgr->now_ms)
        dial_waiting(mgr, resource);
    if (endpoint_unlisted_ms(endpoint) <= mgr->now_ms)
        stop_unlisted(mgr, resource);
    if (endpoint_store_ms(endpoint) <= mgr->now_ms) {
        endpoint->stop_stored = true;
        checkpoint_touch_resource(mgr, resource->name, true);
    }
    if (endpoint_end_ms(endpoint, grace_of(mgr, resource)) <= mgr->now_ms) {
        fail_register(mgr, endpoint, "no answer");
        log_removed(mgr, resource);
        if (endpoint_may_list(endpoint, mgr->now_ms))
            begin_anew(mgr, resource);
        else
            remove_resource(mgr, resource);
    }
}

void plugin_tick(struct devicemgr *mgr)
{
    struct resource *resource, *next;

    HASH_ITER(hh, mgr->resources, resource, next)
    {
        if (!resource->builtin)
            endpoint_tick(mgr, resource);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t plugin_next_ms(const struct devicemgr *mgr)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct resource *r = mgr->resources; r; r = r->hh.next) {
        if (r->builtin)
            continue;
        next_ms = earlier(next_ms, endpoint_end_ms(&r->endpoint, grace_of(mgr, r)));
        next_ms = earlier(next_ms, endpoint_store_ms(&r->endpoint));
        next_ms = earlier(next_ms, endpoint_unlisted_ms(&r->endpoint));
        next_ms = earlier(next_ms, next_dial_ms(mgr, &r->endpoint));
    }
    return next_ms;
}

void plugin_restored(struct devicemgr *mgr)
{
    for (struct resource *r = mgr->resources; r; r = r->hh.next) {
        endpoint_stop(&r->endpoint, mgr->now_ms, "the shim, or the node, was restarted");
        endpoint_set_state(&r->endpoint, mgr->now_ms, ENDPOINT_GRACE);
        if (r->endpoint.socket_good[0] != '\0')
            dial(mgr, r, ENDPOINT_RESTORED, r->endpoint.socket_good);
    }
}

/* ---- built-in devices ---- */

void devicemgr_builtin(struct devicemgr *mgr, uint64_t now_ms, const char *name,
                       const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    struct resource *resource = resources_find(mgr->resources, name);
    bool first = !resource || !resource->builtin;
    struct devices_change change;
    struct text text = {0};

    core_at(mgr, now_ms);
    if (resource && !resource->builtin) {
        text_add(&text, "resource %s is a built-in device now", name);
        answer_registers(mgr, &resource->endpoint, CODE_INVALID_ARGUMENT, &text);
        remove_resource(mgr, resource);
        resource = NULL;
    }
    if (!resource)
        resource = resources_add(&mgr->resources, name);
    capacity_published(mgr, name);
    if (resource_set_builtin(resource, mgr->now_ms, devices, devices_len, &change))
        log_list(mgr, resource, false, &change);
    if (first)
        adopt_served(mgr, name);
    wake_resource(mgr, name);
}
