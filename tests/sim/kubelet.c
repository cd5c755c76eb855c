#include "tests/sim/kubelet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/request.h"
#include "tests/sim/check.h"
#include "tests/sim/world.h"

#define SYNC_MS_MIN 200
#define SYNC_MS_MAX 2000
#define RETRY_MS_MAX 5000
#define DEADLINE_MS 120000 /* the kubelet's own */
#define DEADLINE_SHORT_MS_MAX 15000
#define STOP_MS_MAX 60000

static const char *const NAMES[POD_CONTAINERS_MAX + 1] = {"init", "main", "side", "stranger"};

const char *container_sim_name(unsigned name)
{
    return NAMES[name];
}

/* ---- tables ---- */

struct pod_sim *kubelet_find_pod(struct world *w, unsigned uid)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        if (uid && w->kubelet.pods[i].uid == uid)
            return &w->kubelet.pods[i];
    }
    return NULL;
}

struct create_sim *kubelet_find_create(struct world *w, uint64_t number)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (number && w->kubelet.creates[i].number == number)
            return &w->kubelet.creates[i];
    }
    return NULL;
}

size_t kubelet_creates_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < CREATES_SIM_MAX; i++)
        open += w->kubelet.creates[i].number && !w->kubelet.creates[i].untouched;
    return open;
}

static const struct create_sim *create_of(const struct world *w, unsigned uid, unsigned name)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *c = &w->kubelet.creates[i];

        if (c->number && c->uid == uid && (name == POD_CONTAINERS_MAX || c->name == name))
            return c;
    }
    return NULL;
}

void kubelet_disturb(struct world *w, unsigned uid)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (uid == 0 || w->kubelet.creates[i].uid == uid)
            w->kubelet.creates[i].disturbed = true;
    }
}

/* ---- CreateContainer ---- */

static void retry_later(struct world *w, unsigned uid, unsigned name, const char *why)
{
    struct pod_sim *pod = kubelet_find_pod(w, uid);

    if (!pod)
        return;
    pod->containers[name].not_before_ms = w->now_ms + rng_below(&w->rng, RETRY_MS_MAX);
    pod->containers[name].refusals++;
    snprintf(pod->containers[name].why, sizeof pod->containers[name].why, "%s", why);
}

/* The client gives it up: its deadline, or the connection. */
static void cancel(struct world *w, struct create_sim *create, const char *why)
{
    struct create_sim gone = *create;

    world_note(w, "kubelet: create %" PRIu64 " %s", gone.number, why);
    *create = (struct create_sim){0};
    retry_later(w, gone.uid, gone.name, why);
    if (gone.forwarded || gone.untouched)
        runtime_create_abandoned(w, gone.number);
    if (!gone.untouched && w->shim.core)
        devicemgr_create_cancelled(w->shim.core, shim_now_ms(w), gone.number);
    shim_run(w);
}

static void expire(struct world *w, uint64_t number, uint64_t incarnation)
{
    struct create_sim *create = kubelet_find_create(w, number);

    if (shim_lives(w, incarnation) && create)
        cancel(w, create, "over its deadline");
}

void kubelet_cancel_one(struct world *w)
{
    struct create_sim *create = &w->kubelet.creates[rng_below(&w->rng, 4)];

    if (create->number)
        cancel(w, create, "cancelled");
}

void kubelet_shim_gone(struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *create = &w->kubelet.creates[i];

        if (create->number)
            retry_later(w, create->uid, create->name, "the shim is gone");
        *create = (struct create_sim){0};
    }
}

void kubelet_runtime_gone(struct world *w)
{
    for (size_t i = 0; i < CREATES_SIM_MAX && w->shim.core; i++) {
        if (w->kubelet.creates[i].number)
            cancel(w, &w->kubelet.creates[i], "lost its connection");
    }
}

/* What a create names: texts that live as long as the call. */
struct create_texts {
    char sandbox[16], uid[16];
    struct devicemgr_annotation tokens[RESOURCES_LEN];
    struct devicemgr_annotation requests[POD_CONTAINERS_MAX];
    char request_keys[POD_CONTAINERS_MAX][64], request_values[POD_CONTAINERS_MAX][128];
    size_t tokens_len, requests_len;
};

static void fill_tokens(const struct pod_container *container, struct create_texts *texts)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct ids ids = device_sim_ids(container->ids[r]);

        if (ids.len > 0)
            texts->tokens[texts->tokens_len++] =
                (struct devicemgr_annotation){request_token_key(resource_sim_name(r)),
                                              request_token_value(resource_sim_name(r), &ids)};
        ids_fini(&ids);
    }
}

