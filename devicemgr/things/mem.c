#include "devicemgr/things/mem.h"

#include <string.h>

#define GROW_LEN_MIN 8

void *mem_alloc(size_t len, size_t bytes)
{
    void *p = calloc(len ? len : 1, bytes ? bytes : 1);

    if (!p)
        abort();
    return p;
}

char *mem_strdup(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        abort();
    return copy;
}

/* Grows at powers of two, so that no capacity need be kept. */
void *mem_grow(void *array, size_t len, size_t bytes)
{
    if (len != 0 && (len < GROW_LEN_MIN || (len & (len - 1)) != 0))
        return array;
    array = reallocarray(array, len < GROW_LEN_MIN ? GROW_LEN_MIN : 2 * len, bytes);
    if (!array)
        abort();
    return array;
}

char *mem_key(const char *const *parts, size_t parts_len, size_t *key_bytes)
{
    size_t bytes = 0;
    char *key, *end;

    for (size_t i = 0; i < parts_len; i++)
        bytes += strlen(parts[i]) + 1;
    key = mem_alloc(bytes, 1);
    end = key;
    for (size_t i = 0; i < parts_len; i++)
        end = stpcpy(end, parts[i]) + 1;
    *key_bytes = bytes;
    return key;
}
