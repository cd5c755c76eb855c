#include "shim/runtime/lister.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

struct check {
    struct lister *lister;
    UT_hash_handle hh;
    uint64_t number;
    char *container_id;
    struct rpc_call *call; /* NULL: could not be asked, waits to be told so */
    enum lister_finding finding;
};

const struct lister_pace LISTER_PACE = {
    .poll_ms = LISTER_POLL_MS, .evented_ms = LISTER_EVENTED_MS, .settle_ms = LISTER_SETTLE_MS};

struct lister {
    uv_loop_t *loop;
    const char *endpoint;
    const struct lister_pace *pace;
    const struct lister_ops *ops;
    void *user;
    struct rpc_channel *channel; /* NULL: to be made when the timer fires */
    bool connected;
    uv_timer_t timer; /* to the next attempt */
    uint64_t pause_ms;
    bool missing; /* the operator was told that the runtime does not answer */

    struct rpc_call *events; /* NULL: no stream */
    bool no_events;          /* the runtime does not know the method; until the connection ends */
    bool told_no_events;     /* the operator was told that there are none, or end */

    /* The list under way: two calls, one after the other. */
    struct rpc_call *call;
    bool again; /* asked for meanwhile */
    bool stale; /* an event came meanwhile that it may not show */
    ProtobufCMessage *sandboxes;
    ProtobufCMessage *containers;

    struct check *checks;
    uv_timer_t unasked; /* tells the ends of checks that could not be asked */
    unsigned handles;
    void (*done)(void *user);
    void *done_user;
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
    lister->pause_ms =
        lister->pause_ms * 2 < LISTER_RETRY_MS_MAX ? lister->pause_ms * 2 : LISTER_RETRY_MS_MAX;
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

static void events_open(struct lister *lister)
{
    Runtime__V1__GetEventsRequest request = RUNTIME__V1__GET_EVENTS_REQUEST__INIT;

    if (lister->events || lister->no_events)
        return;
    lister->events = rpc_channel_call(lister->channel, CRI_GET_CONTAINER_EVENTS_PATH, &request.base,
                                      &runtime__v1__container_event_response__descriptor, 1, 0,
                                      &EVENTS_OPS, lister);
}

/* ---- the list ---- */

/* `annotations` has room for the item's. */
static struct devicemgr_sandbox sandbox_of(const Runtime__V1__PodSandbox *item,
                                           struct devicemgr_annotation *annotations)
{
    static const Runtime__V1__PodSandboxMetadata none = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    const Runtime__V1__PodSandboxMetadata *metadata = item->metadata ? item->metadata : &none;

    for (size_t i = 0; i < item->n_annotations; i++)
        annotations[i] = (struct devicemgr_annotation){.key = item->annotations[i]->key,
                                                       .value = item->annotations[i]->value};
    return (struct devicemgr_sandbox){
        .id = item->id,
        .pod_uid = metadata->uid,
        .pod_namespace = metadata->namespace_,
        .pod_name = metadata->name,
        .attempt = metadata->attempt,
        .ready = item->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY,
        .annotations = annotations,
        .annotations_len = item->n_annotations,
    };
}

/* Created counts: it was made with its devices and may start at any moment. What the runtime itself
 * does not know may run. */
static bool may_run(Runtime__V1__ContainerState state)
{
    return state != RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
}

static struct devicemgr_container container_of(const Runtime__V1__Container *item,
                                               struct devicemgr_annotation *annotations)
{
    static const Runtime__V1__ContainerMetadata none = RUNTIME__V1__CONTAINER_METADATA__INIT;
    const Runtime__V1__ContainerMetadata *metadata = item->metadata ? item->metadata : &none;

