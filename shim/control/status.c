#include "shim/control/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/compare.h"
#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/process.h"
#include "shim/version.h"

/* Protobuf-c's texts are not const; the messages here are only packed. */
static char *text(const char *words)
{
    return (char *)(uintptr_t)words;
}

static uint64_t ago(uint64_t since_ms)
{
    return boot_now_ms() - since_ms;
}

static uint64_t uptime(pid_t pid)
{
    uint64_t started, now_ms = boot_now_ms(), started_ms;

    if (pid <= 0 || process_started(pid, &started) < 0)
        return 0;
    started_ms = started * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    return now_ms > started_ms ? now_ms - started_ms : 0;
}

/* ---- parts ---- */

static void add_process(struct status *status, const char *name, const char *version, pid_t pid)
{
    Control__V1__Process *process = &status->processes[status->response.n_processes];

    control__v1__process__init(process);
    process->name = text(name);
    process->version = text(version);
    process->pid = pid;
    process->uptime_ms = uptime(pid);
    status->process_list[status->response.n_processes++] = process;
}

static void set_runtime(struct status *status, const struct config *config,
                        const struct report *report)
{
    Control__V1__Runtime *runtime = &status->runtime;

    control__v1__runtime__init(runtime);
    runtime->endpoint = config->runtime_endpoint;
    runtime->connected = report->runtime_connected;
    runtime->since_ms = ago(report->runtime_since_ms);
    runtime->name = text(report->runtime_name);
    runtime->version = text(report->runtime_version);
    runtime->listed = report->runtime_listed;
    status->response.runtime = runtime;
}

static void set_kubelet(struct status *status, const struct report *report)
{
    Control__V1__Kubelet *kubelet = &status->kubelet;

    control__v1__kubelet__init(kubelet);
    kubelet->pid = report->kubelet_pid;
    kubelet->uptime_ms = uptime(report->kubelet_pid);
    kubelet->gate = text(report->gate);
    kubelet->held_ms = report->gate_held_ms;
    kubelet->words = text(report->kubelet_words);
    status->response.kubelet = kubelet;
}

static void set_troubles(struct status *status, const struct report *report)
{
    for (size_t i = 0; i < report->troubles_len; i++) {
        Control__V1__Trouble *trouble = &status->troubles[i];

        control__v1__trouble__init(trouble);
        trouble->what = text(report_part_name(report->troubles[i].part));
        trouble->why = text(report->troubles[i].why);
        trouble->since_ms = ago(report->troubles[i].since_ms);
        status->trouble_list[i] = trouble;
    }
    status->response.n_troubles = report->troubles_len;
    status->response.troubles = status->trouble_list;
}

static void set_orders(struct status *status, const struct devicemgr *core)
{
    orders_count(&status->orders, core);
    for (size_t i = 0; i < status->orders.len; i++)
        status->order_list[i] = &status->orders.of[i];
    status->response.n_orders = status->orders.len;
    status->response.orders = status->order_list;
}

static void set_dra(struct status *status, const struct devicemgr *core)
{
    Control__V1__DraCount *dra = &status->dra;
    struct devicemgr_dra_counts counts;

    devicemgr_dra_count(core, &counts);
    if (counts.drivers + counts.claims == 0)
        return;
    control__v1__dra_count__init(dra);
    dra->drivers = counts.drivers;
    dra->connected = counts.connected;
    dra->claims = counts.claims;
    dra->prepared = counts.prepared;
    dra->owed = counts.owed;
    dra->waits = counts.waits;
    status->response.dra = dra;
}

/* For who makes a plan. */
struct planning {
    struct status *status;
    const struct devicemgr *core;
};

static char *pod_of(const char *pod_namespace, const char *pod_name)
{
    char *name;

    if (asprintf(&name, "%s/%s", pod_namespace, pod_name) < 0)
        abort(); /* out of memory */
    return name;
}

static void add_remaining(void *user, const char *pod_namespace, const char *pod_name, size_t group)
{
    Control__V1__MachineShutdown *shutdown = user;

    (void)group;
    if (*pod_name && shutdown->n_first_remaining < STATUS_REMAINING_MAX)
        shutdown->first_remaining[shutdown->n_first_remaining++] = pod_of(pod_namespace, pod_name);
}

/* ---- what would be, if the machine went down ---- */

static void add_group(void *user, const struct devicemgr_shutdown_planned *group)
{
    struct status *status = user;
    Control__V1__MachineShutdown *shutdown = &status->shutdown;
    Control__V1__ShutdownGroup *one = &status->planned[shutdown->n_planned];

    assert(shutdown->n_planned < STATUS_GROUPS_MAX);
    control__v1__shutdown_group__init(one);
    one->by_priority = group->by_priority;
    one->priority = group->priority;
    one->time_ms = group->grace_ms;
    one->pods = group->pods;
    one->holders = group->holders;
    one->first = status->planned_pods + status->planned_pods_len;
    status->planned_list[shutdown->n_planned++] = one;
}

/* Of the group that was told last. One of which only its sandbox is known yet is counted there, and
 * has no name. */
static void add_planned(void *user, const char *pod_namespace, const char *pod_name)
{
    struct status *status = user;
    Control__V1__ShutdownGroup *group = &status->planned[status->shutdown.n_planned - 1];

    if (!*pod_name || status->planned_pods_len == STATUS_PLANNED_MAX)
        return;
    status->planned_pods[status->planned_pods_len++] = pod_of(pod_namespace, pod_name);
    group->n_first++;
}

