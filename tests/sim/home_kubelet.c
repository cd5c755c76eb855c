/*
 * The kubelet's calls for claims: of the shim, or of a driver that has registered with it itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/home_world.h"

/* It waits no longer. */
#define PATIENCE_MS 45000
/* Where a driver is at both places it is asked where it registered last, mostly. */
#define THERE_PERCENT 70

size_t home_claim_find(const char *uid)
{
    return (size_t)strtoul(uid + 1, NULL, 10);
}

static void is_prepared(struct home_world *h, size_t claim, unsigned device, bool by_shim)
{
    struct hw_claim *is = &h->claims[claim];

    is->prepared = is->has = true;
    is->given = device;
    is->books |= 1U << device; /* as one up to 1.36.2: what it was told before stays */
    is->ours = by_shim ? is->ours | 1U << device : 0;
    is->by_shim = by_shim;
    if (by_shim)
        is->astray = false;
}

/* Its books have it no more, and the cluster may give its devices to others. */
static void is_unprepared(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];

    is->prepared = is->has = is->in_books = is->by_shim = false;
    is->books = is->ours = 0;
    if (is->life != HW_LEAVING)
        return;
    is->life = HW_GONE;
    is->allocated = false;
}

/* ---- of the shim ---- */

/* Nothing was sent since the driver's last answer, which the shim has. */
static bool knows_answer(const struct home_world *h, size_t claim)
{
    struct hw_row row = home_shim_row(h, claim);

    return home_shim_is_stored(h) && !row.unanswered && strcmp(row.state, "prepared") == 0;
}

static void ask_shim(struct home_world *h, size_t claim, bool prepare, struct devicemgr_batch batch)
{
    struct hw_claim *is = &h->claims[claim];
    char uid[16];
    const struct devicemgr_claim names = {.pod_namespace = "ns", .name = uid, .uid = uid};
    const char *driver = home_driver_name(is->driver);

    snprintf(uid, sizeof uid, "c%zu", claim);
    is->asked = ++h->number;
    is->asks_prepare = prepare;
    is->asked_ms = h->now_ms;
    is->batch = batch.number;
    is->called = false;
    home_note(h, "the kubelet asks to %s %s, %" PRIu64, prepare ? "prepare" : "unprepare", uid,
              is->asked);
    is->alone = is->alone && (home_is_used(h, claim) || (!prepare && knows_answer(h, claim)));
    if (prepare) {
        is->told = false;
        devicemgr_claim_prepare(h->core, h->now_ms, is->asked, batch, driver, &names);
    } else {
        devicemgr_claim_unprepare(h->core, h->now_ms, is->asked, batch, driver, &names);
    }
}

void home_give_up(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];
    uint64_t number = is->asked;

    if (!number)
        return;
    is->asked = 0;
    home_note(h, "the kubelet gives %" PRIu64 " up", number);
    devicemgr_claim_cancelled(h->core, h->now_ms, number);
    home_shim_run(h);
}

void home_asked_expire(struct home_world *h)
{
    for (size_t i = 0; i < h->claims_len && !*h->w->broken; i++) {
        const struct hw_claim *is = &h->claims[i];

        if (is->asked && h->now_ms >= is->asked_ms + PATIENCE_MS)
            home_give_up(h, i);
    }
}

void home_claim_done(struct home_world *h, uint64_t number, const struct devicemgr_claim_done *done)
{
    size_t claim = 0;
    unsigned device = 0;
    bool shared;

    while (claim < h->claims_len && h->claims[claim].asked != number)
        claim++;
    check_that(h->w, claim < h->claims_len, "%" PRIu64 " is waited for when it is answered",
               number);
    if (claim == h->claims_len)
        return;
    home_note(h, "the kubelet is told of c%zu: %d %s", claim, done->code,
              done->message ? done->message : "");
    home_judge_done(h, claim, done);
    h->claims[claim].asked = 0;
    if (done->code != 0)
        return;
    if (!h->claims[claim].asks_prepare)
        is_unprepared(h, claim);
    else if (home_answer_read(done->response, done->response_bytes, &device, &shared))
        is_prepared(h, claim, device, !h->drivers[h->claims[claim].driver].moved);
}

/* ---- of whom ---- */

static void ask_driver(struct home_world *h, size_t claim, bool prepare)
{
    if (!home_driver_does(h, claim, prepare))
        return;
    if (prepare)
        is_prepared(h, claim, h->claims[claim].taken_device, false);
    else
        is_unprepared(h, claim);
}

/* It has written the claim down before. */
static void ask(struct home_world *h, size_t claim, bool prepare, struct devicemgr_batch batch)
{
    struct hw_claim *is = &h->claims[claim];
    const struct hw_driver *d = &h->drivers[is->driver];

    if (is->asked)
        return;
    is->in_books = true;
    is->let_go = is->let_go && !prepare;
    if (d->with_kubelet && (!d->bridged || rng_percent(&h->rng, THERE_PERCENT)))
        ask_driver(h, claim, prepare);
    else if (d->bridged)
        ask_shim(h, claim, prepare, batch);
}

void home_ask(struct home_world *h, const size_t *claims, size_t claims_len, bool prepare)
{
    uint64_t first = h->number;

    h->number += HW_DRIVERS;
    for (size_t i = 0; i < claims_len && !*h->w->broken; i++)
        ask(h, claims[i], prepare,
            (struct devicemgr_batch){first + h->claims[claims[i]].driver + 1, i});
    home_shim_run(h);
}

/* What it had asked for is over with its connections; what is prepared it does not remember. */
void home_kubelet_restarts(struct home_world *h)
{
    count_add(COUNT_HOME_KUBELET);
    home_note(h, "the kubelet restarts");
    for (size_t i = 0; i < h->claims_len; i++) {
        home_give_up(h, i);
        h->claims[i].prepared = false;
    }
    devicemgr_kubelet_started(h->core, h->now_ms);
    home_shim_run(h);
}
