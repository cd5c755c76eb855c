/*
 * The cluster: which devices claims have, and the agent that tells the shim of it.
 */
#include <stdio.h>

#include "tests/sim/home_world.h"

#define ADMIN_PERCENT 12
#define SHARED_PERCENT 12
#define GONE_PERCENT 3

/* ---- devices ---- */

/* Whether the claim may have it, beside all others, as a scheduler sees it: who shares a device, or
 * only looks at it, takes nothing of what others are made of. */
static bool is_free(const struct home_world *h, size_t claim, unsigned device)
{
    const struct hw_claim *is = &h->claims[claim];
    unsigned taken = 0;

    for (size_t i = 0; i < h->claims_len && !is->admin; i++) {
        const struct hw_claim *other = &h->claims[i];

        if (i != claim && other->allocated && other->driver == is->driver &&
            other->device == device && !other->admin && !(other->shared && is->shared))
            return false;
        if (i != claim && other->allocated && other->driver == is->driver && !other->admin &&
            !other->shared)
            taken |= 1U << other->device;
    }
    return is->admin || is->shared ||
           !home_parts_over(&h->drivers[is->driver], device, taken, taken);
}

/* It is so for good: it stands in the claim's spec, which nobody can change, or comes with the
 * devices that it asks for. */
void home_claim_begins(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];

    *is = (struct hw_claim){.driver = rng_below(&h->rng, HW_DRIVERS)};
    is->admin = rng_percent(&h->rng, ADMIN_PERCENT);
    is->shared = !is->admin && rng_percent(&h->rng, SHARED_PERCENT);
}

bool home_allocate(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];
    const struct hw_driver *d = &h->drivers[is->driver];
    bool again = rng_percent(&h->rng, d->parted ? 20 : h->lossy ? 30 : 60);
    unsigned first =
        again ? d->freed : (unsigned)rng_below(&h->rng, d->parted ? HW_PARTS : HW_DEVICES);

    for (unsigned i = 0; i < HW_DEVICES; i++) {
        is->device = (first + i) % HW_DEVICES;
        is->allocated = is_free(h, claim, is->device);
        if (is->allocated)
            return true;
    }
    return false;
}

/* ---- what the shim is told ---- */

static void tell_slices(struct home_world *h, size_t driver)
{
    const struct hw_driver *d = &h->drivers[driver];

    h->sliced[driver] = true;
    if (d->parted)
        home_parts_tell(h, driver);
    for (unsigned first = 0; !d->parted && home_device_is_local(first); first += HW_POOL_DEVICES) {
        char uid[16], names[HW_POOL_DEVICES][16];
        const char *devices[HW_POOL_DEVICES];

        for (unsigned i = 0; i < HW_POOL_DEVICES; i++) {
            snprintf(names[i], sizeof names[i], "g%u", first + i);
            devices[i] = names[i];
        }
        snprintf(uid, sizeof uid, "slice%zu-%u", driver, first);
        devicemgr_slice(h->core, h->now_ms,
                        &(struct devicemgr_slice){.uid = uid,
                                                  .driver = home_driver_name(driver),
                                                  .pool = home_pool_name(d, first),
                                                  .devices = devices,
                                                  .devices_len = HW_POOL_DEVICES});
    }
    home_shim_run(h);
}

static void tell_claim(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];
    char uid[16], name[16];
    const struct devicemgr_claim_device device = {
        .driver = home_driver_name(is->driver),
        .pool = home_pool_name(&h->drivers[is->driver], is->device),
        .device = name,
        .share_id = is->shared ? "x" : NULL,
        .admin_access = is->admin};

    snprintf(uid, sizeof uid, "c%zu", claim);
    snprintf(name, sizeof name, "g%u", is->device);
    is->looked_for = false;
    is->told = is->allocated;
    is->told_admin = is->admin;
    is->told_shared = is->shared;
    is->told_device = is->device;
    is->alone = is->allocated ? !is->admin && !is->shared : is->alone;
    is->told_alone |= is->allocated && !is->admin && !is->shared;
    home_note(h, "the agent tells of %s: %s", uid, is->allocated ? name : "not allocated");
    devicemgr_claim_allocation(h->core, h->now_ms, uid, is->allocated, &device, is->allocated);
    home_shim_run(h);
}

static void tell_all(struct home_world *h)
{
    for (size_t d = 0; d < HW_DRIVERS && h->agent; d++) {
        if (!h->sliced[d])
            tell_slices(h, d);
    }
    for (size_t i = 0; i < h->claims_len && h->agent; i++) {
        if (h->claims[i].looked_for)
            tell_claim(h, i);
    }
}

/* A driver that is started anew takes its slices back at first. */
static void forget_some_slices(struct home_world *h)
{
    for (size_t d = 0; d < HW_DRIVERS && h->agent; d++) {
        if (!h->drivers[d].parted || !h->sliced[d] || !rng_percent(&h->rng, GONE_PERCENT))
            continue;
        h->sliced[d] = false;
        home_parts_gone(h, d);
        home_shim_run(h);
    }
}

void home_agent_acts(struct home_world *h)
{
    if (h->watched && rng_percent(&h->rng, h->agent && !h->lossy ? 4 : 20)) {
        h->agent = !h->agent;
        home_note(h, "the agent is %s", h->agent ? "back" : "away");
    }
    forget_some_slices(h);
    tell_all(h);
}

void home_agent_heals(struct home_world *h)
{
    h->agent = h->watched;
    tell_all(h);
}

void home_cluster_shim_started(struct home_world *h)
{
    for (size_t d = 0; d < HW_DRIVERS; d++)
        h->sliced[d] = false;
    for (size_t i = 0; i < h->claims_len; i++)
        h->claims[i].looked_for = h->claims[i].told = false;
}
