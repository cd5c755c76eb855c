#include "devicemgr/rules/lifted_claims.h"

#include <string.h>

#include "devicemgr/lift.h"
#include "devicemgr/rules/lifted.h"
#include "devicemgr/rules/wanted.h"

#include "devicemgr/rules/rule.h"

static bool only_looks(const struct state *state, const struct by_claim *by, const char *resource)
{
    const struct claim *claim = claims_find(&state->claims, by->uid, LIFT_DRIVER);

    if (by->looks)
        return true;
    for (size_t i = 0; claim && i < claim->allocation.len; i++) {
        const struct granted_device *is = &claim->allocation.v[i];

        if (is->admin && lifted_is_device(is, resource, by->id))
            return true;
    }
    return false;
}

/* Whether each claim by which somebody has the device, but for those that only look, is among
 * these. */
static bool is_within(const struct state *state, const char *resource, const char *id,
                      const struct by_claims *by, const struct by_claims *among)
{
    for (size_t i = 0; i < by->len; i++) {
        if (strcmp(by->v[i].id, id) == 0 && !by_claims_find(among, id, by->v[i].uid) &&
            !only_looks(state, &by->v[i], resource))
            return false;
    }
    return true;
}

bool lifted_claims_shared(const struct state *state, const char *resource, const char *id,
                          const struct by_claims *one, const struct by_claims *other)
{
    return is_within(state, resource, id, one, other) || is_within(state, resource, id, other, one);
}

struct by_claims lifted_claims_wanted(const struct state *state, const struct wanted *wanted,
                                      const char *id)
{
    const struct by_claims *by = &wanted->want->by;
    struct by_claims all = {0};

    for (size_t i = 0; i < by->len; i++) {
        const struct by_claim *before;

        if (id && strcmp(by->v[i].id, id) != 0)
            continue;
        before = wanted->has ? by_claims_find(&wanted->has->by, by->v[i].id, by->v[i].uid) : NULL;
        by_claims_add(&all, by->v[i].id, by->v[i].uid,
                      (before && before->looks) ||
                          only_looks(state, &by->v[i], wanted->want->resource));
    }
    return all;
}

struct by_claims lifted_claims_known(const struct state *state, const struct allocation *allocation)
{
    const struct by_claims *by = &allocation->by;
    struct by_claims all = {0};

    for (size_t i = 0; i < by->len; i++)
        by_claims_add(&all, by->v[i].id, by->v[i].uid,
                      only_looks(state, &by->v[i], allocation->resource));
    return all;
}
