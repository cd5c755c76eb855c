#include "shim/kubelet/feed.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/kubelet/checkpoint_watch.h"
#include "shim/kubelet/shown.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/rpc.h"

#define SOCKET_DIRECTORY_MODE 0755

/* A process that watches, and what it last reported. */
struct bridge {
    LIST_ENTRY(bridge) entry;
    pid_t pid; /* 0: of another pid namespace */
    unsigned streams;
    Bridge__V1__ReportRequest *report; /* NULL: none yet */
};

/* One open Watch. */
struct stream {
    LIST_ENTRY(stream) entry;
    struct feed *feed;
    struct bridge *bridge;
    struct rpc_incoming *call;
    uint64_t through; /* it has all lists up to that version */
};

/* One open Prefer. */
struct prefer {
    LIST_ENTRY(prefer) entry;
    struct feed *feed;
    struct rpc_incoming *call;
    uint64_t number;
};

struct feed {
    const struct config *config;
    struct manager *manager;
    const struct feed_ops *ops;
    void *user;
    struct rpc_server *server;
    struct keeper *keeper; /* of its socket */
    struct checkpoint_watch *watch;
    const struct kubelet_file *file; /* the watch's; NULL: not read yet, and nothing is sent */
    struct shown shown;
    uint64_t settle_end_ms;
    bool settled;                /* something may be sent; stays so */
    uv_timer_t turn;             /* to look at the core, or at streams that were full */
    LIST_HEAD(, bridge) bridges; /* the one that came last first */
    LIST_HEAD(, stream) streams;
    unsigned streams_len;
    LIST_HEAD(, prefer) prefers;
    unsigned prefers_len;
    uint64_t last_number;
    unsigned parts; /* still to be stopped */
    void (*done)(void *user);
    void *done_user;
};

/* ---- bridges ---- */

static struct bridge *bridge_find(const struct feed *feed, pid_t pid)
{
    struct bridge *bridge;

    LIST_FOREACH(bridge, &feed->bridges, entry)
    {
        if (bridge->pid == pid)
            return bridge;
    }
    return NULL;
}

static pid_t peer_pid(const struct rpc_incoming *call)
{
    struct ucred peer;

    rpc_incoming_peer(call, &peer);
    return peer.pid;
}

/* The one a new stream belongs to: the first from now on. */
static struct bridge *bridge_join(struct feed *feed, pid_t pid)
{
    struct bridge *bridge = bridge_find(feed, pid);

    if (bridge) {
        LIST_REMOVE(bridge, entry);
    } else {
        bridge = must(calloc(1, sizeof *bridge));
        bridge->pid = pid;
    }
    LIST_INSERT_HEAD(&feed->bridges, bridge, entry);
    bridge->streams++;
    return bridge;
}

static void bridge_set_report(struct bridge *bridge, const Bridge__V1__ReportRequest *report)
{
    if (bridge->report)
        bridge__v1__report_request__free_unpacked(bridge->report, NULL);
    bridge->report = report ? (Bridge__V1__ReportRequest *)must_copy(&report->base) : NULL;
}

static void bridge_leave(struct bridge *bridge)
{
    if (--bridge->streams > 0)
        return;
    LIST_REMOVE(bridge, entry);
    bridge_set_report(bridge, NULL);
    free(bridge);
}

/* What the kubelet's checkpoint says, unless it is just being read. */
static const struct kubelet_file *current_file(const struct feed *feed)
{
    return checkpoint_watch_current(feed->watch) ? feed->file : NULL;
}

/* By the first report that has all; else the words are about the newest one. */
static void judge_reports(const struct feed *feed, pid_t kubelet, struct taken *out)
{
    const struct kubelet_file *file = current_file(feed);
    bool reported = false;
    struct bridge *bridge;
    struct taken taken;

    taken_judge(&feed->shown, NULL, file, kubelet, out);
    LIST_FOREACH(bridge, &feed->bridges, entry)
    {
        if (out->all)
            return;
        if (!bridge->report)
            continue;
        taken_judge(&feed->shown, bridge->report, file, kubelet, &taken);
        if (taken.all || !reported)
            *out = taken;
        reported = true;
    }
}

