#include "tests/sim/home_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/heap.h"

#define STEPS 1000
#define REST_STEPS 150
#define REST_STEP_MS 3000
/* So often the runtime is listed unasked. */
#define LIST_STEPS 20
#define WATCHED_PERCENT 80
#define LOSSY_PERCENT 33

void home_note(const struct home_world *h, const char *format, ...)
{
    va_list args;

    if (!h->w->play.verbose)
        return;
    printf("%12.3f homes: ", (double)h->now_ms / 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* ---- what happens ---- */

static struct hw_op *any_op(struct home_world *h)
{
    size_t from = rng_below(&h->rng, HW_OPS);

    for (size_t i = 0; i < HW_OPS; i++) {
        struct hw_op *op = &h->ops[(from + i) % HW_OPS];

        if (op->call)
            return op;
    }
    return NULL;
}

static void ops_proceed(struct home_world *h)
{
    struct hw_op *op = any_op(h);

    if (h->joined && op && !op->prepare && op->looks == HW_SENT)
        home_pods_come_first(h, op->claim);
    if (op && op->call && !*h->w->broken)
        home_op_proceeds(h, op);
}

static void list_goes_on(struct home_world *h)
{
    if (h->listing)
        home_list_ends(h);
    else if (h->list_wanted || h->slow) /* where it is polled for */
        home_list_begins(h);
}

static void bridges(struct home_world *h)
{
    for (size_t d = 0; d < HW_DRIVERS; d++)
        home_driver_is_bridged(h, d);
}

static void shim_or_kubelet_restarts(struct home_world *h)
{
    if (rng_percent(&h->rng, h->lossy ? 80 : 40))
        home_shim_kill(h);
    else if (rng_percent(&h->rng, 40))
        home_kubelet_restarts(h);
}

static void files_are_lost(struct home_world *h)
{
    home_note(h, "the files of CDI are lost");
    for (size_t i = 0; i < h->claims_len; i++)
        h->claims[i].file_lost = true;
}

static void happen(struct home_world *h)
{
    struct hw_pod *pod = &h->pods[rng_below(&h->rng, HW_PODS)];
    uint64_t what = rng_below(&h->rng, 100);

    if (h->loses_files && rng_percent(&h->rng, 1))
        files_are_lost(h);
    if (what < 30)
        home_pod_proceeds(h, pod);
    else if (what < (h->lossy ? 36 : 33))
        home_pod_trouble(h, pod);
    else if (what < (h->lossy ? 40 : 37))
        home_pod_comes(h);
    else if (what < 54)
        home_shim_commit_ends(h, rng_percent(&h->rng, 6));
    else if (what < 70)
        ops_proceed(h);
    else if (what < 72)
        home_driver_acts(h, rng_below(&h->rng, HW_DRIVERS));
    else if (what < 75)
        home_drivers_are_sought(h);
    else if (what < 80)
        bridges(h);
    else if (what < 88)
        home_agent_acts(h);
    else if (what < 92)
        list_goes_on(h);
    else if (what < 93)
        shim_or_kubelet_restarts(h);
    else
        home_shim_pass(h, rng_delay_ms(&h->rng, 10000));
}

/* ---- and then ---- */

static bool is_done(const struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        if (h->pods[i].there && (h->over || h->pods[i].deleting || h->pods[i].state != HW_RUNS))
            return false;
    }
    for (size_t i = 0; h->over && i < h->claims_len; i++) {
        if (h->claims[i].taken || home_shim_row(h, i).there)
            return false;
    }
    return true;
}

/* Until nobody is to do anything. */
static void settle(struct home_world *h)
{
    struct hw_op *op = any_op(h);

    while (!*h->w->broken && (h->commit || op)) {
        home_shim_commit_ends(h, false);
        if (op && !*h->w->broken)
            home_op_proceeds(h, op);
        op = any_op(h);
    }
}

static void rest_step(struct home_world *h)
{
    settle(h);
    home_drivers_are_sought(h);
    settle(h);
    bridges(h);
    home_agent_heals(h);
    list_goes_on(h);
    list_goes_on(h);
    for (size_t i = 0; i < HW_PODS && !*h->w->broken; i++)
        home_pod_proceeds(h, &h->pods[i]);
    home_shim_pass(h, REST_STEP_MS);
}

static void rest(struct home_world *h)
{
    for (size_t step = 0; step < REST_STEPS && !*h->w->broken && !is_done(h); step++) {
        h->list_wanted = h->list_wanted || step % LIST_STEPS == 0; /* it is polled for at times */
        rest_step(h);
    }
}

static void begin(struct home_world *h)
{
    h->now_ms = 10000000;
    h->slow = h->w->play.seed % 4 == 3;
    h->loses_files = h->w->play.seed % 16 == 13;
    h->joined = h->w->play.seed % 16 == 5 || h->loses_files;
    h->lossy = rng_percent(&h->rng, LOSSY_PERCENT);
    h->watched = h->agent = rng_percent(&h->rng, WATCHED_PERCENT);
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        struct hw_driver *driver = &h->drivers[d];

        driver->stays = rng_percent(&h->rng, h->lossy ? 80 : 45) || h->joined;
        driver->same_names = rng_percent(&h->rng, 50);
        driver->shares_said = rng_percent(&h->rng, 50);
        driver->fails_percent = rng_percent(&h->rng, h->lossy ? 50 : 30) ? 60 : 10;
    }
    home_parts_begin(h);
    home_shim_start(h);
}

static void heal(struct home_world *h)
{
    h->calm = true;
    for (size_t d = 0; d < HW_DRIVERS && !*h->w->broken; d++)
        home_driver_heals(h, d, rng_percent(&h->rng, 50));
    rest(h);
    if (!*h->w->broken)
        home_judge_rest(h);
}

static void finish(struct home_world *h)
{
    h->over = true;
    for (size_t i = 0; i < HW_PODS; i++) {
        if (h->pods[i].there)
            home_pod_deleted(h, &h->pods[i], false);
    }
    rest(h);
    if (!*h->w->broken)
        home_judge_end(h);
}

bool home_world_run(struct world *w)
{
    struct home_world *h = heap_alloc(1, sizeof *h);

    h->w = w;
    h->rng = (struct rng){.state = w->play.seed};
    rng_mix(&h->rng, UINT64_MAX - 3); /* no other's stream */
    begin(h);
    for (size_t step = 0; step < STEPS && !*w->broken; step++)
        happen(h);
    if (!*w->broken)
        heal(h);
    if (!*w->broken)
        finish(h);
    if (*w->broken)
        home_note(h, "%s", w->broken);
    home_shim_end(h);
    free(h);
    return !*w->broken;
}
