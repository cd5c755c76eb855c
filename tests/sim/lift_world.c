#include "tests/sim/lift_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/heap.h"
#include "tests/sim/world.h"

/* One in so many large worlds has this one beside it. */
#define SHARE 5
#define STEPS 500
#define QUIET_STEPS 12
#define QUIET_MS 1000
#define REST_STEPS 150
#define REST_STEP_MS 3000
/* So often the runtime is listed unasked. */
#define LIST_STEPS 20
/* So often the rows are lost with a shim, of those that end otherwise than most. */
#define LOSES_PERCENT 40

void lift_note(const struct lift_world *h, const char *format, ...)
{
    va_list args;

    if (!h->w->play.verbose)
        return;
    printf("%12.3f lifts: ", (double)h->now_ms / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* ---- what happens ---- */

static void list_goes_on(struct lift_world *h)
{
    if (h->listing)
        lift_list_ends(h);
    else if (h->list_wanted)
        lift_list_begins(h);
}

static void node_boots(struct lift_world *h)
{
    lift_note(h, "the node boots");
    count_add(COUNT_LIFT_BOOTED);
    lift_runtime_booted(h);
    h->boot++;
    lift_shim_kill(h, false);
    lift_kubelet_restarts(h);
}

static void somebody_restarts(struct lift_world *h)
{
    uint64_t what = rng_below(&h->rng, 100);

    if (what < 40)
        lift_shim_kill(h, false);
    else if (what < 44)
        lift_shim_kill(h, rng_percent(&h->rng, LOSES_PERCENT));
    else if (what < 60)
        lift_kubelet_restarts(h);
    else if (what < 75)
        lift_runtime_restarts(h);
    else if (what < 80)
        node_boots(h);
}

/* By a person, or by who cleans up. */
static void slice_is_deleted(struct lift_world *h)
{
    struct lw_slice *slice = &h->slices[rng_below(&h->rng, LW_SLICES)];

    if (slice->uid)
        lift_api_delete(h, slice);
}

/* For a while all goes as it should, as far as who is there is concerned. */
static void all_go_on(struct lift_world *h)
{
    for (size_t i = 0; i < QUIET_STEPS && !*h->w->broken; i++) {
        lift_shim_commit_ends(h, false);
        lift_agent_works(h);
        lift_plugins_proceed(h);
        lift_checks_answered(h);
        lift_pod_proceeds(h, &h->pods[rng_below(&h->rng, LW_PODS)]);
    }
    lift_agent_tells(h);
    list_goes_on(h);
    lift_kubelet_sees(h);
    lift_shim_pass(h, QUIET_MS);
}

static void happen(struct lift_world *h)
{
    struct lw_pod *pod = &h->pods[rng_below(&h->rng, LW_PODS)];
    uint64_t what = rng_below(&h->rng, 100);

    if (what < 20)
        lift_pod_proceeds(h, pod);
    else if (what < 24)
        lift_pod_trouble(h, pod);
    else if (what < 30)
        lift_pod_comes(h);
    else if (what < 42)
        lift_shim_commit_ends(h, rng_percent(&h->rng, 5));
    else if (what < 45)
        lift_plugin_acts(h, rng_below(&h->rng, LW_RESOURCES));
    else if (what < 51)
        lift_plugins_proceed(h);
    else if (what < 66)
        lift_agent_acts(h);
    else if (what < 70)
        lift_kubelet_sees(h);
    else if (what < 71)
        lift_kubelet_is_read(h);
    else if (what < 74)
        lift_checks_answered(h);
    else if (what < 79)
        list_goes_on(h);
    else if (what < 81)
        somebody_restarts(h);
    else if (what < 82)
        slice_is_deleted(h);
    else if (what < 91)
        all_go_on(h);
    else
        lift_shim_pass(h, rng_delay_ms(&h->rng, 20000));
}

/* ---- and then ---- */

static bool is_done(const struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        if (h->pods[i].there && (h->over || h->pods[i].deleting || !lift_pod_runs(&h->pods[i])))
            return false;
    }
    for (size_t i = 0; i < h->claims_len; i++) {
        if (h->over && lift_shim_has_claim(h, i))
            return false;
    }
    for (size_t i = 0; i < LW_ORDERS; i++) {
        if (h->orders[i].id)
            return false;
    }
    return h->over || lift_is_published(h);
}

/* Until nobody is to do anything. */
static void settle(struct lift_world *h)
{
    lift_agent_comes(h);
    h->api_away = false;
    while (!*h->w->broken && (h->commit || lift_agent_works(h)))
        lift_shim_commit_ends(h, false);
    lift_plugins_proceed(h);
    lift_checks_answered(h);
    lift_agent_tells(h);
}

/* Who was given what another pod has already, each by a right of its own, is deleted in the end. */
static void part(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        for (size_t k = 0; k < LW_PODS; k++) {
            struct lw_pod *pod = &h->pods[i];

            if (!pod->there || pod->deleting || lift_pod_runs(pod) ||
                !lift_is_in_the_way(h, pod, &h->pods[k]))
                continue;
            count_add(COUNT_LIFT_PARTED);
            lift_pod_deleted(h, pod, false);
        }
    }
}

