#include "shim/bridge/shown.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "cri-proto/resource_name.h"
#include "shim/bridge/allocate.h"
#include "shim/bridge/limits.h"
#include "shim/bridge/names.h"
#include "shim/bridge/preference.h"
#include "shim/log.h"
#include "shim/must.h"

enum shown_state {
    SHOWN_WAITING,
    SHOWN_REGISTERING,
    SHOWN_ACCEPTED,
    SHOWN_SERVING,
    SHOWN_BACKING_OFF,
};

/* The kubelet's ListAndWatch. */
struct stream {
    struct rpc_incoming *call; /* NULL: none */
    pid_t pid;
    unsigned epoch; /* of the registration when it was opened */
    uint64_t since_ms;
    struct packed sent; /* the last answer */
    uint64_t sent_ms;   /* when, the loop's time */
    uint64_t version;   /* of it */
    size_t unstored;    /* answers that the kubelet has perhaps not stored yet */
    bool stored;        /* the last one is */
};

struct shown {
    const struct shown_world *world;
    char *resource;
    char *endpoint;
    enum shown_state state;
    struct packed list;
    uint64_t list_version;
    bool masked;
    struct rpc_server *server;
    bool listening;
    int listen_error;
    struct rpc_call *registering;
    pid_t asked_pid; /* of the kubelet that Register was last called of; -1: none */
    bool streamed;   /* it has opened the stream since */
    bool refused;    /* by this kubelet, the last time */
    bool told_refused;
    bool told_large;
    uint64_t again_ms;
    uv_timer_t timer; /* of ACCEPTED and BACKING_OFF */
    struct stream stream;
    uv_timer_t list_timer; /* a list waits for the one before, or for its time */
    struct preference_list preferences;
    unsigned handles;
};

static void shown_set_state(struct shown *shown, enum shown_state state)
{
    static const unsigned from[] = {
        [SHOWN_WAITING] = 1u << SHOWN_REGISTERING | 1u << SHOWN_ACCEPTED | 1u << SHOWN_SERVING |
                          1u << SHOWN_BACKING_OFF | 1u << SHOWN_WAITING,
        [SHOWN_REGISTERING] = 1u << SHOWN_WAITING,
        [SHOWN_ACCEPTED] = 1u << SHOWN_REGISTERING,
        [SHOWN_SERVING] = 1u << SHOWN_REGISTERING | 1u << SHOWN_ACCEPTED | 1u << SHOWN_WAITING |
                          1u << SHOWN_BACKING_OFF,
        [SHOWN_BACKING_OFF] = 1u << SHOWN_WAITING | 1u << SHOWN_REGISTERING | 1u << SHOWN_ACCEPTED |
                              1u << SHOWN_SERVING,
    };

    assert(from[state] & 1u << shown->state);
    shown->state = state;
}

static void tell_changed(struct shown *shown)
{
    shown->world->changed(shown->world->user);
}

/* ---- the list's stream ---- */

/* Whether the stream is one of the kubelet's that we are connected to. */
static bool stream_current(const struct shown *shown)
{
    const struct registration *registration = shown->world->registration;

    return shown->stream.call && registration_connected(registration) &&
           shown->stream.pid == registration_pid(registration) &&
           shown->stream.epoch == registration_epoch(registration);
}

static void stream_clear(struct shown *shown)
{
    packed_fini(&shown->stream.sent);
    shown->stream = (struct stream){0};
    uv_timer_stop(&shown->list_timer);
}

static void send_list(struct shown *shown);

static void on_list_timer(uv_timer_t *timer)
{
    send_list(timer->data);
}

/* The answer is the stream's newest: `packed` is taken. */
static void stream_sent(struct shown *shown, struct packed *packed)
{
    packed_move(&shown->stream.sent, packed);
    shown->stream.sent_ms = uv_now(shown->world->loop);
    shown->stream.unstored++;
    shown->stream.stored = false;
}

