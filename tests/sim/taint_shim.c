/*
 * The shim of the world of taints: the core, its ports, and the rows that are durable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "tests/sim/taint_world.h"

/* ---- the store ---- */

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct taint_world *t = user;

    check_that(t->w, !t->commit, "one commit is under way at a time");
    t->commit = commit;
    rows_free(&t->pending);
    for (size_t i = 0; i < records_len; i++) {
        const struct devicemgr_record *row = &records[i];
        struct tw_pod *pod =
            row->kind == DEVICEMGR_RECORD_ENDING ? taint_pod_of(t, row->key[0]) : NULL;

        taint_note(t, "commit has %d %s %s %s", (int)row->kind, row->key[0], row->key[1],
                   row->key[2]);
        rows_add(&t->pending, row);
        if (row->kind == DEVICEMGR_RECORD_RESOURCE)
            taint_plugin_carried(t, row->key[0]);
        if (pod) {
            taint_judge_settle(t, pod);
            pod->evicted.carried = row->value && pod->evicted.is;
            pod->ended.carried = row->value && pod->ended.is;
            pod->asked_carried_ms = pod->asked_ms;
            pod->unasked_carried_ms = pod->unasked_ms;
            pod->unsure.carried = row->value && pod->unsure.is;
        }
    }
    taint_operator_carried(t, records, records_len);
}

static void note_durable(struct taint_world *t)
{
    for (const struct row *row = t->pending; row; row = row->next) {
        struct tw_pod *pod =
            row->kind == DEVICEMGR_RECORD_ENDING ? taint_pod_of(t, row->key[0]) : NULL;

        if (row->kind == DEVICEMGR_RECORD_RESOURCE)
            taint_plugin_stored(t, row->key[0]);
        if (pod) {
            pod->evicted.stored = pod->evicted.carried;
            pod->ended.stored = pod->ended.carried;
            pod->asked_stored_ms = pod->asked_carried_ms;
            pod->unasked_stored_ms = pod->unasked_carried_ms;
            pod->unsure.stored = pod->unsure.carried;
        }
    }
    rows_store(&t->rows, &t->pending);
}

void taint_shim_commit_ends(struct taint_world *t, bool fails)
{
    uint64_t commit = t->commit;

    if (!commit)
        return;
    t->commit = 0;
    taint_note(t, "commit ends, %s", fails ? "fails" : "stored");
    if (fails) {
        count_add(COUNT_TAINT_COMMIT_FAILED);
        t->failed_ms = t->now_ms;
        rows_free(&t->pending);
    }
    t->store_fails = fails;
    note_durable(t);
    taint_operator_committed(t, fails);
    devicemgr_committed(t->core, t->now_ms, commit, fails ? "the disk is full" : NULL);
    taint_shim_run(t);
}

/* ---- ports ---- */

static void on_endpoint_open(void *user, uint64_t endpoint, const char *resource,
                             const char *socket_name, uint32_t uid)
{
    (void)socket_name;
    (void)uid;
    taint_plugin_opened(user, endpoint, resource);
}

static void on_endpoint_close(void *user, uint64_t endpoint)
{
    taint_plugin_closed(user, endpoint);
}

static void on_register_done(void *user, uint64_t registration, int code, const char *message)
{
    (void)user;
    (void)registration;
    (void)code;
    (void)message;
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t ids_len, uint64_t timeout_ms)
{
    (void)timeout_ms;
    taint_plugin_called(user, endpoint, call, taint_device_mask(ids, ids_len));
}

static void on_call_cancel(void *user, uint64_t call)
{
    taint_plugin_call_cancelled(user, call);
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    struct taint_world *t = user;

    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->checks[i].number)
            continue;
        t->checks[i] = (struct tw_call){.number = check,
                                        .container = (unsigned)strtoul(container_id + 1, NULL, 10)};
        break;
    }
}

static void on_list(void *user)
{
    struct taint_world *t = user;

    t->list_wanted = true;
}

static void on_stop(void *user, uint64_t op, const char *container_id, uint64_t grace_ms)
{
    struct taint_world *t = user;
    unsigned container = (unsigned)strtoul(container_id + 1, NULL, 10);
    struct tw_pod *pod = taint_pod_by_container(t, container);

    taint_note(t, "stop of %s in %llu ms", container_id, (unsigned long long)grace_ms);
    if (pod) {
        taint_judge_stop(t, pod, grace_ms);
        pod->sent = true;
    }
    for (size_t i = 0; i < TW_STOPS; i++) {
        if (t->stops[i].op)
            continue;
        t->stops[i] = (struct tw_stop){.op = op,
                                       .uid = pod ? pod->uid : 0,
                                       .container = container,
                                       .kills_ms = t->now_ms + grace_ms};
        return;
    }
    abort();
}