/* Whether a bridge has that kubelet at the other end. */
static bool is_reached(const struct feed *feed, pid_t kubelet)
{
    const struct bridge *bridge;

    LIST_FOREACH(bridge, &feed->bridges, entry)
    {
        if (bridge->report && bridge->report->kubelet_pid == kubelet)
            return true;
    }
    return false;
}

void feed_taken(const struct feed *feed, pid_t kubelet, struct taken *out)
{
    if (!feed->file)
        *out = (struct taken){.words = "the kubelet's checkpoint is being read"};
    else if (feed->shown.core_version != devicemgr_shown_version(manager_core(feed->manager)))
        *out = (struct taken){.words = "what it is shown is just changing"};
    else if (!feed->settled)
        *out = (struct taken){.words = "a plugin that was there before is about to list"};
    else
        judge_reports(feed, kubelet, out);
    out->bridge = !LIST_EMPTY(&feed->bridges);
    out->reached = is_reached(feed, kubelet);
}

/* ---- Watch ---- */

static void stream_free(struct stream *stream)
{
    LIST_REMOVE(stream, entry);
    stream->feed->streams_len--;
    bridge_leave(stream->bridge);
    free(stream);
}

/* 0, or a negative errno. */
static int stream_send(struct stream *stream)
{
    struct feed *feed = stream->feed;
    struct shown_message message;
    int r;

    shown_message_init(&message, &feed->shown, stream->through, feed->config->bridge.mask_ms);
    r = rpc_incoming_send(stream->call, &message.response.base);
    if (r == 0)
        stream->through = message.through;
    shown_message_fini(&message);
    return r;
}

/* Sends what the stream has not got. False: not all of it, it takes no more now. */
static bool stream_update(struct stream *stream)
{
    int r = 0;

    while (stream->through != stream->feed->shown.version && r == 0) {
        if (rpc_incoming_queued(stream->call) > FEED_QUEUED_BYTES_MAX)
            return false;
        r = stream_send(stream);
    }
    if (r == 0 || r == -ENOBUFS) /* calls of the same client may have filled its queue */
        return r == 0;
    log_error("the bridge (process %d) cannot be told what to show: %s", stream->bridge->pid,
              strerror(-r));
    rpc_incoming_finish(stream->call, RPC_RESOURCE_EXHAUSTED, strerror(-r));
    stream_free(stream);
    return true;
}

static void on_turn(uv_timer_t *timer);

/* There is a turn then at the latest. */
static void turn_within(struct feed *feed, uint64_t wait_ms)
{
    uv_update_time(feed->turn.loop);
    if (!uv_is_active((uv_handle_t *)&feed->turn) || uv_timer_get_due_in(&feed->turn) > wait_ms)
        uv_timer_start(&feed->turn, on_turn, wait_ms, 0);
}

static void turn_at_once(struct feed *feed)
{
    turn_within(feed, 0);
}

static void update_streams(struct feed *feed)
{
    struct stream *stream, *next;
    bool waits = false;

    for (stream = LIST_FIRST(&feed->streams); stream; stream = next) {
        next = LIST_NEXT(stream, entry);
        waits = !stream_update(stream) || waits;
    }
    if (waits)
        turn_within(feed, FEED_RETRY_MS);
}

static void on_watch_cancelled(void *user)
{
    struct stream *stream = user;
    struct feed *feed = stream->feed;

    log_warning("the bridge (process %d) has gone; while none runs the kubelet takes its devices "
                "for unhealthy",
                stream->bridge->pid);
    stream_free(stream);
    feed->ops->changed(feed->user);
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__WatchRequest *request = (const Bridge__V1__WatchRequest *)message;
    struct feed *feed = user;
    struct stream *stream;

    if (feed->streams_len >= FEED_STREAMS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many watch already");
        return;
    }
    stream = must(calloc(1, sizeof *stream));
    stream->feed = feed;
    stream->call = call;
    stream->bridge = bridge_join(feed, peer_pid(call));
    LIST_INSERT_HEAD(&feed->streams, stream, entry);
    feed->streams_len++;
    rpc_incoming_on_cancel(call, on_watch_cancelled, stream);
    log_info("the bridge is here: version %s, process %d", request->bridge_version,
             stream->bridge->pid);
    turn_at_once(feed);
}

