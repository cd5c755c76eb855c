#include "devicemgr/things/owners.h"

#include <assert.h>
#include <string.h>

static struct owners *find(struct owners *all, const char *const *parts, size_t parts_len)
{
    struct mem_sought sought;
    struct owners *owners;

    if (!all)
        return NULL;
    mem_seek(&sought, parts, parts_len);
    HASH_FIND(hh, all, sought.key, sought.key_bytes, owners);
    mem_sought_drop(&sought);
    return owners;
}

const struct owners *owners_find(const struct owners *all, const char *const *parts,
                                 size_t parts_len)
{
    return find((struct owners *)all, parts, parts_len);
}

const char *owners_part(const struct owners *owners, size_t part)
{
    const char *at = owners->key;

    while (part-- > 0)
        at += strlen(at) + 1;
    return at;
}

void owners_add(struct owners **all, const char *const *parts, size_t parts_len, const void *owner)
{
    struct mem_sought sought;
    struct owners *owners;

    mem_seek(&sought, parts, parts_len);
    HASH_FIND(hh, *all, sought.key, sought.key_bytes, owners);
    if (owners) {
        mem_sought_drop(&sought);
    } else {
        owners = mem_alloc(1, sizeof *owners);
        owners->key = mem_sought_take(&sought, &owners->key_bytes);
        HASH_ADD_KEYPTR(hh, *all, owners->key, owners->key_bytes, owners);
    }
    owners->v = mem_grow(owners->v, owners->len, sizeof *owners->v);
    owners->v[owners->len++] = owner;
}

void owners_remove(struct owners **all, const char *const *parts, size_t parts_len,
                   const void *owner)
{
    struct owners *owners = find(*all, parts, parts_len);
    size_t at = 0;

    assert(owners);
    while (owners->v[at] != owner)
        at++;
    owners->len--;
    memmove(&owners->v[at], &owners->v[at + 1], (owners->len - at) * sizeof *owners->v);
    if (owners->len > 0)
        return;
    HASH_DEL(*all, owners);
    free(owners->v);
    free(owners->key);
    free(owners);
}
