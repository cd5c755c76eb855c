#include "devicemgr/devicemgr.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/limits.h"
#include "devicemgr/record.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct devicemgr_resource_settings *)a)->name,
                  ((const struct devicemgr_resource_settings *)b)->name);
}

static void copy_resources(struct devicemgr_settings *to, const struct devicemgr_settings *from)
{
    struct devicemgr_resource_settings *resources =
        mem_alloc(from->resources_len, sizeof *resources);

    for (size_t i = 0; i < from->resources_len; i++) {
        resources[i] = from->resources[i];
        resources[i].name = mem_strdup(from->resources[i].name);
    }
    if (from->resources_len > 1)
        qsort(resources, from->resources_len, sizeof *resources, compare_names);
    to->resources = resources;
}

static void copy_settings(struct devicemgr_settings *to, const struct devicemgr_settings *from)
{
    char **namespaces = mem_alloc(from->namespaces_len, sizeof *namespaces);

    *to = *from;
    for (size_t i = 0; i < from->namespaces_len; i++)
        namespaces[i] = mem_strdup(from->namespaces[i]);
    to->namespaces = (const char *const *)namespaces;
    to->boot_id = mem_strdup(from->boot_id);
    copy_resources(to, from);
}

static void free_settings(struct devicemgr_settings *settings)
{
    char **namespaces = (char **)settings->namespaces;

    for (size_t i = 0; i < settings->namespaces_len; i++)
        free(namespaces[i]);
    free(namespaces);
    free((char *)settings->boot_id);
    for (size_t i = 0; i < settings->resources_len; i++)
        free((char *)settings->resources[i].name);
    free((void *)settings->resources);
}

struct devicemgr *devicemgr_new(const struct devicemgr_settings *settings,
                                const struct devicemgr_ports *ports, void *user)
{
    struct devicemgr *mgr = mem_alloc(1, sizeof *mgr);

    copy_settings(&mgr->settings, settings);
    mgr->general = (struct devicemgr_resource_settings){
        .grace_ms = settings->grace_ms,
        .hold_ms = settings->hold_ms,
        .allocate_timeout_ms = settings->allocate_timeout_ms,
        .refresh = settings->refresh,
        .exclusive = true,
    };
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
    runtime_fini(mgr);
    adopt_clear(mgr);
    while ((action = action_take(&mgr->actions)))
        action_free(action);
    prefers_fini(mgr);
    kubelet_fini(&mgr->kubelet);
    checkpoint_fini(&mgr->checkpoint);
    allocations_fini(&mgr->allocations);
    pods_fini(&mgr->pods);
    ids_fini(&mgr->removed);
    HASH_ITER(hh, mgr->resources, resource, next)
    {
        resources_remove(&mgr->resources, resource);
    }
    free_settings(&mgr->settings);
    free(mgr->unread);
    free(mgr);
}

void core_at(struct devicemgr *mgr, uint64_t now_ms)
{
    if (now_ms > mgr->now_ms)
        mgr->now_ms = now_ms;
    mgr->advertise.stale = true;
}

uint64_t core_number(struct devicemgr *mgr)
{
    return ++mgr->last_number;
}

const struct devicemgr_resource_settings *core_settings_of(const struct devicemgr *mgr,
                                                           const char *resource)
{
    const struct devicemgr_resource_settings wanted = {.name = resource};
    const struct devicemgr_resource_settings *own = NULL;

    if (mgr->settings.resources_len > 0)
        own = bsearch(&wanted, mgr->settings.resources, mgr->settings.resources_len, sizeof wanted,
                      compare_names);
    return own ? own : &mgr->general;
}

void core_log(struct devicemgr *mgr, int level, const struct text *text)
{
    struct action *action = action_push(&mgr->actions, ACTION_LOG, 0);

    action->code = level;
    action->text = mem_strdup(text->buf);
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
            checkpoint_begin(mgr);
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

void devicemgr_tick(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    plugin_tick(mgr);
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
        return record_restore_pod(&mgr->pods, record);
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
    kubelet_restored(mgr);
}
