/*
 * The state SELECTING: what a selection says, done.
 */
#include <string.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/lift.h"
#include "devicemgr/machines/create.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/lifted_claims.h"
#include "devicemgr/rules/selection.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"

/* An allocation of another pod that has the device, too; NULL: none. */
static const struct allocation *other_holder(const struct state *state,
                                             const struct allocation *allocation, const char *id)
{
    const struct owners *holders =
        allocations_holders(&state->allocations, allocation->resource, id);

    for (size_t i = 0; i < owners_len(holders); i++) {
        const struct allocation *holder = holders->v[i];

        if (strcmp(holder->pod_uid, allocation->pod_uid) != 0 &&
            !holders_share(state, holder, allocation, id))
            return holder;
    }
    return NULL;
}

static void take_from(struct state *state, const struct allocation *holder)
{
    struct text text = {0};

    text_add(&text, "resource %s: taken from ", holder->resource);
    name_holder(&state->pods, holder, &text);
    text_add(&text, ", which no longer runs: device ids ");
    text_add_ids(&text, &holder->ids);
    state_log_about(state, LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_FREED, name_about_holder(&state->pods, holder)),
                    &text);
    ledger_drop_allocation(state, allocations_mutable(&state->allocations, holder));
}

/* The devices are ours now: other pods' allocations of them, idle all, are over. A device shared
 * with another container of the same pod stays in both, one of a resource that shares, or that
 * claims share, in all. */
static void take_from_others(struct state *state, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->ids.len; i++) {
        const struct allocation *holder;

        while ((holder = other_holder(state, allocation, allocation->ids.v[i])))
            take_from(state, holder);
    }
}

/* Asks which devices the plugin prefers. */
static void ask_plugin(struct creates *creates, struct create *create, size_t index,
                       const struct wanted *wanted, const struct selection_item *selected)
{
    const struct call_question asks = {
        .kind = CALL_PREFER,
        .ids = &selected->available,
        .timeout_ms = earlier(wanted->settings->allocate_timeout_ms, PREFER_TIMEOUT_MS),
        .size = wanted->want->count,
        .must_include = &selected->must_include};

    create_call(creates, create, index, wanted->resource, asks);
    create->demand.request.items[index].prefer = PREFER_ASKED;
}

/* Whether its claims are others than it has been known for. */
static bool note_claims(const struct state *state, struct allocation *allocation,
                        const struct wanted *wanted)
{
    bool claimed = wanted->want->claimed, changes;
    struct by_claims by = lifted_claims_wanted(state, wanted, NULL);

    changes = allocation->claimed != claimed || !by_claims_equal(&allocation->by, &by);
    if (changes)
        allocation_set_claimed(allocation, claimed ? &by : NULL);
    by_claims_fini(&by);
    return changes;
}

static void note_looks(struct state *state, struct allocation *allocation)
{
    struct by_claims by = lifted_claims_known(state, allocation);

    if (!by_claims_equal(&allocation->by, &by)) {
        allocation_set_claimed(allocation, &by);
        dirty_touch_allocation(state, allocation);
    }
    by_claims_fini(&by);
}

/* It is known also while the cluster is not heard of, and to who has the rows alone. */
void creates_claim_told(struct creates *creates, const char *uid)
{
    struct state *state = creates->state;
    const struct claim *claim = claims_find(&state->claims, uid, LIFT_DRIVER);

    if (!claim || !claim_looks(claim))
        return;
    for (struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (a->claimed)
            note_looks(state, a);
    }
}

/* It comes from whom the demand says; that could not always be told before. */
static void note_source(struct state *state, struct allocation *allocation,
                        const struct wanted *wanted)
{
    bool token = wanted->want->token;

    if (note_claims(state, allocation, wanted) || allocation->own_choice == token) {
        allocation_set_own_choice(allocation, !token);
        allocation_set_stale(allocation);        /* the kubelet is shown it otherwise */
        wake_holders(&state->wakes, allocation); /* whom claims let share it now, or no more */
        dirty_touch_allocation(state, allocation);
    }
    if (token && !wanted->want->claimed)
        kubelet_note_token(state, allocation, wanted->demand->started_ms);
}

