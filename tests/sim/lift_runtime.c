/*
 * The runtime of the world of lifted resources: sandboxes and containers, and what it says of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/token.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

/* It makes a container within this. */
#define COMES_MS_MAX 6000
#define RETRY_MS 10000

bool lift_container_lives(const struct lw_container *container)
{
    return container->state == LW_COMES || container->state == LW_RUNS;
}

/* ---- creates ---- */

/* As the kubelet has it from the bridge. */
static void add_token(struct lw_container *container, const struct lw_pod *pod)
{
    char ids[2][LW_ID_BYTES];
    const char *v[2] = {ids[0], ids[1]};
    char *key = token_key(lift_resource_name(pod->resource)), *value;

    for (size_t i = 0; i < pod->devices_len; i++)
        lift_device_id(pod->resource, pod->devices[i], ids[i]);
    value = token_value(lift_resource_name(pod->resource), v, pod->devices_len);
    snprintf(container->tokens[0][0], sizeof container->tokens[0][0], "%s", key);
    snprintf(container->tokens[0][1], sizeof container->tokens[0][1], "%s", value);
    container->tokens_len = 1;
    free(key);
    free(value);
}

static size_t annotate(const struct lw_container *container,
                       struct devicemgr_annotation annotations[LW_RESOURCES])
{
    for (size_t i = 0; i < container->tokens_len; i++)
        annotations[i] =
            (struct devicemgr_annotation){container->tokens[i][0], container->tokens[i][1]};
    return container->tokens_len;
}

/* The names that the kubelet was told last. False: there are none any more. */
static bool add_names(const struct lift_world *h, const struct lw_pod *pod, size_t container,
                      const char *names[LW_HAD], size_t *len)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        const struct lw_claim *claim = &h->claims[pod->claims[i]];

        if (container > 0 && claim->extended)
            continue;
        if (claim->names_len == 0)
            return false;
        for (size_t k = 0; k < claim->names_len; k++)
            names[(*len)++] = claim->names[k];
    }
    return true;
}

void lift_container_asked(struct lift_world *h, struct lw_pod *pod, size_t index)
{
    struct lw_container *container = &pod->containers[index];
    char sandbox[16], uid[16], name[8];
    const char *names[LW_HAD];
    struct devicemgr_annotation annotations[LW_RESOURCES];
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .sandbox_attempt = pod->sandbox_attempt,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = uid,
                                       .container = name,
                                       .attempt = container->attempt,
                                       .container_annotations = annotations,
                                       .cdi_devices = names,
                                       .deadline_ms = UINT64_MAX};

    if (!add_names(h, pod, index, names, &request.cdi_devices_len))
        return;
    if (!lift_pod_by_claims(pod))
        add_token(container, pod);
    else
        container->tokens_len = 0;
    request.container_annotations_len = annotate(container, annotations);
    snprintf(sandbox, sizeof sandbox, "s%u", pod->sandbox);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    snprintf(name, sizeof name, "n%zu", index);
    container->state = LW_ASKED;
    container->known = false;
    container->id = ++h->last_container;
    container->create = ++h->number;
    container->asked_ms = h->now_ms;
    container->ended_ms = 0;
    lift_judge_asked(h, pod);
    lift_note(h, "container %s of %s is asked for in %s, %" PRIu64, name, uid, sandbox,
              container->create);
    check_that(h->w, devicemgr_create(h->core, h->now_ms, container->create, &request),
               "a container that has devices is looked at: %s", uid);
    lift_shim_run(h);
}

static struct lw_container *find_create(struct lift_world *h, uint64_t create, size_t *pod)
{
    for (*pod = 0; *pod < LW_PODS; ++*pod) {
        for (size_t i = 0; i < h->pods[*pod].containers_len; i++) {
            struct lw_container *container = &h->pods[*pod].containers[i];

            if (h->pods[*pod].there && container->create == create)
                return container;
        }
    }
    return NULL;
}

/* The tokens that the shim has written on it. */
static void keep_tokens(struct lw_container *container,
                        const V1beta1__ContainerAllocateResponse *options)
{
    for (size_t i = 0; i < options->n_annotations && container->tokens_len < LW_RESOURCES; i++) {
        if (strncmp(options->annotations[i]->key, TOKEN_KEY_PREFIX, strlen(TOKEN_KEY_PREFIX)) != 0)
            continue;
        snprintf(container->tokens[container->tokens_len][0], sizeof container->tokens[0][0], "%s",
                 options->annotations[i]->key);
        snprintf(container->tokens[container->tokens_len][1], sizeof container->tokens[0][1], "%s",
                 options->annotations[i]->value);
        container->tokens_len++;
    }
}

