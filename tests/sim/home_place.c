/*
 * Where the drivers are: registered with the shim, with the kubelet itself, or both; and whom the
 * kubelet is shown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

void home_driver_has_moved(struct home_world *h, size_t driver)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_claim *claim = &h->claims[i];

        if (claim->driver != driver)
            continue;
        claim->by_shim = false;
        claim->ours = 0;
        claim->astray = claim->astray && !h->drivers[driver].stored;
    }
}

/* One that is away has, where it is known to be with the kubelet. */
static void note_moved(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    if (d->moved || d->connected || !d->told)
        return;
    count_add(COUNT_HOME_MOVED);
    d->moved = true;
    home_driver_has_moved(h, driver);
}

/* What was owed is to be tried anew, but for what has ended the driver too often. */
static void note_trouble(struct home_world *h, size_t driver, bool came)
{
    h->drivers[driver].trouble_ms = h->now_ms;
    for (size_t i = 0; came && i < h->claims_len; i++) {
        if (h->claims[i].driver == driver && h->claims[i].lost < CLAIM_LOST_MAX)
            h->claims[i].tried = false;
    }
    if (came)
        home_anew_driver_came(h, driver);
}

static void lose_told(struct home_world *h, size_t driver);

/* ---- with the shim ---- */

static void connect(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    note_trouble(h, driver, true);
    if (d->moved)
        count_add(COUNT_HOME_BACK);
    d->connected = true;
    d->moved = false;
    home_note(h, "driver %zu is connected", driver);
    devicemgr_driver_connected(h->core, h->now_ms, d->here);
    home_shim_run(h);
}

static void enroll(struct home_world *h, size_t driver)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    struct hw_driver *d = &h->drivers[driver];
    char endpoint[32];
    struct devicemgr_driver_instance is = {home_driver_name(driver), endpoint, SERVICES, 1};

    note_trouble(h, driver, false);
    d->here = ++h->number;
    if (d->with_kubelet)
        count_add(COUNT_HOME_BOTH);
    snprintf(endpoint, sizeof endpoint, "/x/%zu.sock", driver);
    home_note(h, "driver %zu registers as %" PRIu64, driver, d->here);
    devicemgr_driver_register(h->core, h->now_ms, d->here, &is);
    home_shim_run(h);
    if (h->calm || rng_percent(&h->rng, 70))
        connect(h, driver);
}

static void lose(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    d->connected = false;
    note_trouble(h, driver, false);
    home_note(h, "driver %zu is lost", driver);
    note_moved(h, driver);
    home_ops_end(h, d->here);
    devicemgr_driver_lost(h->core, h->now_ms, d->here, "closed");
    home_shim_run(h);
}

static void deregister(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];
    uint64_t here = d->here;

    if (!here)
        return;
    d->here = 0;
    d->connected = false;
    note_trouble(h, driver, false);
    home_note(h, "driver %zu is deregistered", driver);
    note_moved(h, driver);
    home_ops_end(h, here);
    devicemgr_driver_deregister(h->core, h->now_ms, here);
    home_shim_run(h);
}

void home_driver_dies(struct home_world *h, uint64_t instance)
{
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        if (h->drivers[d].here == instance)
            lose(h, d);
        else if (h->drivers[d].told == instance)
            lose_told(h, d);
    }
}

/* ---- with the kubelet ---- */

static void forget_told(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];
    uint64_t told = d->told;

    if (!told)
        return;
    d->told = 0;
    d->told_connected = false;
    note_trouble(h, driver, false);
    home_note(h, "driver %zu is not looked at with the kubelet any more", driver);
    home_ops_end(h, told);
    devicemgr_driver_deregister(h->core, h->now_ms, told);
    home_shim_run(h);
}

static void leave_kubelet(struct home_world *h, size_t driver)
{
    h->drivers[driver].with_kubelet = false;
    home_note(h, "driver %zu leaves the kubelet", driver);
    forget_told(h, driver);
}

static void join_kubelet(struct home_world *h, size_t driver)
{
    h->drivers[driver].with_kubelet = true;
    home_note(h, "driver %zu registers with the kubelet", driver);
    if (h->drivers[driver].here)
        count_add(COUNT_HOME_BOTH);
}

static void connect_told(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    d->told_connected = true;
    note_trouble(h, driver, true);
    devicemgr_driver_connected(h->core, h->now_ms, d->told);
    home_shim_run(h);
}

