#include "devicemgr/things/mem.h"

void *mem_enlarge(void *array, size_t len, size_t bytes)
{
    array = reallocarray(array, len < GROW_LEN_MIN ? GROW_LEN_MIN : 2 * len, bytes);
    if (!array)
        abort();
    return array;
}

/* Joins the parts in `small` if they fit, else in memory of its own. */
static char *join(const char *const *parts, size_t parts_len, char *small, size_t small_bytes,
                  size_t *key_bytes)
{
    size_t bytes = 0;
    char *key, *end;

    for (size_t i = 0; i < parts_len; i++)
        bytes += strlen(parts[i]) + 1;
    key = end = small && bytes <= small_bytes ? small : mem_alloc(bytes, 1);
    for (size_t i = 0; i < parts_len; i++)
        end = stpcpy(end, parts[i]) + 1;
    *key_bytes = bytes;
    return key;
}

char *mem_key(const char *const *parts, size_t parts_len, size_t *key_bytes)
{
    return join(parts, parts_len, NULL, 0, key_bytes);
}

void mem_seek(struct mem_sought *sought, const char *const *parts, size_t parts_len)
{
    sought->key = join(parts, parts_len, sought->small, sizeof sought->small, &sought->key_bytes);
}
