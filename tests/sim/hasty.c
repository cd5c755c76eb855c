#include "tests/sim/hasty.h"

#include "tests/sim/world.h"

#define WORLDS 8 /* in one of so many: */
#define WORLD 3
#define GIVES_UP_PERCENT 90
#define FIRST_PERCENT 50
#define ENDS_MS_MAX 500
#define ANOTHER_PERCENT 50
#define SLOW_PERCENT 75
#define SLOW_MS_MAX 4000
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
    if (rng_percent(&rng, ANOTHER_PERCENT)) /* which may get what is left of its devices */
        kubelet_add_pod(w);
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

static bool waits_for(const struct create_sim *create, const struct rt_container *c)
{
    return create->number && !create->untouched && !create->forwarded && create->uid != c->uid &&
           wants(create, c);
}

/* UINT64_MAX: nobody waits for it. */
static uint64_t first_for(const struct world *w, const struct rt_container *c)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        const struct create_sim *create = &w->client.creates[i];

        if (waits_for(create, c) && create->number < first)
            first = create->number;
    }
    return first;
}

/* Whoever waits for what the container has, or who came first alone, since others wait for his
 * answer, too; their pods are deleted by force, and others come. */
static bool give_up(struct world *w, const struct rt_container *c, bool first_alone)
{
    uint64_t first = first_for(w, c);
    bool any = false;

    for (size_t i = 0; i < CREATES_SIM_MAX && w->shim.core; i++) {
        struct create_sim *create = &w->client.creates[i];
        unsigned uid = create->uid;

        if (!waits_for(create, c) || (first_alone && create->number != first))
            continue;
        any = true;
        count_add(COUNT_HASTE);
        client_cancel(w, create, "gives up just before it is answered");
        kubelet_replace(w, uid);
    }
    return any;
}

/* The pod of who came first is deleted by force: he waits on, and another may get the same
 * devices. */
static void crowd(struct world *w, uint64_t container, uint64_t unused)
{
    const struct rt_container *c = runtime_find_container(w, (unsigned)container);
    uint64_t first = c ? first_for(w, c) : UINT64_MAX;
    const struct create_sim *create = first != UINT64_MAX ? client_find(w, first) : NULL;

    (void)unused;
    if (create && w->faults)
        kubelet_replace(w, create->uid);
}

uint64_t hasty_slow_ms(struct world *w, unsigned container)
{
    struct rng rng = world_draw(w, DRAW_HASTE, container, 2);

    if (!is_hasty(w) || !w->faults || !rng_percent(&rng, SLOW_PERCENT))
        return 0;
    world_after(w, &rng, 1, crowd, container, 0);
    return rng_between(&rng, 1, SLOW_MS_MAX);
}

void hasty_check(struct world *w, unsigned container)
{
    const struct rt_container *c = runtime_find_container(w, container);
    struct rng rng, who;

    if (!w->faults || !is_hasty(w) || w->runtime.down || !c || !runtime_live(c))
        return;
    rng = world_draw(w, DRAW_HASTE, container, 0);
    who = world_draw(w, DRAW_HASTE, container, 1);
    if (rng_percent(&rng, GIVES_UP_PERCENT) && give_up(w, c, rng_percent(&who, FIRST_PERCENT)))
        world_after(w, &rng, rng_between(&rng, 1, ENDS_MS_MAX), ends, container, 0);
}
