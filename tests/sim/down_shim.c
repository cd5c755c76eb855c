/*
 * The shim of the world of a machine that goes down: the core, its ports, and the rows that are
 * durable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "tests/sim/down_world.h"

/* ---- the store ---- */

/* What it carried is done now, stored or not. */
static void note_due(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        for (int asker = 0; asker < DW_ASKERS; asker++) {
            if (pod->asks[asker] != DW_CARRIED)
                continue;
            pod->asks[asker] = DW_DUE;
            pod->epoch = d->epoch;
            pod->shown = false;
        }
    }
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct down_world *d = user;

    check_that(d->w, !d->commit, "one commit is under way at a time");
    d->commit = commit;
    rows_free(&d->pending);
    for (size_t i = 0; i < records_len; i++) {
        down_note(d, "commit has %d %s %s %s", (int)records[i].kind, records[i].key[0],
                  records[i].key[1], records[i].key[2]);
        rows_add(&d->pending, &records[i]);
    }
    down_plan_observe(d);
    down_rows_carried(d, records, records_len);
}

void down_shim_commit_ends(struct down_world *d, bool fails)
{
    uint64_t commit = d->commit;

    if (!commit)
        return;
    d->commit = 0;
    down_note(d, "commit ends, %s", fails ? "fails" : "stored");
    if (fails) {
        count_add(COUNT_DOWN_COMMIT_FAILED);
        rows_free(&d->pending);
    } else {
        rows_store(&d->rows, &d->pending);
    }
    d->store_fails = fails;
    note_due(d);
    devicemgr_committed(d->core, d->now_ms, commit, fails ? "the disk is full" : NULL);
    down_shim_run(d);
    down_rows_judge(d);
}

/* ---- ports ---- */

static void on_list(void *user)
{
    struct down_world *d = user;

    d->list_wanted = true;
}

static void on_stop(void *user, uint64_t op, const char *container_id, uint64_t grace_ms)
{
    struct down_world *d = user;
    unsigned container = (unsigned)strtoul(container_id + 1, NULL, 10);
    struct dw_pod *pod = down_pod_that_had(d, container);
    size_t i = 0;

    down_note(d, "stop of %s in %llu ms", container_id, (unsigned long long)grace_ms);
    down_plan_observe(d);
    if (pod && pod->container == container)
        down_judge_stop(d, pod, grace_ms);
    if (pod) { /* a pod's end has one time for all its containers */
        pod->sent = true;
        pod->due_ms = earlier_ms(pod->due_ms ? pod->due_ms : DW_NEVER, d->now_ms + grace_ms);
    }
    while (i < DW_STOPS && d->stops[i].op)
        i++;
    if (i == DW_STOPS)
        abort();
    d->stops[i] = (struct dw_stop){.op = op,
                                   .uid = pod ? pod->uid : 0,
                                   .container = container,
                                   .kills_ms = d->now_ms + grace_ms};
}

static void on_stop_cancel(void *user, uint64_t op)
{
    struct down_world *d = user;

    for (size_t i = 0; i < DW_STOPS; i++) {
        struct dw_stop stop = d->stops[i];

        if (stop.op != op)
            continue;
        d->stops[i] = (struct dw_stop){0};
        down_judge_stop_cancelled(d, stop.container);
    }
}

static void on_stop_sandbox(void *user, uint64_t op, const char *sandbox_id)
{
    struct down_world *d = user;
    unsigned sandbox = (unsigned)strtoul(sandbox_id + 1, NULL, 10);
    size_t i = 0;

    down_note(d, "stop of %s", sandbox_id);
    down_plan_observe(d);
    down_judge_box_stop(d, sandbox);
    while (i < DW_STOPS && d->boxes[i].op)
        i++;
    if (i == DW_STOPS)
        abort();
    d->boxes[i] = (struct dw_box_stop){op, sandbox};
}

static void on_evict(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    struct down_world *d = user;

    (void)order;
    (void)eviction;
    check_that(d->w, false, "without a cluster none is asked to evict a pod");
}

static void on_evict_cancel(void *user, uint64_t order)
{
    (void)user;
    (void)order;
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    (void)user;
    (void)check;
    (void)container_id; /* a runtime that says nothing: lists tell it */
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct down_world *d = user;
    struct dw_pod *pod = down_pod_by_create(d, create);

    if (!pod)
        return;
    if (verdict->code != 0) {
        pod->create = 0;
        down_judge_refused(d, pod, verdict->code, verdict->message);
        return;
    }
    pod->forwarded = true;
    down_judge_made(d, pod);
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    struct down_world *d = user;
    struct dw_pod *pod = event->pod_uid ? down_pod_of(d, event->pod_uid) : NULL;

    if (!pod || !event->word || strcmp(event->word, DEVICEMGR_ASKER_EVICTION) != 0)
        return;
    down_plan_observe(d);
    if (event->kind == DEVICEMGR_EVENT_ENDING)
        down_taint_asked(d, pod);
    else if (event->kind == DEVICEMGR_EVENT_SPARED)
        down_taint_spared(d, pod);
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    struct down_world *d = user;

    down_taint_answered(d, number, steered->code == 0);
    if (steered->code != 0 && steered->code != 10)
        d->operator_refused = true;
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)level;
    (void)about;
    down_note(user, "log: %s", text);
}

