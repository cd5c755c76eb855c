/*
 * The kubelet's part: pods with claims come and go; and the judge of what it is told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/world.h"

#define STEP_MS_MAX 6000
#define COMES_MS_MAX 4000
/* A kubelet gives up after 45 s. */
#define PATIENCE_MS 45000
/* The shim has refused before that, or passes on what the driver is doing, which has as long. */
#define ANSWER_MS_MAX 95000
#define WORLDS 3

static bool uses(size_t claim, size_t driver)
{
    return claim % 3 == 2 || claim % 3 == driver;
}

static struct devicemgr_claim names_of(size_t claim, char uid[16])
{
    snprintf(uid, 16, "c%zu", claim);
    return (struct devicemgr_claim){.pod_namespace = "ns", .name = uid, .uid = uid};
}

/* ---- what it waits for ---- */

static struct dra_asked *find(struct dra *dra, uint64_t number)
{
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        if (dra->asked[i].number == number)
            return &dra->asked[i];
    }
    return NULL;
}

static size_t waits(struct dra *dra, size_t claim, size_t driver)
{
    size_t len = 0;

    for (size_t i = 0; i < DRA_ASKED_MAX; i++)
        len +=
            dra->asked[i].number && dra->asked[i].claim == claim && dra->asked[i].driver == driver;
    return len;
}

static void ask(struct world *w, size_t id, size_t driver)
{
    bool prepare = w->dra.claims[id].life == DRA_WANTED;
    struct dra_asked *asked = find(&w->dra, 0);
    char uid[16];
    struct devicemgr_claim claim = names_of(id, uid);

    if (!asked || !w->shim.core)
        return;
    *asked = (struct dra_asked){++w->dra.last_number, prepare, id, driver, w->now_ms};
    world_note(w, "kubelet: %s %s of driver %zu, %" PRIu64, prepare ? "prepare" : "unprepare", uid,
               driver, asked->number);
    if (prepare)
        devicemgr_claim_prepare(w->shim.core, shim_now_ms(w), asked->number,
                                dra_driver_name(driver), &claim);
    else
        devicemgr_claim_unprepare(w->shim.core, shim_now_ms(w), asked->number,
                                  dra_driver_name(driver), &claim);
    shim_run(w);
}

static void give_up(struct world *w, struct dra_asked *asked)
{
    uint64_t number = asked->number;

    *asked = (struct dra_asked){0};
    world_note(w, "kubelet: gives %" PRIu64 " up", number);
    devicemgr_claim_cancelled(w->shim.core, shim_now_ms(w), number);
    shim_run(w);
}

/* Those of the claim whose time is over, or (`all`) any. */
static void give_up_late(struct world *w, size_t id, bool all)
{
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        struct dra_asked *asked = &w->dra.asked[i];

        if (!w->shim.core || !asked->number || asked->claim != id)
            continue;
        check_that(w, w->now_ms <= asked->since_ms + ANSWER_MS_MAX,
                   "c%zu is answered in time: %" PRIu64, id, asked->number);
        if (all)
            give_up(w, asked);
    }
}

/* ---- pods ---- */

static bool all_done(const struct dra *dra, size_t id)
{
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (uses(id, d) && !dra->claims[id].done[d])
            return false;
    }
    return true;
}

static void set_life(struct world *w, size_t id, enum dra_life life)
{
    w->dra.claims[id].life = life;
    memset(w->dra.claims[id].done, 0, sizeof w->dra.claims[id].done);
}

static void lives(struct world *w, size_t id, struct rng *rng)
{
    struct dra_claim *claim = &w->dra.claims[id];

    if (all_done(&w->dra, id) && claim->life == DRA_LEAVING)
        claim->life = DRA_GONE;
    else if (claim->life == DRA_WANTED && (w->dra.over || rng_percent(rng, 20)))
        set_life(w, id, DRA_LEAVING);
    else if (claim->life == DRA_WANTED && all_done(&w->dra, id) && rng_percent(rng, 30))
        set_life(w, id, DRA_WANTED); /* another sandbox */
}

