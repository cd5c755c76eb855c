/*
 * The kubelet of the world of taints: pods of one container each, that come, crash, get other
 * sandboxes, and are deleted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "tests/sim/taint_texts.h"
#include "tests/sim/taint_world.h"

#define RETRY_MS_MAX 10000

/* ---- which ---- */

struct tw_pod *taint_pod_of(struct taint_world *t, const char *uid)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (t->pods[i].there && t->pods[i].uid == strtoul(uid + 1, NULL, 10))
            return &t->pods[i];
    }
    return NULL;
}

struct tw_pod *taint_pod_by_create(struct taint_world *t, uint64_t create)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (create && t->pods[i].create == create)
            return &t->pods[i];
    }
    return NULL;
}

struct tw_pod *taint_pod_by_container(struct taint_world *t, unsigned container)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (t->pods[i].there && t->pods[i].container == container)
            return &t->pods[i];
    }
    return NULL;
}

/* ---- the kubelet's checkpoint ---- */

static void tell_file(struct taint_world *t)
{
    struct devicemgr_kubelet_held held[TW_PODS];
    const char *ids[TW_PODS][TW_DEVICES_MAX];
    char uids[TW_PODS][16];
    size_t len = 0;

    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (!pod->there || pod->kind != TW_TOKEN)
            continue;
        snprintf(uids[len], sizeof uids[len], "u%u", pod->uid);
        held[len] = (struct devicemgr_kubelet_held){.pod_uid = uids[len],
                                                    .container = "main",
                                                    .resource = taint_resource_name(pod->resource),
                                                    .ids = ids[len]};
        for (size_t d = 0; d < TW_DEVICES_MAX; d++) {
            if (pod->mask & 1u << d)
                ids[len][held[len].ids_len++] = taint_device_id(pod->resource, d);
        }
        pod->in_file = true;
        len++;
    }
    devicemgr_kubelet_holds(t->core, t->now_ms, t->now_ms, held, len);
    taint_shim_run(t);
}

/* ---- admission ---- */

struct admission {
    unsigned healthy;
    size_t len;
};

static void see_device(void *user, const struct devicemgr_shown_device *device)
{
    struct admission *admission = user;

    if (device->healthy)
        admission->healthy |= taint_device_mask(&device->id, 1);
    admission->len++;
}

struct tw_toleration taint_draw_toleration(struct rng *rng)
{
    struct tw_toleration is = {.key = (int)rng_below(rng, TW_KEYS + 2) - 1,
                               .exists = rng_percent(rng, 60),
                               .value = (unsigned)rng_below(rng, 2),
                               .effect = (int)rng_below(rng, TW_EFFECTS + 1) - 1};

    if (is.key < 0 || is.key == TW_KEYS)
        is.exists = true;
    if (rng_percent(rng, 50))
        is.effect = TW_NO_EXECUTE;
    is.has_seconds = rng_percent(rng, 60);
    is.seconds = rng_percent(rng, 10) ? -1 : (int64_t)rng_below(rng, 120);
    return is;
}

static enum tw_kind kind_of(size_t resource)
{
    if (resource == TW_DRIVER)
        return TW_CLAIM;
    return taint_resource_exclusive(resource) ? TW_REQUEST : TW_TOKEN;
}

static void admit_with_claim(struct taint_world *t, struct tw_pod *pod)
{
    pod->claim = taint_claim_reserve(t, pod->uid);
    if (pod->claim == TW_CLAIMS) {
        *pod = (struct tw_pod){0};
        return;
    }
    pod->mask = t->claims[pod->claim].mask;
    taint_note(t, "u%u is admitted with claim c%u, %x", pod->uid, t->claims[pod->claim].uid,
               pod->mask);
}