static void lose_told(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    d->told_connected = false;
    note_trouble(h, driver, false);
    home_ops_end(h, d->told);
    devicemgr_driver_lost(h->core, h->now_ms, d->told, "closed");
    home_shim_run(h);
}

static void tell_moved(struct home_world *h, size_t driver)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    struct hw_driver *d = &h->drivers[driver];
    char endpoint[32];
    struct devicemgr_driver_instance is = {home_driver_name(driver), endpoint, SERVICES, 1};
    uint64_t number = ++h->number;
    bool taken;

    snprintf(endpoint, sizeof endpoint, "/k/%zu.sock", driver);
    note_trouble(h, driver, false);
    taken = devicemgr_driver_moved(h->core, h->now_ms, number, &is);
    home_note(h, "driver %zu is with the kubelet%s", driver, taken ? "" : ", and none of ours");
    if (taken) {
        d->told = number;
        d->seen = true;
        note_moved(h, driver);
    }
    home_shim_run(h);
    if (taken && (h->calm || rng_percent(&h->rng, 60)))
        connect_told(h, driver);
}

/* What waits for one that is away may be asked there. */
static void check_sought(struct home_world *h)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        const struct hw_claim *claim = &h->claims[i];

        check_that(h->w,
                   !claim->asked || h->drivers[claim->driver].connected ||
                       devicemgr_drivers_sought(h->core),
                   "driver %zu is looked for, of which c%zu waits", claim->driver, i);
    }
}

void home_drivers_are_sought(struct home_world *h)
{
    check_sought(h);
    for (size_t d = 0; d < HW_DRIVERS; d++) {
        const struct hw_driver *driver = &h->drivers[d];

        if (!devicemgr_drivers_sought(h->core))
            forget_told(h, d);
        else if (driver->with_kubelet && !driver->told)
            tell_moved(h, d);
        else if (driver->told && !driver->told_connected)
            connect_told(h, d);
    }
}

/* ---- what the kubelet is shown ---- */

struct sight {
    const char *name;
    bool is;
    bool agent;
};

static void look_at(void *user, const struct devicemgr_driver *driver)
{
    struct sight *sight = user;

    if (strcmp(driver->name, sight->name) == 0)
        sight->is = !driver->moved && (driver->connected || sight->agent);
}

static bool is_asked(const struct home_world *h, size_t driver)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        if (h->claims[i].driver == driver && h->claims[i].asked)
            return true;
    }
    return false;
}

/* What it is asked for already is answered before it is withdrawn. */
void home_driver_is_bridged(struct home_world *h, size_t driver)
{
    struct sight sight = {home_driver_name(driver), false, h->watched};

    devicemgr_drivers(h->core, look_at, &sight);
    if (sight.is || !is_asked(h, driver))
        h->drivers[driver].bridged = sight.is;
}

/* ---- their troubles ---- */

void home_driver_acts(struct home_world *h, size_t driver)
{
    struct hw_driver *d = &h->drivers[driver];

    switch (rng_below(&h->rng, 8)) {
    case 0:
    case 1:
        if (d->with_kubelet && (!d->here || rng_percent(&h->rng, 30)))
            leave_kubelet(h, driver);
        else if (!d->with_kubelet && !d->stays)
            join_kubelet(h, driver);
        break;
    case 2:
        if (d->told_connected)
            lose_told(h, driver);
        break;
    case 3:
        if (d->connected)
            lose(h, driver);
        break;
    case 4:
        if (d->here && rng_percent(&h->rng, d->with_kubelet ? 100 : d->stays ? 20 : 50))
            deregister(h, driver);
        break;
    default:
        if (!d->here)
            enroll(h, driver);
        else if (!d->connected)
            connect(h, driver);
        break;
    }
}

void home_driver_heals(struct home_world *h, size_t driver, bool with_kubelet)
{
    struct hw_driver *d = &h->drivers[driver];

    if (with_kubelet) {
        if (!d->with_kubelet)
            join_kubelet(h, driver);
        deregister(h, driver);
        return;
    }
    leave_kubelet(h, driver);
    if (!d->here)
        enroll(h, driver);
    else if (!d->connected)
        connect(h, driver);
}

void home_drivers_shim_ended(struct home_world *h)
{
    home_ops_end(h, 0);
    for (size_t i = 0; i < HW_DRIVERS; i++) {
        struct hw_driver *d = &h->drivers[i];

        d->here = d->told = 0;
        d->connected = d->told_connected = false;
        note_trouble(h, i, true);
    }
}
