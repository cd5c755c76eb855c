/*
 * The properties of the world of drivers with two homes.
 */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

bool home_row_is(const struct home_world *h, size_t claim, const char *state)
{
    struct hw_row row = home_shim_row(h, claim);

    return row.there && strcmp(row.state, state) == 0;
}

bool home_has_op(const struct home_world *h, size_t claim)
{
    for (size_t i = 0; i < HW_OPS; i++) {
        if (h->ops[i].call && h->ops[i].claim == claim)
            return true;
    }
    return false;
}

/* ---- a driver is called ---- */

static bool is_right_instance(const struct hw_driver *d, uint64_t instance)
{
    if (d->here && d->connected)
        return instance == d->here;
    return d->moved && d->told && d->told_connected && instance == d->told;
}

/* The kubelet itself had it prepared, and that is not to be seen here. Who asks to unprepare one
 * that was never sent, while the driver is away, is told that it is, unless the driver was seen
 * with the kubelet before; and of one that was sent it is to be seen by what is allocated to it
 * now. */
static bool is_unseen(const struct home_world *h, size_t id)
{
    const struct hw_claim *claim = &h->claims[id];

    if (!claim->by_kubelet)
        return false;
    if (!h->drivers[claim->driver].seen && !home_shim_row(h, id).sent)
        return true;
    return !claim->told || claim->told_device != claim->taken_device;
}

/* The kubelet has it in its books, and had when this was asked for: it is allocated yet, and this
 * has others. What is unprepared since then may be anybody's who asks later. */
static bool is_kept_in_books(const struct hw_claim *owed, const struct hw_claim *claim)
{
    return owed->in_use && claim->asked < owed->read;
}

/* By the names of a container that was asked for since, the kubelet may have prepared it again. */
static bool may_be_again(const struct home_world *h, size_t owed)
{
    return h->drivers[h->claims[owed].driver].same_names && home_may_be_used(h, owed) &&
           !home_row_is(h, owed, "owed");
}

/* The kubelet has asked to prepare it anew since: it is to have that, and nobody is to unprepare
 * it. */
static bool is_asked_anew(const struct home_world *h, size_t owed)
{
    return h->claims[owed].in_books && home_row_is(h, owed, "sent");
}

bool home_is_owed_before(const struct home_world *h, size_t owed, size_t id)
{
    const struct hw_claim *claim = &h->claims[id], *other = &h->claims[owed];
    const struct hw_driver *d = &h->drivers[claim->driver];
    bool apart = home_pool_name(d, other->taken_device) != home_pool_name(d, claim->device) ||
                 home_parts_apart(d, other->taken_device, claim->device);

    return owed != id && other->driver == claim->driver && other->owed && claim->allocated &&
           !may_be_again(h, owed) && !is_asked_anew(h, owed) &&
           !(other->tried && (apart || is_kept_in_books(other, claim) || is_unseen(h, owed)));
}

/* And that is stored, as it goes out once more after a kill. */
static void check_owed(struct home_world *h, size_t id)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        const struct hw_claim *other = &h->claims[i];

        check_that(h->w, !home_is_owed_before(h, i, id),
                   "c%zu is prepared before c%zu is unprepared, which is owed", id, i);
        check_that(h->w,
                   i == id || other->driver != h->claims[id].driver || !other->given_back ||
                       !home_row_is(h, i, "owed"),
                   "c%zu is prepared before it is stored that c%zu is not owed any more", id, i);
    }
}

void home_judge_call(struct home_world *h, const struct hw_op *op)
{
    const struct hw_claim *claim = &h->claims[op->claim];

    check_that(h->w, is_right_instance(&h->drivers[claim->driver], op->instance),
               "driver %zu is called where it is: %" PRIu64, claim->driver, op->instance);
    check_that(h->w, !home_has_op(h, op->claim), "c%zu is asked for in two calls at once",
               op->claim);
    check_that(h->w,
               (claim->asked && claim->asks_prepare == op->prepare && !op->looks) ||
                   (op->prepare && claim->used_since) ||
                   (!op->prepare && home_row_is(h, op->claim, "owed")),
               "a driver is asked for what somebody waits for: c%zu", op->claim);
    if (!op->prepare)
        return;
    check_that(h->w, home_row_is(h, op->claim, "sent"), "that c%zu is sent is durable before",
               op->claim);
    check_owed(h, op->claim);
    home_batch_called(h, op);
}

