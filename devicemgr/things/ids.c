#include "devicemgr/things/ids.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/things/mem.h"

void ids_clear(struct ids *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        free(ids->v[i]);
    free(ids->v);
    *ids = (struct ids){0};
}

void ids_add(struct ids *ids, const char *id)
{
    ids->v = mem_grow(ids->v, ids->len, sizeof *ids->v);
    ids->v[ids->len++] = mem_strdup(id);
}

bool ids_insert(struct ids *ids, const char *id)
{
    size_t at = ids->len;
    char *copy;

    while (at > 0 && strverscmp(ids->v[at - 1], id) > 0)
        at--;
    if (at > 0 && strcmp(ids->v[at - 1], id) == 0)
        return false;
    copy = mem_strdup(id);
    ids->v = mem_grow(ids->v, ids->len, sizeof *ids->v);
    memmove(&ids->v[at + 1], &ids->v[at], (ids->len++ - at) * sizeof *ids->v);
    ids->v[at] = copy;
    return true;
}

void ids_copy(struct ids *to, char *const *v, size_t len)
{
    *to = (struct ids){0};
    for (size_t i = 0; i < len; i++)
        ids_add(to, v[i]);
}

int ids_order(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

void ids_sort(struct ids *ids)
{
    if (ids->len > 1)
        qsort(ids->v, ids->len, sizeof *ids->v, ids_order);
}

bool ids_contain(const struct ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->len; i++) {
        if (strcmp(ids->v[i], id) == 0)
            return true;
    }
    return false;
}

bool ids_contain_sorted(const struct ids *ids, const char *id)
{
    return ids->len > 0 && bsearch(&id, ids->v, ids->len, sizeof *ids->v, ids_order);
}

bool ids_add_new(struct ids *ids, const char *id)
{
    if (ids_contain(ids, id))
        return false;
    ids_add(ids, id);
    return true;
}

size_t ids_place(const void *items, size_t len, size_t bytes, const char *id, bool behind)
{
    size_t from = 0;

    while (from < len) {
        size_t middle = from + (len - from) / 2;
        const char *at = *(char *const *)((const char *)items + middle * bytes);

        if (strverscmp(at, id) < (behind ? 1 : 0))
            from = middle + 1;
        else
            len = middle;
    }
    return from;
}

bool ids_equal(const struct ids *a, const struct ids *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (strcmp(a->v[i], b->v[i]) != 0)
            return false;
    }
    return true;
}

bool ids_repeat(const struct ids *ids)
{
    for (size_t i = 1; i < ids->len; i++) {
        if (strcmp(ids->v[i - 1], ids->v[i]) == 0)
            return true;
    }
    return false;
}
