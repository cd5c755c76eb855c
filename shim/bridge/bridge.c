#include "shim/bridge/bridge.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/boot_clock.h"
#include "shim/bridge/dra/stand_ins.h"
#include "shim/bridge/feed_client.h"
#include "shim/bridge/kept_connection.h"
#include "shim/bridge/kubelet_dir.h"
#include "shim/bridge/limits.h"
#include "shim/bridge/own_settings.h"
#include "shim/bridge/registration.h"
#include "shim/bridge/roster.h"
#include "shim/bridge/snapshot.h"
#include "shim/bridge/starts.h"
#include "shim/deaths.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"
#include "shim/rpc/listener.h"

/* What earlier bridges have crashed at (deaths.h), in the directory of the feed's socket. */
#define DEATHS_NAME "bridge.deaths"

struct bridge {
    struct endpoint_world world;
    struct settings *settings;
    struct kubelet_dir *dir; /* NULL: it may not register yet */
    struct registration *registration;
    struct feed_client *feed;
    struct roster roster;
    struct stand_ins *stand_ins;
    size_t written; /* checkpoints of the kubelet's, since all lists were last stored */
    Bridge__V1__ReportRequest report;
    Bridge__V1__ResourceReport *reports;
    char *registered[STAND_INS_MAX]; /* the report's */
    uv_timer_t snapshot_timer;
    uv_timer_t start_timer;            /* until it may register */
    uv_timer_t stored_timer;           /* until the listeners of what is not shown go */
    bool resources_told, drivers_told; /* by the daemon, in this life */
    char *starts_path;
    char *snapshot_path;
    char boot_id[BOOT_ID_BYTES_MAX];
    int snapshot_error;
    unsigned handles;
};

/* ---- the file ---- */

#define RESOURCE_LIST_FIELD 3 /* Resource.list */

/* A resource of the file. Its list is packed, and so put in as a field that protobuf-c does not
 * know: it writes such a one as the bytes behind the tag. */
struct kept {
    Bridge__V1__Resource message;
    ProtobufCMessageUnknownField list;
    struct packed packed;
};

/* 0 or -ENOMEM. */
static int keep(struct kept *kept, const struct roster_row *row)
{
    int err = list_pack(endpoint_offer(row->endpoint)->list, &kept->packed);

    bridge__v1__resource__init(&kept->message);
    kept->message.name = row->resource;
    kept->message.mask_end_ms = row->mask_end_ms;
    kept->list = (ProtobufCMessageUnknownField){.tag = RESOURCE_LIST_FIELD,
                                                .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                                .len = kept->packed.len,
                                                .data = kept->packed.bytes};
    kept->message.base.unknown_fields = &kept->list;
    kept->message.base.n_unknown_fields = 1;
    return err;
}

/* 0 or a negative errno. */
static int snapshot_make(const struct bridge *bridge)
{
    Bridge__V1__WatchResponse state = BRIDGE__V1__WATCH_RESPONSE__INIT;
    struct kept *kept = must(calloc(bridge->roster.len + 1, sizeof *kept));
    Bridge__V1__Driver *drivers[STAND_INS_MAX];
    int err = 0;

    state.mask_ms = bridge->roster.mask_ms;
    state.drivers = drivers;
    state.n_drivers = stand_ins_shown(bridge->stand_ins, drivers);
    state.resources = must(calloc(bridge->roster.len + 1, sizeof *state.resources));
    for (size_t i = 0; i < bridge->roster.len && !err; i++) {
        const struct roster_row *row = &bridge->roster.rows[i];

        if (!row->endpoint || !endpoint_offer(row->endpoint)->list)
            continue;
        state.resources[state.n_resources] = &kept[state.n_resources].message;
        err = keep(&kept[state.n_resources++], row);
    }
    if (!err)
        err =
            snapshot_write(bridge->snapshot_path, bridge->boot_id, bridge->roster.lost_ms, &state);
    for (size_t i = 0; i < state.n_resources; i++)
        packed_fini(&kept[i].packed);
    free(kept);
    free(state.resources);
    return err;
}

static void snapshot_save(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;
    int err = snapshot_make(bridge);

    if (err && err != bridge->snapshot_error)
        log_warning("%s: %s; a restart of the bridge will have to wait for the daemon",
                    bridge->snapshot_path, strerror(-err));
    bridge->snapshot_error = err;
}

/* Within that time; not pushed back by the next change. */
static void snapshot_within(struct bridge *bridge, uint64_t delay_ms)
{
    uv_timer_t *timer = &bridge->snapshot_timer;

    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > delay_ms)
        uv_timer_start(timer, snapshot_save, delay_ms, 0);
}

static void snapshot_later(struct bridge *bridge)
{
    snapshot_within(bridge, SNAPSHOT_DELAY_MS);
}

