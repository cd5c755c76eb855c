#include "shim/bridge/bridge.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/boot.h"
#include "shim/bridge/feed_client.h"
#include "shim/bridge/kubelet_dir.h"
#include "shim/bridge/limits.h"
#include "shim/bridge/registration.h"
#include "shim/bridge/shown.h"
#include "shim/bridge/snapshot.h"
#include "shim/bridge/starts.h"
#include "shim/log.h"
#include "shim/must.h"

/* One resource of the feed. */
struct row {
    char *resource;
    struct shown *shown; /* NULL: it cannot be shown */
    uint64_t mask_end_ms;
    uint64_t lost; /* of the feed's */
    bool named;    /* in the message that is being read */
    /* Since when the daemon, a new one, does not know it, CLOCK_BOOTTIME; 0: it does. It may have
     * lost its state, and the plugin is about to register anew: shown for as long as the mask. */
    uint64_t unknown_ms;
};

struct bridge {
    struct shown_world world;
    struct kubelet_dir *dir; /* NULL: it may not register yet */
    struct registration *registration;
    struct feed_client *feed;
    struct row *rows; /* in the order of names, except while a message is being read */
    size_t rows_len;
    uint64_t mask_ms;
    uint64_t lost_ms; /* since when the feed is lost, CLOCK_BOOTTIME; 0: it is not */
    uv_timer_t mask_timer;
    size_t written; /* checkpoints of the kubelet's, since all lists were last stored */
    Bridge__V1__ReportRequest report;
    Bridge__V1__ResourceReport *reports;
    uv_timer_t snapshot_timer;
    uv_timer_t start_timer; /* until it may register */
    char *starts_path;
    char *snapshot_path;
    char boot_id[BOOT_ID_BYTES_MAX];
    int snapshot_error;
    unsigned handles;
};

/* ---- rows ---- */

static int order(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->resource, ((const struct row *)b)->resource);
}

/* The first `sorted` rows are in order, those behind them are new ones. */
static struct row *row_find(const struct bridge *bridge, size_t sorted, const char *resource)
{
    const struct row key = {.resource = (char *)resource};
    struct row *row = sorted ? bsearch(&key, bridge->rows, sorted, sizeof key, order) : NULL;

    for (size_t i = sorted; i < bridge->rows_len && !row; i++) {
        if (strcmp(bridge->rows[i].resource, resource) == 0)
            row = &bridge->rows[i];
    }
    return row;
}

static void rows_sort(struct bridge *bridge)
{
    if (bridge->rows_len > 1)
        qsort(bridge->rows, bridge->rows_len, sizeof *bridge->rows, order);
}

static struct row *row_add(struct bridge *bridge, const char *resource)
{
    struct row *row;

    bridge->rows = must(realloc(bridge->rows, (bridge->rows_len + 1) * sizeof *bridge->rows));
    row = &bridge->rows[bridge->rows_len++];
    *row = (struct row){.resource = must(strdup(resource)),
                        .shown = shown_new(&bridge->world, resource)};
    return row;
}

/* For all that can be shown. */
static void each_shown(const struct bridge *bridge, void (*each)(struct shown *shown))
{
    for (size_t i = 0; i < bridge->rows_len; i++) {
        if (bridge->rows[i].shown)
            each(bridge->rows[i].shown);
    }
}

static void row_fini(struct row *row)
{
    shown_free(row->shown);
    free(row->resource);
}

/* ---- the file ---- */

static Bridge__V1__Resource *row_message(const struct row *row)
{
    Bridge__V1__Resource *message = must(malloc(sizeof *message));

    bridge__v1__resource__init(message);
    message->name = row->resource;
    message->mask_end_ms = row->mask_end_ms;
    message->list = list_unpack(shown_list(row->shown));
    return message;
}

static void snapshot_fill(const struct bridge *bridge, Bridge__V1__WatchResponse *state)
{
    state->mask_ms = bridge->mask_ms;
    state->resources = must(calloc(bridge->rows_len + 1, sizeof *state->resources));
    for (size_t i = 0; i < bridge->rows_len; i++) {
        const struct row *row = &bridge->rows[i];

        if (row->shown && shown_list(row->shown)->bytes)
            state->resources[state->n_resources++] = row_message(row);
    }
}

