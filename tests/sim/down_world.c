#include "tests/sim/down_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/heap.h"

#define STEPS 260
#define REST_STEPS 90
#define REST_STEP_MS 2000
#define GIVE_UP_MS 900000
/* One in so many seeds has this world. */
#define SHARE 3

void down_note(const struct down_world *d, const char *format, ...)
{
    va_list args;

    if (!d->w->play.verbose)
        return;
    printf("%12.3f down: ", (double)d->now_ms / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* ---- what happens ---- */

static struct dw_stop *any_stop(struct down_world *d)
{
    size_t from = rng_below(&d->rng, DW_STOPS);

    for (size_t i = 0; i < DW_STOPS; i++) {
        struct dw_stop *stop = &d->stops[(from + i) % DW_STOPS];

        if (stop->op)
            return stop;
    }
    return NULL;
}

static void runtime_acts(struct down_world *d)
{
    struct dw_stop *stop = any_stop(d);
    struct dw_pod *pod = stop ? down_pod_by_container(d, stop->container) : NULL;

    switch (rng_below(&d->rng, 9)) {
    case 8:
        down_boxes_stop(d);
        break;
    case 0:
        if (stop)
            down_stop_fails(d, stop);
        break;
    case 1:
    case 2:
        if (pod && pod->runs) /* it ends before its time is over */
            down_container_exits(d, pod, rng_percent(&d->rng, 70));
        break;
    case 3:
        d->runtime_away = rng_percent(&d->rng, 25);
        break;
    default:
        if (d->listing)
            down_list_ends(d);
        else
            down_list_begins(d);
        break;
    }
}

static void machine_acts(struct down_world *d)
{
    if (!d->goes_down)
        down_begins(d);
    else if (rng_percent(&d->rng, 20))
        down_cancelled(d);
    else if (rng_percent(&d->rng, 8))
        down_begins(d); /* another one: nobody has heard that the first was cancelled */
    if (rng_percent(&d->rng, 90))
        down_told(d, rng_percent(&d->rng, 65), rng_percent(&d->rng, 85));
}

static void boot(struct down_world *d)
{
    count_add(COUNT_DOWN_BOOTED);
    down_shim_kill(d);
    down_cancelled(d);
    d->boot++;
    d->now_ms = rng_between(&d->rng, 1000, 30000);
    d->runtime_away = false;
    down_note(d, "boot %u", d->boot);
    down_pods_booted(d, rng_percent(&d->rng, 50));
    down_shim_start(d);
}

static void shim_dies(struct down_world *d)
{
    if (!d->draining && rng_percent(&d->rng, 40)) {
        down_shim_drains(d);
        return;
    }
    down_shim_kill(d);
    down_shim_start(d);
}

static void settings_change(struct down_world *d)
{
    d->off = !d->off && rng_percent(&d->rng, 30);
    if (d->off && d->plan.state != DW_NONE)
        count_add(COUNT_DOWN_SWITCHED_OFF);
    down_shim_reload(d);
}

static void happen(struct down_world *d)
{
    struct dw_pod *pod = &d->pods[rng_below(&d->rng, DW_PODS)];
    uint64_t what = rng_below(&d->rng, 200);

    if (what < 50)
        down_pod_proceeds(d, pod);
    else if (what < 58)
        down_pod_trouble(d, pod);
    else if (what < 64)
        down_operator_acts(d, pod);
    else if (what < 96)
        down_shim_commit_ends(d, rng_percent(&d->rng, 12));
    else if (what < 136)
        runtime_acts(d);
    else if (what < 146)
        machine_acts(d);
    else if (what < 148)
        settings_change(d);
    else if (what < 151)
        shim_dies(d);
    else if (what < 152 && rng_percent(&d->rng, 25))
        boot(d);
    else if (d->plan.state == DW_BY_KUBELET && what < 156)
        down_pod_stops(d, pod);
    else if (what < 160)
        down_taint_acts(d);
    else
        down_shim_pass(d, rng_delay_ms(&d->rng, 15000));
}

/* ---- and then ---- */

static void settle(struct down_world *d, size_t steps)
{
    for (size_t step = 0; step < steps && !*d->w->broken; step++) {
        down_shim_commit_ends(d, false);
        if (d->list_wanted || step % 10 == 0)
            down_list_begins(d);
        down_list_ends(d);
        down_shim_commit_ends(d, false);
        down_boxes_stop(d);
        if (d->healing)
            down_taint_heals(d);
        for (size_t i = 0; i < DW_PODS && !*d->w->broken; i++) {
            if (d->plan.state == DW_BY_KUBELET)
                down_pod_stops(d, &d->pods[i]);
            else
                down_pod_proceeds(d, &d->pods[i]);
        }
        down_shim_pass(d, REST_STEP_MS);
    }
}

/* The shutdown that there is, or another one, comes to its end. */
static void go_down(struct down_world *d)
{
    if (d->draining) {
        down_shim_kill(d);
        down_shim_start(d);
    }
    if (!d->goes_down)
        down_begins(d);
    d->off = false;
    down_shim_reload(d);
    down_told(d, true, true);
    settle(d, REST_STEPS);
    check_that(d->w, d->plan.state == DW_OVER || d->given_up_ms, "a shutdown comes to its end");
}

static void come_back(struct down_world *d)
{
    switch (rng_below(&d->rng, 3)) {
    case 0:
        boot(d);
        break;
    case 1:
        down_shim_pass(d, GIVE_UP_MS);
        break;
    default:
        down_cancelled(d);
        down_told(d, false, true);
        break;
    }
    for (size_t i = 0; i < DW_PODS && !*d->w->broken; i++)
        down_operator_takes_back(d, &d->pods[i]);
    d->healing = true;
    settle(d, REST_STEPS);
    if (!*d->w->broken)
        down_judge_rest(d);
}

/* Settings have each priority once, the lowest first. */
static void draw_groups(struct down_world *d)
{
    static const int32_t PRIORITIES[] = {-50, 0, 60, 1000, 2000000000};
    size_t i = rng_below(&d->rng, 2);

    while (i < 5 && d->groups_len < DW_GROUPS) {
        d->groups[d->groups_len++] =
            (struct devicemgr_shutdown_group){PRIORITIES[i], 1000 * rng_between(&d->rng, 1, 30)};
        i += rng_between(&d->rng, 1, 3);
    }
}

bool down_world_run(struct world *w)
{
    struct down_world *d;

    if (w->play.seed % SHARE != 0)
        return true;
    d = heap_alloc(1, sizeof *d);
    d->w = w;
    d->rng = (struct rng){.state = w->play.seed};
    rng_mix(&d->rng, UINT64_MAX - 2); /* no other's stream */
    d->now_ms = 10000000;
    draw_groups(d);
    down_shim_start(d);
    settle(d, 3);
    for (size_t i = 0; i < DW_PODS; i++)
        down_pod_proceeds(d, &d->pods[i]);
    settle(d, 3);
    for (size_t step = 0; step < STEPS && !*w->broken; step++)
        happen(d);
    d->calm = true;
    d->runtime_away = false;
    if (!*w->broken)
        go_down(d);
    if (!*w->broken)
        come_back(d);
    if (*w->broken)
        down_note(d, "%s", w->broken);
    down_shim_end(d);
    free(d);
    return !*w->broken;
}
