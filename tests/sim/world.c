#include "tests/sim/world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/admission.h"
#include "tests/sim/check.h"
#include "tests/sim/coming.h"
#include "tests/sim/frail.h"
#include "tests/sim/hasty.h"
#include "tests/sim/move.h"
#include "tests/sim/promise.h"
#include "tests/sim/rival.h"

#define CHAOS_MS_MAX 2000
/* Time in which a node whose faults have stopped comes to rest; holds, graces and back-offs of the
 * faulty time end in it. */
#define REST_MS_MAX 900000
/* Then, after QUIET_MS and a list of the runtime, each pod has what it asked for so soon: a few
 * attempts of each of its containers, one after the other. */
#define CONTENT_MS_MAX 120000
#define QUIET_MS 30000

/* How often this was drawn for already at this time. */
static uint64_t drawn_before(struct world *w, uint64_t key)
{
    struct drawn *drawn = &w->drawn;
    uint64_t times = 0;

    if (drawn->ms != w->now_ms)
        *drawn = (struct drawn){.ms = w->now_ms};
    if (drawn->len == DRAWN_MAX)
        return drawn->more++;
    for (size_t i = 0; i < drawn->len; i++)
        times += drawn->keys[i] == key;
    drawn->keys[drawn->len++] = key;
    return times;
}

struct rng world_draw(struct world *w, enum draw what, uint64_t a, uint64_t b)
{
    struct rng rng = {w->play.seed};

    rng_mix(&rng, what);
    rng_mix(&rng, w->now_ms);
    rng_mix(&rng, a);
    rng_mix(&rng, b);
    rng_mix(&rng, drawn_before(w, rng.state));
    return rng;
}

void world_after(struct world *w, const struct rng *about, uint64_t delay_ms,
                 void (*fire)(struct world *w, uint64_t a, uint64_t b), uint64_t a, uint64_t b)
{
    timeline_add(
        &w->timeline,
        (struct event){
            .at_ms = w->now_ms + delay_ms, .order = about->state, .fire = fire, .a = a, .b = b});
}

void world_note(struct world *w, const char *format, ...)
{
    char *line;
    va_list args;
    int used;

    if (!w->play.recording && !w->play.verbose)
        return;
    line = w->journal[w->journal_len++ % JOURNAL_LINES];
    used = snprintf(line, JOURNAL_LINE_BYTES, "%9.3f ", (double)w->now_ms / 1000);
    va_start(args, format);
    vsnprintf(line + used, JOURNAL_LINE_BYTES - (size_t)used, format, args);
    va_end(args);
    if (w->play.verbose)
        puts(line);
}

void world_print_journal(const struct world *w)
{
    uint64_t from = w->journal_len > JOURNAL_LINES ? w->journal_len - JOURNAL_LINES : 0;

    for (uint64_t i = from; i < w->journal_len; i++)
        puts(w->journal[i % JOURNAL_LINES]);
}

/* ---- faults ---- */

static void store_trouble(struct world *w, struct rng *rng)
{
    w->store.mode = (enum store_mode)rng_below(rng, 3);
    world_note(w, "store: %s",
               w->store.mode == STORE_GOOD   ? "good"
               : w->store.mode == STORE_SLOW ? "slow"
                                             : "fails");
}

static void shim_trouble(struct world *w, struct rng *rng)
{
    uint64_t kind = rng_below(rng, 20);

    if (kind < 8)
        w->shim.crash_in = (unsigned)rng_between(rng, 1, 12);
    else if (kind < 12)
        shim_kill(w, false);
    else if (kind == 12)
        shim_kill(w, true);
    else if (kind < 15)
        shim_drain(w);
    else
        shim_confuse(w);
}

static void runtime_trouble(struct world *w, struct rng *rng)
{
    struct rt_sandbox *s = runtime_any_sandbox(w);

    switch (rng_below(rng, 14)) {
    case 10:
    case 11:
        if (s)
            runtime_orphan(w, s);
        break;
    case 12:
    case 13:
        if (s)
            runtime_flicker(w, s);
        break;
    case 0:
    case 1:
        runtime_restart(w);
        break;
    case 2:
        lister_stream_ends(w);
        break;
    case 3:
    case 4:
    case 5:
        rival_trouble(w);
        break;
    default:
        runtime_crash_one(w);
        break;
    }
}

