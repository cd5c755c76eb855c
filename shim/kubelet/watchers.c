#include "shim/kubelet/watchers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/message.h"

/* A process that watches, and what it last reported. */
struct watcher {
    LIST_ENTRY(watcher) entry;
    pid_t pid; /* 0: of another pid namespace */
    char version[WATCHERS_VERSION_BYTES_MAX];
    unsigned streams;
    Bridge__V1__ReportRequest *report; /* NULL: none yet */
};

/* One open Watch. */
struct watch_stream {
    LIST_ENTRY(watch_stream) entry;
    struct watchers *watchers;
    struct watcher *watcher;
    struct rpc_incoming *call;
    struct advertised_reader reader;
};

/* ---- processes ---- */

static struct watcher *watcher_find(const struct watchers *watchers, pid_t pid)
{
    struct watcher *watcher;

    LIST_FOREACH(watcher, &watchers->processes, entry) {
        if (watcher->pid == pid)
            return watcher;
    }
    return NULL;
}

static pid_t caller_pid(const struct rpc_incoming *call)
{
    struct ucred peer;

    rpc_incoming_peer(call, &peer);
    return peer.pid;
}

/* The one a new stream belongs to: the first from now on. */
static struct watcher *watcher_join(struct watchers *watchers, pid_t pid)
{
    struct watcher *watcher = watcher_find(watchers, pid);

    if (watcher) {
        LIST_REMOVE(watcher, entry);
    } else {
        if (LIST_EMPTY(&watchers->processes))
            watchers->since_ms = boot_now_ms();
        watcher = must(calloc(1, sizeof *watcher));
        watcher->pid = pid;
    }
    LIST_INSERT_HEAD(&watchers->processes, watcher, entry);
    watcher->streams++;
    return watcher;
}

static void watcher_drop_report(struct watcher *watcher)
{
    if (watcher->report)
        bridge__v1__report_request__free_unpacked(watcher->report, NULL);
    watcher->report = NULL;
}

static void watcher_leave(struct watchers *watchers, struct watcher *watcher)
{
    if (--watcher->streams > 0)
        return;
    LIST_REMOVE(watcher, entry);
    watcher_drop_report(watcher);
    free(watcher);
    if (LIST_EMPTY(&watchers->processes))
        watchers->since_ms = boot_now_ms();
}

/* ---- Watch ---- */

static void watch_free(struct watch_stream *watch)
{
    LIST_REMOVE(watch, entry);
    watch->watchers->streams_len--;
    watcher_leave(watch->watchers, watch->watcher);
    free(watch);
}

/* 0, or a negative errno. */
static int watch_send(struct watch_stream *watch, const struct advertised *advertised,
                      uint64_t mask_ms)
{
    struct advertised_message message;
    int r;

    advertised_message_init(&message, advertised, &watch->reader, mask_ms);
    r = rpc_incoming_send(watch->call, &message.response.base);
    if (r == 0)
        watch->reader.through = message.through;
    advertised_message_fini(&message);
    return r;
}

/* False: not all of it, it takes no more now. */
static bool watch_update(struct watch_stream *watch, const struct advertised *advertised,
                         uint64_t mask_ms)
{
    int r = 0;

    while (watch->reader.through != advertised->version && r == 0) {
        if (rpc_incoming_queued(watch->call) > WATCHERS_QUEUED_BYTES_MAX)
            return false;
        r = watch_send(watch, advertised, mask_ms);
    }
    if (r == 0 || r == -ENOBUFS) /* calls of the same client may have filled its queue */
        return r == 0;
    log_error("the bridge (process %d) cannot be told what to show: %s", watch->watcher->pid,
              strerror(-r));
    rpc_incoming_finish(watch->call, RPC_RESOURCE_EXHAUSTED, strerror(-r));
    watch_free(watch);
    return true;
}

bool watchers_update(struct watchers *watchers, const struct advertised *advertised,
                     uint64_t mask_ms)
{
    struct watch_stream *watch, *next;
    bool all = true;

    for (watch = LIST_FIRST(&watchers->streams); watch; watch = next) {
        next = LIST_NEXT(watch, entry);
        all = watch_update(watch, advertised, mask_ms) && all;
    }
    return all;
}

static void on_cancelled(void *user)
{
    struct watch_stream *watch = user;
    struct watchers *watchers = watch->watchers;

    log_write_about(
        LOG_LEVEL_WARNING, &(struct log_about){.kind = LOG_KIND_BRIDGE_GONE},
        "the bridge (process %d) has gone; until the next one runs the kubelet waits for "
        "it, or, where no service manager keeps its connections, takes the devices for "
        "unhealthy",
        watch->watcher->pid);
    watch_free(watch);
    watchers->gone(watchers->user);
}

bool watchers_add(struct watchers *watchers, struct rpc_incoming *call,
                  const Bridge__V1__WatchRequest *request)
{
    struct watch_stream *watch;

    if (watchers->streams_len >= WATCHERS_STREAMS_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many watch already");
        return false;
    }
    watch = must(calloc(1, sizeof *watch));
    watch->watchers = watchers;
    watch->call = call;
    watch->reader.takes_changes = request->takes_changes;
    watch->watcher = watcher_join(watchers, caller_pid(call));
    snprintf(watch->watcher->version, sizeof watch->watcher->version, "%s",
             request->bridge_version);
    LIST_INSERT_HEAD(&watchers->streams, watch, entry);
    watchers->streams_len++;
    rpc_incoming_on_cancel(call, on_cancelled, watch);
    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_BRIDGE_HERE},
                    "the bridge is here: version %s, process %d", request->bridge_version,
                    watch->watcher->pid);
    return true;
}

