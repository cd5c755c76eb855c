/*
 * The drivers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#define CALL_MS 45000

static const char *const NAMES[DRA_DRIVERS] = {DRA_LOCAL_DRIVER, "net.example.com"};

const char *dra_driver_name(size_t driver)
{
    return NAMES[driver];
}

size_t dra_claim_find(const char *uid)
{
    return (size_t)strtoul(uid + 1, NULL, 10);
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

static void end_ops(struct dra *dra, uint64_t instance)
{
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        if (dra->ops[i].instance == instance)
            dra->ops[i] = (struct dra_op){0};
    }
}

static void note_trouble(struct world *w, size_t driver)
{
    w->dra.trouble_ms[driver] = w->now_ms;
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

        if (truth->tried && w->shim.run_later)
            truth->tried_run = w->shim.runs + 1;
        truth->tried = false;
    }
    world_note(w, "driver %" PRIu64 ": %" PRIu64 " is connected", driver, instance);
    devicemgr_driver_connected(w->shim.core, shim_now_ms(w), instance);
    shim_run(w);
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
    end_ops(&w->dra, instance);
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
    end_ops(&w->dra, d->instance);
    note_trouble(w, driver);
    world_note(w, "driver %zu: %" PRIu64 " is lost", driver, d->instance);
    connect_later(w, driver, d->instance, rng_percent(rng, 50) ? 1000 : AWAY_MS_MAX);
    devicemgr_driver_lost(w->shim.core, shim_now_ms(w), d->instance, "closed");
    shim_run(w);
}

static void goes(struct world *w, size_t driver, struct rng *rng)
{
    w->dra.drivers[driver].up = false;
    deregister(w, driver, true);
    if (w->shim.core)
        deregister(w, driver, false);
    world_after(w, rng, rng_delay_ms(rng, AWAY_MS_MAX) + 1, comes, driver, 0);
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

void dra_heal(struct world *w)
{
    for (size_t i = 0; w->dra.there && i < DRA_DRIVERS; i++)
        comes(w, i, 0);
}

/* ---- the shim ---- */

static void slice(struct world *w, uint64_t incarnation, uint64_t pool)
{
    char names[DRA_CLAIMS_MAX][16];
    const char *devices[DRA_CLAIMS_MAX];

    if (!shim_lives(w, incarnation))
        return;
    for (size_t i = 0; i < DRA_CLAIMS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "g%zu", i);
        devices[i] = names[i];
    }
    devicemgr_slice(w->shim.core, shim_now_ms(w), pool ? "s1" : "s0", NAMES[0],
                    pool ? "pool1" : "pool0", devices, DRA_CLAIMS_MAX);
    shim_run(w);
}

static void again(struct world *w, uint64_t incarnation, uint64_t driver)
{
    struct dra_driver *d = &w->dra.drivers[driver];

    if (shim_lives(w, incarnation) && d->up && !d->instance)
        register_one(w, driver);
}

static void forget_lost(struct world *w)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        for (size_t d = 0; d < DRA_DRIVERS; d++) {
            struct dra_truth *truth = &w->dra.claims[i].truth[d];
            char uid[16];

            snprintf(uid, sizeof uid, "c%zu", i);
            truth->tried = false;
            if (store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, NAMES[d], ""))
                continue;
            truth->unknown = truth->prepared;
            if (truth->owed)
                *truth = (struct dra_truth){0}; /* the driver is told by hand */
        }
    }
}

void dra_shim_started(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_STARTS, 0, 0);

    if (!w->dra.there)
        return;
    forget_lost(w);
    for (size_t i = 0; i < DRA_DRIVERS; i++) {
        note_trouble(w, i);
        world_after(w, &rng, rng_delay_ms(&rng, w->faults ? AWAY_MS_MAX : 1000) + 1, again,
                    w->shim.incarnation, i);
    }
    if (!rng_percent(&rng, 70))
        return; /* nobody looks at the cluster */
    for (size_t pool = 0; pool < 2; pool++)
        world_after(w, &rng, rng_delay_ms(&rng, 20000) + 1, slice, w->shim.incarnation, pool);
}

void dra_shim_gone(struct world *w)
{
    memset(w->dra.ops, 0, sizeof w->dra.ops);
    memset(w->dra.asked, 0, sizeof w->dra.asked);
    for (size_t i = 0; i < DRA_DRIVERS; i++) {
        struct dra_driver *d = &w->dra.drivers[i];

        d->instance = d->old = 0;
        d->connected = d->old_connected = false;
    }
}

/* ---- calls ---- */

static size_t answer_of(const struct dra_op *op, unsigned version, uint8_t bytes[256])
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};
    char name[16], cdi[32], *ids[] = {cdi};

    snprintf(name, sizeof name, "g%zu", op->claim);
    snprintf(cdi, sizeof cdi, "v%u", version);
    device.device_name = name;
    device.pool_name = (char *)(op->claim % 2 ? "pool1" : "pool0");
    device.cdi_device_ids = ids;
    device.n_cdi_device_ids = 1;
    message.devices = devices;
    message.n_devices = 1;
    return dra__v1__node_prepare_resource_response__pack(&message, bytes);
}

