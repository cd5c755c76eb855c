#include "tests/sim/plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/core.h"
#include "devicemgr/options.h"
#include "tests/sim/check.h"
#include "tests/sim/world.h"

#define ALL_DEVICES ((1u << DEVICES_MAX) - 1)
#define SOCKETS_MAX 2
#define REGISTER_MS_MAX 3000
#define ANSWER_MS_MAX 400
#define LOST_MS_MAX 50

/* How a call on a plugin goes. */
enum outcome {
    OUTCOME_GOOD,
    OUTCOME_ERROR,
    OUTCOME_EMPTY, /* an answer for no container */
    OUTCOME_TWO,   /* or for two */
    OUTCOME_DIES,
    OUTCOME_TIMEOUT,
    OUTCOME_LEN,
};

static struct connection *find(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (number && w->shim.net.connections[i].number == number)
            return &w->shim.net.connections[i];
    }
    return NULL;
}

const struct connection *plugin_usable(const struct world *w, size_t resource)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == resource && c->listed)
            return c;
    }
    return NULL;
}

static struct plugin_call *find_call(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (number && w->shim.net.calls[i].number == number)
            return &w->shim.net.calls[i];
    }
    return NULL;
}

size_t plugin_calls_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++)
        open += w->shim.net.calls[i].number != 0;
    return open;
}

size_t plugin_registrations_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++)
        open += w->shim.net.open_registrations[i] != 0;
    return open;
}

static void drop_connection(struct world *w, struct connection *c)
{
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (w->shim.net.calls[i].connection == c->number)
            w->shim.net.calls[i] = (struct plugin_call){0};
    }
    *c = (struct connection){0};
}

/* ---- Register ---- */

static void register_now(struct world *w, uint64_t resource, uint64_t instance)
{
    struct plugin *p = &w->plugins[resource];
    struct plugin_net *net = &w->shim.net;
    char socket[32];
    size_t slot = 0;

    if (!w->shim.core || !p->up || p->instance != instance)
        return;
    while (slot < PLUGIN_CALLS_MAX && net->open_registrations[slot])
        slot++;
    check_that(w, slot < PLUGIN_CALLS_MAX, "Register calls under way are bounded");
    if (slot == PLUGIN_CALLS_MAX)
        return;
    net->open_registrations[slot] = ++net->last_registration;
    snprintf(socket, sizeof socket, "r%u-%u.sock", (unsigned)resource, p->socket);
    world_note(w, "plugin %u: registers with %s", (unsigned)resource, socket);
    shim_run_now(w);
    if (!w->shim.core)
        return;
    net->registering = resource;
    devicemgr_register(w->shim.core, shim_now_ms(w), net->last_registration, "v1beta1", socket,
                       resource_sim_name(resource));
    shim_run_now(w); /* what it opens is for this call */
    net->registering = RESOURCES_LEN;
}

static void register_later(struct world *w, const struct plugin *p)
{
    if (p->resource != RESOURCE_BUILTIN)
        world_after(w, rng_delay_ms(&w->rng, REGISTER_MS_MAX), register_now, p->resource,
                    p->instance);
}

/* Names that must be refused. */
static void register_badly(struct world *w)
{
    static const char *const SOCKETS[] = {"", "..", "a/b", "kubelet.sock", "x.sock"};
    static const char *const NAMES[] = {"vendor.com/gpu", "nothing", "local.dev/kvm"};
    size_t socket = rng_below(&w->rng, 5), name = rng_below(&w->rng, 3);

    if (name == 0 && socket == 4)
        return; /* that one is good */
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (w->shim.net.open_registrations[i])
            continue;
        w->shim.net.open_registrations[i] = ++w->shim.net.last_registration;
        devicemgr_register(w->shim.core, shim_now_ms(w), w->shim.net.last_registration, "v1beta1",
                           SOCKETS[socket], NAMES[name]);
        shim_run(w);
        return;
    }
}

static void cancel_registration(struct world *w)
{
    uint64_t *slot = &w->shim.net.open_registrations[rng_below(&w->rng, 4)];

    if (!*slot)
        return;
    world_note(w, "plugin: Register call %" PRIu64 " cancelled", *slot);
    devicemgr_register_cancelled(w->shim.core, *slot);
    *slot = 0;
    shim_run(w);
}

