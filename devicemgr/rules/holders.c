#include "devicemgr/rules/holders.h"

#include <string.h>

#include "devicemgr/books/facts.h"

#include "devicemgr/rules/rule.h"

bool holders_same_pod(const struct demand *demand, const struct allocation *holder)
{
    return strcmp(demand->pod_uid, holder->pod_uid) == 0;
}

/* Whether the runtime has said that the holder's container runs, in answer to this create or, for
 * its own pod, too late for one before. */
static bool said_to_run(const struct state *state, const struct demand *demand,
                        const struct allocation *holder)
{
    return holder->said.to == demand->create ||
           (holders_same_pod(demand, holder) && state->now_ms < holder->said.late_until_ms);
}

/* The kubelet makes the containers of a pod one after the other, and hands a device on only when
 * the init container that had it has done its work: when it asks for the next one, none of an
 * exited one is in the making. */
static bool handed_on_by_kubelet(const struct demand *demand, const struct allocation *holder)
{
    return holders_same_pod(demand, holder) && !holder->own_choice && holder->said.exited &&
           allocation_life(holder) == ALLOCATION_UNKNOWN;
}

struct look holders_look_at(const struct state *state, const struct demand *demand,
                            const struct allocation *holder, const char *id)
{
    enum allocation_life life = allocation_life(holder);
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.resource = holder->resource, .holder = holder}};

    if (life == ALLOCATION_IDLE || handed_on_by_kubelet(demand, holder))
        return (struct look){0};
    ids_add(&look.reason.ids, id);
    if (life == ALLOCATION_LIVE && said_to_run(state, demand, holder)) {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_HOLDER_RUNS;
        return look;
    }
    look.reason.kind = life == ALLOCATION_LIVE      ? REASON_HOLDER_ASKED
                       : life == ALLOCATION_UNKNOWN ? REASON_HOLDER_UNKNOWN
                                                    : REASON_HOLDER_CREATED;
    if (life == ALLOCATION_LIVE && state->now_ms < holder->said.again_ms)
        look.again_ms = holder->said.again_ms;
    return look;
}

bool holders_handed_on(const struct state *state, const struct demand *demand,
                       const struct allocation *held)
{
    for (size_t i = 0; i < held->ids.len; i++) {
        size_t holders_len;
        struct allocation *const *holders =
            allocations_holders(&state->allocations, held->resource, held->ids.v[i], &holders_len);

        for (size_t h = 0; h < holders_len; h++) {
            if (holders[h] != held && holders_same_pod(demand, holders[h]) &&
                said_to_run(state, demand, holders[h]))
                return true;
        }
    }
    return false;
}

bool holders_none(const struct state *state, const struct demand *demand, const char *resource,
                  const char *id, const struct allocation *gone, bool *reused)
{
    size_t holders_len;
    struct allocation *const *holders =
        allocations_holders(&state->allocations, resource, id, &holders_len);

    *reused = false;
    if (!state_settings_of(state, resource)->exclusive)
        return true;
    for (size_t i = 0; i < holders_len; i++) {
        if (holders[i] == gone)
            continue;
        if (allocation_life(holders[i]) != ALLOCATION_IDLE)
            return false;
        if (holders_same_pod(demand, holders[i]))
            *reused = true;
        else if (!facts_pod_over(state, holders[i]->pod_uid))
            return false;
    }
    return !kubelet_promised(state, resource, id, demand->pod_uid, demand->container);
}

struct look holders_listed(const struct state *state, const char *resource)
{
    if ((state->listing.listed && !state->listing.rows_lost) ||
        !state_settings_of(state, resource)->exclusive)
        return (struct look){0};
    return (struct look){
        .step = LOOK_WAIT,
        .reason = {.kind = state->listing.listed ? REASON_UNLISTED_AGAIN : REASON_UNLISTED,
                   .resource = resource}};
}