    for (size_t i = 0; i < item->n_annotations; i++)
        annotations[i] = (struct devicemgr_annotation){.key = item->annotations[i]->key,
                                                       .value = item->annotations[i]->value};
    return (struct devicemgr_container){
        .id = item->id,
        .sandbox_id = item->pod_sandbox_id,
        .name = metadata->name,
        .attempt = metadata->attempt,
        .running = may_run(item->state),
        .annotations = annotations,
        .annotations_len = item->n_annotations,
    };
}

static void tell_list(struct lister *lister)
{
    const Runtime__V1__ListPodSandboxResponse *pods = (void *)lister->sandboxes;
    const Runtime__V1__ListContainersResponse *list = (void *)lister->containers;
    struct devicemgr_sandbox *sandboxes = must(calloc(pods->n_items + 1, sizeof *sandboxes));
    struct devicemgr_container *containers =
        must(calloc(list->n_containers + 1, sizeof *containers));
    struct devicemgr_annotation *annotations;
    size_t annotations_len = 0;

    for (size_t i = 0; i < pods->n_items; i++)
        annotations_len += pods->items[i]->n_annotations;
    for (size_t i = 0; i < list->n_containers; i++)
        annotations_len += list->containers[i]->n_annotations;
    annotations = must(calloc(annotations_len + 1, sizeof *annotations));
    annotations_len = 0;
    for (size_t i = 0; i < pods->n_items; i++) {
        sandboxes[i] = sandbox_of(pods->items[i], annotations + annotations_len);
        annotations_len += pods->items[i]->n_annotations;
    }
    for (size_t i = 0; i < list->n_containers; i++) {
        containers[i] = container_of(list->containers[i], annotations + annotations_len);
        annotations_len += list->containers[i]->n_annotations;
    }
    lister->ops->listed(lister->user, sandboxes, pods->n_items, containers, list->n_containers);
    free(annotations);
    free(containers);
    free(sandboxes);
}

static uint64_t next_list_ms(const struct lister *lister)
{
    if (lister->again)
        return 0;
    if (lister->stale)
        return lister->pace->settle_ms;
    return lister->events ? lister->pace->evented_ms : lister->pace->poll_ms;
}

static void list_done(struct lister *lister)
{
    if (lister->missing)
        log_info("runtime %s answers", lister->endpoint);
    lister->missing = false;
    lister->pause_ms = LISTER_RETRY_MS_MIN;
    tell_list(lister);
    list_end(lister);
    list_within(lister, next_list_ms(lister));
}

static void list_failed(struct lister *lister, const char *method, const struct rpc_status *status)
{
    char reason[RPC_STATUS_TEXT_BYTES_MAX + 128];

    snprintf(reason, sizeof reason, "%s: %s: %s", method, rpc_code_name(status->code),
             status->message);
    list_end(lister);
    try_later(lister, reason);
}

static void on_containers(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct lister *lister = user;

    (void)call;
    message_drop(&lister->containers);
    lister->containers = must_copy(message);
}

static void on_containers_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct lister *lister = user;

    (void)call;
    if (status->code == RPC_OK)
        list_done(lister);
    else
        list_failed(lister, "ListContainers", status);
}

static const struct rpc_call_ops CONTAINERS_OPS = {.message = on_containers,
                                                   .done = on_containers_done};

static void on_sandboxes(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct lister *lister = user;

    (void)call;
    message_drop(&lister->sandboxes);
    lister->sandboxes = must_copy(message);
}

static void list_call(struct lister *lister, const char *path, const ProtobufCMessage *request,
                      const ProtobufCMessageDescriptor *response, const struct rpc_call_ops *ops)
{
    static const struct rpc_status none = {RPC_UNAVAILABLE, "the connection is gone"};

    lister->call = rpc_channel_call(lister->channel, path, request, response, 0, LISTER_CALL_MS_MAX,
                                    ops, lister);
    if (!lister->call)
        list_failed(lister, path, &none);
}

static void on_sandboxes_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
    struct lister *lister = user;

    (void)call;
    if (status->code == RPC_OK)
        list_call(lister, CRI_LIST_CONTAINERS_PATH, &request.base,
                  &runtime__v1__list_containers_response__descriptor, &CONTAINERS_OPS);
    else
        list_failed(lister, "ListPodSandbox", status);
}

static const struct rpc_call_ops SANDBOXES_OPS = {.message = on_sandboxes,
                                                  .done = on_sandboxes_done};

static void list_begin(struct lister *lister)
{
    Runtime__V1__ListPodSandboxRequest request = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;

    lister->again = lister->stale = false;
    events_open(lister);
    lister->ops->begins(lister->user);
    list_call(lister, CRI_LIST_POD_SANDBOX_PATH, &request.base,
              &runtime__v1__list_pod_sandbox_response__descriptor, &SANDBOXES_OPS);
}

