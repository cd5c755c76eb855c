#include "devicemgr/rules/wanted.h"

#include "devicemgr/rules/rule.h"

void wanted_look_up(const struct state *state, const struct demand *demand, struct wanted *all)
{
    for (size_t i = 0; i < demand->request.len; i++) {
        const struct request_item *want = &demand->request.items[i];
        const char *name = want->resource;

        all[i] = (struct wanted){
            .demand = demand,
            .want = want,
            .settings = state_settings_of(state, name),
            .resource = resources_find(state->resources, name),
            .has = allocations_find(&state->allocations, demand->pod_uid, demand->container, name),
            .orders = orders_of(&state->orders, name),
            .tainted = tainted_any(state, name),
        };
    }
}
