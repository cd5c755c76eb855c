#include "tests/sim/kubelet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/admission.h"
#include "tests/sim/check.h"
#include "tests/sim/frail.h"
#include "tests/sim/move.h"
#include "tests/sim/over.h"
#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define SYNC_MS_MIN 200
#define SYNC_MS_MAX 2000
#define STOP_MS_MAX 60000
/* Until the shim has heard of a new sandbox: by the answer, or the list after it was lost. */
#define OVER_LAG_MS 20000
/* How often there is no network for a new sandbox, for how long, and how often that is tried. */
#define NO_NETWORK_PERCENT 15
#define NO_NETWORK_FRAIL_PERCENT 50
#define NO_NETWORK_MS_MIN 5000
#define NO_NETWORK_MS_MAX 90000
#define TRY_MS_MIN 8000
#define TRY_MS_MAX 15000
/* How often a pod is admitted just before all that have not begun are deleted. */
#define UNBEGUN_PERCENT 50
/* How often a container of a pod deleted by force is looked at, to be made again. */
#define MADE_AGAIN_PERCENT 30
/* How often the stopped sandboxes of a deleted pod are left there, and how long: beyond the time in
 * which another is expected in place of a dead one. */
#define LEFT_PERCENT 10
#define LEFT_MS_MIN 100000
#define LEFT_MS_MAX 300000
/* How often it has not heard that a container runs, and makes the next. */
#define TWIN_PERCENT 1
#define TWIN_MOVED_PERCENT 4  /* where plugins are moved over */
#define TWIN_OFTEN_PERCENT 15 /* where they often are */

static const char *const NAMES[POD_CONTAINERS_MAX + 1] = {"init", "main", "side", "stranger"};

const char *container_sim_name(unsigned name)
{
    return NAMES[name];
}

unsigned container_sim_find(const char *name)
{
    unsigned found = 0;

    while (found < POD_CONTAINERS_MAX && strcmp(NAMES[found], name) != 0)
        found++;
    return found;
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

bool kubelet_surely_there(struct world *w, unsigned uid)
{
    const struct pod_sim *pod = kubelet_find_pod(w, uid);
    const struct rt_sandbox *s = runtime_ready_sandbox(w, uid);

    if (!pod || pod->deleting || (s && s->hidden))
        return false;
    return pod->sandbox_attempt == 0 || (s && pod->over_ms + OVER_LAG_MS < w->now_ms);
}

bool kubelet_contended(const struct pod_sim *pod, size_t resource)
{
    unsigned asking = 0;

    for (unsigned i = 0; i < pod->containers_len; i++)
        asking += pod->containers[i].count[resource] > 0 && pod->containers[i].ids[resource] == 0;
    return asking > 1;
}

/* ---- one step of a pod ---- */

static unsigned twin_percent(const struct world *w)
{
    if (!w->kubelet.moves)
        return TWIN_PERCENT;
    return moves_often(w) ? TWIN_OFTEN_PERCENT : TWIN_MOVED_PERCENT;
}

/* True: the next container can be looked at. */
static bool container_step(struct world *w, struct pod_sim *pod, struct pod_container *container,
                           const struct rt_sandbox *sandbox)
{
    unsigned name = (unsigned)(container - pod->containers);
    struct rt_container *newest = runtime_newest(w, sandbox->id, name);

    if (container->init && container->done)
        return true;
    if (client_find_of(w, pod->uid, name) && !(w->faults && rng_percent(&pod->rng, 3)))
        return false; /* now and then its connection broke, and the shim has not noticed yet */
    if (newest && newest->state == CONTAINER_RUNNING && !container->init && w->faults &&
        rng_percent(&pod->rng, twin_percent(w))) {
        count_add(COUNT_TWINS);
        client_create(w, pod, name, sandbox);
        return false;
    }
    if (newest && (newest->state == CONTAINER_RUNNING ||
                   (newest->state == CONTAINER_CREATED && newest->starting)))
        return !container->init;
    if (newest && newest->state == CONTAINER_CREATED) {
        newest->abandoned = true;
        if (container->decided_anew) { /* it would keep the old devices from everybody */
            runtime_remove_container(w, newest);
            return false;
        }
    }
    if (newest && newest->state == CONTAINER_EXITED && container->init) {
        container->done = true;
        return true;
    }
    if (newest && newest->state == CONTAINER_EXITED && rng_percent(&pod->rng, 30)) {
        runtime_remove_container(w, newest);
        return false;
    }
    if (w->now_ms < container->not_before_ms)
        return !container->init;
    client_create(w, pod, name, sandbox);
    return false;
}

/* An attempt that was never started, of an init container that is done by a later one, which
 * somebody has removed. */
static bool is_left_over(const struct pod_sim *pod, const struct rt_container *container)
{
    return container->state == CONTAINER_CREATED && !container->starting &&
           pod->containers[container->name].init && pod->containers[container->name].done;
}

/* Its garbage: an older attempt that does not run. */
static bool collect_garbage(struct world *w, const struct pod_sim *pod)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        struct rt_container *c = &w->runtime.containers[i];

        if (!c->id || c->uid != pod->uid || c->name >= pod->containers_len ||
            c->state == CONTAINER_RUNNING ||
            (c == runtime_newest(w, c->sandbox, c->name) && !is_left_over(pod, c)))
            continue;
        return runtime_remove_container(w, c);
    }
    return false;
}