static void fill_requests(const struct pod_sim *pod, struct create_texts *texts)
{
    for (unsigned name = 0; name < pod->containers_len; name++) {
        const struct pod_container *c = &pod->containers[name];
        char *value = texts->request_values[texts->requests_len];
        size_t used = 0, size = sizeof texts->request_values[0];

        value[0] = '\0';
        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            if (c->count[r] > 0 && c->ids[r] == 0)
                used += (size_t)snprintf(value + used, size - used, "%s%s=%u", used ? ", " : "",
                                         resource_sim_name(r), c->count[r]);
        }
        if (used == 0)
            continue;
        snprintf(texts->request_keys[texts->requests_len], sizeof texts->request_keys[0],
                 REQUEST_KEY_PREFIX "%s", NAMES[name]);
        texts->requests[texts->requests_len] =
            (struct devicemgr_annotation){texts->request_keys[texts->requests_len], value};
        texts->requests_len++;
    }
}

static void texts_fini(struct create_texts *texts)
{
    for (size_t i = 0; i < texts->tokens_len; i++) {
        free((char *)texts->tokens[i].key);
        free((char *)texts->tokens[i].value);
    }
}

static bool tell_create(struct world *w, const struct pod_sim *pod, const struct create_sim *create)
{
    struct create_texts texts = {0};
    const struct rt_sandbox *sandbox = runtime_find_sandbox(w, create->sandbox);
    struct devicemgr_create request = {.sandbox_id = texts.sandbox,
                                       .sandbox_attempt = sandbox->attempt,
                                       .pod_uid = texts.uid,
                                       .pod_namespace = "ns",
                                       .pod_name = texts.uid,
                                       .container = NAMES[create->name],
                                       .attempt = create->attempt,
                                       .container_annotations = texts.tokens,
                                       .pod_annotations = texts.requests,
                                       .deadline_ms = UINT64_MAX};
    bool decided;

    snprintf(texts.sandbox, sizeof texts.sandbox, "s%u", create->sandbox);
    snprintf(texts.uid, sizeof texts.uid, "u%u", create->uid);
    fill_tokens(&pod->containers[create->name], &texts);
    fill_requests(pod, &texts);
    request.container_annotations_len = texts.tokens_len;
    request.pod_annotations_len = texts.requests_len;
    if (create->deadline_ms != UINT64_MAX)
        request.deadline_ms = create->deadline_ms - w->now_ms + shim_now_ms(w);
    decided = devicemgr_create(w->shim.core, shim_now_ms(w), create->number, &request);
    texts_fini(&texts);
    return decided;
}

/* Creates of two pods for one resource: either may drop what the other, if idle, has. */
static void disturb_rivals(struct world *w, struct create_sim *create)
{
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        struct create_sim *other = &w->kubelet.creates[i];

        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            if (other->number && other->uid != create->uid && other->count[r] && create->count[r])
                other->disturbed = create->disturbed = true;
        }
    }
}

static uint64_t pick_deadline(struct world *w)
{
    uint64_t kind = rng_below(&w->rng, 10);

    if (kind < 2)
        return UINT64_MAX;
    return w->now_ms + (kind < 6 ? DEADLINE_MS : rng_between(&w->rng, 1000, DEADLINE_SHORT_MS_MAX));
}

static struct create_sim *create_new(struct world *w, const struct pod_sim *pod, unsigned name,
                                     const struct rt_sandbox *sandbox)
{
    const struct pod_container *container = &pod->containers[name];
    const struct rt_container *newest = runtime_newest(w, sandbox->id, name);
    struct create_sim *create = w->kubelet.creates;

    while (create < w->kubelet.creates + CREATES_SIM_MAX && create->number)
        create++;
    if (create == w->kubelet.creates + CREATES_SIM_MAX)
        abort();
    *create = (struct create_sim){.number = ++w->kubelet.last_create,
                                  .uid = pod->uid,
                                  .name = name,
                                  .attempt = newest ? newest->attempt + 1 : 0,
                                  .sandbox = sandbox->id,
                                  .untouched = true,
                                  .started_ms = w->now_ms,
                                  .deadline_ms = pick_deadline(w)};
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        create->count[r] = container->count[r];
        create->ids[r] = container->ids[r];
        create->registered[r] = w->plugins[r].registered;
        create->untouched = create->untouched && container->count[r] == 0;
        if (container->count[r] > 0)
            create->serial[r] = check_serial_in_force(w, pod->uid, name, r, container->ids[r]);
    }
    return create;
}