/* ---- Report ---- */

static bool report_is_possible(const Bridge__V1__ReportRequest *report)
{
    if (report->n_resources > WATCHERS_REPORTS_MAX || report->n_drivers > WATCHERS_DRIVERS_MAX ||
        protobuf_c_message_get_packed_size(&report->base) > WATCHERS_REPORT_BYTES_MAX)
        return false;
    for (size_t i = 0; i < report->n_resources; i++) {
        if (strlen(report->resources[i]->name) > WATCHERS_NAME_BYTES_MAX)
            return false;
    }
    return true;
}

/* Whether something is stored, and the report before did not say just the same. */
static bool stores_anew(const Bridge__V1__ReportRequest *report,
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

bool watchers_report(struct watchers *watchers, struct rpc_incoming *call,
                     const Bridge__V1__ReportRequest *report, bool *stores)
{
    Bridge__V1__ReportResponse response = BRIDGE__V1__REPORT_RESPONSE__INIT;
    struct watcher *watcher = watcher_find(watchers, caller_pid(call));
    Bridge__V1__ReportRequest *kept;

    if (!watcher) {
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, "Watch comes first");
        return false;
    }
    if (!report_is_possible(report)) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT,
                            "too many resources, too long a name, or too many bytes");
        return false;
    }
    kept = (Bridge__V1__ReportRequest *)message_copy(&report->base);
    if (!kept) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        return false;
    }
    taken_sort(kept);
    *stores = stores_anew(kept, watcher->report);
    watcher_drop_report(watcher);
    watcher->report = kept;
    rpc_incoming_answer(call, &response.base);
    return true;
}

/* ---- what they say ---- */

void watchers_judge(const struct watchers *watchers, const struct advertised *advertised,
                    const struct kubelet_file *file, pid_t kubelet, struct taken *out)
{
    const struct watcher *watcher;
    bool reported = false;
    struct taken taken;

    taken_judge(advertised, NULL, file, kubelet, out);
    LIST_FOREACH(watcher, &watchers->processes, entry) {
        if (out->all)
            return;
        if (!watcher->report)
            continue;
        taken_judge(advertised, watcher->report, file, kubelet, &taken);
        if (taken.all || !reported)
            *out = taken;
        reported = true;
    }
}

enum displaced_seen watchers_look(const struct watchers *watchers,
                                  const struct advertised_list *list,
                                  const struct kubelet_file *file)
{
    enum displaced_seen seen = DISPLACED_UNKNOWN;
    const struct watcher *watcher;

    LIST_FOREACH(watcher, &watchers->processes, entry) {
        if (seen == DISPLACED_UNKNOWN)
            seen = taken_look(list, watcher->report, file);
    }
    return seen;
}

bool watchers_stored(const struct watchers *watchers, const struct advertised_list *list,
                     const struct kubelet_file *file)
{
    const struct watcher *watcher;
    bool stored = false;

    LIST_FOREACH(watcher, &watchers->processes, entry) {
        stored = stored || taken_stored(list, watcher->report, file);
    }
    return stored;
}

void watchers_note(const struct watchers *watchers, pid_t kubelet, struct taken *out)
{
    const struct watcher *watcher;

    out->bridge = !LIST_EMPTY(&watchers->processes);
    out->reached = false;
    LIST_FOREACH(watcher, &watchers->processes, entry) {
        if (watcher->report && watcher->report->kubelet_pid == kubelet)
            out->reached = true;
    }
}

void watchers_look_at_bridge(const struct watchers *watchers, struct watchers_bridge *out)
{
    const struct watcher *watcher = LIST_FIRST(&watchers->processes);

    *out = (struct watchers_bridge){
        .connected = watcher, .since_ms = watchers->since_ms, .degraded = ""};
    if (!watcher)
        return;
    out->pid = watcher->pid;
    out->kubelet_pid = watcher->report ? watcher->report->kubelet_pid : 0;
    out->degraded = watcher->report ? watcher->report->degraded : "";
    memcpy(out->version, watcher->version, sizeof out->version);
}

bool watchers_have_driver(const struct watchers *watchers, const char *driver)
{
    const struct watcher *watcher = LIST_FIRST(&watchers->processes);
    const Bridge__V1__ReportRequest *report = watcher ? watcher->report : NULL;

    for (size_t i = 0; report && i < report->n_drivers; i++) {
        if (strcmp(report->drivers[i], driver) == 0)
            return true;
    }
    return false;
}

/* ---- life ---- */

void watchers_init(struct watchers *watchers, void (*gone)(void *user), void *user)
{
    *watchers = (struct watchers){.gone = gone, .user = user, .since_ms = boot_now_ms()};
    LIST_INIT(&watchers->processes);
    LIST_INIT(&watchers->streams);
}

void watchers_fini(struct watchers *watchers)
{
    while (!LIST_EMPTY(&watchers->streams))
        watch_free(LIST_FIRST(&watchers->streams));
}
