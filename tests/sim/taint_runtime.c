/*
 * The runtime of the world of taints: containers that exit, or are stopped in time; what it
 * answers, and lists.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "tests/sim/taint_texts.h"
#include "tests/sim/taint_world.h"

#define CODE_NOT_FOUND 5
#define CODE_UNAVAILABLE 14

/* ---- containers ---- */

void taint_container_exits(struct taint_world *t, struct tw_pod *pod, bool told)
{
    char id[16];

    snprintf(id, sizeof id, "c%u", pod->container);
    taint_note(t, "c%u of u%u exits", pod->container, pod->uid);
    pod->runs = false;
    for (size_t i = 0; i < TW_STOPS; i++) {
        struct tw_stop stop = t->stops[i];

        if (!stop.op || stop.container != pod->container)
            continue;
        t->stops[i] = (struct tw_stop){0};
        devicemgr_container_stopped(t->core, t->now_ms, stop.op, 0, "");
    }
    if (told)
        devicemgr_container_removed(t->core, t->now_ms, id);
    else
        t->list_wanted = true;
    taint_shim_run(t);
}

void taint_stops_due(struct taint_world *t)
{
    for (size_t i = 0; i < TW_STOPS; i++) {
        struct tw_stop stop = t->stops[i];
        struct tw_pod *pod = stop.op ? taint_pod_by_container(t, stop.container) : NULL;

        if (!stop.op || t->runtime_away || stop.kills_ms > t->now_ms)
            continue;
        if (pod && pod->runs) {
            taint_container_exits(t, pod, rng_percent(&t->rng, 70));
            continue;
        }
        t->stops[i] = (struct tw_stop){0};
        devicemgr_container_stopped(t->core, t->now_ms, stop.op, CODE_NOT_FOUND, "not found");
        taint_shim_run(t);
    }
}

void taint_stop_fails(struct taint_world *t, struct tw_stop *slot)
{
    uint64_t op = slot->op;

    *slot = (struct tw_stop){0};
    t->list_wanted = true;
    devicemgr_container_stopped(t->core, t->now_ms, op, CODE_UNAVAILABLE, "it is away");
    taint_shim_run(t);
}

void taint_checks_answered(struct taint_world *t)
{
    for (size_t i = 0; i < TW_CALLS; i++) {
        struct tw_call check = t->checks[i];
        const struct tw_pod *pod = taint_pod_by_container(t, check.container);

        if (!check.number || t->runtime_away)
            continue;
        t->checks[i] = (struct tw_call){0};
        devicemgr_container_checked(t->core, t->now_ms, check.number,
                                    pod && pod->runs ? DEVICEMGR_RUNS : DEVICEMGR_GONE);
        taint_shim_run(t);
    }
}

/* ---- lists ---- */

void taint_list_begins(struct taint_world *t)
{
    if (t->runtime_away || t->listing)
        return;
    t->listing = true;
    t->list_wanted = false;
    t->list_ms = t->now_ms;
    devicemgr_runtime_listing(t->core);
    memcpy(t->snapshot, t->pods, sizeof t->snapshot);
}

/* What is there was there when it was asked for. */
static void note_listed(struct taint_world *t)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (!pod->there || pod->uid != t->snapshot[i].uid || !t->snapshot[i].sandbox)
            continue;
        pod->known = true;
        pod->listed =
            pod->listed || (t->snapshot[i].runs && t->snapshot[i].container == pod->container);
    }
}

void taint_list_ends(struct taint_world *t)
{
    struct devicemgr_sandbox sandboxes[TW_PODS];
    struct devicemgr_container containers[TW_PODS];
    struct tw_texts texts[TW_PODS];
    size_t len = 0, running = 0;

    if (!t->listing || t->runtime_away)
        return;
    taint_note(t, "the runtime is listed");
    t->listing = false;
    t->listed = true;
    for (size_t i = 0; i < TW_PODS; i++) {
        const struct tw_pod *pod = &t->snapshot[i];

        if (!pod->there || !pod->sandbox)
            continue;
        taint_texts_init(&texts[len], pod);
        sandboxes[len] = (struct devicemgr_sandbox){.id = texts[len].sandbox,
                                                    .pod_uid = texts[len].uid,
                                                    .pod_namespace = "ns",
                                                    .pod_name = texts[len].uid,
                                                    .attempt = pod->attempt,
                                                    .ready = pod->ready,
                                                    .annotations = texts[len].pod,
                                                    .annotations_len = texts[len].pod_len};
        if (pod->container)
            containers[running++] =
                (struct devicemgr_container){.id = texts[len].container,
                                             .sandbox_id = texts[len].sandbox,
                                             .name = "main",
                                             .running = pod->runs,
                                             .annotations = texts[len].own,
                                             .annotations_len = texts[len].own_len};
        len++;
    }
    note_listed(t);
    taint_claims_listed(t);
    devicemgr_runtime_listed(t->core, t->now_ms, sandboxes, len, containers, running);
    for (size_t i = 0; i < len; i++)
        taint_texts_fini(&texts[i]);
    taint_shim_run(t);
}