void plugin_register_done(struct world *w, uint64_t registration, int code, const char *message)
{
    uint64_t *slot = w->shim.net.open_registrations;
    uint64_t *end = slot + PLUGIN_CALLS_MAX;

    while (slot < end && *slot != registration)
        slot++;
    check_that(w, slot < end || w->shim.late,
               "a Register call is answered once, and not after it was cancelled");
    check_that(w, (code == 0) == (message == NULL), "a refused Register call is told why");
    world_note(w, "plugin: Register call %" PRIu64 " answered %d %s", registration, code,
               message ? message : "");
    if (slot < end)
        *slot = 0;
}

/* ---- the connection ---- */

static void lose(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct connection *c = find(w, number);

    if (!shim_lives(w, incarnation) || !c)
        return;
    world_note(w, "plugin %zu: connection %" PRIu64 " lost", c->resource, number);
    drop_connection(w, c);
    devicemgr_endpoint_lost(w->shim.core, shim_now_ms(w), number, "connection reset by peer");
    shim_run(w);
}

static void entry_set(V1beta1__Device *entry, size_t device, bool healthy)
{
    v1beta1__device__init(entry);
    entry->id = (char *)device_sim_id(device);
    entry->health = (char *)(healthy ? "Healthy" : "Unhealthy");
}

/* The whole list; now and then with an entry that counts for nothing. */
static void give_list(struct world *w, struct connection *c)
{
    const struct plugin *p = &w->plugins[c->resource];
    V1beta1__Device entries[2 * DEVICES_MAX + 1], *list[2 * DEVICES_MAX + 1];
    V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT, *nodes = &node;
    V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;

    topology.n_nodes = 1;
    topology.nodes = &nodes;
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        bool healthy = p->healthy & 1u << i;

        if (!(p->listed & 1u << i))
            continue;
        if (rng_percent(&w->rng, 2))
            entry_set(&entries[response.n_devices++], i, !healthy);
        entry_set(&entries[response.n_devices], i, healthy);
        if (i % 2 == 0)
            entries[response.n_devices].topology = &topology;
        response.n_devices++;
    }
    for (size_t i = 0; i < response.n_devices; i++)
        list[i] = &entries[i];
    response.devices = list;
    c->listed = true;
    c->healthy = p->healthy & p->listed;
    world_note(w, "plugin %zu: list %x healthy %x", c->resource, p->listed, p->healthy);
    devicemgr_endpoint_list(w->shim.core, shim_now_ms(w), c->number, &response);
    shim_run(w);
}

static void first_list(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct connection *c = find(w, number);

    if (shim_lives(w, incarnation) && c && w->plugins[c->resource].instance == c->instance &&
        !w->plugins[c->resource].hung)
        give_list(w, c);
}

static void give_options(struct world *w, struct connection *c)
{
    struct plugin *p = &w->plugins[c->resource];
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    options.pre_start_required = p->pre_start;
    options.get_preferred_allocation_available = p->preferred;
    c->instance = p->instance;
    c->options = true;
    c->pre_start = p->pre_start;
    p->registered += c->registered;
    world_after(w, rng_delay_ms(&w->rng, REGISTER_MS_MAX), first_list, c->number,
                w->shim.incarnation);
    devicemgr_endpoint_options(w->shim.core, shim_now_ms(w), c->number, &options);
    shim_run(w);
}

static void dial(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct connection *c = find(w, number);
    const struct plugin *p;

    if (!shim_lives(w, incarnation) || !c)
        return;
    p = &w->plugins[c->resource];
    if (!p->up || p->socket != c->socket)
        lose(w, number, incarnation);
    else if (p->hung)
        world_after(w, DIAL_MS_MAX, lose, number, incarnation);
    else
        give_options(w, c);
}

void plugin_open(struct world *w, uint64_t number, const char *resource, const char *socket)
{
    size_t r = resource_sim_find(resource);
    struct connection *c = w->shim.net.connections;

    check_that(w, r < RESOURCES_LEN && r != RESOURCE_BUILTIN, "only known plugins are dialled");
    check_that(w, number != 0 && !find(w, number), "a connection has a number of its own");
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        check_that(w,
                   !w->shim.net.connections[i].number || w->shim.net.connections[i].resource != r,
                   "a resource has one connection at a time");
    while (c < w->shim.net.connections + CONNECTIONS_MAX && c->number)
        c++;
    if (c == w->shim.net.connections + CONNECTIONS_MAX || r == RESOURCES_LEN)
        return;
    *c = (struct connection){.number = number,
                             .resource = r,
                             .socket = (unsigned)strtoul(strchr(socket, '-') + 1, NULL, 10),
                             .registered = w->shim.net.registering == r};
    world_note(w, "plugin %zu: %s dialled, connection %" PRIu64, r, socket, number);
    world_after(w, rng_delay_ms(&w->rng, ANSWER_MS_MAX), dial, number, w->shim.incarnation);
}