static void trouble(struct world *w, struct rng *rng)
{
    uint64_t kind = rng_below(rng, 100);

    if (!w->shim.core)
        return;
    if (kind < 50)
        plugins_trouble(w, rng_below(rng, RESOURCES_LEN));
    else if (kind < 65)
        runtime_trouble(w, rng);
    else if (kind < 72)
        store_trouble(w, rng);
    else if (kind < 80)
        shim_trouble(w, rng);
    else if (kind < 88)
        kubelet_delete_one(w);
    else if (kind < 93)
        client_cancel_one(w);
    else if (kind < 95)
        publisher_sees(w);
    else if (kind < 97)
        admission_decide_anew(w);
    else if (kind < 98 && rng_percent(rng, 50))
        admission_edit(w);
    else if (kind < 98)
        bridge_give_up(w);
    else
        plugins_vanish(w, rng_below(rng, RESOURCES_LEN));
}

/* Every step of the faulty time may bring one, the later the likelier. */
static void chaos(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_CHAOS, 0, 0);

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    world_after(w, &rng, rng_between(&rng, 1, CHAOS_MS_MAX), chaos, 0, 0);
    if (rng_percent(&rng, 35))
        kubelet_add_pod(w);
    if (rng_percent(&rng, 10) && w->shim.core)
        bridge_ask(w);
    if (rng_percent(&rng, w->heat))
        trouble(w, &rng);
}

/* ---- time ---- */

static void step(struct world *w)
{
    uint64_t event_ms = timeline_next_ms(&w->timeline), tick_ms = shim_next_ms(w);
    uint64_t next_ms = event_ms < tick_ms ? event_ms : tick_ms;

    w->steps++;
    if (next_ms > w->now_ms)
        w->now_ms = next_ms;
    if (tick_ms <= w->now_ms) {
        shim_tick(w);
    } else {
        struct event event = timeline_take(&w->timeline);

        event.fire(w, event.a, event.b);
    }
}

static void run_faults(struct world *w)
{
    uint64_t start_ms = w->now_ms;

    w->faults = true;
    dra_init(w);
    hasty_begins(w);
    frail_begins(w);
    chaos(w, 0, 0);
    while (w->now_ms < start_ms + w->play.faults_ms && !w->broken[0]) {
        w->heat = 20 + (unsigned)(70 * (w->now_ms - start_ms) / w->play.faults_ms);
        step(w);
    }
}

static void stop_faults(struct world *w)
{
    w->faults = false;
    w->shim.crash_in = 0;
    w->store.mode = STORE_GOOD;
    world_note(w, "faults stop");
    operator_heals(w);
    admission_edits_end(w);
    kubelet_delete_unbegun(w);
    moves_end(w);
    plugins_heal(w);
    dra_heal(w);
}

/* Until `done`, or for `max_ms`. */
static void run_until(struct world *w, bool (*done)(struct world *w), uint64_t max_ms,
                      const char *what)
{
    uint64_t end_ms = w->now_ms + max_ms;
    char why[512];

    while (!w->broken[0] && w->now_ms < end_ms && !done(w))
        step(w);
    if (w->broken[0] || done(w))
        return;
    kubelet_content(w, why, sizeof why);
    check_that(w, false, "%s: %s", what, why);
}

static void run_for(struct world *w, uint64_t ms)
{
    uint64_t end_ms = w->now_ms + ms;

    while (!w->broken[0] && w->now_ms < end_ms && timeline_next_ms(&w->timeline) != UINT64_MAX)
        step(w);
}

static bool content(struct world *w)
{
    char why[512];

    return w->shim.core && !w->runtime.down && kubelet_content(w, why, sizeof why);
}

static bool empty(struct world *w)
{
    return w->shim.core && kubelet_empty(w);
}

