#include "tests/sim/move.h"

#include <stdio.h>

#include "tests/sim/reason.h"
#include "tests/sim/world.h"

#define WORLDS_PERCENT 30
#define REPLACED_MS_MAX 20000

void moves_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_MOVES, 0, 0);

    w->kubelet.moves = rng_percent(&rng, WORLDS_PERCENT);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        w->plugins[r].moved = !w->kubelet.moves || r == RESOURCE_BUILTIN || rng_percent(&rng, 40);
}

static bool has_bare(const struct pod_sim *pod, size_t resource)
{
    for (unsigned c = 0; c < pod->containers_len; c++) {
        if (pod->containers[c].bare[resource])
            return true;
    }
    return false;
}

/* A pod of before the move is deleted by force, and another may get its devices while its containers
 * end. */
static void replace_one(struct world *w, uint64_t resource, uint64_t unused)
{
    (void)unused;
    for (size_t i = 0; i < PODS_MAX && w->faults; i++) {
        struct pod_sim *pod = &w->kubelet.pods[i];

        if (pod->uid && !pod->deleting && has_bare(pod, resource)) {
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

void moves_note_known(struct world *w)
{
    for (size_t i = 0; i < CONTAINERS_MAX && w->kubelet.moves; i++) {
        struct rt_container *c = &w->runtime.containers[i];

        if (!runtime_live(c) || c->made_ms >= w->lister.heard_ms)
            continue;
        for (size_t r = 0; r < RESOURCES_LEN; r++) {
            if (!c->bare[r] || c->known[r] || !reason_resource_known(w, r) || !is_told(w, c, r))
                continue;
            world_note(w, "the shim must know that c%u runs with %x of resource %zu", c->id,
                       c->bare[r], r);
            c->known[r] = true;
            count_add(COUNT_BARE_KNOWN);
        }
    }
}

void moves_shim_started(struct world *w)
{
    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        struct rt_container *c = &w->runtime.containers[i];
        char uid[16];

        snprintf(uid, sizeof uid, "u%u", c->uid);
        for (size_t r = 0; c->id && r < RESOURCES_LEN; r++)
            c->known[r] =
                c->known[r] && store_find(&w->store, DEVICEMGR_RECORD_ALLOCATION, uid,
                                          container_sim_name(c->name), resource_sim_name(r));
    }
}
