#include "tests/sim/taint_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/heap.h"

#define STEPS 300
#define REST_MS 1200000
#define REST_STEP_MS 3000
#define REST_LEAP_MS 60000 /* while nothing is under way */

void taint_note(const struct taint_world *t, const char *format, ...)
{
    va_list args;

    if (!t->w->play.verbose)
        return;
    printf("%12.3f taints: ", (double)t->now_ms / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* ---- what happens ---- */

static struct tw_stop *any_stop(struct taint_world *t)
{
    size_t from = rng_below(&t->rng, TW_STOPS);

    for (size_t i = 0; i < TW_STOPS; i++) {
        struct tw_stop *stop = &t->stops[(from + i) % TW_STOPS];

        if (stop->op)
            return stop;
    }
    return NULL;
}

static void runtime_acts(struct taint_world *t)
{
    struct tw_stop *stop = any_stop(t);
    struct tw_pod *pod = stop ? taint_pod_by_container(t, stop->container) : NULL;

    switch (rng_below(&t->rng, 6)) {
    case 0:
        if (stop)
            taint_stop_fails(t, stop);
        break;
    case 1:
        if (pod && pod->runs) /* it ends before its time is over */
            taint_container_exits(t, pod, rng_percent(&t->rng, 70));
        break;
    case 2:
        t->runtime_away = rng_percent(&t->rng, 30);
        break;
    case 3:
        taint_checks_answered(t);
        break;
    default:
        if (t->listing)
            taint_list_ends(t);
        else
            taint_list_begins(t);
        break;
    }
}

static void kubelet_restarts(struct taint_world *t)
{
    count_add(COUNT_TAINT_KUBELET);
    for (size_t i = 0; i < TW_PODS; i++)
        t->pods[i].prepared = false; /* it asks for all claims anew */
    devicemgr_kubelet_started(t->core, t->now_ms);
    taint_shim_run(t);
}

static void cluster_acts(struct taint_world *t, struct tw_pod *pod)
{
    switch (rng_below(&t->rng, 9)) {
    case 0:
    case 1:
        taint_facts_change(t);
        break;
    case 2:
        taint_controller_looks(t, pod);
        break;
    case 3:
        taint_claims_clean(t);
        break;
    case 4:
        if (rng_percent(&t->rng, 15))
            taint_driver_goes(t);
        break;
    case 5:
        taint_driver_comes(t);
        break;
    default:
        taint_agent_tells(t);
        break;
    }
}

/* Who taints: an operator, but in a restless world. */
static void taint(struct taint_world *t)
{
    if (!t->restless)
        taint_operator_acts(t);
    else if (rng_percent(&t->rng, 50))
        taint_settings_change(t);
    else
        taint_device_acts(t, &t->pods[rng_below(&t->rng, TW_PODS)]);
}

static void api_acts(struct taint_world *t)
{
    t->api_away = rng_percent(&t->rng, 30);
    taint_cluster_reached(t);
    taint_shim_run(t);
}

static void happen(struct taint_world *t)
{
    struct tw_pod *pod = &t->pods[rng_below(&t->rng, TW_PODS)];
    uint64_t what = rng_below(&t->rng, 100);

    if (t->leaves || rng_percent(&t->agent_rng, 2))
        taint_agent_goes(t);
    if (what < 28)
        taint_pod_proceeds(t, pod);
    else if (what < 33)
        taint_pod_trouble(t, pod);
    else if (what < 43)
        taint(t);
    else if (what < 56)
        taint_shim_commit_ends(t, rng_percent(&t->rng, 12));
    else if (what < 60)
        taint_plugins_proceed(t);
    else if (what < 63)
        taint_driver_proceeds(t);
    else if (what < 66)
        taint_plugin_acts(t, rng_below(&t->rng, TW_RESOURCES));
    else if (what < 76)
        runtime_acts(t);
    else if (what < 85)
        cluster_acts(t, pod);
    else if (what < 88)
        taint_cluster_proceeds(t, pod);
    else if (what < 89)
        api_acts(t);
    else if (what < 90)
        taint_settings_change(t);
    else if (what < 92)
        taint_shim_kill(t);
    else if (what < 93)
        kubelet_restarts(t);
    else
        taint_shim_pass(t, rng_delay_ms(&t->rng, 40000));
}

/* ---- and then ---- */

static bool pod_is_quiet(const struct tw_pod *pod)
{
    return !pod->there || (!pod->deleting && !pod->forwarded && !pod->order && !pod->prepare);
}

/* Nobody is to do anything: what comes next comes with time, or as a pod asks for its sandbox or
 * container once more. */
static bool is_quiet(const struct taint_world *t)
{
    bool quiet = !t->commit && !t->list_wanted && !t->request.number;

    for (size_t i = 0; i < TW_PODS; i++)
        quiet = quiet && pod_is_quiet(&t->pods[i]);
    for (size_t i = 0; i < TW_RESOURCES; i++)
        quiet = quiet && t->plugins[i].up && !t->plugins[i].dialled;
    for (size_t i = 0; i < TW_CALLS; i++)
        quiet = quiet && !t->calls[i].number && !t->checks[i].number && !t->driver_calls[i].number;
    for (size_t i = 0; i < TW_STOPS; i++)
        quiet = quiet && !t->stops[i].op;
    return quiet;
}

/* To what the core waits for, where that is all. */
static uint64_t rest_step_ms(const struct taint_world *t)
{
    uint64_t next_ms = devicemgr_next_ms(t->core);

    if (!is_quiet(t) || next_ms < t->now_ms + REST_STEP_MS)
        return REST_STEP_MS;
    return next_ms > t->now_ms + REST_LEAP_MS ? REST_LEAP_MS : next_ms - t->now_ms;
}

static void rest(struct taint_world *t)
{
    uint64_t end_ms = t->now_ms + REST_MS;

    for (size_t step = 0; t->now_ms < end_ms && !*t->w->broken; step++) {
        bool healing = false;

        taint_shim_commit_ends(t, false);
        taint_plugins_proceed(t);
        taint_driver_comes(t);
        taint_driver_proceeds(t);
        taint_checks_answered(t);
        while (!*t->w->broken && taint_agent_tells(t))
            continue;
        if (t->list_wanted || step % 20 == 0)
            taint_list_begins(t);
        taint_list_ends(t);
        for (size_t i = 0; i < TW_PODS && !*t->w->broken; i++) {
            taint_controller_looks(t, &t->pods[i]);
            taint_cluster_proceeds(t, &t->pods[i]);
            taint_pod_proceeds(t, &t->pods[i]);
        }
        taint_claims_clean(t);
        if (t->untainted)
            healing = taint_operator_heals(t);
        taint_shim_pass(t, healing ? REST_STEP_MS : rest_step_ms(t));
    }
    taint_judge_shown(t);
    if (!*t->w->broken)
        taint_judge_rest(t);
}

static void begin(struct taint_world *t)
{
    struct rng of_its_own = {.state = t->w->play.seed}; /* the other worlds stay as they were */

    rng_mix(&of_its_own, UINT64_MAX - 1);
    rng_mix(&of_its_own, 1);
    t->restless = rng_percent(&of_its_own, 15);
    t->agent_rng = of_its_own;
    rng_mix(&t->agent_rng, 2);
    t->now_ms = 10000000;
    t->unhealthy_after_ms = rng_percent(&t->rng, 50) ? 1000 * rng_between(&t->rng, 1, 60) : 0;
    t->per_minute = rng_percent(&t->rng, 50) ? (uint32_t)rng_between(&t->rng, 1, 5) : 0;
    t->cluster = rng_percent(&t->rng, 50);
    t->force = rng_percent(&t->rng, 50);
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        t->plugins[r].lost_ms = t->now_ms;
        for (size_t i = 0; i < TW_DEVICES_MAX; i++)
            t->plugins[r].devices[i].healthy = t->plugins[r].devices[i].said_healthy = true;
    }
    taint_shim_start(t);
    for (size_t r = 0; r < TW_RESOURCES; r++)
        taint_plugin_acts(t, r);
    taint_plugins_proceed(t);
    taint_driver_comes(t);
    taint_shim_commit_ends(t, false);
    taint_list_begins(t);
    taint_list_ends(t);
}

bool taint_world_run(struct world *w)
{
    struct taint_world *t = heap_alloc(1, sizeof *t);

    t->w = w;
    t->rng = (struct rng){.state = w->play.seed};
    rng_mix(&t->rng, UINT64_MAX - 1); /* no other's stream */
    begin(t);
    for (size_t step = 0; step < STEPS && !*w->broken; step++)
        happen(t);
    t->calm = true;
    t->runtime_away = t->api_away = false;
    taint_cluster_reached(t);
    if (!*w->broken)
        rest(t);
    t->untainted = true;
    if (!*w->broken) {
        taint_settings_change(t);
        taint_facts_heal(t);
        taint_plugins_heal(t);
        rest(t);
    }
    if (*w->broken)
        taint_note(t, "%s", w->broken);
    taint_shim_end(t);
    free(t);
    return !*w->broken;
}
