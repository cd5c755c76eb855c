#include "shim/plugins/plugin_client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/methods.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/pause.h"
#include "shim/plugins/extra_channels.h"
#include "shim/plugins/left_streams.h"
#include "shim/plugins/limits.h"
#include "shim/plugins/plugin_socket.h"
#include "shim/program.h"
#include "shim/rpc/message.h"
#include "shim/rpc/numbered.h"
#include "shim/rpc/rpc.h"
#include "shim/rpc/unix_socket.h"
#include "shim/stopping.h"

#define REASON_BYTES_MAX (RPC_STATUS_TEXT_BYTES_MAX + 256)
/* Pauses between dials: doubled up to the longest, so that a plugin that is a few ms late costs
 * only those. */
#define REDIAL_MS_MIN 2
#define REDIAL_MS_MAX 100
/* A stream without a list after that may wait for what one that was left holds. */
#define UNLISTED_MS_MAX 5000
/* How long it may take to say what it says at once. */
#define BESIDES_MS_MAX 5000
/* When a service manager that is busy is told again of a stream that it is to keep. */
#define LEAVE_AGAIN_MS 1000
/* Who has registered is dialled within that. */
#define OUTDATED_MS 1000

enum client_state {
    CLIENT_WAITING,
    CLIENT_ASKING,
    CLIENT_STREAMING,
};

struct plugin_client {
    struct plugin_clients *set;
    UT_hash_handle hh;
    uint64_t number;
    enum client_state state;
    char *path;
    uid_t uid;
    enum plugin_dial dial;
    uint64_t since_ms; /* of the first dial, on the loop's clock */
    uint64_t pause_ms;
    uv_timer_t timer;
    struct message_budget budget; /* of all channels */
    struct rpc_channel *channel;
    struct extra_channels extra; /* for calls that `channel` takes no more */
    ProtobufCMessage *options;
    uint64_t asked_ms; /* for its options, last; on the loop's clock */
    bool hangs;        /* which the log has told */
    bool listed;
    struct rpc_call *stream; /* once it has listed */
    char *left;    /* the name by which its stream is left to the next process; NULL: it is not */
    bool outdated; /* only listened to, in `outdated` of the set: the caller has closed it */
    LIST_ENTRY(plugin_client) entry;
};

struct plugin_clients {
    uv_loop_t *loop;
    char *dir;
    const struct plugin_clients_ops *ops;
    void *user;
    struct plugin_client *clients;
    LIST_HEAD(, plugin_client) outdated;
    struct numbered_calls calls;
    size_t shared; /* PLUGINS_SHARED_BYTES, less what is drawn */
    struct left_streams *left;
    struct stopping stopping; /* of clients, while there are any, and the calls */
};

static void client_close(struct plugin_client *client);

static void options_free(ProtobufCMessage *options)
{
    if (options)
        protobuf_c_message_free_unpacked(options, NULL);
}

static struct plugin_client *find_at(const struct plugin_clients *set, const char *path)
{
    struct plugin_client *client, *next;

    HASH_ITER(hh, set->clients, client, next) {
        if (strcmp(client->path, path) == 0)
            return client;
    }
    return NULL;
}

/* What is only listened to there; NULL: nothing. */
static struct plugin_client *find_outdated(const struct plugin_clients *set, const char *path)
{
    struct plugin_client *client;

    LIST_FOREACH(client, &set->outdated, entry) {
        if (strcmp(client->path, path) == 0)
            break;
    }
    return client;
}

/* Whether there was one. */
static bool end_outdated(const struct plugin_clients *set, const char *path)
{
    struct plugin_client *client = find_outdated(set, path);

    if (client)
        client_close(client);
    return client;
}

/* Ends what the plugin at `path` has besides its endpoints. Whether there was any. */
static bool end_older(struct plugin_clients *set, const char *path)
{
    bool any = left_streams_end(set->left, path);

    return end_outdated(set, path) || any;
}

/* ---- calls ---- */

enum method {
    METHOD_ALLOCATE,
    METHOD_PREFER,
    METHOD_PRESTART,
};

static const struct numbered_method METHODS[] = {
    [METHOD_ALLOCATE] = {DEVICEPLUGIN_ALLOCATE, &v1beta1__allocate_response__descriptor},
    [METHOD_PREFER] = {DEVICEPLUGIN_GET_PREFERRED_ALLOCATION,
                       &v1beta1__preferred_allocation_response__descriptor},
    [METHOD_PRESTART] = {DEVICEPLUGIN_PRE_START_CONTAINER,
                         &v1beta1__pre_start_container_response__descriptor},
};