void plugin_close(struct world *w, uint64_t number)
{
    struct connection *c = find(w, number);

    check_that(w, c || w->shim.late, "only an open connection is closed");
    if (c)
        drop_connection(w, c);
}

/* ---- calls ---- */

static uint64_t hash(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t value = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        value = (value ^ at[i]) * 0x100000001b3u;
    return value;
}

uint64_t plugin_options_hash(const V1beta1__ContainerAllocateResponse *options)
{
    size_t len;
    uint8_t *bytes = options_pack(options, &len);
    uint64_t value = hash(bytes, len);

    free(bytes);
    return value;
}

static void add_env(V1beta1__ContainerAllocateResponse *options, const char *key, uint64_t value)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry *env = mem_alloc(1, sizeof *env);
    char text[24];

    v1beta1__container_allocate_response__envs_entry__init(env);
    snprintf(text, sizeof text, "%" PRIu64, value);
    env->key = mem_strdup(key);
    env->value = mem_strdup(text);
    options->envs = reallocarray(options->envs, options->n_envs + 1, sizeof *options->envs);
    options->envs[options->n_envs++] = env;
}

static V1beta1__ContainerAllocateResponse *make_options(struct world *w, size_t resource,
                                                        unsigned ids)
{
    struct plugin_net *net = &w->shim.net;
    V1beta1__ContainerAllocateResponse *options = options_new();
    struct answer *answer;
    char key[24], path[64], host[64], serial[24];

    net->answers = mem_grow(net->answers, net->answers_len, sizeof *net->answers);
    answer = &net->answers[net->answers_len++];
    snprintf(key, sizeof key, "S%zu", resource);
    add_env(options, key, net->answers_len);
    add_env(options, "COMMON", resource);
    snprintf(key, sizeof key, "a%zu", resource);
    snprintf(serial, sizeof serial, "%zu", net->answers_len);
    options_add_annotation(options, key, serial);
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        snprintf(path, sizeof path, "/dev/%zu-%zu", resource, i);
        snprintf(host, sizeof host, "/dev/host-%zu-%zu", resource, i);
        if (ids & 1u << i)
            options_add_device(options, path, host, "rw");
    }
    *answer = (struct answer){.resource = resource,
                              .ids = ids,
                              .boot = w->shim.boot,
                              .registrations = w->plugins[resource].registered,
                              .incarnation = w->shim.incarnation,
                              .hash = plugin_options_hash(options)};
    return options;
}

static void answer_allocate(struct world *w, const struct plugin_call *call, size_t resource,
                            enum outcome outcome)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options = make_options(w, resource, call->ids);
    V1beta1__ContainerAllocateResponse *both[] = {options, options};

    response.container_responses = both;
    response.n_container_responses = outcome == OUTCOME_GOOD ? 1 : outcome == OUTCOME_TWO ? 2 : 0;
    world_note(w, "plugin %zu: Allocate of %x answered, serial %zu", resource, call->ids,
               w->shim.net.answers_len);
    devicemgr_allocated(w->shim.core, shim_now_ms(w), call->number, 0, NULL, &response);
    options_free(options);
}

/* Any ids: the advice may be nonsense. */
static void answer_prefer(struct world *w, const struct plugin_call *call)
{
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse one =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse *list = &one;
    struct ids ids = device_sim_ids((unsigned)rng_below(&w->rng, ALL_DEVICES + 1));

    ids_add(&ids, "nonsense");
    one.deviceids = ids.v;
    one.n_deviceids = ids.len;
    response.container_responses = &list;
    response.n_container_responses = 1;
    devicemgr_preferred(w->shim.core, shim_now_ms(w), call->number, 0, NULL, &response);
    ids_fini(&ids);
}

static void answer_prestart(struct world *w, struct connection *c, const struct plugin_call *call)
{
    c->prestarted_ms[call->ids] = w->now_ms;
    devicemgr_prestarted(w->shim.core, shim_now_ms(w), call->number, 0, NULL);
}

