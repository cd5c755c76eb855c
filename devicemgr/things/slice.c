#include "devicemgr/things/slice.h"

#include <string.h>

#include "devicemgr/things/limits.h"

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

static void add_counters(struct slice *slice, const struct devicemgr_slice *is)
{
    slice->counters = mem_alloc(is->counters_len, sizeof *slice->counters);
    for (size_t i = 0; i < is->counters_len; i++) {
        const struct devicemgr_counter *counter = &is->counters[i];

        slice->counters[slice->counters_len++] =
            (struct slice_counter){mem_strdup(counter->name), counter->there, counter->much};
    }
    slice->draws = mem_alloc(is->draws_len, sizeof *slice->draws);
    for (size_t i = 0; i < is->draws_len; i++) {
        const struct devicemgr_draw *draw = &is->draws[i];

        if (draw->counter < is->counters_len)
            slice->draws[slice->draws_len++] =
                (struct slice_draw){mem_strdup(draw->device), draw->counter, draw->much};
    }
}

void slices_add(struct slices *table, const struct devicemgr_slice *is)
{
    struct slice *slice = mem_alloc(1, sizeof *slice);

    slice->uid = mem_strdup(is->uid);
    slice->driver = mem_strdup(is->driver);
    slice->pool = mem_strdup(is->pool);
    ids_copy(&slice->devices, (char *const *)is->devices,
             is->devices_len < SLICE_DEVICES_MAX ? is->devices_len : SLICE_DEVICES_MAX);
    slice->apart = is->apart;
    if (is->counters_len <= SLICE_COUNTERS_MAX && is->draws_len <= SLICE_DRAWS_MAX)
        add_counters(slice, is);
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

/* Those of an earlier generation may be there for a moment: who says that there is more is
 * right. */
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
