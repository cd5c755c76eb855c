/*
 * The judge of what drivers are asked for, and of what the kubelet is told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* Between an event and the run that acts on it (shim_run()). */
#define LATE_MS 5

/* Whether the durable row is in this state, with this answer. */
static bool row_says(struct world *w, size_t claim, size_t driver, const char *state,
                     const struct devicemgr_claim_done *done)
{
    char uid[16];
    const struct devicemgr_claim names = dra_claim_names(claim, uid);
    const struct store_row *row =
        store_find(&w->store, DEVICEMGR_RECORD_CLAIM, names.uid, dra_driver_name(driver), "");
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

void dra_judge_store_reset(struct world *w)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            if (row_says(w, i, d, "owed", NULL))
                w->dra.claims[i].truth[d].put_off = true;
        }
    }
}

void dra_judge_by_rows(struct world *w)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            struct dra_truth *truth = &w->dra.claims[i].truth[d];

            truth->unsure = truth->unsure || row_says(w, i, d, "unpreparing", NULL) ||
                            row_says(w, i, d, "sent", NULL);
            truth->used_since = truth->used_since || (truth->unsure && dra_may_be_used(w, i, d));
        }
    }
}

/* ---- a driver is asked ---- */

/* It is prepared anew, and is not unprepared before, under a container that may run with it. */
static bool may_be_taken_back(struct world *w, size_t owed, size_t driver)
{
    return dra_waits(&w->dra, owed, driver, true) && dra_may_be_used(w, owed, driver);
}

/* Whether they are different things, whatever the shim has been told of that. */
static bool are_apart(const struct world *w, size_t driver, unsigned a, unsigned b)
{
    return strcmp(dra_pool_name(a), dra_pool_name(b)) != 0 ||
           (driver == 0 && w->dra.cluster.apart && a != b);
}

/* Whether what the driver has of the claim must be gone before the other is prepared. */
static void check_owed(struct world *w, const struct dra_op *op)
{
    unsigned device = w->dra.claims[op->claim].device[op->driver];

    for (size_t i = 0; i < w->dra.claims_len; i++) {
        const struct dra_truth *truth = &w->dra.claims[i].truth[op->driver];
        bool tried = truth->tried || truth->tried_run == w->shim.runs;
        bool apart = are_apart(w, op->driver, truth->device, device);

        check_that(w,
                   !truth->owed || truth->unknown || (tried && apart) ||
                       may_be_taken_back(w, i, op->driver),
                   "c%zu is prepared by driver %zu before c%zu is unprepared", op->claim,
                   op->driver, i);
    }
}

/* The newest that is connected, or was, when the call was decided on: the run that makes it came
 * later. */
static bool is_right_instance(const struct world *w, const struct dra_op *op)
{
    const struct dra_driver *d = &w->dra.drivers[op->driver];

    if (op->instance == d->instance)
        return d->connected;
    return op->instance == d->old && d->old_connected &&
           (!d->connected || d->old_run == w->shim.runs);
}

void dra_judge_call(struct world *w, const struct dra_op *op)
{
    char uid[16];

    dra_claim_names(op->claim, uid);
    check_that(w, is_right_instance(w, op),
               "driver %zu is called at the newest instance that is connected", op->driver);
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        const struct dra_op *other = &w->dra.ops[i];

        check_that(w,
                   other->number == 0 || other->late || other->claim != op->claim ||
                       other->driver != op->driver,
                   "driver %zu is asked for c%zu in two calls at once", op->driver, op->claim);
    }
    check_that(w,
               w->shim.late || dra_waits(&w->dra, op->claim, op->driver, op->prepare) ||
                   (op->prepare && w->dra.claims[op->claim].truth[op->driver].used_since) ||
                   (!op->prepare && (w->dra.claims[op->claim].truth[op->driver].put_off ||
                                     row_says(w, op->claim, op->driver, "owed", NULL))),
               "driver %zu is asked for what somebody waits for: %s", op->driver, uid);
    if (!op->prepare) {
        check_that(w, !dra_user(w, op->claim, op->driver),
                   "%s is not unprepared while a container runs with it", uid);
        return;
    }
    /* A file that was taken away between the decision and the call had the row. */
    check_that(
        w,
        store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, dra_driver_name(op->driver), "") ||
            (w->store.reset && w->shim.late),
        "%s is durable before it is prepared", uid);
    check_owed(w, op);
}