static void create(struct world *w, const struct pod_sim *pod, unsigned name,
                   const struct rt_sandbox *sandbox)
{
    struct create_sim *c = create_new(w, pod, name, sandbox);
    struct rt_container made = {
        .sandbox = c->sandbox, .uid = c->uid, .name = name, .attempt = c->attempt};
    bool untouched = c->untouched, decided;

    world_note(w,
               "kubelet: create %" PRIu64 ": %s of u%u, attempt %u in s%u, ids %x %x %x, %u %u %u",
               c->number, NAMES[name], c->uid, c->attempt, c->sandbox, c->ids[0], c->ids[1],
               c->ids[2], c->count[0], c->count[1], c->count[2]);
    disturb_rivals(w, c);
    if (c->deadline_ms != UINT64_MAX)
        world_after(w, c->deadline_ms - w->now_ms, expire, c->number, w->shim.incarnation);
    decided = tell_create(w, pod, c);
    check_that(w, decided != untouched, "a create that names devices is decided, and no other is");
    if (untouched)
        runtime_create(w, c->number, &made);
    shim_run(w);
}

/* The runtime refused it: what the shim had chosen for it is free again. */
static void give_back(struct world *w, const struct create_sim *create)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        for (size_t i = 0; i < DEVICES_MAX; i++) {
            if (create->taken[r] & 1u << i && create->ids[r] == 0)
                w->kubelet.owner[r][i] = 0;
        }
    }
}

static void forward(struct world *w, struct create_sim *create,
                    const V1beta1__ContainerAllocateResponse *options)
{
    struct rt_container made = {.sandbox = create->sandbox,
                                .uid = create->uid,
                                .name = create->name,
                                .attempt = create->attempt,
                                .through_shim = true};

    check_forward(w, create, options, &made);
    create->forwarded = true;
    w->kubelet.forwarded++;
    if (w->faults && rng_percent(&w->rng, 1)) { /* the relay has no memory for it */
        uint64_t number = create->number;

        retry_later(w, create->uid, create->name, "out of memory");
        give_back(w, create);
        *create = (struct create_sim){0};
        devicemgr_create_answered(w->shim.core, shim_now_ms(w), number, NULL);
        return;
    }
    runtime_create(w, create->number, &made);
}

void kubelet_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict)
{
    struct create_sim *create = kubelet_find_create(w, number);

    check_that(w, create && !create->untouched && !create->forwarded,
               "one verdict per create, none after it was cancelled (%" PRIu64 ")", number);
    if (!create)
        return;
    world_note(w, "shim: verdict on create %" PRIu64 ": %d %s", number, verdict->code,
               verdict->message ? verdict->message : "forward");
    if (verdict->code == 0) {
        forward(w, create, verdict->options);
        return;
    }
    w->kubelet.refused++;
    check_refusal(w, create, verdict->code, verdict->message);
    retry_later(w, create->uid, create->name, verdict->message);
    *create = (struct create_sim){0};
}

void kubelet_answered(struct world *w, uint64_t number, unsigned container)
{
    struct create_sim *create = kubelet_find_create(w, number);
    char id[16];

    if (!create)
        return;
    snprintf(id, sizeof id, "c%u", container);
    if (container)
        runtime_start(w, container);
    else
        retry_later(w, create->uid, create->name, "the runtime refused");
    if (!container)
        give_back(w, create);
    if (!create->untouched)
        devicemgr_create_answered(w->shim.core, shim_now_ms(w), number, container ? id : NULL);
    *create = (struct create_sim){0};
}

/* ---- one step of a pod ---- */

/* True: the next container can be looked at. */
static bool container_step(struct world *w, const struct pod_sim *pod,
                           struct pod_container *container, const struct rt_sandbox *sandbox)
{
    unsigned name = (unsigned)(container - pod->containers);
    struct rt_container *newest = runtime_newest(w, sandbox->id, name);

    if (container->init && container->done)
        return true;
    if (create_of(w, pod->uid, name))
        return false;
    if (newest && (newest->state == CONTAINER_RUNNING ||
                   (newest->state == CONTAINER_CREATED && newest->starting)))
        return !container->init;
    if (newest && newest->state == CONTAINER_CREATED)
        newest->abandoned = true;
    if (newest && newest->state == CONTAINER_EXITED && container->init) {
        container->done = true;
        return true;
    }
    if (newest && newest->state == CONTAINER_EXITED && rng_percent(&w->rng, 30)) {
        runtime_remove_container(w, newest);
        return false;
    }
    if (w->now_ms < container->not_before_ms)
        return !container->init;
    create(w, pod, name, sandbox);
    return false;
}

