/*
 * The kubelet of the world of a machine that goes down: pods of one container each, that come,
 * crash, and are deleted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/token.h"
#include "devicemgr/endings.h"
#include "tests/sim/down_world.h"

#define RETRY_MS_MAX 10000

/* ---- which ---- */

struct dw_pod *down_pod_of(struct down_world *d, const char *uid)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].there && d->pods[i].uid == strtoul(uid + 1, NULL, 10))
            return &d->pods[i];
    }
    return NULL;
}

struct dw_pod *down_pod_by_create(struct down_world *d, uint64_t create)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (create && d->pods[i].create == create)
            return &d->pods[i];
    }
    return NULL;
}

struct dw_pod *down_pod_by_container(struct down_world *d, unsigned container)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].there && d->pods[i].container == container)
            return &d->pods[i];
    }
    return NULL;
}

struct dw_pod *down_pod_that_had(struct down_world *d, unsigned container)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].there &&
            (d->pods[i].container == container || d->pods[i].earlier == container))
            return &d->pods[i];
    }
    return NULL;
}

/* ---- what it is called ---- */

void down_texts_init(struct dw_texts *texts, const struct dw_pod *pod, size_t place)
{
    static const char *const IDS[DW_PODS] = {"g0", "g1", "g2", "g3", "g4", "g5"};

    *texts = (struct dw_texts){.own_len = 0};
    snprintf(texts->uid, sizeof texts->uid, "u%u", pod->uid);
    snprintf(texts->sandbox, sizeof texts->sandbox, "s%u", pod->sandbox);
    snprintf(texts->container, sizeof texts->container, "c%u", pod->container);
    snprintf(texts->grace, sizeof texts->grace, "%llu", (unsigned long long)pod->grace_ms / 1000);
    texts->source = (struct devicemgr_annotation){"kubernetes.io/config.source",
                                                  pod->is_static ? "file" : "api"};
    texts->own[texts->own_len++] =
        (struct devicemgr_annotation){"io.kubernetes.pod.terminationGracePeriod", texts->grace};
    if (!pod->device)
        return;
    texts->token_key = token_key(DW_RESOURCE);
    texts->token = token_value(DW_RESOURCE, &IDS[place], 1);
    texts->own[texts->own_len++] = (struct devicemgr_annotation){texts->token_key, texts->token};
}

void down_texts_fini(struct dw_texts *texts)
{
    free(texts->token_key);
    free(texts->token);
}

/* ---- pods ---- */

static void admit(struct down_world *d, struct dw_pod *pod)
{
    static const int32_t PRIORITIES[] = {-100, 0, 0, 50, 100, 1000, 2000000000, 2000001000};

    *pod = (struct dw_pod){.there = true,
                           .uid = ++d->last_uid,
                           .device = rng_percent(&d->rng, 50),
                           .is_static = rng_percent(&d->rng, 20),
                           .mirrored = rng_percent(&d->rng, 85),
                           .priority = PRIORITIES[rng_below(&d->rng, 8)],
                           .grace_ms = 1000 * rng_below(&d->rng, 40),
                           .end_grace_ms = DW_NEVER};
    down_note(d, "u%u is admitted%s%s, priority %d", pod->uid, pod->device ? " with a device" : "",
              pod->is_static ? ", static" : "", pod->priority);
}

static void remove_pod(struct down_world *d, struct dw_pod *pod)
{
    struct dw_pod was = *pod;
    char sandbox[16];

    snprintf(sandbox, sizeof sandbox, "s%u", was.sandbox);
    *pod = (struct dw_pod){0};
    down_note(d, "u%u is removed", was.uid);
    if (was.sandbox)
        devicemgr_sandbox_removed(d->core, d->now_ms, sandbox);
    down_shim_run(d);
}

/* ---- sandboxes ---- */

static void run_sandbox(struct down_world *d, struct dw_pod *pod)
{
    struct devicemgr_refusal refusal;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    if (devicemgr_sandbox_refused(d->core, uid, &refusal)) {
        down_judge_sandbox_refused(d, pod, refusal.code);
        return;
    }
    down_judge_made(d, pod);
    pod->coming = ++d->last_sandbox;
}

/* It takes the place of the one before. */
static void note_ran(struct dw_pod *pod)
{
    if (pod->container)
        pod->earlier = pod->container; /* a list that is on its way may show it yet */
    pod->attempt += pod->sandbox != 0;
    pod->sandbox = pod->coming;
    pod->coming = pod->container = 0;
    pod->ready = true;
}

static void sandbox_ran(struct down_world *d, struct dw_pod *pod)
{
    struct devicemgr_sandbox sandbox;
    struct dw_texts texts;

    note_ran(pod);
    pod->known = true;
    down_texts_init(&texts, pod, (size_t)(pod - d->pods));
    sandbox = (struct devicemgr_sandbox){.id = texts.sandbox,
                                         .pod_uid = texts.uid,
                                         .pod_namespace = "ns",
                                         .pod_name = texts.uid,
                                         .attempt = pod->attempt,
                                         .ready = true,
                                         .annotations = &texts.source,
                                         .annotations_len = 1};
    down_note(d, "s%u of u%u runs", pod->sandbox, pod->uid);
    if (d->plan.state != DW_NONE)
        count_add(COUNT_DOWN_CAME_LATE);
    devicemgr_sandbox_ran(d->core, d->now_ms, &sandbox);
    down_texts_fini(&texts);
    down_shim_run(d);
}