static void snapshot_save(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;
    Bridge__V1__WatchResponse state = BRIDGE__V1__WATCH_RESPONSE__INIT;
    int err;

    snapshot_fill(bridge, &state);
    err = snapshot_write(bridge->snapshot_path, bridge->boot_id, bridge->lost_ms, &state);
    if (err && err != bridge->snapshot_error)
        log_warning("%s: %s; a restart of the bridge will have to wait for the daemon",
                    bridge->snapshot_path, strerror(-err));
    bridge->snapshot_error = err;
    for (size_t i = 0; i < state.n_resources; i++) {
        bridge__v1__device_list__free_unpacked(state.resources[i]->list, NULL);
        free(state.resources[i]);
    }
    free(state.resources);
}

/* Soon; not pushed back by the next change. */
static void snapshot_later(struct bridge *bridge)
{
    if (!uv_is_active((uv_handle_t *)&bridge->snapshot_timer))
        uv_timer_start(&bridge->snapshot_timer, snapshot_save, SNAPSHOT_DELAY_MS, 0);
}

/* ---- the mask ---- */

static bool row_masked(const struct bridge *bridge, const struct row *row, uint64_t now_ms)
{
    return (bridge->lost_ms && now_ms - bridge->lost_ms >= bridge->mask_ms) ||
           (row->mask_end_ms && now_ms >= row->mask_end_ms);
}

/* Shortens the wait to when the mask that began at `begin_ms` (0: none did) runs out. */
static void wait_for_mask(const struct bridge *bridge, uint64_t begin_ms, uint64_t now_ms,
                          uint64_t *wait_ms)
{
    uint64_t age_ms = now_ms - begin_ms;

    if (begin_ms && age_ms < bridge->mask_ms && bridge->mask_ms - age_ms < *wait_ms)
        *wait_ms = bridge->mask_ms - age_ms;
}

/* How long until some mask runs out. */
static uint64_t mask_wait_ms(const struct bridge *bridge, uint64_t now_ms)
{
    uint64_t wait_ms = MASK_LOOK_MS;

    wait_for_mask(bridge, bridge->lost_ms, now_ms, &wait_ms);
    for (size_t i = 0; i < bridge->rows_len; i++) {
        uint64_t end_ms = bridge->rows[i].mask_end_ms;

        if (end_ms > now_ms && end_ms - now_ms < wait_ms)
            wait_ms = end_ms - now_ms;
        wait_for_mask(bridge, bridge->rows[i].unknown_ms, now_ms, &wait_ms);
    }
    return wait_ms;
}

/* Ends those that are neither named nor shown for a while yet. */
static void remove_unnamed(struct bridge *bridge, uint64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < bridge->rows_len; i++) {
        struct row *row = &bridge->rows[i];

        if (row->named || (row->unknown_ms && now_ms - row->unknown_ms < bridge->mask_ms)) {
            bridge->rows[kept++] = *row;
        } else {
            log_info("%s: withdrawn", row->resource);
            row_fini(row);
            snapshot_later(bridge);
        }
    }
    bridge->rows_len = kept;
}

static void update_masks(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;
    uint64_t now_ms = boot_now_ms();

    remove_unnamed(bridge, now_ms);
    for (size_t i = 0; i < bridge->rows_len; i++) {
        if (bridge->rows[i].shown)
            shown_update(bridge->rows[i].shown, NULL, 0,
                         row_masked(bridge, &bridge->rows[i], now_ms));
    }
    uv_timer_start(timer, update_masks, mask_wait_ms(bridge, now_ms), 0);
}

/* ---- what is shown ---- */

static void apply_resource(struct bridge *bridge, size_t sorted,
                           const Bridge__V1__Resource *message, bool first)
{
    struct row *row = row_find(bridge, sorted, message->name);
    bool lost = row && !first && message->lost != row->lost;

    if (!row)
        row = row_add(bridge, message->name);
    row->named = true;
    row->unknown_ms = 0;
    row->mask_end_ms = message->mask_end_ms;
    row->lost = message->lost;
    if (!row->shown)
        return;
    shown_update(row->shown, message->list, message->version,
                 row_masked(bridge, row, boot_now_ms()));
    if (lost)
        shown_register_anew(row->shown);
}

static void row_set_unknown(struct row *row)
{
    if (row->unknown_ms)
        return;
    row->unknown_ms = boot_now_ms();
    log_info("%s: the daemon does not know it (yet)", row->resource);
}