static void on_stop_cancel(void *user, uint64_t op)
{
    struct taint_world *t = user;

    for (size_t i = 0; i < TW_STOPS; i++) {
        if (t->stops[i].op == op)
            t->stops[i] = (struct tw_stop){0};
    }
}

static void on_evict(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    taint_cluster_ordered(user, order, eviction);
}

static void on_evict_cancel(void *user, uint64_t order)
{
    taint_cluster_cancelled(user, order);
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct taint_world *t = user;
    struct tw_pod *pod = taint_pod_by_create(t, create);

    if (pod)
        taint_pod_verdict(t, pod, verdict);
}

static bool has_slipped(const struct taint_world *t, const char *uid)
{
    for (size_t i = 0; i < TW_SLIPPED; i++) {
        if (t->slipped[i] == strtoul(uid + 1, NULL, 10))
            return true;
    }
    return false;
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    struct taint_world *t = user;
    struct tw_pod *pod = event->pod_uid ? taint_pod_of(t, event->pod_uid) : NULL;

    if (event->kind == DEVICEMGR_EVENT_HELD_BACK)
        count_add(COUNT_TAINT_HELD_BACK);
    if ((event->kind != DEVICEMGR_EVENT_ENDING && event->kind != DEVICEMGR_EVENT_SPARED) ||
        strcmp(event->word, DEVICEMGR_ASKER_EVICTION) != 0)
        return;
    if (event->kind == DEVICEMGR_EVENT_SPARED) {
        if (pod)
            taint_judge_spared(t, pod);
        return;
    }
    check_that(t->w, pod || has_slipped(t, event->pod_uid),
               "only a pod that is there is evicted: %s", event->pod_uid);
    if (pod)
        taint_judge_asked(t, pod, event->text);
    else
        taint_judge_counts(t); /* among those of its minute */
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    taint_operator_answered(user, number, steered->code, steered->message);
}

static void on_driver_registered(void *user, uint64_t instance, int code, const char *message)
{
    struct taint_world *t = user;

    (void)instance;
    check_that(t->w, code == 0, "a driver may register: %s", message);
}

static void on_prepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                       const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    (void)batch;
    (void)instance;
    (void)timeout_ms;
    taint_claim_called(user, call, claim->uid, false);
}

static void on_unprepare(void *user, uint64_t instance, uint64_t call, struct devicemgr_batch batch,
                         const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    (void)batch;
    (void)instance;
    (void)timeout_ms;
    taint_claim_called(user, call, claim->uid, true);
}

static void on_claim_look(void *user, const struct devicemgr_claim *claim)
{
    taint_claim_wanted(user, claim->uid);
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    taint_claim_done(user, number, done);
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)level;
    (void)about;
    taint_note(user, "log: %s", text);
}

static const struct devicemgr_ports PORTS = {.endpoint_open = on_endpoint_open,
                                             .endpoint_close = on_endpoint_close,
                                             .register_done = on_register_done,
                                             .allocate = on_allocate,
                                             .call_cancel = on_call_cancel,
                                             .commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .stop_container = on_stop,
                                             .stop_cancel = on_stop_cancel,
                                             .evict_pod = on_evict,
                                             .evict_cancel = on_evict_cancel,
                                             .verdict = on_verdict,
                                             .event = on_event,
                                             .steered = on_steered,
                                             .driver_registered = on_driver_registered,
                                             .driver_prepare = on_prepare,
                                             .driver_unprepare = on_unprepare,
                                             .claim_look = on_claim_look,
                                             .claim_done = on_claim_done,
                                             .log = on_log};

/* ---- its life ---- */

struct settings {
    struct devicemgr_settings all;
    struct devicemgr_resource_settings resources[TW_RESOURCES];
    struct devicemgr_settings_taint taints[TW_SETS_MAX];
};

