/*
 * The drivers.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

#define STEP_MS_MAX 8000
#define FAILS_PERCENT 20
/* Some fail to unprepare most of what they are asked to, or come and go all the time. */
#define BAD_PERCENT 30
#define BAD_FAILS_PERCENT 70
#define BAD_STEP_MS_MAX 2500
#define AWAY_MS_MAX 60000
/* How often one goes while it is asked to prepare something. */
#define DIES_PERCENT 10
#define DIES_MS_MAX 1000
/* How often one is away so long that its slices are wiped. */
#define LONG_PERCENT 30
#define CALL_MS 45000

static const char *const NAMES[DRA_DRIVERS] = {DRA_LOCAL_DRIVER, "net.example.com"};

const char *dra_driver_name(size_t driver)
{
    return NAMES[driver];
}

const char *dra_pool_name(unsigned device)
{
    return device / DRA_POOL_DEVICES ? "pool1" : "pool0";
}

void dra_cdi_name(size_t claim, size_t driver, unsigned version, char name[48])
{
    if (version)
        snprintf(name, 48, "%s/device=c%zu-v%u", NAMES[driver], claim, version);
    else
        snprintf(name, 48, "%s/device=c%zu", NAMES[driver], claim);
}

bool dra_driver_there(const struct dra_driver *d)
{
    return (d->instance && d->connected) || (d->old && d->old_connected);
}

static struct dra_op *find_op(struct dra *dra, uint64_t number)
{
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        if (number && dra->ops[i].number == number)
            return &dra->ops[i];
    }
    return NULL;
}

static void take_effect(struct world *w, struct dra_op *op)
{
    const struct dra_claim *claim = &w->dra.claims[op->claim];
    struct dra_truth *truth = &w->dra.claims[op->claim].truth[op->driver];

    op->fails = op->fails || (op->prepare && !claim->allocated);
    if (op->looks || op->fails || op->done)
        return;
    op->done = true;
    truth->prepared = op->prepare;
    truth->in_books = false;
    truth->unknown = false;
    truth->owed = truth->owed && op->prepare;
    if (!op->prepare)
        return;
    truth->version++;
    truth->taken_ms = w->now_ms;
    truth->device = claim->device[op->driver];
}

/* It may have been unprepared, or was not prepared anew. */
static void note_unsure(struct world *w, const struct dra_op *op)
{
    struct dra_truth *truth = &w->dra.claims[op->claim].truth[op->driver];

    truth->unsure = true;
    truth->used_since = truth->used_since || dra_may_be_used(w, op->claim, op->driver);
}

/* What has ended the driver too often is not told it as soon as that is back. */
static void note_lost(struct dra_truth *truth)
{
    truth->lost++;
    truth->tried = truth->tried || (truth->owed && truth->lost >= CLAIM_LOST_MAX);
}

/* The connection of those on this instance (0: all, with the shim) is over: what was sent may have
 * been done. */
static void end_ops(struct world *w, uint64_t instance)
{
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        struct dra_op *op = &w->dra.ops[i];
        struct rng rng;

        if (!op->number || (instance && op->instance != instance))
            continue;
        rng = world_draw(w, DRAW_DRA_ANSWERS, op->claim, 2 + op->driver);
        if (rng_percent(&rng, 50))
            take_effect(w, op);
        if (instance && !op->late)
            note_lost(&w->dra.claims[op->claim].truth[op->driver]);
        note_unsure(w, op);
        *op = (struct dra_op){0};
    }
}

static void note_trouble(struct world *w, size_t driver)
{
    w->dra.trouble_ms[driver] = w->now_ms;
    dra_wipe_note(w, driver);
}

/* ---- registration, connections ---- */

static void connect(struct world *w, uint64_t driver, uint64_t instance)
{
    struct dra_driver *d = &w->dra.drivers[driver];

    if (!w->shim.core || (d->instance != instance && d->old != instance))
        return;
    if (d->instance == instance) {
        d->connected = true;
        if (w->shim.run_later)
            d->old_run = w->shim.runs + 1;
    } else {
        d->old_connected = true;
    }
    note_trouble(w, driver);
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        struct dra_truth *truth = &w->dra.claims[i].truth[driver];

        if (truth->lost >= CLAIM_LOST_MAX)
            continue;
        if (truth->tried && w->shim.run_later)
            truth->tried_run = w->shim.runs + 1;
        truth->tried = false;
    }
    world_note(w, "driver %" PRIu64 ": %" PRIu64 " is connected", driver, instance);
    devicemgr_driver_connected(w->shim.core, shim_now_ms(w), instance);
    shim_run(w);
    if (driver == 0)
        dra_publish(w);
}

