#include "devicemgr/things/by_claims.h"

#include <stdlib.h>
#include <string.h>

#include "devicemgr/things/mem.h"

void by_claims_fini(struct by_claims *by)
{
    for (size_t i = 0; i < by->len; i++) {
        free(by->v[i].id);
        free(by->v[i].uid);
    }
    free(by->v);
    *by = (struct by_claims){0};
}

static int order(const void *one, const void *other)
{
    const struct by_claim *a = one, *b = other;
    int ids = strcmp(a->id, b->id);

    return ids ? ids : strcmp(a->uid, b->uid);
}

void by_claims_add(struct by_claims *by, const char *id, const char *uid, bool looks)
{
    const struct by_claim added = {(char *)(uintptr_t)id, (char *)(uintptr_t)uid, looks};
    size_t at = by->len;

    while (at > 0 && order(&added, &by->v[at - 1]) < 0)
        at--;
    if (at > 0 && order(&added, &by->v[at - 1]) == 0) {
        by->v[at - 1].looks |= looks;
        return;
    }
    by->v = mem_grow(by->v, by->len, sizeof *by->v);
    memmove(&by->v[at + 1], &by->v[at], (by->len - at) * sizeof *by->v);
    by->v[at] = (struct by_claim){mem_strdup(id), mem_strdup(uid), looks};
    by->len++;
}

void by_claims_copy(struct by_claims *to, const struct by_claims *from)
{
    *to = (struct by_claims){0};
    for (size_t i = 0; i < from->len; i++)
        by_claims_add(to, from->v[i].id, from->v[i].uid, from->v[i].looks);
}

const struct by_claim *by_claims_find(const struct by_claims *by, const char *id, const char *uid)
{
    const struct by_claim sought = {(char *)(uintptr_t)id, (char *)(uintptr_t)uid, false};

    return by->len > 0 ? bsearch(&sought, by->v, by->len, sizeof *by->v, order) : NULL;
}

bool by_claims_equal(const struct by_claims *a, const struct by_claims *b)
{
    size_t i = 0;

    while (i < a->len && i < b->len && order(&a->v[i], &b->v[i]) == 0 &&
           a->v[i].looks == b->v[i].looks)
        i++;
    return i == a->len && i == b->len;
}