static void on_withdrawn(void *user)
{
    snapshot_later(user);
}

/* ---- the feed ---- */

/* Who connects to what is not shown would wait for ever. */
static void forget_stored(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;

    uv_timer_stop(timer);
    fd_store_drop(bridge->world.store, STORED_LISTENERS);
    fd_store_drop(bridge->world.store, KEPT_CONNECTIONS);
}

/* Once it is known what is shown. */
static void on_told(struct bridge *bridge)
{
    if (bridge->resources_told && bridge->drivers_told)
        forget_stored(&bridge->stored_timer);
}

static void on_stand_ins_told(void *user)
{
    struct bridge *bridge = user;

    bridge->drivers_told = true;
    on_told(bridge);
}

static void on_drivers_registered(void *user)
{
    struct bridge *bridge = user;

    feed_client_report(bridge->feed);
}

static void on_drivers_shown(void *user)
{
    snapshot_within(user, 0);
}

static const struct stand_ins_ops STAND_INS_OPS = {
    .told = on_stand_ins_told, .registered = on_drivers_registered, .shown = on_drivers_shown};

static bool on_watched(void *user, const Bridge__V1__WatchResponse *message, bool first)
{
    struct bridge *bridge = user;
    size_t known = bridge->roster.len;
    int result;

    if (message->settings && own_settings_take(bridge->settings, message->settings))
        settings_tell_ready(bridge->settings);
    roster_feed_found(&bridge->roster);
    result = roster_take(&bridge->roster, message, first);
    if (first) {
        bridge->resources_told = true;
        on_told(bridge);
        stand_ins_feed_came(bridge->stand_ins);
    }
    if (bridge->roster.len > known)
        snapshot_within(bridge, 0); /* the next bridge is to know it, too */
    else
        snapshot_within(bridge, first || result != 0 ? SNAPSHOT_DELAY_MS : SNAPSHOT_HELD_DELAY_MS);
    return result >= 0;
}

static void on_feed_lost(void *user)
{
    struct bridge *bridge = user;

    roster_feed_lost(&bridge->roster, boot_now_ms());
    stand_ins_feed_lost(bridge->stand_ins);
    snapshot_later(bridge);
}

static void report_row(const struct roster_row *row, Bridge__V1__ResourceReport *out)
{
    struct endpoint_report report = {.refused = true}; /* what cannot be shown is over, too */

    if (row->endpoint)
        endpoint_report(row->endpoint, &report);
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
    report->degraded = bridge->settings->degraded;
    bridge->reports = must(calloc(bridge->roster.len + 1, sizeof *bridge->reports));
    report->resources = must(calloc(bridge->roster.len + 1, sizeof *report->resources));
    report->n_resources = bridge->roster.len;
    for (size_t i = 0; i < bridge->roster.len; i++) {
        report_row(&bridge->roster.rows[i], &bridge->reports[i]);
        report->resources[i] = &bridge->reports[i];
    }
    report->drivers = bridge->registered;
    report->n_drivers = stand_ins_registered(bridge->stand_ins, bridge->registered);
    return report;
}

static const struct feed_client_ops FEED_OPS = {
    .watched = on_watched,
    .lost = on_feed_lost,
    .report = on_report,
};

void bridge_settings_read(struct bridge *bridge)
{
    feed_client_report(bridge->feed);
}

static void on_endpoint_changed(void *user)
{
    struct bridge *bridge = user;

    feed_client_report(bridge->feed);
}

/* ---- the kubelet ---- */

static void on_endpoints(void *user)
{
    struct bridge *bridge = user;

    roster_each(&bridge->roster, endpoint_listen);
}

static void on_kubelet_went(void *user)
{
    struct bridge *bridge = user;

    roster_each(&bridge->roster, endpoint_kubelet_went);
    feed_client_report(bridge->feed);
}

static void on_kubelet_came(void *user)
{
    struct bridge *bridge = user;

    roster_each(&bridge->roster, endpoint_kubelet_came);
    feed_client_report(bridge->feed);
}