static void answer(struct world *w, uint64_t number, uint64_t unused)
{
    struct dra_op *op = find_op(&w->dra, number);
    uint8_t bytes[256];
    struct dra_op is;

    (void)unused;
    if (!op)
        return;
    is = *op;
    *op = (struct dra_op){0};
    world_note(w, "driver %zu: c%zu %s %s", is.driver, is.claim,
               is.prepare ? "prepare" : "unprepare", is.fails ? "failed" : "done");
    if (is.fails && !is.prepare)
        w->dra.claims[is.claim].truth[is.driver].tried = true;
    if (is.fails)
        devicemgr_claim_answered(w->shim.core, shim_now_ms(w), is.call, 2, "no", NULL, 0);
    else
        devicemgr_claim_answered(
            w->shim.core, shim_now_ms(w), is.call, 0, NULL, bytes,
            is.prepare ? answer_of(&is, w->dra.claims[is.claim].truth[is.driver].version, bytes)
                       : 0);
    shim_run(w);
}

/* The driver does it. */
static void execute(struct world *w, uint64_t number, uint64_t delay_ms)
{
    struct dra_op *op = find_op(&w->dra, number);
    struct rng rng = world_draw(w, DRAW_DRA_ANSWERS, op ? op->claim : 0, op ? op->driver : 0);
    struct dra_truth *truth;

    if (!op)
        return;
    truth = &w->dra.claims[op->claim].truth[op->driver];
    if (!op->fails) {
        truth->prepared = op->prepare;
        truth->unknown = false;
        truth->version += op->prepare;
        truth->owed = truth->owed && op->prepare;
    }
    world_after(w, &rng, delay_ms, answer, number, 0);
}

/* Whether what the driver has of the claim must be gone before the other is prepared. */
static void check_owed(struct world *w, const struct dra_op *op)
{
    for (size_t i = 0; i < w->dra.claims_len; i++) {
        const struct dra_truth *truth = &w->dra.claims[i].truth[op->driver];
        bool tried = truth->tried || truth->tried_run == w->shim.runs;

        check_that(w, !truth->owed || truth->unknown || (tried && i % 2 != op->claim % 2),
                   "c%zu is prepared by driver %zu before c%zu is unprepared", op->claim,
                   op->driver, i);
    }
}

/* The newest that is connected, or was, when the call was decided on: the run that makes it came later. */
static bool is_right_instance(const struct world *w, const struct dra_op *op)
{
    const struct dra_driver *d = &w->dra.drivers[op->driver];

    if (op->instance == d->instance)
        return d->connected;
    return op->instance == d->old && d->old_connected &&
           (!d->connected || d->old_run == w->shim.runs);
}

static void check_call(struct world *w, const struct dra_op *op, const char *uid)
{
    check_that(w, is_right_instance(w, op),
               "driver %zu is called at the newest instance that is connected", op->driver);
    for (size_t i = 0; i < DRA_OPS_MAX; i++) {
        const struct dra_op *other = &w->dra.ops[i];

        check_that(w,
                   other->number == 0 || other->claim != op->claim || other->driver != op->driver,
                   "driver %zu is asked for c%zu in two calls at once", op->driver, op->claim);
    }
    if (!op->prepare)
        return;
    /* A file that was taken away between the decision and the call had the row. */
    check_that(w,
               store_find(&w->store, DEVICEMGR_RECORD_CLAIM, uid, NAMES[op->driver], "") ||
                   (w->store.reset && w->shim.late),
               "%s is durable before it is prepared", uid);
    check_owed(w, op);
}

static size_t driver_of(const struct dra *dra, uint64_t instance)
{
    size_t driver = 0;

    while (driver < DRA_DRIVERS - 1 && dra->drivers[driver].instance != instance &&
           dra->drivers[driver].old != instance)
        driver++;
    return driver;
}

void dra_called(struct world *w, bool prepare, uint64_t instance, uint64_t call,
                const struct devicemgr_claim *claim)
{
    size_t driver = driver_of(&w->dra, instance), id = dra_claim_find(claim->uid), slot = 0;
    struct rng rng = world_draw(w, DRAW_DRA_CALLED, id, 2 * driver + prepare);
    bool slow = w->faults && rng_percent(&rng, 5);
    struct dra_op op = {
        .number = ++w->dra.last_number,
        .call = call,
        .instance = instance,
        .prepare = prepare,
        .claim = id,
        .driver = driver,
        .fails = w->faults &&
                 rng_percent(&rng, prepare ? FAILS_PERCENT : w->dra.drivers[driver].fails_percent)};

    check_call(w, &op, claim->uid);
    world_note(w, "driver %zu: %s %s", driver, prepare ? "prepare" : "unprepare", claim->uid);
    while (slot < DRA_OPS_MAX - 1 && w->dra.ops[slot].number)
        slot++;
    w->dra.ops[slot] = op;
    count_add(prepare ? COUNT_DRA_PREPARES : COUNT_DRA_UNPREPARES);
    world_after(w, &rng, rng_delay_ms(&rng, 3000) + 1, execute, op.number,
                slow ? CALL_MS - 5000 : rng_delay_ms(&rng, 3000) + 1);
}