static bool listed(struct world *w)
{
    return w->shim.core && !w->runtime.down && !w->runtime.unseen && !w->lister.listed;
}

/* What happened behind the shim's back, and by calls whose shim is gone, is told by a list. */
static void reveal(struct world *w)
{
    run_until(w, listed, REST_MS_MAX, "the runtime is listed");
}

static bool none_ends(struct world *w)
{
    return w->shim.core && kubelet_none_ends(w);
}

/* What a pod of before a reboot had may be kept for it so much longer. */
static uint64_t content_ms_max(struct world *w)
{
    return CONTENT_MS_MAX + (claims_returning(w) ? POD_COMES_MS : 0);
}

/* Pods that lack a device that is gone for good are made anew, once no kubelet counts as just
 * started: it is shown what there is, and nobody is stuck beside a device that is free. */
static void replace_stranded(struct world *w)
{
    run_for(w, w->shim.settings.mask_ms);
    if (w->broken[0] || !kubelet_replace_stranded(w))
        return;
    run_until(w, none_ends, REST_MS_MAX, "every pod that is deleted ends");
    for (size_t i = 0; i < PODS_MAX; i++)
        kubelet_add_pod(w);
    run_until(w, content, content_ms_max(w), "a pod made anew gets what is free");
}

static bool steered(struct world *w)
{
    return operator_is_done(w);
}

static void run_to_rest(struct world *w)
{
    uint64_t quiet_ms;

    stop_faults(w);
    if (w->runtime.forgot) { /* pods that were deleted meanwhile might come back for a time */
        run_until(w, none_ends, REST_MS_MAX, "every pod that is deleted ends");
        bridge_file_written(w); /* without them: one that it names may come back for an hour */
        bridge_report_later(w);
        run_for(w, POD_COMES_MS);
    }
    if (coming_any(w)) {
        count_add(COUNT_NEVER_CAME);
        run_for(w, POD_COMES_MS);
    }
    run_until(w, steered, REST_MS_MAX, "all that an operator has set is taken back");
    run_for(w, QUIET_MS);
    /* what is left of a pod may keep its devices from others for a time */
    run_until(w, none_ends, REST_MS_MAX, "every pod that is deleted ends");
    reveal(w);
    quiet_ms = w->now_ms;
    run_until(w, content, content_ms_max(w), "every pod gets what it asked for");
    w->rest_ms = w->now_ms - quiet_ms;
    if (!w->broken[0] && w->shim.core)
        shown_check_rest(w, false);
    replace_stranded(w);
    dra_end(w);
    run_until(w, dra_is_done, REST_MS_MAX, "every claim is unprepared");
    kubelet_drain(w);
    run_until(w, empty, REST_MS_MAX, "every pod ends");
    bridge_file_written(w); /* as with the next pod */
    bridge_report_later(w);
    run_for(w, QUIET_MS);
    if (w->shim.boot > 1)
        run_for(w, POD_COMES_MS); /* pods of before the last reboot may come back so long */
    reveal(w);
    run_for(w, QUIET_MS);
    if (!w->broken[0])
        check_nothing_left(w);
    if (!w->broken[0])
        shown_check_rest(w, true);
}

bool world_run(struct world *w, const struct play *play)
{
    memset(w, 0, offsetof(struct world, journal));
    w->journal_len = 0;
    w->play = *play;
    w->now_ms = 1000;
    plugins_init(w);
    moves_init(w);
    runtime_init(w);
    kubelet_init(w);
    shim_init(w);
    operator_init(w);
    releaser_init(w);
    for (size_t r = 0; r < RESOURCES_LEN; r++)
        plugin_start(w, &w->plugins[r]);
    run_faults(w);
    if (!w->broken[0])
        run_to_rest(w);
    return !w->broken[0];
}

void world_fini(struct world *w)
{
    shim_fini(w);
    plugins_fini(w);
    store_fini(&w->store);
    decisions_fini(&w->decisions);
    timeline_fini(&w->timeline);
}
