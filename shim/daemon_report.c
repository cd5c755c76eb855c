#include "shim/daemon_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/shutdown.h"
#include "shim/boot_clock.h"

/* A disk that works has taken a commit long before. */
#define COMMIT_HANGS_MS 5000

/* `since_ms` is what the call for `why` has set: hence a pointer, since nobody says which argument
 * is looked at first. */
static void add_if(struct report *out, enum report_part part, const char *why,
                   const uint64_t *since_ms)
{
    if (why)
        report_trouble(out, part, why, *since_ms);
}

/* ---- the device manager, and what it is bound to ---- */

/* One that does not end has no error to tell. */
static void report_commit(const struct daemon_rooms *rooms, struct report *out)
{
    uint64_t since_ms = host_commit_since_ms(rooms->host);

    if (since_ms > 0 && boot_now_ms() - since_ms >= COMMIT_HANGS_MS)
        report_trouble(out, REPORT_STORE,
                       "the disk with state_dir has not taken a commit since then; new allocations "
                       "wait for it",
                       since_ms);
}

static void report_store(const struct daemon_rooms *rooms, struct report *out)
{
    struct devicemgr_health health;
    char why[REPORT_WORDS_BYTES_MAX];

    devicemgr_health(host_core(rooms->host), &health);
    out->runtime_listed = health.listed;
    if (health.unread) {
        snprintf(why, sizeof why, "%s; containers with devices are refused until it can be read",
                 health.unread);
        report_trouble(out, REPORT_STORE, why, rooms->started_ms);
    }
    if (health.unstored) {
        snprintf(why, sizeof why, "state cannot be stored: %s", health.unstored);
        report_trouble(out, REPORT_STORE, why, health.unstored_ms);
    } else {
        report_commit(rooms, out);
    }
}

static void report_runtime(const struct daemon_rooms *rooms, struct report *out)
{
    struct lister_state runtime;
    char why[REPORT_WORDS_BYTES_MAX];

    host_look_at_runtime(rooms->host, &runtime);
    out->runtime_connected = runtime.connected;
    out->runtime_since_ms = runtime.since_ms > 0 ? runtime.since_ms : rooms->started_ms;
    snprintf(out->runtime_name, sizeof out->runtime_name, "%s", runtime.name);
    snprintf(out->runtime_version, sizeof out->runtime_version, "%s", runtime.version);
    if (!host_ready(rooms->host))
        return;
    if (!runtime.connected) {
        report_trouble(out, REPORT_RUNTIME, "it does not answer; it is asked until it does",
                       runtime.since_ms);
    } else if (runtime.failing[0] != '\0') {
        snprintf(why, sizeof why, "it does not list its containers (%s); it is asked until it does",
                 runtime.failing);
        report_trouble(out, REPORT_RUNTIME, why, runtime.failing_ms);
    } else if (!out->runtime_listed) {
        report_trouble(out, REPORT_RUNTIME, "it has not listed its containers yet",
                       runtime.since_ms);
    }
}

/* ---- the kubelet, and what stands in for plugins there ---- */

static void report_bridge(const struct daemon_rooms *rooms, struct report *out)
{
    struct watchers_bridge bridge;
    uint64_t since_ms = 0;

    out->bridge_wanted = rooms->settings->config.bridge.enabled;
    if (!rooms->feed)
        return;
    add_if(out, REPORT_FEED, feed_trouble(rooms->feed, &since_ms), &since_ms);
    feed_look_at_bridge(rooms->feed, &bridge);
    out->bridge_pid = bridge.pid;
    out->kubelet_pid = bridge.kubelet_pid;
    snprintf(out->bridge_version, sizeof out->bridge_version, "%s", bridge.version);
    if (*bridge.degraded)
        report_trouble(out, REPORT_BRIDGE, bridge.degraded, bridge.since_ms);
    if (!bridge.connected)
        report_trouble(out, REPORT_BRIDGE, "none is connected: what it shows the kubelet gets old",
                       bridge.since_ms);
}

