#include "shim/runtime/lister.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "cri-proto/utf8.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/pause.h"
#include "shim/rpc/message.h"
#include "shim/rpc/numbered.h"
#include "shim/rpc/rpc.h"
#include "shim/runtime/event_sharing.h"
#include "shim/runtime/identity.h"
#include "shim/runtime/listed.h"
#include "shim/stopping.h"

const struct lister_pace LISTER_PACE = {
    .poll_ms = LISTER_POLL_MS, .evented_ms = LISTER_EVENTED_MS, .settle_ms = LISTER_SETTLE_MS};

struct lister {
    uv_loop_t *loop;
    const char *endpoint;
    const struct lister_pace *pace;
    const struct lister_ops *ops;
    void *user;
    struct rpc_channel *channel; /* NULL: to be made when the timer fires */
    struct lister_state state;
    struct identity identity; /* what the runtime is */
    bool asks;                /* the first list of the connection waits for that */
    uv_timer_t timer;         /* to the next attempt */
    uint64_t pause_ms;
    bool missing; /* the operator was told that the runtime does not answer */

    struct rpc_call *events; /* NULL: no stream */
    bool no_events;          /* the runtime does not know the method; until the connection ends */
    bool told_no_events;     /* the operator was told that there are none, or end, or are left */

    bool streams;    /* lists are asked for as streams: one was too large; */
    bool no_streams; /* the runtime has none; both until the connection ends */

    /* The list under way: two calls, one after the other. */
    struct rpc_call *call;
    const struct rpc_status *fault; /* of what has come of it; NULL: none */
    size_t list_bytes;              /* that are kept of it; listed_bytes() */
    bool again;                     /* asked for meanwhile */
    bool stale;                     /* an event came meanwhile that it may not show */
    ProtobufCMessage *sandboxes;
    ProtobufCMessage *containers;

    struct numbered_calls checks; /* the note is the container's id */
    struct stopping stopping;
};

static void list_begin(struct lister *lister);
static void on_timer(uv_timer_t *timer);

/* ---- attempts ---- */

static void message_drop(ProtobufCMessage **message)
{
    if (*message)
        protobuf_c_message_free_unpacked(*message, NULL);
    *message = NULL;
}

static void list_end(struct lister *lister)
{
    lister->call = NULL;
    message_drop(&lister->sandboxes);
    message_drop(&lister->containers);
}

static void try_later(struct lister *lister, const char *reason)
{
    if (!lister->missing)
        log_warning("runtime %s does not answer: %s; it is asked until it does", lister->endpoint,
                    reason);
    lister->missing = true;
    uv_timer_start(&lister->timer, on_timer, lister->pause_ms, 0);
    lister->pause_ms = pause_longer(lister->pause_ms, LISTER_RETRY_MS_MIN, LISTER_RETRY_MS_MAX);
}

/* The next list comes in `delay_ms` at the latest; one that is under way sets it by itself. */
static void list_within(struct lister *lister, uint64_t delay_ms)
{
    bool set = uv_is_active((uv_handle_t *)&lister->timer);

    if (lister->call || (set && uv_timer_get_due_in(&lister->timer) <= delay_ms))
        return;
    uv_timer_start(&lister->timer, on_timer, delay_ms, 0);
}

/* ---- events ---- */

static void list_for_event(struct lister *lister)
{
    lister->stale = true;
    list_within(lister, lister->pace->settle_ms);
}

/* Runtimes send events of the sandbox's own container too, under the sandbox's id. */
static bool is_sandbox(const Runtime__V1__ContainerEventResponse *event)
{
    return event->pod_sandbox_status &&
           strcmp(event->pod_sandbox_status->id, event->container_id) == 0;
}

static void on_event(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__ContainerEventResponse *event = (const void *)message;
    struct lister *lister = user;

    (void)call;
    if (event->container_id[0] == '\0')
        return;
    switch (event->container_event_type) {
    case RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STARTED_EVENT:
        return; /* a created one may run already, as far as anyone here is concerned */
    case RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_STOPPED_EVENT:
    case RUNTIME__V1__CONTAINER_EVENT_TYPE__CONTAINER_DELETED_EVENT:
        if (!is_sandbox(event)) {
            lister->ops->ended(lister->user, event->container_id);
            return;
        }
        break;
    default:
        break;
    }
    list_for_event(lister);
}

static void on_events_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct lister *lister = user;

    (void)call;
    lister->events = NULL;
    lister->no_events = status->code == RPC_UNIMPLEMENTED;
    /* A lost connection is told by itself. */
    if (!lister->told_no_events && status->code != RPC_UNAVAILABLE) {
        lister->told_no_events = true;
        log_info("runtime %s: no container events (%s: %s); it is listed every %llu s",
                 lister->endpoint, rpc_code_name(status->code), status->message,
                 (unsigned long long)lister->pace->poll_ms / 1000);
    }
    list_within(lister, lister->pace->poll_ms);
}