static struct rt_sandbox *sandbox_of(struct world *w, unsigned uid, bool told)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->stop_told == told)
            return s;
    }
    return NULL;
}

static void pod_forget(struct world *w, struct pod_sim *pod)
{
    *pod = (struct pod_sim){0};
    bridge_report_later(w);
}

static bool asks_by_annotation(const struct pod_container *container)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (container->count[r] > 0 && !container->ids[r])
            return true;
    }
    return false;
}

/* A pod that was deleted by force is not stopped yet: a container of it ends, and the kubelet,
 * which has forgotten what it gave to the pod, makes it once more. */
static void make_again(struct world *w, struct pod_sim *pod)
{
    const struct rt_sandbox *s = runtime_ready_sandbox(w, pod->uid);
    unsigned name = (unsigned)rng_below(&pod->rng, pod->containers_len);
    const struct pod_container *container = &pod->containers[name];
    struct rt_container *newest = s ? runtime_newest(w, s->id, name) : NULL;

    if (!newest || s->doomed || container->token_in != s->id || asks_by_annotation(container) ||
        client_find_of(w, pod->uid, name))
        return;
    if (newest->state == CONTAINER_RUNNING)
        runtime_exit(w, newest, "ends");
    else if (newest->state == CONTAINER_EXITED)
        client_create_tokenless(w, pod, name, s);
}

static void teardown(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (w->now_ms < pod->stop_ms) {
        if (w->faults && pod->released && rng_percent(&pod->rng, MADE_AGAIN_PERCENT))
            make_again(w, pod);
        return;
    }
    if (client_find_of(w, pod->uid, POD_CONTAINERS_MAX) && rng_percent(&pod->rng, 70))
        return; /* calls under way mostly end first */
    if (left) {
        runtime_stop_sandbox(w, left, true);
        return;
    }
    if (client_find_of(w, pod->uid, POD_CONTAINERS_MAX))
        return;
    pod->released = true;
    left = sandbox_of(w, pod->uid, true);
    if (left && !pod->collect_ms)
        pod->collect_ms = w->now_ms + (w->faults && rng_percent(&pod->rng, LEFT_PERCENT)
                                           ? rng_between(&pod->rng, LEFT_MS_MIN, LEFT_MS_MAX)
                                           : 0);
    if (!left)
        pod_forget(w, pod);
    else if (w->now_ms >= pod->collect_ms && rng_percent(&pod->rng, 30))
        runtime_remove_sandbox(w, left);
}

static bool runs_in(const struct world *w, const struct rt_sandbox *sandbox)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (runtime_live(&w->runtime.containers[i]) &&
            w->runtime.containers[i].sandbox == sandbox->id)
            return true;
    }
    return false;
}

static void run_sandbox(struct world *w, struct pod_sim *pod)
{
    if (pod->forgotten)
        count_add(COUNT_CAME_BACK);
    pod->forgotten = false;
    pod->run_ms = pod->try_ms = 0;
    runtime_run_sandbox(w, pod->uid, pod->sandbox_attempt++);
}

/* Whether no sandbox can be run, or a volume is missing: in each attempt the kubelet stops the old
 * one again, first. */