/* Told what the core would be told. */
static void plan(void *to, const struct devicemgr_shutdown_said *said)
{
    struct planning *planning = to;
    Control__V1__MachineShutdown *shutdown = &planning->status->shutdown;

    shutdown->kubelet_ends = said->kubelet_locked;
    devicemgr_shutdown_plan(planning->core, said, add_group, add_planned, planning->status);
}

static void set_plan(struct status *status, const struct list_from *from)
{
    struct planning planning = {status, from->core};

    status->shutdown.planned = status->planned_list;
    if (from->shutdown_said)
        from->shutdown_said(from->user, plan, &planning);
}

static void set_shutdown(struct status *status, const struct list_from *from,
                         const struct report *report)
{
    const struct devicemgr *core = from->core;
    Control__V1__MachineShutdown *shutdown = &status->shutdown;
    struct devicemgr_shutdown_view view;

    devicemgr_shutdown_look(core, &view);
    if (!view.under_way && view.settings_ms == 0)
        return;
    control__v1__machine_shutdown__init(shutdown);
    shutdown->state = text(view.state);
    shutdown->since_ms = view.under_way ? ago(view.since_ms) : 0;
    shutdown->locked = report->shutdown_locked;
    shutdown->pods_known = report->shutdown_pods_known;
    shutdown->known_pods = report->shutdown_pods;
    shutdown->limit_ms = view.under_way ? view.limit_ms : report->shutdown_limit_ms;
    shutdown->settings_ms = view.settings_ms;
    shutdown->by_priority = view.by_priority;
    shutdown->group = (uint32_t)view.group;
    shutdown->groups = (uint32_t)view.groups;
    shutdown->priority = view.priority;
    shutdown->group_ends_ms =
        view.group_ends_ms > boot_now_ms() ? view.group_ends_ms - boot_now_ms() : 0;
    shutdown->pods = view.pods;
    shutdown->remaining = view.remaining;
    shutdown->first_remaining = status->remaining;
    devicemgr_shutdown_remaining(core, add_remaining, shutdown);
    if (!view.under_way)
        set_plan(status, from);
    status->response.shutdown = shutdown;
}

/* ---- what is published ---- */

/* One look at all pools. */
struct publishing {
    Control__V1__StatusResponse *response;
    bool well; /* those that are as they are to be are looked for; else the others */
    size_t bytes;
};

static void add_published(void *to, const struct published_pool *is)
{
    struct publishing *publishing = to;
    Control__V1__StatusResponse *response = publishing->response;
    Control__V1__PublishedPool *one;

    if ((is->there && !is->trouble) != publishing->well)
        return;
    if (publishing->bytes >= CONTROL_POOLS_BYTES_MAX) {
        response->published_more++;
        return;
    }
    one = must(malloc(sizeof *one));
    control__v1__published_pool__init(one);
    one->resource = must(strdup(is->resource));
    one->pool = must(strdup(is->name));
    one->devices = is->devices;
    one->left_out = is->left_out;
    one->there = is->there;
    one->trouble = must(strdup(is->trouble ? is->trouble : ""));
    response->published = must(
        realloc(response->published, (response->n_published + 1) * sizeof *response->published));
    response->published[response->n_published++] = one;
    publishing->bytes +=
        CONTROL_ROW_BYTES + strlen(one->resource) + strlen(one->pool) + strlen(one->trouble);
}

/* Where there is no room for all, those that somebody has to look at are told. */
static void set_published(struct status *status, const struct list_from *from)
{
    struct publishing publishing = {.response = &status->response};

    if (!from->published)
        return;
    from->published(from->user, add_published, &publishing);
    publishing.well = true;
    from->published(from->user, add_published, &publishing);
}

static void add_setting(void *user, const struct config_difference *difference)
{
    Control__V1__StatusResponse *response = user;
    Control__V1__Setting *setting = must(malloc(sizeof *setting));

    control__v1__setting__init(setting);
    setting->key = must(strdup(difference->key));
    setting->value = must(strdup(difference->value));
    setting->initial = must(strdup(difference->initial));
    response->settings =
        must(realloc(response->settings, (response->n_settings + 1) * sizeof *response->settings));
    response->settings[response->n_settings++] = setting;
}

/* ---- the whole ---- */

void status_init(struct status *status, const struct settings *settings,
                 const struct list_from *from, const struct report *report)
{
    const struct config *config = &settings->config;

    *status = (struct status){0};
    control__v1__status_response__init(&status->response);
    gethostname(status->node, sizeof status->node - 1);
    status->response.node = status->node;
    status->response.processes = status->process_list;
    add_process(status, "cri-device-shim", version_text, getpid());
    if (report->bridge_wanted)
        add_process(status, "cri-device-shim-bridge", report->bridge_version, report->bridge_pid);
    set_runtime(status, config, report);
    set_kubelet(status, report);
    set_troubles(status, report);
    set_orders(status, from->core);
    set_dra(status, from->core);
    set_shutdown(status, from, report);
    set_published(status, from);
    config_differences(config, add_setting, &status->response);
    if (settings->level_set)
        status->response.log_level_set = text(log_level_name(settings->level_set));
}

void status_fini(struct status *status)
{
    for (size_t i = 0; i < status->response.n_settings; i++)
        control__v1__setting__free_unpacked(status->response.settings[i], NULL);
    free(status->response.settings);
    for (size_t i = 0; i < status->response.n_published; i++)
        control__v1__published_pool__free_unpacked(status->response.published[i], NULL);
    free(status->response.published);
    for (size_t i = 0; i < status->shutdown.n_first_remaining; i++)
        free(status->remaining[i]);
    for (size_t i = 0; i < status->planned_pods_len; i++)
        free(status->planned_pods[i]);
}