/* ---- the kubelet is told ---- */

bool dra_answer_read(const struct devicemgr_claim_done *done, struct dra_answer *answer)
{
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, done->response_bytes, done->response);
    const Dra__V1__Device *device = message && message->n_devices == 1 ? message->devices[0] : NULL;
    const char *version =
        device && device->n_cdi_device_ids == 2 ? strstr(device->cdi_device_ids[1], "-v") : NULL;

    *answer = (struct dra_answer){0};
    if (version) {
        answer->version = (unsigned)strtoul(version + 2, NULL, 10);
        answer->device = (unsigned)strtoul(device->device_name + 1, NULL, 10) +
                         (strcmp(device->pool_name, dra_pool_name(0)) == 0 ? 0 : DRA_POOL_DEVICES);
    }
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
    return version;
}

static void check_prepared(struct world *w, const struct dra_asked *asked,
                           const struct devicemgr_claim_done *done)
{
    const struct dra_claim *claim = &w->dra.claims[asked->claim];
    struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];
    struct dra_answer answer;

    check_that(w,
               dra_answer_read(done, &answer) && truth->prepared && !truth->owed &&
                   truth->version == answer.version && truth->device == answer.device,
               "c%zu is prepared by driver %zu as the kubelet is told", asked->claim,
               asked->driver);
    check_that(w, row_says(w, asked->claim, asked->driver, "prepared", done),
               "c%zu has a row that says what the kubelet is told", asked->claim);
    if (truth->given_ms > truth->told_ms)
        truth->told_ms = w->now_ms; /* its own answer, which may have waited for the store */
    check_that(w,
               truth->taken_ms >= asked->since_ms || answer.device == claim->device[asked->driver],
               "c%zu is prepared by driver %zu after it is asked for, or has what is allocated",
               asked->claim, asked->driver);
    if (truth->told_ms == w->now_ms || dra_driver_there(&w->dra.drivers[asked->driver]))
        return;
    count_add(COUNT_DRA_CACHED);
    check_that(w, w->shim.late || answer.device == claim->device[asked->driver],
               "c%zu has what is allocated to it, when that is told without its driver",
               asked->claim);
}

/* The driver has something that it never told of, and that was allocated before something else was:
 * nobody can know. */
static bool is_secret(const struct dra_claim *claim, size_t driver)
{
    const struct dra_truth *truth = &claim->truth[driver];

    return truth->version != truth->answered && truth->device != claim->device[driver];
}

/* The driver has what it owes until it is told: nobody is given that meanwhile. What the kubelet
 * had in its books is allocated yet, so that who was asked for since has something else. */
static void check_none_prepared(struct world *w, size_t claim, size_t driver)
{
    const struct dra_truth *truth = &w->dra.claims[claim].truth[driver];

    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        const struct dra_op *op = &w->dra.ops[i];
        bool apart = truth->in_books && w->dra.claims[op->claim].device[driver] != truth->device;

        check_that(w,
                   !op->number || op->late || !op->prepare || op->driver != driver ||
                       op->claim == claim || apart,
                   "c%zu is being prepared by driver %zu when c%zu is put off", op->claim, driver,
                   claim);
    }
}

static void check_unprepared(struct world *w, const struct dra_asked *asked)
{
    struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];
    char uid[16];

    dra_claim_names(asked->claim, uid);
    truth->put_off = store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid,
                                dra_driver_name(asked->driver), "") != NULL;
    truth->unsure = false;
    if (!truth->prepared)
        return;
    check_that(w, /* once: what is owed is, whatever is allocated by now */
               dra_is_local(w, asked->driver, truth->device) || truth->unknown || truth->owed ||
                   is_secret(&w->dra.claims[asked->claim], asked->driver),
               "%s of other nodes, too, is truly unprepared", uid);
    check_that(w, row_says(w, asked->claim, asked->driver, "owed", NULL),
               "%s is owed, and that is durable", uid);
    check_that(w, !dra_user(w, asked->claim, asked->driver),
               "%s is not put off while a container runs with it", uid);
    if (!truth->owed) /* else it was tried, and others may go on */
        check_none_prepared(w, asked->claim, asked->driver);
    truth->owed = true;
    count_add(COUNT_DRA_OWED);
}

