#include "devicemgr/books/refused.h"

#include <stdlib.h>

#include "devicemgr/things/limits.h"

static char *key_of(const char *pod_uid, const char *container, size_t *key_bytes)
{
    return mem_key((const char *[]){pod_uid, container}, 2, key_bytes);
}

static void refusal_free(struct refused *refused, struct refusal *refusal)
{
    HASH_DEL(refused->by_key, refusal);
    demand_fini(&refusal->demand);
    free(refusal->text);
    free(refusal->key);
    free(refusal);
}

void refused_fini(struct refused *refused)
{
    struct refusal *refusal, *next;

    HASH_ITER(hh, refused->by_key, refusal, next) {
        refusal_free(refused, refusal);
    }
}

static struct refusal *find(const struct refused *refused, const char *pod_uid,
                            const char *container)
{
    size_t key_bytes;
    char *key = key_of(pod_uid, container, &key_bytes);
    struct refusal *refusal;

    HASH_FIND(hh, refused->by_key, key, key_bytes, refusal);
    free(key);
    return refusal;
}

const struct refusal *refused_find(const struct refused *refused, const char *pod_uid,
                                   const char *container)
{
    return find(refused, pod_uid, container);
}

void refused_made(struct refused *refused, const char *pod_uid, const char *container)
{
    struct refusal *refusal = refused->by_key ? find(refused, pod_uid, container) : NULL;

    if (refusal)
        refusal->made = true;
}

void refused_note(struct refused *refused, uint64_t now_ms, const struct demand *demand,
                  const char *word, const char *clears, int code, const char *text)
{
    struct refusal *refusal, *before;
    size_t key_bytes;
    bool again;

    if (demand_names_bytes(demand) > REFUSED_NAMES_BYTES_MAX)
        return;
    refusal = mem_alloc(1, sizeof *refusal);
    refusal->key = key_of(demand->pod_uid, demand->container, &key_bytes);
    HASH_FIND(hh, refused->by_key, refusal->key, key_bytes, before);
    again = before && !before->made;
    demand_copy(&refusal->demand, demand);
    refusal->word = word;
    refusal->clears = clears;
    refusal->code = code;
    refusal->text = mem_strdup(text);
    refusal->times = again ? before->times + 1 : 1;
    refusal->first_ms = again ? before->first_ms : now_ms;
    refusal->last_ms = now_ms;
    if (before)
        refusal_free(refused, before);
    else if (HASH_COUNT(refused->by_key) >= REFUSED_MAX)
        refusal_free(refused, refused->by_key);
    HASH_ADD_KEYPTR(hh, refused->by_key, refusal->key, key_bytes, refusal);
}
