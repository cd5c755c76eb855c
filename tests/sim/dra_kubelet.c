/*
 * The kubelet's calls: claims that it wants prepared, and unprepared; it gives some of them up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/dra.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/world.h"

/* A kubelet waits no longer, mostly; now and then its call is cancelled, and some have no end. */
#define PATIENCE_MS 45000
#define CANCELLED_PERCENT 12
#define PATIENT_PERCENT 30
/* The shim has refused before that, or passes on what the driver is doing, which has as long. */
#define ANSWER_MS_MAX 95000
/* How often the same is asked twice at once. */
#define TWICE_PERCENT 5

size_t dra_claim_find(const char *uid)
{
    return (size_t)strtoul(uid + 1, NULL, 10);
}

struct devicemgr_claim dra_claim_names(size_t claim, char uid[16])
{
    snprintf(uid, 16, "c%zu", claim);
    return (struct devicemgr_claim){.pod_namespace = "ns", .name = uid, .uid = uid};
}

bool dra_uses(size_t claim, size_t driver)
{
    return claim % 3 == 2 || claim % 3 == driver;
}

static struct dra_asked *find(struct dra *dra, uint64_t number)
{
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        if (dra->asked[i].number == number)
            return &dra->asked[i];
    }
    return NULL;
}

bool dra_waits(const struct dra *dra, size_t claim, size_t driver, bool prepare)
{
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        const struct dra_asked *asked = &dra->asked[i];

        if (asked->number && asked->claim == claim && asked->driver == driver &&
            asked->prepare == prepare)
            return true;
    }
    return false;
}

static bool waits(const struct dra *dra, size_t claim, size_t driver)
{
    return dra_waits(dra, claim, driver, true) || dra_waits(dra, claim, driver, false);
}

static void give_up(struct world *w, struct dra_asked *asked)
{
    uint64_t number = asked->number;

    *asked = (struct dra_asked){0};
    world_note(w, "kubelet: gives %" PRIu64 " up", number);
    count_add(COUNT_DRA_CANCELLED);
    devicemgr_claim_cancelled(w->shim.core, shim_now_ms(w), number);
    shim_run(w);
}

static void expire(struct world *w, uint64_t number, uint64_t unused)
{
    struct dra_asked *asked = find(&w->dra, number);

    (void)unused;
    if (asked && w->shim.core)
        give_up(w, asked);
}

static uint64_t pick_patience_ms(const struct world *w, struct rng *rng)
{
    if (w->faults && rng_percent(rng, CANCELLED_PERCENT))
        return rng_delay_ms(rng, PATIENCE_MS);
    return rng_percent(rng, PATIENT_PERCENT) ? UINT64_MAX : PATIENCE_MS;
}

static void ask(struct world *w, size_t id, size_t driver, bool prepare, bool astray)
{
    struct dra_asked *asked = find(&w->dra, 0);
    struct rng rng = world_draw(w, DRAW_DRA_ASKS, id, 2 * driver + prepare);
    uint64_t patience_ms = pick_patience_ms(w, &rng);
    char uid[16];
    const struct devicemgr_batch alone = {0};
    struct devicemgr_claim claim = dra_claim_names(id, uid);

    if (!asked || !w->shim.core)
        return;
    *asked = (struct dra_asked){.number = ++w->dra.last_number,
                                .prepare = prepare,
                                .astray = astray,
                                .claim = id,
                                .driver = driver,
                                .since_ms = w->now_ms};
    world_note(w, "kubelet: %s %s of driver %zu, %" PRIu64 "%s", prepare ? "prepare" : "unprepare",
               uid, driver, asked->number, astray ? ", astray" : "");
    if (patience_ms != UINT64_MAX)
        world_after(w, &rng, patience_ms, expire, asked->number, 0);
    if (prepare)
        devicemgr_claim_prepare(w->shim.core, shim_now_ms(w), asked->number, alone,
                                dra_driver_name(driver), &claim);
    else
        devicemgr_claim_unprepare(w->shim.core, shim_now_ms(w), asked->number, alone,
                                  dra_driver_name(driver), &claim);
    shim_run(w);
}

static void check_in_time(struct world *w, size_t id)
{
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        const struct dra_asked *asked = &w->dra.asked[i];

        check_that(
            w, !asked->number || asked->claim != id || w->now_ms <= asked->since_ms + ANSWER_MS_MAX,
            "c%zu is answered in time: %" PRIu64, id, asked->number);
    }
}

bool dra_ask(struct world *w, size_t id)
{
    struct rng rng = world_draw(w, DRAW_DRA_CLAIM, id, 0);
    const struct dra_claim *claim = &w->dra.claims[id];
    bool done = true;

    check_in_time(w, id);
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (!dra_uses(id, d) || claim->done[d])
            continue;
        done = false;
        if (!waits(&w->dra, id, d) || rng_percent(&rng, TWICE_PERCENT))
            ask(w, id, d, claim->life == DRA_WANTED, false);
    }
    return done;
}

void dra_ask_astray(struct world *w, size_t id)
{
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (dra_uses(id, d) && !waits(&w->dra, id, d))
            ask(w, id, d, false, true);
    }
}

void dra_give_up(struct world *w, size_t id)
{
    for (size_t i = 0; i < DRA_ASKED_MAX && w->shim.core; i++) {
        if (w->dra.asked[i].number && w->dra.asked[i].claim == id)
            give_up(w, &w->dra.asked[i]);
    }
}

void dra_set_life(struct world *w, size_t id, enum dra_life life)
{
    struct dra_claim *claim = &w->dra.claims[id];

    claim->life = life;
    memset(claim->done, 0, sizeof claim->done);
    if (life != DRA_WANTED) {
        memset(claim->has, 0, sizeof claim->has);
        memset(claim->had, 0, sizeof claim->had);
    }
}

void dra_claim_done(struct world *w, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct dra_asked *asked = find(&w->dra, number);
    struct dra_answer answer;
    struct dra_claim *claim;
    struct dra_asked is;

    check_that(w, asked, "%" PRIu64 " is waited for when it is answered", number);
    if (!asked)
        return;
    is = *asked;
    *asked = (struct dra_asked){0};
    claim = &w->dra.claims[is.claim];
    world_note(w, "kubelet: %" PRIu64 " of c%zu: %d %s", number, is.claim, done->code,
               done->message ? done->message : "");
    dra_judge(w, &is, done);
    if (done->code != 0)
        return;
    if (is.prepare && dra_answer_read(done, &answer)) {
        claim->had[is.driver] = claim->has[is.driver];
        claim->has[is.driver] = answer.version;
        claim->given[is.driver] = answer.device;
    }
    if (is.astray) { /* it has forgotten it */
        claim->done[is.driver] = false;
        claim->has[is.driver] = claim->had[is.driver] = 0;
    } else if (is.prepare == (claim->life == DRA_WANTED))
        claim->done[is.driver] = true;
}