/* The kubelet counts on it, and has not asked for this. One that asks to prepare it has it made
 * anew, if nothing runs with it. */
void home_judge_effect(struct home_world *h, const struct hw_op *op)
{
    const struct hw_claim *claim = &h->claims[op->claim];
    bool runs = false;

    if (op->prepare)
        return;
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && pod->state == HW_RUNS && k < pod->claims_len; k++)
            runs = runs || pod->claims[k] == op->claim;
    }
    check_that(h->w,
               claim->life != HW_WANTED || !claim->has || !op->seen || claim->let_go ||
                   (claim->asked && claim->asks_prepare && !runs),
               "c%zu is not taken from the kubelet, which has it", op->claim);
    check_that(h->w, !op->used || !home_is_used(h, op->claim),
               "c%zu is not unprepared while a container runs with it", op->claim);
}

/* ---- the kubelet is told ---- */

static void check_prepared(struct home_world *h, size_t id, const struct devicemgr_claim_done *done)
{
    const struct hw_claim *claim = &h->claims[id];
    struct hw_row row = home_shim_row(h, id);
    unsigned device = 0;
    bool shared;

    check_that(h->w,
               home_answer_read(done->response, done->response_bytes, &device, &shared) &&
                   claim->taken && !claim->owed && claim->taken_device == device,
               "c%zu is prepared as the kubelet is told", id);
    check_that(h->w, claim->taken_ms >= claim->asked_ms, "c%zu is prepared since it was asked for",
               id);
    check_that(h->w, home_row_is(h, id, "prepared") && row.has_device && row.device == device,
               "c%zu has a row that says what the kubelet is told", id);
    count_add(COUNT_HOME_PREPARES);
}

/* The driver has something of which it never told, and that was allocated before something else
 * was: nobody can know. */
static bool is_secret(const struct hw_claim *claim)
{
    return !claim->answered && claim->taken_device != claim->device;
}

static void check_unprepared(struct home_world *h, size_t id)
{
    struct hw_claim *claim = &h->claims[id];

    count_add(COUNT_HOME_UNPREPARES);
    check_that(h->w, !home_is_used(h, id),
               "c%zu is not said to be unprepared while a container runs with it", id);
    if (!claim->taken)
        return;
    check_that(h->w,
               claim->owed || home_device_is_local(claim->taken_device) || is_secret(claim) ||
                   is_unseen(h, id), /* or it was told so before, and nothing is sent since */
               "c%zu of other nodes, too, is truly unprepared", id);
    check_that(h->w, home_row_is(h, id, "owed"), "c%zu is owed, and that is durable", id);
    check_that(h->w, !home_is_used(h, id), "c%zu is not put off while a container runs with it",
               id);
    claim->owed = true;
    count_add(COUNT_HOME_OWED);
    if (!claim->answered)
        count_add(COUNT_HOME_OWED_UNANSWERED);
}

bool home_owes(const struct home_world *h, size_t driver)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        if (h->claims[i].driver == driver && home_row_is(h, i, "owed"))
            return true;
    }
    return false;
}

/* The driver could be called all the time, at either home, and nothing else was in the way. */
static bool was_well(const struct home_world *h, size_t id)
{
    const struct hw_claim *claim = &h->claims[id];
    const struct hw_driver *d = &h->drivers[claim->driver];

    return home_driver_can_be_called(d) && d->trouble_ms < claim->asked_ms && !home_has_op(h, id) &&
           !home_owes(h, claim->driver) && !h->commit && h->failed_ms < claim->asked_ms &&
           h->stored_ms < h->now_ms && (claim->asks_prepare || !home_may_be_used(h, id));
}

static void check_refused(struct home_world *h, size_t id, int code)
{
    const struct hw_claim *claim = &h->claims[id];
    bool of_driver = code == CODE_UNKNOWN || code == CODE_DEADLINE_EXCEEDED;

    check_that(h->w, of_driver || code == CODE_UNAVAILABLE, "a claim is refused with %d", code);
    check_that(h->w, !of_driver || claim->failed_ms == h->now_ms,
               "c%zu is refused by its driver if that has refused it", id);
    check_that(h->w,
               of_driver || h->now_ms >= claim->asked_ms + CLAIM_HOLD_MS ||
                   claim->lost >= CLAIM_LOST_MAX || !home_shim_is_stored(h) ||
                   h->failed_ms >= claim->asked_ms ||
                   (!claim->asks_prepare && home_may_be_used(h, id)),
               "c%zu is waited for", id);
    check_that(h->w, of_driver || !was_well(h, id), "c%zu is refused for a reason", id);
    count_add(COUNT_HOME_CLAIM_REFUSED);
}

