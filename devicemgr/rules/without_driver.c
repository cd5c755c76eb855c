#include "devicemgr/rules/without_driver.h"

#include <string.h>

#include "devicemgr/rules/rule.h"

static bool all_local(const struct state *state, const struct claim *claim,
                      const struct granted *granted)
{
    for (size_t i = 0; i < granted->len; i++) {
        if (!slices_have(&state->slices, claim->driver, granted->v[i].pool, granted->v[i].device))
            return false;
    }
    return granted->len > 0;
}

/* What was not answered has what is allocated, or what was before that. */
bool without_driver_local(const struct state *state, const struct claim *claim)
{
    if (claim->devices.len > 0 && !claim->unanswered)
        return all_local(state, claim, &claim->devices) &&
               (claim->allocation.len == 0 || all_local(state, claim, &claim->allocation));
    return claim->allocation_known && all_local(state, claim, &claim->allocation) &&
           (claim->devices.len == 0 || all_local(state, claim, &claim->devices));
}

/* That it was seen once counts for what the driver has answered since, as long as nothing else is
 * allocated: the kubelet may have had that prepared by itself, if the driver is with it as well. */
static bool was_local(const struct claim *claim)
{
    return claim->local && !claim->unanswered && claim->devices.len > 0 &&
           (claim->allocation.len == 0 || granted_same(&claim->allocation, &claim->devices));
}

bool without_driver_unprepared(const struct state *state, const struct claim *claim)
{
    if (claim->state == CLAIM_NEW)
        return false; /* it is from before its driver came here */
    return (claim->state == CLAIM_ASKED && !claim->sent) || was_local(claim) ||
           without_driver_local(state, claim);
}

static bool is_cached(const struct state *state, const char *driver)
{
    for (size_t i = 0; i < state->settings.cached_prepare_len; i++) {
        if (strcmp(state->settings.cached_prepare[i], driver) == 0)
            return true;
    }
    return false;
}

bool without_driver_prepared(const struct state *state, const struct claim *claim)
{
    return claim->state == CLAIM_PREPARED && claim->durable && is_cached(state, claim->driver) &&
           claim->allocation_known && claim->allocated &&
           granted_same(&claim->allocation, &claim->devices);
}