/* Whether it has what it had until there are others in the place of what is lost: of what the shim
 * chose, and the kubelet keeps for nobody. */
static bool stays(const struct wanted *wanted, const struct selection_item *selected)
{
    return wanted->has && selected->instead.len > 0 && !wanted->want->token;
}

/* What the selection says that holds whether or not all can be had now. */
static void prepare(struct creates *creates, struct create *create, size_t index,
                    struct wanted *wanted, const struct selection_item *selected)
{
    struct allocations *table = &creates->state->allocations;

    creates->state->wakes.device_looks += selected->looks;
    for (size_t i = 0; i < selected->checks.len; i++)
        checks_start(creates->checks, create->number,
                     allocations_mutable(table, selected->checks.v[i]));
    if (selected->mark.len > 0)
        replacing_set(creates->state, wanted->demand, wanted->want->resource, &selected->mark);
    if (selected->drop && !stays(wanted, selected)) {
        ledger_drop_allocation(creates->state, allocations_mutable(table, wanted->has));
        wanted->has = NULL;
    }
    if (selected->ask_plugin)
        ask_plugin(creates, create, index, wanted, selected);
    if (selected->kind == SELECTION_KEEP)
        note_source(creates->state, allocations_mutable(table, wanted->has), wanted);
}

/* What the container has already, as it is or with others in the place of what is lost; or a new
 * allocation of what is free. */
static struct allocation *take(struct state *state, const struct wanted *wanted,
                               const struct selection_item *selected)
{
    const struct demand *demand = wanted->demand;
    struct allocation *allocation;

    if (selected->kind == SELECTION_KEEP)
        return allocations_mutable(&state->allocations, wanted->has);
    if (wanted->has) {
        allocation = allocations_mutable(&state->allocations, wanted->has);
        ledger_replace_allocation(state, allocation, &selected->ids, &selected->instead);
        note_source(state, allocation, wanted);
        return allocation;
    }
    allocation = allocations_add(&state->allocations, demand->pod_uid, demand->container,
                                 wanted->want->resource, &selected->ids);
    allocation_set_replaced(allocation, &selected->instead);
    note_claims(state, allocation, wanted);
    if (!wanted->want->token)
        allocation_set_tentative(allocation);
    note_source(state, allocation, wanted);
    return allocation;
}

/* From then on that is what the container has. */
static void reserve(struct state *state, struct wanted *wanted,
                    const struct selection_item *selected)
{
    struct allocation *allocation = take(state, wanted, selected);

    replacing_forget(state, wanted->demand, wanted->want->resource);
    allocation_set_create(allocation, wanted->demand->create);
    if (wanted->settings->exclusive)
        take_from_others(state, allocation);
    wanted->has = allocation;
}

/* A preference is asked for. */
static size_t first_called(const struct create *create)
{
    size_t i = 0;

    while (!create->items[i].call)
        i++;
    return i;
}

struct look create_take(struct creates *creates, struct create *create)
{
    struct selection selection;
    struct look look;

    selection_make(creates->state, create->wanted, &selection);
    for (size_t i = 0; i < selection.items_len; i++)
        prepare(creates, create, i, &create->wanted[i], &selection.items[i]);
    for (size_t i = 0; selection.look.step == LOOK_GO && i < selection.items_len; i++) {
        reserve(creates->state, &create->wanted[i], &selection.items[i]);
        create->items[i].replaced =
            selection.items[i].instead.len > 0 && allocation_replaced(create->wanted[i].has);
    }
    look = selection.look;
    selection.look = (struct look){0};
    selection_fini(&selection);
    if (look.step != LOOK_ASK || look.reason.kind != REASON_NONE)
        return look;
    return create_call_look(create, first_called(create));
}