/* Its garbage: an older attempt that does not run. */
static bool collect_garbage(struct world *w, const struct pod_sim *pod)
{
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        struct rt_container *c = &w->runtime.containers[i];

        if (!c->id || c->uid != pod->uid || c->name >= pod->containers_len ||
            c->state == CONTAINER_RUNNING || c == runtime_newest(w, c->sandbox, c->name))
            continue;
        return runtime_remove_container(w, c);
    }
    return false;
}

static struct rt_sandbox *sandbox_of(struct world *w, unsigned uid, bool told)
{
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->stop_told == told)
            return s;
    }
    return NULL;
}

static void teardown(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (w->now_ms < pod->stop_ms)
        return;
    if (create_of(w, pod->uid, POD_CONTAINERS_MAX) && rng_percent(&w->rng, 70))
        return; /* calls under way mostly end first */
    if (left) {
        runtime_stop_sandbox(w, left);
        return;
    }
    if (create_of(w, pod->uid, POD_CONTAINERS_MAX))
        return;
    pod->released = true;
    left = sandbox_of(w, pod->uid, true);
    if (!left)
        *pod = (struct pod_sim){0};
    else if (rng_percent(&w->rng, 30))
        runtime_remove_sandbox(w, left);
}

/* A new sandbox; what was left of the old one is stopped first. */
static void sandbox_step(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (left)
        runtime_stop_sandbox(w, left);
    else
        runtime_run_sandbox(w, pod->uid, pod->sandbox_attempt++);
}

static void advance(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *s = runtime_ready_sandbox(w, pod->uid);
    const struct rt_sandbox *old = sandbox_of(w, pod->uid, true);

    if (!s) {
        sandbox_step(w, pod);
        return;
    }
    if (old && rng_percent(&w->rng, 20)) {
        runtime_remove_sandbox(w, old);
        return;
    }
    if (s->doomed ||
        (w->faults && rng_percent(&w->rng, 1))) { /* its network changed: a new one is needed */
        runtime_stop_sandbox(w, s);
        return;
    }
    if (rng_percent(&w->rng, 20) && collect_garbage(w, pod))
        return;
    if (pod->sandbox != s->id) {
        pod->sandbox = s->id;
        for (unsigned i = 0; i < pod->containers_len; i++)
            pod->containers[i].done = false;
    }
    for (unsigned i = 0; i < pod->containers_len; i++) {
        if (!w->shim.core || !container_step(w, pod, &pod->containers[i], s))
            return;
    }
}

static void sync(struct world *w, uint64_t uid, uint64_t unused)
{
    struct pod_sim *pod = kubelet_find_pod(w, (unsigned)uid);

    (void)unused;
    if (!pod)
        return;
    world_after(w, rng_between(&w->rng, SYNC_MS_MIN, SYNC_MS_MAX), sync, uid, 0);
    if (!w->shim.core || w->runtime.down || runtime_busy(w, pod->uid))
        return;
    if (pod->deleting)
        teardown(w, pod);
    else
        advance(w, pod);
}

/* ---- pods ---- */

/* What the kubelet thinks is given away. */
static unsigned allocated(const struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; c < pod->containers_len && !pod->released; c++)
            mask |= pod->containers[c].ids[resource];
    }
    return mask;
}

/* What annotations ask for at most. */
static unsigned requested(const struct world *w, size_t resource)
{
    unsigned count = 0;

    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        for (unsigned c = 0; c < pod->containers_len && !pod->released; c++)
            count += pod->containers[c].count[resource];
    }
    return count;
}

/* kubelet-facts §3: devices of init containers are used again by later ones first. */
static void give_ids(struct world *w, struct pod_container *container, size_t resource,
                     unsigned *reusable)
{
    unsigned free_ids = w->plugins[resource].devices & ~allocated(w, resource);
    unsigned start_at = (unsigned)rng_below(&w->rng, DEVICES_MAX);
    unsigned missing = container->count[resource], mask = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned from = pass == 0 ? *reusable : free_ids;

        for (unsigned i = 0; i < DEVICES_MAX && missing > 0; i++) {
            unsigned bit = 1u << (start_at + i) % DEVICES_MAX;

            if (from & bit & ~mask) {
                mask |= bit;
                missing--;
            }
        }
    }
    if (missing > 0) {
        container->count[resource] = 0;
        return;
    }
    container->ids[resource] = mask;
    *reusable = container->init ? *reusable | mask : *reusable & ~mask;
}

