#include "tests/sim/hasty.h"

#include "tests/sim/world.h"

#define WORLDS 8 /* in one of so many: */
#define WORLD 3
#define GIVES_UP_PERCENT 90
#define ENDS_MS_MAX 500
#define STEP_MS_MAX 2500

static bool is_hasty(const struct world *w)
{
    return w->play.seed % WORLDS == WORLD;
}

/* Of which a container runs with devices that the kubelet gave it. */
static unsigned running_pod(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_HASTE, 0, 1);
    size_t first = rng_below(&rng, CONTAINERS_MAX);

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
        const struct rt_container *c = &w->runtime.containers[(first + i) % CONTAINERS_MAX];

        if (runtime_live(c) && (c->held[0] | c->held[1] | c->held[2]))
            return c->uid;
    }
    return 0;
}

static void replace(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_HASTE, 0, 0);

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), replace, 0, 0);
    kubelet_replace(w, running_pod(w));
}

void hasty_begins(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_HASTE, 0, 0);

    if (is_hasty(w))
        world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), replace, 0, 0);
}

static void ends(struct world *w, uint64_t container, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)container);

    (void)unused;
    if (c)
        runtime_exit(w, c, "ends, after somebody has asked for it");
}

static bool wants(const struct create_sim *create, const struct rt_container *c)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (create->ids[r] & c->held[r])
            return true;
    }
    return false;
}

/* Whoever waits for what the container has; its pod is deleted by force, and another comes. */
static bool give_up(struct world *w, const struct rt_container *c)
{
    bool any = false;

    for (size_t i = 0; i < CREATES_SIM_MAX && w->shim.core; i++) {
        struct create_sim *create = &w->client.creates[i];
        unsigned uid = create->uid;

        if (!create->number || create->untouched || create->forwarded || uid == c->uid ||
            !wants(create, c))
            continue;
        any = true;
        count_add(COUNT_HASTE);
        client_cancel(w, create, "gives up just before it is answered");
        kubelet_replace(w, uid);
    }
    return any;
}

void hasty_check(struct world *w, unsigned container)
{
    const struct rt_container *c = runtime_find_container(w, container);
    struct rng rng;

    if (!w->faults || !is_hasty(w) || w->runtime.down || !c || !runtime_live(c))
        return;
    rng = world_draw(w, DRAW_HASTE, container, 0);
    if (rng_percent(&rng, GIVES_UP_PERCENT) && give_up(w, c))
        world_after(w, &rng, rng_between(&rng, 1, ENDS_MS_MAX), ends, container, 0);
}
