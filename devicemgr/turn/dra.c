/*
 * Drivers of dynamic resource allocation, and their claims.
 */
#include "devicemgr/dra.h"

#include <stdlib.h>

#include "devicemgr/machines/enroll.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/tainted.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/turn/turn.h"

/* ---- drivers ---- */

void devicemgr_driver_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                               const struct devicemgr_driver_instance *is)
{
    state_at(&mgr->state, now_ms);
    enroll_begin(&mgr->state, instance, is);
}

void devicemgr_driver_connected(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance)
{
    struct state *state = &mgr->state;

    state_at(state, now_ms);
    if (enroll_connected(state, instance))
        tasks_driver_came(&mgr->tasks,
                          drivers_find_instance(&state->drivers, instance)->driver->name);
}

void devicemgr_driver_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                           const char *why)
{
    const struct driver_instance *lost = drivers_find_instance(&mgr->state.drivers, instance);
    bool had_moved = lost && lost->driver->moved;

    state_at(&mgr->state, now_ms);
    if (!enroll_lost(&mgr->state, instance, why))
        return;
    tasks_instance_lost(&mgr->tasks, instance);
    if (lost->driver->moved && !had_moved) /* it is with the kubelet as well, whose it is now */
        tasks_let_go(&mgr->tasks);
}

void devicemgr_driver_deregister(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance)
{
    const struct driver_instance *gone = drivers_find_instance(&mgr->state.drivers, instance);

    state_at(&mgr->state, now_ms);
    if (gone && gone->connected)
        devicemgr_driver_lost(mgr, now_ms, instance, "deregistered");
    enroll_end(&mgr->state, instance);
}

void devicemgr_driver_wiped(struct devicemgr *mgr, uint64_t now_ms, const char *name)
{
    state_at(&mgr->state, now_ms);
    enroll_wiped(&mgr->state, name);
}

bool devicemgr_driver_moved(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                            const struct devicemgr_driver_instance *is)
{
    state_at(&mgr->state, now_ms);
    if (!enroll_moved(&mgr->state, instance, is))
        return false;
    tasks_let_go(&mgr->tasks);
    return true;
}

static size_t owed(const struct devicemgr *mgr, const struct driver *driver)
{
    const struct claims_of *of = claims_of(&mgr->state.claims, driver->name);

    return of ? of->owed : 0;
}

bool devicemgr_drivers_sought(const struct devicemgr *mgr)
{
    for (const struct driver *d = mgr->state.drivers.by_name; d; d = d->hh.next) {
        if (!driver_usable(d) &&
            (!d->moved || owed(mgr, d) > 0 || tasks_asks(&mgr->tasks, d->name) > 0))
            return true;
    }
    for (const struct claims_of *of = mgr->state.claims.by_driver; of; of = of->hh.next) {
        if (!drivers_find(&mgr->state.drivers, of->driver))
            return true; /* its row was lost, or never was */
    }
    return false;
}

uint64_t devicemgr_drivers_version(const struct devicemgr *mgr)
{
    return mgr->state.drivers.changes + 1;
}

void devicemgr_drivers(const struct devicemgr *mgr,
                       void (*each)(void *user, const struct devicemgr_driver *driver), void *user)
{
    size_t len;
    const struct driver **drivers = drivers_sorted(&mgr->state.drivers, &len);

    for (size_t i = 0; i < len; i++) {
        const struct claims_of *of = claims_of(&mgr->state.claims, drivers[i]->name);
        bool connected = driver_usable(drivers[i]) != NULL;
        const struct devicemgr_driver driver = {
            .name = drivers[i]->name,
            .services = (const char *const *)drivers[i]->services.v,
            .services_len = drivers[i]->services.len,
            .registered = drivers[i]->instances != NULL,
            .connected = connected,
            .away_ms = connected ? 0 : drivers[i]->away_ms,
            .why = connected ? "" : drivers[i]->why,
            .wiped = drivers[i]->wiped,
            .moved = drivers[i]->moved,
            .moved_ms = drivers[i]->moved_ms,
            .claims = of ? of->len : 0,
            .owed = owed(mgr, drivers[i]),
        };

        each(user, &driver);
    }
    free(drivers);
}