static void answer_failed(struct world *w, const struct plugin_call *call, int code)
{
    world_note(w, "plugin: call %" PRIu64 " fails with %d", call->number, code);
    switch (call->kind) {
    case PLUGIN_ALLOCATE:
        devicemgr_allocated(w->shim.core, shim_now_ms(w), call->number, code, "out of order", NULL);
        break;
    case PLUGIN_PREFER:
        devicemgr_preferred(w->shim.core, shim_now_ms(w), call->number, code, "out of order", NULL);
        break;
    case PLUGIN_PRESTART:
        devicemgr_prestarted(w->shim.core, shim_now_ms(w), call->number, code, "out of order");
        break;
    }
}

static void call_ends(struct world *w, uint64_t number, uint64_t incarnation_and_outcome)
{
    struct plugin_call *slot = find_call(w, number), call;
    enum outcome outcome = (enum outcome)(incarnation_and_outcome % OUTCOME_LEN);
    struct connection *c;

    if (!shim_lives(w, incarnation_and_outcome / OUTCOME_LEN) || !slot)
        return;
    c = find(w, slot->connection);
    if (outcome == OUTCOME_DIES) {
        plugin_die(w, &w->plugins[c->resource]);
        return;
    }
    call = *slot;
    *slot = (struct plugin_call){0};
    if (outcome == OUTCOME_TIMEOUT)
        answer_failed(w, &call, CODE_DEADLINE_EXCEEDED);
    else if (outcome == OUTCOME_ERROR)
        answer_failed(w, &call, 2);
    else if (call.kind == PLUGIN_ALLOCATE)
        answer_allocate(w, &call, c->resource, outcome);
    else if (call.kind == PLUGIN_PREFER)
        answer_prefer(w, &call);
    else
        answer_prestart(w, c, &call);
    shim_run(w);
}

static void check_call(struct world *w, const struct connection *c, uint64_t number, unsigned ids,
                       unsigned must, size_t size, uint64_t timeout_ms)
{
    check_that(w, c && c->listed, "a plugin is called on an open connection that has a list");
    check_that(w, number != 0 && !find_call(w, number), "a call has a number of its own");
    check_that(w, timeout_ms > 0 && timeout_ms <= 10000, "a call has a deadline");
    check_that(w, ids != 0 && (must & ~ids) == 0 && size <= device_sim_count(ids),
               "a call names known devices, each once");
    check_that(w, c && (ids & ~c->healthy) == 0, "only healthy devices are asked for: %x of %x",
               ids, c ? c->healthy : 0);
}

void plugin_call(struct world *w, enum plugin_call_kind kind, uint64_t connection, uint64_t number,
                 unsigned ids, unsigned must, size_t size, uint64_t timeout_ms)
{
    static const char *const NAMES[] = {"Allocate", "GetPreferredAllocation", "PreStartContainer"};
    struct connection *c = find(w, connection);
    struct plugin_call *slot = w->shim.net.calls;
    enum outcome outcome = OUTCOME_GOOD;
    uint64_t delay_ms = rng_delay_ms(&w->rng, ANSWER_MS_MAX);
    const struct plugin *p;

    check_call(w, c, number, ids, must, size, timeout_ms);
    while (slot < w->shim.net.calls + PLUGIN_CALLS_MAX && slot->number)
        slot++;
    check_that(w, slot < w->shim.net.calls + PLUGIN_CALLS_MAX, "calls under way are bounded");
    if (!c || slot == w->shim.net.calls + PLUGIN_CALLS_MAX)
        return;
    p = &w->plugins[c->resource];
    *slot = (struct plugin_call){number, kind, connection, ids, must, size};
    world_note(w, "plugin %zu: %s of %x, call %" PRIu64, c->resource, NAMES[kind], ids, number);
    if (p->hung || p->instance != c->instance)
        outcome = OUTCOME_TIMEOUT;
    else if (rng_percent(&w->rng, p->trouble))
        outcome = (enum outcome)rng_below(&w->rng, OUTCOME_LEN);
    if (outcome == OUTCOME_TIMEOUT || delay_ms > timeout_ms)
        delay_ms = timeout_ms, outcome = OUTCOME_TIMEOUT;
    else if (rng_percent(&w->rng, p->trouble))
        delay_ms = rng_below(&w->rng, timeout_ms);
    world_after(w, delay_ms, call_ends, number, w->shim.incarnation * OUTCOME_LEN + outcome);
}

void plugin_call_cancel(struct world *w, uint64_t number)
{
    struct plugin_call *call = find_call(w, number);

    check_that(w, call || w->shim.late, "only a call under way is cancelled");
    if (call)
        *call = (struct plugin_call){0};
}

/* ---- life ---- */

