#include "tests/sim/replace_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/world.h"

#define STEPS 200
#define REST_STEPS 600
/* In which containers still end. */
#define CRASHES 300
#define GOOD_MIN 4
/* All pods may end before there is rest, while somebody waits for the kubelet. */
#define ENDS_AT_ONCE_PERCENT 30

void replace_note(const struct replace_world *r, const char *format, ...)
{
    va_list args;

    if (!r->w->play.verbose)
        return;
    printf("%12.3f replaced: ", (double)r->now_ms / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static struct rw_pod *any_pod(struct replace_world *r)
{
    return &r->pods[rng_below(&r->rng, RW_PODS)];
}

/* More often one that a container has. */
static unsigned any_device(struct replace_world *r)
{
    unsigned bit = 1u << rng_below(&r->rng, RW_DEVICES);
    const struct rw_pod *pod = any_pod(r);
    unsigned has = pod->there ? pod->containers[pod->at].has : 0;

    while (has && rng_percent(&r->rng, 80) && !(bit & has))
        bit = 1u << rng_below(&r->rng, RW_DEVICES);
    return bit;
}

static void device_changes(struct replace_world *r)
{
    unsigned bit = any_device(r);

    if (rng_percent(&r->rng, 50))
        r->listed ^= bit;
    else
        r->healthy ^= bit;
    replace_plugin_lists(r);
}

/* The kubelet forgets its pod when that has ended, or, deleted by force, before. */
static void pod_goes(struct replace_world *r)
{
    struct rw_pod *pod = any_pod(r);

    if (!pod->there || pod->in_flight)
        return;
    if (pod->in_books && (pod->over || rng_percent(&r->rng, 25)))
        replace_kubelet_forgets(r, pod);
    else
        replace_pod_ends(r, pod);
}

static void befall(struct replace_world *r)
{
    switch (rng_below(&r->rng, 20)) {
    case 0:
    case 1:
        device_changes(r);
        break;
    case 2:
        if (!r->up || rng_percent(&r->rng, 25))
            replace_plugin_turns(r);
        break;
    case 3:
    case 4:
    case 5:
        replace_kubelet_admits(r);
        break;
    case 6:
        pod_goes(r);
        break;
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
        replace_pod_exits(r, any_pod(r), rng_percent(&r->rng, 70));
        break;
    case 13:
        if (rng_percent(&r->rng, 40))
            replace_pod_cancels(r, any_pod(r));
        break;
    case 14:
        if (rng_percent(&r->rng, 50))
            replace_shim_kill(r, rng_percent(&r->rng, 15));
        break;
    case 15:
        if (rng_percent(&r->rng, 40))
            replace_kubelet_restarts(r);
        break;
    default:
        replace_shim_pass(r, rng_delay_ms(&r->rng, 30000));
        break;
    }
}

/* What goes on by itself, each with that chance. */
static void proceed(struct replace_world *r, unsigned percent)
{
    void (*const steps[])(struct replace_world * r) = {
        replace_plugin_proceeds, replace_kubelet_takes_list, replace_kubelet_writes,
        replace_kubelet_is_read, replace_kubelet_took,       replace_checks_answered};

    for (size_t i = 0; i < sizeof steps / sizeof *steps && !*r->w->broken; i++) {
        if (rng_percent(&r->rng, percent))
            steps[i](r);
    }
    if (rng_percent(&r->rng, percent / 3))
        replace_kubelet_allocated(r);
    if (rng_percent(&r->rng, percent))
        replace_shim_commit_ends(r, !r->calm && rng_percent(&r->rng, 6));
    if (r->list_wanted && rng_percent(&r->rng, percent))
        replace_list_begins(r);
    if (r->listing && rng_percent(&r->rng, percent))
        replace_list_ends(r);
    for (size_t i = 0; i < RW_PODS && !*r->w->broken; i++) {
        if (rng_percent(&r->rng, percent))
            replace_pod_asks(r, &r->pods[i]);
    }
}

static void end_one(struct replace_world *r, struct rw_pod *pod)
{
    replace_pod_ends(r, pod);
    if (pod->there)
        replace_kubelet_forgets(r, pod);
}

/* So many devices there are that each pod that stays may have lost all that it was given. */
static void settle(struct replace_world *r)
{
    unsigned wanted = 0;

    r->calm = true;
    while (replace_count(r->listed & r->healthy) < GOOD_MIN)
        r->listed |= r->healthy |= 1u << rng_below(&r->rng, RW_DEVICES);
    replace_plugin_lists(r);
    replace_cdi_settles(r);
    replace_kubelet_allocated(r);
    for (size_t i = 0; i < RW_PODS && !*r->w->broken; i++) {
        struct rw_pod *pod = &r->pods[i];
        bool stays = pod->there && !pod->over && pod->in_books == pod->token &&
                     wanted + 2 * pod->want <= replace_count(r->listed & r->healthy);

        if (stays)
            wanted += 2 * pod->want;
        else
            end_one(r, pod);
    }
}

static void rest(struct replace_world *r)
{
    for (size_t step = 0; step < REST_STEPS && !*r->w->broken; step++) {
        proceed(r, 100);
        if (step < CRASHES && step % 40 == 39)
            replace_pod_exits(r, &r->pods[step / 40 % RW_PODS], true);
        if (step % 20 == 0)
            r->list_wanted = true;
        replace_shim_pass(r, 1000);
    }
}

static void end_all(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS && !*r->w->broken; i++)
        end_one(r, &r->pods[i]);
    for (size_t step = 0; step < 60 && !*r->w->broken; step++) {
        proceed(r, 100);
        r->list_wanted = true;
        replace_shim_pass(r, 1000);
    }
}

bool replace_world_run(struct world *w)
{
    struct replace_world *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->w = w;
    r->rng = (struct rng){.state = w->play.seed};
    rng_mix(&r->rng, UINT64_MAX - 5); /* no other's stream */
    r->now_ms = 1000000;
    r->up = true;
    r->listed = r->healthy = RW_ALL;
    replace_cdi_begins(r);
    replace_shim_start(r);
    for (size_t step = 0; step < STEPS && !*w->broken; step++) {
        befall(r);
        replace_cdi_turns(r);
        proceed(r, 55);
        replace_shim_pass(r, rng_delay_ms(&r->rng, 4000));
    }
    if (!*w->broken)
        settle(r);
    if (!rng_percent(&r->rng, ENDS_AT_ONCE_PERCENT)) {
        rest(r);
        if (!*w->broken)
            replace_judge_end(r);
    }
    if (!*w->broken)
        end_all(r);
    if (!*w->broken)
        replace_judge_empty(r);
    replace_shim_end(r);
    free(r);
    return !*w->broken;
}