static const struct rpc_call_ops EVENTS_OPS = {.message = on_event, .done = on_events_done};

/* Also when the runtime has not said yet what it is. */
static void events_leave(struct lister *lister)
{
    const struct identity *runtime = &lister->identity;

    if (lister->told_no_events || runtime->name[0] == '\0')
        return;
    lister->told_no_events = true;
    log_info("runtime %s: %s %s tells each container event to one listener only, and they are left "
             "to others; it is listed every %llu s",
             lister->endpoint, runtime->name, runtime->version,
             (unsigned long long)lister->pace->poll_ms / 1000);
}

static void events_open(struct lister *lister)
{
    Runtime__V1__GetEventsRequest request = RUNTIME__V1__GET_EVENTS_REQUEST__INIT;

    if (lister->events || lister->no_events)
        return;
    if (!event_sharing(lister->identity.name, lister->identity.version)) {
        events_leave(lister);
        return;
    }
    lister->events = rpc_channel_call(lister->channel, CRI_GET_CONTAINER_EVENTS_PATH, &request.base,
                                      &runtime__v1__container_event_response__descriptor, true, 0,
                                      &EVENTS_OPS, lister);
}

/* ---- the list ---- */

static uint64_t next_list_ms(const struct lister *lister)
{
    if (lister->again)
        return 0;
    if (lister->stale)
        return lister->pace->settle_ms;
    return lister->events ? lister->pace->evented_ms : lister->pace->poll_ms;
}

static const struct rpc_status NO_MEMORY = {RPC_RESOURCE_EXHAUSTED, "no memory for it"};
static const struct rpc_status TOO_LARGE = {RPC_RESOURCE_EXHAUSTED, "it is larger than 128 MiB"};
_Static_assert(LISTER_LIST_BYTES_MAX == 128 * 1024 * 1024, "as it is told");

/* What comes of it still is passed over. */
static void list_give_up(struct lister *lister, const struct rpc_status *fault)
{
    lister->fault = fault;
    message_drop(&lister->sandboxes);
    message_drop(&lister->containers);
}

/* A list has come, or a part of one that is streamed. */
static void list_take(struct lister *lister, ProtobufCMessage **list,
                      const ProtobufCMessage *message)
{
    ProtobufCMessage *copy;
    bool kept;

    if (lister->fault)
        return;
    lister->list_bytes += listed_bytes(message);
    if (lister->list_bytes > LISTER_LIST_BYTES_MAX) {
        list_give_up(lister, &TOO_LARGE);
        return;
    }
    copy = message_copy(message);
    kept = copy && (!*list || listed_join(*list, copy));
    if (*list)
        message_drop(&copy);
    else
        *list = copy;
    if (!kept)
        list_give_up(lister, &NO_MEMORY);
}

/* It may make containers, which wait for that, also where its lists cannot be taken. */
static void ask_again(struct lister *lister)
{
    if (lister->state.connected)
        identity_ask(&lister->identity, lister->channel, LISTER_CALL_MS_MAX);
}

static void list_failed(struct lister *lister, const char *method, const struct rpc_status *status)
{
    char reason[RPC_STATUS_TEXT_BYTES_MAX + 128];

    snprintf(reason, sizeof reason, "%s: %s: %s", method, rpc_code_name(status->code),
             status->message);
    if (lister->state.failing[0] == '\0')
        lister->state.failing_ms = boot_now_ms();
    utf8_copy(lister->state.failing, sizeof lister->state.failing, reason);
    list_end(lister);
    ask_again(lister);
    try_later(lister, reason);
}

/* ---- the list is whole ---- */

static void list_done(struct lister *lister)
{
    struct listed listed;

    if (!listed_init(&listed, (const Runtime__V1__ListPodSandboxResponse *)lister->sandboxes,
                     (const Runtime__V1__ListContainersResponse *)lister->containers)) {
        list_failed(lister, "the list", &NO_MEMORY);
        return;
    }
    if (lister->missing)
        log_info("runtime %s answers", lister->endpoint);
    lister->missing = false;
    lister->state.failing[0] = '\0';
    lister->pause_ms = LISTER_RETRY_MS_MIN;
    lister->ops->listed(lister->user, listed.sandboxes, listed.sandboxes_len, listed.containers,
                        listed.containers_len);
    listed_fini(&listed);
    list_end(lister);
    ask_again(lister);
    list_within(lister, next_list_ms(lister));
}

/* Whether a list that has failed is asked for in the other way now: one that is too large for a
 * message as a stream, and one whose stream the runtime does not know as a message. */