void lift_verdict(struct lift_world *h, uint64_t create, const struct devicemgr_verdict *verdict)
{
    size_t slot;
    struct lw_container *container = find_create(h, create, &slot);
    const struct lw_pod *pod = &h->pods[slot];

    check_that(h->w, container, "a create that has a verdict was asked for: %" PRIu64, create);
    if (!container)
        return;
    if (verdict->code != 0) {
        lift_note(h, "a container of u%u is refused: %d %s", pod->uid, verdict->code,
                  verdict->message);
        lift_judge_refused(h, pod, (size_t)(container - pod->containers), verdict->code,
                           verdict->message);
        container->state = LW_NOTHING;
        container->create = 0;
        container->retry_ms = h->now_ms + RETRY_MS;
        return;
    }
    lift_note(h, "a container of u%u goes on", pod->uid);
    if (lift_pod_by_claims(pod) && verdict->options)
        keep_tokens(container, verdict->options);
    container->state = LW_COMES;
    container->known = true;
    container->comes_ms = h->now_ms + rng_delay_ms(&h->rng, COMES_MS_MAX);
    lift_judge_forward(h, pod, (size_t)(container - pod->containers), verdict->options);
}

uint64_t lift_containers_next_ms(const struct lift_world *h)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = 0; h->pods[i].there && k < h->pods[i].containers_len; k++) {
            const struct lw_container *container = &h->pods[i].containers[k];

            if (container->state == LW_COMES && container->comes_ms < next_ms)
                next_ms = container->comes_ms;
        }
    }
    return next_ms;
}

static void is_made(struct lift_world *h, const struct lw_pod *pod, struct lw_container *container)
{
    bool fails = !h->calm && rng_percent(&h->rng, 8);
    uint64_t create = container->create;
    char id[16];

    container->state = fails ? LW_NOTHING : LW_RUNS;
    container->known = container->known && !fails;
    container->create = 0;
    container->attempt += !fails;
    lift_note(h, "k%u of u%u %s", container->id, pod->uid, fails ? "fails" : "runs");
    if (!create)
        return; /* whoever asked for it is gone */
    snprintf(id, sizeof id, "k%u", container->id);
    devicemgr_create_answered(h->core, h->now_ms, create, fails ? NULL : id);
    lift_shim_run(h);
}

void lift_containers_due(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS && !*h->w->broken; i++) {
        struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && k < pod->containers_len; k++) {
            if (pod->containers[k].state == LW_COMES && pod->containers[k].comes_ms <= h->now_ms)
                is_made(h, pod, &pod->containers[k]);
        }
    }
}

/* What the runtime has comes, or is lost; the shim hears nothing of it. */
static void lose_answers(struct lift_world *h, bool cancel)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = 0; h->pods[i].there && k < h->pods[i].containers_len; k++) {
            struct lw_container *container = &h->pods[i].containers[k];
            uint64_t create = container->create;

            container->create = 0;
            if (container->state == LW_ASKED)
                container->state = LW_NOTHING;
            else if (container->state == LW_COMES && rng_percent(&h->rng, 40))
                container->state = LW_NOTHING;
            if (create && cancel)
                devicemgr_create_cancelled(h->core, h->now_ms, create);
        }
    }
}

void lift_runtime_restarts(struct lift_world *h)
{
    lift_note(h, "the runtime restarts");
    count_add(COUNT_LIFT_RUNTIME);
    lose_answers(h, true);
    h->listing = false;
    h->list_wanted = true;
    lift_shim_run(h);
}

void lift_runtime_shim_ended(struct lift_world *h)
{
    lose_answers(h, false);
}

/* What no row says is not known any more. */
void lift_runtime_shim_started(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = 0; h->pods[i].there && k < h->pods[i].containers_len; k++)
            h->pods[i].containers[k].known = lift_shim_has_rows(h, &h->pods[i], k);
    }
}

/* ---- ends ---- */

void lift_container_exits(struct lift_world *h, struct lw_pod *pod, size_t index, bool told)
{
    struct lw_container *container = &pod->containers[index];
    char id[16];

    snprintf(id, sizeof id, "k%u", container->id);
    lift_note(h, "%s of u%u exits", id, pod->uid);
    container->state = LW_EXITED;
    container->ended_ms = told ? 0 : h->now_ms;
    if (!told)
        return;
    devicemgr_container_removed(h->core, h->now_ms, id);
    lift_shim_run(h);
}

void lift_check(struct lift_world *h, uint64_t check, const char *container_id)
{
    size_t slot = 0;

    while (slot < LW_CALLS && h->checks[slot][0])
        slot++;
    if (slot == LW_CALLS)
        abort();
    h->checks[slot][0] = check;
    h->checks[slot][1] = strtoul(container_id + 1, NULL, 10);
}

static bool runs(const struct lift_world *h, uint64_t id)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = 0; h->pods[i].there && k < h->pods[i].containers_len; k++) {
            if (h->pods[i].containers[k].id == id)
                return h->pods[i].containers[k].state == LW_RUNS;
        }
    }
    return false;
}

void lift_checks_answered(struct lift_world *h)
{
    for (size_t i = 0; i < LW_CALLS && !*h->w->broken; i++) {
        uint64_t check = h->checks[i][0], id = h->checks[i][1];

        if (!check)
            continue;
        h->checks[i][0] = 0;
        devicemgr_container_checked(h->core, h->now_ms, check,
                                    runs(h, id) ? DEVICEMGR_RUNS : DEVICEMGR_GONE);
        lift_shim_run(h);
    }
}