static void make_settings(const struct taint_world *t, struct settings *out)
{
    static const char *const KEYS[TW_KEYS] = {"k0", "k1"}, *const VALUES[] = {"v0", "v1"};
    static const char *const EFFECTS[TW_EFFECTS] = {"None", "NoSchedule", "NoExecute"};
    static const char *const EVERY[] = {"*"};

    *out = (struct settings){.all = {.grace_ms = 36000000,
                                     .hold_ms = TW_HOLD_MS,
                                     .allocate_timeout_ms = 600000,
                                     .prestart_timeout_ms = 30000,
                                     .claim_call_ms = 600000,
                                     .mask_ms = 120000,
                                     .kubelet_wait_ms = 10000,
                                     .annotations = true,
                                     .namespaces = EVERY,
                                     .namespaces_len = 1,
                                     .boot_id = "boot",
                                     .cluster = t->cluster,
                                     .evict_force_after_ms = t->force ? TW_FORCE_AFTER_MS : 0,
                                     .taint_unhealthy_after_ms = t->unhealthy_after_ms,
                                     .evict_per_minute = t->per_minute,
                                     .taints_len = t->sets_len,
                                     .resources_len = TW_RESOURCES}};
    for (size_t r = 0; r < TW_RESOURCES; r++)
        out->resources[r] = (struct devicemgr_resource_settings){
            .name = taint_resource_name(r),
            .grace_ms = out->all.grace_ms,
            .hold_ms = TW_HOLD_MS,
            .allocate_timeout_ms = out->all.allocate_timeout_ms,
            .exclusive = taint_resource_exclusive(r),
            .taint_unhealthy_after_ms = t->unhealthy_after_ms};
    for (size_t i = 0; i < t->sets_len; i++) {
        const struct tw_set *set = &t->sets[i];

        out->taints[i] = (struct devicemgr_settings_taint){
            .resource = taint_resource_name(set->resource),
            .id = set->device < 0 ? NULL : taint_device_id(set->resource, (size_t)set->device),
            .key = KEYS[set->key],
            .value = VALUES[set->value],
            .effect = EFFECTS[set->effect]};
    }
    out->all.taints = out->taints;
    out->all.resources = out->resources;
}

void taint_shim_start(struct taint_world *t)
{
    struct settings settings;

    t->listed = t->listing = t->list_wanted = false;
    t->asked_before = t->asked_len;
    memset(t->slipped, 0, sizeof t->slipped);
    taint_settings_shim_started(t);
    taint_plugins_shim_started(t);
    make_settings(t, &settings);
    t->core = devicemgr_new(&settings.all, &PORTS, t);
    /* the settings' taints count from its first event on, which has the time */
    for (const struct row *row = t->rows; row; row = row->next) {
        const struct devicemgr_record record = row_record(row);

        check_that(t->w, devicemgr_restore(t->core, t->now_ms, &record) == 0,
                   "what was stored is restored");
    }
    taint_agent_shim_started(t);
    taint_claims_shim_started(t);
    devicemgr_restored(t->core, t->now_ms);
    taint_cluster_reached(t);
    devicemgr_kubelet_listed(t->core, t->now_ms);
    taint_pods_shim_started(t);
    t->list_wanted = true; /* as a lister that has connected */
    taint_shim_run(t);
}

void taint_shim_reload(struct taint_world *t)
{
    struct settings settings;

    make_settings(t, &settings);
    devicemgr_set_settings(t->core, t->now_ms, &settings.all);
    taint_shim_run(t);
}

/* A commit that was under way was stored, or not. */
void taint_shim_kill(struct taint_world *t)
{
    count_add(COUNT_TAINT_KILLED);
    taint_note(t, "the shim is killed");
    devicemgr_free(t->core);
    t->core = NULL;
    if (t->commit) {
        bool fails = rng_percent(&t->rng, 50);

        t->commit = 0;
        if (fails)
            rows_free(&t->pending);
        note_durable(t);
        taint_operator_committed(t, fails);
    }
    taint_operator_shim_ended(t);
    memset(t->stops, 0, sizeof t->stops);
    memset(t->checks, 0, sizeof t->checks);
    taint_pods_shim_ended(t);
    taint_claims_shim_ended(t);
    taint_shim_start(t);
}

void taint_shim_end(struct taint_world *t)
{
    devicemgr_free(t->core);
    rows_free(&t->rows);
    rows_free(&t->pending);
}

void taint_shim_run(struct taint_world *t)
{
    taint_plugins_age(t);
    devicemgr_run(t->core);
    if (!*t->w->broken)
        taint_judge(t);
}

void taint_shim_pass(struct taint_world *t, uint64_t ms)
{
    uint64_t end_ms = t->now_ms + ms;

    while (t->now_ms < end_ms && !*t->w->broken) {
        uint64_t next_ms = devicemgr_next_ms(t->core);

        if (next_ms > end_ms)
            next_ms = end_ms;
        if (next_ms > t->now_ms) {
            taint_cluster_waits(t, next_ms - t->now_ms);
            t->now_ms = next_ms;
        }
        taint_stops_due(t);
        if (devicemgr_next_ms(t->core) <= t->now_ms) {
            devicemgr_tick(t->core, t->now_ms);
            taint_shim_run(t);
        }
        if (devicemgr_next_ms(t->core) <= t->now_ms && next_ms == t->now_ms)
            t->now_ms++; /* it asks for the same time again: a commit that is under way */
    }
    if (!*t->w->broken)
        taint_judge(t);
}