static void report_kubelet(const struct daemon_rooms *rooms, struct report *out)
{
    struct gate_kubelet kubelet = {0};
    struct taken taken;

    out->gate = "off";
    if (!rooms->gate || !out->bridge_wanted || !rooms->settings->config.bridge.gate)
        return;
    gate_look(rooms->gate, &kubelet);
    out->gate = kubelet.holds ? "holding" : kubelet.armed ? "armed" : "open";
    out->gate_held_ms = kubelet.held_ms;
    if (kubelet.pid > 0)
        out->kubelet_pid = kubelet.pid;
    if (!rooms->feed || out->kubelet_pid == 0)
        return;
    feed_taken(rooms->feed, out->kubelet_pid, &taken);
    snprintf(out->kubelet_words, sizeof out->kubelet_words, "%s", taken.words);
}

/* ---- the cluster ---- */

/* One that has rights for everything else, say. Of several the first: it is the same reason. */
static void add_refused(void *to, const struct published_pool *pool)
{
    struct report *out = to;
    char why[REPORT_WORDS_BYTES_MAX];

    if (!pool->refused || report_is_degraded(out, REPORT_CLUSTER))
        return;
    snprintf(why, sizeof why, "resource %.128s is not published: %s", pool->resource,
             pool->trouble);
    report_trouble(out, REPORT_CLUSTER, why, pool->trouble_ms);
}

static void report_cluster(const struct daemon_rooms *rooms, struct report *out)
{
    struct cluster_state cluster;
    uint64_t since_ms = 0;

    if (!rooms->cluster)
        return;
    add_if(out, REPORT_CLUSTER, cluster_trouble(rooms->cluster, &since_ms), &since_ms);
    cluster_look_at(rooms->cluster, &cluster);
    if (!cluster.connected)
        report_trouble(out, REPORT_CLUSTER, "no agent is connected: nothing new is known of it",
                       cluster.since_ms);
    else if (cluster.trouble[0])
        report_trouble(out, REPORT_CLUSTER, cluster.trouble, cluster.since_ms);
    else
        cluster_published(rooms->cluster, add_refused, out);
}

/* The times of the settings that are there now; a kubelet that ends pods itself needs none of
 * them. */
static void report_shutdown(const struct daemon_rooms *rooms, struct report *out)
{
    const struct shutdown_said *said;
    struct devicemgr_shutdown_view view;
    struct cluster_state cluster;
    char words[REPORT_WORDS_BYTES_MAX];

    if (!rooms->cluster)
        return;
    said = cluster_shutdown(rooms->cluster);
    devicemgr_shutdown_look(host_core(rooms->host), &view);
    cluster_look_at(rooms->cluster, &cluster);
    out->shutdown_pods_known = cluster.pods_known;
    out->shutdown_pods = cluster.pods;
    out->shutdown_locked = said->locked;
    out->shutdown_limit_ms = said->limit_ms;
    if (view.settings_ms == 0)
        return;
    if (said->trouble[0]) {
        report_trouble(out, REPORT_SHUTDOWN, said->trouble, said->heard_ms);
    } else if (said->known && !said->kubelet_locked && said->limit_ms < view.settings_ms) {
        snprintf(words, sizeof words,
                 "logind waits for %" PRIu64 " s at most, and [shutdown] wants %" PRIu64
                 ": InhibitDelayMaxSec of logind.conf is too small",
                 said->limit_ms / 1000, view.settings_ms / 1000);
        report_trouble(out, REPORT_SHUTDOWN, words, said->heard_ms);
    }
}

/* ---- all of them ---- */

void daemon_report(const struct daemon_rooms *rooms, struct report *out)
{
    uint64_t since_ms = 0;

    if (rooms->settings->degraded[0])
        report_trouble(out, REPORT_SETTINGS, rooms->settings->degraded, rooms->started_ms);
    if (rooms->keeper)
        add_if(out, REPORT_RELAY, keeper_trouble(rooms->keeper, &since_ms), &since_ms);
    if (rooms->control)
        add_if(out, REPORT_CONTROL, control_trouble(rooms->control, &since_ms), &since_ms);
    report_store(rooms, out);
    add_if(out, REPORT_EVENTS, events_trouble(rooms->events, &since_ms), &since_ms);
    report_runtime(rooms, out);
    add_if(out, REPORT_REGISTRAR, host_registrar_trouble(rooms->host, &since_ms), &since_ms);
    add_if(out, REPORT_REGISTRY, host_registry_trouble(rooms->host, &since_ms), &since_ms);
    report_bridge(rooms, out);
    report_kubelet(rooms, out);
    report_cluster(rooms, out);
    report_shutdown(rooms, out);
}
