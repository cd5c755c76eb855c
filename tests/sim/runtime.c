#include "tests/sim/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dra.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define START_MS_MAX 500
#define RUN_MS_MAX 60000
#define DOWN_MS_MAX 5000
#define FLICKER_MS_MAX 20000
#define LEFT_PERCENT 10
#define STALE_WORLDS 4 /* in one of so many it leaves what was created only */

/* ---- what there is ---- */

bool runtime_runs(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].uid == uid && runtime_live(&w->runtime.containers[i]))
            return true;
    }
    return false;
}

bool runtime_runs_bare(const struct world *w, const unsigned *ids)
{
    for (size_t i = 0; i < w->runtime.containers_end * RESOURCES_LEN; i++) {
        const struct rt_container *c = &w->runtime.containers[i / RESOURCES_LEN];
        size_t r = i % RESOURCES_LEN;

        if (runtime_live(c) && c->known[r] && c->bare[r] & ids[r])
            return true;
    }
    return false;
}

bool runtime_known(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        if (w->runtime.sandboxes[i].id && w->runtime.sandboxes[i].uid == uid)
            return true;
    }
    return false;
}

static void note_end(struct world *w, unsigned uid)
{
    w->runtime.ended_ms[uid % ENDED_MAX] = w->now_ms;
}

uint64_t runtime_ended_ms(const struct world *w, unsigned uid)
{
    return w->runtime.ended_ms[uid % ENDED_MAX];
}

void runtime_note_bare(struct world *w, unsigned uid, unsigned name, const unsigned *ids)
{
    struct bare_create *bare = &w->runtime.bares[w->runtime.bares_len++ % BARES_MAX];

    *bare = (struct bare_create){.uid = uid, .name = name, .sent_ms = w->now_ms};
    memcpy(bare->ids, ids, sizeof(bare->ids));
}

bool runtime_may_be_started(const struct world *w, const struct rt_container *c)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        const struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->id == c->sandbox)
            return c->stale && (s->stopped_in != w->shim.incarnation || s->open_ms > 0 ||
                                !lister_heard_since(w, runtime_ended_ms(w, c->uid) + OUTCOME_MS));
    }
    return false;
}

bool runtime_may_start_one(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (c->id && c->uid == uid && runtime_may_be_started(w, c))
            return true;
    }
    return false;
}

struct rt_sandbox *runtime_find_sandbox(struct world *w, unsigned id)
{
    for (size_t i = 0; id && i < w->runtime.sandboxes_end; i++) {
        if (w->runtime.sandboxes[i].id == id)
            return &w->runtime.sandboxes[i];
    }
    return NULL;
}

struct rt_container *runtime_find_container(struct world *w, unsigned id)
{
    for (size_t i = 0; id && i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].id == id)
            return &w->runtime.containers[i];
    }
    return NULL;
}

struct rt_sandbox *runtime_ready_sandbox(struct world *w, unsigned uid)
{
    struct rt_sandbox *found = NULL;

    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->ready && (!found || s->attempt > found->attempt))
            found = s;
    }
    return found;
}

struct rt_container *runtime_newest(struct world *w, unsigned sandbox, unsigned name)
{
    struct rt_container *found = NULL;

    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        struct rt_container *c = &w->runtime.containers[i];

        if (c->id && c->sandbox == sandbox && c->name == name &&
            (!found || c->attempt > found->attempt))
            found = c;
    }
    return found;
}

struct rt_sandbox *runtime_add_sandbox(struct world *w, unsigned uid, unsigned attempt)
{
    struct rt_sandbox *s = w->runtime.sandboxes;

    while (s < w->runtime.sandboxes + SANDBOXES_MAX && s->id)
        s++;
    if (s == w->runtime.sandboxes + SANDBOXES_MAX)
        abort(); /* the world is too small for its seed */
    if (s == w->runtime.sandboxes + w->runtime.sandboxes_end)
        w->runtime.sandboxes_end++;
    *s = (struct rt_sandbox){
        .id = ++w->runtime.last_id, .uid = uid, .attempt = attempt, .ready = true};
    lister_event(w, LISTER_CREATED, s->id, true);
    return s;
}

