/*
 * The creates that there are, and their end.
 */
#include "devicemgr/machines/create.h"

#include <utlist.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/things/name.h"
#include "devicemgr/words/remedy.h"

struct create *creates_find(struct creates *creates, uint64_t number)
{
    struct create *create;

    HASH_FIND(hh, creates->by_number, &number, sizeof number, create);
    return create;
}

/* ---- what it has reserved ---- */

struct allocation *create_allocation(struct state *state, const struct create *create, size_t index)
{
    const struct allocation *allocation =
        allocations_demanded(&state->allocations, &create->demand, index);

    if (!allocation || allocation->create != create->number)
        return NULL;
    return allocations_mutable(&state->allocations, allocation);
}

void create_release(struct state *state, const struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation = create_allocation(state, create, i);

        if (!allocation)
            continue;
        allocation_set_create(allocation, 0);
        if (allocation->row == ALLOCATION_CARRIED)
            continue; /* the commit decides */
        if (allocation_durable(allocation))
            ledger_revert_allocation(state, allocation);
        else
            ledger_remove_allocation(state, allocation);
    }
}

/* ---- the end ---- */

void create_free(struct creates *creates, struct create *create)
{
    HASH_DEL(creates->by_number, create);
    wake_leave(&creates->state->wakes, &create->waiter);
    if (create->state == CREATE_COMMITTING)
        DL_DELETE2(creates->committing, create, commit_prev, commit_next);
    free(create->items);
    free(create->wanted);
    renames_fini(&create->renames);
    demand_fini(&create->demand);
    free(create);
}

void creates_rename(struct creates *creates, uint64_t number, struct renames *renames)
{
    struct create *create = creates_find(creates, number);

    if (create) {
        create->renames = *renames;
        *renames = (struct renames){0};
    }
    renames_fini(renames);
}

void creates_fini(struct creates *creates)
{
    struct create *create, *next;

    HASH_ITER(hh, creates->by_number, create, next) {
        create_free(creates, create);
    }
}

void creates_call_over(struct creates *creates, const char *resource)
{
    for (struct create *create = creates->by_number; create; create = create->hh.next) {
        for (size_t i = 0; create->items && i < create->demand.request.len; i++) {
            if (create->items[i].queued_ms > 0 &&
                strcmp(create->demand.request.items[i].resource, resource) == 0)
                wake_one(&creates->state->wakes, &create->waiter);
        }
    }
}

/* One that was not admitted has no items. */
void create_abandon(struct creates *creates, struct create *create)
{
    for (size_t i = 0; create->items && i < create->demand.request.len; i++) {
        if (!create->items[i].call)
            continue;
        calls_cancel(creates->calls, create->items[i].call);
        creates_call_over(creates, create->demand.request.items[i].resource);
    }
    create_release(creates->state, create);
    create_free(creates, create);
}

void create_explain(struct state *state, const struct create *create, const struct reason *reason,
                    struct text *text)
{
    struct text hidden = {0};

    reason_explain(state, &create->demand, reason, text);
    if (reason_explain_hidden(state, &create->demand, reason, &hidden))
        state_log_about(state, LEVEL_DEBUG, name_about_demand(&create->demand, reason->resource),
                        &hidden);
}

void create_refuse(struct creates *creates, struct create *create, const struct reason *reason)
{
    struct state *state = creates->state;
    struct action *action = action_push(&state->actions, ACTION_VERDICT, create->number);
    const char *word = reason_word(reason->kind);
    struct text text = {0};

    creates->refused[reason->kind]++;
    create_explain(state, create, reason, &text);
    action->code = reason_code(reason->kind);
    action->held_ms = create_held_ms(state, create);
    action->text = mem_strdup(text.buf);
    action->resource = reason->resource ? mem_strdup(reason->resource) : NULL;
    refused_note(&state->refused, state->now_ms, &create->demand, word, remedy_of(reason->kind),
                 action->code, text.buf);
    happened_refused(state, &create->demand, reason->resource, &reason->ids, word, text.buf);
    create_abandon(creates, create);
}