static void connect_later(struct world *w, size_t driver, uint64_t instance, uint64_t ms_max)
{
    struct rng rng = world_draw(w, DRAW_DRA_CONNECTS, driver, 0);

    world_after(w, &rng, rng_delay_ms(&rng, ms_max) + 1, connect, driver, instance);
}

static void register_one(struct world *w, size_t driver)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    struct dra_driver *d = &w->dra.drivers[driver];
    char endpoint[64];
    struct devicemgr_driver_instance is = {NAMES[driver], endpoint, SERVICES, 1};

    d->old = d->instance;
    d->old_connected = d->connected;
    d->instance = ++w->dra.last_number;
    d->connected = false;
    note_trouble(w, driver);
    snprintf(endpoint, sizeof endpoint, "/x/%" PRIu64, d->instance);
    world_note(w, "driver %zu: registers %" PRIu64, driver, d->instance);
    devicemgr_driver_register(w->shim.core, shim_now_ms(w), d->instance, &is);
    connect_later(w, driver, d->instance, 2000);
    shim_run(w);
}

void dra_registered(struct world *w, uint64_t instance, int code)
{
    (void)instance;
    check_that(w, code == 0, "a driver may register: %d", code);
}

static void deregister(struct world *w, size_t driver, bool old)
{
    struct dra_driver *d = &w->dra.drivers[driver];
    uint64_t instance = old ? d->old : d->instance;

    if (!instance)
        return;
    if (!old) {
        d->instance = d->old;
        d->connected = d->old_connected;
    }
    d->old = 0;
    d->old_connected = false;
    end_ops(w, instance);
    note_trouble(w, driver);
    world_note(w, "driver %zu: %" PRIu64 " is deregistered", driver, instance);
    devicemgr_driver_deregister(w->shim.core, shim_now_ms(w), instance);
    shim_run(w);
}

static void comes(struct world *w, uint64_t driver, uint64_t unused)
{
    struct dra_driver *d = &w->dra.drivers[driver];

    (void)unused;
    d->up = true;
    if (w->shim.core && !d->instance)
        register_one(w, driver);
}

static void lose(struct world *w, size_t driver, struct rng *rng)
{
    struct dra_driver *d = &w->dra.drivers[driver];

    if (!d->connected)
        return;
    d->connected = false;
    end_ops(w, d->instance);
    note_trouble(w, driver);
    world_note(w, "driver %zu: %" PRIu64 " is lost", driver, d->instance);
    connect_later(w, driver, d->instance, rng_percent(rng, 50) ? 1000 : AWAY_MS_MAX);
    devicemgr_driver_lost(w->shim.core, shim_now_ms(w), d->instance, "closed");
    shim_run(w);
}

static void dies(struct world *w, uint64_t driver, uint64_t instance)
{
    struct rng rng = world_draw(w, DRAW_DRA_CALLED, driver, 1000);

    if (w->faults && w->shim.core && w->dra.drivers[driver].instance == instance)
        lose(w, driver, &rng);
}

static void goes(struct world *w, size_t driver, struct rng *rng)
{
    uint64_t away_ms = rng_percent(rng, LONG_PERCENT)
                           ? rng_between(rng, AWAY_MS_MAX / 2, AWAY_MS_MAX)
                           : rng_delay_ms(rng, AWAY_MS_MAX);

    w->dra.drivers[driver].up = false;
    deregister(w, driver, true);
    if (w->shim.core)
        deregister(w, driver, false);
    world_after(w, rng, away_ms + 1, comes, driver, 0);
}

/* ---- its trouble ---- */

static void trouble(struct world *w, uint64_t driver, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_DRA_DRIVER, driver, 0);
    struct dra_driver *d = &w->dra.drivers[driver];
    uint64_t kind = rng_below(&rng, 10);

    (void)unused;
    if (!w->faults)
        return;
    world_after(w, &rng, rng_between(&rng, 1, d->step_ms_max), trouble, driver, 0);
    if (!w->shim.core || !d->up)
        return;
    if (kind < 3)
        lose(w, driver, &rng);
    else if (kind < 5)
        goes(w, driver, &rng);
    else if (kind == 5 && d->instance && !d->old)
        register_one(w, driver); /* a roll-over */
    else if (kind == 6)
        deregister(w, driver, true);
    else if (kind == 7 && d->old)
        deregister(w, driver, false); /* and back */
}

