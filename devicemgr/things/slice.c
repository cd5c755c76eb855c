#include "devicemgr/things/slice.h"

#include <string.h>

static void slice_free(struct slices *table, struct slice *slice)
{
    HASH_DEL(table->by_uid, slice);
    free(slice->uid);
    free(slice->driver);
    free(slice->pool);
    ids_fini(&slice->devices);
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
