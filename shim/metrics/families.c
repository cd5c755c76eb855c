#include "shim/metrics/families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/counts.h"
#include "devicemgr/dra.h"
#include "devicemgr/shutdown.h"
#include "shim/boot_clock.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"
#include "shim/version.h"

static void put_gauge(struct exposition *e, const char *name, const char *help, double value)
{
    exposition_family(e, name, GAUGE, help);
    exposition_sample(e, value, NULL);
}

static void put_counter(struct exposition *e, const char *name, const char *help, uint64_t value)
{
    exposition_family(e, name, COUNTER, help);
    exposition_sample(e, (double)value, NULL);
}

/* Of a place behind gRPC's numbers: what is none of them. */
static const char *code_name(int code)
{
    return code <= RPC_UNAUTHENTICATED ? rpc_code_name(code) : "other";
}

/* ---- calls that pass ---- */

static const char *class_name(enum cri_method method)
{
    static const char *const names[] = {[CRI_CLASS_RELAYED] = "relayed",
                                        [CRI_CLASS_OBSERVED] = "observed",
                                        [CRI_CLASS_INTERCEPTED] = "intercepted"};

    return names[cri_method_class(method)];
}

static uint64_t sum(const uint64_t *values, size_t len)
{
    uint64_t total = 0;

    for (size_t i = 0; i < len; i++)
        total += values[i];
    return total;
}

/* Of one that is not followed the end is not seen. */
static uint64_t calls_open(const struct tally_counts *tally, enum cri_method m)
{
    return tally->begun[m] - tally->untimed[m] - sum(tally->ended[m], TALLY_CODES);
}

static void put_calls(struct exposition *e, const struct tally_counts *tally)
{
    exposition_family(e, "calls_total", COUNTER, "CRI calls that have ended, by how.");
    for (enum cri_method m = 0; m < CRI_METHODS; m++) {
        for (int code = 0; code < TALLY_CODES; code++) {
            if (tally->ended[m][code] > 0)
                exposition_sample(e, (double)tally->ended[m][code], "method", cri_method_name(m),
                                  "class", class_name(m), "code", code_name(code), NULL);
        }
    }
    exposition_family(e, "calls_begun_total", COUNTER, "CRI calls that have begun.");
    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        exposition_sample(e, (double)tally->begun[m], "method", cri_method_name(m), "class",
                          class_name(m), NULL);
    exposition_family(e, "calls_open", GAUGE, "CRI calls under way: streams of their connections.");
    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        exposition_sample(e, (double)calls_open(tally, m), "method", cri_method_name(m), "class",
                          class_name(m), NULL);
    put_counter(e, "calls_untimed_total", "CRI calls begun beside too many others to be followed.",
                sum(tally->untimed, CRI_METHODS));
    exposition_family(e, "call_duration_seconds", HISTOGRAM,
                      "From a call's first header to its end.");
    for (enum cri_method m = 0; m < CRI_METHODS; m++)
        exposition_histogram(e, &tally->took[m], "method", cri_method_name(m), "class",
                             class_name(m), NULL);
}

static void put_directions(struct exposition *e, const uint64_t values[2])
{
    exposition_sample(e, (double)values[SESSION_CLIENT], "to", "client", NULL);
    exposition_sample(e, (double)values[SESSION_RUNTIME], "to", "runtime", NULL);
}

static void put_relay(struct exposition *e, const struct relay_counts *counts)
{
    put_calls(e, &counts->tally);
    exposition_family(e, "relayed_bytes_total", COUNTER,
                      "Bytes that passed, by whom they are for.");
    put_directions(e, counts->passed.bytes);
    exposition_family(e, "relay_waiting_peak_bytes", GAUGE,
                      "Bytes that one end had not taken, at their most since the start.");
    put_directions(e, counts->passed.waiting_max);
    put_gauge(e, "connections", "Connections of clients now.", counts->open);
    put_counter(e, "connections_total", "Connections of clients taken.", counts->accepted);
    put_counter(e, "connections_resumed_total",
                "Connections of the daemon before this one that went on.", counts->resumed);
    put_counter(e, "connections_lost_total", "Those that could not be gone on with.", counts->lost);
    put_gauge(e, "runtime_reachable", "Whether the last connection to the runtime could be made.",
              !counts->runtime_away);
}

/* ---- the device manager ---- */

/* Numbers of each resource, looked up once for all families: to count what is kept back each device
 * is looked at. */
enum number { HEALTHY, UNHEALTHY, KEPT_BACK, HELD, NUMBERS };

