/*
 * What is asked for in one request is prepared together: a driver may number within a call what it
 * gives. Who waits for what is owed, or is owed itself, keeps the others.
 */
#include <inttypes.h>

#include "tests/sim/home_world.h"

/* One of the same request is waited for, too, and not with the driver yet. */
static bool is_with(const struct home_world *h, size_t id, uint64_t batch)
{
    const struct hw_claim *claim = &h->claims[id];

    return batch != 0 && claim->asked && claim->asks_prepare && !claim->called &&
           claim->batch == batch;
}

static void check_other(struct home_world *h, const struct hw_op *op, size_t id)
{
    const struct hw_claim *other = &h->claims[id];

    check_that(h->w, !other->owed || !home_row_is(h, id, "owed") || home_may_be_used(h, id),
               "c%zu is not prepared before c%zu of the same request, which is owed", op->claim,
               id);
    for (size_t i = 0; i < h->claims_len && !home_has_op(h, id); i++)
        check_that(h->w, !home_is_owed_before(h, i, id),
                   "c%zu is not prepared before c%zu of the same request, which waits for c%zu",
                   op->claim, id, i);
}

void home_batch_called(struct home_world *h, const struct hw_op *op)
{
    struct hw_claim *claim = &h->claims[op->claim];

    claim->called = claim->called || op->batch == claim->batch;
    claim->follows = false;
    check_that(h->w,
               !claim->asked || op->batch == claim->batch || (op->batch == 0 && claim->used_since),
               "c%zu is prepared with those of its request: %" PRIu64, op->claim, op->batch);
    for (size_t i = 0; i < h->claims_len; i++) {
        if (i == op->claim || !is_with(h, i, op->batch))
            continue;
        count_add(COUNT_HOME_TOGETHER);
        check_other(h, op, i);
        h->claims[i].follows = !home_has_op(h, i) && !home_shim_stores(h, i);
        h->claims[i].behind = h->commit;
    }
}

/* One whose row is yet to be stored goes by itself, as soon as that is. */
static bool may_follow(const struct home_world *h, size_t id)
{
    return home_has_op(h, id) || home_shim_stores(h, id) || (!h->commit && h->store_fails);
}

void home_batches_judge(struct home_world *h)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_claim *claim = &h->claims[i];

        if (!claim->follows || (h->commit && h->commit == claim->behind))
            continue;
        claim->follows = false;
        check_that(h->w, !is_with(h, i, claim->batch) || may_follow(h, i),
                   "c%zu is prepared with the others of its request", i);
    }
}