static bool network_missing(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *old = over_newest(w, pod->uid);
    unsigned percent = frail_is(w) ? NO_NETWORK_FRAIL_PERCENT : NO_NETWORK_PERCENT;

    if (!pod->run_ms)
        pod->run_ms =
            w->now_ms + (rng_percent(&pod->rng, percent)
                             ? rng_between(&pod->rng, NO_NETWORK_MS_MIN, NO_NETWORK_MS_MAX)
                             : 0);
    if (!w->faults || w->now_ms >= pod->run_ms)
        return false;
    if (old && w->now_ms >= pod->try_ms) {
        pod->try_ms = w->now_ms + rng_between(&pod->rng, TRY_MS_MIN, TRY_MS_MAX);
        runtime_stop_sandbox(w, old, true);
    }
    return true;
}

/* A new sandbox; what was left of the old one is stopped first. */
static void sandbox_step(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (left && !left->kill_ms)
        left->kill_ms = w->now_ms + (runs_in(w, left) ? rng_delay_ms(&pod->rng, STOP_MS_MAX) : 0);
    if (left && w->now_ms < left->kill_ms)
        return; /* its containers have their grace first */
    if (left)
        runtime_stop_sandbox(w, left, true);
    else if (!network_missing(w, pod))
        run_sandbox(w, pod);
}

static void advance(struct world *w, struct pod_sim *pod)
{
    struct rt_sandbox *s = runtime_ready_sandbox(w, pod->uid);
    const struct rt_sandbox *old = sandbox_of(w, pod->uid, true);

    if (!s) {
        sandbox_step(w, pod);
        return;
    }
    if (old && rng_percent(&pod->rng, 20)) {
        runtime_remove_sandbox(w, old);
        return;
    }
    if (s->doomed ||
        (w->faults && rng_percent(&pod->rng, 1))) { /* its network changed: a new one is needed */
        runtime_stop_sandbox(w, s, true);
        return;
    }
    if (rng_percent(&pod->rng, 20) && collect_garbage(w, pod))
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
    pod->rng = world_draw(w, DRAW_POD_SYNC, uid, 0);
    world_after(w, &pod->rng, rng_between(&pod->rng, SYNC_MS_MIN, SYNC_MS_MAX), sync, uid, 0);
    if (!w->shim.core || w->kubelet.down || w->runtime.down || runtime_busy(w, pod->uid))
        return;
    if (pod->deleting)
        teardown(w, pod);
    else
        advance(w, pod);
}

/* ---- pods ---- */

void kubelet_add_pod(struct world *w)
{
    struct pod_sim *pod = w->kubelet.pods;

    while (pod < w->kubelet.pods + PODS_MAX && pod->uid)
        pod++;
    if (pod == w->kubelet.pods + PODS_MAX || w->kubelet.draining || w->kubelet.down)
        return;
    *pod = (struct pod_sim){.uid = ++w->kubelet.last_uid, .over_ms = w->now_ms};
    pod->rng = world_draw(w, DRAW_POD, pod->uid, 0);
    pod->containers_len = (unsigned)rng_between(&pod->rng, 1, POD_CONTAINERS_MAX);
    pod->containers[0].init = pod->containers_len > 1 && rng_percent(&pod->rng, 60);
    admission_ask(w, pod);
    bridge_file_written(w);
    bridge_report_later(w);
    world_note(w, "kubelet: pod u%u admitted, %u containers%s", pod->uid, pod->containers_len,
               pod->containers[0].init ? ", the first an init container" : "");
    world_after(w, &pod->rng, rng_delay_ms(&pod->rng, SYNC_MS_MAX), sync, pod->uid, 0);
}

void kubelet_delete_one(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_KUBELET, 0, 0);
    struct pod_sim *pod = &w->kubelet.pods[rng_below(&rng, PODS_MAX)];

    if (!pod->uid || pod->deleting)
        return;
    pod->deleting = true;
    bridge_report_later(w);
    pod->released = rng_percent(&rng, 40); /* force: its devices count as free at once */
    pod->stop_ms = w->now_ms + rng_delay_ms(&rng, STOP_MS_MAX);
    world_note(w, "kubelet: pod u%u deleted%s", pod->uid, pod->released ? " by force" : "");
}

void kubelet_delete_unbegun(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_KUBELET, 1, 0);

    if (rng_percent(&rng, UNBEGUN_PERCENT))
        kubelet_add_pod(w);
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        if (!pod->uid || pod->deleting || pod->sandbox_attempt > 0 || pod->forgotten)
            continue;
        pod->deleting = true;
        world_note(w, "kubelet: pod u%u deleted before it began", pod->uid);
    }
}

