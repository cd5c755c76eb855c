/*
 * The state SELECTING: what a selection says, done.
 */
#include "devicemgr/create.h"
#include "devicemgr/holders.h"
#include "devicemgr/limits.h"
#include "devicemgr/selection.h"

/* The devices are ours now: other pods' allocations of them, idle all, are over. A device shared
 * with another container of the same pod stays in both, one of a resource that shares in all. */
static void evict_holders(struct devicemgr *mgr, const struct create *create,
                          const struct allocation *allocation)
{
    if (!core_settings_of(mgr, allocation->resource)->exclusive)
        return;
    for (size_t i = 0; i < allocation->ids.len; i++) {
        struct allocation *const *holders;
        size_t holders_len, h = 0;

        holders = allocations_holders(&mgr->allocations, allocation->resource, allocation->ids.v[i],
                                      &holders_len);
        while (h < holders_len) {
            struct text text = {0};

            if (holders_same_pod(&create->demand, holders[h])) {
                h++;
                continue;
            }
            text_add(&text, "resource %s: taken from ", allocation->resource);
            reason_name_holder(mgr, holders[h], &text);
            text_add(&text, ", which no longer runs: device ids ");
            text_add_ids(&text, &holders[h]->ids);
            core_log(mgr, LEVEL_INFO, &text);
            core_drop_allocation(mgr, holders[h]);
            holders = allocations_holders(&mgr->allocations, allocation->resource,
                                          allocation->ids.v[i], &holders_len);
        }
    }
}

/* Asks which devices the plugin prefers. */
static void ask_plugin(struct devicemgr *mgr, struct create *create, size_t index,
                       struct selection_item *selected)
{
    const struct request_item *want = create->demand.items[index].want;
    const struct resource *resource = resources_find(mgr->resources, want->resource);
    uint64_t timeout_ms = core_settings_of(mgr, want->resource)->allocate_timeout_ms;
    struct action *action =
        create_call(mgr, create, index, CALL_PREFER, resource, &selected->available,
                    timeout_ms < PREFER_TIMEOUT_MS ? timeout_ms : PREFER_TIMEOUT_MS);

    action->size = want->count;
    ids_copy(&action->must_include, selected->must_include.v, selected->must_include.len);
    create->demand.items[index].prefer = DEMAND_PREFER_ASKED;
    ids_fini(&create->items[index].offered);
    create->items[index].offered = selected->available;
    selected->available = (struct ids){0};
}

/* It comes from whom the demand says; that could not always be told before. */
static void note_source(struct devicemgr *mgr, const struct create *create, size_t index)
{
    const struct request_item *want = create->demand.items[index].want;
    struct allocation *held = create_allocation(mgr, create, index);

    if (held->own_choice == want->token) {
        allocation_set_own_choice(held, !want->token);
        checkpoint_touch_allocation(mgr, held);
    }
    if (want->token)
        kubelet_check_token(mgr, held, create->demand.started_ms);
}

/* Each is asked about once, whoever wants to know. */
static void start_checks(struct devicemgr *mgr, const struct create *create,
                         const struct selection_item *selected)
{
    for (size_t i = 0; i < selected->checks_len; i++) {
        const struct allocation *holder = selected->checks[i];

        if (!holder->said.check)
            check_start(mgr, create,
                        allocations_find(&mgr->allocations, holder->pod_uid, holder->container,
                                         holder->resource));
    }
}

/* What the selection says that holds whether or not all can be had now. */
static void prepare(struct devicemgr *mgr, struct create *create, struct selection *selection)
{
    for (size_t i = 0; i < selection->items_len; i++) {
        struct selection_item *selected = &selection->items[i];

        start_checks(mgr, create, selected);
        if (selected->drop)
            core_drop_allocation(mgr, create_allocation(mgr, create, i));
        if (selected->ask_plugin)
            ask_plugin(mgr, create, i, selected);
        if (selected->kind == SELECTION_KEEP)
            note_source(mgr, create, i);
    }
}

static void reserve(struct devicemgr *mgr, const struct create *create, size_t index,
                    const struct selection_item *selected)
{
    const struct request_item *want = create->demand.items[index].want;
    struct allocation *allocation = create_allocation(mgr, create, index);

    if (selected->kind == SELECTION_TAKE) {
        allocation = allocations_add(&mgr->allocations, create->demand.pod_uid,
                                     create->demand.container, want->resource, &selected->ids);
        if (!want->token)
            allocation_set_tentative(allocation);
        note_source(mgr, create, index);
    }
    allocation_set_create(allocation, create->number);
    evict_holders(mgr, create, allocation);
}

/* A preference is asked for. */
static size_t first_called(const struct create *create)
{
    size_t i = 0;

    while (!create->items[i].call)
        i++;
    return i;
}

struct look create_take(struct devicemgr *mgr, struct create *create)
{
    struct selection selection;
    struct look look;

    selection_make(mgr, &create->demand, &selection);
    prepare(mgr, create, &selection);
    for (size_t i = 0; selection.look.step == LOOK_GO && i < selection.items_len; i++)
        reserve(mgr, create, i, &selection.items[i]);
    look = selection.look;
    selection.look = (struct look){0};
    selection_fini(&selection);
    if (look.step != LOOK_ASK || look.reason.kind != REASON_NONE)
        return look;
    return create_call_look(mgr, create, first_called(create));
}

void create_release(struct devicemgr *mgr, struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation =
            allocations_find(&mgr->allocations, create->demand.pod_uid, create->demand.container,
                             create->demand.request.items[i].resource);

        if (!allocation || allocation->create != create->number)
            continue;
        allocation_set_create(allocation, 0);
        if (allocation->row == ALLOCATION_CARRIED)
            continue; /* the commit decides */
        if (allocation_durable(allocation))
            allocation_revert(allocation);
        else
            core_remove_allocation(mgr, allocation);
    }
}
