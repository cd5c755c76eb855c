#include "tests/sim/plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/check.h"
#include "tests/sim/device_list.h"
#include "tests/sim/move.h"
#include "tests/sim/world.h"

#define SOCKETS_MAX 2
#define REGISTER_MS_MAX 3000
#define ANSWER_MS_MAX 400
#define LOST_MS_MAX 50

struct connection *plugin_find_connection(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (number && w->shim.net.connections[i].number == number)
            return &w->shim.net.connections[i];
    }
    return NULL;
}

bool plugin_connected(const struct world *w, size_t resource)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == resource && c->options)
            return true;
    }
    return false;
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

size_t plugin_registrations_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++)
        open += w->shim.net.open_registrations[i] != 0;
    return open;
}

static void drop_connection(struct world *w, struct connection *c)
{
    plugin_calls_drop(w, c->number);
    *c = (struct connection){0};
}

/* ---- Register ---- */

/* Who registers with it; root with the first. */
static uint32_t user_of(unsigned socket)
{
    return 1000 * socket;
}

static void register_now(struct world *w, uint64_t resource, uint64_t instance)
{
    struct plugin *p = &w->plugins[resource];
    struct plugin_net *net = &w->shim.net;
    char socket[32];
    size_t slot = 0;

    if (!w->shim.core || !p->up || !p->moved || p->instance != instance)
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
                       user_of(p->socket), resource_sim_name(resource));
    shim_run_now(w); /* what it opens is for this call */
    net->registering = RESOURCES_LEN;
}

static void register_later(struct world *w, struct plugin *p)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_REGISTERS, p->resource, 0);

    if (p->resource != RESOURCE_BUILTIN && p->moved)
        world_after(w, &rng, rng_delay_ms(&rng, REGISTER_MS_MAX), register_now, p->resource,
                    p->instance);
}

/* Names that must be refused. */
static void register_badly(struct world *w, struct rng *rng)
{
    static const char *const SOCKETS[] = {"", "..", "a/b", "kubelet.sock", "x.sock"};
    static const char *const NAMES[] = {"vendor.com/gpu", "nothing", "local.dev/kvm"};
    size_t socket = rng_below(rng, 5), name = rng_below(rng, 3);

    if (name == 0 && socket == 4)
        return; /* that one is good */
    for (size_t i = 0; i < PLUGIN_CALLS_MAX; i++) {
        if (w->shim.net.open_registrations[i])
            continue;
        w->shim.net.open_registrations[i] = ++w->shim.net.last_registration;
        devicemgr_register(w->shim.core, shim_now_ms(w), w->shim.net.last_registration, "v1beta1",
                           SOCKETS[socket], 0, NAMES[name]);
        shim_run(w);
        return;
    }
}

static void cancel_registration(struct world *w, struct rng *rng)
{
    uint64_t *slot = &w->shim.net.open_registrations[rng_below(rng, 4)];

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
    struct connection *c = plugin_find_connection(w, number);

    if (!shim_lives(w, incarnation) || !c)
        return;
    world_note(w, "plugin %zu: connection %" PRIu64 " lost", c->resource, number);
    shown_connection_lost(w, c);
    drop_connection(w, c);
    devicemgr_endpoint_lost(w->shim.core, shim_now_ms(w), number, "connection reset by peer");
    shim_run(w);
}

static void give_list(struct world *w, struct connection *c)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_LISTS, c->resource, 0);
    struct plugin *p = &w->plugins[c->resource];
    struct device_list list;

    device_list_init(p, &rng, &list);
    c->listed = true;
    c->healthy = p->healthy & p->listed;
    c->devices = p->listed;
    c->capacity = list.devices;
    shown_listed(w, c);
    world_note(w, "plugin %zu: list %x healthy %x%s, with a crowd of %zu", c->resource, p->listed,
               p->healthy, p->odd ? " and odd ones" : "", p->crowd);
    devicemgr_endpoint_list(w->shim.core, shim_now_ms(w), c->number, &list.response);
    device_list_fini(&list);
    shim_run(w);
}

static void first_list(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct connection *c = plugin_find_connection(w, number);

    if (shim_lives(w, incarnation) && c && w->plugins[c->resource].instance == c->instance &&
        !w->plugins[c->resource].hung)
        give_list(w, c);
}

static void give_options(struct world *w, struct connection *c)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_OPTIONS, c->resource, 0);
    struct plugin *p = &w->plugins[c->resource];
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    options.pre_start_required = p->pre_start;
    options.get_preferred_allocation_available = p->preferred;
    c->instance = p->instance;
    c->options = true;
    c->pre_start = p->pre_start;
    c->preferred = p->preferred;
    p->registered += c->registered;
    world_after(w, &rng, rng_delay_ms(&rng, REGISTER_MS_MAX), first_list, c->number,
                w->shim.incarnation);
    devicemgr_endpoint_options(w->shim.core, shim_now_ms(w), c->number, &options);
    shim_run(w);
}

static void dial(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct connection *c = plugin_find_connection(w, number);
    const struct plugin *p;
    struct rng rng;

    if (!shim_lives(w, incarnation) || !c)
        return;
    p = &w->plugins[c->resource];
    rng = world_draw(w, DRAW_PLUGIN_DIALLED, c->resource, c->socket);
    if (!p->up || !p->moved || p->socket != c->socket)
        lose(w, number, incarnation);
    else if (p->hung)
        world_after(w, &rng, DIAL_MS_MAX, lose, number, incarnation);
    else
        give_options(w, c);
}