void kubelet_replace(struct world *w, unsigned uid)
{
    struct rng rng = world_draw(w, DRAW_POD_ENDS, uid, 0);
    struct pod_sim *pod = kubelet_find_pod(w, uid);

    if (!pod || pod->deleting)
        return;
    pod->deleting = pod->released = true;
    pod->stop_ms = w->now_ms + rng_between(&rng, 0, STOP_MS_MAX);
    world_note(w, "kubelet: pod u%u deleted by force, and replaced", pod->uid);
    kubelet_add_pod(w);
}

/* The container has, or is to get, a device that is gone for good. */
static bool wants_lost(const struct world *w, const struct pod_sim *pod, unsigned name, size_t r)
{
    const struct pod_container *container = &pod->containers[name];
    const struct claim *claim = claims_seek(w, pod->uid, name, r);
    unsigned ids = container->ids[r] ? container->ids[r] : claim ? claim->mask : 0;

    return container->count[r] > 0 && ids & ~w->plugins[r].devices;
}

/* It was refused for that, or since there are too few now. */
static bool is_stranded(const struct world *w, const struct pod_sim *pod, unsigned name)
{
    const struct pod_container *container = &pod->containers[name];

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        const struct plugin *p = &w->plugins[r];

        if (container->count[r] == 0)
            continue;
        if (container->reasons & REASON_UNHEALTHY && wants_lost(w, pod, name, r))
            return true;
        if (container->reasons & REASON_FEW && p->devices != p->ever)
            return true;
    }
    return false;
}

/* It is still to be made, and will be refused for that: one before it was waited for until now. */
static bool will_strand(struct world *w, const struct pod_sim *pod, unsigned name)
{
    const struct rt_sandbox *s = runtime_ready_sandbox(w, pod->uid);
    const struct rt_container *newest = s ? runtime_newest(w, s->id, name) : NULL;
    bool lost = false;

    for (size_t r = 0; r < RESOURCES_LEN; r++)
        lost = lost || wants_lost(w, pod, name, r);
    return lost && !(pod->containers[name].init && pod->containers[name].done) &&
           !(newest && newest->state == CONTAINER_RUNNING);
}

bool kubelet_replace_stranded(struct world *w)
{
    bool any = false;

    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];
        bool stranded = false;

        for (unsigned c = 0; pod->uid && c < pod->containers_len; c++)
            stranded = stranded || is_stranded(w, pod, c) || will_strand(w, pod, c);
        if (!stranded)
            continue;
        any = pod->deleting = true;
        count_add(COUNT_STRANDED);
    }
    w->kubelet.strict = true;
    return any;
}

void kubelet_rows_lost(struct world *w)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        pod->row_lost = pod->uid != 0;
        for (unsigned c = 0; c < POD_CONTAINERS_MAX; c++)
            pod->containers[c].token_in = 0;
    }
}

void kubelet_rows_rebuilt(struct world *w)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        pod->row_lost = pod->row_lost && !runtime_known(w, pod->uid);
    }
}

void kubelet_rebooted(struct world *w, bool forgotten)
{
    w->kubelet.down = true;
    for (size_t i = 0; i < PODS_MAX && forgotten; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        pod->forgotten = pod->forgotten || pod->sandbox_attempt > 0;
        pod->sandbox_attempt = 0;
    }
}

void kubelet_drain(struct world *w)
{
    w->kubelet.draining = true;
    for (size_t i = 0; i < PODS_MAX; i++)
        w->kubelet.pods[i].deleting = w->kubelet.pods[i].uid != 0;
}

bool kubelet_none_ends(const struct world *w)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        if (w->kubelet.pods[i].deleting)
            return false;
    }
    return true;
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
            if (!w->kubelet.strict && is_stranded(w, pod, c))
                break;
            if (w->kubelet.mixed && pod->containers[c].reasons & (REASON_RUNS | REASON_FEW))
                break; /* nor is any that comes after it looked at */
            if (!(pod->containers[c].init && pod->containers[c].done) &&
                !(newest && newest->state == CONTAINER_RUNNING && !pod->containers[c].init))
                return false;
        }
    }
    return true;
}

void kubelet_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_KUBELET, 0, 0);

    w->kubelet.mixed = rng_percent(&rng, 25);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->kubelet.source[r] = rng_percent(&rng, 60) ? SOURCE_TOKEN : SOURCE_ANNOTATION;
}
