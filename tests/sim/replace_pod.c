/*
 * Pods of the world of replaced devices, their containers, and what the runtime says of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/token.h"
#include "tests/sim/replace_world.h"
#include "tests/sim/world.h"

/* The runtime makes a container within this. */
#define COMES_MS_MAX 3000
#define RETRY_MS 3000

bool replace_container_lives(const struct rw_container *container)
{
    return container->state == RW_COMES || container->state == RW_RUNS;
}

void replace_container_name(size_t container, char name[8])
{
    snprintf(name, 8, "%s", container == 0 ? "init" : "main");
}

/* ---- pods ---- */

void replace_pod_begins(struct replace_world *r, struct rw_pod *pod)
{
    char id[16], uid[16];
    const struct devicemgr_sandbox sandbox = {
        .id = id, .pod_uid = uid, .pod_namespace = "ns", .pod_name = uid, .ready = true};

    snprintf(id, sizeof id, "s%u", pod->uid);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    devicemgr_sandbox_ran(r->core, r->now_ms, &sandbox);
    replace_shim_run(r);
}

/* With its sandbox; the runtime says so to who waits for it, or nothing. */
static void end_container(struct replace_world *r, struct rw_container *container)
{
    uint64_t create = container->create;

    container->state = RW_NOTHING;
    container->create = 0;
    if (!create)
        return;
    if (rng_percent(&r->rng, 50))
        devicemgr_create_answered(r->core, r->now_ms, create, NULL);
    else
        devicemgr_create_cancelled(r->core, r->now_ms, create);
    replace_shim_run(r);
}

void replace_pod_ends(struct replace_world *r, struct rw_pod *pod)
{
    char id[16];

    if (!pod->there || pod->over || pod->in_flight)
        return;
    snprintf(id, sizeof id, "s%u", pod->uid);
    replace_note(r, "u%u ends", pod->uid);
    devicemgr_sandbox_stopping(r->core, r->now_ms, id);
    replace_shim_run(r);
    for (size_t k = 0; k < RW_CONTAINERS; k++)
        end_container(r, &pod->containers[k]);
    pod->over = true;
    r->ended |= r->runtime_listed ? 0 : pod->given;
    devicemgr_sandbox_stopped(r->core, r->now_ms, id);
    replace_shim_run(r);
    devicemgr_sandbox_removed(r->core, r->now_ms, id);
    pod->there = pod->in_books;
    replace_shim_run(r);
}

/* ---- creates ---- */

/* Of a resource's key, and what is behind `prefix` for it. */
static char *value_of(unsigned set)
{
    const char *ids[RW_DEVICES];
    size_t len = 0;

    for (size_t i = 0; i < RW_DEVICES; i++) {
        if (set >> i & 1)
            ids[len++] = replace_id(i);
    }
    return token_value(RW_RESOURCE, ids, len);
}

/* The annotations of a pod that asks by them. */
struct wants {
    char keys[RW_CONTAINERS][64], value[64];
    struct devicemgr_annotation v[RW_CONTAINERS];
};

static size_t fill_wants(const struct rw_pod *pod, struct wants *wants)
{
    snprintf(wants->value, sizeof wants->value, RW_RESOURCE "=%u", pod->want);
    for (size_t k = 0; k < RW_CONTAINERS; k++) {
        char name[8];

        replace_container_name(k, name);
        snprintf(wants->keys[k], sizeof wants->keys[k], TOKEN_KEY_PREFIX "%s", name);
        wants->v[k] = (struct devicemgr_annotation){wants->keys[k], wants->value};
    }
    return pod->token ? 0 : RW_CONTAINERS;
}