void plugin_open(struct world *w, uint64_t number, const char *resource, const char *socket,
                 uint32_t uid)
{
    size_t r = resource_sim_find(resource);
    struct connection *c = w->shim.net.connections;
    struct rng rng;

    check_that(w, r < RESOURCES_LEN && r != RESOURCE_BUILTIN, "only known plugins are dialled");
    check_that(w, number != 0 && !plugin_find_connection(w, number),
               "a connection has a number of its own");
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
    check_that(w, uid == user_of(c->socket), "a socket is dialled as that of who registered it");
    world_note(w, "plugin %zu: %s dialled, connection %" PRIu64, r, socket, number);
    rng = world_draw(w, DRAW_PLUGIN_DIALLED, r, c->socket);
    world_after(w, &rng, rng_delay_ms(&rng, ANSWER_MS_MAX), dial, number, w->shim.incarnation);
}

void plugin_close(struct world *w, uint64_t number)
{
    struct connection *c = plugin_find_connection(w, number);

    check_that(w, c || w->shim.late, "only an open connection is closed");
    if (c)
        drop_connection(w, c);
}

/* ---- life ---- */

void plugins_init(struct world *w)
{
    w->shim.net.registering = RESOURCES_LEN;
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct rng rng = world_draw(w, DRAW_PLUGIN, r, 0);
        struct plugin *p = &w->plugins[r];

        *p = (struct plugin){.resource = r};
        p->devices = (1u << rng_between(&rng, 2, DEVICES_MAX)) - 1;
        p->ever = p->listed = p->healthy = p->devices;
        p->pre_start = rng_percent(&rng, 40);
        p->preferred = rng_percent(&rng, 60);
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
        struct rng rng = world_draw(w, DRAW_PLUGIN, r, 0);

        if (w->plugins[r].up && rng_percent(&rng, w->faults ? 60 : 100))
            register_later(w, &w->plugins[r]);
    }
}

void plugin_start(struct world *w, struct plugin *p)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_STARTS, p->resource, 0);

    if (p->up || p->resource == RESOURCE_BUILTIN)
        return;
    p->up = true;
    p->hung = false;
    p->instance++;
    p->socket = (unsigned)rng_below(&rng, SOCKETS_MAX);
    p->pre_start ^= rng_percent(&rng, 10);
    p->preferred ^= rng_percent(&rng, 10);
    world_note(w, "plugin %zu: starts", p->resource);
    register_later(w, p);
}

void plugin_die(struct world *w, struct plugin *p)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_DIES, p->resource, 0);

    if (!p->up)
        return;
    world_note(w, "plugin %zu: dies", p->resource);
    p->up = false;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &w->shim.net.connections[i];

        if (c->number && c->resource == p->resource && c->instance == p->instance)
            world_after(w, &rng, rng_below(&rng, LOST_MS_MAX), lose, c->number,
                        w->shim.incarnation);
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
        struct rng rng = world_draw(w, DRAW_PLUGIN, r, 0);
        struct plugin *p = &w->plugins[r];

        p->trouble = 0;
        p->moved = true;
        p->listed = p->healthy = p->devices;
        p->odd = false;
        p->crowd = 0;
        plugin_die(w, p);
        world_after(w, &rng, rng_delay_ms(&rng, REGISTER_MS_MAX) + LOST_MS_MAX, start_later, r, 0);
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

static void change_list(struct world *w, struct plugin *p, struct rng *rng)
{
    unsigned bit = 1u << rng_below(rng, DEVICES_MAX);

    if (rng_percent(rng, 70))
        p->healthy ^= bit & p->devices;
    else
        p->listed ^= bit & p->devices;
    if (rng_percent(rng, 20))
        p->listed = p->healthy = p->devices;
    if (rng_percent(rng, 10))
        p->odd = !p->odd;
    if (rng_percent(rng, 10))
        p->crowd = rng_percent(rng, 20) ? rng_between(rng, 1, 5000) : 0;
    list_all(w, p);
}

void plugins_vanish(struct world *w, size_t resource)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_TROUBLE, resource, 0);
    struct plugin *p = &w->plugins[resource];
    unsigned bit = 1u << rng_below(&rng, DEVICES_MAX);

    if (!(p->devices & bit) || p->devices == bit)
        return;
    world_note(w, "plugin %zu: %x is gone for good", p->resource, bit);
    count_add(COUNT_VANISHED);
    p->devices &= ~bit;
    p->listed &= p->devices;
    p->healthy &= p->devices;
    list_all(w, p);
}

void plugins_trouble(struct world *w, size_t resource)
{
    struct rng rng = world_draw(w, DRAW_PLUGIN_TROUBLE, resource, 0);
    struct plugin *p = &w->plugins[resource];

    switch (rng_below(&rng, 14)) {
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
        p->socket = rng_percent(&rng, 30) ? 1 - p->socket : p->socket;
        register_now(w, p->resource, p->instance);
        break;
    case 7:
    case 8:
        change_list(w, p, &rng);
        break;
    case 9:
        p->trouble = (unsigned)rng_below(&rng, 70);
        break;
    case 10:
        register_badly(w, &rng);
        break;
    case 11:
    case 12:
        move_plugin(w, resource);
        break;
    default:
        cancel_registration(w, &rng);
        break;
    }
}