/* By annotation at most one app container of a pod asks for a resource: the shim hands devices of
 * any container that does not run on to others of its pod, since the CRI does not tell which are
 * init containers; two app containers can lock each other out. */
static bool asks_already(const struct pod_sim *pod, unsigned name, size_t resource)
{
    for (unsigned i = 0; i < name; i++) {
        if (pod->containers[i].count[resource] > 0 && !pod->containers[i].init)
            return true;
    }
    return false;
}

static void ask_devices(struct world *w, struct pod_sim *pod, size_t resource)
{
    bool annotation = w->kubelet.mixed ? rng_percent(&w->rng, 50)
                                       : w->kubelet.source[resource] == SOURCE_ANNOTATION;
    unsigned reusable = 0;

    for (unsigned i = 0; i < pod->containers_len; i++) {
        struct pod_container *c = &pod->containers[i];
        unsigned count = (unsigned)rng_between(&w->rng, 1, 2);

        if (!rng_percent(&w->rng, 45))
            continue;
        if (annotation &&
            (asks_already(pod, i, resource) ||
             requested(w, resource) + count > device_sim_count(w->plugins[resource].devices)))
            continue;
        c->count[resource] = count;
        if (!annotation)
            give_ids(w, c, resource, &reusable);
    }
}

void kubelet_add_pod(struct world *w)
{
    struct pod_sim *pod = w->kubelet.pods;

    while (pod < w->kubelet.pods + PODS_MAX && pod->uid)
        pod++;
    if (pod == w->kubelet.pods + PODS_MAX || w->kubelet.draining)
        return;
    *pod = (struct pod_sim){.uid = ++w->kubelet.last_uid, .over_ms = w->now_ms};
    pod->containers_len = (unsigned)rng_between(&w->rng, 1, POD_CONTAINERS_MAX);
    pod->containers[0].init = pod->containers_len > 1 && rng_percent(&w->rng, 60);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        ask_devices(w, pod, r);
    world_note(w, "kubelet: pod u%u admitted, %u containers%s", pod->uid, pod->containers_len,
               pod->containers[0].init ? ", the first an init container" : "");
    world_after(w, rng_delay_ms(&w->rng, SYNC_MS_MAX), sync, pod->uid, 0);
}

void kubelet_delete_one(struct world *w)
{
    struct pod_sim *pod = &w->kubelet.pods[rng_below(&w->rng, PODS_MAX)];

    if (!pod->uid || pod->deleting)
        return;
    pod->deleting = true;
    pod->released = rng_percent(&w->rng, 40); /* force: its devices count as free at once */
    pod->stop_ms = w->now_ms + rng_delay_ms(&w->rng, STOP_MS_MAX);
    world_note(w, "kubelet: pod u%u deleted%s", pod->uid, pod->released ? " by force" : "");
}

void kubelet_drain(struct world *w)
{
    w->kubelet.draining = true;
    for (size_t i = 0; i < PODS_MAX; i++)
        w->kubelet.pods[i].deleting = w->kubelet.pods[i].uid != 0;
}

bool kubelet_empty(const struct world *w)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        if (w->kubelet.pods[i].uid)
            return false;
    }
    return true;
}

bool kubelet_content(struct world *w, char *why, size_t why_bytes)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];
        const struct rt_sandbox *s = pod->uid ? runtime_ready_sandbox(w, pod->uid) : NULL;

        if (!pod->uid)
            continue;
        snprintf(why, why_bytes, "u%u %s", pod->uid,
                 pod->deleting ? "is still being deleted" : "has no sandbox");
        if (pod->deleting || !s)
            return false;
        for (unsigned c = 0; c < pod->containers_len; c++) {
            const struct rt_container *newest = runtime_newest(w, s->id, c);

            snprintf(why, why_bytes, "%s of u%u does not run, %u refusals, the last: %s", NAMES[c],
                     pod->uid, pod->containers[c].refusals, pod->containers[c].why);
            if (!(pod->containers[c].init && pod->containers[c].done) &&
                !(newest && newest->state == CONTAINER_RUNNING && !pod->containers[c].init))
                return false;
        }
    }
    return true;
}

void kubelet_init(struct world *w)
{
    w->kubelet.mixed = rng_percent(&w->rng, 25);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->kubelet.source[r] = rng_percent(&w->rng, 60) ? SOURCE_TOKEN : SOURCE_ANNOTATION;
}