/* The driver was there all the time, and nothing else was in the way. */
static bool was_well(struct world *w, const struct dra_asked *asked)
{
    const struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];
    char uid[16];

    for (size_t i = 0; i < DRA_OPS_MAX; i++) { /* what was asked for it before */
        if (w->dra.ops[i].number && w->dra.ops[i].claim == asked->claim &&
            w->dra.ops[i].driver == asked->driver)
            return false;
    }
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        dra_claim_names(i, uid);
        if (w->dra.claims[i].truth[asked->driver].put_off &&
            store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, dra_driver_name(asked->driver), ""))
            return false;
    }
    if (truth->told_ms == w->now_ms || truth->given_ms >= asked->since_ms + CLAIM_HOLD_MS)
        return false; /* it was its turn only then, by when its time was over */
    if (!asked->prepare && dra_may_be_used(w, asked->claim, asked->driver)) {
        count_add(COUNT_DRA_USED);
        return false;
    }
    return dra_driver_there(&w->dra.drivers[asked->driver]) && !w->shim.draining &&
           w->dra.trouble_ms[asked->driver] < asked->since_ms && w->store.mode == STORE_GOOD &&
           w->store.failed_ms == 0 && w->store.commit == 0;
}

/* What may end a request before its time. */
static bool may_end_early(struct world *w, const struct dra_asked *asked)
{
    return w->shim.draining || w->store.mode != STORE_GOOD || w->store.failed_ms > 0 ||
           w->store.commit != 0 ||
           w->dra.claims[asked->claim].truth[asked->driver].lost >= CLAIM_LOST_MAX ||
           (!asked->prepare && dra_may_be_used(w, asked->claim, asked->driver));
}

static void check_refused(struct world *w, const struct dra_asked *asked, int code)
{
    struct dra_truth *truth = &w->dra.claims[asked->claim].truth[asked->driver];
    bool of_driver = code == CODE_UNKNOWN || code == CODE_DEADLINE_EXCEEDED;

    check_that(w, !of_driver || w->now_ms <= truth->failed_ms + LATE_MS,
               "c%zu is refused by driver %zu if that has refused it", asked->claim, asked->driver);
    check_that(w,
               of_driver || w->now_ms >= asked->since_ms + CLAIM_HOLD_MS || may_end_early(w, asked),
               "c%zu of driver %zu is waited for", asked->claim, asked->driver);
    check_that(w, of_driver || code == CODE_UNAVAILABLE, "a claim is refused with %d", code);
    check_that(w, of_driver || !was_well(w, asked), "c%zu of driver %zu is refused for a reason",
               asked->claim, asked->driver);
    /* It may have been unprepared, for all that its row says: who runs with it has it anew. */
    if (!asked->prepare && row_says(w, asked->claim, asked->driver, "unpreparing", NULL))
        truth->used_since |= dra_may_be_used(w, asked->claim, asked->driver);
    count_add(of_driver ? COUNT_DRA_FAILED : COUNT_DRA_REFUSED);
}

/* Once the shim is to end nothing waits but for what a driver is doing, and for its row. */
void dra_judge_drain(struct world *w)
{
    if (!w->shim.draining || w->shim.run_later || w->store.commit || w->store.failed_ms)
        return;
    for (size_t i = 0; i < DRA_ASKED_MAX; i++) {
        const struct dra_asked *asked = &w->dra.asked[i];
        bool under_way = false;

        for (size_t o = 0; asked->number && o < DRA_OPS_MAX; o++)
            under_way = under_way || (w->dra.ops[o].number && !w->dra.ops[o].late &&
                                      w->dra.ops[o].claim == asked->claim &&
                                      w->dra.ops[o].driver == asked->driver);
        check_that(w, !asked->number || under_way,
                   "nothing is waited for while the shim ends: c%zu", asked->claim);
    }
}

void dra_judge(struct world *w, const struct dra_asked *asked,
               const struct devicemgr_claim_done *done)
{
    if (done->code != 0)
        check_refused(w, asked, done->code);
    else if (asked->prepare)
        check_prepared(w, asked, done);
    else
        check_unprepared(w, asked);
}
