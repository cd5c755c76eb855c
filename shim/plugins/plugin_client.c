#include "shim/plugins/plugin_client.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/methods.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

#define REASON_BYTES_MAX (RPC_STATUS_TEXT_BYTES_MAX + 256)
/* Pauses between dials: doubled up to the longest, so that a plugin that is a few ms late costs
 * only those. */
#define REDIAL_MS_MIN 2
#define REDIAL_MS_MAX 100

enum client_state {
    CLIENT_WAITING,
    CLIENT_DIALLING,
    CLIENT_ASKING,
    CLIENT_STREAMING,
};

enum call_kind {
    CALL_ALLOCATE,
    CALL_PREFER,
    CALL_PRESTART,
};

struct plugin_client {
    struct plugin_clients *set;
    UT_hash_handle hh;
    uint64_t number;
    enum client_state state;
    char *path;
    uid_t uid;
    bool patient;
    uint64_t since_ms; /* of the first dial, on the loop's clock */
    uint64_t pause_ms;
    uv_timer_t timer;
    struct rpc_channel *channel;
    ProtobufCMessage *options;
};

struct plugin_call {
    struct plugin_clients *set;
    UT_hash_handle hh;
    uint64_t number;
    enum call_kind kind;
    struct plugin_client *client; /* NULL: could not be made, waits to be told so */
    struct rpc_call *rpc;
    ProtobufCMessage *response;
};

struct plugin_clients {
    uv_loop_t *loop;
    char *dir;
    const struct plugin_clients_ops *ops;
    void *user;
    struct plugin_client *clients;
    struct plugin_call *calls;
    uv_timer_t unmade; /* tells the ends of calls that could not be made */
    unsigned handles;  /* timers not yet closed */
    void (*done)(void *user);
    void *done_user;
};

static void client_close(struct plugin_client *client);

/* ---- the set's life ---- */

static void set_release(struct plugin_clients *set)
{
    void (*done)(void *user) = set->done;
    void *user = set->done_user;

    if (--set->handles > 0)
        return;
    free(set->dir);
    free(set);
    done(user);
}

static void on_set_timer_closed(uv_handle_t *handle)
{
    set_release(handle->data);
}

static void on_client_timer_closed(uv_handle_t *handle)
{
    struct plugin_client *client = handle->data;
    struct plugin_clients *set = client->set;

    free(client->path);
    free(client);
    set_release(set);
}

struct plugin_clients *plugin_clients_new(uv_loop_t *loop, const char *plugin_dir,
                                          const struct plugin_clients_ops *ops, void *user)
{
    struct plugin_clients *set = must(calloc(1, sizeof *set));

    set->loop = loop;
    set->dir = must(strdup(plugin_dir));
    set->ops = ops;
    set->user = user;
    uv_timer_init(loop, &set->unmade);
    set->unmade.data = set;
    set->handles = 1;
    return set;
}