void plugins_init(struct world *w)
{
    w->shim.net.registering = RESOURCES_LEN;
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        unsigned devices = (1u << rng_between(&w->rng, 2, DEVICES_MAX)) - 1;

        w->plugins[r] = (struct plugin){.resource = r,
                                        .devices = devices,
                                        .listed = devices,
                                        .healthy = devices,
                                        .pre_start = rng_percent(&w->rng, 40),
                                        .preferred = rng_percent(&w->rng, 60)};
    }
}

void plugins_fini(struct world *w)
{
    free(w->shim.net.answers);
}

void plugins_shim_gone(struct world *w)
{
    struct plugin_net *net = &w->shim.net;

    memset(net->connections, 0, sizeof net->connections);
    memset(net->calls, 0, sizeof net->calls);
    memset(net->open_registrations, 0, sizeof net->open_registrations);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->plugins[r].registered = 0;
}

void plugins_shim_back(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (w->plugins[r].up && rng_percent(&w->rng, w->faults ? 60 : 100))
            register_later(w, &w->plugins[r]);
    }
}

void plugin_start(struct world *w, struct plugin *p)
{
    if (p->up || p->resource == RESOURCE_BUILTIN)
        return;
    p->up = true;
    p->hung = false;
    p->instance++;
    p->socket = (unsigned)rng_below(&w->rng, SOCKETS_MAX);
    p->pre_start ^= rng_percent(&w->rng, 10);
    p->preferred ^= rng_percent(&w->rng, 10);
    world_note(w, "plugin %zu: starts", p->resource);
    register_later(w, p);
}

void plugin_die(struct world *w, struct plugin *p)
{
    if (!p->up)
        return;
    world_note(w, "plugin %zu: dies", p->resource);
    p->up = false;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == p->resource && c->instance == p->instance)
            world_after(w, rng_below(&w->rng, LOST_MS_MAX), lose, c->number, w->shim.incarnation);
    }
    p->instance++;
}

static void list_all(struct world *w, const struct plugin *p)
{
    if (p->resource == RESOURCE_BUILTIN) {
        shim_builtin(w);
        return;
    }
    for (size_t i = 0; i < CONNECTIONS_MAX && w->shim.core; i++) {
        struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == p->resource && c->instance == p->instance && c->listed)
            give_list(w, c);
    }
}

static void start_later(struct world *w, uint64_t resource, uint64_t unused)
{
    (void)unused;
    plugin_start(w, &w->plugins[resource]);
}

void plugins_heal(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct plugin *p = &w->plugins[r];

        p->trouble = 0;
        p->listed = p->healthy = p->devices;
        plugin_die(w, p);
        world_after(w, rng_delay_ms(&w->rng, REGISTER_MS_MAX) + LOST_MS_MAX, start_later, r, 0);
        if (r == RESOURCE_BUILTIN && w->shim.core)
            shim_builtin(w);
    }
}

static void drop_streams(struct world *w, struct plugin *p)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == p->resource && c->options) {
            lose(w, c->number, w->shim.incarnation);
            return;
        }
    }
}

static void flap(struct world *w, struct plugin *p)
{
    plugin_die(w, p);
    plugin_start(w, p);
}

static void change_list(struct world *w, struct plugin *p)
{
    unsigned bit = 1u << rng_below(&w->rng, DEVICES_MAX);

    if (rng_percent(&w->rng, 70))
        p->healthy ^= bit & p->devices;
    else
        p->listed ^= bit & p->devices;
    if (rng_percent(&w->rng, 20))
        p->listed = p->healthy = p->devices;
    list_all(w, p);
}

void plugins_trouble(struct world *w)
{
    struct plugin *p = &w->plugins[rng_below(&w->rng, RESOURCES_LEN)];

    switch (rng_below(&w->rng, 12)) {
    case 0:
        plugin_die(w, p);
        break;
    case 1:
    case 2:
        plugin_start(w, p);
        break;
    case 3:
        flap(w, p);
        break;
    case 4:
        p->hung = !p->hung;
        break;
    case 5:
        drop_streams(w, p);
        break;
    case 6: /* registers twice; perhaps under another name */
        p->socket = rng_percent(&w->rng, 30) ? 1 - p->socket : p->socket;
        register_now(w, p->resource, p->instance);
        break;
    case 7:
    case 8:
        change_list(w, p);
        break;
    case 9:
        p->trouble = (unsigned)rng_below(&w->rng, 70);
        break;
    case 10:
        register_badly(w);
        break;
    default:
        cancel_registration(w);
        break;
    }
}
