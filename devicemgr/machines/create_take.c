/*
 * The state SELECTING: what a selection says, done.
 */
#include "devicemgr/books/ledger.h"
#include "devicemgr/machines/create.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/selection.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/name.h"

/* The devices are ours now: other pods' allocations of them, idle all, are over. A device shared
 * with another container of the same pod stays in both, one of a resource that shares in all. */
static void evict_holders(struct state *state, const struct create *create,
                          const struct allocation *allocation)
{
    if (!state_settings_of(state, allocation->resource)->exclusive)
        return;
    for (size_t i = 0; i < allocation->ids.len; i++) {
        struct allocation *const *holders;
        size_t holders_len, h = 0;

        holders = allocations_holders(&state->allocations, allocation->resource,
                                      allocation->ids.v[i], &holders_len);
        while (h < holders_len) {
            struct text text = {0};

            if (holders_same_pod(&create->demand, holders[h])) {
                h++;
                continue;
            }
            text_add(&text, "resource %s: taken from ", allocation->resource);
            name_holder(&state->pods, holders[h], &text);
            text_add(&text, ", which no longer runs: device ids ");
            text_add_ids(&text, &holders[h]->ids);
            state_log(state, LEVEL_INFO, &text);
            ledger_drop_allocation(state, holders[h]);
            holders = allocations_holders(&state->allocations, allocation->resource,
                                          allocation->ids.v[i], &holders_len);
        }
    }
}

/* Asks which devices the plugin prefers. */
static void ask_plugin(struct creates *creates, struct create *create, size_t index,
                       struct selection_item *selected)
{
    const struct request_item *want = create->demand.items[index].want;
    const struct resource *resource = resources_find(creates->state->resources, want->resource);
    uint64_t timeout_ms = state_settings_of(creates->state, want->resource)->allocate_timeout_ms;
    struct action *action =
        create_call(creates, create, index, CALL_PREFER, resource, &selected->available,
                    timeout_ms < PREFER_TIMEOUT_MS ? timeout_ms : PREFER_TIMEOUT_MS);

    action->size = want->count;
    ids_copy(&action->must_include, selected->must_include.v, selected->must_include.len);
    create->demand.items[index].prefer = DEMAND_PREFER_ASKED;
    ids_fini(&create->items[index].offered);
    create->items[index].offered = selected->available;
    selected->available = (struct ids){0};
}

/* It comes from whom the demand says; that could not always be told before. */
static void note_source(struct state *state, const struct create *create, size_t index)
{
    const struct request_item *want = create->demand.items[index].want;
    struct allocation *allocation =
        allocations_demanded(&state->allocations, &create->demand, index);

    if (allocation->own_choice == want->token) {
        allocation_set_own_choice(allocation, !want->token);
        dirty_touch_allocation(state, allocation);
    }
    if (want->token)
        kubelet_note_token(state, allocation, create->demand.started_ms);
}

/* Each is asked about once, whoever wants to know. */
static void start_checks(struct creates *creates, const struct create *create,
                         const struct selection_item *selected)
{
    for (size_t i = 0; i < selected->checks_len; i++) {
        const struct allocation *holder = selected->checks[i];

        if (!holder->said.check)
            checks_start(creates->checks, create->number,
                         allocations_find(&creates->state->allocations, holder->pod_uid,
                                          holder->container, holder->resource));
    }
}

/* What the selection says that holds whether or not all can be had now. */
static void prepare(struct creates *creates, struct create *create, struct selection *selection)
{
    struct state *state = creates->state;

    for (size_t i = 0; i < selection->items_len; i++) {
        struct selection_item *selected = &selection->items[i];

        start_checks(creates, create, selected);
        if (selected->drop)
            ledger_drop_allocation(state,
                                   allocations_demanded(&state->allocations, &create->demand, i));
        if (selected->ask_plugin)
            ask_plugin(creates, create, i, selected);
        if (selected->kind == SELECTION_KEEP)
            note_source(state, create, i);
    }
}

static void reserve(struct state *state, const struct create *create, size_t index,
                    const struct selection_item *selected)
{
    const struct request_item *want = create->demand.items[index].want;
    struct allocation *allocation =
        allocations_demanded(&state->allocations, &create->demand, index);

    if (selected->kind == SELECTION_TAKE) {
        allocation = allocations_add(&state->allocations, create->demand.pod_uid,
                                     create->demand.container, want->resource, &selected->ids);
        if (!want->token)
            allocation_set_tentative(allocation);
        note_source(state, create, index);
    }
    allocation_set_create(allocation, create->number);
    evict_holders(state, create, allocation);
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

    selection_make(creates->state, &create->demand, &selection);
    prepare(creates, create, &selection);
    for (size_t i = 0; selection.look.step == LOOK_GO && i < selection.items_len; i++)
        reserve(creates->state, create, i, &selection.items[i]);
    look = selection.look;
    selection.look = (struct look){0};
    selection_fini(&selection);
    if (look.step != LOOK_ASK || look.reason.kind != REASON_NONE)
        return look;
    return create_call_look(creates, create, first_called(create));
}

void create_release(struct state *state, struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation =
            allocations_demanded(&state->allocations, &create->demand, i);

        if (!allocation || allocation->create != create->number)
            continue;
        allocation_set_create(allocation, 0);
        if (allocation->row == ALLOCATION_CARRIED)
            continue; /* the commit decides */
        if (allocation_durable(allocation))
            allocation_revert(allocation);
        else
            ledger_remove_allocation(state, allocation);
    }
}
