#include "tests/sim/move.h"
#include "tests/sim/check.h"

#include <stdio.h>

#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define WORLDS_PERCENT 30
#define REPLACED_MS_MAX 20000
/* Of pods one of whose containers is made again after the move, or runs twice. */
#define REPLACED_PERCENT 30
#define REPLACED_OFTEN_PERCENT 80
/* In one of so many plugins are always moved, and that is frequent. */
#define OFTEN_WORLDS 8
#define OFTEN_WORLD 5
#define TWIN_MS_MAX 500

bool moves_often(const struct world *w)
{
    return w->play.seed % OFTEN_WORLDS == OFTEN_WORLD;
}

void moves_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_MOVES, 0, 0);

    w->kubelet.moves = rng_percent(&rng, WORLDS_PERCENT) || moves_often(w);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->plugins[r].moved = !w->kubelet.moves || r == RESOURCE_BUILTIN || rng_percent(&rng, 40);
}

static unsigned replaced_percent(const struct world *w)
{
    return moves_often(w) ? REPLACED_OFTEN_PERCENT : REPLACED_PERCENT;
}

static bool has_bare(const struct pod_sim *pod, size_t resource)
{
    for (unsigned c = 0; c < pod->containers_len; c++) {
        if (pod->containers[c].bare[resource])
            return true;
    }
    return false;
}

/* Another that runs, of the same container; NULL: none. */
static struct rt_container *twin_of(struct world *w, const struct rt_container *c)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        struct rt_container *other = &w->runtime.containers[i];

        if (other != c && runtime_live(other) && other->uid == c->uid && other->name == c->name)
            return other;
    }
    return NULL;
}

/* One of two ends, and their pod is deleted by force. */
static void replace_twin(struct world *w, uint64_t container, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)container);

    (void)unused;
    if (!w->faults || !c || !runtime_live(c) || !twin_of(w, c) || !kubelet_find_pod(w, c->uid))
        return;
    count_add(COUNT_TWIN_REPLACED);
    runtime_exit(w, c, "crashes");
    kubelet_replace(w, c->uid);
}

/* A pod of before the move is deleted by force, and another may get its devices while its
 * containers end. */
static void replace_one(struct world *w, uint64_t resource, uint64_t unused)
{
    (void)unused;
    for (size_t i = 0; i < PODS_MAX && w->faults; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        if (pod->uid && !pod->deleting && has_bare(pod, resource)) {
            if (moves_often(w) && runtime_ready_sandbox(w, pod->uid))
                runtime_orphan(w, runtime_ready_sandbox(w, pod->uid));
            kubelet_replace(w, pod->uid);
            return;
        }
    }
}

void move_plugin(struct world *w, size_t resource)
{
    struct rng rng = world_draw(w, DRAW_MOVES, 1, resource);
    struct plugin *p = &w->plugins[resource];

    if (!w->kubelet.moves || resource == RESOURCE_BUILTIN)
        return;
    world_note(w, "plugin %zu: is moved %s", resource, p->moved ? "back to the kubelet" : "over");
    count_add(p->moved ? COUNT_MOVED_BACK : COUNT_MOVED_OVER);
    plugin_die(w, p); /* it is begun anew with another directory */
    p->moved = !p->moved;
    if (p->moved)
        world_after(w, &rng, rng_between(&rng, 1, REPLACED_MS_MAX), replace_one, resource, 0);
    plugin_start(w, p);
}

void moves_end(struct world *w)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (!w->plugins[r].moved)
            move_plugin(w, r);
    }
}

/* By the kubelet's checkpoint, as the shim was told of it last. */
static bool is_told(const struct world *w, const struct rt_container *c, size_t r)
{
    for (size_t i = 0; i < w->bridge.report_len; i++) {
        const struct kubelet_row *row = &w->bridge.report[i];

        if (row->uid == c->uid && row->name == c->name && row->resource == r)
            return true;
    }
    return false;
}

/* It runs, or is being made. */
static bool note_known(struct world *w, struct rt_container *c)
{
    bool known = false;

    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (!c->bare[r] || c->known[r] || !reason_resource_known(w, r) || !is_told(w, c, r))
            continue;
        world_note(w, "the shim must know that %s of u%u has %x of resource %zu",
                   container_sim_name(c->name), c->uid, c->bare[r], r);
        c->known[r] = known = true;
        c->known_ms[r] = w->now_ms;
        claims_adopted(w, c->uid, c->name, r, c->bare[r]);
        count_add(COUNT_BARE_KNOWN);
    }
    return known;
}

void moves_note_known(struct world *w)
{
    for (size_t i = 0; i < w->runtime.containers_end && w->kubelet.moves; i++) {
        struct rt_container *c = &w->runtime.containers[i];
        struct rng rng;

        if (!runtime_live(c) || c->made_ms >= w->lister.heard_ms || !note_known(w, c) ||
            !twin_of(w, c))
            continue;
        rng = world_draw(w, DRAW_MOVES, 3, c->id);
        if (rng_percent(&rng, replaced_percent(w)))
            world_after(w, &rng, rng_below(&rng, TWIN_MS_MAX), replace_twin, c->id, 0);
    }
}

void moves_note_made(struct world *w, struct rt_container *made)
{
    const struct rt_sandbox *s = runtime_find_sandbox(w, made->sandbox);
    struct rng rng = world_draw(w, DRAW_MOVES, 2, made->uid);

    if (!w->kubelet.moves || w->shim.listed_ms == 0 || !s || s->told_in != w->shim.incarnation ||
        s->stopped_in == w->shim.incarnation)
        return;
    if (note_known(w, made) && w->faults && rng_percent(&rng, replaced_percent(w)))
        kubelet_replace(w, made->uid);
}

static bool is_stored(const struct world *w, const struct rt_container *c, size_t r)
{
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", c->uid);
    return store_find(&w->store, DEVICEMGR_RECORD_ALLOCATION, uid, container_sim_name(c->name),
                      resource_sim_name(r)) != NULL;
}

static void keep_stored(struct world *w, struct rt_container *c)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        c->known[r] = c->known[r] && is_stored(w, c, r);
}

void moves_check_stored(struct world *w)
{
    for (size_t i = 0; i < w->runtime.containers_end && w->kubelet.moves; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        for (size_t r = 0; r < RESOURCES_LEN; r++)
            check_that(w,
                       !runtime_live(c) || !c->known[r] || c->known_ms[r] >= w->store.begun_ms ||
                           is_stored(w, c, r),
                       "what runs without a token is stored: %s of u%u, %s",
                       container_sim_name(c->name), c->uid, resource_sim_name(r));
    }
}

void moves_shim_started(struct world *w)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++)
        keep_stored(w, &w->runtime.containers[i]);
    for (size_t i = 0; i < RUNTIME_CALLS_MAX; i++)
        keep_stored(w, &w->runtime.calls[i].made);
}