/* ---- Report ---- */

static bool report_is_possible(const Bridge__V1__ReportRequest *report)
{
    if (report->n_resources > FEED_REPORTS_MAX ||
        protobuf_c_message_get_packed_size(&report->base) > FEED_REPORT_BYTES_MAX)
        return false;
    for (size_t i = 0; i < report->n_resources; i++) {
        if (strlen(report->resources[i]->name) > FEED_NAME_BYTES_MAX)
            return false;
    }
    return true;
}

/* Whether the file may have to be read for it: something is stored, and the report before did not
 * say just the same. */
static bool report_tells_of_file(const Bridge__V1__ReportRequest *report,
                                 const Bridge__V1__ReportRequest *before)
{
    bool stored = false, same = before && before->kubelet_pid == report->kubelet_pid &&
                                before->n_resources == report->n_resources;

    for (size_t i = 0; i < report->n_resources; i++) {
        const Bridge__V1__ResourceReport *one = report->resources[i];
        const Bridge__V1__ResourceReport *was = same ? before->resources[i] : NULL;

        stored = stored || one->stored;
        same = was && was->stored == one->stored && was->version == one->version &&
               strcmp(was->name, one->name) == 0;
    }
    return stored && !same;
}

static void on_report(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__ReportRequest *report = (const Bridge__V1__ReportRequest *)message;
    Bridge__V1__ReportResponse response = BRIDGE__V1__REPORT_RESPONSE__INIT;
    struct feed *feed = user;
    struct bridge *bridge = bridge_find(feed, peer_pid(call));

    if (!bridge) {
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "Watch comes first");
        return;
    }
    if (!report_is_possible(report)) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT,
                            "too many resources, too long a name, or too many bytes");
        return;
    }
    if (report_tells_of_file(report, bridge->report))
        checkpoint_watch_read(feed->watch);
    bridge_set_report(bridge, report);
    if (rpc_incoming_send(call, &response.base) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
    feed->ops->changed(feed->user);
}

/* ---- Prefer ---- */

static void prefer_free(struct prefer *prefer)
{
    LIST_REMOVE(prefer, entry);
    prefer->feed->prefers_len--;
    free(prefer);
}

static void on_prefer_cancelled(void *user)
{
    struct prefer *prefer = user;
    struct manager *manager = prefer->feed->manager;

    devicemgr_prefer_cancelled(manager_core(manager), prefer->number);
    prefer_free(prefer);
    manager_kick(manager);
}

static void on_prefer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__PreferRequest *request = (const Bridge__V1__PreferRequest *)message;
    struct feed *feed = user;
    struct prefer *prefer;

    if (request->size < 0) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT, "a negative size");
        return;
    }
    if (feed->prefers_len >= FEED_PREFERS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many questions at once");
        return;
    }
    prefer = must(calloc(1, sizeof *prefer));
    prefer->feed = feed;
    prefer->call = call;
    prefer->number = ++feed->last_number;
    LIST_INSERT_HEAD(&feed->prefers, prefer, entry);
    feed->prefers_len++;
    rpc_incoming_on_cancel(call, on_prefer_cancelled, prefer);
    devicemgr_prefer(manager_core(feed->manager), manager_now_ms(), prefer->number,
                     request->resource, (const char *const *)request->available,
                     request->n_available, (const char *const *)request->must_include,
                     request->n_must_include, (size_t)request->size,
                     feed->config->bridge.preferred_timeout_ms);
    manager_kick(feed->manager);
}

