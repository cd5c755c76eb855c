#include "tests/sim/rival.h"

#include <string.h>

#include "tests/sim/world.h"

#define RIVAL_UID 1000000
#define STAY_MS_MAX 60000
#define NOTED_PERCENT 40

/* ---- what it makes ---- */

static void leave_container(struct world *w, uint64_t id, uint64_t unused)
{
    struct rt_container *c = runtime_find_container(w, (unsigned)id);

    (void)unused;
    if (!c)
        return;
    world_note(w, "rival: removes c%u", c->id);
    w->runtime.unseen = true;
    runtime_exit(w, c, "is killed");
    runtime_drop_container(w, c);
}

static void leave_sandbox(struct world *w, uint64_t id, uint64_t unused)
{
    struct rt_sandbox *s = runtime_find_sandbox(w, (unsigned)id);

    (void)unused;
    if (!s)
        return;
    world_note(w, "rival: removes s%u", s->id);
    w->runtime.unseen = true;
    runtime_drop_sandbox(w, s);
}

/* It has one container in a pod at a time: they all have the same name, and the core knows one
 * container of a name. */
static bool lives_in(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (c->rival && c->uid == uid && runtime_live(c))
            return true;
    }
    return false;
}

/* A copied token: what it names is as good as held, by the pod, as long as it lives; so those who
 * wait for every request to be met find none in the kubelet's pods. */
static void note_devices(struct world *w, struct rt_container *made, struct rng *rng)
{
    size_t r = rng_below(rng, RESOURCES_LEN);

    if (rng_percent(rng, NOTED_PERCENT))
        made->held[r] = made->noted[r] = w->plugins[r].devices & 1u << rng_below(rng, DEVICES_MAX);
}

/* Others may lose theirs to it, when it is made, and when the shim hears of it. */
static void forget_claims(struct world *w, const struct rt_container *c)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (c->noted[r])
            claims_forget_all(w, 0, r);
    }
}

static void make_container(struct world *w, const struct rt_sandbox *s, struct rng *rng)
{
    struct rt_container made = {.sandbox = s->id,
                                .uid = s->uid,
                                .name = POD_CONTAINERS_MAX,
                                .attempt = w->runtime.last_id,
                                .rival = true,
                                .heard_ms = UINT64_MAX};
    const struct rt_container *c;

    if (s->uid >= RIVAL_UID || w->kubelet.mixed)
        note_devices(w, &made, rng);
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        if (made.noted[r])
            claims_rival(w, made.uid, r, made.noted[r]);
    }
    forget_claims(w, &made);
    w->runtime.unseen = true;
    c = runtime_add_container(w, &made);
    world_note(w, "rival: c%u made in s%u, devices %x %x %x", c->id, s->id, c->noted[0],
               c->noted[1], c->noted[2]);
    world_after(w, rng, rng_below(rng, STAY_MS_MAX), leave_container, c->id, 0);
}

static void make_pod(struct world *w, struct rng *rng)
{
    const struct rt_sandbox *s = runtime_add_sandbox(w, RIVAL_UID + w->runtime.last_id, 0);

    world_note(w, "rival: s%u made for its u%u", s->id, s->uid);
    make_container(w, s, rng);
    world_after(w, rng, rng_below(rng, STAY_MS_MAX), leave_sandbox, s->id, 0);
}

/* ---- what it does to others ---- */

static void remove_container(struct world *w)
{
    struct rt_container *c = runtime_any_container(w, false);

    if (!c)
        return;
    world_note(w, "rival: c%u removed behind our back", c->id);
    w->runtime.unseen = true;
    runtime_drop_container(w, c);
}

static void stop_sandbox(struct world *w, struct rt_sandbox *s, struct rng *rng)
{
    world_note(w, "rival: s%u stopped%s behind our back", s->id, s->ready ? "" : " again");
    w->runtime.unseen = true;
    runtime_end_sandbox(w, s);
    if (rng_percent(rng, 30))
        runtime_drop_sandbox(w, s);
}

void rival_trouble(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_RIVAL, 0, 0);
    struct rt_sandbox *s = &w->runtime.sandboxes[rng_below(&rng, SANDBOXES_MAX)];

    switch (rng_below(&rng, 6)) {
    case 0:
        remove_container(w);
        break;
    case 1:
        if (s->id)
            stop_sandbox(w, s, &rng);
        break;
    case 2:
        if (s->id && s->ready && !lives_in(w, s->uid))
            make_container(w, s, &rng);
        break;
    case 3:
        if (s->id && s->ready && s->uid < RIVAL_UID)
            runtime_stop_sandbox(w, s, false);
        break;
    default:
        make_pod(w, &rng);
        break;
    }
}

void rival_heard(struct world *w, unsigned container)
{
    struct rt_container *c = runtime_find_container(w, container);

    if (!c || !c->rival || c->heard_ms != UINT64_MAX)
        return;
    c->heard_ms = w->now_ms;
    forget_claims(w, c);
}

void rival_shim_gone(struct world *w)
{
    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        if (w->runtime.containers[i].rival)
            w->runtime.containers[i].heard_ms = UINT64_MAX;
    }
}
