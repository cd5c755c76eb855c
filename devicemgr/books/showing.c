#include "devicemgr/books/showing.h"

#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

void showing_changed(struct state *state, const char *name)
{
    struct resource *resource = resources_edit(&state->resources, name);

    if (!resource || resource->shown.version == 0)
        return;
    resource->shown.version = ++state->showing.version;
    if (state_settings_of(state, name)->dra) /* who has it is published (rules/lifted.c) */
        resource->shown.base = resource->shown.version;
}

void showing_offer_changed(struct state *state, const char *name)
{
    struct resource *resource = resources_edit(&state->resources, name);

    if (resource && resource->shown.version != 0)
        resource->shown.version = resource->shown.base = ++state->showing.version;
}

void showing_all(struct state *state)
{
    state->showing.all = true;
}

void showing_all_at(struct state *state, uint64_t at_ms)
{
    if (at_ms > state->now_ms)
        state->showing.all_ms = earlier(state->showing.all_ms, at_ms);
}

void showing_times(struct state *state)
{
    state->showing.all_ms = UINT64_MAX;
    for (const struct kubelet_hold *hold = state->kubelet.holds; hold; hold = hold->hh.next)
        showing_all_at(state, hold->since_ms + POD_COMES_MS);
    for (const struct replacing *r = state->replacings.by_key; r; r = r->hh.next)
        showing_all_at(state, r->until_ms);
    for (const struct sandbox *sandbox = state->pods.sandboxes; sandbox; sandbox = sandbox->hh.next)
        showing_all_at(state, sandbox->remade_by_ms);
}