/* ---- containers ---- */

/* Whether it is refused for the taint of a claim's device. */
static bool is_tainted(struct devicemgr *mgr, uint64_t create,
                       const struct devicemgr_create *request)
{
    struct look look = tainted_of_claims(&mgr->state, request);
    bool refused = look.step == LOOK_REFUSE;

    if (refused)
        creates_begin_refused(&mgr->creates, create, request, &look.reason);
    look_fini(&look);
    return refused;
}

bool turn_claims_refuse(struct devicemgr *mgr, uint64_t create,
                        const struct devicemgr_create *request)
{
    struct look look;
    bool refused;

    if (is_tainted(mgr, create, request))
        return true;
    look = claimed_look(&mgr->state, request);
    refused = look.step == LOOK_REFUSE;
    if (refused)
        creates_begin_refused(&mgr->creates, create, request, &look.reason);
    else
        tasks_created(&mgr->tasks, request, &look);
    if (refused && look.reason.user)
        listing_anew(&mgr->state); /* it may run no more */
    look_fini(&look);
    return refused;
}

void turn_claims_made(struct devicemgr *mgr, uint64_t create)
{
    const struct create *is = creates_find(&mgr->creates, create);

    if (is && is->state == CREATE_FORWARDED)
        tasks_made(&mgr->tasks, is->demand.sandbox_id, is->demand.container);
}

void devicemgr_runtime_cdi(struct devicemgr *mgr, uint64_t now_ms, enum devicemgr_cdi cdi)
{
    state_at(&mgr->state, now_ms);
    mgr->state.cdi = cdi;
    mgr->state.cdi_told = false;
    wake_all(&mgr->state.wakes);
}

void devicemgr_create_refused(struct devicemgr *mgr, uint64_t now_ms, const char *words)
{
    state_at(&mgr->state, now_ms);
    tasks_create_refused(&mgr->tasks, words);
}

/* ---- what the cluster says ---- */

void devicemgr_slice(struct devicemgr *mgr, uint64_t now_ms, const struct devicemgr_slice *slice)
{
    struct state *state = &mgr->state;

    state_at(state, now_ms);
    slices_remove(&state->slices, slice->uid);
    if (slices_len(&state->slices) < SLICES_MAX)
        slices_add(&state->slices, slice);
    tasks_slices_changed(&mgr->tasks);
}

void devicemgr_slice_gone(struct devicemgr *mgr, uint64_t now_ms, const char *uid)
{
    state_at(&mgr->state, now_ms);
    slices_remove(&mgr->state.slices, uid);
    cluster_taints_drop_slice(&mgr->state.tainted.cluster, uid);
}

void devicemgr_claim_allocation(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                                bool allocated, const struct devicemgr_claim_device *devices,
                                size_t devices_len)
{
    state_at(&mgr->state, now_ms);
    tasks_allocation(&mgr->tasks, uid, allocated, devices, devices_len);
    creates_claim_told(&mgr->creates, uid);
}

/* ---- claims ---- */

void devicemgr_claim_prepare(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             struct devicemgr_batch batch, const char *driver,
                             const struct devicemgr_claim *claim)
{
    state_at(&mgr->state, now_ms);
    tasks_ask(&mgr->tasks, TASK_PREPARE, number, batch, driver, claim);
}

void devicemgr_claim_unprepare(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                               struct devicemgr_batch batch, const char *driver,
                               const struct devicemgr_claim *claim)
{
    state_at(&mgr->state, now_ms);
    tasks_ask(&mgr->tasks, TASK_UNPREPARE, number, batch, driver, claim);
}

void devicemgr_claim_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t number)
{
    state_at(&mgr->state, now_ms);
    tasks_cancelled(&mgr->tasks, number);
}

void devicemgr_claim_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                              const char *message, const void *response, size_t response_bytes)
{
    state_at(&mgr->state, now_ms);
    tasks_answered(&mgr->tasks, call, code, message, response, response_bytes);
}

void devicemgr_claim_in_use(struct devicemgr *mgr, uint64_t now_ms, uint64_t call)
{
    state_at(&mgr->state, now_ms);
    tasks_in_use(&mgr->tasks, call);
}
