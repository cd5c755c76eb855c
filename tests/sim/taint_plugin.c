/*
 * The plugins of the world of taints, and what they say of their devices' health.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/answer_options.h"
#include "tests/sim/taint_world.h"

static const struct {
    const char *name;
    size_t devices;
    bool exclusive;
} RESOURCES[TW_SUBJECTS] = {{"a.com/fpga", 8, true},
                            {"b.com/gpu", 8, false},
                            {"c.com/nic", 3, false},
                            [TW_DRIVER] = {"acc.example.com", TW_POOLS *TW_POOL_DEVICES, false}};

const char *taint_resource_name(size_t resource)
{
    return RESOURCES[resource].name;
}

size_t taint_resource_find(const char *name)
{
    size_t r = 0;

    while (r < TW_RESOURCES && strcmp(RESOURCES[r].name, name) != 0)
        r++;
    return r;
}

size_t taint_resource_devices(size_t resource)
{
    return RESOURCES[resource].devices;
}

bool taint_resource_exclusive(size_t resource)
{
    return RESOURCES[resource].exclusive;
}

const char *taint_device_id(size_t resource, size_t device)
{
    static const char *const IDS[TW_DEVICES_MAX] = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"};
    static const char *const OF_POOLS[TW_DEVICES_MAX] = {"p0/g0", "p0/g1", "p0/g2", "p0/g3",
                                                         "p1/g0", "p1/g1", "p1/g2", "p1/g3"};

    return resource == TW_DRIVER ? OF_POOLS[device] : IDS[device];
}

unsigned taint_device_mask(const char *const *ids, size_t len)
{
    unsigned mask = 0;

    for (size_t i = 0; i < len; i++)
        mask |= 1u << (ids[i][1] - '0');
    return mask;
}

/* ---- what the shim is told ---- */

static size_t most_by_health(size_t resource)
{
    size_t quarter = RESOURCES[resource].devices / 4;

    return quarter > 0 ? quarter : 1;
}

/* A restart before that is stored has it as one that went still: the store was away, or too
 * slow. */
static void note_recovered(struct tw_device *device)
{
    if (!device->goes)
        return;
    device->goes = device->waits = device->carried = false;
    device->recovered = true;
}

bool taint_plugin_closes(const struct taint_world *t, size_t resource)
{
    const struct tw_plugin *plugin = &t->plugins[resource];
    size_t surely = 0;

    for (size_t i = 0; i < RESOURCES[resource].devices; i++) {
        const struct tw_device *device = &plugin->devices[i];

        surely += device->goes && !device->said_healthy && plugin->endpoint &&
                  taint_unhealthy_for_long(t, plugin, device);
    }
    return t->unhealthy_after_ms > 0 && surely > most_by_health(resource);
}

static struct tw_kept kept_of(const struct taint_world *t, const struct tw_plugin *plugin,
                              const struct tw_device *device)
{
    bool acts = device->goes && !plugin->storm && plugin->endpoint &&
                taint_unhealthy_for_long(t, plugin, device);

    if (device->said_healthy)
        return (struct tw_kept){0};
    return (struct tw_kept){.since_ms = acts || plugin->closed_in_commit ? device->since_ms : 0,
                            .from_ms = device->from_ms,
                            .waits = device->waits};
}

void taint_plugin_carried(struct taint_world *t, const char *resource)
{
    size_t number = taint_resource_find(resource);
    struct tw_plugin *plugin = &t->plugins[number];

    taint_plugins_age(t);
    plugin->closed_in_commit = plugin->closed || taint_plugin_closes(t, number);
    for (size_t i = 0; i < TW_DEVICES_MAX; i++) {
        struct tw_device *device = &plugin->devices[i];

        device->carried = device->recovered;
        device->in_commit = kept_of(t, plugin, device);
    }
}

void taint_plugin_stored(struct taint_world *t, const char *resource)
{
    struct tw_plugin *plugin = &t->plugins[taint_resource_find(resource)];

    plugin->closed_in_store = plugin->closed_in_commit;
    for (size_t i = 0; i < TW_DEVICES_MAX; i++) {
        struct tw_device *device = &plugin->devices[i];

        device->in_store = device->in_commit;
        if (device->carried)
            device->recovered = device->carried = false;
    }
}