void dra_drivers_init(struct world *w)
{
    for (size_t i = 0; i < DRA_DRIVERS; i++) {
        struct rng rng = world_draw(w, DRAW_DRA_DRIVER, i, 1);

        w->dra.drivers[i].fails_percent =
            rng_percent(&rng, BAD_PERCENT) ? BAD_FAILS_PERCENT : FAILS_PERCENT;
        w->dra.drivers[i].step_ms_max =
            rng_percent(&rng, BAD_PERCENT) ? BAD_STEP_MS_MAX : STEP_MS_MAX;
        comes(w, i, 0);
        trouble(w, i, 0);
    }
}

void dra_drivers_heal(struct world *w)
{
    for (size_t i = 0; i < DRA_DRIVERS; i++)
        comes(w, i, 0);
}

/* ---- the shim ---- */

static void again(struct world *w, uint64_t incarnation, uint64_t driver)
{
    struct dra_driver *d = &w->dra.drivers[driver];

    if (shim_lives(w, incarnation) && d->up && !d->instance)
        register_one(w, driver);
}

void dra_drivers_shim_started(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_STARTS, 0, 0);

    for (size_t i = 0; i < DRA_DRIVERS; i++) {
        note_trouble(w, i);
        world_after(w, &rng, rng_delay_ms(&rng, w->faults ? AWAY_MS_MAX : 1000) + 1, again,
                    w->shim.incarnation, i);
    }
}

void dra_drivers_shim_gone(struct world *w)
{
    end_ops(w, 0);
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++)
            w->dra.claims[i].truth[d].lost = 0;
    }
    for (size_t i = 0; i < DRA_DRIVERS; i++) {
        struct dra_driver *d = &w->dra.drivers[i];

        d->instance = d->old = 0;
        d->connected = d->old_connected = false;
    }
}

/* ---- calls ---- */

static size_t answer_of(const struct dra_op *op, const struct dra_truth *truth, uint8_t bytes[256])
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device device = DRA__V1__DEVICE__INIT;
    char name[16], stable[48], newest[48], *ids[] = {stable, newest};
    Dra__V1__Device *devices[] = {&device};

    snprintf(name, sizeof name, "g%u", truth->device % DRA_POOL_DEVICES);
    dra_cdi_name(op->claim, op->driver, 0, stable);
    dra_cdi_name(op->claim, op->driver, truth->version, newest);
    device.device_name = name;
    device.pool_name = (char *)dra_pool_name(truth->device);
    device.cdi_device_ids = ids;
    device.n_cdi_device_ids = 2;
    message.devices = devices;
    message.n_devices = 1;
    return dra__v1__node_prepare_resource_response__pack(&message, bytes);
}

static void note_failed(struct world *w, const struct dra_op *op)
{
    struct dra_truth *truth = &w->dra.claims[op->claim].truth[op->driver];

    truth->failed_ms = w->now_ms;
    truth->tried = truth->tried || !op->prepare;
    note_unsure(w, op);
}

static void answer(struct world *w, uint64_t number, uint64_t unused)
{
    struct dra_op *op = find_op(&w->dra, number);
    const struct dra_truth *truth;
    uint8_t bytes[256];
    struct dra_op is;

    (void)unused;
    if (!op)
        return;
    is = *op;
    *op = (struct dra_op){0};
    if (is.late)
        return;
    w->dra.claims[is.claim].truth[is.driver].lost = 0;
    truth = &w->dra.claims[is.claim].truth[is.driver];
    world_note(w, "driver %zu: c%zu %s %s", is.driver, is.claim,
               is.prepare ? "prepare" : "unprepare", is.fails ? "failed" : "done");
    if (is.fails) {
        note_failed(w, &is);
    } else {
        w->dra.claims[is.claim].truth[is.driver].answered = truth->version;
        w->dra.claims[is.claim].truth[is.driver].given_ms = w->now_ms;
        w->dra.claims[is.claim].truth[is.driver].used_since =
            !is.prepare && dra_may_be_used(w, is.claim, is.driver);
        w->dra.claims[is.claim].truth[is.driver].unsure = !is.prepare; /* until that is stored */
    }
    if (is.fails)
        devicemgr_claim_answered(w->shim.core, shim_now_ms(w), is.call, 2, "no", NULL, 0);
    else
        devicemgr_claim_answered(w->shim.core, shim_now_ms(w), is.call, 0, NULL, bytes,
                                 is.prepare ? answer_of(&is, truth, bytes) : 0);
    shim_run(w);
}

/* The driver does it. */
static void execute(struct world *w, uint64_t number, uint64_t delay_ms)
{
    struct dra_op *op = find_op(&w->dra, number);
    struct rng rng = world_draw(w, DRAW_DRA_ANSWERS, op ? op->claim : 0, op ? op->driver : 0);

    if (!op)
        return;
    take_effect(w, op);
    world_after(w, &rng, delay_ms, answer, number, 0);
}