/* How long a list that is not the stream's first must wait yet. */
static uint64_t stream_wait_ms(const struct shown *shown)
{
    uint64_t age_ms = uv_now(shown->world->loop) - shown->stream.sent_ms;

    return shown->stream.sent.bytes && age_ms < LIST_INTERVAL_MS ? LIST_INTERVAL_MS - age_ms : 0;
}

/* It is sent all the same: the kubelet at hand may take more. */
static void warn_if_large(struct shown *shown, size_t len)
{
    if (len <= KUBELET_LIST_BYTES_MAX || shown->told_large)
        return;
    log_warning("%s: its list has %zu bytes, and a kubelet takes no more than %u; it will end the "
                "stream",
                shown->resource, len, KUBELET_LIST_BYTES_MAX);
    shown->told_large = true;
}

/* True if the answer is the stream's newest now. */
static bool send_packed(struct shown *shown, const V1beta1__ListAndWatchResponse *answer,
                        struct packed *packed)
{
    int err;

    err = rpc_incoming_send(shown->stream.call, &answer->base);
    if (!err) {
        warn_if_large(shown, packed->len);
        stream_sent(shown, packed);
    } else if (err == -EMSGSIZE) {
        log_error("%s: its list of %zu devices is too large for the kubelet", shown->resource,
                  answer->n_devices);
    } else {
        uv_timer_start(&shown->list_timer, on_list_timer, LIST_AGAIN_MS, 0);
    }
    return !err;
}

/* Sends the answer if the kubelet does not have it, now or when its time has come; true if the
 * kubelet has it now. */
static bool send_answer(struct shown *shown, const V1beta1__ListAndWatchResponse *answer)
{
    struct packed packed = {0};
    uint64_t wait_ms = stream_wait_ms(shown);
    bool has;

    packed_make(&packed, &answer->base);
    has = packed_equal(&packed, &shown->stream.sent);
    if (!has && wait_ms > 0)
        uv_timer_start(&shown->list_timer, on_list_timer, wait_ms, 0);
    else if (!has)
        has = send_packed(shown, answer, &packed);
    packed_fini(&packed);
    return has;
}

static void send_list(struct shown *shown)
{
    Bridge__V1__DeviceList *list;
    V1beta1__ListAndWatchResponse *answer;

    if (!shown->stream.call || !shown->list.bytes)
        return;
    if (rpc_incoming_queued(shown->stream.call) > 0) {
        uv_timer_start(&shown->list_timer, on_list_timer, LIST_AGAIN_MS, 0);
        return;
    }
    list = list_unpack(&shown->list);
    answer = list_answer(list, shown->masked);
    if (send_answer(shown, answer))
        shown->stream.version = shown->list_version;
    list_answer_free(answer);
    bridge__v1__device_list__free_unpacked(list, NULL);
    tell_changed(shown);
}

/* ---- registration ---- */

static void try_register(struct shown *shown);
static void back_off(struct shown *shown);

static void on_timer(uv_timer_t *timer)
{
    struct shown *shown = timer->data;

    if (shown->state == SHOWN_ACCEPTED) {
        log_warning("%s: the kubelet does not ask for its list; registering again",
                    shown->resource);
        back_off(shown);
        return;
    }
    shown_set_state(shown, SHOWN_WAITING);
    try_register(shown);
}

/* Ends every connection and stream. The kubelet looks a stream that ended up by its resource, and
 * would disconnect the newer. */
static void disconnect(struct shown *shown)
{
    rpc_server_disconnect(shown->server);
    preference_list_clear(&shown->preferences);
    stream_clear(shown);
}

/* What a Register has left at this kubelet ends now, so that it has the wait to work that off. */
static void back_off(struct shown *shown)
{
    uint64_t delay_ms = shown->again_ms ? shown->again_ms : REGISTER_AGAIN_MS_MIN;

    disconnect(shown);
    shown->again_ms = delay_ms * 2 > REGISTER_AGAIN_MS_MAX ? REGISTER_AGAIN_MS_MAX : delay_ms * 2;
    shown_set_state(shown, SHOWN_BACKING_OFF);
    uv_timer_start(&shown->timer, on_timer, delay_ms, 0);
}