struct resource {
    char *name;
    double of[NUMBERS];
};

struct resources {
    struct resource *v;
    size_t len;
};

static struct resource *add_resource(struct resources *resources, const char *name)
{
    struct resource *one;

    resources->v = must(realloc(resources->v, (resources->len + 1) * sizeof *resources->v));
    one = &resources->v[resources->len++];
    *one = (struct resource){.name = must(strdup(name))};
    return one;
}

static void add_capacity(void *user, const struct devicemgr_capacity *capacity)
{
    struct resource *one = add_resource(user, capacity->resource);

    one->of[HEALTHY] = (double)capacity->healthy;
    one->of[UNHEALTHY] = (double)(capacity->capacity - capacity->healthy);
    one->of[KEPT_BACK] = (double)capacity->kept_back;
}

static void add_held(void *user, const char *resource, size_t devices)
{
    add_resource(user, resource)->of[HELD] = (double)devices;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct resource *)a)->name, ((const struct resource *)b)->name);
}

/* A sample of each; `health` NULL: it has no such label. */
static void put_resources(struct exposition *e, const struct resources *resources,
                          enum number number, const char *health)
{
    for (size_t i = 0; i < resources->len && i < METRICS_RESOURCES_MAX; i++)
        exposition_sample(e, resources->v[i].of[number], "resource", resources->v[i].name,
                          health ? "health" : NULL, health, NULL);
}

static void resources_fini(struct resources *resources)
{
    for (size_t i = 0; i < resources->len; i++)
        free(resources->v[i].name);
    free(resources->v);
}

static void put_devices(struct exposition *e, const struct devicemgr *core)
{
    struct resources listed = {0}, held = {0};

    devicemgr_capacity(core, add_capacity, &listed);
    devicemgr_held(core, add_held, &held);
    if (held.len > 1)
        qsort(held.v, held.len, sizeof *held.v, by_name);
    exposition_family(e, "devices", GAUGE,
                      "Devices listed; all of a plugin that is away are unhealthy.");
    put_resources(e, &listed, HEALTHY, "healthy");
    put_resources(e, &listed, UNHEALTHY, "unhealthy");
    exposition_family(e, "devices_kept_back", GAUGE,
                      "Devices listed that an operator or the settings keep from new holders: "
                      "cordoned, tainted, or of a resource that is withdrawn.");
    put_resources(e, &listed, KEPT_BACK, NULL);
    exposition_family(e, "devices_held", GAUGE,
                      "Devices held, once for each container that may run and holds them.");
    put_resources(e, &held, HELD, NULL);
    put_gauge(
        e, "devices_held_twice",
        "Devices of exclusive resources that several running containers have: never but by who "
        "makes containers beside the shim.",
        (double)devicemgr_held_twice(core));
    put_counter(e, "replacements_total",
                "Times that a container was given devices in the place of what was lost.",
                devicemgr_replaced(core));
    resources_fini(&listed);
    resources_fini(&held);
}

static void put_refusal(void *user, const char *reason, int code, uint64_t count)
{
    exposition_sample(user, (double)count, "reason", reason, "code", code_name(code), NULL);
}

static void put_shutdown(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_shutdown_view view;

    devicemgr_shutdown_look(core, &view);
    put_gauge(e, "machine_shutdown", "Whether the machine goes down: nothing is made then.",
              view.under_way);
    put_gauge(e, "machine_shutdown_pods_remaining", "Pods that are still to end in it.",
              (double)view.remaining);
}

static void put_endings(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_endings endings;

    devicemgr_endings(core, &endings);
    exposition_family(e, "pods_ending", GAUGE,
                      "Pods that are ended from here, or were and are kept from coming back.");
    exposition_sample(e, (double)endings.asked, "state", "asked", NULL);
    exposition_sample(e, (double)endings.evicting, "state", "evicting", NULL);
    exposition_sample(e, (double)endings.evicted, "state", "evicted", NULL);
    exposition_sample(e, (double)endings.stopping, "state", "stopping", NULL);
    exposition_sample(e, (double)endings.stopped, "state", "stopped", NULL);
    put_counter(e, "pods_ended_total", "Pods that have ended so.", endings.ended);
    put_counter(e, "container_stops_total", "StopContainer calls made for that.", endings.stops);
    put_counter(e, "container_stops_failed_total", "Of these those that failed.",
                endings.stops_failed);
    put_counter(e, "evictions_total",
                "Orders to evict a pod, for the API server: one with a shorter grace, or by force, "
                "is another.",
                endings.evictions);
}