static void on_socket(void *user, enum kubelet_socket now)
{
    struct bridge *bridge = user;

    if (now == KUBELET_SOCKET_NEW) {
        bridge->written = 0;
        on_kubelet_went(bridge);
    }
    registration_socket(bridge->registration, now);
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

    for (size_t i = 0; i < bridge->roster.len; i++)
        lists += bridge->roster.rows[i].endpoint
                     ? endpoint_unstored(bridge->roster.rows[i].endpoint)
                     : 0;
    if (lists == 0)
        return;
    if (times < lists && bridge->written + times < lists) {
        bridge->written += times;
        return;
    }
    bridge->written = 0;
    roster_each(&bridge->roster, endpoint_set_stored);
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

/* Shows what the last bridge showed. The mask counts from when that one lost the feed. */
static void take_snapshot(struct bridge *bridge)
{
    const char *why;
    uint64_t now_ms = boot_now_ms(), lost_ms = 0;
    Bridge__V1__WatchResponse *state =
        snapshot_read(bridge->snapshot_path, bridge->boot_id, &lost_ms, &why);

    bool counts = lost_ms && lost_ms < now_ms;

    roster_feed_lost(&bridge->roster, counts ? lost_ms : now_ms);
    if (!state) {
        log_info("%s: %s; nothing is shown until the daemon says what", bridge->snapshot_path, why);
        return;
    }
    log_info("%s: %zu resources shown as before", bridge->snapshot_path, state->n_resources);
    if (roster_take(&bridge->roster, state, true) < 0)
        log_warning("%s: not all of it could be taken", bridge->snapshot_path);
    roster_each(&bridge->roster, endpoint_forget_version);
    stand_ins_restore(bridge->stand_ins, state->drivers, state->n_drivers);
    bridge__v1__watch_response__free_unpacked(state, NULL);
    if (!counts)
        snapshot_save(&bridge->snapshot_timer); /* or each restart would begin a new mask */
}

/* A file that has ended two bridges is not read by a third. */
static void set_fatal_snapshot_aside(const struct bridge *bridge)
{
    char *aside = path_beside(bridge->snapshot_path, SNAPSHOT_NAME ".damaged");

    if (deaths_of(DEATHS_SNAPSHOT, 2)) {
        log_error("%s: the bridge has crashed reading it, twice; it is set aside as %s",
                  bridge->snapshot_path, aside);
        if (rename(bridge->snapshot_path, aside) < 0)
            unlink(bridge->snapshot_path);
        deaths_forget();
    }
    free(aside);
}

static void restore(struct bridge *bridge)
{
    uint64_t before;

    deaths_watch_beside(bridge->snapshot_path, DEATHS_NAME);
    set_fatal_snapshot_aside(bridge);
    before = deaths_enter(DEATHS_SNAPSHOT);
    take_snapshot(bridge);
    deaths_enter(before);
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

struct bridge *bridge_start(uv_loop_t *loop, struct settings *settings, struct fd_store *store)
{
    const struct config_bridge *config = &settings->config.bridge;
    struct bridge *bridge = must(calloc(1, sizeof *bridge));
    const char *dir = config->kubelet_plugin_dir;
    char *kubelet_socket = path_join(dir, KUBELET_SOCKET_NAME);
    uint64_t delay_ms;

    bridge->settings = settings;
    bridge->snapshot_path = path_beside(config->socket, SNAPSHOT_NAME);
    bridge->starts_path = path_beside(config->socket, STARTS_NAME);
    boot_id_read(bridge->boot_id);
    bridge->registration = registration_new(loop, kubelet_socket, &REGISTRATION_OPS, bridge);
    free(kubelet_socket);
    bridge->feed = feed_client_start(loop, config->socket, &FEED_OPS, bridge);
    bridge->world = (struct endpoint_world){
        .loop = loop,
        .kubelet_dir = dir,
        .registration = bridge->registration,
        .feed = bridge->feed,
        .store = store,
        .preferred_timeout_ms = &config->preferred_timeout_ms,
        .changed = on_endpoint_changed,
        .user = bridge,
    };
    roster_init(&bridge->roster, &bridge->world, on_withdrawn, bridge);
    bridge->stand_ins =
        stand_ins_new(loop, bridge->feed, store, config->socket,
                      settings->config.dra.kubelet_registry_dir, &STAND_INS_OPS, bridge);
    bridge->handles++;
    timer_init(bridge, &bridge->snapshot_timer);
    timer_init(bridge, &bridge->start_timer);
    timer_init(bridge, &bridge->stored_timer);
    restore(bridge);
    uv_timer_start(&bridge->stored_timer, forget_stored, STORED_MS, 0);
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
    free(bridge);
}

void bridge_stop(struct bridge *bridge)
{
    if (uv_is_active((uv_handle_t *)&bridge->snapshot_timer))
        snapshot_save(&bridge->snapshot_timer);
    /* A manager that restarts us hands over what it keeps, one that stops us ends it (systemd's
     * store is emptied with `stop`, and when the unit has failed for good): which it is we need not
     * know. */
    bridge->world.leaves = fd_store_usable(bridge->world.store);
    roster_fini(&bridge->roster, on_closed);
    stand_ins_free(bridge->stand_ins, bridge->world.leaves);
    starts_forget(bridge->starts_path);
    kubelet_dir_stop(bridge->dir);
    registration_free(bridge->registration);
    feed_client_stop(bridge->feed);
    uv_close((uv_handle_t *)&bridge->snapshot_timer, on_closed);
    uv_close((uv_handle_t *)&bridge->start_timer, on_closed);
    uv_close((uv_handle_t *)&bridge->stored_timer, on_closed);
}