static void message_free(ProtobufCMessage *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

/* ---- calls ---- */

static void call_free(struct plugin_call *call)
{
    HASH_DELETE(hh, call->set->calls, call);
    message_free(call->response);
    free(call);
}

/* Tells the end of a call; the call is freed first, since its owner may do anything. */
static void call_end(struct plugin_call *call, int code, const char *message)
{
    const struct plugin_clients_ops *ops = call->set->ops;
    ProtobufCMessage *response = code == RPC_OK ? call->response : NULL;
    enum call_kind kind = call->kind;
    uint64_t number = call->number;
    void *user = call->set->user;

    if (response)
        call->response = NULL;
    call_free(call);
    switch (kind) {
    case CALL_ALLOCATE:
        ops->allocated(user, number, code, message, (V1beta1__AllocateResponse *)response);
        break;
    case CALL_PREFER:
        ops->preferred(user, number, code, message,
                       (V1beta1__PreferredAllocationResponse *)response);
        break;
    case CALL_PRESTART:
        ops->prestarted(user, number, code, message);
        break;
    }
    message_free(response);
}

static void on_call_message(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    struct plugin_call *call = user;

    (void)rpc;
    message_free(call->response);
    call->response = must_copy(message);
}

static void on_call_done(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    struct plugin_call *call = user;

    (void)rpc;
    call->rpc = NULL;
    call_end(call, status->code, status->message);
}

static const struct rpc_call_ops CALL_OPS = {.message = on_call_message, .done = on_call_done};

static void on_unmade(uv_timer_t *timer)
{
    struct plugin_clients *set = timer->data;
    struct plugin_call *call, *next;

    /* One at a time: the callback may add and take away others. */
    HASH_ITER(hh, set->calls, call, next)
    {
        if (call->rpc)
            continue;
        uv_timer_start(&set->unmade, on_unmade, 0, 0);
        call_end(call, RPC_UNAVAILABLE, "the plugin's connection is gone");
        return;
    }
}

static void call_start(struct plugin_clients *set, uint64_t endpoint, uint64_t number,
                       enum call_kind kind, const ProtobufCMessage *request, uint64_t timeout_ms)
{
    static const struct {
        const char *path;
        const ProtobufCMessageDescriptor *response;
    } methods[] = {
        [CALL_ALLOCATE] = {DEVICEPLUGIN_ALLOCATE, &v1beta1__allocate_response__descriptor},
        [CALL_PREFER] = {DEVICEPLUGIN_GET_PREFERRED_ALLOCATION,
                         &v1beta1__preferred_allocation_response__descriptor},
        [CALL_PRESTART] = {DEVICEPLUGIN_PRE_START_CONTAINER,
                           &v1beta1__pre_start_container_response__descriptor},
    };
    struct plugin_call *call = must(calloc(1, sizeof *call));
    struct plugin_client *client;

    call->set = set;
    call->number = number;
    call->kind = kind;
    HASH_ADD(hh, set->calls, number, sizeof call->number, call);
    HASH_FIND(hh, set->clients, &endpoint, sizeof endpoint, client);
    if (client && client->channel && client->state == CLIENT_STREAMING)
        call->rpc =
            rpc_channel_call(client->channel, methods[kind].path, request, methods[kind].response,
                             0, timeout_ms ? timeout_ms : 1, &CALL_OPS, call);
    if (call->rpc)
        call->client = client;
    else
        uv_timer_start(&set->unmade, on_unmade, 0, 0);
}

void plugin_clients_allocate(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                             const char *const *ids, size_t ids_len, uint64_t timeout_ms)
{
    V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
    V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
    V1beta1__ContainerAllocateRequest *containers[] = {&container};

    container.n_devices_ids = ids_len;
    container.devices_ids = (char **)ids;
    request.n_container_requests = 1;
    request.container_requests = containers;
    call_start(clients, endpoint, call, CALL_ALLOCATE, &request.base, timeout_ms);
}

void plugin_clients_prefer(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                           const char *const *available, size_t available_len,
                           const char *const *must_include, size_t must_include_len, size_t size,
                           uint64_t timeout_ms)
{
    V1beta1__PreferredAllocationRequest request = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
    V1beta1__ContainerPreferredAllocationRequest container =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
    V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};

    container.n_available_deviceids = available_len;
    container.available_deviceids = (char **)available;
    container.n_must_include_deviceids = must_include_len;
    container.must_include_deviceids = (char **)must_include;
    container.allocation_size = size > INT32_MAX ? INT32_MAX : (int32_t)size;
    request.n_container_requests = 1;
    request.container_requests = containers;
    call_start(clients, endpoint, call, CALL_PREFER, &request.base, timeout_ms);
}

void plugin_clients_prestart(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                             const char *const *ids, size_t ids_len, uint64_t timeout_ms)
{
    V1beta1__PreStartContainerRequest request = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;

    request.n_devices_ids = ids_len;
    request.devices_ids = (char **)ids;
    call_start(clients, endpoint, call, CALL_PRESTART, &request.base, timeout_ms);
}