void home_judge_done(struct home_world *h, size_t claim, const struct devicemgr_claim_done *done)
{
    if (done->code != 0)
        check_refused(h, claim, done->code);
    else if (h->claims[claim].asks_prepare)
        check_prepared(h, claim, done);
    else
        check_unprepared(h, claim);
}

/* ---- containers ---- */

/* One line is of the pod's claims that are so, or of others with the same names. */
static bool is_said(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        const struct hw_claim *is = &h->claims[i];

        for (size_t k = 0; is->warned > 0 && k < pod->claims_len; k++) {
            const struct hw_claim *theirs = &h->claims[pod->claims[k]];

            if (is->driver == theirs->driver && is->said && is->said_device == theirs->given)
                return true;
        }
    }
    return false;
}

void home_judge_create(struct home_world *h, const struct hw_pod *pod, enum hw_held held,
                       size_t claim)
{
    static const enum count COUNTS_OF[] = {[HW_FREE] = COUNT_HOME_FREE,
                                           [HW_SHARED] = COUNT_HOME_SHARED,
                                           [HW_OWN] = COUNT_HOME_OWN,
                                           [HW_UNKNOWN] = COUNT_HOME_UNKNOWN,
                                           [HW_AMBIGUOUS] = COUNT_HOME_AMBIGUOUS};

    check_that(h->w, held != HW_HELD,
               "a device is not given to u%u by c%zu that a container of another pod has", pod->uid,
               claim);
    if (held == HW_HELD)
        return;
    count_add(COUNTS_OF[held]);
    check_that(h->w, (held != HW_UNKNOWN && held != HW_AMBIGUOUS) || is_said(h, pod),
               "that another may have the device of c%zu is said", claim);
}

void home_judge_passes(struct home_world *h, const struct hw_pod *pod)
{
    check_that(h->w, home_use_passes(h, pod),
               "who is to run with claims is stored before the runtime is asked: u%u", pod->uid);
}

/* Or with what it had when that was asked for: the kubelet may have had it prepared itself
 * since. */
void home_judge_names(struct home_world *h, const struct hw_pod *pod, size_t index)
{
    check_that(h->w, !(pod->named[index] & pod->before[index]),
               "u%u is not made with what c%zu had before", pod->uid, pod->claims[index]);
    check_that(h->w,
               pod->named[index] &
                   (1U << h->claims[pod->claims[index]].given | 1U << pod->given[index]),
               "u%u is made with what c%zu has", pod->uid, pod->claims[index]);
}

void home_judge_said(struct home_world *h, size_t claim)
{
    h->claims[claim].warned++;
    check_that(h->w, h->claims[claim].warned == 1, "of c%zu it is said once", claim);
}

/* ---- after each run ---- */

struct look {
    const char *name;
    bool known, moved;
};

static void look_at(void *user, const struct devicemgr_driver *driver)
{
    struct look *look = user;

    if (strcmp(driver->name, look->name) != 0)
        return;
    look->known = true;
    look->moved = driver->moved;
}

/* What has moved is the kubelet's until it is back; one of which nothing is kept is forgotten. */
static void judge_driver(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];
    struct look look = {home_driver_name(driver), false, false};

    devicemgr_drivers(h->core, look_at, &look);
    if (!look.known) {
        check_that(h->w, !d->here, "driver %zu is known while it is registered", driver);
        d->moved = d->told_connected = d->seen = false;
        d->told = 0;
        return;
    }
    check_that(h->w, look.moved == d->moved, "driver %zu has%s moved", driver,
               d->moved ? "" : " not");
    check_that(h->w, !home_shim_is_stored(h) || home_shim_row_moved(h, driver) == d->moved,
               "that driver %zu has%s moved is stored", driver, d->moved ? "" : " not");
}

/* Of a driver that has moved the kubelet has the claim, and nobody else; of one that has not the
 * shim has what it has said, until that is to be unprepared: it may be though the kubelet was told
 * that it is not, as when it was stored late. */