static void put_evictions(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_evictions evictions;

    devicemgr_evictions(core, &evictions);
    exposition_family(e, "taint_evictions", GAUGE,
                      "Pods that are to go for taints of their devices: that are not asked to yet, "
                      "or are.");
    exposition_sample(e, (double)evictions.waiting, "state", "waiting", NULL);
    exposition_sample(e, (double)evictions.asked, "state", "asked", NULL);
    put_counter(e, "taint_evictions_asked_total", "Those that were asked to.",
                evictions.asked_total);
    put_counter(e, "taint_evictions_taken_back_total",
                "Those that need not any more, by an untaint or a toleration.",
                evictions.taken_back_total);
    put_gauge(e, "taint_holders_stale",
              "Holders of devices that are NoExecute of which nothing is known here.",
              (double)evictions.stale);
    put_gauge(e, "taints_held_back",
              "Unhealthy devices whose pods are not evicted, since too many of their resource are.",
              (double)evictions.held_back);
}

static void put_endpoints(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_endpoints endpoints;

    devicemgr_endpoints(core, &endpoints);
    exposition_family(e, "endpoints", GAUGE, "Plugins, by the state of their endpoint.");
    exposition_sample(e, (double)endpoints.connecting, "state", "connecting", NULL);
    exposition_sample(e, (double)endpoints.active, "state", "active", NULL);
    exposition_sample(e, (double)endpoints.grace, "state", "grace", NULL);
    exposition_sample(e, (double)endpoints.gone, "state", "gone", NULL);
}

static void put_core(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_kept kept;

    devicemgr_kept(core, &kept);
    put_gauge(e, "creates", "CreateContainer calls with devices that are pending or forwarded.",
              (double)kept.creates);
    put_gauge(e, "creates_held", "Those of them that wait for the world to change.",
              (double)devicemgr_creates_held(core));
    put_gauge(e, "plugin_calls", "Calls of plugins under way for those.", (double)kept.calls);
    put_gauge(e, "allocations", "Containers' devices that are kept, one for each resource.",
              (double)kept.allocations);
    put_gauge(e, "pods", "Pods known.", (double)kept.pods);
    put_devices(e, core);
    put_endpoints(e, core);
    put_endings(e, core);
    put_shutdown(e, core);
    put_evictions(e, core);
    exposition_family(e, "refusals_total", COUNTER, "CreateContainer calls refused, by why.");
    devicemgr_refusals(core, put_refusal, e);
}

static void put_claims_in(void *user, const char *state, size_t claims)
{
    exposition_sample(user, (double)claims, "state", state, NULL);
}

static void put_claim_refusal(void *user, bool unprepare, const char *reason, uint64_t count)
{
    exposition_sample(user, (double)count, "call", unprepare ? "unprepare" : "prepare", "outcome",
                      reason, NULL);
}

static void put_dra(struct exposition *e, const struct devicemgr *core)
{
    struct devicemgr_dra_counts counts;

    devicemgr_dra_count(core, &counts);
    exposition_family(e, "drivers", GAUGE,
                      "DRA drivers known: connected, away, moved to the kubelet, or gone, of which "
                      "nothing is registered.");
    exposition_sample(e, (double)counts.connected, "state", "connected", NULL);
    exposition_sample(e, (double)(counts.drivers - counts.connected - counts.moved - counts.gone),
                      "state", "away", NULL);
    exposition_sample(e, (double)counts.moved, "state", "moved", NULL);
    exposition_sample(e, (double)counts.gone, "state", "gone", NULL);
    exposition_family(e, "claims", GAUGE,
                      "ResourceClaims, once for each driver that may have something of them.");
    devicemgr_claims_by_state(core, put_claims_in, e);
    put_gauge(e, "claim_requests_waiting",
              "Requests of the kubelet's for claims, not answered yet.", (double)counts.waits);
    exposition_family(e, "claim_requests_total", COUNTER,
                      "Requests of the kubelet's for claims, by how they were answered: done, "
                      "owed (put off, since the driver is away), or the reason of the refusal.");
    exposition_sample(e, (double)counts.prepares_done, "call", "prepare", "outcome", "done", NULL);
    exposition_sample(e, (double)counts.unprepares_done, "call", "unprepare", "outcome", "done",
                      NULL);
    exposition_sample(e, (double)counts.unprepares_put_off, "call", "unprepare", "outcome", "owed",
                      NULL);
    devicemgr_claims_refused(core, put_claim_refusal, e);
    put_counter(e, "driver_wipes_total", "Drivers whose ResourceSlices were removed.",
                counts.wipes);
}