static void ask(struct replace_world *r, struct rw_pod *pod, struct rw_container *container)
{
    char sandbox[16], uid[16], name[8];
    char *token = token_key(RW_RESOURCE), *value = value_of(pod->given);
    const struct devicemgr_annotation told = {token, value};
    struct wants wants;
    const struct devicemgr_create request = {.sandbox_id = sandbox,
                                             .pod_uid = uid,
                                             .pod_namespace = "ns",
                                             .pod_name = uid,
                                             .container = name,
                                             .attempt = container->attempt,
                                             .container_annotations = &told,
                                             .container_annotations_len = pod->token,
                                             .pod_annotations = wants.v,
                                             .pod_annotations_len = fill_wants(pod, &wants),
                                             .deadline_ms = UINT64_MAX};

    replace_container_name(pod->at, name);
    snprintf(sandbox, sizeof sandbox, "s%u", pod->uid);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    container->state = RW_ASKED;
    container->known = container->called = false;
    container->id = ++r->last_container;
    container->create = ++r->number;
    container->asked_ms = r->now_ms;
    if (container->ended_ms == 0)
        container->ended_ms = r->now_ms;
    replace_note(r, "%s of %s is asked for, %u", name, uid, (unsigned)container->create);
    check_that(r->w, devicemgr_create(r->core, r->now_ms, container->create, &request),
               "a container that is to have devices is looked at");
    free(token);
    free(value);
    replace_shim_run(r);
}

void replace_pod_asks(struct replace_world *r, struct rw_pod *pod)
{
    struct rw_container *container = &pod->containers[pod->at];

    if (!pod->there || pod->over || pod->in_flight || r->now_ms < container->retry_ms)
        return;
    if (pod->at == 0 && container->state == RW_EXITED)
        container = &pod->containers[++pod->at];
    if (container->state == RW_NOTHING || container->state == RW_EXITED)
        ask(r, pod, container);
}

void replace_pod_cancels(struct replace_world *r, struct rw_pod *pod)
{
    struct rw_container *container = &pod->containers[pod->at];

    if (!pod->there || container->state != RW_ASKED)
        return;
    replace_note(r, "u%u is asked for no more", pod->uid);
    container->state = RW_NOTHING;
    container->unsure = replace_judge_unsure(pod, container);
    devicemgr_create_cancelled(r->core, r->now_ms, container->create);
    container->create = 0;
    replace_shim_run(r);
}

static struct rw_container *find_create(struct replace_world *r, uint64_t create,
                                        struct rw_pod **pod)
{
    for (*pod = r->pods; *pod < r->pods + RW_PODS; ++*pod) {
        for (size_t k = 0; k < RW_CONTAINERS; k++) {
            if ((*pod)->there && (*pod)->containers[k].create == create)
                return &(*pod)->containers[k];
        }
    }
    return NULL;
}

/* What it is made with: its options, and what is written on it. */
static void take_options(const struct rw_pod *pod, struct rw_container *container,
                         const V1beta1__ContainerAllocateResponse *options)
{
    const size_t asked_len = strlen(TOKEN_ASKED_PREFIX);

    container->has = container->says_asked = 0;
    container->says = pod->given;
    for (size_t i = 0; options && i < options->n_envs; i++)
        container->has |= replace_named(options->envs[i]->value);
    for (size_t i = 0; options && i < options->n_cdi_devices; i++)
        container->has |= replace_named(options->cdi_devices[i]->name);
    for (size_t i = 0; options && i < options->n_annotations; i++) {
        const char *key = options->annotations[i]->key;
        unsigned named = replace_named(options->annotations[i]->value);

        if (strncmp(key, TOKEN_ASKED_PREFIX, asked_len) == 0)
            container->says_asked = named;
        else
            container->says = named;
    }
}

void replace_verdict(struct replace_world *r, uint64_t create,
                     const struct devicemgr_verdict *verdict)
{
    struct rw_pod *pod;
    struct rw_container *container = find_create(r, create, &pod);

    check_that(r->w, container, "a create that has a verdict was asked for");
    if (!container)
        return;
    replace_cdi_judges(r, verdict);
    if (verdict->code != 0) {
        replace_note(r, "u%u is refused: %d %s", pod->uid, verdict->code, verdict->message);
        replace_judge_refused(r, pod, container, verdict->message);
        container->state = RW_NOTHING;
        container->create = 0;
        container->unsure = replace_judge_unsure(pod, container);
        container->retry_ms = r->now_ms + RETRY_MS;
        return;
    }
    take_options(pod, container, verdict->options);
    replace_note(r, "u%u goes on with %02x", pod->uid, container->has);
    container->state = RW_COMES;
    container->known = true;
    container->comes_ms = r->now_ms + rng_delay_ms(&r->rng, COMES_MS_MAX);
    replace_judge_forward(r, pod, container);
    container->had = container->has;
    container->lost = container->unsure = false;
}