static void serve(struct shown *shown)
{
    uv_timer_stop(&shown->timer);
    shown->refused = false;
    shown_set_state(shown, SHOWN_SERVING);
    log_info("%s: shown to the kubelet", shown->resource);
}

static void on_register_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

/* UNAVAILABLE: it died, which the connection's owner says; and silence is no answer. */
static void set_refused(struct shown *shown, const struct rpc_status *status)
{
    if (status->code == RPC_UNAVAILABLE)
        return;
    if (status->code != RPC_OK && !shown->told_refused)
        log_warning("%s: the kubelet refuses it: %s", shown->resource, status->message);
    shown->told_refused = status->code != RPC_OK;
    if (status->code != RPC_DEADLINE_EXCEEDED)
        shown->refused = status->code != RPC_OK;
}

static void on_register_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct shown *shown = user;

    (void)call;
    shown->registering = NULL;
    set_refused(shown, status);
    if (stream_current(shown)) {
        serve(shown);
    } else if (status->code == RPC_OK && !shown->streamed) {
        shown_set_state(shown, SHOWN_ACCEPTED);
        uv_timer_start(&shown->timer, on_timer, STREAM_TIMEOUT_MS, 0);
    } else {
        back_off(shown);
    }
    tell_changed(shown);
}

static void try_register(struct shown *shown)
{
    static const struct rpc_call_ops ops = {on_register_message, on_register_done};

    if (shown->state != SHOWN_WAITING || !shown->list.bytes || !shown->listening ||
        !registration_connected(shown->world->registration))
        return;
    disconnect(shown);
    shown->streamed = false;
    shown->asked_pid = registration_pid(shown->world->registration);
    shown->registering = registration_call(shown->world->registration, shown->resource,
                                           shown->endpoint, &ops, shown);
    if (shown->registering)
        shown_set_state(shown, SHOWN_REGISTERING);
    else
        back_off(shown);
}

void shown_kubelet_went(struct shown *shown)
{
    rpc_call_cancel(shown->registering);
    shown->registering = NULL;
    uv_timer_stop(&shown->timer);
    shown->again_ms = 0;
    shown->refused = false;
    shown_set_state(shown, SHOWN_WAITING);
}

/* The same process as before may be at work on the last Register yet, or on a stream's end. */
void shown_kubelet_came(struct shown *shown)
{
    if (stream_current(shown))
        serve(shown);
    else if (shown->asked_pid == registration_pid(shown->world->registration))
        back_off(shown);
    else
        try_register(shown);
}

/* ---- the service ---- */

static void on_options(struct rpc_incoming *call, const ProtobufCMessage *request, void *user)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    int err;

    (void)request;
    (void)user;
    /* Always, so that a plugin that changes its mind needs no new registration. */
    options.get_preferred_allocation_available = true;
    err = rpc_incoming_send(call, &options.base);
    rpc_incoming_finish(call, err ? RPC_RESOURCE_EXHAUSTED : RPC_OK, NULL);
}

static void on_stream_ended(void *user)
{
    struct shown *shown = user;

    if (uv_now(shown->world->loop) - shown->stream.since_ms >= STREAM_SETTLED_MS)
        shown->again_ms = 0;
    stream_clear(shown);
    if (shown->state == SHOWN_SERVING)
        back_off(shown);
    tell_changed(shown);
}

void shown_register_anew(struct shown *shown)
{
    if (shown->state != SHOWN_SERVING)
        return;
    log_info("%s: registering anew", shown->resource);
    rpc_incoming_finish(shown->stream.call, RPC_ABORTED, "it is registered anew");
    on_stream_ended(shown);
}