/* By the list that it gives just now. */
static void note_list(struct taint_world *t, size_t resource)
{
    struct tw_plugin *plugin = &t->plugins[resource];
    size_t unhealthy = 0;

    for (size_t i = 0; i < RESOURCES[resource].devices; i++) {
        struct tw_device *device = &plugin->devices[i];

        if (device->healthy) {
            note_recovered(device);
        } else if (device->said_healthy || device->since_ms == 0) {
            device->since_ms = t->now_ms;
            if (device->said_healthy || device->from_ms == 0)
                device->from_ms = plugin->listed_ms == t->now_ms ? plugin->lost_ms : t->now_ms;
        }
        device->said_healthy = device->healthy;
        unhealthy += !device->healthy;
    }
    if (unhealthy > most_by_health(resource))
        plugin->storm = true;
    else if (unhealthy == 0)
        plugin->storm = false;
}

static void list(struct taint_world *t, size_t resource)
{
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device devices[TW_DEVICES_MAX], *v[TW_DEVICES_MAX];
    struct tw_plugin *plugin = &t->plugins[resource];

    for (size_t i = 0; i < RESOURCES[resource].devices; i++) {
        v1beta1__device__init(&devices[i]);
        devices[i].id = (char *)taint_device_id(resource, i);
        devices[i].health = (char *)(plugin->devices[i].healthy ? "Healthy" : "Unhealthy");
        v[i] = &devices[i];
    }
    message.devices = v;
    message.n_devices = RESOURCES[resource].devices;
    taint_plugins_age(t);
    note_list(t, resource);
    taint_note(t, "plugin %zu lists", resource);
    for (size_t i = 0; i < RESOURCES[resource].devices; i++) {
        if (!plugin->devices[i].healthy)
            taint_note(t, "  g%zu is unhealthy", i);
    }
    devicemgr_endpoint_list(t->core, t->now_ms, plugin->endpoint, &message);
    taint_shim_run(t);
}

void taint_plugins_age(struct taint_world *t)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        struct tw_plugin *plugin = &t->plugins[r];

        for (size_t i = 0; i < RESOURCES[r].devices && plugin->endpoint; i++) {
            struct tw_device *device = &plugin->devices[i];
            uint64_t from_ms =
                device->since_ms > plugin->listed_ms ? device->since_ms : plugin->listed_ms;

            if (t->unhealthy_after_ms > 0 && !device->said_healthy &&
                t->now_ms >= from_ms + t->unhealthy_after_ms)
                device->goes = device->waits = true;
        }
    }
}

/* ---- its connection ---- */

static void register_plugin(struct taint_world *t, size_t resource)
{
    char socket[16];

    snprintf(socket, sizeof socket, "p%zu.sock", resource);
    devicemgr_register(t->core, t->now_ms, ++t->number, "v1beta1", socket, 0,
                       RESOURCES[resource].name);
    taint_shim_run(t);
}

void taint_plugin_opened(struct taint_world *t, uint64_t endpoint, const char *resource)
{
    t->plugins[taint_resource_find(resource)].dialled = endpoint;
}

static void forget_calls(struct taint_world *t, uint64_t endpoint)
{
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->calls[i].endpoint == endpoint)
            t->calls[i] = (struct tw_call){0};
    }
}

static void note_lost(struct taint_world *t, struct tw_plugin *plugin)
{
    forget_calls(t, plugin->endpoint);
    taint_plugins_age(t);
    plugin->endpoint = 0;
    plugin->lost_ms = t->now_ms;
}

void taint_plugin_closed(struct taint_world *t, uint64_t endpoint)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        struct tw_plugin *plugin = &t->plugins[r];

        if (plugin->dialled == endpoint)
            plugin->dialled = 0;
        if (plugin->endpoint == endpoint)
            note_lost(t, plugin);
    }
}

void taint_plugins_shim_started(struct taint_world *t)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        struct tw_plugin *plugin = &t->plugins[r];

        if (plugin->endpoint)
            note_lost(t, plugin);
        plugin->dialled = 0;
        plugin->closed = plugin->closed_in_store;
        plugin->acting = ~0u; /* those that are in the store */
        plugin->lost_ms = t->now_ms;
        for (size_t i = 0; i < TW_DEVICES_MAX; i++) {
            struct tw_device *device = &plugin->devices[i];

            device->since_ms = device->in_store.since_ms;
            device->from_ms = device->in_store.from_ms;
            device->waits = device->in_store.waits;
            device->goes = device->goes || device->recovered;
            if (device->recovered || device->in_store.from_ms > 0)
                device->said_healthy = false; /* nobody knows any more that it was said to be */
            device->recovered = device->carried = false;
        }
    }
    memset(t->calls, 0, sizeof t->calls);
}