/* Preferences are waited for too briefly to tell. */
static bool is_unanswered(const struct numbered_end *end)
{
    return end->code == RPC_DEADLINE_EXCEEDED && end->note &&
           end->method - METHODS != METHOD_PREFER;
}

static void on_ignored(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    (void)rpc;
    (void)message;
    (void)user;
}

static void on_asked_besides(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    const struct plugin_client *client = user;

    (void)rpc;
    if (status->code == RPC_DEADLINE_EXCEEDED)
        end_older(client->set, client->path);
}

/* A plugin may have no thread left for a call beside the streams that it has: then it does not say
 * either what it says at once. Else it is slow with the call, as with a device that hangs, and the
 * streams are in nobody's way. */
static void ask_besides(struct plugin_clients *set, const char *path)
{
    static const struct rpc_call_ops ops = {.message = on_ignored, .done = on_asked_besides};
    struct plugin_client *client = find_at(set, path);
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    if (client && client->state == CLIENT_STREAMING)
        (void)rpc_channel_call(client->channel, DEVICEPLUGIN_GET_OPTIONS, &empty.base,
                               &v1beta1__device_plugin_options__descriptor, false, BESIDES_MS_MAX,
                               &ops, client);
}

static void on_call_ended(void *user, const struct numbered_end *end)
{
    struct plugin_clients *set = user;

    if (is_unanswered(end))
        ask_besides(set, end->note);
    switch ((enum method)(end->method - METHODS)) {
    case METHOD_ALLOCATE:
        set->ops->allocated(set->user, end->number, end->code, end->message,
                            (const V1beta1__AllocateResponse *)end->response);
        break;
    case METHOD_PREFER:
        set->ops->preferred(set->user, end->number, end->code, end->message,
                            (const V1beta1__PreferredAllocationResponse *)end->response);
        break;
    case METHOD_PRESTART:
        set->ops->prestarted(set->user, end->number, end->code, end->message);
        break;
    }
}

static void start_call(struct plugin_clients *set, uint64_t endpoint, uint64_t number,
                       enum method method, const ProtobufCMessage *request, uint64_t timeout_ms)
{
    struct plugin_client *client;

    HASH_FIND(hh, set->clients, &endpoint, sizeof endpoint, client);
    numbered_calls_start(
        &set->calls, client && client->state == CLIENT_STREAMING ? client->channel : NULL,
        &METHODS[method], number, client ? client->path : NULL, request, timeout_ms);
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
    start_call(clients, endpoint, call, METHOD_ALLOCATE, &request.base, timeout_ms);
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
    start_call(clients, endpoint, call, METHOD_PREFER, &request.base, timeout_ms);
}

void plugin_clients_prestart(struct plugin_clients *clients, uint64_t endpoint, uint64_t call,
                             const char *const *ids, size_t ids_len, uint64_t timeout_ms)
{
    V1beta1__PreStartContainerRequest request = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;

    request.n_devices_ids = ids_len;
    request.devices_ids = (char **)ids;
    start_call(clients, endpoint, call, METHOD_PRESTART, &request.base, timeout_ms);
}

void plugin_clients_cancel(struct plugin_clients *clients, uint64_t call)
{
    numbered_calls_cancel(&clients->calls, call);
}

/* ---- the set's life ---- */

static void set_free(void *thing)
{
    struct plugin_clients *set = thing;

    free(set->dir);
    free(set);
}

static void on_client_timer_closed(uv_handle_t *handle)
{
    struct plugin_client *client = handle->data;
    struct plugin_clients *set = client->set;

    free(client->path);
    free(client);
    stopping_part(&set->stopping);
}

/* The process behind its connection; 0: not known. */
static pid_t server_of(const struct plugin_client *client)
{
    struct ucred peer;
    int fd = rpc_channel_fd(client->channel);

    return fd >= 0 && unix_peer(fd, &peer) == 0 ? peer.pid : 0;
}

/* What is known of it by now comes by its own stream, with the first list. The instance before it,
 * which ends while it serves at the same path, may list what counts no more. */
static void on_left_list(void *user, const char *path, pid_t pid,
                         const V1beta1__ListAndWatchResponse *list)
{
    struct plugin_clients *set = user;
    struct plugin_client *client, *next;

    HASH_ITER(hh, set->clients, client, next) {
        if (client->listed && strcmp(client->path, path) == 0 && server_of(client) == pid) {
            set->ops->list(set->user, client->number, list);
            return; /* which may have closed others */
        }
    }
}

