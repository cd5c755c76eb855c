/*
 * Wiping the slices of drivers that are away: what the daemon orders by what the core says of them,
 * what the agent makes of it, and the judge of both. The daemon looks at the drivers when the core
 * says that they have changed, and when one is due; the judge looks at the drivers themselves.
 */
#include <inttypes.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/world.h"

#define WIPE_AFTER_MS 30000
/* Until what is due is ordered: the core is told of some events a moment later than they are. */
#define LATE_MS 10
#define TRIED_MS_MAX 4000
#define REFUSED_PERCENT 40
#define TOLD_MS_MAX 3000

static void look(struct world *w);

static size_t find(const char *name)
{
    size_t driver = 0;

    while (driver < DRA_DRIVERS - 1 && strcmp(dra_driver_name(driver), name) != 0)
        driver++;
    return driver;
}

/* ---- the agent ---- */

/* The answer comes; the order may have been taken back. */
static void told(struct world *w, uint64_t driver, uint64_t order)
{
    struct dra_wipe *wipe = &w->dra.wipes[driver];

    if (!w->shim.core || !wipe->ordered || wipe->order != order)
        return;
    check_that(w, !wipe->wiped, "the slices of driver %" PRIu64 " are wiped once", driver);
    wipe->ordered = false;
    wipe->wiped = true;
    count_add(COUNT_DRA_WIPED);
    devicemgr_driver_wiped(w->shim.core, shim_now_ms(w), dra_driver_name(driver));
    shim_run(w);
}

/* It is tried for ever, while it stands. */
static void attempt(struct world *w, uint64_t driver, uint64_t order)
{
    struct rng rng = world_draw(w, DRAW_DRA_WIPED, driver, order);
    struct dra_wipe *wipe = &w->dra.wipes[driver];

    if (!w->shim.core || !wipe->ordered || wipe->order != order)
        return;
    if (!w->dra.cluster.agent || w->dra.cluster.away ||
        (w->faults && rng_percent(&rng, REFUSED_PERCENT))) {
        count_add(COUNT_DRA_WIPE_REFUSED);
        world_after(w, &rng, rng_between(&rng, 1, TRIED_MS_MAX), attempt, driver, order);
        return;
    }
    check_that(w, !dra_driver_there(&w->dra.drivers[driver]),
               "no slice is wiped of driver %" PRIu64 ", which is back", driver);
    world_note(w, "agent: wipes the slices of driver %" PRIu64, driver);
    if (driver == 0)
        dra_unpublish(w);
    world_after(w, &rng, rng_delay_ms(&rng, TOLD_MS_MAX) + 1, told, driver, order);
}

/* ---- the daemon ---- */

struct look {
    struct world *w;
    uint64_t next_ms;
};

static void order(struct world *w, size_t driver)
{
    struct rng rng = world_draw(w, DRAW_DRA_WIPED, driver, 0);
    struct dra_wipe *wipe = &w->dra.wipes[driver];

    world_note(w, "shim: the slices of driver %zu are to be wiped", driver);
    check_that(w,
               !dra_driver_there(&w->dra.drivers[driver]) && !wipe->wiped &&
                   w->now_ms >= wipe->away_ms + WIPE_AFTER_MS,
               "driver %zu is to be wiped once, and so long after it has gone", driver);
    wipe->ordered = true;
    wipe->order = ++w->dra.last_number;
    world_after(w, &rng, rng_between(&rng, 1, TRIED_MS_MAX), attempt, driver, wipe->order);
}

static void on_each(void *user, const struct devicemgr_driver *driver)
{
    struct look *looked = user;
    struct world *w = looked->w;
    uint64_t due_ms = driver->away_ms + WIPE_AFTER_MS;
    struct dra_wipe *wipe = &w->dra.wipes[find(driver->name)];

    if (driver->connected && wipe->ordered) {
        wipe->ordered = false;
        count_add(COUNT_DRA_WIPE_CANCELLED);
    }
    if (driver->connected || driver->wiped || wipe->ordered)
        return;
    if (shim_now_ms(w) >= due_ms)
        order(w, find(driver->name));
    else if (due_ms < looked->next_ms)
        looked->next_ms = due_ms;
}

static void due(struct world *w, uint64_t incarnation, uint64_t unused)
{
    (void)unused;
    if (shim_lives(w, incarnation))
        look(w);
}

static void look(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_WIPED, DRA_DRIVERS, 0);
    struct look looked = {.w = w, .next_ms = UINT64_MAX};

    devicemgr_drivers(w->shim.core, on_each, &looked);
    if (looked.next_ms != UINT64_MAX)
        world_after(w, &rng, looked.next_ms - shim_now_ms(w), due, w->shim.incarnation, 0);
}

/* ---- the judge ---- */

void dra_wipe_note(struct world *w, size_t driver)
{
    struct dra_wipe *wipe = &w->dra.wipes[driver];

    bool there = dra_driver_there(&w->dra.drivers[driver]);

    if (there)
        wipe->away_ms = 0;
    else if (!wipe->away_ms || !wipe->known)
        wipe->away_ms = w->now_ms;
    wipe->wiped = wipe->wiped && !there;
    wipe->known = wipe->known || w->dra.drivers[driver].instance != 0;
}

static bool row_says_wiped(const struct store_row *row)
{
    Checkpoint__V1__Driver *is =
        checkpoint__v1__driver__unpack(NULL, row->record.value_bytes, row->record.value);
    bool wiped = is && is->wiped;

    checkpoint__v1__driver__free_unpacked(is, NULL);
    return wiped;
}

/* What is to be remembered has a row, as soon as it can. */
static void check_row(struct world *w, size_t driver)
{
    const struct dra_wipe *wipe = &w->dra.wipes[driver];
    const struct store_row *row =
        store_find(&w->store, DEVICEMGR_RECORD_DRIVER, dra_driver_name(driver), "", "");

    if (w->shim.run_later || w->store.commit || w->store.failed_ms || !row)
        return;
    check_that(w, row_says_wiped(row) == wipe->wiped,
               "the row of driver %zu says whether its slices were wiped", driver);
}

/* What the rows say counts; one that is not back counts as lost now. */
void dra_wipes_shim_started(struct world *w)
{
    w->dra.drivers_version = 0;
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        struct dra_wipe *wipe = &w->dra.wipes[d];
        const struct store_row *row =
            store_find(&w->store, DEVICEMGR_RECORD_DRIVER, dra_driver_name(d), "", "");

        wipe->known = row;
        wipe->away_ms = w->now_ms;
        wipe->wiped = row && row_says_wiped(row);
    }
}

void dra_wipes_shim_gone(struct world *w)
{
    for (size_t d = 0; d < DRA_DRIVERS; d++)
        w->dra.wipes[d] = (struct dra_wipe){0};
}

void dra_wipes_check(struct world *w)
{
    if (devicemgr_drivers_version(w->shim.core) != w->dra.drivers_version) {
        w->dra.drivers_version = devicemgr_drivers_version(w->shim.core);
        look(w);
    }
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        const struct dra_wipe *wipe = &w->dra.wipes[d];
        bool there = dra_driver_there(&w->dra.drivers[d]);

        if (wipe->known)
            check_row(w, d);
        check_that(w, !wipe->ordered || !there, "what is to be wiped of driver %zu is taken back",
                   d);
        check_that(w,
                   there || wipe->ordered || wipe->wiped || !wipe->known ||
                       w->now_ms <= wipe->away_ms + WIPE_AFTER_MS + LATE_MS,
                   "driver %zu, which is away, is wiped", d);
    }
}
