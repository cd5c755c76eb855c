#include "tests/sim/releaser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/operator.h"
#include "tests/sim/check.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define ACTS_MS_MAX 5000
#define DRY_PERCENT 20
/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5

bool releaser_takes(const struct world *w, unsigned uid)
{
    return w->releaser.number && !w->releaser.dry && w->releaser.uid == uid;
}

bool releaser_took(const struct world *w, unsigned uid)
{
    return w->releaser.asked[uid % RELEASER_UIDS_MAX];
}

void releaser_note_create(struct world *w, unsigned uid)
{
    w->releaser.created = w->releaser.created || w->releaser.uid == uid;
}

/* What the pod has is its own no more, or may not be: nobody is judged by it. */
static void forget_claims(struct world *w, unsigned uid)
{
    w->releaser.asked[uid % RELEASER_UIDS_MAX] = true;
    claims_forget_all(w, uid, RESOURCES_LEN);
    client_disturb(w, uid);
}

/* ---- acting ---- */

static unsigned any_pod(const struct world *w, struct rng *rng)
{
    unsigned uids[CLAIMS_MAX];
    size_t len = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        if (w->claims.v[i].uid)
            uids[len++] = w->claims.v[i].uid;
    }
    return len > 0 ? uids[rng_below(rng, len)] : 0;
}

static void ask(struct world *w, struct rng *rng)
{
    struct releaser *releaser = &w->releaser;
    unsigned uid = any_pod(w, rng);
    char name[16];

    if (!uid || releaser->number || !w->shim.core)
        return;
    releaser->number = RELEASER_NUMBERS + ++releaser->last_number;
    releaser->uid = uid;
    releaser->dry = rng_percent(rng, DRY_PERCENT);
    releaser->asked_ms = w->now_ms;
    releaser->created = false;
    if (!releaser->dry)
        forget_claims(w, uid);
    snprintf(name, sizeof name, "u%u", uid);
    world_note(w, "operator: %" PRIu64 ", %s what %s has", releaser->number,
               releaser->dry ? "would release" : "releases", name);
    devicemgr_release(w->shim.core, shim_now_ms(w), releaser->number, name, "", releaser->dry);
    shim_run(w);
}

static void acts(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_RELEASE, 0, 0);

    (void)a;
    (void)b;
    if (!w->faults)
        return;
    check_that(w,
               !w->releaser.number || w->now_ms <= w->releaser.asked_ms + RELEASE_LIST_MS +
                                                       2 * STORE_SLOW_MS_MAX + LATE_MS,
               "a release comes to an end");
    world_after(w, &rng, rng_between(&rng, 1, ACTS_MS_MAX), acts, 0, 0);
    ask(w, &rng);
}

/* In other worlds than operator.c: what that one's judge knows of who has what is not told of
 * this. */
void releaser_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_RELEASE, 1, 0);

    if (!w->play.unsteered && (w->play.seed % 8 == 5 || w->play.seed % 8 == 6))
        world_after(w, &rng, ACTS_MS_MAX, acts, 0, 0);
}

void releaser_shim_started(struct world *w)
{
    w->releaser.number = 0;
}

/* ---- what becomes of it ---- */

static size_t rows_of(const struct world *w, unsigned uid)
{
    char name[16];
    size_t len = 0;

    snprintf(name, sizeof name, "u%u", uid);
    for (const struct store_row *row = w->store.rows; row; row = row->next)
        len += row->record.kind == DEVICEMGR_RECORD_ALLOCATION &&
               strcmp(row->record.key[0], name) == 0;
    return len;
}

/* By its tokens: what came without one is the kubelet's to give, and to take. */
static bool has_any(const struct rt_container *c)
{
    unsigned mask = 0;

    for (size_t r = 0; r < RESOURCES_LEN; r++)
        mask |= c->noted[r];
    return mask != 0;
}

static void check_released(struct world *w, const struct releaser *was)
{
    unsigned uid = was->uid;

    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        check_that(w,
                   !runtime_live(c) || c->uid != uid || !has_any(c) || c->made_ms >= was->asked_ms,
                   "a pod is released only if no container runs with them: c%u of u%u", c->id, uid);
    }
    check_that(w,
               w->store.reset || rows_of(w, uid) == 0 || runtime_runs(w, uid) || was->created ||
                   client_find_of(w, uid, POD_CONTAINERS_MAX),
               "what is released is so in the store: u%u", uid);
    count_add(COUNT_RELEASED);
}

/* Whether something may be in the way, as far as the shim can know. */
static bool may_be_there(struct world *w, unsigned uid)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        if (w->claims.v[i].uid == uid && w->claims.v[i].unsure_ms > 0)
            return true;
    }
    return !over_listed_as_ended(w, uid) || client_find_of(w, uid, POD_CONTAINERS_MAX) ||
           runtime_may_start_one(w, uid);
}

static void check_refused(struct world *w, const struct releaser *was,
                          const struct devicemgr_steered *steered)
{
    switch (steered->code) {
    case CODE_NOT_FOUND:
        check_that(w, w->now_ms <= was->asked_ms + LATE_MS, "who has nothing is told so at once");
        break;
    case CODE_FAILED_PRECONDITION:
        if (strstr(steered->message, "does not say what runs")) {
            check_that(w, w->now_ms >= was->asked_ms + RELEASE_LIST_MS,
                       "the runtime's word on a release is waited for");
            break;
        }
        check_that(w, w->shim.draining || w->shim.late || may_be_there(w, was->uid),
                   "a release is refused for a reason: u%u, %s", was->uid, steered->message);
        count_add(COUNT_RELEASE_REFUSED);
        break;
    default:
        check_that(w,
                   steered->code == CODE_ABORTED && w->store.failed_ms > 0 &&
                       w->store.failed_ms + LATE_MS >= w->now_ms,
                   "a release that is not stored is told when the store has failed: %d, %s",
                   steered->code, steered->message);
    }
}

void releaser_answered(struct world *w, uint64_t number, const struct devicemgr_steered *steered)
{
    const struct releaser was = w->releaser;

    world_note(w, "shim: operator %" PRIu64 ": %d, %s", number, steered->code, steered->message);
    check_that(w, number == was.number, "a release is answered once: %" PRIu64, number);
    w->releaser.number = 0;
    if (steered->code != 0) {
        check_refused(w, &was, steered);
    } else if (!was.dry) {
        forget_claims(w, was.uid);
        check_released(w, &was);
    }
}