struct plugin_clients *plugin_clients_new(uv_loop_t *loop, const char *plugin_dir,
                                          struct fd_store *store,
                                          const struct plugin_clients_ops *ops, void *user)
{
    static const struct left_streams_ops left_ops = {.list = on_left_list};
    struct plugin_clients *set = must(calloc(1, sizeof *set));

    set->loop = loop;
    set->dir = must(strdup(plugin_dir));
    set->ops = ops;
    set->user = user;
    set->shared = PLUGINS_SHARED_BYTES;
    numbered_calls_init(&set->calls, loop, on_call_ended, set, "the plugin's connection is gone");
    set->stopping = (struct stopping){.parts = 1, .free = set_free, .thing = set};
    set->left = left_streams_new(loop, store, &set->shared, &left_ops, set);
    return set;
}

/* ---- one client ---- */

static void client_set_state(struct plugin_client *client, enum client_state state)
{
    assert(client->state == state - 1);
    client->state = state;
}

/* Its memory stays until libuv is done with the timer. */
static void client_lost(struct plugin_client *client, const char *reason)
{
    bool outdated = client->outdated;

    client_close(client);
    if (!outdated)
        client->set->ops->lost(client->set->user, client->number, reason);
}

static void on_dial(uv_timer_t *timer);
static void look_later(struct plugin_client *client);

/* Dials again if there is reason to hope, else it is lost. */
static void client_dial_failed(struct plugin_client *client, const char *reason, bool final)
{
    char text[REASON_BYTES_MAX];

    snprintf(text, sizeof text, "cannot connect to %s: %s", client->path, reason);
    if (final || client->dial == PLUGIN_DIAL_ONCE ||
        uv_now(client->set->loop) - client->since_ms >= PLUGIN_DIAL_MS_MAX) {
        client_lost(client, text);
        return;
    }
    uv_timer_start(&client->timer, on_dial, client->pause_ms, 0);
    client->pause_ms = pause_longer(client->pause_ms, REDIAL_MS_MIN, REDIAL_MS_MAX);
}

/* Its stream is to be left to the next process. */
static void on_leave(uv_timer_t *timer)
{
    struct plugin_client *client = timer->data;

    if (left_streams_put(client->set->left, client->path, client->stream, &client->left) == -EAGAIN)
        uv_timer_start(timer, on_leave, LEAVE_AGAIN_MS, 0);
}

