#include "devicemgr/things/slice.h"

#include <string.h>

static void slice_free(struct slices *table, struct slice *slice)
{
    HASH_DEL(table->by_uid, slice);
    free(slice->uid);
    free(slice->driver);
    free(slice->pool);
    ids_fini(&slice->devices);
    for (size_t i = 0; i < slice->counters_len; i++)
        free(slice->counters[i].name);
    free(slice->counters);
    for (size_t i = 0; i < slice->draws_len; i++)
        free(slice->draws[i].device);
    free(slice->draws);
    free(slice);
}

void slices_fini(struct slices *table)
{
    while (table->by_uid)
        slice_free(table, table->by_uid);
}

size_t slices_len(const struct slices *table)
{
    return HASH_COUNT(table->by_uid);
}

void slices_set(struct slices *table, const char *uid, const char *driver, const char *pool,
                const struct ids *devices, bool apart)
{
    struct slice *slice = mem_alloc(1, sizeof *slice);

    slice->uid = mem_strdup(uid);
    slice->driver = mem_strdup(driver);
    slice->pool = mem_strdup(pool);
    ids_copy(&slice->devices, devices->v, devices->len);
    slice->apart = apart;
    slices_remove(table, uid);
    HASH_ADD_KEYPTR(hh, table->by_uid, slice->uid, strlen(slice->uid), slice);
}

void slices_remove(struct slices *table, const char *uid)
{
    struct slice *slice;

    HASH_FIND_STR(table->by_uid, uid, slice);
    if (slice)
        slice_free(table, slice);
}

static bool has(const struct slice *slice, const char *driver, const char *pool, const char *device)
{
    return strcmp(slice->driver, driver) == 0 && strcmp(slice->pool, pool) == 0 &&
           ids_contain(&slice->devices, device);
}

static bool some_has(const struct slices *table, bool apart, const char *driver, const char *pool,
                     const char *device)
{
    const struct slice *slice = table->by_uid;

    while (slice && ((apart && !slice->apart) || !has(slice, driver, pool, device)))
        slice = slice->hh.next;
    return slice;
}

bool slices_have(const struct slices *table, const char *driver, const char *pool,
                 const char *device)
{
    return some_has(table, false, driver, pool, device);
}

bool slices_apart(const struct slices *table, const char *driver, const char *pool,
                  const char *device)
{
    return some_has(table, true, driver, pool, device);
}

/* ---- what they are made of ---- */

void slices_set_counters(struct slices *table, const char *uid,
                         const struct devicemgr_counter *counters, size_t counters_len,
                         const struct devicemgr_draw *draws, size_t draws_len)
{
    struct slice *slice;

    HASH_FIND_STR(table->by_uid, uid, slice);
    if (!slice)
        return;
    slice->counters = mem_alloc(counters_len, sizeof *slice->counters);
    slice->counters_len = counters_len;
    for (size_t i = 0; i < counters_len; i++)
        slice->counters[i] = (struct slice_counter){mem_strdup(counters[i].name), counters[i].there,
                                                    counters[i].much};
    slice->draws = mem_alloc(draws_len, sizeof *slice->draws);
    for (size_t i = 0; i < draws_len; i++) {
        if (draws[i].counter < counters_len)
            slice->draws[slice->draws_len++] =
                (struct slice_draw){mem_strdup(draws[i].device), draws[i].counter, draws[i].much};
    }
}

const struct slice *slices_drawing(const struct slices *table, const char *driver, const char *pool,
                                   const char *device)
{
    const struct slice *slice = table->by_uid;

    while (slice && (slice->draws_len == 0 || !has(slice, driver, pool, device)))
        slice = slice->hh.next;
    return slice;
}

uint64_t slice_draw(const struct slice *slice, const char *device, const char *counter)
{
    for (size_t i = 0; i < slice->draws_len; i++) {
        const struct slice_draw *draw = &slice->draws[i];

        if (strcmp(draw->device, device) == 0 &&
            strcmp(slice->counters[draw->counter].name, counter) == 0)
            return draw->much;
    }
    return 0;
}

static bool draws(const struct slice *slice, const char *device)
{
    size_t i = 0;

    while (slice && i < slice->draws_len && strcmp(slice->draws[i].device, device) != 0)
        i++;
    return slice && i < slice->draws_len;
}

bool slices_draw_apart(const struct slices *table, const char *driver, const char *pool,
                       const char *one, const char *other)
{
    const struct slice *slice = slices_drawing(table, driver, pool, one);
    const struct slice *others = slices_drawing(table, driver, pool, other);

    if (!draws(slice, one) || !draws(others, other))
        return false;
    for (size_t i = 0; i < slice->draws_len; i++) {
        const struct slice_draw *draw = &slice->draws[i];

        if (strcmp(draw->device, one) == 0 && draw->much > 0 &&
            slice_draw(others, other, slice->counters[draw->counter].name) > 0)
            return false;
    }
    return true;
}

/* Those of an earlier generation may be there for a moment: who says that there is more is right. */
bool slices_counter(const struct slices *table, const char *driver, const char *pool,
                    const char *counter, uint64_t *much)
{
    bool known = false;

    *much = 0;
    for (const struct slice *slice = table->by_uid; slice; slice = slice->hh.next) {
        if (strcmp(slice->driver, driver) != 0 || strcmp(slice->pool, pool) != 0)
            continue;
        for (size_t i = 0; i < slice->counters_len; i++) {
            const struct slice_counter *is = &slice->counters[i];

            if (!is->there || strcmp(is->name, counter) != 0)
                continue;
            known = true;
            *much = is->much > *much ? is->much : *much;
        }
    }
    return known;
}