static void judge_claim(struct home_world *h, size_t id)
{
    const struct hw_claim *claim = &h->claims[id];
    bool moved = h->drivers[claim->driver].moved;
    struct hw_row row = home_shim_row(h, id);

    if (moved && row.there && strcmp(row.state, "owed") != 0 && !claim->asked &&
        !claim->used_since && !home_has_op(h, id)) {
        check_that(h->w, home_may_be_used(h, id),
                   "c%zu is let go of, as its driver has moved and no container runs with it", id);
        count_add(COUNT_HOME_KEPT_USED);
    }
    check_that(h->w,
               claim->life != HW_WANTED || !claim->by_shim || !claim->prepared || moved ||
                   claim->let_go || row.there,
               "c%zu is not forgotten, which the kubelet was told of", id);
}

void home_judge(struct home_world *h)
{
    check_that(h->w,
               h->list_due_ms == 0 || h->now_ms <= h->list_due_ms || h->list_wanted || h->listing,
               "who has what another is refused for may run no more: the runtime is to be listed");
    for (size_t d = 0; d < HW_DRIVERS; d++)
        judge_driver(h, d);
    for (size_t i = 0; i < h->claims_len && home_shim_is_stored(h); i++)
        judge_claim(h, i);
    home_anew_judge(h);
    home_batches_judge(h);
}

/* ---- in the end ---- */

/* Where the driver's names do not tell its claims apart, one is not unprepared while a container
 * runs that may have it; nor is another given what that has. */
static bool may_wait_for_others(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; pod->deleting && i < pod->claims_len; i++) {
        if (h->drivers[h->claims[pod->claims[i]].driver].same_names &&
            home_may_be_used(h, pod->claims[i]))
            return true;
    }
    return false;
}

static bool others_run_by(const struct home_world *h, const struct hw_pod *pod, size_t driver)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *other = &h->pods[i];
        bool runs = other != pod && other->there && other->state == HW_RUNS;

        for (size_t k = 0; runs && k < other->claims_len; k++) {
            if (h->claims[other->claims[k]].driver == driver)
                return true;
        }
    }
    return false;
}

/* Likewise one for which the kubelet names what its claim may have had before, and that another's
 * container has by now, or what is made of the same: nobody knows by which claim it is named. */
static bool may_wait_for_what_was(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; !pod->deleting && pod->state != HW_RUNS && i < pod->claims_len; i++) {
        if (home_names_doubtful(h, pod) && others_run_by(h, pod, h->claims[pod->claims[i]].driver))
            return true;
    }
    return false;
}

static bool others_named_of_before(const struct home_world *h, const struct hw_claim *claim)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *other = &h->pods[i];
        bool runs = other->there && other->state == HW_RUNS;

        for (size_t k = 0; runs && k < other->claims_len; k++) {
            if (h->claims[other->claims[k]].driver == claim->driver &&
                other->named[k] & ~(1U << other->given[k]) & 1U << claim->given)
                return true;
        }
    }
    return false;
}

/* Nor is one given what another's container was made with, as its claim had it before. */
static bool may_wait_for_who_was(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; !pod->deleting && pod->state != HW_RUNS && i < pod->claims_len; i++) {
        if (others_named_of_before(h, &h->claims[pod->claims[i]]))
            return true;
    }
    return false;
}

void home_judge_rest(struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *pod = &h->pods[i];

        if (!pod->there || may_wait_for_others(h, pod) || may_wait_for_what_was(h, pod) ||
            may_wait_for_who_was(h, pod))
            continue;
        check_that(h->w, !pod->deleting && pod->state == HW_RUNS, "pod u%u runs, or is gone",
                   pod->uid);
        for (size_t k = 0; h->loses_files && k < pod->claims_len; k++)
            check_that(h->w,
                       h->claims[pod->claims[k]].taken || !home_shim_prepares(h, pod->claims[k]),
                       "c%zu is prepared, and u%u runs with it", pod->claims[k], pod->uid);
        count_add(COUNT_HOME_RUNS);
    }
}

void home_judge_end(struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++)
        check_that(h->w, !h->pods[i].there, "pod u%u is gone", h->pods[i].uid);
    for (size_t i = 0; i < h->claims_len; i++) {
        check_that(h->w, !h->claims[i].taken, "no driver has anything: c%zu", i);
        check_that(h->w, h->claims[i].astray || !home_shim_row(h, i).there,
                   "the shim has nothing: c%zu", i);
    }
}