static void lose(struct taint_world *t, size_t resource)
{
    struct tw_plugin *plugin = &t->plugins[resource];
    uint64_t endpoint = plugin->endpoint;

    plugin->up = false;
    if (!endpoint)
        return;
    note_lost(t, plugin);
    count_add(COUNT_TAINT_LOST);
    devicemgr_endpoint_lost(t->core, t->now_ms, endpoint, "it has gone");
    taint_shim_run(t);
}

/* The one that is dialled. */
static void connect_one(struct taint_world *t, size_t resource)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    struct tw_plugin *plugin = &t->plugins[resource];
    uint64_t endpoint = plugin->dialled;

    plugin->dialled = 0;
    if (!plugin->up) {
        devicemgr_endpoint_lost(t->core, t->now_ms, endpoint, "nobody is there");
        taint_shim_run(t);
        return;
    }
    devicemgr_endpoint_options(t->core, t->now_ms, endpoint, &options);
    plugin->endpoint = endpoint;
    plugin->listed_ms = t->now_ms;
    list(t, resource);
}

/* What was given up is, as the plugin says before it goes. */
static void mend(struct taint_world *t, size_t resource)
{
    struct tw_plugin *plugin = &t->plugins[resource];

    for (size_t i = 0; i < RESOURCES[resource].devices; i++)
        plugin->devices[i].healthy |= plugin->acting >> i & 1;
    list(t, resource);
    lose(t, resource);
}

void taint_plugin_acts(struct taint_world *t, size_t resource)
{
    struct tw_plugin *plugin = &t->plugins[resource];

    if (!plugin->up) {
        plugin->up = true;
        register_plugin(t, resource);
    } else if (plugin->closed && plugin->endpoint && rng_percent(&t->rng, 30)) {
        mend(t, resource);
    } else if (rng_percent(&t->rng, 15)) {
        lose(t, resource);
    } else {
        bool all = rng_percent(&t->rng, 8), to = rng_percent(&t->rng, 50);
        size_t one = rng_below(&t->rng, RESOURCES[resource].devices);

        for (size_t i = 0; i < RESOURCES[resource].devices; i++) {
            if (all || i == one)
                plugin->devices[i].healthy = to;
        }
        if (plugin->endpoint)
            list(t, resource);
    }
}

void taint_device_acts(struct taint_world *t, const struct tw_pod *pod)
{
    struct tw_plugin *plugin = &t->plugins[pod->resource];
    unsigned sick = 0;

    if (!pod->there || pod->kind == TW_CLAIM || !pod->mask || !plugin->endpoint)
        return;
    for (size_t i = 0; i < RESOURCES[pod->resource].devices; i++) {
        sick |= plugin->devices[i].healthy ? 0 : 1u << i;
        plugin->devices[i].healthy = true;
    }
    if (!sick)
        plugin->devices[__builtin_ctz(pod->mask)].healthy = false;
    list(t, pod->resource);
}

void taint_plugins_heal(struct taint_world *t)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        for (size_t i = 0; i < RESOURCES[r].devices; i++)
            t->plugins[r].devices[i].healthy = true;
        if (t->plugins[r].endpoint)
            list(t, r);
    }
}

/* ---- its calls ---- */

void taint_plugin_called(struct taint_world *t, uint64_t endpoint, uint64_t call, unsigned mask)
{
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->calls[i].number)
            continue;
        t->calls[i] = (struct tw_call){.number = call, .endpoint = endpoint, .mask = mask};
        break;
    }
}

void taint_plugin_call_cancelled(struct taint_world *t, uint64_t call)
{
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->calls[i].number == call)
            t->calls[i] = (struct tw_call){0};
    }
}

static void answer(struct taint_world *t, struct tw_call *slot)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options = answer_options_new();
    struct tw_call call = *slot;
    char mask[16];

    *slot = (struct tw_call){0};
    snprintf(mask, sizeof mask, "%u", call.mask);
    answer_options_add_env(options, "MASK", mask);
    response.container_responses = &options;
    response.n_container_responses = 1;
    devicemgr_allocated(t->core, t->now_ms, call.number, 0, NULL, &response);
    answer_options_free(options);
    taint_shim_run(t);
}

void taint_plugins_proceed(struct taint_world *t)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        if (t->plugins[r].dialled)
            connect_one(t, r);
        else if (t->calm && !t->plugins[r].up)
            taint_plugin_acts(t, r);
    }
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->calls[i].number)
            answer(t, &t->calls[i]);
    }
}