static bool changes_way(struct lister *lister, const struct rpc_status *status)
{
    bool to_streams =
        status->code == RPC_RESOURCE_EXHAUSTED && !lister->streams && !lister->no_streams;
    bool back = status->code == RPC_UNIMPLEMENTED && lister->streams;

    if (!to_streams && !back)
        return false;
    lister->no_streams = back;
    lister->streams = to_streams;
    return true;
}

/* Whether one has come to its end well; else it has failed, or is asked for in the other way
 * (`again`). */
static bool list_came(struct lister *lister, const char *method, const struct rpc_status *status,
                      void (*again)(struct lister *lister))
{
    if (changes_way(lister, status)) {
        again(lister);
        return false;
    }
    lister->identity.listed |= status->code == RPC_OK;
    if (status->code == RPC_OK && !lister->fault)
        return true;
    list_failed(lister, method, status->code != RPC_OK ? status : lister->fault);
    return false;
}

/* `list`: what comes, empty at first. */
static void list_call(struct lister *lister, ProtobufCMessage **list, const ProtobufCMessage *empty,
                      const char *path, const char *stream_path, const ProtobufCMessage *request,
                      const struct rpc_call_ops *ops)
{
    static const struct rpc_status none = {RPC_UNAVAILABLE, "the connection is gone"};
    bool streams = lister->streams;

    message_drop(list);
    if (streams) {
        path = stream_path;
        list_take(lister, list, empty); /* there may be no part */
    }
    lister->call = rpc_channel_call(lister->channel, path, request, empty->descriptor, streams,
                                    LISTER_CALL_MS_MAX, ops, lister);
    if (!lister->call)
        list_failed(lister, path, &none);
}

static void on_containers(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct lister *lister = user;

    (void)call;
    list_take(lister, &lister->containers, message);
}

static void on_containers_done(struct rpc_call *call, const struct rpc_status *status, void *user);

static const struct rpc_call_ops CONTAINERS_OPS = {.message = on_containers,
                                                   .done = on_containers_done};

static void list_containers(struct lister *lister)
{
    static const Runtime__V1__ListContainersResponse empty =
        RUNTIME__V1__LIST_CONTAINERS_RESPONSE__INIT;
    Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;

    list_call(lister, &lister->containers, &empty.base, CRI_LIST_CONTAINERS_PATH,
              CRI_STREAM_CONTAINERS_PATH, &request.base, &CONTAINERS_OPS);
}

static void on_containers_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct lister *lister = user;

    (void)call;
    if (list_came(lister, "ListContainers", status, list_containers))
        list_done(lister);
}

static void on_sandboxes(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct lister *lister = user;

    (void)call;
    list_take(lister, &lister->sandboxes, message);
}

static void on_sandboxes_done(struct rpc_call *call, const struct rpc_status *status, void *user);

static const struct rpc_call_ops SANDBOXES_OPS = {.message = on_sandboxes,
                                                  .done = on_sandboxes_done};

static void list_sandboxes(struct lister *lister)
{
    static const Runtime__V1__ListPodSandboxResponse empty =
        RUNTIME__V1__LIST_POD_SANDBOX_RESPONSE__INIT;
    Runtime__V1__ListPodSandboxRequest request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

    list_call(lister, &lister->sandboxes, &empty.base, CRI_LIST_POD_SANDBOX_PATH,
              CRI_STREAM_POD_SANDBOXES_PATH, &request.base, &SANDBOXES_OPS);
}

static void on_sandboxes_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct lister *lister = user;

    (void)call;
    if (list_came(lister, "ListPodSandbox", status, list_sandboxes))
        list_containers(lister);
}

static void list_begin(struct lister *lister)
{
    lister->again = lister->stale = lister->asks = false;
    lister->fault = NULL;
    lister->list_bytes = 0;
    events_open(lister);
    lister->ops->begins(lister->user);
    list_sandboxes(lister);
}

/* ---- the connection ---- */

static void set_connected(struct lister *lister, bool connected)
{
    struct lister_state state = {.connected = connected, .since_ms = lister->state.since_ms};

    if (connected != lister->state.connected)
        state.since_ms = boot_now_ms();
    lister->state = state;
}

void lister_look(const struct lister *lister, struct lister_state *out)
{
    *out = lister->state;
    snprintf(out->name, sizeof out->name, "%s", lister->identity.name);
    snprintf(out->version, sizeof out->version, "%s", lister->identity.version);
}

static void on_known(void *user)
{
    struct lister *lister = user;

    if (lister->asks)
        list_begin(lister);
}

static void on_cdi(void *user, enum devicemgr_cdi cdi)
{
    struct lister *lister = user;

    lister->ops->cdi(lister->user, cdi);
}

