/*
 * The plugins of lifted resources: what they list, and answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/answer_options.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define FEW 6
/* More than two slices have. */
#define MANY_PERCENT 20
#define NODES 3

/* The second, and its ids, are no names as the API has them. */
static const char *const RESOURCES[LW_RESOURCES] = {"a.com/gpu", "b.com/NIC_fast"};

const char *lift_resource_name(size_t resource)
{
    return RESOURCES[resource];
}

size_t lift_resource_find(const char *name)
{
    size_t r = 0;

    while (r < LW_RESOURCES && strcmp(RESOURCES[r], name) != 0)
        r++;
    return r;
}

void lift_device_id(size_t resource, size_t device, char id[LW_ID_BYTES])
{
    if (resource == 0)
        snprintf(id, LW_ID_BYTES, "g%zu", device);
    else
        snprintf(id, LW_ID_BYTES, "Port_%zu", device);
}

size_t lift_device_find(size_t resource, const char *id)
{
    char is[LW_ID_BYTES];
    size_t device = strtoul(id + strcspn(id, "0123456789"), NULL, 10);

    if (device >= LW_DEVICES)
        return LW_DEVICES;
    lift_device_id(resource, device, is);
    return strcmp(is, id) == 0 ? device : LW_DEVICES;
}

const char *lift_device_model(size_t device)
{
    return device % 2 == 1 ? "odd" : "even";
}

/* ---- what it lists ---- */

static int any_node(struct lift_world *h)
{
    return (int)rng_below(&h->rng, NODES + 1) - 1;
}

void lift_plugins_begin(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        struct lw_resource *resource = &h->resources[r];

        resource->devices = rng_percent(&h->rng, MANY_PERCENT) ? LW_DEVICES : FEW;
        resource->lifted = resource->ever = rng_percent(&h->rng, 70);
        resource->version = 1;
        for (size_t i = 0; i < resource->devices; i++)
            resource->device[i] = (struct lw_device){
                .listed = rng_percent(&h->rng, 80), .healthy = true, .node = any_node(h)};
    }
}

static void list(struct lift_world *h, size_t r)
{
    struct lw_resource *resource = &h->resources[r];
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device devices[LW_DEVICES], *v[LW_DEVICES];
    V1beta1__TopologyInfo infos[LW_DEVICES];
    V1beta1__NUMANode nodes[LW_DEVICES], *of[LW_DEVICES];
    char ids[LW_DEVICES][LW_ID_BYTES];

    for (size_t i = 0; i < resource->devices; i++) {
        struct lw_device *device = &resource->device[i];
        V1beta1__Device *to = &devices[message.n_devices];

        device->said = device->listed;
        device->said_healthy = device->healthy;
        device->said_node = device->node;
        if (!device->listed)
            continue;
        v1beta1__device__init(to);
        lift_device_id(r, i, ids[i]);
        to->id = ids[i];
        to->health = (char *)(device->healthy ? "Healthy" : "Unhealthy");
        if (device->node >= 0) {
            v1beta1__numanode__init(&nodes[i]);
            nodes[i].id = device->node;
            of[i] = &nodes[i];
            v1beta1__topology_info__init(&infos[i]);
            infos[i].nodes = &of[i];
            infos[i].n_nodes = 1;
            to->topology = &infos[i];
        }
        v[message.n_devices++] = to;
    }
    message.devices = v;
    resource->listed = true;
    lift_note(h, "plugin %zu lists %zu devices", r, message.n_devices);
    devicemgr_endpoint_list(h->core, h->now_ms, resource->endpoint, &message);
    lift_shim_run(h);
}

/* ---- its connection ---- */

static void register_plugin(struct lift_world *h, size_t r)
{
    char socket[16];

    snprintf(socket, sizeof socket, "p%zu.sock", r);
    lift_note(h, "plugin %zu registers", r);
    devicemgr_register(h->core, h->now_ms, ++h->number, "v1beta1", socket, 0, RESOURCES[r]);
    lift_shim_run(h);
}

void lift_plugin_opened(struct lift_world *h, uint64_t endpoint, const char *resource)
{
    h->resources[lift_resource_find(resource)].dialled = endpoint;
}

static void note_lost(struct lift_world *h, struct lw_resource *resource)
{
    for (size_t i = 0; i < LW_CALLS; i++) {
        if (h->calls[i].endpoint == resource->endpoint)
            h->calls[i] = (struct lw_call){0};
    }
    resource->endpoint = 0;
    resource->lost_ms = h->now_ms;
}

void lift_plugin_closed(struct lift_world *h, uint64_t endpoint)
{
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        struct lw_resource *resource = &h->resources[r];

        if (resource->dialled == endpoint)
            resource->dialled = 0;
        if (resource->endpoint == endpoint)
            note_lost(h, resource);
    }
}

void lift_plugins_shim_started(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        struct lw_resource *resource = &h->resources[r];

        resource->dialled = resource->endpoint = 0;
        resource->listed = false;
        resource->lost_ms = h->now_ms;
    }
    memset(h->calls, 0, sizeof h->calls);
    memset(h->checks, 0, sizeof h->checks);
}

static void lose(struct lift_world *h, size_t r)
{
    struct lw_resource *resource = &h->resources[r];
    uint64_t endpoint = resource->endpoint;

    resource->up = false;
    if (rng_percent(&h->rng, 40)) {
        resource->version++; /* another one comes back */
        count_add(COUNT_LIFT_PLUGIN_UPGRADED);
    }
    if (!endpoint)
        return;
    note_lost(h, resource);
    lift_note(h, "plugin %zu is lost", r);
    devicemgr_endpoint_lost(h->core, h->now_ms, endpoint, "it has gone");
    lift_shim_run(h);
}