void down_pod_stops(struct down_world *d, struct dw_pod *pod)
{
    char sandbox[16];

    if (!pod->there || !pod->sandbox || !pod->ready)
        return;
    snprintf(sandbox, sizeof sandbox, "s%u", pod->sandbox);
    down_note(d, "s%u of u%u stops", pod->sandbox, pod->uid);
    devicemgr_sandbox_stopping(d->core, d->now_ms, sandbox);
    down_shim_run(d);
    if (pod->runs)
        down_container_exits(d, pod, true);
    pod->ready = false;
    devicemgr_sandbox_stopped(d->core, d->now_ms, sandbox);
    down_shim_run(d);
}

/* ---- containers ---- */

static void begin_create(struct down_world *d, struct dw_pod *pod)
{
    struct devicemgr_create request;
    struct dw_texts texts;
    bool decides;

    down_texts_init(&texts, pod, (size_t)(pod - d->pods));
    request = (struct devicemgr_create){.sandbox_id = texts.sandbox,
                                        .sandbox_attempt = pod->attempt,
                                        .pod_uid = texts.uid,
                                        .pod_namespace = "ns",
                                        .pod_name = texts.uid,
                                        .container = "main",
                                        .container_annotations = texts.own,
                                        .container_annotations_len = texts.own_len,
                                        .deadline_ms = DW_NEVER};
    pod->create = ++d->number;
    pod->forwarded = false;
    pod->decided = pod->device;
    pod->retry_ms = d->now_ms + rng_between(&d->rng, 1000, RETRY_MS_MAX);
    decides = devicemgr_create(d->core, d->now_ms, pod->create, &request);
    down_texts_fini(&texts);
    if (!decides) {
        check_that(d->w, !pod->device, "a container with a device is decided upon");
        pod->forwarded = true;
        down_judge_made(d, pod);
    }
    down_shim_run(d);
}

/* The runtime answers; its container starts at once. */
static void make(struct down_world *d, struct dw_pod *pod)
{
    uint64_t create = pod->create;
    bool is_made = pod->ready && !rng_percent(&d->rng, 5);
    char id[16];

    pod->create = 0;
    pod->forwarded = false;
    if (is_made) {
        pod->earlier = pod->container;
        pod->container = ++d->last_container;
        pod->runs = true;
        pod->seen = pod->decided;
        down_note(d, "c%u of u%u is made", pod->container, pod->uid);
        if (pod->goes_on_making)
            pod->goes_on = pod->container;
        if (d->plan.state != DW_NONE)
            count_add(COUNT_DOWN_MADE_LATE);
        d->list_wanted = true; /* by its event */
    }
    pod->goes_on_making = false;
    if (!pod->decided)
        return;
    snprintf(id, sizeof id, "c%u", pod->container);
    devicemgr_create_answered(d->core, d->now_ms, create, is_made ? id : NULL);
    down_shim_run(d);
}

/* ---- the shim ends, the machine boots ---- */

/* What the runtime has of a create it finishes, or not. */
void down_pods_shim_ended(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        if (pod->create && pod->forwarded && pod->ready && rng_percent(&d->rng, 50)) {
            pod->earlier = pod->container;
            pod->container = ++d->last_container;
            pod->runs = true;
            if (pod->goes_on_making)
                pod->goes_on = pod->container;
        }
        if (pod->coming)
            note_ran(pod);
        pod->create = 0;
        pod->forwarded = pod->seen = pod->known = pod->shown = pod->goes_on_making = false;
        pod->epoch = 0;
        pod->must_go_on = false;
    }
}

void down_pods_booted(struct down_world *d, bool forgotten)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        pod->runs = pod->ready = pod->sent = pod->may_refuse = false;
        pod->container = pod->goes_on = 0;
        pod->retry_ms = 0;
        if (forgotten)
            pod->sandbox = 0;
    }
}

/* ---- what the kubelet does ---- */

void down_pod_proceeds(struct down_world *d, struct dw_pod *pod)
{
    if (!pod->there) {
        if (!d->calm)
            admit(d, pod);
    } else if (pod->coming) {
        sandbox_ran(d, pod);
    } else if (pod->create && pod->forwarded) {
        make(d, pod);
    } else if (pod->create) {
        return;
    } else if (pod->deleting && pod->sandbox && pod->ready) {
        down_pod_stops(d, pod);
    } else if (pod->deleting) {
        remove_pod(d, pod);
    } else if (!pod->sandbox || !pod->ready) {
        run_sandbox(d, pod);
    } else if (!pod->runs && d->now_ms >= pod->retry_ms) {
        begin_create(d, pod);
    }
}

void down_pod_trouble(struct down_world *d, struct dw_pod *pod)
{
    uint64_t create = pod->create;

    if (!pod->there)
        return;
    switch (rng_below(&d->rng, 8)) {
    case 0:
        pod->deleting = true;
        break;
    case 1:
        if (!pod->create && !pod->coming) /* it makes another one */
            down_pod_stops(d, pod);
        break;
    case 2:
        if (!pod->create || pod->forwarded)
            break;
        pod->create = 0;
        devicemgr_create_cancelled(d->core, d->now_ms, create);
        down_shim_run(d);
        break;
    default:
        if (pod->runs)
            down_container_exits(d, pod, rng_percent(&d->rng, 70));
        break;
    }
}