/* The kubelet has taken its end for that of whichever it registered last. */
static void on_older_ended(void *user)
{
    struct shown *shown = user;

    if (!shown->stream.call)
        return;
    rpc_incoming_finish(shown->stream.call, RPC_ABORTED, "an older ListAndWatch has ended");
    on_stream_ended(shown);
}

/* For a newer one. The older of the same kubelet is left open, with nothing sent on it any more:
 * to end it is to have the newer disconnected. It ends with its connection, see disconnect(). */
static void stream_leave(struct shown *shown)
{
    if (stream_current(shown))
        rpc_incoming_on_cancel(shown->stream.call, on_older_ended, shown);
    else
        rpc_incoming_finish(shown->stream.call, RPC_ABORTED, "there is a newer ListAndWatch");
    stream_clear(shown);
}

static void on_list_and_watch(struct rpc_incoming *call, const ProtobufCMessage *request,
                              void *user)
{
    struct shown *shown = user;
    struct ucred peer;

    (void)request;
    rpc_incoming_peer(call, &peer);
    if (stream_current(shown) && peer.pid != shown->stream.pid) {
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "another process has the list");
        return;
    }
    if (shown->stream.call)
        stream_leave(shown);
    shown->stream.call = call;
    shown->stream.pid = peer.pid;
    shown->stream.epoch = registration_epoch(shown->world->registration);
    shown->stream.since_ms = uv_now(shown->world->loop);
    shown->streamed |= stream_current(shown); /* not by a late one of the kubelet before */
    rpc_incoming_on_cancel(call, on_stream_ended, shown);
    if (shown->state != SHOWN_REGISTERING && shown->state != SHOWN_SERVING && stream_current(shown))
        serve(shown);
    send_list(shown);
}

static void on_allocate(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__AllocateRequest *request = (const V1beta1__AllocateRequest *)message;
    const struct shown *shown = user;
    V1beta1__AllocateResponse *answer;

    if (request->n_container_requests > CONTAINERS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many containers in one request");
        return;
    }
    answer = allocate_answer(shown->resource, request);
    if (!answer)
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT,
                            "a device id is not UTF-8, or out of memory");
    else if (rpc_incoming_send(call, &answer->base) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "the token is too large");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
    if (answer)
        allocate_answer_free(answer);
}

static void on_preferred(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__PreferredAllocationRequest *request =
        (const V1beta1__PreferredAllocationRequest *)message;
    struct shown *shown = user;

    if (request->n_container_requests > CONTAINERS_MAX)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many containers in one request");
    else
        preference_start(&shown->preferences, shown->world->feed, shown->resource, request,
                         shown->world->preferred_timeout_ms + PREFER_MARGIN_MS, call);
}

/* The real one is made in CreateContainer; our options say that the kubelet need not ask. */
static void on_pre_start(struct rpc_incoming *call, const ProtobufCMessage *request, void *user)
{
    V1beta1__PreStartContainerResponse answer = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;
    int err = rpc_incoming_send(call, &answer.base);

    (void)request;
    (void)user;
    rpc_incoming_finish(call, err ? RPC_RESOURCE_EXHAUSTED : RPC_OK, NULL);
}

static const struct rpc_method METHODS[] = {
    {DEVICEPLUGIN_GET_OPTIONS, &v1beta1__empty__descriptor, on_options},
    {DEVICEPLUGIN_LIST_AND_WATCH, &v1beta1__empty__descriptor, on_list_and_watch},
    {DEVICEPLUGIN_ALLOCATE, &v1beta1__allocate_request__descriptor, on_allocate},
    {DEVICEPLUGIN_GET_PREFERRED_ALLOCATION, &v1beta1__preferred_allocation_request__descriptor,
     on_preferred},
    {DEVICEPLUGIN_PRE_START_CONTAINER, &v1beta1__pre_start_container_request__descriptor,
     on_pre_start},
};

/* ---- the socket ---- */

