#include "devicemgr/machines/advertise.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/moment.h"

/* ---- what contributes: resources ---- */

/* UINT64_MAX: the plugin does not count as away. */
static uint64_t mask_end_ms(const struct state *state, const struct resource *resource)
{
    uint64_t mask_ms = state->settings.mask_ms;

    if (!resource->endpoint.stopped)
        return UINT64_MAX;
    return mask_ms > 0 ? later_by(kubelet_away_ms(state, resource), mask_ms)
                       : resource->endpoint.stopped_ms;
}

static struct resource_shown look_at_resource(const struct state *state,
                                              const struct resource *resource)
{
    uint64_t end_ms = mask_end_ms(state, resource);
    bool assumed = !resource->builtin && !resource->endpoint.listed;

    return (struct resource_shown){
        .version = resource->shown.version,
        .base = resource->shown.base,
        .changes = resource->devices.changes,
        .mask_end_ms = end_ms == UINT64_MAX || end_ms <= state->now_ms ? 0 : end_ms,
        .away = end_ms <= state->now_ms,
        .assumed = assumed,
        .expected = assumed && resource->endpoint.state == ENDPOINT_CONNECTING,
    };
}

static void review_resource(struct state *state, struct resource *resource)
{
    const struct resource_shown before = resource->shown;
    const struct resource_shown now = look_at_resource(state, resource);

    resource->shown = now;
    if (before.version == 0 || now.away != before.away || now.changes != before.changes ||
        (now.assumed != before.assumed && resource->devices.healthy < resource->devices.len))
        resource->shown.version = resource->shown.base = ++state->showing.version;
    else if (now.mask_end_ms != before.mask_end_ms || now.expected != before.expected)
        state->showing.version++;
}

/* One that was shown and is no more is seen by the number of those that are: a new one in its place
 * has been counted as such. */
static void review_resources(struct state *state)
{
    size_t len = 0;

    for (struct resource *r = state->resources; r; r = r->hh.next) {
        if (!r->builtin && !r->endpoint.socket_good)
            continue; /* it never had a list */
        review_resource(state, r);
        len++;
    }
    if (len < state->showing.resources_len)
        state->showing.version++;
    state->showing.resources_len = len;
}

/* ---- allocations, and what the kubelet says ---- */

static enum shown_hold look_at_allocation(const struct state *state,
                                          const struct allocation *allocation)
{
    const struct devicemgr_resource_settings *settings =
        state_settings_of(state, allocation->resource);
    bool over = facts_pod_over(state, allocation->pod_uid);

    /* The kubelet knows of the claim alone: it would give its devices away, were it shown them. */
    if (allocation->claimed && settings->dra)
        return SHOWN_NOTHING;
    if (!allocation->own_choice && !allocation->claimed)
        return over ? SHOWN_NOTHING : SHOWN_HELD;
    if (!settings->exclusive)
        return SHOWN_NOTHING;
    return over && allocation_life(allocation) == ALLOCATION_IDLE ? SHOWN_NOTHING : SHOWN_TAKEN;
}

/*
 * The kubelet writes down what it gives a container, and the token of that makes an allocation of
 * the same: one of the two comes first, and goes last. While the one is shown, the other changes
 * nothing, and a list of 100,000 devices is not to be made anew to find that.
 */
static bool is_held_by_kubelet(const struct state *state, const struct allocation *allocation)
{
    const struct kubelet_hold *hold = kubelet_hold_of(state, allocation);

    return hold && hold->shown;
}

static void review_allocation(struct state *state, struct allocation *allocation, bool flips)
{
    enum shown_hold shown = look_at_allocation(state, allocation);
    bool doubled;

    state->showing.looks++;
    if (shown == allocation->shown && !(flips && shown == SHOWN_HELD))
        return;
    doubled = !flips && shown != SHOWN_TAKEN && allocation->shown != SHOWN_TAKEN &&
              !allocation_replaced(allocation) && is_held_by_kubelet(state, allocation);
    allocation_set_shown(allocation, shown);
    if (!doubled)
        showing_changed(state, allocation->resource);
}

/* `flips`: whether a kubelet is starting has changed, and with it what held devices look like. */
static void review_allocations(struct state *state, bool flips)
{
    struct allocations *table = &state->allocations;
    struct allocation *a;

    for (size_t i = 0; i < table->dropped.len; i++)
        showing_changed(state, table->dropped.v[i]);
    ids_fini(&table->dropped);
    for (a = table->by_key; state->showing.all && a; a = a->hh.next)
        review_allocation(state, a, flips);
    while (table->stale)
        review_allocation(state, allocations_take_stale(table), flips);
}

static void review_kubelet_hold(struct state *state, struct kubelet_hold *hold, bool flips)
{
    bool shown = kubelet_hold_counts(state, hold);

    state->showing.looks++;
    if (shown == hold->shown && !(flips && shown))
        return;
    hold->shown = shown;
    if (flips || !kubelet_hold_doubled(state, hold))
        showing_changed(state, hold->resource);
}

static void review_kubelet_holds(struct state *state, bool flips)
{
    struct kubelet_view *kubelet = &state->kubelet;
    struct kubelet_hold *hold = kubelet->holds;

    for (; state->showing.all && hold; hold = hold->hh.next)
        review_kubelet_hold(state, hold, flips);
    while (kubelet->stale) {
        const struct kubelet_pod *pod = kubelet_take_stale(kubelet);

        for (size_t i = 0; !state->showing.all && i < pod->holds_len; i++)
            review_kubelet_hold(state, pod->holds[i], flips);
    }
}

static void verify(const struct state *state)
{
    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next)
        assert(a->shown == look_at_allocation(state, a));
    for (const struct kubelet_hold *hold = state->kubelet.holds; hold; hold = hold->hh.next)
        assert(hold->shown == kubelet_hold_counts(state, hold));
}

void advertise_pass(struct state *state)
{
    replacing_expire(state);
    showing_times(state);
    showing_all(state);
    wake_all(&state->wakes);
}

void advertise_review(struct state *state)
{
    bool starting = kubelet_is_starting(state), flips = starting != state->showing.starting;

    state->showing.stale = false;
    state->showing.starting = starting;
    if (flips)
        showing_all(state);
    review_resources(state);
    review_allocations(state, flips);
    review_kubelet_holds(state, flips);
    state->showing.all = false;
    if (state->settings.checked)
        verify(state);
}

/* Whether anything is shown otherwise to a kubelet that starts. */
static bool any_held(const struct state *state)
{
    const struct allocation *a = state->allocations.by_key;
    const struct kubelet_hold *hold = state->kubelet.holds;

    if (!state->showing.starting)
        return false;
    while (a && a->shown != SHOWN_HELD)
        a = a->hh.next;
    while (hold && !hold->shown)
        hold = hold->hh.next;
    return a || hold;
}

uint64_t advertise_next_ms(const struct state *state)
{
    uint64_t next_ms = any_held(state) ? kubelet_started_until_ms(state) : UINT64_MAX;

    for (const struct resource *r = state->resources; r; r = r->hh.next)
        next_ms = earlier(next_ms, moment_or_never(r->shown.mask_end_ms));
    return earlier(next_ms, state->showing.all_ms);
}
