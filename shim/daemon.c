#include "shim/daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include <uv.h>

#include "shim/boot_clock.h"
#include "shim/cluster/cluster.h"
#include "shim/cluster/lift_driver.h"
#include "shim/control/control.h"
#include "shim/control/list.h"
#include "shim/core/host.h"
#include "shim/core/lifted.h"
#include "shim/daemon_events.h"
#include "shim/daemon_inside.h"
#include "shim/daemon_report.h"
#include "shim/daemon_settings.h"
#include "shim/deaths.h"
#include "shim/fd_store.h"
#include "shim/kubelet/feed.h"
#include "shim/kubelet/gate.h"
#include "shim/level_file.h"
#include "shim/log.h"
#include "shim/loop.h"
#include "shim/metrics/metrics.h"
#include "shim/page/page.h"
#include "shim/process.h"
#include "shim/program.h"
#include "shim/relay/calls.h"
#include "shim/relay/relay.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/stored_listener.h"
#include "shim/signals.h"
#include "shim/version.h"
#include "shim/watchdog.h"

/* What earlier processes have crashed at (deaths.h), beside the CRI socket. */
#define DEATHS_NAME "deaths"

/* ---- starting ---- */

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct daemon *d = user;

    calls_verdict(d->calls, create, verdict);
}

static void on_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct daemon *d = user;

    if (d->feed)
        feed_preferred(d->feed, number, ids, ids_len);
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    struct daemon *d = user;

    if (d->control)
        control_steered(d->control, number, steered);
}

static void on_claim_look(void *user, const struct devicemgr_claim *claim)
{
    struct daemon *d = user;

    if (d->cluster)
        cluster_claim_look(d->cluster, claim);
}

static void on_lift_prepare(void *user, uint64_t call, const struct devicemgr_claim *claim,
                            uint64_t timeout_ms)
{
    struct daemon *d = user;

    if (d->cluster)
        lift_driver_prepare(cluster_lift_driver(d->cluster), call, claim, timeout_ms);
    else
        lifted_refuse(d->host, call);
}

static void on_lift_cancel(void *user, uint64_t call)
{
    struct daemon *d = user;

    if (d->cluster)
        lift_driver_cancel(cluster_lift_driver(d->cluster), call);
}

static void on_evict_pod(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    struct daemon *d = user;

    if (d->cluster)
        cluster_evict(d->cluster, order, eviction);
}

static void on_evict_cancel(void *user, uint64_t order)
{
    struct daemon *d = user;

    if (d->cluster)
        cluster_evict_cancel(d->cluster, order);
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct daemon *d = user;

    if (d->feed)
        feed_claim_done(d->feed, number, done);
}

static void on_driver_health(void *user, const char *driver, uint64_t instance,
                             const DraHealth__V1alpha1__NodeWatchResourcesResponse *health)
{
    struct daemon *d = user;

    if (d->feed)
        feed_driver_health(d->feed, driver, instance, health);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    struct daemon *d = user;

    daemon_event_of_core(d->events, event);
    if (d->cluster)
        cluster_happened(d->cluster, event);
}

static void on_kicked(void *user)
{
    struct daemon *d = user;

    calls_look(d->calls);
    if (d->feed)
        feed_look(d->feed);
    if (d->cluster)
        cluster_look(d->cluster);
}

static void on_feed_changed(void *user)
{
    struct daemon *d = user;

    if (d->gate)
        gate_changed(d->gate);
}

static const struct feed_ops FEED_OPS = {.changed = on_feed_changed};

/* What stands in for the plugins at the kubelet. */
static void start_feed(struct daemon *d)
{
    if (!d->config->bridge.enabled)
        return;
    d->feed = feed_start(&d->loop, d->config, d->host, d->store, &FEED_OPS, d);
    feed_settings_read(d->feed, d->settings);
}

/* Without a bridge no kubelet has what is shown here. */
static bool is_published(void *user, const char *resource)
{
    struct daemon *d = user;

    return d->feed && feed_kubelet_has(d->feed, resource);
}

/* Drivers that are away stay with the kubelet as long as there is who wipes their slices. */
static void on_cluster_changed(void *user)
{
    struct daemon *d = user;

    if (d->feed)
        feed_show_drivers_away(d->feed, cluster_works(d->cluster));
}

static const struct cluster_ops CLUSTER_OPS = {.published = is_published,
                                               .changed = on_cluster_changed};

/* What knows the cluster. */
static void start_cluster(struct daemon *d)
{
    if (d->config->cluster.enabled)
        d->cluster = cluster_start(&d->loop, d->config, d->host, d->store, &CLUSTER_OPS, d);
}

