#include "devicemgr/devicemgr.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/limits.h"
#include "devicemgr/plugin.h"
#include "devicemgr/record.h"

struct devicemgr *devicemgr_new(const struct devicemgr_settings *settings,
                                const struct devicemgr_ports *ports, void *user)
{
    struct devicemgr *mgr = mem_alloc(1, sizeof *mgr);

    core_take_settings(mgr, settings);
    mgr->list_ms = UINT64_MAX;
    mgr->ports = ports;
    mgr->user = user;
    return mgr;
}

void devicemgr_free(struct devicemgr *mgr)
{
    struct action *action;
    struct resource *resource, *next;

    if (!mgr)
        return;
    creates_fini(mgr);
    wakes_fini(&mgr->wakes);
    calls_fini(mgr);
    checks_fini(mgr);
    runtime_forget_ended(mgr);
    adopt_fini(mgr);
    while ((action = action_take(&mgr->actions)))
        action_free(action);
    prefers_fini(mgr);
    outbox_fini(&mgr->outbox);
    kubelet_fini(&mgr->kubelet);
    checkpoint_fini(&mgr->checkpoint);
    allocations_fini(&mgr->allocations);
    pods_fini(&mgr->pods);
    ids_fini(&mgr->removed);
    HASH_ITER(hh, mgr->resources, resource, next)
    {
        resources_remove(&mgr->resources, resource);
    }
    core_free_settings(mgr);
    free(mgr->unread);
    free(mgr);
}

/* A commit begins only when nothing else is left to do, so that it takes all rows there are. */
void devicemgr_run(struct devicemgr *mgr)
{
    bool unchecked = mgr->settings.checked;
    struct action *action;

    if (mgr->running)
        return;
    mgr->running = true;
    for (;;) {
        while ((action = action_take(&mgr->actions))) {
            action_carry_out(action, mgr->ports, mgr->user);
            action_free(action);
        }
        core_settle_allocations(mgr);
        advertise_pass(mgr);
        if (mgr->wakes.woken_len > 0) {
            creates_advance(mgr);
        } else if (checkpoint_ready(mgr)) {
            creates_commit_began(mgr, checkpoint_begin(mgr));
        } else if (unchecked) {
            unchecked = false;
            creates_check(mgr);
        } else {
            break;
        }
    }
    advertise_settle(mgr);
    mgr->running = false;
}

void devicemgr_kept(const struct devicemgr *mgr, struct devicemgr_kept *kept)
{
    *kept = (struct devicemgr_kept){.creates = HASH_COUNT(mgr->creates),
                                    .calls = calls_len(mgr),
                                    .checks = checks_len(mgr),
                                    .allocations = HASH_COUNT(mgr->allocations.by_key),
                                    .pods = HASH_COUNT(mgr->pods.by_uid),
                                    .sandboxes = HASH_COUNT(mgr->pods.sandboxes)};
}

uint64_t devicemgr_next_ms(const struct devicemgr *mgr)
{
    const uint64_t due_ms[] = {
        plugin_next_ms(mgr),     wakes_next_ms(mgr),   prefers_next_ms(mgr), advertise_next_ms(mgr),
        checkpoint_next_ms(mgr), kubelet_next_ms(mgr), mgr->list_ms};
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < sizeof due_ms / sizeof due_ms[0]; i++)
        next_ms = due_ms[i] < next_ms ? due_ms[i] : next_ms;
    return next_ms;
}

/* ---- events that concern more than one part ---- */

static void tell(struct devicemgr *mgr, const struct outbox_event *event)
{
    switch (event->kind) {
    case OUTBOX_ENDPOINT_ENDED:
        prefers_drop(mgr, event->number);
        calls_drop(mgr, event->number);
        break;
    case OUTBOX_RESOURCE_SERVED:
        adopt_served(mgr, event->name);
        break;
    case OUTBOX_LIST_WANTED:
        runtime_list_soon(mgr);
        break;
    case OUTBOX_SHOWN_CHANGED:
        advertise_changed(mgr, event->name);
        break;
    }
}

/* Tells what has come to pass to whom it concerns, before the next event. */
static void hand_out(struct devicemgr *mgr)
{
    struct outbox_event *event;

    while ((event = outbox_take(&mgr->outbox))) {
        tell(mgr, event);
        outbox_event_free(event);
    }
}

void devicemgr_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                        const char *version, const char *socket_name, const char *resource)
{
    core_at(mgr, now_ms);
    registration_begin(mgr, registration, version, socket_name, resource);
    hand_out(mgr);
}

