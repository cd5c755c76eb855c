#include "tests/unit/plugin_fixture.h"

#include <dirent.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"

static void note_ids(struct plugin *plugin, char **ids, size_t len)
{
    size_t at = 0;

    plugin->ids[0] = '\0';
    for (size_t i = 0; i < len; i++)
        at += (size_t)snprintf(plugin->ids + at, sizeof plugin->ids - at, "%s%s", i ? "," : "",
                               ids[i]);
}

static void on_held_cancelled(void *user)
{
    struct plugin *plugin = user;

    plugin->held = NULL;
    plugin->cancelled++;
}

static void finish(struct plugin *plugin, struct rpc_incoming *call,
                   const ProtobufCMessage *response, int code)
{
    if (plugin->hold) {
        plugin->held = call;
        rpc_incoming_on_cancel(call, on_held_cancelled, plugin);
        return;
    }
    incoming_answer(call, response, code, "the plugin says no");
}

static void on_options(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    struct plugin *plugin = user;

    (void)message;
    options.pre_start_required = plugin->pre_start;
    options.get_preferred_allocation_available = plugin->prefers;
    finish(plugin, call, &options.base, plugin->options_code);
}

static void on_stream_cancelled(void *user)
{
    struct plugin *plugin = user;

    plugin->stream = NULL;
    plugin->streams_over++;
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct plugin *plugin = user;

    (void)message;
    plugin->stream = call;
    plugin->streams++;
    rpc_incoming_on_cancel(call, on_stream_cancelled, plugin);
}

static void answer_allocate(struct plugin *plugin, struct rpc_incoming *call)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry env =
        V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
    V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
    V1beta1__ContainerAllocateResponse container = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *containers[] = {&container};
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;

    env.key = (char *)"DEVICE";
    env.value = (char *)(plugin->env ? plugin->env : "");
    container.n_envs = 1;
    container.envs = envs;
    response.n_container_responses = 1;
    response.container_responses = containers;
    finish(plugin, call, &response.base, plugin->code);
}

static void on_allocate(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__AllocateRequest *request = (const void *)message;
    struct plugin *plugin = user;

    plugin->allocates++;
    assert_int_equal(request->n_container_requests, 1);
    note_ids(plugin, request->container_requests[0]->devices_ids,
             request->container_requests[0]->n_devices_ids);
    answer_allocate(plugin, call);
}

/* Prefers the last of what is available. */
static void on_prefer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__PreferredAllocationRequest *request = (const void *)message;
    const V1beta1__ContainerPreferredAllocationRequest *asked = request->container_requests[0];
    V1beta1__ContainerPreferredAllocationResponse container =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse *containers[] = {&container};
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    struct plugin *plugin = user;

    plugin->prefers_seen++;
    note_ids(plugin, asked->must_include_deviceids, asked->n_must_include_deviceids);
    container.n_deviceids = (size_t)asked->allocation_size;
    container.deviceids =
        asked->available_deviceids + asked->n_available_deviceids - (size_t)asked->allocation_size;
    response.n_container_responses = 1;
    response.container_responses = containers;
    finish(plugin, call, &response.base, plugin->code);
}

static void on_prestart(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__PreStartContainerRequest *request = (const void *)message;
    V1beta1__PreStartContainerResponse response = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;
    struct plugin *plugin = user;

    plugin->prestarts++;
    note_ids(plugin, request->devices_ids, request->n_devices_ids);
    finish(plugin, call, &response.base, plugin->code);
}

static const struct rpc_method METHODS[] = {
    {DEVICEPLUGIN_LIST_AND_WATCH, &v1beta1__empty__descriptor, on_watch},
    {DEVICEPLUGIN_ALLOCATE, &v1beta1__allocate_request__descriptor, on_allocate},
    {DEVICEPLUGIN_GET_PREFERRED_ALLOCATION, &v1beta1__preferred_allocation_request__descriptor,
     on_prefer},
    {DEVICEPLUGIN_PRE_START_CONTAINER, &v1beta1__pre_start_container_request__descriptor,
     on_prestart},
    {DEVICEPLUGIN_GET_OPTIONS, &v1beta1__empty__descriptor, on_options}, /* last, see below */
};