static void on_report(void *user, struct report *out)
{
    struct daemon *d = user;
    const struct daemon_rooms rooms = {.settings = d->settings,
                                       .started_ms = d->started_ms,
                                       .host = d->host,
                                       .events = d->events,
                                       .feed = d->feed,
                                       .gate = d->gate,
                                       .cluster = d->cluster,
                                       .keeper = d->keeper,
                                       .control = d->control};

    daemon_report(&rooms, out);
}

static enum list_at_kubelet at_kubelet(void *user, const char *driver)
{
    const struct daemon *d = user;

    if (!d->feed)
        return LIST_AT_NO_KUBELET;
    if (feed_kubelet_has_driver(d->feed, driver))
        return LIST_REGISTERED;
    return feed_shows_driver(d->feed, driver) ? LIST_SHOWN : LIST_AT_NO_KUBELET;
}

static void pod_claims(void *user, const char *pod,
                       void (*each)(void *to, const char *pod_namespace, const char *claim),
                       void *to)
{
    const struct daemon *d = user;

    cluster_pod_claims(d->cluster, pod, each, to);
}

static void shutdown_said(void *user,
                          void (*told)(void *to, const struct devicemgr_shutdown_said *said),
                          void *to)
{
    const struct daemon *d = user;

    cluster_shutdown_now(d->cluster, told, to);
}

static void published(void *user, void (*each)(void *to, const struct published_pool *pool),
                      void *to)
{
    const struct daemon *d = user;

    cluster_published(d->cluster, each, to);
}

static void slices(void *user, const char *pool,
                   void (*each)(void *to, const struct published_slice *slice), void *to)
{
    const struct daemon *d = user;

    cluster_slices(d->cluster, pool, each, to);
}

static void on_look_for_lists(void *user, struct list_from *out)
{
    struct daemon *d = user;

    out->health = d->feed ? feed_health(d->feed) : NULL;
    out->wipes = d->cluster && cluster_works(d->cluster);
    out->at_kubelet = at_kubelet;
    out->pod_claims = d->cluster ? pod_claims : NULL;
    out->shutdown_said = d->cluster ? shutdown_said : NULL;
    out->published = d->cluster ? published : NULL;
    out->slices = d->cluster ? slices : NULL;
    out->user = d;
}

static int on_reload(void *user, struct settings_reloaded *out)
{
    struct daemon *d = user;

    return d->stopping ? -1 : daemon_reload(d->settings, d->host, d->feed, d->ready, out);
}

static void on_level(void *user, int level)
{
    struct daemon *d = user;

    d->level_told = true;
    daemon_set_level(d->settings, d->feed, level);
}

/* What was told to an earlier process counts until this one is told something else. */
static void on_level_read(void *user, int level)
{
    struct daemon *d = user;

    if (level != 0 && !d->level_told)
        daemon_set_level(d->settings, d->feed, level);
}

static const struct control_ops CONTROL_OPS = {
    .report = on_report, .look = on_look_for_lists, .reload = on_reload, .set_level = on_level};

/* Not before the rows are the core's, or cannot be: who asks is not to be told that there is
 * nothing. */
static void start_control(struct daemon *d)
{
    if (!d->control && d->config->control_socket[0] != '\0')
        d->control =
            control_start(&d->loop, d->settings, d->host, d->events, d->store, &CONTROL_OPS, d);
}

/* Settings by which all of it has begun are worth keeping. */
static void started_so_far(struct daemon *d)
{
    if (d->ready && d->restored)
        settings_keep(d->settings, &d->loop);
}

static int serve_relay(void *user)
{
    struct daemon *d = user;
    int result = relay_listen(d->relay);

    if (result >= 0 && !d->ready) {
        d->ready = true;
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STARTED},
                        "cri-device-shim %s: %s -> %s, plugins register in %s", version_text,
                        d->config->listen, d->config->runtime_endpoint, d->config->plugin_dir);
        settings_tell_ready(d->settings);
        started_so_far(d);
    }
    return result;
}

static void start_relay(struct daemon *d)
{
    char what[PATH_MAX + 64];

    daemon_start_gate(d);
    d->relay = relay_start(&d->loop, d->config->listen, fd_store_take_socket(d->store), d->store,
                           d->config->runtime_endpoint, d->calls, *d->config->metrics.listen);
    snprintf(what, sizeof what, "listen = \"%s\"", d->config->listen);
    d->keeper = keeper_start(&d->loop, what, serve_relay, d);
}

/* The relay goes first if the checkpoint cannot be read, and at once behind it if it can: no create
 * is to be refused for the few milliseconds that takes. It also goes first if that is many of them:
 * then creates wait, and nothing else. */
static void on_delayed(void *user)
{
    struct daemon *d = user;

    if (!d->stopping)
        start_relay(d);
}