static void admit(struct taint_world *t, struct tw_pod *pod)
{
    struct admission admission = {0};
    size_t resource = rng_below(&t->rng, TW_SUBJECTS);

    *pod = (struct tw_pod){.there = true,
                           .uid = ++t->last_uid,
                           .kind = kind_of(resource),
                           .is_static = rng_percent(&t->rng, 20) && resource != TW_DRIVER,
                           .resource = resource,
                           .grace_ms = 1000 * rng_below(&t->rng, 60)};
    pod->tolerations_len =
        rng_percent(&t->rng, 60) ? 0 : rng_between(&t->rng, 1, TW_TOLERATIONS_MAX);
    for (size_t i = 0; i < pod->tolerations_len; i++)
        pod->tolerations[i] = taint_draw_toleration(&t->rng);
    if (pod->kind == TW_REQUEST)
        return;
    if (pod->kind == TW_CLAIM) {
        admit_with_claim(t, pod);
        return;
    }
    devicemgr_shown_devices(t->core, taint_resource_name(resource), see_device, &admission);
    for (size_t i = 0; i < admission.len; i++) {
        size_t d = rng_below(&t->rng, admission.len);

        if (admission.healthy & 1u << d && (pod->mask == 0 || rng_percent(&t->rng, 10)))
            pod->mask |= 1u << d;
    }
    taint_note(t, "u%u is admitted with %x of %zu", pod->uid, pod->mask, pod->resource);
    if (pod->mask)
        tell_file(t);
    else
        *pod = (struct tw_pod){0}; /* there is none for it */
}

/* ---- sandboxes ---- */

static void run_sandbox(struct taint_world *t, struct tw_pod *pod)
{
    struct devicemgr_refusal refusal;
    struct devicemgr_sandbox sandbox;
    struct tw_texts texts;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    if (devicemgr_sandbox_refused(t->core, uid, &refusal)) {
        check_that(t->w, pod->evicted.is || pod->ended.is,
                   "no sandbox is refused but of a pod that is to end");
        count_add(COUNT_TAINT_SANDBOX_REFUSED);
        return;
    }
    check_that(t->w,
               !(pod->sent || pod->accepted) || pod->unsure.is ||
                   !(pod->evicted.is || pod->ended.is),
               "no sandbox is run of a pod that is being ended");
    pod->attempt += pod->sandbox != 0;
    pod->sandbox = ++t->last_sandbox;
    pod->ready = true;
    pod->user = false; /* that was the one before */
    taint_texts_init(&texts, pod);
    sandbox = (struct devicemgr_sandbox){.id = texts.sandbox,
                                         .pod_uid = texts.uid,
                                         .pod_namespace = "ns",
                                         .pod_name = texts.uid,
                                         .attempt = pod->attempt,
                                         .ready = true,
                                         .annotations = texts.pod,
                                         .annotations_len = texts.pod_len};
    pod->known = true;
    taint_note(t, "s%u of u%u runs%s, %s", pod->sandbox, pod->uid, pod->is_static ? ", static" : "",
               texts.tolerations);
    devicemgr_sandbox_ran(t->core, t->now_ms, &sandbox);
    taint_texts_fini(&texts);
    taint_shim_run(t);
}

static void stop_sandbox(struct taint_world *t, struct tw_pod *pod)
{
    char sandbox[16];

    snprintf(sandbox, sizeof sandbox, "s%u", pod->sandbox);
    pod->ready = false;
    taint_note(t, "s%u of u%u stops", pod->sandbox, pod->uid);
    devicemgr_sandbox_stopping(t->core, t->now_ms, sandbox);
    taint_shim_run(t);
    if (pod->runs)
        taint_container_exits(t, pod, true);
    pod->user = false;
    devicemgr_sandbox_stopped(t->core, t->now_ms, sandbox);
    taint_shim_run(t);
}

/* The list under way shows it; or it may have a container yet, as far as the core knows. */
static void note_slipped(struct taint_world *t, const struct tw_pod *slot, const struct tw_pod *was)
{
    size_t i = (size_t)(slot - t->pods);

    if (was->unsettled || (t->listing && t->snapshot[i].uid == was->uid))
        t->slipped[t->slipped_len++ % TW_SLIPPED] = was->uid;
}