static void rest_step(struct lift_world *h)
{
    settle(h);
    lift_kubelet_sees(h);
    list_goes_on(h);
    list_goes_on(h);
    for (size_t i = 0; i < LW_PODS && !*h->w->broken; i++)
        lift_pod_proceeds(h, &h->pods[i]);
    lift_shim_pass(h, REST_STEP_MS);
}

static void rest(struct lift_world *h)
{
    for (size_t step = 0; step < REST_STEPS && !*h->w->broken && !is_done(h); step++) {
        h->list_wanted = h->list_wanted || step % LIST_STEPS == 0; /* it is polled for at times */
        if (step == REST_STEPS / 3)
            part(h);
        rest_step(h);
    }
}

static void begin(struct lift_world *h)
{
    h->now_ms = 10000000;
    lift_plugins_begin(h);
    lift_host_is(h);
    lift_shim_start(h);
}

/* Where nothing is published any more a claim that nobody has prepared has nobody to do so. */
static void drain(struct lift_world *h)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && !pod->deleting && k < pod->claims_len; k++) {
            const struct lw_claim *claim = &h->claims[pod->claims[k]];

            if (!claim->allocated || (!h->served && !claim->prepared))
                lift_pod_deleted(h, pod, false);
        }
    }
}

/* What no row says any more is published once more, so that the kubelet has whom to ask. */
static void put_back(struct lift_world *h)
{
    if (h->served || !h->rows_lost)
        return;
    h->resources[0].lifted = true;
    lift_shim_kill(h, false);
}

static void heal(struct lift_world *h)
{
    h->calm = true;
    put_back(h);
    lift_plugins_heal(h);
    drain(h);
    rest(h);
    if (!*h->w->broken)
        lift_judge_rest(h);
}

static void finish(struct lift_world *h)
{
    h->over = true;
    for (size_t i = 0; i < LW_PODS; i++) {
        if (h->pods[i].there && !h->pods[i].deleting)
            lift_pod_deleted(h, &h->pods[i], false);
    }
    rest(h);
    if (!*h->w->broken)
        lift_judge_end(h);
}

bool lift_world_run(struct world *w)
{
    struct lift_world *h;

    if (w->play.seed % SHARE != 0)
        return true;
    h = heap_alloc(1, sizeof *h);
    h->w = w;
    h->rng = (struct rng){.state = w->play.seed};
    rng_mix(&h->rng, UINT64_MAX - 4); /* no other's stream */
    begin(h);
    for (size_t step = 0; step < STEPS && !*w->broken; step++)
        happen(h);
    if (!*w->broken)
        heal(h);
    if (!*w->broken)
        finish(h);
    if (*w->broken)
        lift_note(h, "%s", w->broken);
    lift_shim_end(h);
    lift_api_fini(h);
    free(h);
    return !*w->broken;
}