/* Nobody waits for it any more. */
static void run_out(struct world *w, uint64_t number, uint64_t unused)
{
    struct dra_op *op = find_op(&w->dra, number);

    (void)unused;
    if (!op || op->late || !w->shim.core)
        return;
    op->late = true;
    count_add(COUNT_DRA_HUNG);
    world_note(w, "driver %zu: %s c%zu is late", op->driver, op->prepare ? "prepare" : "unprepare",
               op->claim);
    note_failed(w, op);
    w->dra.claims[op->claim].truth[op->driver].lost = 0;
    devicemgr_claim_answered(w->shim.core, shim_now_ms(w), op->call, 4, "deadline exceeded", NULL,
                             0);
    shim_run(w);
}

/* A driver does one thing after the other for a claim: what was too late comes first, or never. */
static void end_late(struct world *w, const struct dra_op *next, struct rng *rng)
{
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        struct dra_op *op = &w->dra.ops[i];

        if (!op->number || !op->late || op->claim != next->claim || op->driver != next->driver)
            continue;
        if (rng_percent(rng, 50))
            take_effect(w, op);
        *op = (struct dra_op){0};
    }
}

static size_t driver_of(const struct dra *dra, uint64_t instance)
{
    size_t driver = 0;

    while (driver < DRA_DRIVERS - 1 && dra->drivers[driver].instance != instance &&
           dra->drivers[driver].old != instance)
        driver++;
    return driver;
}

static struct dra_op *add_op(struct dra *dra, const struct dra_op *op)
{
    size_t slot = 0;

    while (slot < DRA_OPS_MAX - 1 && dra->ops[slot].number)
        slot++;
    dra->ops[slot] = *op;
    return &dra->ops[slot];
}

void dra_called(struct world *w, bool prepare, uint64_t instance, uint64_t call,
                const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    size_t driver = driver_of(&w->dra, instance), id = dra_claim_find(claim->uid);
    struct rng rng = world_draw(w, DRAW_DRA_CALLED, id, 2 * driver + prepare);
    bool slow = w->faults && rng_percent(&rng, 5), hangs = w->faults && rng_percent(&rng, 2);
    unsigned percent = prepare ? FAILS_PERCENT : w->dra.drivers[driver].fails_percent;
    struct dra_op op = {.number = ++w->dra.last_number,
                        .call = call,
                        .instance = instance,
                        .prepare = prepare,
                        .claim = id,
                        .driver = driver,
                        .fails = w->faults && rng_percent(&rng, percent)};

    dra_judge_call(w, &op);
    world_note(w, "driver %zu: %s %s", driver, prepare ? "prepare" : "unprepare", claim->uid);
    end_late(w, &op, &rng);
    add_op(&w->dra, &op);
    count_add(prepare ? COUNT_DRA_PREPARES : COUNT_DRA_UNPREPARES);
    world_after(w, &rng, timeout_ms, run_out, op.number, 0);
    if (w->faults && prepare && rng_percent(&rng, DIES_PERCENT))
        world_after(w, &rng, rng_between(&rng, 1, DIES_MS_MAX), dies, driver, instance);
    if (!hangs)
        world_after(w, &rng, rng_delay_ms(&rng, 3000) + 1, execute, op.number,
                    slow ? CALL_MS - 5000 : rng_delay_ms(&rng, 3000) + 1);
}

static void in_use(struct world *w, uint64_t number, uint64_t unused)
{
    struct dra_op *op = find_op(&w->dra, number);
    uint64_t call = op ? op->call : 0;

    (void)unused;
    if (!op)
        return;
    world_note(w, "kubelet: has c%zu of driver %zu in its books", op->claim, op->driver);
    w->dra.claims[op->claim].truth[op->driver].in_books = true;
    *op = (struct dra_op){0};
    devicemgr_claim_in_use(w->shim.core, shim_now_ms(w), call);
    shim_run(w);
}

void dra_settles(struct world *w, uint64_t instance, uint64_t call,
                 const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    size_t driver = driver_of(&w->dra, instance), id = dra_claim_find(claim->uid);
    struct rng rng = world_draw(w, DRAW_DRA_CALLED, id, 4 + driver);
    struct dra_op op = {.number = ++w->dra.last_number,
                        .call = call,
                        .instance = instance,
                        .claim = id,
                        .driver = driver,
                        .looks = true};

    if (!w->dra.claims[id].has[driver]) {
        dra_called(w, false, instance, call, claim, timeout_ms);
        return;
    }
    world_after(w, &rng, rng_delay_ms(&rng, 100) + 1, in_use, add_op(&w->dra, &op)->number, 0);
}