/* ---- sandboxes ---- */

static void clear_containers(struct lw_pod *pod)
{
    for (size_t i = 0; i < pod->containers_len; i++)
        pod->containers[i] = (struct lw_container){.attempt = pod->containers[i].attempt,
                                                   .retry_ms = pod->containers[i].retry_ms};
}

void lift_sandbox_runs(struct lift_world *h, struct lw_pod *pod)
{
    char id[16], uid[16];
    const struct devicemgr_sandbox sandbox = {.id = id,
                                              .pod_uid = uid,
                                              .pod_namespace = "ns",
                                              .pod_name = uid,
                                              .attempt = ++pod->sandbox_attempt,
                                              .ready = true};

    pod->sandbox = ++h->last_sandbox;
    pod->ready = true;
    clear_containers(pod);
    snprintf(id, sizeof id, "s%u", pod->sandbox);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    lift_note(h, "sandbox %s of %s runs", id, uid);
    devicemgr_sandbox_ran(h->core, h->now_ms, &sandbox);
    lift_shim_run(h);
}

/* Its containers have ended; the shim is told, unless it had died before, which a kubelet leaves at
 * that, but for its removal. */
void lift_sandbox_ends(struct lift_world *h, struct lw_pod *pod)
{
    bool told = pod->ready;
    char id[16];

    if (!pod->sandbox)
        return;
    snprintf(id, sizeof id, "s%u", pod->sandbox);
    pod->sandbox = 0;
    pod->ready = false;
    clear_containers(pod);
    lift_note(h, "sandbox %s has ended%s", id, told ? "" : ", as it had before");
    if (!told)
        return;
    devicemgr_sandbox_stopping(h->core, h->now_ms, id);
    devicemgr_sandbox_stopped(h->core, h->now_ms, id);
    lift_shim_run(h);
}

void lift_runtime_booted(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && k < pod->containers_len; k++) {
            if (pod->containers[k].state != LW_NOTHING)
                pod->containers[k].state = LW_EXITED;
            pod->containers[k].create = 0;
        }
        pod->ready = false;
    }
}

/* ---- lists ---- */

void lift_list_begins(struct lift_world *h)
{
    if (h->listing)
        return;
    h->listing = true;
    h->list_wanted = false;
    h->listed_from_ms = h->now_ms;
    devicemgr_tick(h->core, h->now_ms);
    lift_shim_run(h);
    devicemgr_runtime_listing(h->core);
    memcpy(h->snapshot, h->pods, sizeof h->snapshot);
}

/* What is there was there when it was asked for. */
static void note_listed(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && k < pod->containers_len; k++) {
            const struct lw_container *was = &h->snapshot[i].containers[k];

            if (h->snapshot[i].uid == pod->uid && was->state == LW_RUNS &&
                was->id == pod->containers[k].id)
                pod->containers[k].known = true;
        }
    }
}

void lift_list_ends(struct lift_world *h)
{
    struct devicemgr_sandbox sandboxes[LW_PODS];
    struct devicemgr_container containers[LW_PODS * LW_CONTAINERS];
    struct devicemgr_annotation annotations[LW_PODS * LW_CONTAINERS][LW_RESOURCES];
    char ids[LW_PODS][16], uids[LW_PODS][16], names[LW_PODS * LW_CONTAINERS][16];
    static const char *const OF[LW_CONTAINERS] = {"n0", "n1"};
    size_t len = 0, containers_len = 0;

    if (!h->listing)
        return;
    h->listing = false;
    lift_note(h, "the runtime is listed");
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->snapshot[i];

        if (!pod->there || !pod->sandbox)
            continue;
        snprintf(ids[len], sizeof ids[len], "s%u", pod->sandbox);
        snprintf(uids[len], sizeof uids[len], "u%u", pod->uid);
        sandboxes[len] = (struct devicemgr_sandbox){.id = ids[len],
                                                    .pod_uid = uids[len],
                                                    .pod_namespace = "ns",
                                                    .pod_name = uids[len],
                                                    .attempt = pod->sandbox_attempt,
                                                    .ready = pod->ready};
        for (size_t k = 0; k < pod->containers_len; k++) {
            const struct lw_container *container = &pod->containers[k];
            size_t at = containers_len;

            if (container->state != LW_RUNS && container->state != LW_EXITED)
                continue;
            snprintf(names[at], sizeof names[at], "k%u", container->id);
            containers[containers_len++] = (struct devicemgr_container){
                .id = names[at],
                .sandbox_id = ids[len],
                .name = OF[k],
                .attempt = container->attempt - 1,
                .running = container->state == LW_RUNS,
                .annotations = annotations[at],
                .annotations_len = annotate(container, annotations[at])};
        }
        len++;
    }
    devicemgr_runtime_listed(h->core, h->now_ms, sandboxes, len, containers, containers_len);
    if (h->listed_from_ms > h->started_ms + 10000)
        h->unlisted = false;
    note_listed(h);
    lift_shim_run(h);
}