static void step(struct world *w, uint64_t id, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_DRA_CLAIM, id, 0);
    enum dra_life before = w->dra.claims[id].life;

    (void)unused;
    lives(w, id, &rng);
    if (w->dra.claims[id].life == DRA_GONE)
        return;
    world_after(w, &rng, rng_between(&rng, 1, STEP_MS_MAX), step, id, 0);
    if (!w->shim.core)
        return;
    give_up_late(w, id, w->dra.claims[id].life != before || (w->faults && rng_percent(&rng, 5)));
    for (size_t d = 0; d < DRA_DRIVERS && w->shim.core; d++) {
        size_t waiting = waits(&w->dra, id, d);

        if (uses(id, d) && !w->dra.claims[id].done[d] && (waiting == 0 || rng_percent(&rng, 5)))
            ask(w, id, d);
    }
}

static void comes(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_DRA_COMES, 0, 0);

    (void)a;
    (void)b;
    if (!w->faults || w->dra.claims_len == DRA_CLAIMS_MAX)
        return;
    world_after(w, &rng, rng_between(&rng, 1, COMES_MS_MAX), comes, 0, 0);
    w->dra.claims[w->dra.claims_len].life = DRA_WANTED;
    step(w, w->dra.claims_len++, 0);
}

void dra_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_COMES, 0, 1);

    w->dra.there = w->play.seed % WORLDS == 1 && !w->play.decisions;
    if (!w->dra.there)
        return;
    dra_drivers_init(w);
    world_after(w, &rng, 1, comes, 0, 0);
}

void dra_end(struct world *w)
{
    w->dra.over = true;
}

bool dra_is_done(struct world *w)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        if (w->dra.claims[i].life != DRA_GONE)
            return false;
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            if (w->dra.claims[i].truth[d].prepared)
                return false;
        }
    }
    return w->shim.core && store_count(&w->store, DEVICEMGR_RECORD_CLAIM) == 0;
}

void dra_check_nothing_left(struct world *w)
{
    check_that(w, store_count(&w->store, DEVICEMGR_RECORD_CLAIM) == 0, "no claim is left");
}

/* ---- the cluster ---- */

static void tell_allocation(struct world *w, uint64_t incarnation, uint64_t id)
{
    char name[16], uid[16];
    struct devicemgr_claim_device devices[DRA_DRIVERS];
    size_t len = 0;

    if (!shim_lives(w, incarnation))
        return;
    names_of(id, uid);
    snprintf(name, sizeof name, "g%" PRIu64, id);
    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (uses(id, d))
            devices[len++] = (struct devicemgr_claim_device){
                .driver = dra_driver_name(d), .pool = id % 2 ? "pool1" : "pool0", .device = name};
    }
    devicemgr_claim_allocation(w->shim.core, shim_now_ms(w), uid, true, devices, len);
    shim_run(w);
}

void dra_look(struct world *w, const struct devicemgr_claim *claim)
{
    size_t id = dra_claim_find(claim->uid);
    struct rng rng = world_draw(w, DRAW_DRA_LOOKS, id, 0);

    if (rng_percent(&rng, 60))
        world_after(w, &rng, rng_delay_ms(&rng, 5000) + 1, tell_allocation, w->shim.incarnation,
                    id);
}

/* ---- what it is told ---- */

/* Whether the durable row is in this state, with this answer. */
static bool row_says(struct world *w, const struct dra_asked *asked, const char *state,
                     const struct devicemgr_claim_done *done)
{
    char uid[16];
    const struct devicemgr_claim names = names_of(asked->claim, uid);
    const struct store_row *row = store_find(&w->store, DEVICEMGR_RECORD_CLAIM, names.uid,
                                             dra_driver_name(asked->driver), "");
    Checkpoint__V1__Claim *is;
    bool says;

    if (!row)
        return false;
    is = checkpoint__v1__claim__unpack(NULL, row->record.value_bytes, row->record.value);
    says = is && strcmp(is->state, state) == 0 &&
           (!done || (is->response.len == done->response_bytes &&
                      memcmp(is->response.data, done->response, done->response_bytes) == 0));
    checkpoint__v1__claim__free_unpacked(is, NULL);
    return says;
}