void shown_listen(struct shown *shown)
{
    int result = rpc_server_listen(shown->server);

    if (result == 0)
        return;
    shown->listening = result > 0;
    /* ENOENT: the kubelet has not made its directory yet. */
    if (result < 0 && result != -ENOENT && result != shown->listen_error)
        log_warning("%s: %s/%s: %s", shown->resource, shown->world->kubelet_dir, shown->endpoint,
                    strerror(-result));
    shown->listen_error = result < 0 ? result : 0;
    try_register(shown);
}

/* ---- from the feed ---- */

void shown_update(struct shown *shown, const Bridge__V1__DeviceList *list, uint64_t version,
                  bool masked)
{
    struct packed packed = {0};

    if (!list && masked == shown->masked)
        return;
    shown->masked = masked;
    if (list) {
        list_pack(&packed, list);
        packed_move(&shown->list, &packed);
        shown->list_version = version;
    }
    send_list(shown);
    try_register(shown);
}

void shown_forget_version(struct shown *shown)
{
    shown->list_version = 0;
    shown->stream.version = 0;
}

const struct packed *shown_list(const struct shown *shown)
{
    return &shown->list;
}

uint64_t shown_list_version(const struct shown *shown)
{
    return shown->list_version;
}

/* ---- to the daemon ---- */

void shown_report(const struct shown *shown, struct shown_report *out)
{
    *out = (struct shown_report){.refused = shown->refused};
    if (!stream_current(shown))
        return;
    out->registered = true;
    out->version = shown->stream.version;
    out->stored = shown->stream.stored;
}

size_t shown_unstored(const struct shown *shown)
{
    return shown->stream.unstored;
}

void shown_set_stored(struct shown *shown)
{
    shown->stream.stored = shown->stream.sent.bytes;
    shown->stream.unstored = 0;
}

/* ---- life ---- */

/* Its directory is in the kubelet's, which plugins' containers mount. */
static void make_server(struct shown *shown)
{
    const struct socket_place place = {.dir = shown->world->kubelet_dir,
                                       .below = NAMES_SUBDIRECTORY,
                                       .name = shown->endpoint + strlen(NAMES_SUBDIRECTORY "/")};

    if (rpc_server_new(shown->world->loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, shown,
                       &shown->server) < 0)
        abort(); /* out of memory */
}

struct shown *shown_new(const struct shown_world *world, const char *resource)
{
    char *endpoint =
        resource_name_valid(resource) ? name_endpoint(world->kubelet_dir, resource) : NULL;
    struct shown *shown;

    if (!endpoint) {
        log_warning("%.*s: no name for a resource, or no room for its socket in %s; not shown",
                    RESOURCE_NAME_BYTES_MAX, resource, world->kubelet_dir);
        return NULL;
    }
    shown = must(calloc(1, sizeof *shown));
    shown->world = world;
    shown->resource = must(strdup(resource));
    shown->endpoint = endpoint;
    shown->asked_pid = -1;
    LIST_INIT(&shown->preferences);
    uv_timer_init(world->loop, &shown->timer);
    uv_timer_init(world->loop, &shown->list_timer);
    shown->timer.data = shown;
    shown->list_timer.data = shown;
    shown->handles = 2;
    make_server(shown);
    shown_listen(shown);
    return shown;
}

static void on_closed(uv_handle_t *handle)
{
    struct shown *shown = handle->data;

    if (--shown->handles > 0)
        return;
    packed_fini(&shown->list);
    free(shown->resource);
    free(shown->endpoint);
    free(shown);
}

void shown_free(struct shown *shown)
{
    if (!shown)
        return;
    rpc_call_cancel(shown->registering);
    rpc_server_close(shown->server);
    preference_list_clear(&shown->preferences);
    stream_clear(shown);
    uv_close((uv_handle_t *)&shown->timer, on_closed);
    uv_close((uv_handle_t *)&shown->list_timer, on_closed);
}

const char *shown_resource(const struct shown *shown)
{
    return shown->resource;
}
