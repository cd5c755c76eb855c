/*
 * The runtime of the world of a machine that goes down: containers that exit, or are stopped in
 * time; its lists.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "tests/sim/down_world.h"

#define CODE_NOT_FOUND 5
#define CODE_UNAVAILABLE 14

/* ---- containers ---- */

void down_container_exits(struct down_world *d, struct dw_pod *pod, bool told)
{
    char id[16];

    snprintf(id, sizeof id, "c%u", pod->container);
    down_note(d, "c%u of u%u exits%s%s", pod->container, pod->uid, told ? "" : ", unseen",
              down_stop_of(d, pod->container) ? ", as it is stopped" : "");
    pod->runs = false;
    if (!told && !down_stop_of(d, pod->container)) {
        pod->epoch = d->epoch;
        pod->shown = false;
    }
    for (size_t i = 0; i < DW_STOPS; i++) {
        struct dw_stop stop = d->stops[i];

        if (!stop.op || stop.container != pod->container)
            continue;
        d->stops[i] = (struct dw_stop){0};
        devicemgr_container_stopped(d->core, d->now_ms, stop.op, 0, "");
    }
    if (told)
        devicemgr_container_removed(d->core, d->now_ms, id);
    else
        d->list_wanted = true;
    down_shim_run(d);
}

void down_stops_due(struct down_world *d)
{
    for (size_t i = 0; i < DW_STOPS; i++) {
        struct dw_stop stop = d->stops[i];
        struct dw_pod *pod = stop.op ? down_pod_by_container(d, stop.container) : NULL;

        if (!stop.op || d->runtime_away || stop.kills_ms > d->now_ms)
            continue;
        if (pod && pod->runs) {
            down_container_exits(d, pod, rng_percent(&d->rng, 70));
            continue;
        }
        d->stops[i] = (struct dw_stop){0};
        devicemgr_container_stopped(d->core, d->now_ms, stop.op, CODE_NOT_FOUND, "not found");
        down_shim_run(d);
    }
}

void down_stop_fails(struct down_world *d, struct dw_stop *slot)
{
    struct dw_pod *pod = down_pod_that_had(d, slot->container);
    uint64_t op = slot->op;

    down_note(d, "the stop of c%u fails", slot->container);
    count_add(COUNT_DOWN_STOP_FAILED);
    if (pod) {
        pod->epoch = d->epoch;
        pod->shown = false;
    }
    *slot = (struct dw_stop){0};
    d->list_wanted = true;
    devicemgr_container_stopped(d->core, d->now_ms, op, CODE_UNAVAILABLE, "it is away");
    down_shim_run(d);
}

/* ---- sandboxes ---- */

static void box_stops(struct down_world *d, unsigned sandbox, bool fails)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        if (!pod->there || pod->sandbox != sandbox)
            continue;
        if (fails) {
            pod->failed = sandbox;
            continue;
        }
        if (pod->runs)
            down_container_exits(d, pod, false);
        pod->ready = false;
    }
}

void down_boxes_stop(struct down_world *d)
{
    for (size_t i = 0; i < DW_STOPS && !d->runtime_away; i++) {
        struct dw_box_stop stop = d->boxes[i];
        bool fails = !d->calm && rng_percent(&d->rng, 15);

        if (!stop.op)
            continue;
        d->boxes[i] = (struct dw_box_stop){0};
        box_stops(d, stop.sandbox, fails);
        down_note(d, "s%u is stopped%s", stop.sandbox, fails ? ", which fails" : "");
        devicemgr_sandbox_stop_ended(d->core, d->now_ms, stop.op, fails ? CODE_UNAVAILABLE : 0,
                                     fails ? "it is away" : "");
        down_shim_run(d);
    }
}

/* ---- lists ---- */

void down_list_begins(struct down_world *d)
{
    if (d->runtime_away || d->listing)
        return;
    d->listing = true;
    d->list_wanted = false;
    d->epoch++;
    devicemgr_runtime_listing(d->core);
    memcpy(d->snapshot, d->pods, sizeof d->snapshot);
}

/* What is there was there when it was asked for. */
static void note_listed(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];
        const struct dw_pod *was = &d->snapshot[i];

        pod->shown = pod->shown || d->epoch > pod->epoch;
        if (!pod->there || pod->uid != was->uid || pod->sandbox != was->sandbox || !pod->sandbox)
            continue;
        pod->known = true;
        pod->seen = pod->seen || (was->runs && was->container == pod->container && pod->runs);
    }
}

void down_list_ends(struct down_world *d)
{
    struct devicemgr_sandbox sandboxes[DW_PODS];
    struct devicemgr_container containers[DW_PODS];
    struct dw_texts texts[DW_PODS];
    size_t len = 0, running = 0;

    if (!d->listing || d->runtime_away)
        return;
    down_note(d, "the runtime is listed");
    d->listing = false;
    d->listed = d->taking_list = true;
    d->plain_stopped = false;
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_pod *pod = &d->snapshot[i];

        if (!pod->there || !pod->sandbox)
            continue;
        down_texts_init(&texts[len], pod, i);
        sandboxes[len] = (struct devicemgr_sandbox){.id = texts[len].sandbox,
                                                    .pod_uid = texts[len].uid,
                                                    .pod_namespace = "ns",
                                                    .pod_name = texts[len].uid,
                                                    .attempt = pod->attempt,
                                                    .ready = pod->ready,
                                                    .annotations = &texts[len].source,
                                                    .annotations_len = 1};
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
    note_listed(d);
    devicemgr_runtime_listed(d->core, d->now_ms, sandboxes, len, containers, running);
    for (size_t i = 0; i < len; i++)
        down_texts_fini(&texts[i]);
    down_shim_run(d);
    down_judge_listed(d);
    down_taint_listed(d);
    d->taking_list = false;
}