/* `first`: of a daemon that may be another one than before. */
static void apply(struct bridge *bridge, const Bridge__V1__WatchResponse *message, bool first)
{
    size_t known = bridge->rows_len, len = message->n_resources;

    if (len > BRIDGE_RESOURCES_MAX) {
        log_warning("feed: %zu resources, only the first %d are shown", len, BRIDGE_RESOURCES_MAX);
        len = BRIDGE_RESOURCES_MAX;
    }
    bridge->mask_ms = message->mask_ms;
    for (size_t i = 0; i < known; i++)
        bridge->rows[i].named = false;
    for (size_t i = 0; i < len; i++)
        apply_resource(bridge, known, message->resources[i], first);
    for (size_t i = 0; i < known && first; i++) {
        if (!bridge->rows[i].named)
            row_set_unknown(&bridge->rows[i]);
    }
    remove_unnamed(bridge, boot_now_ms());
    rows_sort(bridge);
    update_masks(&bridge->mask_timer);
}

/* ---- the feed ---- */

static void on_watched(void *user, const Bridge__V1__WatchResponse *message, bool first)
{
    struct bridge *bridge = user;

    bridge->lost_ms = 0;
    apply(bridge, message, first);
    snapshot_later(bridge);
}

static void on_feed_lost(void *user)
{
    struct bridge *bridge = user;

    bridge->lost_ms = boot_now_ms();
    each_shown(bridge, shown_forget_version);
    update_masks(&bridge->mask_timer);
    snapshot_later(bridge);
}

static void report_row(const struct row *row, Bridge__V1__ResourceReport *out)
{
    struct shown_report report = {.refused = true}; /* what cannot be shown is over, too */

    if (row->shown)
        shown_report(row->shown, &report);
    bridge__v1__resource_report__init(out);
    out->name = row->resource;
    out->registered = report.registered;
    out->version = report.version;
    out->stored = report.stored;
    out->refused = report.refused;
}

static void report_clear(struct bridge *bridge)
{
    free(bridge->report.resources);
    free(bridge->reports);
}

static const Bridge__V1__ReportRequest *on_report(void *user)
{
    struct bridge *bridge = user;
    Bridge__V1__ReportRequest *report = &bridge->report;

    report_clear(bridge);
    bridge__v1__report_request__init(report);
    report->kubelet_pid = registration_pid(bridge->registration);
    bridge->reports = must(calloc(bridge->rows_len + 1, sizeof *bridge->reports));
    report->resources = must(calloc(bridge->rows_len + 1, sizeof *report->resources));
    report->n_resources = bridge->rows_len;
    for (size_t i = 0; i < bridge->rows_len; i++) {
        report_row(&bridge->rows[i], &bridge->reports[i]);
        report->resources[i] = &bridge->reports[i];
    }
    return report;
}

static const struct feed_client_ops FEED_OPS = {
    .watched = on_watched,
    .lost = on_feed_lost,
    .report = on_report,
};

static void on_shown_changed(void *user)
{
    struct bridge *bridge = user;

    feed_client_report(bridge->feed);
}

/* ---- the kubelet ---- */

static void on_endpoints(void *user)
{
    each_shown(user, shown_listen);
}

static void on_kubelet_went(void *user)
{
    struct bridge *bridge = user;

    each_shown(bridge, shown_kubelet_went);
    feed_client_report(bridge->feed);
}

static void on_kubelet_came(void *user)
{
    struct bridge *bridge = user;

    each_shown(bridge, shown_kubelet_came);
    feed_client_report(bridge->feed);
}

static void on_socket(void *user, bool present)
{
    struct bridge *bridge = user;

    if (present) {
        bridge->written = 0;
        on_kubelet_went(bridge);
    }
    registration_socket(bridge->registration, present);
}

/*
 * The kubelet writes its checkpoint after each list, one at a time (pkg/kubelet/cm/devicemanager/
 * manager.go, genericDeviceUpdateCallback), but the file does not say for which. So all of them are
 * stored when there were as many writes as lists.
 */
static void on_stored(void *user, size_t times)
{
    struct bridge *bridge = user;
    size_t lists = 0;

    for (size_t i = 0; i < bridge->rows_len; i++)
        lists += bridge->rows[i].shown ? shown_unstored(bridge->rows[i].shown) : 0;
    if (lists == 0)
        return;
    if (times < lists && bridge->written + times < lists) {
        bridge->written += times;
        return;
    }
    bridge->written = 0;
    each_shown(bridge, shown_set_stored);
    feed_client_report(bridge->feed);
}

static const struct kubelet_dir_ops DIR_OPS = {
    .endpoints = on_endpoints,
    .socket = on_socket,
    .stored = on_stored,
};

/* It connects only after the first look has found the socket. */
static void on_connect(void *user)
{
    struct bridge *bridge = user;

    kubelet_dir_look(bridge->dir);
}

