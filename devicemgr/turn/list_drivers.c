/*
 * The list of DRA drivers.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

static bool is_meant(const struct devicemgr_which *which, const char *name)
{
    return (!which->driver || strcmp(which->driver, name) == 0) &&
           (!which->after || meant_order(&name, which->after, DEVICEMGR_DRIVER_KEY) > 0);
}

static void count_claims(const struct devicemgr *mgr, struct devicemgr_driver_row *row)
{
    const struct claims_of *of = claims_of(&mgr->state.claims, row->name);

    for (const struct claim *c = of ? of->first : NULL; c; c = c->next) {
        row->claims++;
        row->prepared += c->state == CLAIM_PREPARED;
        row->owed += c->state == CLAIM_OWED;
        row->waits += task_asks(task_find(&mgr->tasks, c));
    }
}

/* The caller frees them. */
static struct devicemgr_driver_endpoint *endpoints_of(const struct state *state,
                                                      const struct driver *driver, size_t *len)
{
    const struct driver_instance *usable = driver_usable(driver);
    struct devicemgr_driver_endpoint *endpoints = NULL;

    *len = 0;
    for (const struct driver_instance *i = driver->instances; i; i = i->next) {
        endpoints = mem_grow(endpoints, *len, sizeof *endpoints);
        endpoints[(*len)++] = (struct devicemgr_driver_endpoint){
            .instance = i->number,
            .endpoint = i->endpoint,
            .services = (const char *const *)i->services.v,
            .services_len = i->services.len,
            .connected = i->connected,
            .since_ms_ago = ago(state->now_ms, i->since_ms),
            .called = i == usable,
        };
    }
    return endpoints;
}

static bool tell(const struct devicemgr *mgr, const struct state *state,
                 const struct driver *driver,
                 bool (*each)(void *user, const struct devicemgr_driver_row *driver), void *user)
{
    const struct driver_instance *usable = driver_usable(driver);
    size_t len;
    struct devicemgr_driver_endpoint *endpoints = endpoints_of(state, driver, &len);
    struct devicemgr_driver_row row = {
        .name = driver->name,
        .endpoints = endpoints,
        .endpoints_len = len,
        .services = (const char *const *)driver->services.v,
        .services_len = driver->services.len,
        .connected = usable != NULL,
        .since_ms_ago = ago(state->now_ms, usable ? driver->connected_ms : driver->away_ms),
        .why = usable ? "" : driver->why,
        .wiped = driver->wiped,
        .moved = driver->moved,
    };
    bool more;

    count_claims(mgr, &row);
    more = each(user, &row);
    free(endpoints);
    return more;
}

void devicemgr_driver_rows(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_driver_row *driver),
                           void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    size_t len;
    const struct driver **drivers = drivers_sorted(&state->drivers, &len);
    bool more = true;

    for (size_t i = 0; more && i < len; i++) {
        if (is_meant(which, drivers[i]->name))
            more = tell(mgr, state, drivers[i], each, user);
    }
    free(drivers);
    free(state);
}
