#include "devicemgr/books/ledger.h"

#include <string.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/name.h"
#include "devicemgr/things/request.h"

/* What can run of one allocation says whether its pod is over, and so what all of them are. */
static void siblings_changed(struct state *state, const char *pod_uid, bool wakes)
{
    for (struct allocation *a = allocations_edit_of_pod(&state->allocations, pod_uid); a;
         a = a->pod_next) {
        allocation_set_stale(a);
        if (wakes)
            wake_holders(&state->wakes, a);
    }
    kubelet_pod_changed(state, pod_uid, wakes);
    replacing_pod_changed(state, pod_uid, false);
}

void ledger_pod_changed(struct state *state, const char *pod_uid)
{
    wake_pod(&state->wakes, pod_uid);
    siblings_changed(state, pod_uid, true);
}

void ledger_touch_pod(struct state *state, const struct pod *pod)
{
    if (allocations_of_pod(&state->allocations, pod->uid))
        dirty_touch_pod(state, pod->uid);
}

void ledger_restored(struct state *state)
{
    for (struct pod *pod = state->pods.by_uid; pod; pod = pod->hh.next) {
        if (pod->tokens.len > 0)
            pod_set_remembers(pod); /* of which the rows may have gone before */
        else if (!allocations_of_pod(&state->allocations, pod->uid))
            dirty_touch_pod(state, pod->uid); /* its allocations' rows were damaged */
    }
}

/* Who was made by an answer to its create was told of there. Of others it may be known already, as
 * after a restart; so it may that one which was being decided, or was unknown, had ended before. */
static void tell_watchers(struct state *state, const struct allocation *a,
                          enum allocation_life before, enum allocation_life life)
{
    if (life == ALLOCATION_LIVE && before != ALLOCATION_BUSY)
        happened_to_allocation(state, DEVICEMGR_EVENT_ALLOCATED, true, a);
    else if (life == ALLOCATION_IDLE && before != ALLOCATION_ABSENT)
        happened_to_allocation(state, DEVICEMGR_EVENT_RELEASED, before != ALLOCATION_LIVE, a);
}

/* That a create takes what was free concerns nobody yet: it may be given up. One that is made anew
 * while an earlier one may run is no more asked about, for which others of its pod wait. */
static bool concerns_others(enum allocation_life before, enum allocation_life life)
{
    return before != ALLOCATION_ABSENT && (life != ALLOCATION_BUSY || before == ALLOCATION_LIVE);
}

/* What a create took and gave back in one look is no change: two that want the same devices and
 * others besides would wake each other for ever. */
void ledger_tell_changes(struct state *state)
{
    while (state->allocations.changed) {
        struct allocation *a = allocations_take_changed(&state->allocations);
        enum allocation_life before = a->known, life = allocation_life(a);

        if (before != life) {
            tell_watchers(state, a, before, life);
            siblings_changed(state, a->pod_uid, concerns_others(before, life));
        }
        allocation_set_known(a, state->now_ms);
    }
}

void ledger_remove_allocation(struct state *state, struct allocation *allocation)
{
    if (allocation->known != ALLOCATION_IDLE)
        tell_watchers(state, allocation, allocation->known, ALLOCATION_IDLE);
    if (allocation->known != ALLOCATION_ABSENT)
        siblings_changed(state, allocation->pod_uid, true);
    allocations_remove(&state->allocations, allocation);
}

/* Its container had a token: so it does when its devices are another's, as long as there is the
 * pod. */
static void remember_token(struct state *state, const struct allocation *allocation)
{
    struct pod *pod = pods_edit(&state->pods, allocation->pod_uid);

    if (!pod || allocation->own_choice || !allocation_durable(allocation) || !allocation->options)
        return;
    pod_note_token(pod, allocation->container);
    pod_set_remembers(pod);
}

void ledger_drop_allocation(struct state *state, struct allocation *allocation)
{
    remember_token(state, allocation);
    dirty_touch_allocation(state, allocation);
    dirty_touch_pod(state, allocation->pod_uid);
    ledger_remove_allocation(state, allocation);
}