void plugin_serve_in(struct plugin *plugin, struct world *world, const char *dir, const char *name)
{
    size_t methods = sizeof METHODS / sizeof *METHODS - (plugin->without_options ? 1 : 0);

    snprintf(plugin->path, sizeof plugin->path, "%s/%s", dir, name);
    assert_int_equal(
        serve_at(&world->loop, plugin->path, METHODS, methods, plugin, &plugin->server), 0);
}

void plugin_serve(struct plugin *plugin, struct world *world, const char *name)
{
    plugin_serve_in(plugin, world, world->dir, name);
}

void plugin_list(struct plugin *plugin, const char *ids)
{
    V1beta1__Device devices[16], *pointers[16];
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    char text[256], *rest = text, *id;

    snprintf(text, sizeof text, "%s", ids);
    list.devices = pointers;
    while ((id = strsep(&rest, ",")) != NULL) {
        V1beta1__Device *device = &devices[list.n_devices];

        v1beta1__device__init(device);
        device->health = (char *)(id[0] == '!' ? "Unhealthy" : "Healthy");
        device->id = id[0] == '!' ? id + 1 : id;
        pointers[list.n_devices++] = device;
    }
    assert_non_null(plugin->stream);
    assert_int_equal(rpc_incoming_send(plugin->stream, &list.base), 0);
}

void plugin_end_stream(struct plugin *plugin, int code, const char *message)
{
    assert_non_null(plugin->stream);
    rpc_incoming_finish(plugin->stream, code, message);
    plugin->stream = NULL;
}

void plugin_stop(struct plugin *plugin)
{
    rpc_server_close(plugin->server);
    plugin->server = NULL;
    plugin->stream = plugin->held = NULL;
}

/* ---- Register ---- */

struct registering {
    bool done;
    int code;
    char *message;
    size_t message_bytes;
};

static void on_registered(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct registering *r = user;

    (void)call;
    r->done = true;
    r->code = status->code;
    if (r->message)
        snprintf(r->message, r->message_bytes, "%s", status->message);
}

static void on_empty(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

int plugin_register(struct world *world, const char *path, const char *socket_name,
                    const char *resource, char *message, size_t message_bytes)
{
    static const struct rpc_channel_ops channel_ops = {0};
    static const struct rpc_call_ops call_ops = {.message = on_empty, .done = on_registered};
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct registering r = {.message = message, .message_bytes = message_bytes};
    struct rpc_channel *channel;

    request.version = (char *)DEVICEPLUGIN_VERSION;
    request.endpoint = (char *)socket_name;
    request.resource_name = (char *)resource;
    assert_int_equal(rpc_channel_open(&world->loop, path, &channel_ops, NULL, &channel), 0);
    assert_non_null(rpc_channel_call(channel, DEVICEPLUGIN_REGISTER, &request.base,
                                     &v1beta1__empty__descriptor, false, 0, &call_ops, &r));
    WAIT(world, r.done);
    rpc_channel_close(channel);
    return r.code;
}

void plugin_come(struct plugin *plugin, struct world *world, const char *dir, const char *name,
                 const char *resource)
{
    char path[96];

    plugin_serve_in(plugin, world, dir, name);
    snprintf(path, sizeof path, "%s/kubelet.sock", dir);
    assert_int_equal(plugin_register(world, path, name, resource, NULL, 0), RPC_OK);
}

void plugin_come_listing(struct plugin *plugin, struct world *world, const char *dir,
                         const char *name, const char *resource, const char *ids)
{
    plugin_come(plugin, world, dir, name, resource);
    WAIT(world, plugin->stream);
    plugin_list(plugin, ids);
}

/* ---- files ---- */

void remove_dir(const char *dir)
{
    DIR *stream = opendir(dir);
    char path[512];

    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(path), 0);
    }
    if (stream)
        closedir(stream);
    rmdir(dir);
}
