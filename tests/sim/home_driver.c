/*
 * The drivers: which claims they truly have, and the calls of the shim's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

/* How often an answer is lost, of what was done; and, in a world that is full of that, of what is
 * prepared anew. */
#define LOST_PERCENT 16
#define LOST_ANEW_PERCENT 60
/* Then it dies of it, or is too late. */
#define DIES_PERCENT 70

static const char *const NAMES[HW_DRIVERS] = {"home0.example.com", "home1.example.com"};

const char *home_driver_name(size_t driver)
{
    return NAMES[driver];
}

bool home_driver_can_be_called(const struct hw_driver *d)
{
    return (d->here && d->connected) || (d->moved && d->told && d->told_connected);
}

const char *home_pool_name(const struct hw_driver *d, unsigned device)
{
    static const char *const POOLS[HW_POOLS] = {"node0", "node1", "net"};

    return POOLS[d->parted && device < HW_PARTS ? 0 : device / HW_POOL_DEVICES];
}

bool home_device_is_local(unsigned device)
{
    return device / HW_POOL_DEVICES < HW_POOLS - 1;
}

void home_cdi_name(const struct home_world *h, size_t claim, unsigned device, char name[48])
{
    size_t driver = h->claims[claim].driver;

    if (h->drivers[driver].same_names)
        snprintf(name, 48, "%s/device=g%u", NAMES[driver], device);
    else
        snprintf(name, 48, "%s/device=c%zu-g%u", NAMES[driver], claim, device);
}

static size_t answer_of(const struct home_world *h, size_t claim, uint8_t bytes[256])
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};
    const struct hw_claim *is = &h->claims[claim];
    char share[] = "x", name[16], pool[16], own[48], common[48], *ids[] = {common, own};

    snprintf(name, sizeof name, "g%u", is->taken_device);
    snprintf(common, sizeof common, "%s/device=all", NAMES[is->driver]);
    home_cdi_name(h, claim, is->taken_device, own);
    device.device_name = name;
    snprintf(pool, sizeof pool, "%s", home_pool_name(&h->drivers[is->driver], is->taken_device));
    device.pool_name = pool;
    device.cdi_device_ids = ids;
    device.n_cdi_device_ids = 2;
    if (is->shared && h->drivers[is->driver].shares_said) {
        device.shared_case = DRA__V1__DEVICE__SHARED_SHARE_ID;
        device.share_id = share;
    }
    message.devices = devices;
    message.n_devices = 1;
    return dra__v1__node_prepare_resource_response__pack(&message, bytes);
}

bool home_answer_read(const void *bytes, size_t len, unsigned *device, bool *shared)
{
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, len, bytes);
    bool read = message && message->n_devices == 1;

    if (read) {
        *device = (unsigned)strtoul(message->devices[0]->device_name + 1, NULL, 10);
        *shared = message->devices[0]->shared_case == DRA__V1__DEVICE__SHARED_SHARE_ID;
    }
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
    return read;
}

/* ---- what it has ---- */

/* It makes its own state anew, of what is allocated now. Whether it can. */
static bool take(struct home_world *h, size_t claim, bool by_kubelet)
{
    struct hw_claim *is = &h->claims[claim];

    if (!is->allocated)
        return false;
    if (is->given_up && is->due_anew)
        count_add(COUNT_HOME_ANEW);
    is->taken = true;
    is->taken_device = is->device;
    is->taken_ms = h->now_ms;
    is->by_kubelet = by_kubelet;
    is->file_lost = is->given_up = is->due_anew = is->tried_anew = false;
    is->answered = is->owed = is->tried = false;
    return true;
}

static void give_back(struct home_world *h, size_t claim, bool by_kubelet)
{
    struct hw_claim *is = &h->claims[claim];

    is->given_up = !by_kubelet;
    is->taken = is->owed = is->tried = is->by_kubelet = is->answered = false;
}

/* A call of the shim's is done, or fails. */
static void decide(struct home_world *h, struct hw_op *op, bool done)
{
    if (op->decided)
        return;
    op->decided = true;
    op->failed = true;
    if (!done || op->looks != HW_SENT)
        return;
    home_judge_effect(h, op);
    if (op->prepare) {
        op->failed = !take(h, op->claim, false);
    } else {
        op->failed = false;
        give_back(h, op->claim, false);
    }
    home_note(h, "c%zu is %s%s", op->claim, op->prepare ? "taken" : "given back",
              op->failed ? ", not" : "");
}