static void on_list(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    const V1beta1__ListAndWatchResponse *list = (const V1beta1__ListAndWatchResponse *)message;
    struct plugin_client *client = user;

    if (!client->listed) {
        client->listed = true;
        client->stream = rpc;
        uv_timer_stop(&client->timer);
        if (client->outdated)
            look_later(client);
        else
            on_leave(&client->timer);
    }
    if (client->outdated)
        on_left_list(client->set, client->path, server_of(client), list);
    else
        client->set->ops->list(client->set->user, client->number, list);
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

static void on_unlisted(uv_timer_t *timer)
{
    const struct plugin_client *client = timer->data;

    end_older(client->set, client->path);
}

/* The stream is opened before the options are told: their owner may close the client. */
static void client_stream(struct plugin_client *client)
{
    static const V1beta1__DevicePluginOptions none = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    ProtobufCMessage *options = client->options;

    client->options = NULL;
    if (rpc_channel_call(client->channel, DEVICEPLUGIN_LIST_AND_WATCH, &empty.base,
                         &v1beta1__list_and_watch_response__descriptor, true, 0, &STREAM_OPS,
                         client)) {
        client_set_state(client, CLIENT_STREAMING);
        uv_timer_start(&client->timer, on_unlisted, UNLISTED_MS_MAX, 0);
        client->set->ops->options(client->set->user, client->number,
                                  options ? (const V1beta1__DevicePluginOptions *)options : &none);
    } else {
        client_lost(client, "ListAndWatch could not be called");
    }
    options_free(options);
}

static void on_options(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    struct plugin_client *client = user;

    (void)rpc;
    options_free(client->options);
    client->options = message_copy(message);
}

static void ask_options(struct plugin_client *client);

/* Who has registered with a process before this one, and does not so again, may hang for a moment,
 * as with his node. */
static void note_that_it_hangs(struct plugin_client *client)
{
    if (!client->hangs)
        log_warning("%s: no options within %d s, which are asked for again", client->path,
                    PLUGIN_OPTIONS_MS_MAX / 1000);
    client->hangs = true;
}

/* Of who hangs the streams are in nobody's way, unless it is for long: he may take one connection
 * only. Who registers learns that he has not answered, and does so once more; any other one is
 * waited for as long as the caller waits. */
static bool is_asked_again(struct plugin_client *client)
{
    bool registers = client->dial == PLUGIN_DIAL_REGISTERING;
    bool may_hang = !registers && !client->hangs && !rpc_channel_is_heard(client->channel);

    if (!may_hang && end_older(client->set, client->path))
        return true;
    if (!registers)
        note_that_it_hangs(client);
    return !registers;
}

static void on_options_done(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    struct plugin_client *client = user;
    char text[REASON_BYTES_MAX];

    (void)rpc;
    if (status->code == RPC_OK && !client->options) {
        client_lost(client, "no memory for its options");
        return;
    }
    /* A plugin without the method has no options. */
    if (status->code == RPC_OK || status->code == RPC_UNIMPLEMENTED) {
        client_stream(client);
        return;
    }
    /* One that says so itself, at once, has answered: it would be asked as fast as it does. */
    if (status->code == RPC_DEADLINE_EXCEEDED &&
        uv_now(client->set->loop) - client->asked_ms >= PLUGIN_OPTIONS_MS_MAX / 2 &&
        is_asked_again(client)) {
        ask_options(client);
        return;
    }
    snprintf(text, sizeof text, "failed to get device plugin options: %s: %s",
             rpc_code_name(status->code), status->message);
    client_lost(client, text);
}

static const struct rpc_call_ops OPTIONS_OPS = {.message = on_options, .done = on_options_done};

/* One that takes calls, if there is such a one; none is left in its place. */
static struct rpc_channel *extra_take(struct plugin_client *client)
{
    struct rpc_channel *taken = extra_channels_open(&client->extra);

    for (size_t i = 0; i < EXTRA_CHANNELS_MAX && !taken; i++)
        taken = client->extra.v[i];
    assert(taken);
    *extra_channels_find(&client->extra, taken) = NULL;
    return taken;
}

/* Nobody else learns of that: its calls have ended. The client has always one, whose end would have
 * closed it: if it is the first that is lost, that one goes on elsewhere. */
static void on_channel_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct plugin_client *client = user;

    (void)reason;
    if (channel == client->channel) {
        client->channel = extra_take(client);
        numbered_calls_move(&client->set->calls, channel, client->channel);
    } else {
        *extra_channels_find(&client->extra, channel) = NULL;
    }
    rpc_channel_close(channel);
}

static struct rpc_channel *on_instead(struct rpc_channel *channel, void *user);

/* To the plugin's socket. 0 or a negative error; `wrong` as plugin_socket_connect() says it. */
static int connect_to(struct plugin_client *client, struct rpc_channel **out, const char **wrong)
{
    static const struct rpc_channel_ops ops = {.lost = on_channel_lost, .instead = on_instead};
    int fd = plugin_socket_connect(client->path, client->uid, wrong), err;

    if (fd < 0)
        return fd;
    err = rpc_channel_open_fd(client->set->loop, fd, &ops, client, out);
    if (!err)
        rpc_channel_set_budget(*out, &client->budget);
    return err;
}

static struct rpc_channel *on_instead(struct rpc_channel *channel, void *user)
{
    struct plugin_client *client = user;
    struct rpc_channel *open = extra_channels_open(&client->extra);
    struct rpc_channel **room = extra_channels_find(&client->extra, NULL);
    const char *wrong;

    (void)channel;
    if (open || !room)
        return open;
    return connect_to(client, room, &wrong) < 0 ? NULL : *room;
}

static void ask_options(struct plugin_client *client)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    client->asked_ms = uv_now(client->set->loop);
    if (!rpc_channel_call(client->channel, DEVICEPLUGIN_GET_OPTIONS, &empty.base,
                          &v1beta1__device_plugin_options__descriptor, false, PLUGIN_OPTIONS_MS_MAX,
                          &OPTIONS_OPS, client))
        client_lost(client, "GetDevicePluginOptions could not be called");
}

static void client_ask(struct plugin_client *client)
{
    client_set_state(client, CLIENT_ASKING);
    ask_options(client);
}

static void on_dial(uv_timer_t *timer)
{
    struct plugin_client *client = timer->data;
    const char *wrong = NULL;
    int err = connect_to(client, &client->channel, &wrong);

    if (err < 0)
        client_dial_failed(client, wrong ? wrong : strerror(-err), wrong != NULL);
    else
        client_ask(client);
}