/* ---- the connection ---- */

static void on_connected(struct rpc_channel *channel, void *user)
{
    struct lister *lister = user;

    (void)channel;
    lister->connected = true;
    list_begin(lister);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct lister *lister = user;

    lister->channel = NULL;
    lister->connected = lister->no_events = false;
    rpc_channel_close(channel);
    try_later(lister, reason);
}

static const struct rpc_channel_ops CHANNEL_OPS = {.connected = on_connected, .lost = on_lost};

static void on_timer(uv_timer_t *timer)
{
    struct lister *lister = timer->data;
    int r;

    if (lister->call)
        return;
    if (lister->channel) {
        if (lister->connected)
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

static void check_free(struct check *check)
{
    HASH_DELETE(hh, check->lister->checks, check);
    free(check->container_id);
    free(check);
}

static void check_end(struct check *check, enum lister_finding finding)
{
    struct lister *lister = check->lister;
    uint64_t number = check->number;

    check_free(check);
    lister->ops->checked(lister->user, number, finding);
}

static void on_check(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__ListContainersResponse *list = (const void *)message;
    struct check *check = user;

    (void)call;
    check->finding = LISTER_GONE;
    /* The filter also takes a prefix of the id. */
    for (size_t i = 0; i < list->n_containers; i++) {
        if (strcmp(list->containers[i]->id, check->container_id) == 0)
            check->finding = may_run(list->containers[i]->state) ? LISTER_RUNNING : LISTER_STOPPED;
    }
}

static void on_check_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct check *check = user;

    (void)call;
    check->call = NULL;
    check_end(check, status->code == RPC_OK ? check->finding : LISTER_UNKNOWN);
}

static const struct rpc_call_ops CHECK_OPS = {.message = on_check, .done = on_check_done};

static void on_unasked(uv_timer_t *timer)
{
    struct lister *lister = timer->data;
    struct check *check, *next;

    /* One at a time: the callback may add others. */
    HASH_ITER(hh, lister->checks, check, next)
    {
        if (check->call)
            continue;
        uv_timer_start(&lister->unasked, on_unasked, 0, 0);
        check_end(check, LISTER_UNKNOWN);
        return;
    }
}

void lister_check(struct lister *lister, uint64_t number, const char *container_id)
{
    Runtime__V1__ListContainersRequest request = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
    Runtime__V1__ContainerFilter filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
    struct check *check = must(calloc(1, sizeof *check));

    check->lister = lister;
    check->number = number;
    check->container_id = must(strdup(container_id));
    filter.id = check->container_id;
    request.filter = &filter;
    if (lister->channel && HASH_COUNT(lister->checks) < LISTER_CHECKS_MAX)
        check->call = rpc_channel_call(lister->channel, CRI_LIST_CONTAINERS_PATH, &request.base,
                                       &runtime__v1__list_containers_response__descriptor, 0,
                                       LISTER_CALL_MS_MAX, &CHECK_OPS, check);
    HASH_ADD(hh, lister->checks, number, sizeof check->number, check);
    if (!check->call)
        uv_timer_start(&lister->unasked, on_unasked, 0, 0);
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
    lister->pause_ms = LISTER_RETRY_MS_MIN;
    uv_timer_init(loop, &lister->timer);
    uv_timer_init(loop, &lister->unasked);
    lister->timer.data = lister;
    lister->unasked.data = lister;
    lister->handles = 2;
    uv_timer_start(&lister->timer, on_timer, 0, 0);
    return lister;
}

static void on_closed(uv_handle_t *handle)
{
    struct lister *lister = handle->data;
    void (*done)(void *user) = lister->done;
    void *user = lister->done_user;

    if (--lister->handles > 0)
        return;
    free(lister);
    done(user);
}

void lister_stop(struct lister *lister, void (*done)(void *user), void *user)
{
    struct check *check, *next;

    lister->done = done;
    lister->done_user = user;
    rpc_channel_close(lister->channel); /* ends the calls without a callback */
    list_end(lister);
    HASH_ITER(hh, lister->checks, check, next)
    {
        check_free(check);
    }
    uv_close((uv_handle_t *)&lister->timer, on_closed);
    uv_close((uv_handle_t *)&lister->unasked, on_closed);
}