static void on_ready(void *user)
{
    struct daemon *d = user;

    if (d->stopping)
        return;
    d->restored = true;
    start_feed(d);
    start_cluster(d);
    if (!d->relay)
        start_relay(d);
    else
        started_so_far(d);
    start_control(d);
    fd_store_drop(d->store, STORED_LISTENERS); /* of what is not wanted any more */
}

static void on_known(void *user)
{
    struct daemon *d = user;

    calls_known(d->calls);
    if (!d->stopping && host_knows_rows(d->host))
        start_control(d);
}

static const struct host_ops HOST_OPS = {.verdict = on_verdict,
                                         .preferred = on_preferred,
                                         .event = on_event,
                                         .claim_look = on_claim_look,
                                         .lift_prepare = on_lift_prepare,
                                         .lift_cancel = on_lift_cancel,
                                         .evict_pod = on_evict_pod,
                                         .evict_cancel = on_evict_cancel,
                                         .claim_done = on_claim_done,
                                         .driver_health = on_driver_health,
                                         .steered = on_steered,
                                         .ready = on_ready,
                                         .delayed = on_delayed,
                                         .known = on_known,
                                         .kicked = on_kicked};

/* ---- other settings ---- */

static void on_asked_to_reload(void *user)
{
    struct settings_reloaded told;

    (void)!on_reload(user, &told);
}

/* ---- who watches ---- */

static const char *not_ready(const struct daemon *d)
{
    if (!d->ready)
        return "the relay does not listen yet";
    if (!d->restored)
        return "the checkpoint is not read yet";
    if (d->gate && gate_holds(d->gate) > 0)
        return "a kubelet that has started is held until it has the devices";
    return NULL;
}

static void on_look(void *user, struct metrics_view *out)
{
    struct daemon *d = user;
    struct watchers_bridge bridge = {0};

    if (d->feed)
        feed_look_at_bridge(d->feed, &bridge);

    *out =
        (struct metrics_view){.host = d->host,
                              .started_ms = d->started_ms,
                              .relay = d->relay ? relay_counts(d->relay) : NULL,
                              .creates = calls_create_counts(d->calls),
                              .gate = d->gate ? gate_counts(d->gate) : NULL,
                              .gate_holds = d->gate ? gate_holds(d->gate) : 0,
                              .bridge = bridge.connected,
                              .feed_queued_max = d->feed ? feed_queued_max(d->feed) : 0,
                              .control_queued_max = d->control ? control_queued_max(d->control) : 0,
                              .not_ready = not_ready(d)};
}

static bool on_get(void *user, const struct http_request *request, struct http_answer *out)
{
    struct daemon *d = user;

    return d->page && page_get(d->page, request, out);
}

static const struct metrics_ops METRICS_OPS = {.look = on_look, .report = on_report, .get = on_get};
static const struct page_ops PAGE_OPS = {.report = on_report, .look = on_look_for_lists};

static void start_metrics(struct daemon *d)
{
    if (!*d->config->metrics.listen)
        return;
    if (d->config->metrics.page)
        d->page = page_new(d->settings, d->host, d->events, &PAGE_OPS, d);
    d->metrics = metrics_start(&d->loop, d->config->metrics.listen, &METRICS_OPS, d);
}

static int run(struct daemon *d)
{
    d->started_ms = boot_now_ms();
    process_keep_spare();
    deaths_watch_beside(d->config->listen, DEATHS_NAME);
    program_note();
    d->calls = calls_new();
    if (!d->calls) {
        log_error("out of memory");
        return -ENOMEM;
    }
    level_file_read(&d->loop, d->config->state_dir, on_level_read, d);
    signals_start(&d->signals, &d->loop, daemon_on_stop, on_asked_to_reload, d);
    watchdog_start(&d->watchdog, &d->loop);
    d->events = daemon_events_start(&d->loop, d->config);
    d->host = host_start(&d->loop, d->config, d->store, &HOST_OPS, d);
    calls_bind(d->calls, d->host);
    start_metrics(d);
    if (d->config->bridge.redirect_plugin_mounts)
        calls_set_redirect(d->calls, d->config->bridge.kubelet_plugin_dir, d->config->plugin_dir);
    if (d->config->dra.enabled)
        calls_set_driver_redirect(d->calls, d->config->dra.kubelet_registry_dir,
                                  d->config->dra.registry_dir,
                                  (const char *const *)d->config->dra.redirect_mounts,
                                  d->config->dra.redirect_mounts_len);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    calls_free(d->calls);
    return 0;
}

int daemon_run(struct settings *settings)
{
    struct daemon d = {.settings = settings, .config = &settings->config, .store = fd_store_new()};
    int result;

    umask(022); /* the modes of what is made are its maker's matter */
    loop_init(&d.loop);
    result = run(&d);
    uv_loop_close(&d.loop);
    fd_store_drop(d.store, STORED_LISTENERS); /* of one that was stopped before it served them */
    fd_store_free(d.store);
    return result;
}
