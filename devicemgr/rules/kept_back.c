#include "devicemgr/rules/kept_back.h"

#include <string.h>

#include "devicemgr/rules/rule.h"

bool kept_back_has(const struct state *state, const struct wanted *wanted, const char *id)
{
    const struct owners *holders =
        allocations_holders(&state->allocations, wanted->want->resource, id);

    for (size_t i = 0; i < owners_len(holders); i++) {
        const struct allocation *holder = holders->v[i];

        if ((holder->row != ALLOCATION_RESERVED || ids_contain_sorted(&holder->before, id)) &&
            strcmp(holder->pod_uid, wanted->demand->pod_uid) == 0)
            return true;
    }
    return false;
}

const struct order *kept_back_by(const struct state *state, const struct wanted *wanted,
                                 const char *id)
{
    const struct order *order = wanted->orders->withdrawal;

    if (!order)
        order = orders_cordon(&state->orders, wanted->want->resource, id);
    return order && !kept_back_has(state, wanted, id) ? order : NULL;
}

static struct look look_of(const struct wanted *wanted, const struct order *order)
{
    bool withdrawn = order->kind == ORDER_WITHDRAWAL;

    return (struct look){
        .step = withdrawn ? LOOK_REFUSE : LOOK_WAIT,
        .reason = {.kind = withdrawn ? REASON_RESOURCE_WITHDRAWN : REASON_DEVICES_CORDONED,
                   .resource = wanted->want->resource,
                   .words = order->words.reason}};
}

struct look kept_back_withdrawn(const struct wanted *wanted)
{
    const struct order *order = wanted->orders->withdrawal;

    return order ? look_of(wanted, order) : (struct look){0};
}

/* Those for which the operator gave one reason are told together: of the first that is kept
 * back. */
struct look kept_back_of_ids(const struct state *state, const struct wanted *wanted,
                             const struct ids *ids)
{
    struct look look = {0};

    for (size_t i = 0; i < ids->len; i++) {
        const struct order *order = kept_back_by(state, wanted, ids->v[i]);

        if (!order)
            continue;
        if (look.step == LOOK_GO)
            look = look_of(wanted, order);
        if (strcmp(order->words.reason, look.reason.words) == 0)
            ids_add(&look.reason.ids, ids->v[i]);
    }
    return look;
}

struct look kept_back_too_few(const struct state *state, const struct wanted *wanted, size_t free,
                              const struct ids *ids)
{
    struct look look = kept_back_of_ids(state, wanted, ids);

    look.reason.kind = REASON_TOO_FEW_ARE_UNCORDONED;
    look.reason.asked = wanted->want->count;
    look.reason.free = free;
    return look;
}