uint64_t replace_pods_next_ms(const struct replace_world *r)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; r->pods[i].there && k < RW_CONTAINERS; k++) {
            const struct rw_container *container = &r->pods[i].containers[k];

            if (container->state == RW_COMES && container->comes_ms < next_ms)
                next_ms = container->comes_ms;
        }
    }
    return next_ms;
}

/* What the shim chose is given up if it is not made. What is not known of it stays so. */
static void is_made(struct replace_world *r, struct rw_pod *pod, struct rw_container *container)
{
    bool fails = !r->calm && rng_percent(&r->rng, 8);
    uint64_t create = container->create;
    char id[16];

    container->state = fails ? RW_NOTHING : RW_RUNS;
    container->known = container->known && !fails;
    container->create = 0;
    container->attempt += !fails;
    container->unsure = fails ? !pod->token : container->unsure;
    replace_note(r, "k%u of u%u %s", container->id, pod->uid, fails ? "fails" : "runs");
    if (!create)
        return; /* whoever asked for it is gone */
    snprintf(id, sizeof id, "k%u", container->id);
    devicemgr_create_answered(r->core, r->now_ms, create, fails ? NULL : id);
    replace_shim_run(r);
}

void replace_pods_due(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        struct rw_pod *pod = &r->pods[i];

        for (size_t k = 0; pod->there && k < RW_CONTAINERS && !*r->w->broken; k++) {
            if (pod->containers[k].state == RW_COMES && pod->containers[k].comes_ms <= r->now_ms)
                is_made(r, pod, &pod->containers[k]);
        }
    }
}

/* What the runtime has comes, or is lost. */
void replace_pods_shim_ended(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; k < RW_CONTAINERS; k++) {
            struct rw_container *container = &r->pods[i].containers[k];

            container->create = 0;
            if (container->state == RW_ASKED)
                container->unsure = replace_judge_unsure(&r->pods[i], container);
            if (container->state == RW_ASKED ||
                (container->state == RW_COMES && rng_percent(&r->rng, 40)))
                container->state = RW_NOTHING;
        }
    }
}

/* What no row says is not known any more, until the runtime is listed. */
void replace_pods_shim_started(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        struct rw_pod *pod = &r->pods[i];

        pod->read = false;
        for (size_t k = 0; k < RW_CONTAINERS; k++) {
            bool known = pod->there && replace_shim_has_row(r, pod, k);

            pod->containers[k].known = known;
            if (known)
                continue;
            pod->containers[k].had = pod->given;
            pod->containers[k].unsure = replace_container_lives(&pod->containers[k]);
        }
    }
}

/* ---- what the runtime says ---- */

void replace_pod_exits(struct replace_world *r, struct rw_pod *pod, bool told)
{
    struct rw_container *container = &pod->containers[pod->at];
    char id[16];

    if (!pod->there || container->state != RW_RUNS)
        return;
    snprintf(id, sizeof id, "k%u", container->id);
    replace_note(r, "%s of u%u exits%s", id, pod->uid, told ? "" : ", untold");
    container->state = RW_EXITED;
    container->retry_ms = container->ended_ms = r->now_ms;
    r->list_wanted = true;
    if (!told)
        return;
    devicemgr_container_removed(r->core, r->now_ms, id);
    replace_shim_run(r);
}

void replace_check(struct replace_world *r, uint64_t check, const char *container_id)
{
    size_t slot = 0;

    while (slot < RW_CHECKS && r->checks[slot])
        slot++;
    if (slot == RW_CHECKS)
        abort();
    r->checks[slot] = check;
    r->check_ids[slot] = (unsigned)strtoul(container_id + 1, NULL, 10);
}

static bool runs(const struct replace_world *r, unsigned id)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; r->pods[i].there && k < RW_CONTAINERS; k++) {
            if (r->pods[i].containers[k].id == id)
                return r->pods[i].containers[k].state == RW_RUNS;
        }
    }
    return false;
}

