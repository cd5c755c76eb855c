#include "tests/sim/frail.h"

#include "tests/sim/over.h"
#include "tests/sim/world.h"

#define WORLDS 8 /* in one of so many: */
#define WORLD 6
#define STEP_MS_MAX 3500
#define DIES_PERCENT 50
#define KILL_PERCENT 60 /* of the times at which a pod waits for its next sandbox */

bool frail_is(const struct world *w)
{
    return w->play.seed % WORLDS == WORLD;
}

static bool any_remade(struct world *w)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        const struct pod_sim *pod = &w->kubelet.pods[i];

        if (pod->uid && !pod->deleting && over_remade(w, pod->uid))
            return true;
    }
    return false;
}

static void step(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_FRAIL, 0, 0);
    struct rt_sandbox *s = runtime_any_sandbox(w);

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), step, 0, 0);
    if (any_remade(w) && rng_percent(&rng, KILL_PERCENT))
        shim_kill(w, false);
    else if (s && rng_percent(&rng, DIES_PERCENT))
        runtime_orphan(w, s);
}

void frail_begins(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_FRAIL, 0, 0);

    if (frail_is(w))
        world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), step, 0, 0);
}