static void connect_one(struct lift_world *h, size_t r)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    struct lw_resource *resource = &h->resources[r];
    uint64_t endpoint = resource->dialled;

    resource->dialled = 0;
    if (!resource->up) {
        devicemgr_endpoint_lost(h->core, h->now_ms, endpoint, "nobody is there");
        lift_shim_run(h);
        return;
    }
    resource->endpoint = endpoint;
    devicemgr_endpoint_options(h->core, h->now_ms, endpoint, &options);
    list(h, r);
}

/* All from one on come, or go. */
static void change_many(struct lift_world *h, struct lw_resource *resource)
{
    bool listed = rng_percent(&h->rng, 50);

    for (size_t i = rng_below(&h->rng, resource->devices); i < resource->devices; i++)
        resource->device[i].listed = listed;
}

/* Of few devices one changes; of many some, which may shift others into another slice, or so many
 * that there are more slices, or fewer. */
static void change(struct lift_world *h, size_t r)
{
    struct lw_resource *resource = &h->resources[r];
    bool many = resource->devices > FEW;
    size_t times = many ? rng_between(&h->rng, 1, 20) : 1;

    if (many && rng_percent(&h->rng, 40))
        change_many(h, resource);
    while (times-- > 0) {
        struct lw_device *device = &resource->device[rng_below(&h->rng, resource->devices)];

        switch (rng_below(&h->rng, 4)) {
        case 0:
            device->listed = !device->listed || rng_percent(&h->rng, 60);
            count_add(device->listed ? COUNT_LIFT_CAME : COUNT_LIFT_WENT);
            break;
        case 1:
            device->node = any_node(h);
            break;
        default:
            device->healthy = !device->healthy;
            break;
        }
    }
    if (resource->endpoint)
        list(h, r);
}

void lift_plugin_acts(struct lift_world *h, size_t r)
{
    struct lw_resource *resource = &h->resources[r];

    if (!resource->up) {
        resource->up = true;
        register_plugin(h, r);
    } else if (rng_percent(&h->rng, 20)) {
        lose(h, r);
    } else {
        change(h, r);
    }
}

void lift_plugins_heal(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES && !*h->w->broken; r++) {
        struct lw_resource *resource = &h->resources[r];

        for (size_t i = 0; i < resource->devices; i++)
            resource->device[i].listed = resource->device[i].healthy = true;
        if (resource->endpoint)
            list(h, r);
        else if (!resource->up)
            lift_plugin_acts(h, r);
    }
}

/* ---- its calls ---- */

void lift_plugin_called(struct lift_world *h, uint64_t endpoint, uint64_t call,
                        const char *const *ids, size_t ids_len)
{
    struct lw_call is = {.number = call, .endpoint = endpoint};
    size_t slot = 0, len = 0;

    while (is.resource < LW_RESOURCES && h->resources[is.resource].endpoint != endpoint)
        is.resource++;
    check_that(h->w, is.resource < LW_RESOURCES, "only a plugin that is there is called");
    if (is.resource == LW_RESOURCES)
        return;
    for (size_t i = 0; i < ids_len; i++) {
        size_t device = lift_device_find(is.resource, ids[i]);

        check_that(h->w, device < LW_DEVICES && h->resources[is.resource].device[device].said,
                   "a plugin is asked for what it lists: %s", ids[i]);
        len += (size_t)snprintf(is.ids + len, sizeof is.ids - len, "%s,", ids[i]);
    }
    lift_note(h, "plugin %zu is asked for %s by %llu", is.resource, is.ids,
              (unsigned long long)call);
    while (slot < LW_CALLS && h->calls[slot].number)
        slot++;
    if (slot == LW_CALLS)
        abort();
    h->calls[slot] = is;
}

void lift_plugin_call_cancelled(struct lift_world *h, uint64_t call)
{
    for (size_t i = 0; i < LW_CALLS; i++) {
        if (h->calls[i].number == call)
            h->calls[i] = (struct lw_call){0};
    }
}

/* With the ids, and its version. */
static void answer(struct lift_world *h, struct lw_call *slot)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options = answer_options_new();
    struct lw_call call = *slot;
    char key[16], value[sizeof call.ids + 16];

    *slot = (struct lw_call){0};
    snprintf(key, sizeof key, "DEV_%zu", call.resource);
    snprintf(value, sizeof value, "%sv%u", call.ids, h->resources[call.resource].version);
    answer_options_add_env(options, key, value);
    response.container_responses = &options;
    response.n_container_responses = 1;
    if (!h->calm && rng_percent(&h->rng, 8))
        devicemgr_allocated(h->core, h->now_ms, call.number, 2, "it failed", NULL);
    else
        devicemgr_allocated(h->core, h->now_ms, call.number, 0, NULL, &response);
    answer_options_free(options);
    lift_shim_run(h);
}

void lift_plugins_proceed(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES && !*h->w->broken; r++) {
        if (h->resources[r].dialled)
            connect_one(h, r);
        else if (h->calm && !h->resources[r].up)
            lift_plugin_acts(h, r);
        else if (h->calm && !h->resources[r].endpoint)
            register_plugin(h, r); /* as it sees that the socket is another */
    }
    for (size_t i = 0; i < LW_CALLS && !*h->w->broken; i++) {
        if (h->calls[i].number)
            answer(h, &h->calls[i]);
    }
}