struct rt_container *runtime_add_container(struct world *w, const struct rt_container *made)
{
    struct rt_container *c = w->runtime.containers;

    while (c < w->runtime.containers + CONTAINERS_MAX && c->id)
        c++;
    if (c == w->runtime.containers + CONTAINERS_MAX)
        abort();
    if (c == w->runtime.containers + w->runtime.containers_end)
        w->runtime.containers_end++;
    *c = *made;
    c->id = ++w->runtime.last_id;
    c->state = CONTAINER_CREATED;
    c->made_ms = w->now_ms;
    lister_event(w, LISTER_CREATED, c->id, false);
    return c;
}

void runtime_exit(struct world *w, struct rt_container *c, const char *how)
{
    if (!runtime_live(c))
        return;
    c->state = CONTAINER_EXITED;
    note_end(w, c->uid);
    world_note(w, "runtime: c%u (%s of u%u) %s", c->id, container_sim_name(c->name), c->uid, how);
    lister_event(w, LISTER_ENDED, c->id, false);
}

void runtime_drop_container(struct world *w, struct rt_container *c)
{
    lister_event(w, LISTER_ENDED, c->id, false);
    note_end(w, c->uid);
    *c = (struct rt_container){0};
}

/* containerd leaves a container that was created only as it is, whatever ends its sandbox. */
static void end_with_sandbox(struct world *w, struct rt_container *c)
{
    if (c->state == CONTAINER_CREATED && w->runtime.leaves_created) {
        c->state = CONTAINER_EXITED;
        c->stale = true;
        note_end(w, c->uid);
        world_note(w, "runtime: c%u (%s of u%u) is never started", c->id,
                   container_sim_name(c->name), c->uid);
        count_add(COUNT_NEVER_STARTED);
    } else {
        runtime_exit(w, c, "dies with its sandbox");
    }
}

void runtime_end_sandbox(struct world *w, struct rt_sandbox *s)
{
    note_end(w, s->uid);
    claims_sandbox_ends(w, s->uid, s->dead_told);
    s->ready = false;
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].id && w->runtime.containers[i].sandbox == s->id)
            end_with_sandbox(w, &w->runtime.containers[i]);
    }
    lister_event(w, LISTER_ENDED, s->id, true);
}

void runtime_drop_sandbox(struct world *w, struct rt_sandbox *s)
{
    runtime_end_sandbox(w, s);
    claims_forget_all(w, s->uid, RESOURCES_LEN);
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].sandbox == s->id)
            runtime_drop_container(w, &w->runtime.containers[i]);
    }
    lister_event(w, LISTER_ENDED, s->id, true);
    *s = (struct rt_sandbox){0};
}

/* ---- what runs ---- */

static void exit_later(struct world *w, uint64_t container, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)container);

    (void)unused;
    if (c)
        runtime_exit(w, c, "exits");
}

static void start(struct world *w, uint64_t container, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_CONTAINER_RUNS, container, 0);
    struct rt_container *c = runtime_find_container(w, (unsigned)container);
    const struct pod_sim *pod = c ? kubelet_find_pod(w, c->uid) : NULL;

    (void)unused;
    if (!c || c->state != CONTAINER_CREATED)
        return;
    c->state = CONTAINER_RUNNING;
    world_note(w, "runtime: c%u runs", c->id);
    if (pod && c->name < pod->containers_len && pod->containers[c->name].init)
        world_after(w, &rng, rng_between(&rng, 10, RUN_MS_MAX / 20), exit_later, container, 0);
}

void runtime_start(struct world *w, unsigned container)
{
    struct rng rng = world_draw(w, DRAW_CONTAINER_STARTS, container, 0);
    struct rt_container *c = runtime_find_container(w, container);

    if (w->faults && w->runtime.leaves_created && rng_percent(&rng, LEFT_PERCENT))
        return; /* its kubelet has restarted before it could, and makes another */
    if (c)
        c->starting = true;
    world_after(w, &rng, rng_delay_ms(&rng, START_MS_MAX), start, container, 0);
}