/* It may have been unprepared, or was not prepared anew. */
static void note_unsure(const struct home_world *h, const struct hw_op *op, struct hw_claim *claim)
{
    claim->unsure = true;
    claim->used_since = claim->used_since || home_may_be_used(h, op->claim);
}

/* What has ended the driver too often is not told it as soon as that is back. */
static void note_lost(struct hw_claim *claim)
{
    claim->lost++;
    claim->tried = claim->tried || (claim->owed && claim->lost >= CLAIM_LOST_MAX);
}

void home_ops_end(struct home_world *h, uint64_t instance)
{
    for (size_t i = 0; i < HW_OPS; i++) {
        struct hw_op *op = &h->ops[i];

        if (!op->call || (instance && op->instance != instance))
            continue;
        decide(h, op, rng_percent(&h->rng, 50));
        if (!op->failed)
            count_add(op->prepare ? COUNT_HOME_UNANSWERED : COUNT_HOME_UNANSWERED_UNPREPARE);
        note_lost(&h->claims[op->claim]);
        note_unsure(h, op, &h->claims[op->claim]);
        home_anew_ended(h, op, false);
        h->claims[op->claim].called = false;
        *op = (struct hw_op){0};
    }
    for (size_t i = 0; !instance && i < h->claims_len; i++)
        h->claims[i].lost = 0; /* the shim ends, too */
}

bool home_driver_does(struct home_world *h, size_t claim, bool prepare)
{
    struct hw_claim *is = &h->claims[claim];
    const struct hw_driver *d = &h->drivers[is->driver];
    bool fails = !h->calm && rng_percent(&h->rng, d->fails_percent), done = true;

    /* It does one thing after the other for a claim: what was asked for before comes first. */
    for (size_t i = 0; i < HW_OPS; i++) {
        if (h->ops[i].call && h->ops[i].claim == claim)
            decide(h, &h->ops[i], rng_percent(&h->rng, 50));
    }
    if (fails && rng_percent(&h->rng, 70))
        return false;
    if (prepare)
        done = take(h, claim, true);
    else
        give_back(h, claim, true);
    if (!prepare && !(d->moved && d->stored))
        is->astray = true;
    home_note(h, "c%zu is %s by the kubelet%s", claim, prepare ? "taken" : "given back",
              done ? "" : ", not");
    count_add(prepare ? COUNT_HOME_DIRECT_PREPARES : COUNT_HOME_DIRECT_UNPREPARES);
    return done && !fails;
}

/* ---- calls of the shim's ---- */

static size_t driver_of(const struct home_world *h, size_t claim)
{
    return h->claims[claim].driver;
}

void home_driver_called(struct home_world *h, const struct hw_op *is)
{
    struct hw_op op = *is;
    size_t slot = 0;

    op.seen = h->drivers[driver_of(h, op.claim)].seen;
    op.used = home_is_asked_with(h, op.claim);
    home_note(h, "%s c%zu at %" PRIu64 " by %" PRIu64 ", of %" PRIu64,
              op.looks != HW_SENT ? "settle"
              : op.prepare        ? "prepare"
                                  : "unprepare",
              op.claim, op.instance, op.call, op.batch);
    home_judge_call(h, &op);
    if (op.prepare && !h->claims[op.claim].asked)
        count_add(COUNT_HOME_USED_SINCE);
    if (op.instance == h->drivers[driver_of(h, op.claim)].told)
        count_add(COUNT_HOME_CALLED_THERE);
    while (slot < HW_OPS && h->ops[slot].call)
        slot++;
    if (slot == HW_OPS)
        abort();
    h->ops[slot] = op;
}

