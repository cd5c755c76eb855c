/*
 * What runs with a claim is prepared: one that its driver has unprepared, as the shim has asked it
 * to, under a container that had come for it by then, it is asked to prepare anew, and is asked
 * each time that it is back until it has.
 */
#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

void home_anew_ended(struct home_world *h, const struct hw_op *op, bool took)
{
    struct hw_claim *claim = &h->claims[op->claim];

    if (op->prepare)
        claim->tried_anew = !took;
    else
        claim->due_anew = claim->due_anew || home_is_known(h, op->claim);
}

void home_anew_driver_came(struct home_world *h, size_t driver)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_claim *claim = &h->claims[i];

        if (claim->driver != driver || claim->lost >= CLAIM_LOST_MAX)
            continue;
        claim->tried_anew = false;
        claim->due_anew = claim->due_anew || home_is_known(h, i);
    }
}

/* The driver can be asked for it, and nothing is under way that may lead to that. */
static bool is_quiet(const struct home_world *h, size_t id)
{
    const struct hw_claim *claim = &h->claims[id];
    const struct hw_driver *d = &h->drivers[claim->driver];

    return d->here && d->connected && !claim->asked && !home_has_op(h, id) &&
           !home_owes(h, claim->driver) && home_shim_is_stored(h);
}

/* Who comes later, for a claim that nobody has any more, has it prepared anew where the runtime
 * does not know it. */
void home_anew_judge(struct home_world *h)
{
    for (size_t i = 0; i < h->claims_len; i++) {
        struct hw_claim *claim = &h->claims[i];

        claim->due_anew = claim->due_anew && home_is_known(h, i);
        check_that(
            h->w,
            !claim->given_up || !claim->due_anew || claim->tried_anew || !home_is_used(h, i) ||
                !is_quiet(h, i),
            "c%zu is prepared anew, that its driver has unprepared as a container came for it", i);
    }
}