static void remove_pod(struct taint_world *t, struct tw_pod *pod)
{
    struct tw_pod was = *pod;
    char sandbox[16];

    snprintf(sandbox, sizeof sandbox, "s%u", was.sandbox);
    *pod = (struct tw_pod){0};
    note_slipped(t, pod, &was);
    taint_note(t, "u%u is removed", was.uid);
    if (was.sandbox)
        devicemgr_sandbox_removed(t->core, t->now_ms, sandbox);
    taint_shim_run(t);
    tell_file(t);
}

void taint_pod_deleted(struct taint_world *t, struct tw_pod *pod)
{
    (void)t;
    pod->deleting = true;
}

/* ---- containers ---- */

static size_t name_devices(const struct taint_world *t, const struct tw_pod *pod,
                           const char *cdi[TW_DEVICES_MAX])
{
    size_t len = 0;

    for (size_t d = 0; pod->kind == TW_CLAIM && d < TW_DEVICES_MAX; d++) {
        if (pod->mask & 1u << d)
            cdi[len++] = taint_claim_cdi(&t->claims[pod->claim], d);
    }
    return len;
}

/* The shim has nothing to say about it. */
static void pass_on(struct taint_world *t, struct tw_pod *pod)
{
    taint_judge_forwarded(t, pod, pod->mask);
    pod->forwarded = pod->given = true;
    pod->first_create = 0;
}

static void begin_create(struct taint_world *t, struct tw_pod *pod)
{
    const char *cdi[TW_DEVICES_MAX];
    struct devicemgr_create request;
    struct tw_texts texts;
    bool decides;

    taint_texts_init(&texts, pod);
    request = (struct devicemgr_create){.sandbox_id = texts.sandbox,
                                        .sandbox_attempt = pod->attempt,
                                        .pod_uid = texts.uid,
                                        .pod_namespace = "ns",
                                        .pod_name = texts.uid,
                                        .container = "main",
                                        .container_annotations = texts.own,
                                        .container_annotations_len = texts.own_len,
                                        .pod_annotations = texts.pod,
                                        .pod_annotations_len = texts.pod_len,
                                        .cdi_devices = cdi,
                                        .cdi_devices_len = name_devices(t, pod, cdi),
                                        .deadline_ms = TW_NEVER};
    if (pod->kind == TW_REQUEST)
        request.container_annotations_len = 1; /* what the shim chose is not the kubelet's to say */
    pod->create = ++t->number;
    if (!pod->first_create)
        pod->first_create = pod->create;
    if (pod->kind == TW_REQUEST)
        pod->had = UINT32_MAX; /* which it is given is seen when it is made */
    pod->forwarded = false;
    pod->retry_ms = t->now_ms + rng_between(&t->rng, 1000, RETRY_MS_MAX);
    pod->no_execute = pod->kind == TW_CLAIM && taint_must_have(t, pod, pod->mask, TW_NO_EXECUTE);
    decides = devicemgr_create(t->core, t->now_ms, pod->create, &request);
    check_that(t->w, decides || pod->kind == TW_CLAIM, "a container with a device is decided upon");
    taint_texts_fini(&texts);
    if (!decides)
        pass_on(t, pod);
    else if (pod->kind == TW_CLAIM)
        devicemgr_run(t->core); /* it may be refused */
    if (pod->kind == TW_CLAIM &&
        pod->create) { /* else it waits to be stored who has the claim then */
        pod->user = true;
        pod->user_ms = t->now_ms;
    }
    taint_shim_run(t);
}

static unsigned mask_of(const struct devicemgr_verdict *verdict)
{
    for (size_t i = 0; verdict->options && i < verdict->options->n_envs; i++) {
        if (strcmp(verdict->options->envs[i]->key, "MASK") == 0)
            return (unsigned)strtoul(verdict->options->envs[i]->value, NULL, 10);
    }
    return 0;
}