void plugin_clients_cancel(struct plugin_clients *clients, uint64_t number)
{
    struct plugin_call *call;

    HASH_FIND(hh, clients->calls, &number, sizeof number, call);
    if (!call)
        return;
    rpc_call_cancel(call->rpc);
    call_free(call);
}

/* ---- one client ---- */

static void client_set_state(struct plugin_client *client, enum client_state state)
{
    if (state == CLIENT_WAITING)
        assert(client->state <= CLIENT_DIALLING);
    else
        assert(client->state == state - 1);
    client->state = state;
}

/* Its memory stays until libuv is done with the timer. */
static void client_lost(struct plugin_client *client, const char *reason)
{
    client_close(client);
    client->set->ops->lost(client->set->user, client->number, reason);
}

static void on_dial(uv_timer_t *timer);

/* Dials again if there is reason to hope, else it is lost. */
static void client_dial_failed(struct plugin_client *client, const char *reason)
{
    char text[REASON_BYTES_MAX];

    snprintf(text, sizeof text, "cannot connect to %s: %s", client->path, reason);
    if (!client->patient || uv_now(client->set->loop) - client->since_ms >= PLUGIN_DIAL_MS_MAX) {
        client_lost(client, text);
        return;
    }
    client_set_state(client, CLIENT_WAITING);
    uv_timer_start(&client->timer, on_dial, client->pause_ms, 0);
    client->pause_ms = client->pause_ms * 2 < REDIAL_MS_MAX ? client->pause_ms * 2 : REDIAL_MS_MAX;
}

static void on_list(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    struct plugin_client *client = user;

    (void)rpc;
    client->set->ops->list(client->set->user, client->number,
                           (const V1beta1__ListAndWatchResponse *)message);
}

static void on_stream_done(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    struct plugin_client *client = user;
    char text[REASON_BYTES_MAX];

    (void)rpc;
    if (status->code == RPC_OK)
        snprintf(text, sizeof text, "the plugin ended ListAndWatch");
    else
        snprintf(text, sizeof text, "ListAndWatch ended %s: %s", rpc_code_name(status->code),
                 status->message);
    client_lost(client, text);
}

static const struct rpc_call_ops STREAM_OPS = {.message = on_list, .done = on_stream_done};

/* The stream is opened before the options are told: their owner may close the client. */
static void client_stream(struct plugin_client *client)
{
    static const V1beta1__DevicePluginOptions none = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    ProtobufCMessage *options = client->options;

    client->options = NULL;
    if (rpc_channel_call(client->channel, DEVICEPLUGIN_LIST_AND_WATCH, &empty.base,
                         &v1beta1__list_and_watch_response__descriptor, 1, 0, &STREAM_OPS,
                         client)) {
        client_set_state(client, CLIENT_STREAMING);
        client->set->ops->options(client->set->user, client->number,
                                  options ? (const V1beta1__DevicePluginOptions *)options : &none);
    } else {
        client_lost(client, "ListAndWatch could not be called");
    }
    message_free(options);
}

static void on_options(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    struct plugin_client *client = user;

    (void)rpc;
    message_free(client->options);
    client->options = must_copy(message);
}

static void on_options_done(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    struct plugin_client *client = user;
    char text[REASON_BYTES_MAX];

    (void)rpc;
    /* A plugin without the method has no options. */
    if (status->code == RPC_OK || status->code == RPC_UNIMPLEMENTED) {
        client_stream(client);
        return;
    }
    snprintf(text, sizeof text, "failed to get device plugin options: %s: %s",
             rpc_code_name(status->code), status->message);
    client_lost(client, text);
}

static const struct rpc_call_ops OPTIONS_OPS = {.message = on_options, .done = on_options_done};