void feed_preferred(struct feed *feed, uint64_t number, const char *const *ids, size_t ids_len)
{
    Bridge__V1__PreferResponse response = BRIDGE__V1__PREFER_RESPONSE__INIT;
    struct prefer *prefer;

    LIST_FOREACH(prefer, &feed->prefers, entry)
    {
        if (prefer->number == number)
            break;
    }
    if (!prefer)
        return;
    response.ids = (char **)ids;
    response.n_ids = ids_len;
    if (rpc_incoming_send(prefer->call, &response.base) < 0)
        rpc_incoming_finish(prefer->call, RPC_RESOURCE_EXHAUSTED, "the answer cannot be sent");
    else
        rpc_incoming_finish(prefer->call, RPC_OK, NULL);
    prefer_free(prefer);
}

static const struct rpc_method METHODS[] = {
    {BRIDGE_WATCH, &bridge__v1__watch_request__descriptor, on_watch},
    {BRIDGE_REPORT, &bridge__v1__report_request__descriptor, on_report},
    {BRIDGE_PREFER, &bridge__v1__prefer_request__descriptor, on_prefer},
};

/* ---- the kubelet's checkpoint ---- */

static size_t count_devices(const struct kubelet_checkpoint *checkpoint)
{
    size_t count = 0;

    for (size_t i = 0; i < checkpoint->allocations_len; i++)
        count += checkpoint->allocations[i].devices_len;
    return count;
}

/* Tells the core what the kubelet's pods have. */
static void tell_held(struct feed *feed)
{
    const struct kubelet_checkpoint *checkpoint = &feed->file->checkpoint;
    size_t len = checkpoint->allocations_len;
    struct devicemgr_kubelet_held *held = must(calloc(len + 1, sizeof *held));
    const char **ids = must(calloc(count_devices(checkpoint) + 1, sizeof *ids)), **next = ids;

    for (size_t i = 0; i < len; i++) {
        const struct kubelet_allocation *from = &checkpoint->allocations[i];

        held[i] = (struct devicemgr_kubelet_held){.pod_uid = from->pod_uid,
                                                  .container = from->container,
                                                  .resource = from->resource,
                                                  .ids = next,
                                                  .ids_len = from->devices_len};
        for (size_t k = 0; k < from->devices_len; k++)
            *next++ = from->devices[k].id;
    }
    devicemgr_kubelet_holds(manager_core(feed->manager), manager_now_ms(), feed->file->read_ms,
                            held, len);
    free(ids);
    free(held);
}

static void on_file(void *user, const struct kubelet_file *file)
{
    struct feed *feed = user;

    feed->file = file;
    tell_held(feed);
    manager_kick(feed->manager);
    turn_at_once(feed); /* also if nothing has changed: it may be the first time */
}

static const struct checkpoint_watch_ops WATCH_OPS = {.read = on_file};

/* ---- turns ---- */

/* Whether what is shown may be sent; if not yet, there will be another turn. */
static bool settle(struct feed *feed)
{
    uint64_t now_ms = manager_now_ms();

    feed->settled = feed->settled || !feed->shown.expected || now_ms >= feed->settle_end_ms;
    if (!feed->settled)
        turn_within(feed, feed->settle_end_ms - now_ms);
    return feed->settled;
}

/* As the first bridge has it that can tell. */
static enum displaced_seen look_at(const struct feed *feed, const struct shown_list *list)
{
    enum displaced_seen seen = DISPLACED_UNKNOWN;
    const struct bridge *bridge;

    LIST_FOREACH(bridge, &feed->bridges, entry)
    {
        if (seen == DISPLACED_UNKNOWN)
            seen = taken_look(list, bridge->report, current_file(feed));
    }
    return seen;
}