void devicemgr_endpoint_list(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const V1beta1__ListAndWatchResponse *list)
{
    core_at(mgr, now_ms);
    plugin_take_list(mgr, endpoint, list);
    hand_out(mgr);
}

void devicemgr_endpoint_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const char *reason)
{
    core_at(mgr, now_ms);
    plugin_take_loss(mgr, endpoint, reason);
    hand_out(mgr);
}

void devicemgr_builtin(struct devicemgr *mgr, uint64_t now_ms, const char *resource,
                       const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    core_at(mgr, now_ms);
    builtin_listed(mgr, resource, devices, devices_len);
    hand_out(mgr);
}

/* Asked for by the kubelet, or for a create. An advice that is not given is not missed. */
void devicemgr_preferred(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                         const char *message, const V1beta1__PreferredAllocationResponse *response)
{
    (void)message;
    core_at(mgr, now_ms);
    if (!prefers_answered(mgr, call, code, response))
        call_preferred(mgr, call, code, response);
}

bool devicemgr_create(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                      const struct devicemgr_create *request)
{
    core_at(mgr, now_ms);
    if (creates_begin(mgr, create, request))
        return true;
    adopt_created(mgr, request->sandbox_id, request->pod_uid, request->container);
    return false;
}

void devicemgr_container_checked(struct devicemgr *mgr, uint64_t now_ms, uint64_t check,
                                 enum devicemgr_checked answer)
{
    char *ended;

    core_at(mgr, now_ms);
    ended = check_answered(mgr, check, answer);
    if (ended)
        runtime_container_ended(mgr, ended);
    free(ended);
}

void devicemgr_committed(struct devicemgr *mgr, uint64_t now_ms, uint64_t commit, const char *error)
{
    core_at(mgr, now_ms);
    if (checkpoint_finish(mgr, commit, error))
        creates_committed(mgr, commit, error);
}

void devicemgr_kubelet_listed(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    mgr->kubelet.listed = true;
    runtime_settle_sources(mgr);
}

void devicemgr_kubelet_holds(struct devicemgr *mgr, uint64_t now_ms, uint64_t read_ms,
                             const struct devicemgr_kubelet_held *held, size_t held_len)
{
    core_at(mgr, now_ms);
    kubelet_take_holds(mgr, held, held_len);
    hand_out(mgr);
    advertise_times(mgr);
    kubelet_judge_tokens(mgr, read_ms);
    adopt_settle(mgr);
}

/* ---- time ---- */

void devicemgr_tick(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    plugin_tick(mgr);
    hand_out(mgr);
    runtime_tick(mgr);
    runtime_settle_sources(mgr);
    checkpoint_tick(mgr);
    prefers_tick(mgr);
    wake_tick(mgr);
}

static int restore(struct devicemgr *mgr, const struct devicemgr_record *record)
{
    switch (record->kind) {
    case DEVICEMGR_RECORD_RESOURCE:
        return record_restore_resource(&mgr->resources, mgr->now_ms, mgr->settings.boot_id, record);
    case DEVICEMGR_RECORD_ALLOCATION:
        return record_restore_allocation(&mgr->allocations, mgr->now_ms + OUTCOME_MS, record);
    case DEVICEMGR_RECORD_POD:
        return record_restore_pod(&mgr->pods, mgr->now_ms, record);
    }
    return -1;
}

int devicemgr_restore(struct devicemgr *mgr, uint64_t now_ms, const struct devicemgr_record *record)
{
    int r;

    core_at(mgr, now_ms);
    r = restore(mgr, record);
    if (r < 0)
        devicemgr_rows_lost(mgr);
    return r;
}

void devicemgr_rows_lost(struct devicemgr *mgr)
{
    mgr->rows_lost = true;
}

void devicemgr_rows_unread(struct devicemgr *mgr, const char *why)
{
    free(mgr->unread);
    mgr->unread = mem_strdup(why);
}

void devicemgr_restored(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    free(mgr->unread);
    mgr->unread = NULL;
    for (const struct pod *pod = mgr->pods.by_uid; pod; pod = pod->hh.next) {
        if (!allocations_of_pod(&mgr->allocations, pod->uid))
            checkpoint_touch_pod(mgr, pod->uid); /* its allocations' rows were damaged */
    }
    plugin_restored(mgr);
    runtime_restored(mgr);
    advertise_times(mgr);
    kubelet_restored(mgr);
}