/* ---- faults ---- */

static void back(struct world *w, uint64_t a, uint64_t b)
{
    (void)a;
    (void)b;
    w->runtime.down = false;
    world_note(w, "runtime: back");
    if (w->shim.core)
        lister_refresh(w);
}

void runtime_restart(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_RUNTIME_TROUBLE, 0, 0);

    if (w->runtime.down)
        return;
    world_note(w, "runtime: restarts");
    runtime_lose_calls(w);
    w->runtime.down = true;
    world_after(w, &rng, rng_delay_ms(&rng, DOWN_MS_MAX), back, 0, 0);
    lister_runtime_gone(w);
    client_runtime_gone(w);
    dra_pods_runtime_gone(w);
}

void runtime_reboot(struct world *w, bool forgets)
{
    w->runtime.forgot = w->runtime.forgot || forgets;
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++)
        w->runtime.calls[i].number = 0;
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        if (w->runtime.sandboxes[i].id && forgets)
            runtime_drop_sandbox(w, &w->runtime.sandboxes[i]);
        else if (w->runtime.sandboxes[i].id)
            runtime_end_sandbox(w, &w->runtime.sandboxes[i]);
    }
}

struct rt_container *runtime_any_container(struct world *w, bool live)
{
    struct rng rng = world_draw(w, DRAW_RUNTIME_TROUBLE, 1, live);
    size_t start_at = rng_below(&rng, CONTAINERS_MAX);

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        struct rt_container *c = &w->runtime.containers[(start_at + i) % CONTAINERS_MAX];

        if (c->id && (!live || c->state == CONTAINER_RUNNING))
            return c;
    }
    return NULL;
}

struct rt_sandbox *runtime_any_sandbox(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_RUNTIME_TROUBLE, 2, 0);
    size_t start_at = rng_below(&rng, SANDBOXES_MAX);

    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[(start_at + i) % SANDBOXES_MAX];

        if (s->id && s->ready)
            return s;
    }
    return NULL;
}

void runtime_crash_one(struct world *w)
{
    struct rt_container *c = runtime_any_container(w, true);

    if (c)
        runtime_exit(w, c, "crashes");
}

/* Its pause process dies: it is not ready any more, and its containers go on. */
void runtime_orphan(struct world *w, struct rt_sandbox *s)
{
    world_note(w, "runtime: the pause process of s%u dies", s->id);
    count_add(COUNT_ORPHANS);
    s->ready = false;
    note_end(w, s->uid);
    claims_sandbox_ends(w, s->uid, true);
    w->runtime.unseen = true;
    lister_event(w, LISTER_ENDED, s->id, true);
}

static void flicker_ends(struct world *w, uint64_t id, uint64_t unused)
{
    struct rt_sandbox *s = runtime_find_sandbox(w, (unsigned)id);

    (void)unused;
    if (!s || !s->hidden)
        return;
    world_note(w, "runtime: s%u is listed as ready again", s->id);
    count_add(COUNT_FLICKERS);
    s->hidden = false;
    s->seen_ms = w->now_ms;
    if (kubelet_find_pod(w, s->uid))
        kubelet_find_pod(w, s->uid)->over_ms = w->now_ms;
    note_end(w, s->uid);
    claims_forget_all(w, s->uid, RESOURCES_LEN);
    w->runtime.unseen = true;
}

void runtime_flicker(struct world *w, struct rt_sandbox *s)
{
    struct rng rng = world_draw(w, DRAW_RUNTIME_TROUBLE, 3, s->id);

    if (s->hidden)
        return;
    world_note(w, "runtime: s%u is listed as not ready for a while", s->id);
    s->hidden = true;
    w->runtime.unseen = true;
    lister_event(w, LISTER_ENDED, s->id, true);
    world_after(w, &rng, rng_delay_ms(&rng, FLICKER_MS_MAX), flicker_ends, s->id, 0);
}

void runtime_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_RUNTIME, 0, 0);

    w->runtime.eventless = rng_percent(&rng, 40);
    w->runtime.leaves_created = w->play.seed % STALE_WORLDS == 2;
}