/* What the kubelet has let go of is to be registered anew. */
static void look_for_lost(struct feed *feed)
{
    uint64_t now_ms = manager_now_ms(), next_ms = UINT64_MAX;

    for (size_t i = 0; i < feed->shown.len; i++) {
        struct shown_list *list = &feed->shown.lists[i];
        enum displaced_seen seen = look_at(feed, list);

        if (displaced_step(&list->displaced, seen, now_ms)) {
            log_warning("resource %s: the kubelet has no healthy device of it: a plugin that "
                        "registered with the kubelet itself has taken it over, and has gone or has "
                        "none; it is registered anew",
                        list->resource);
            shown_set_lost(&feed->shown, list);
        }
        if (seen == DISPLACED_YES && displaced_next_ms(&list->displaced) < next_ms)
            next_ms = displaced_next_ms(&list->displaced);
    }
    if (next_ms != UINT64_MAX)
        turn_within(feed, next_ms - now_ms);
}

static void on_turn(uv_timer_t *timer)
{
    struct feed *feed = timer->data;

    if (!feed->file)
        return;
    if (shown_update(&feed->shown, manager_core(feed->manager)) == SHOWN_NAMES) {
        /* What is held of a resource that was not shown was not taken by the core. */
        tell_held(feed);
        manager_kick(feed->manager);
        shown_update(&feed->shown, manager_core(feed->manager));
    }
    if (settle(feed)) {
        look_for_lost(feed);
        update_streams(feed);
    }
    feed->ops->changed(feed->user);
}

void feed_look(struct feed *feed)
{
    /* In the next turn: an event of the core is often one of many. */
    if (devicemgr_shown_version(manager_core(feed->manager)) != feed->shown.core_version)
        turn_at_once(feed);
}

/* ---- life ---- */

static int serve(void *user)
{
    struct feed *feed = user;

    return rpc_server_listen(feed->server);
}

static void open_socket(struct feed *feed, uv_loop_t *loop)
{
    const char *path = feed->config->bridge.socket, *slash = strrchr(path, '/');
    char dir[PATH_MAX], what[PATH_MAX + 64];
    const struct socket_place place = {
        .dir = dir, .dir_mode = SOCKET_DIRECTORY_MODE, .name = slash + 1};

    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    if (rpc_server_new(loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, feed,
                       &feed->server) < 0)
        abort(); /* out of memory */
    snprintf(what, sizeof what, "bridge.socket = \"%s\"", path);
    feed->keeper = keeper_start(loop, what, serve, feed);
}

struct feed *feed_start(uv_loop_t *loop, const struct config *config, struct manager *manager,
                        const struct feed_ops *ops, void *user)
{
    struct feed *feed = must(calloc(1, sizeof *feed));

    feed->config = config;
    feed->manager = manager;
    feed->ops = ops;
    feed->user = user;
    LIST_INIT(&feed->bridges);
    LIST_INIT(&feed->streams);
    LIST_INIT(&feed->prefers);
    open_socket(feed, loop);
    feed->settle_end_ms = manager_now_ms() + FEED_SETTLE_MS;
    uv_timer_init(loop, &feed->turn);
    feed->turn.data = feed;
    feed->watch = checkpoint_watch_start(loop, config->bridge.kubelet_plugin_dir, &WATCH_OPS, feed);
    return feed;
}

static void on_part_stopped(void *user)
{
    struct feed *feed = user;
    void (*done)(void *user) = feed->done;
    void *done_user = feed->done_user;

    if (--feed->parts > 0)
        return;
    free(feed);
    done(done_user);
}

static void on_turn_closed(uv_handle_t *handle)
{
    on_part_stopped(handle->data);
}

void feed_stop(struct feed *feed, void (*done)(void *user), void *user)
{
    feed->done = done;
    feed->done_user = user;
    feed->parts = 2;
    keeper_stop(feed->keeper);
    rpc_server_close(feed->server);
    while (!LIST_EMPTY(&feed->streams))
        stream_free(LIST_FIRST(&feed->streams));
    while (!LIST_EMPTY(&feed->prefers)) {
        devicemgr_prefer_cancelled(manager_core(feed->manager), LIST_FIRST(&feed->prefers)->number);
        prefer_free(LIST_FIRST(&feed->prefers));
    }
    shown_fini(&feed->shown);
    checkpoint_watch_stop(feed->watch, on_part_stopped, feed);
    uv_close((uv_handle_t *)&feed->turn, on_turn_closed);
}