void replace_checks_answered(struct replace_world *r)
{
    for (size_t i = 0; i < RW_CHECKS && !*r->w->broken; i++) {
        uint64_t check = r->checks[i];

        if (!check)
            continue;
        r->checks[i] = 0;
        devicemgr_container_checked(r->core, r->now_ms, check,
                                    runs(r, r->check_ids[i]) ? DEVICEMGR_RUNS : DEVICEMGR_GONE);
        replace_shim_run(r);
    }
}

/* What runs is what the shim must know of again. */
static void note_listed(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; r->pods[i].there && k < RW_CONTAINERS; k++) {
            const struct rw_container *was = &r->snapshot[i].containers[k];
            struct rw_container *is = &r->pods[i].containers[k];

            if (was->id != is->id || was->state != RW_RUNS || is->state != RW_RUNS)
                continue;
            is->known = true;
            is->unsure = false;
            is->had = is->has;
        }
    }
}

void replace_list_begins(struct replace_world *r)
{
    if (r->listing)
        return;
    r->listing = true;
    r->list_wanted = false;
    r->listed_from_ms = r->now_ms;
    devicemgr_runtime_listing(r->core);
    memcpy(r->snapshot, r->pods, sizeof r->snapshot);
}

/* As it was when it was asked for. */
void replace_list_ends(struct replace_world *r)
{
    struct devicemgr_sandbox sandboxes[RW_PODS];
    struct devicemgr_container containers[RW_PODS * RW_CONTAINERS];
    struct devicemgr_annotation notes[RW_PODS * RW_CONTAINERS][2];
    struct wants wants[RW_PODS];
    char ids[RW_PODS][16], uids[RW_PODS][16], names[RW_PODS * RW_CONTAINERS][2][16];
    char *key = token_key(RW_RESOURCE), asked_key[128];
    size_t len = 0, at = 0;

    snprintf(asked_key, sizeof asked_key, TOKEN_ASKED_PREFIX "%s", key);
    for (size_t i = 0; r->listing && i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->snapshot[i];

        if (!pod->there || pod->over || pod->in_flight)
            continue;
        snprintf(ids[len], sizeof ids[len], "s%u", pod->uid);
        snprintf(uids[len], sizeof uids[len], "u%u", pod->uid);
        sandboxes[len] =
            (struct devicemgr_sandbox){.id = ids[len],
                                       .pod_uid = uids[len],
                                       .pod_namespace = "ns",
                                       .pod_name = uids[len],
                                       .ready = true,
                                       .annotations = wants[len].v,
                                       .annotations_len = fill_wants(pod, &wants[len])};
        for (size_t k = 0; k < RW_CONTAINERS; k++) {
            const struct rw_container *container = &pod->containers[k];

            if (container->state != RW_RUNS && container->state != RW_EXITED)
                continue;
            snprintf(names[at][0], sizeof names[at][0], "k%u", container->id);
            replace_container_name(k, names[at][1]);
            notes[at][0] = (struct devicemgr_annotation){key, value_of(container->says)};
            notes[at][1] =
                (struct devicemgr_annotation){asked_key, value_of(container->says_asked)};
            containers[at] =
                (struct devicemgr_container){.id = names[at][0],
                                             .sandbox_id = ids[len],
                                             .name = names[at][1],
                                             .attempt = container->attempt - 1,
                                             .running = container->state == RW_RUNS,
                                             .annotations = notes[at],
                                             .annotations_len = container->says_asked ? 2 : 1};
            at++;
        }
        len++;
    }
    if (r->listing) {
        replace_note(r, "the runtime is listed");
        devicemgr_runtime_listed(r->core, r->now_ms, sandboxes, len, containers, at);
        note_listed(r);
        r->runtime_listed = true;
        r->ended = 0;
        r->unlisted = r->unlisted && r->listed_from_ms <= r->started_ms + 10000;
    }
    for (size_t i = 0; i < at; i++) {
        free((char *)notes[i][0].value);
        free((char *)notes[i][1].value);
    }
    free(key);
    r->listing = false;
    replace_shim_run(r);
}