static void put_codes(struct exposition *e, const uint64_t counts[HOST_CODES])
{
    for (int code = 0; code < HOST_CODES; code++) {
        if (code == RPC_OK || counts[code] > 0)
            exposition_sample(e, (double)counts[code], "code", code_name(code), NULL);
    }
}

static void put_host(struct exposition *e, const struct host_counts *counts)
{
    exposition_family(e, "registrations_total", COUNTER, "Register calls of plugins, as answered.");
    put_codes(e, counts->registrations);
    exposition_family(e, "allocates_total", COUNTER, "Allocate calls on plugins, as they ended.");
    put_codes(e, counts->allocates);
    exposition_family(e, "allocate_duration_seconds", HISTOGRAM, "Plugins' Allocate.");
    exposition_histogram(e, &counts->allocate, NULL);
    exposition_family(e, "commit_duration_seconds", HISTOGRAM, "Commits of the checkpoint.");
    exposition_histogram(e, &counts->commit, NULL);
    put_counter(e, "commits_failed_total", "Commits that were not kept.", counts->commits_failed);
}

/* ---- creates, the kubelet ---- */

static void put_decisions(struct exposition *e, const struct create_counts *counts)
{
    exposition_family(e, "create_decision_seconds", HISTOGRAM,
                      "From a CreateContainer with devices to its being forwarded or refused.");
    exposition_histogram(e, &counts->forwarded, "outcome", "forwarded", NULL);
    exposition_histogram(e, &counts->refused, "outcome", "refused", NULL);
    exposition_family(e, "create_held_seconds", HISTOGRAM,
                      "How long those of them were held that had to wait for the world to change.");
    exposition_histogram(e, &counts->forwarded_held, "outcome", "forwarded", NULL);
    exposition_histogram(e, &counts->refused_held, "outcome", "refused", NULL);
}

static void put_kubelet(struct exposition *e, const struct metrics_view *view)
{
    static const struct gate_counts none;
    const struct gate_counts *gate = view->gate ? view->gate : &none;

    exposition_family(e, "gate_held_seconds", HISTOGRAM, "How long kubelets were held.");
    exposition_histogram(e, &gate->held, NULL);
    put_counter(e, "gate_expired_total", "Kubelets that were let go by the time limit.",
                gate->expired);
    put_gauge(e, "gate_holds", "Kubelets that are held now.", view->gate_holds);
    put_gauge(e, "feed_connected", "Whether a bridge is shown what the kubelet is to see.",
              view->bridge);
}

static void put_queues(struct exposition *e, const struct metrics_view *view)
{
    exposition_family(e, "queue_peak_bytes", GAUGE,
                      "Bytes that one client had not taken, at their most since the start.");
    exposition_sample(e, (double)view->feed_queued_max, "queue", "feed", NULL);
    exposition_sample(e, (double)view->control_queued_max, "queue", "control", NULL);
}

/* ---- the daemon ---- */

static void put_build(struct exposition *e, const struct metrics_view *view)
{
    exposition_family(e, "build_info", GAUGE, "The version and commit that runs.");
    exposition_sample(e, 1, "version", version_text, NULL);
    put_gauge(e, "uptime_seconds", "Since the daemon's start.",
              (double)(boot_now_ms() - view->started_ms) / 1000);
}

/* A sample for each part there may be, whatever is so now: an alert needs one to be 0. */
static void put_degraded(struct exposition *e, const struct report *report)
{
    exposition_family(e, "degraded", GAUGE, "Whether a part is not as it should be.");
    for (int part = 0; part < REPORT_PARTS; part++)
        exposition_sample(e, report_is_degraded(report, (enum report_part)part), "part",
                          report_part_name((enum report_part)part), NULL);
}

void families_put(struct exposition *e, const struct metrics_view *view,
                  const struct report *report)
{
    put_build(e, view);
    put_gauge(e, "ready", "Whether /readyz says so.", view->not_ready ? 0 : 1);
    put_degraded(e, report);
    put_counter(e, "log_lines_lost_total", "Log lines that nobody took.", log_lost());
    if (view->relay)
        put_relay(e, view->relay);
    put_core(e, host_core(view->host));
    put_dra(e, host_core(view->host));
    put_host(e, host_counts(view->host));
    put_decisions(e, view->creates);
    put_kubelet(e, view);
    put_queues(e, view);
}