static void on_connected(struct rpc_channel *channel, void *user)
{
    struct lister *lister = user;

    (void)channel;
    set_connected(lister, true);
    /* Before a container is made of which that must be known, and before its events are listened
     * to, which is before the first list. */
    identity_ask(&lister->identity, lister->channel, LISTER_CALL_MS_MAX);
    lister->asks = lister->identity.asked;
    if (!lister->asks)
        list_begin(lister);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct lister *lister = user;

    lister->channel = NULL;
    set_connected(lister, false);
    lister->no_events = lister->streams = lister->no_streams = lister->asks = false;
    identity_forget(&lister->identity);
    lister->ops->lost(lister->user);
    rpc_channel_close(channel);
    try_later(lister, reason);
}

/* It waits, and keeps the connection, as long as there is a stream, and this one has no end of its
 * own. The connection ends with what is under way. */
static void on_goes_away(struct rpc_channel *channel, void *user)
{
    struct lister *lister = user;

    (void)channel;
    rpc_call_cancel(lister->events);
    lister->events = NULL;
}

static const struct rpc_channel_ops CHANNEL_OPS = {
    .connected = on_connected, .lost = on_lost, .goes_away = on_goes_away};

static void on_timer(uv_timer_t *timer)
{
    struct lister *lister = timer->data;
    int r;

    if (lister->call || lister->asks)
        return;
    if (lister->channel) {
        if (lister->state.connected)
            list_begin(lister);
        return;
    }
    r = rpc_channel_open(lister->loop, lister->endpoint, &CHANNEL_OPS, lister, &lister->channel);
    if (r < 0) {
        lister->channel = NULL;
        try_later(lister, uv_strerror(r));
    }
}

void lister_refresh(struct lister *lister)
{
    lister->again = true;
    lister->pause_ms = LISTER_RETRY_MS_MIN;
    if (!lister->call)
        uv_timer_start(&lister->timer, on_timer, 0, 0);
}

/* ---- checks ---- */

static const struct numbered_method CHECK = {CRI_LIST_CONTAINERS_PATH,
                                             &runtime__v1__list_containers_response__descriptor};

/* The filter also takes a prefix of the id. */
static enum lister_finding find_container(const Runtime__V1__ListContainersResponse *list,
                                          const char *id)
{
    for (size_t i = 0; i < list->n_containers; i++) {
        if (strcmp(list->containers[i]->id, id) == 0)
            return listed_may_run(list->containers[i]->state) ? LISTER_RUNNING : LISTER_STOPPED;
    }
    return LISTER_GONE;
}

static void on_check_ended(void *user, const struct numbered_end *end)
{
    const Runtime__V1__ListContainersResponse *list = (const void *)end->response;
    struct lister *lister = user;

    lister->ops->checked(lister->user, end->number,
                         list ? find_container(list, end->note) : LISTER_UNKNOWN);
}

void lister_check(struct lister *lister, uint64_t number, const char *container_id)
{
    Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
    Runtime__V1__ContainerFilter filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
    bool room = numbered_calls_len(&lister->checks) < LISTER_CHECKS_MAX;

    filter.id = (char *)container_id;
    request.filter = &filter;
    numbered_calls_start(&lister->checks, room ? lister->channel : NULL, &CHECK, number,
                         container_id, &request.base, LISTER_CALL_MS_MAX);
}

/* ---- life ---- */

struct lister *lister_start(uv_loop_t *loop, const char *endpoint, const struct lister_pace *pace,
                            const struct lister_ops *ops, void *user)
{
    struct lister *lister = must(calloc(1, sizeof *lister));

    lister->loop = loop;
    lister->endpoint = endpoint;
    lister->pace = pace;
    lister->ops = ops;
    lister->user = user;
    lister->identity.known = on_known;
    lister->identity.cdi = on_cdi;
    lister->identity.user = lister;
    lister->pause_ms = LISTER_RETRY_MS_MIN;
    lister->state.since_ms = boot_now_ms();
    uv_timer_init(loop, &lister->timer);
    lister->timer.data = lister;
    numbered_calls_init(&lister->checks, loop, on_check_ended, lister, "the connection is gone");
    uv_timer_start(&lister->timer, on_timer, 0, 0);
    return lister;
}

void lister_stop(struct lister *lister, void (*done)(void *user), void *user)
{
    lister->stopping = (struct stopping){2, free, lister, done, user}; /* the checks, the timer */
    rpc_channel_close(lister->channel); /* ends the calls without a callback */
    list_end(lister);
    numbered_calls_stop(&lister->checks, stopping_part, &lister->stopping);
    stopping_close(&lister->stopping, (uv_handle_t *)&lister->timer);
}