static const struct registration_ops REGISTRATION_OPS = {
    .look = on_connect,
    .connected = on_kubelet_came,
    .lost = on_kubelet_went,
};

/* ---- life ---- */

static char *join(const char *dir, size_t dir_bytes, const char *name)
{
    char *path;

    if (asprintf(&path, "%.*s/%s", (int)dir_bytes, dir, name) < 0)
        abort(); /* out of memory */
    return path;
}

/* Shows what the last bridge showed. The mask counts from when that one lost the feed. */
static void restore(struct bridge *bridge)
{
    const char *why;
    uint64_t now_ms = boot_now_ms(), lost_ms = 0;
    Bridge__V1__WatchResponse *state =
        snapshot_read(bridge->snapshot_path, bridge->boot_id, &lost_ms, &why);

    bridge->lost_ms = now_ms;
    if (!state) {
        log_info("%s: %s; nothing is shown until the daemon says what", bridge->snapshot_path, why);
        return;
    }
    if (lost_ms && lost_ms < now_ms)
        bridge->lost_ms = lost_ms;
    log_info("%s: %zu resources shown as before", bridge->snapshot_path, state->n_resources);
    apply(bridge, state, true);
    each_shown(bridge, shown_forget_version);
    bridge__v1__watch_response__free_unpacked(state, NULL);
    if (bridge->lost_ms != lost_ms)
        snapshot_save(&bridge->snapshot_timer); /* or each restart would begin a new mask */
}

static void timer_init(struct bridge *bridge, uv_timer_t *timer)
{
    uv_timer_init(bridge->world.loop, timer);
    timer->data = bridge;
    bridge->handles++;
}

static void look_at_kubelet(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;

    bridge->dir = kubelet_dir_start(timer->loop, bridge->world.kubelet_dir, &DIR_OPS, bridge);
}

struct bridge *bridge_start(uv_loop_t *loop, const struct config_bridge *config)
{
    struct bridge *bridge = must(calloc(1, sizeof *bridge));
    const char *dir = config->kubelet_plugin_dir, *slash = strrchr(config->socket, '/');
    char *kubelet_socket = join(dir, strlen(dir), KUBELET_SOCKET_NAME);
    uint64_t delay_ms;

    bridge->snapshot_path = join(config->socket, (size_t)(slash - config->socket), SNAPSHOT_NAME);
    bridge->starts_path = join(config->socket, (size_t)(slash - config->socket), STARTS_NAME);
    boot_id_read(bridge->boot_id);
    bridge->registration = registration_new(loop, kubelet_socket, &REGISTRATION_OPS, bridge);
    free(kubelet_socket);
    bridge->feed = feed_client_start(loop, config->socket, &FEED_OPS, bridge);
    bridge->world = (struct shown_world){
        .loop = loop,
        .kubelet_dir = dir,
        .registration = bridge->registration,
        .feed = bridge->feed,
        .preferred_timeout_ms = config->preferred_timeout_ms,
        .changed = on_shown_changed,
        .user = bridge,
    };
    timer_init(bridge, &bridge->mask_timer);
    timer_init(bridge, &bridge->snapshot_timer);
    timer_init(bridge, &bridge->start_timer);
    restore(bridge);
    delay_ms = starts_note(bridge->starts_path, boot_now_ms());
    if (delay_ms > 0)
        log_warning("started again and again: registering with the kubelet in %llu ms",
                    (unsigned long long)delay_ms);
    uv_timer_start(&bridge->start_timer, look_at_kubelet, delay_ms, 0);
    return bridge;
}

static void on_closed(uv_handle_t *handle)
{
    struct bridge *bridge = handle->data;

    if (--bridge->handles > 0)
        return;
    report_clear(bridge);
    free(bridge->snapshot_path);
    free(bridge->starts_path);
    free(bridge->rows);
    free(bridge);
}

void bridge_stop(struct bridge *bridge)
{
    if (uv_is_active((uv_handle_t *)&bridge->snapshot_timer))
        snapshot_save(&bridge->snapshot_timer);
    for (size_t i = 0; i < bridge->rows_len; i++)
        row_fini(&bridge->rows[i]);
    bridge->rows_len = 0;
    starts_forget(bridge->starts_path);
    kubelet_dir_stop(bridge->dir);
    registration_free(bridge->registration);
    feed_client_stop(bridge->feed);
    uv_close((uv_handle_t *)&bridge->mask_timer, on_closed);
    uv_close((uv_handle_t *)&bridge->snapshot_timer, on_closed);
    uv_close((uv_handle_t *)&bridge->start_timer, on_closed);
}