void taint_pod_verdict(struct taint_world *t, struct tw_pod *pod,
                       const struct devicemgr_verdict *verdict)
{
    unsigned mask = mask_of(verdict);

    if (verdict->code != 0) {
        taint_judge_refused(t, pod, verdict->code, verdict->message);
        pod->create = 0;
        return;
    }
    if (pod->kind == TW_CLAIM) {
        pass_on(t, pod);
        return;
    }
    taint_judge_forwarded(t, pod, mask);
    pod->forwarded = pod->given = true;
    pod->first_create = 0;
    pod->mask = mask;
}

/* The runtime answers; its container starts at once. */
static void make(struct taint_world *t, struct tw_pod *pod)
{
    uint64_t create = pod->create;
    char id[16];

    pod->create = 0;
    pod->forwarded = false;
    if (!pod->ready || rng_percent(&t->rng, 5)) {
        devicemgr_create_answered(t->core, t->now_ms, create, NULL);
        taint_shim_run(t);
        return;
    }
    pod->container = ++t->last_container;
    pod->runs = true;
    pod->listed = false;
    snprintf(id, sizeof id, "c%u", pod->container);
    taint_note(t, "c%u of u%u is made", pod->container, pod->uid);
    t->list_wanted = true; /* by its event */
    devicemgr_create_answered(t->core, t->now_ms, create, id);
    taint_shim_run(t);
}

/* ---- the shim ends, and starts ---- */

/* What the runtime has of a create it finishes, or not. */
void taint_pods_shim_ended(struct taint_world *t)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (pod->create && pod->forwarded && pod->ready && rng_percent(&t->rng, 50)) {
            pod->container = ++t->last_container;
            pod->runs = true;
        }
        pod->unsettled = pod->unsettled || pod->runs || pod->given;
        pod->create = 0;
        pod->forwarded = pod->listed = pod->known = pod->in_file = false;
        pod->evicted.is = pod->evicted.stored;
        pod->ended.is = pod->ended.stored;
        pod->asked_ms = pod->asked_stored_ms;
        pod->unasked_ms = pod->unasked_stored_ms;
        pod->unsure.is = pod->unsure.stored;
        pod->order = pod->prepare = 0;
        pod->sent = pod->accepted = pod->user = false;
        pod->adopted = pod->evicted.is;
        pod->confirmed = false;
        pod->end_grace_ms = TW_NEVER;
    }
}

void taint_pods_shim_started(struct taint_world *t)
{
    tell_file(t);
}

/* ---- what the kubelet does ---- */

void taint_pod_proceeds(struct taint_world *t, struct tw_pod *pod)
{
    if (!pod->there) {
        if (!t->calm)
            admit(t, pod);
    } else if (pod->create && pod->forwarded) {
        make(t, pod);
    } else if (pod->create) {
        return;
    } else if (pod->deleting && pod->sandbox && pod->ready) {
        stop_sandbox(t, pod);
    } else if (pod->deleting) {
        if (taint_claim_is_let_go(t, pod))
            remove_pod(t, pod);
    } else if (!taint_claim_is_prepared(t, pod)) {
        return;
    } else if (!pod->sandbox || !pod->ready) {
        run_sandbox(t, pod);
    } else if (!pod->runs && t->now_ms >= pod->retry_ms) {
        begin_create(t, pod);
    }
}

void taint_pod_trouble(struct taint_world *t, struct tw_pod *pod)
{
    uint64_t create = pod->create;

    if (!pod->there)
        return;
    switch (rng_below(&t->rng, 6)) {
    case 0:
        taint_pod_deleted(t, pod);
        break;
    case 1:
        if (pod->ready && !pod->create) /* it makes another one */
            stop_sandbox(t, pod);
        break;
    case 2:
        if (!pod->create || pod->forwarded)
            break;
        pod->create = 0;
        devicemgr_create_cancelled(t->core, t->now_ms, create);
        taint_shim_run(t);
        break;
    default:
        if (pod->runs)
            taint_container_exits(t, pod, rng_percent(&t->rng, 70));
        break;
    }
}