static void on_connected(struct rpc_channel *channel, void *user)
{
    struct plugin_client *client = user;
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    uid_t uid;

    if (rpc_channel_peer_uid(channel, &uid) < 0 || (uid != 0 && uid != client->uid)) {
        client_lost(client, "the socket is served by neither root nor the user who registered");
        return;
    }
    client_set_state(client, CLIENT_ASKING);
    if (!rpc_channel_call(channel, DEVICEPLUGIN_GET_OPTIONS, &empty.base,
                          &v1beta1__device_plugin_options__descriptor, 0, PLUGIN_OPTIONS_MS_MAX,
                          &OPTIONS_OPS, client))
        client_lost(client, "GetDevicePluginOptions could not be called");
}

/* A connection that stood has ended its call or stream before, and that the client. */
static void on_channel_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct plugin_client *client = user;

    client->channel = NULL;
    client_dial_failed(client, reason);
    rpc_channel_close(channel);
}

static const struct rpc_channel_ops CHANNEL_OPS = {.connected = on_connected,
                                                   .lost = on_channel_lost};

/* NULL, or what is wrong with the socket's file. What a symlink points to may be another's, and
 * whoever may write into the directory could put one there. */
static const char *check_socket(const struct plugin_client *client, const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return "it is a symlink; expected a socket";
    if (!S_ISSOCK(st->st_mode))
        return "it is no socket";
    if (st->st_uid != 0 && st->st_uid != client->uid)
        return "it belongs to neither root nor the user who registered";
    return NULL;
}

static void on_dial(uv_timer_t *timer)
{
    struct plugin_client *client = timer->data;
    const char *wrong;
    struct stat st;
    int r;

    if (lstat(client->path, &st) < 0) {
        client_dial_failed(client, strerror(errno));
        return;
    }
    wrong = check_socket(client, &st);
    if (wrong) {
        char text[REASON_BYTES_MAX];

        snprintf(text, sizeof text, "cannot connect to %s: %s", client->path, wrong);
        client_lost(client, text);
        return;
    }
    client_set_state(client, CLIENT_DIALLING);
    r = rpc_channel_open(client->set->loop, client->path, &CHANNEL_OPS, client, &client->channel);
    if (r < 0)
        client_dial_failed(client, strerror(-r));
}

void plugin_clients_open(struct plugin_clients *clients, uint64_t endpoint, const char *socket_name,
                         uid_t uid, bool patient)
{
    struct plugin_client *client = must(calloc(1, sizeof *client));

    client->set = clients;
    client->number = endpoint;
    if (asprintf(&client->path, "%s/%s", clients->dir, socket_name) < 0)
        abort();
    client->uid = uid;
    client->patient = patient;
    client->since_ms = uv_now(clients->loop);
    client->pause_ms = REDIAL_MS_MIN;
    uv_timer_init(clients->loop, &client->timer);
    client->timer.data = client;
    clients->handles++;
    HASH_ADD(hh, clients->clients, number, sizeof client->number, client);
    uv_timer_start(&client->timer, on_dial, 0, 0);
}

static void client_close(struct plugin_client *client)
{
    struct plugin_call *call, *next;

    HASH_DELETE(hh, client->set->clients, client);
    HASH_ITER(hh, client->set->calls, call, next)
    {
        if (call->client == client)
            call_free(call);
    }
    rpc_channel_close(client->channel); /* ends its calls without a callback */
    message_free(client->options);
    uv_close((uv_handle_t *)&client->timer, on_client_timer_closed);
}

void plugin_clients_close(struct plugin_clients *clients, uint64_t endpoint)
{
    struct plugin_client *client;

    HASH_FIND(hh, clients->clients, &endpoint, sizeof endpoint, client);
    if (client)
        client_close(client);
}

void plugin_clients_stop(struct plugin_clients *clients, void (*done)(void *user), void *user)
{
    struct plugin_client *client, *next_client;
    struct plugin_call *call, *next_call;

    clients->done = done;
    clients->done_user = user;
    HASH_ITER(hh, clients->clients, client, next_client)
    client_close(client);
    HASH_ITER(hh, clients->calls, call, next_call)
    call_free(call); /* those that could not be made */
    uv_close((uv_handle_t *)&clients->unmade, on_set_timer_closed);
}