static const struct devicemgr_ports PORTS = {.commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .stop_container = on_stop,
                                             .stop_cancel = on_stop_cancel,
                                             .stop_sandbox = on_stop_sandbox,
                                             .evict_pod = on_evict,
                                             .evict_cancel = on_evict_cancel,
                                             .verdict = on_verdict,
                                             .event = on_event,
                                             .steered = on_steered,
                                             .log = on_log};

/* ---- its life ---- */

void down_boot_id(const struct down_world *d, char *out)
{
    snprintf(out, 16, "boot%u", d->boot);
}

static struct devicemgr_settings settings_of(const struct down_world *d, const char *boot_id)
{
    return (struct devicemgr_settings){.grace_ms = 36000000,
                                       .hold_ms = 5000,
                                       .allocate_timeout_ms = 600000,
                                       .prestart_timeout_ms = 30000,
                                       .mask_ms = 120000,
                                       .kubelet_wait_ms = 10000,
                                       .boot_id = boot_id,
                                       .shutdown = d->groups,
                                       .shutdown_len = d->off ? 0 : d->groups_len};
}

static void list_devices(struct down_world *d)
{
    static const char *const IDS[DW_PODS] = {"g0", "g1", "g2", "g3", "g4", "g5"};
    struct devicemgr_builtin_device devices[DW_PODS];

    for (size_t i = 0; i < DW_PODS; i++)
        devices[i] =
            (struct devicemgr_builtin_device){IDS[i], true, "/dev/gpu", "/dev/gpu", "rw", NULL};
    devicemgr_builtin(d->core, d->now_ms, DW_RESOURCE, devices, DW_PODS);
}

void down_shim_start(struct down_world *d)
{
    struct devicemgr_settings settings;
    char boot[16];

    down_boot_id(d, boot);
    settings = settings_of(d, boot);
    d->listed = d->listing = d->store_fails = d->draining = false;
    d->epoch = 0;
    d->core = devicemgr_new(&settings, &PORTS, d);
    for (const struct row *row = d->rows; row; row = row->next) {
        const struct devicemgr_record record = row_record(row);

        check_that(d->w, devicemgr_restore(d->core, d->now_ms, &record) == 0,
                   "what was stored is restored");
    }
    devicemgr_restored(d->core, d->now_ms);
    down_rows_restored(d);
    down_taint_restored(d);
    down_plan_restored(d);
    list_devices(d);
    devicemgr_kubelet_listed(d->core, d->now_ms);
    d->list_wanted = true; /* as a lister that has connected */
    down_shim_run(d);
}

void down_shim_reload(struct down_world *d)
{
    char boot[16];
    struct devicemgr_settings settings;

    down_boot_id(d, boot);
    settings = settings_of(d, boot);
    devicemgr_set_settings(d->core, d->now_ms, &settings);
    if (d->off && d->plan.state != DW_NONE)
        down_plan_end(d);
    down_shim_run(d);
}

/* A commit that was under way was stored, or not. */
void down_shim_kill(struct down_world *d)
{
    count_add(COUNT_DOWN_KILLED);
    down_note(d, "the shim is killed");
    devicemgr_free(d->core);
    d->core = NULL;
    if (d->commit && rng_percent(&d->rng, 50))
        rows_store(&d->rows, &d->pending);
    d->commit = 0;
    rows_free(&d->pending);
    memset(d->stops, 0, sizeof d->stops);
    memset(d->boxes, 0, sizeof d->boxes);
    down_pods_shim_ended(d);
}

void down_shim_drains(struct down_world *d)
{
    count_add(d->plan.state == DW_NONE ? COUNT_DOWN_DRAINED : COUNT_DOWN_DRAINED_IN_ONE);
    down_note(d, "the shim is told to end");
    d->draining = true;
    devicemgr_drain(d->core, d->now_ms);
    down_shim_run(d);
}

void down_shim_end(struct down_world *d)
{
    devicemgr_free(d->core);
    rows_free(&d->rows);
    rows_free(&d->pending);
}

void down_shim_run(struct down_world *d)
{
    devicemgr_run(d->core);
    if (!*d->w->broken)
        down_judge(d);
}

void down_shim_pass(struct down_world *d, uint64_t ms)
{
    uint64_t end_ms = d->now_ms + ms;

    while (d->now_ms < end_ms && !*d->w->broken) {
        uint64_t next_ms = earlier_ms(devicemgr_next_ms(d->core), end_ms);

        if (next_ms > d->now_ms)
            d->now_ms = next_ms;
        down_stops_due(d);
        if (devicemgr_next_ms(d->core) > d->now_ms)
            continue;
        devicemgr_tick(d->core, d->now_ms);
        down_shim_run(d);
        if (devicemgr_next_ms(d->core) <= d->now_ms && next_ms <= d->now_ms)
            d->now_ms++; /* it asks for the same time again: a commit that is under way */
    }
    if (!*d->w->broken)
        down_judge(d);
}