void ledger_replace_allocation(struct state *state, struct allocation *allocation,
                               const struct ids *ids, const struct ids *asked)
{
    remember_token(state, allocation);
    siblings_changed(state, allocation->pod_uid, true);
    allocation_replace(allocation, ids, asked);
}

/* Whether another pod has of what it had before, which was given away meanwhile. */
static bool is_anothers(const struct state *state, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->before.len; i++) {
        const char *id = allocation->before.v[i];
        const struct owners *holders =
            allocations_holders(&state->allocations, allocation->resource, id);

        for (size_t k = 0; k < owners_len(holders); k++) {
            const struct allocation *holder = holders->v[k];

            if (strcmp(holder->pod_uid, allocation->pod_uid) != 0 &&
                !ids_contain_sorted(&allocation->ids, id))
                return true;
        }
    }
    return false;
}

void ledger_revert_allocation(struct state *state, struct allocation *allocation)
{
    if (is_anothers(state, allocation)) {
        ledger_drop_allocation(state, allocation);
        return;
    }
    if (allocation->before.len > 0) {
        siblings_changed(state, allocation->pod_uid, true);
        dirty_touch_allocation(state, allocation);
    }
    allocation_revert(allocation);
}

/* Whether it has of what the other one had before, and has not by now. */
static bool has_of_before(const struct allocation *allocation, const struct allocation *other)
{
    for (size_t i = 0; i < allocation->ids.len; i++) {
        const char *id = allocation->ids.v[i];

        if (ids_contain_sorted(&other->before, id) && !ids_contain_sorted(&other->ids, id))
            return true;
    }
    return false;
}

void ledger_forget_before(struct state *state, const struct allocation *allocation)
{
    for (struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (a->row != ALLOCATION_RESERVED || strcmp(a->resource, allocation->resource) != 0 ||
            strcmp(a->pod_uid, allocation->pod_uid) == 0 || !has_of_before(allocation, a))
            continue;
        allocation_forget_before(a);
        dirty_touch_allocation(state, a);
        dirty_touch_pod(state, a->pod_uid);
    }
}

void ledger_drop_allocations(struct state *state, const char *pod_uid)
{
    struct allocation *allocation;

    while ((allocation = allocations_edit_of_pod(&state->allocations, pod_uid)))
        ledger_drop_allocation(state, allocation);
}

void ledger_drop_pod(struct state *state, struct pod *pod)
{
    ledger_drop_allocations(state, pod->uid);
    if (pod->stored)
        dirty_touch_pod_gone(state, pod->uid);
    wake_pod(&state->wakes, pod->uid);
    kubelet_pod_changed(state, pod->uid, true);
    replacing_pod_changed(state, pod->uid, true);
    pods_remove(&state->pods, pod);
}

void ledger_outcome_unknown(struct state *state, struct allocation *allocation,
                            const char *sandbox_id)
{
    allocation_set_unknown(allocation, sandbox_id, state->now_ms + OUTCOME_MS);
    listing_by(state, allocation->unknown_until_ms);
}

void ledger_release_leftovers(struct state *state, const char *pod_uid, const char *container,
                              const struct request *has)
{
    struct allocation *a, *next;

    for (a = allocations_edit_of_pod(&state->allocations, pod_uid); a; a = next) {
        struct text text = {0};

        next = a->pod_next;
        if (!a->own_choice || strcmp(a->container, container) != 0 ||
            request_names(has, a->resource) || allocation_life(a) != ALLOCATION_IDLE)
            continue;
        name_holder(&state->pods, a, &text);
        text_add(&text, ": its pod's annotation asks for resource %s no more: device ids ",
                 a->resource);
        text_add_ids(&text, &a->ids);
        text_add(&text, " are free");
        state_log_about(state, LEVEL_INFO,
                        name_line(DEVICEMGR_LINE_FREED, name_about_holder(&state->pods, a)), &text);
        ledger_drop_allocation(state, a);
    }
}
