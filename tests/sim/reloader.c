#include "tests/sim/reloader.h"

#include "tests/sim/world.h"

#define WORLDS_PERCENT 30
#define PAUSE_MS_MAX 20000

/* Not by world_draw(): what happens at the same time is to draw as without it. */
static struct rng stream_of(const struct world *w, uint64_t about)
{
    struct rng rng = {w->play.seed};

    rng_mix(&rng, DRAW_RELOAD);
    rng_mix(&rng, about);
    return rng;
}

static void reload(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = stream_of(w, w->now_ms);

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    shim_set_settings(w, &rng);
    world_after(w, &rng, rng_between(&rng, 1, PAUSE_MS_MAX), reload, 0, 0);
}

void reloader_begins(struct world *w)
{
    struct rng rng = stream_of(w, 0);

    if (!w->play.settled && rng_percent(&rng, WORLDS_PERCENT))
        world_after(w, &rng, rng_between(&rng, 1, PAUSE_MS_MAX), reload, 0, 0);
}