static void answer(struct home_world *h, struct hw_op *op)
{
    const struct hw_op is = *op;
    struct hw_claim *claim = &h->claims[is.claim];
    uint8_t bytes[256];
    size_t len = 0;

    *op = (struct hw_op){0};
    claim->lost = 0;
    home_note(h, "call %" PRIu64 " on c%zu is answered%s", is.call, is.claim,
              is.failed ? ": it failed" : "");
    home_anew_ended(h, &is, !is.failed);
    if (is.failed) {
        claim->failed_ms = h->now_ms;
        claim->tried = claim->tried || !is.prepare;
        claim->in_use = false;
        note_unsure(h, &is, claim);
        devicemgr_claim_answered(h->core, h->now_ms, is.call, CODE_UNKNOWN, "it failed", NULL, 0);
    } else {
        if (is.prepare) {
            len = answer_of(h, is.claim, bytes);
            claim->answered = claim->taken;
            claim->warned = 0;
            claim->said_device = claim->taken_device;
            claim->said_shared = claim->shared && h->drivers[claim->driver].shares_said;
        }
        claim->said = is.prepare;
        claim->given_back = !is.prepare && strcmp(home_shim_row(h, is.claim).state, "owed") == 0;
        claim->used_since = !is.prepare && home_may_be_used(h, is.claim);
        claim->unsure = false;
        devicemgr_claim_answered(h->core, h->now_ms, is.call, 0, NULL, is.prepare ? bytes : NULL,
                                 len);
    }
    home_shim_run(h);
}

/* Nobody waits any more, and what is answered is lost. */
static void is_late(struct home_world *h, struct hw_op *op)
{
    const struct hw_op is = *op;
    struct hw_claim *claim = &h->claims[is.claim];

    *op = (struct hw_op){0};
    count_add(is.prepare ? COUNT_HOME_UNANSWERED : COUNT_HOME_UNANSWERED_UNPREPARE);
    home_note(h, "call %" PRIu64 " on c%zu takes too long", is.call, is.claim);
    claim->failed_ms = h->now_ms;
    claim->lost = 0;
    claim->tried = claim->tried || !is.prepare;
    claim->in_use = false;
    note_unsure(h, &is, claim);
    home_anew_ended(h, &is, false);
    devicemgr_claim_answered(h->core, h->now_ms, is.call, CODE_DEADLINE_EXCEEDED, "it is late",
                             NULL, 0);
    home_shim_run(h);
}

static bool is_in_books(const struct home_world *h, const struct hw_op *op)
{
    const struct hw_claim *claim = &h->claims[op->claim];

    return op->looks == HW_LOOKS ? claim->in_books : claim->has;
}

static void is_in_use(struct home_world *h, struct hw_op *op)
{
    const struct hw_op is = *op;

    *op = (struct hw_op){0};
    count_add(COUNT_HOME_SETTLE_USED);
    h->claims[is.claim].tried = h->claims[is.claim].in_use = true;
    h->claims[is.claim].read = ++h->number;
    home_note(h, "call %" PRIu64 " on c%zu is not sent: the kubelet has it", is.call, is.claim);
    devicemgr_claim_in_use(h->core, h->now_ms, is.call);
    home_shim_run(h);
}

/* In a world of lost answers one that fails does so when it is to let go of something. */
static bool fails(struct home_world *h, const struct hw_op *op)
{
    unsigned percent = h->drivers[driver_of(h, op->claim)].fails_percent;

    return !h->calm && rng_percent(&h->rng, h->lossy && op->prepare ? 5 : percent);
}

static bool is_lost(struct home_world *h, const struct hw_op *op)
{
    bool anew = h->lossy && op->prepare && h->claims[op->claim].said;

    return !h->calm && rng_percent(&h->rng, anew ? LOST_ANEW_PERCENT : LOST_PERCENT);
}

void home_op_proceeds(struct home_world *h, struct hw_op *op)
{
    if (op->looks != HW_SENT && is_in_books(h, op)) {
        is_in_use(h, op);
    } else if (op->looks != HW_SENT) {
        op->looks = HW_SENT;
        count_add(COUNT_HOME_SETTLED);
        if (h->drivers[driver_of(h, op->claim)].connected)
            count_add(COUNT_HOME_SETTLED_BACK);
    } else if (!op->decided) {
        decide(h, op, !fails(h, op));
        op->late = is_lost(h, op);
        if (op->late && rng_percent(&h->rng, DIES_PERCENT))
            home_driver_dies(h, op->instance);
    } else if (op->late && !op->failed) {
        is_late(h, op);
    } else {
        answer(h, op);
    }
}