static unsigned version_of(const struct devicemgr_claim_done *done)
{
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, done->response_bytes, done->response);
    unsigned version = 0;

    if (message && message->n_devices == 1 && message->devices[0]->n_cdi_device_ids == 1)
        version = (unsigned)strtoul(message->devices[0]->cdi_device_ids[0] + 1, NULL, 10);
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
    return version;
}

static void check_prepared(struct world *w, const struct dra_asked *asked,
                           const struct devicemgr_claim_done *done, const char *uid)
{
    const struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];

    check_that(w, truth->prepared && !truth->owed && truth->version == version_of(done),
               "%s is prepared by driver %zu as the kubelet is told", uid, asked->driver);
    check_that(w, row_says(w, asked, "prepared", done),
               "%s has a row that says what the kubelet is told", uid);
    if (!dra_driver_there(&w->dra.drivers[asked->driver]))
        count_add(COUNT_DRA_CACHED);
}

static void check_unprepared(struct world *w, const struct dra_asked *asked, const char *uid)
{
    struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];

    truth->put_off = store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid,
                                dra_driver_name(asked->driver), "") != NULL;
    if (!truth->prepared)
        return;
    check_that(w, asked->driver == 0 || truth->unknown,
               "%s of other nodes, too, is truly unprepared", uid);
    check_that(w, row_says(w, asked, "owed", NULL), "%s is owed, and that is durable", uid);
    truth->owed = true;
    count_add(COUNT_DRA_OWED);
}

/* The driver was there all the time, and nothing else was in the way. */
static bool was_well(struct world *w, const struct dra_asked *asked)
{
    char uid[16];

    for (size_t i = 0; i < DRA_OPS_MAX; i++) { /* what was asked for it before */
        if (w->dra.ops[i].number && w->dra.ops[i].claim == asked->claim &&
            w->dra.ops[i].driver == asked->driver)
            return false;
    }
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        names_of(i, uid);
        if (w->dra.claims[i].truth[asked->driver].put_off &&
            store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, dra_driver_name(asked->driver), ""))
            return false;
    }
    return dra_driver_there(&w->dra.drivers[asked->driver]) && !w->shim.draining &&
           w->dra.trouble_ms[asked->driver] < asked->since_ms && w->store.mode == STORE_GOOD &&
           w->store.failed_ms == 0 && w->store.commit == 0;
}

static void check_refused(struct world *w, const struct dra_asked *asked, int code)
{
    check_that(w, code == 2 || code == 14, "a claim is refused with %d", code);
    check_that(w, code == 2 || !was_well(w, asked), "c%zu of driver %zu is refused for a reason",
               asked->claim, asked->driver);
    count_add(code == 2 ? COUNT_DRA_FAILED : COUNT_DRA_REFUSED);
}

void dra_claim_done(struct world *w, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct dra_asked *asked = find(&w->dra, number);
    struct dra_asked is;
    char uid[16];

    check_that(w, asked, "%" PRIu64 " is waited for when it is answered", number);
    if (!asked)
        return;
    is = *asked;
    *asked = (struct dra_asked){0};
    names_of(is.claim, uid);
    world_note(w, "kubelet: %" PRIu64 " of %s: %d %s", number, uid, done->code,
               done->message ? done->message : "");
    if (done->code != 0) {
        check_refused(w, &is, done->code);
        return;
    }
    if (is.prepare)
        check_prepared(w, &is, done, uid);
    else
        check_unprepared(w, &is, uid);
    if (is.prepare == (w->dra.claims[is.claim].life == DRA_WANTED))
        w->dra.claims[is.claim].done[is.driver] = true;
}