void plugin_clients_open(struct plugin_clients *clients, uint64_t endpoint, const char *socket_name,
                         uid_t uid, enum plugin_dial dial)
{
    struct plugin_client *client = must(calloc(1, sizeof *client));

    client->set = clients;
    client->number = endpoint;
    client->path =
        socket_name[0] == '/' ? must(strdup(socket_name)) : path_join(clients->dir, socket_name);
    client->uid = uid;
    client->dial = dial;
    client->since_ms = uv_now(clients->loop);
    client->pause_ms = REDIAL_MS_MIN;
    client->budget = (struct message_budget){
        .left = PLUGIN_RECEIVED_BYTES_MAX, .own = PLUGIN_OWN_BYTES, .shared = &clients->shared};
    uv_timer_init(clients->loop, &client->timer);
    client->timer.data = client;
    clients->stopping.parts++;
    HASH_ADD(hh, clients->clients, number, sizeof client->number, client);
    uv_timer_start(&client->timer, on_dial, 0, 0);
}

/* Its calls end without a callback. Of a connection that was to be left the service manager has a
 * copy: without shutdown(2) the plugin would not see its end. */
static void close_channel(const struct plugin_client *client, struct rpc_channel *channel)
{
    int fd = client->left && channel ? rpc_channel_fd(channel) : -1;

    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    rpc_channel_close(channel);
}

static void client_close(struct plugin_client *client)
{
    struct plugin_client *outdated;

    if (client->outdated) {
        LIST_REMOVE(client, entry);
    } else {
        HASH_DELETE(hh, client->set->clients, client);
        outdated = find_outdated(client->set, client->path);
        if (outdated)
            look_later(outdated);
    }
    numbered_calls_cancel_all(&client->set->calls, client->channel);
    close_channel(client, client->channel);
    for (size_t i = 0; i < EXTRA_CHANNELS_MAX; i++)
        close_channel(client, client->extra.v[i]);
    if (client->left)
        left_streams_forget(client->set->left, client->left);
    free(client->left);
    options_free(client->options);
    uv_close((uv_handle_t *)&client->timer, on_client_timer_closed);
}

/* What comes where nobody is would be lost, and that as often as its stream takes what changes. */
static void on_outdated(uv_timer_t *timer)
{
    struct plugin_client *client = timer->data;

    if (!find_at(client->set, client->path))
        end_older(client->set, client->path);
    else if (client->listed && !client->left)
        on_leave(timer);
}

/* Later it looks whether anybody is at its socket, for whom its stream would be. */
static void look_later(struct plugin_client *client)
{
    uv_timer_start(&client->timer, on_outdated, OUTDATED_MS, 0);
}

/* Who is dialled before he registers, as when a node or a daemon starts, does so on the same server
 * a moment later, perhaps. He may say what changes next on the first stream (left_streams.h). */
static void outdate(struct plugin_client *client)
{
    struct plugin_clients *set = client->set;

    HASH_DELETE(hh, set->clients, client);
    numbered_calls_cancel_all(&set->calls, client->channel);
    end_outdated(set, client->path);
    client->outdated = true;
    LIST_INSERT_HEAD(&set->outdated, client, entry);
    look_later(client);
}

void plugin_clients_close(struct plugin_clients *clients, uint64_t endpoint)
{
    struct plugin_client *client;

    HASH_FIND(hh, clients->clients, &endpoint, sizeof endpoint, client);
    if (client && client->dial != PLUGIN_DIAL_REGISTERING && client->state == CLIENT_STREAMING)
        outdate(client);
    else if (client)
        client_close(client);
}

static void stop_client(struct plugin_client *client, bool leave)
{
    if (leave) {
        free(client->left); /* what is left stays so */
        client->left = NULL;
    }
    client_close(client);
}

void plugin_clients_stop(struct plugin_clients *clients, void (*done)(void *user), void *user)
{
    bool leave = program_has(LEFT_STREAMS_READER);
    struct plugin_client *client, *next;

    clients->stopping.done = done;
    clients->stopping.user = user;
    HASH_ITER(hh, clients->clients, client, next) {
        stop_client(client, leave);
    }
    while (!LIST_EMPTY(&clients->outdated))
        stop_client(LIST_FIRST(&clients->outdated), leave);
    if (!leave)
        left_streams_end(clients->left, NULL);
    left_streams_free(clients->left);
    numbered_calls_stop(&clients->calls, stopping_part, &clients->stopping);
}
