#include "shim/agent/pool_slices.h"

#include <stdlib.h>
#include <string.h>

#include "shim/agent/limits.h"
#include "shim/must.h"

void pool_slices_init(struct pool_slices *slices, size_t wanted)
{
    *slices = (struct pool_slices){.wanted_len = wanted, .stale_generation = -1};
    slices->wanted = must(calloc(wanted + 1, sizeof *slices->wanted));
}

void pool_slices_fini(struct pool_slices *slices)
{
    for (size_t i = 0; i < slices->stale_len; i++) {
        free(slices->stale[i].name);
        free(slices->stale[i].uid);
    }
    free(slices->stale);
    free(slices->wanted);
}

bool pool_slices_add_stale(struct pool_slices *slices, const char *name, const char *uid,
                           int64_t generation)
{
    if (generation > slices->stale_generation)
        slices->stale_generation = generation;
    if (slices->stale_len == POOL_SLICES_MAX)
        return false;
    slices->stale = must(reallocarray(slices->stale, slices->stale_len + 1, sizeof *slices->stale));
    slices->stale[slices->stale_len++] =
        (struct pool_stale){.name = must(strdup(name)), .uid = must(strdup(uid))};
    return true;
}

/* One slice may get other devices in one write, while all others are right: that is seen before or
 * after. If one is missing besides, and is made first, the pool would be whole with the old devices
 * of the one and the new ones of the other. */
int64_t pool_slices_generation(const struct pool_slices *slices)
{
    int64_t newest = slices->stale_generation;
    size_t renamed = 0, missing = 0;
    bool wrong;

    for (size_t i = 0; i < slices->wanted_len; i++) {
        if (slices->wanted[i].there && slices->wanted[i].generation > newest)
            newest = slices->wanted[i].generation;
    }
    if (newest < 0)
        return 1;
    wrong = slices->stale_generation == newest;
    for (size_t i = 0; i < slices->wanted_len; i++) {
        const struct pool_slice *slice = &slices->wanted[i];

        missing += !slice->there;
        if (!slice->there || slice->generation != newest)
            continue;
        wrong = wrong || !slice->counted;
        renamed += !slice->named;
    }
    return wrong || renamed > 1 || (renamed > 0 && missing > 0) ? newest + 1 : newest;
}

enum pool_write pool_slices_next(const struct pool_slices *slices, int64_t generation,
                                 size_t *index)
{
    for (size_t i = 0; i < slices->wanted_len; i++) {
        const struct pool_slice *slice = &slices->wanted[i];

        *index = i;
        if (slice->done)
            continue;
        if (!slice->there)
            return POOL_MAKE;
        if (!slice->same)
            return POOL_CHANGE;
        if (!slice->counted || slice->generation != generation)
            return POOL_COUNT;
    }
    return POOL_DONE;
}
