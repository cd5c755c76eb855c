#include "shim/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/must.h"

static void name_of(int kind, const char *key, char name[FACT_KEY_BYTES_MAX + 2])
{
    snprintf(name, FACT_KEY_BYTES_MAX + 2, "%c%s", 'a' + kind, key);
}

static struct fact *find(const struct facts *facts, int kind, const char *key)
{
    char name[FACT_KEY_BYTES_MAX + 2];
    struct fact *fact;

    name_of(kind, key, name);
    HASH_FIND_STR(facts->table, name, fact);
    return fact;
}

static void set_value(struct facts *facts, struct fact *fact, uint8_t *bytes, size_t len)
{
    facts->bytes[fact->kind] += len - fact->len;
    free(fact->bytes);
    fact->bytes = bytes;
    fact->value = bytes;
    fact->len = len;
    fact->changed = true;
}

static void drop(struct facts *facts, struct fact *fact)
{
    set_value(facts, fact, NULL, 0);
    HASH_DEL(facts->table, fact);
    facts->len[fact->kind]--;
    free(fact->name);
    free(fact);
}

void facts_fini(struct facts *facts)
{
    while (facts->table)
        drop(facts, facts->table);
}

static struct fact *add(struct facts *facts, int kind, const char *key)
{
    struct fact *fact = must(calloc(1, sizeof *fact));
    char name[FACT_KEY_BYTES_MAX + 2];

    name_of(kind, key, name);
    fact->name = must(strdup(name));
    fact->kind = kind;
    fact->key = fact->name + 1;
    HASH_ADD_KEYPTR(hh, facts->table, fact->name, strlen(fact->name), fact);
    facts->len[kind]++;
    return fact;
}

static bool fits(const struct facts *facts, int kind, const struct fact *old, size_t len)
{
    size_t others = facts->bytes[kind] - (old ? old->len : 0);

    return len <= FACT_BYTES_MAX && others + len <= FACTS_BYTES_MAX &&
           (old || facts->len[kind] < FACTS_MAX);
}

int facts_put(struct facts *facts, int kind, const char *key, const uint8_t *value, size_t len)
{
    struct fact *fact;
    uint8_t *bytes;

    if (strlen(key) > FACT_KEY_BYTES_MAX)
        return -ENOSPC;
    fact = find(facts, kind, key);
    if (!fits(facts, kind, fact, len)) {
        facts_remove(facts, kind, key);
        return -ENOSPC;
    }
    if (fact && fact->value && fact->len == len && memcmp(fact->value, value, len) == 0) {
        fact->seen = true;
        return 0;
    }
    if (!fact)
        fact = add(facts, kind, key);
    bytes = must(malloc(len + 1)); /* also of nothing, which is not NULL */
    memcpy(bytes, value, len);
    set_value(facts, fact, bytes, len);
    fact->seen = true;
    return 1;
}

bool facts_remove(struct facts *facts, int kind, const char *key)
{
    struct fact *fact = strlen(key) <= FACT_KEY_BYTES_MAX ? find(facts, kind, key) : NULL;

    if (!fact || !fact->value)
        return false;
    set_value(facts, fact, NULL, 0);
    return true;
}

const struct fact *facts_find(const struct facts *facts, int kind, const char *key)
{
    const struct fact *fact = strlen(key) <= FACT_KEY_BYTES_MAX ? find(facts, kind, key) : NULL;

    return fact && fact->value ? fact : NULL;
}

/* ---- lists ---- */

void facts_list_begin(struct facts *facts, int kind)
{
    for (struct fact *fact = facts->table; fact; fact = fact->hh.next) {
        if (fact->kind == kind)
            fact->seen = false;
    }
}

bool facts_list_end(struct facts *facts, int kind)
{
    bool changed = !facts->complete[kind];

    for (struct fact *fact = facts->table; fact; fact = fact->hh.next) {
        if (fact->kind != kind || fact->seen || !fact->value)
            continue;
        set_value(facts, fact, NULL, 0);
        changed = true;
    }
    facts->complete[kind] = true;
    return changed;
}

bool facts_complete(const struct facts *facts, int kind)
{
    return facts->complete[kind];
}

void facts_set_complete(struct facts *facts, int kind, bool complete)
{
    facts->complete[kind] = complete;
}

/* ---- all of them ---- */

size_t facts_len(const struct facts *facts)
{
    size_t len = 0;

    for (int kind = 0; kind < FACT_KINDS_MAX; kind++)
        len += facts->len[kind];
    return len;
}

const struct fact *facts_next(const struct facts *facts, const struct fact *after)
{
    const struct fact *fact = after ? after->hh.next : facts->table;

    while (fact && !fact->value)
        fact = fact->hh.next;
    return fact;
}

void facts_tell(struct facts *facts, bool all, void (*each)(void *user, const struct fact *fact),
                void *user)
{
    struct fact *fact = facts->table, *next;

    for (; fact; fact = next) {
        next = fact->hh.next;
        if (all ? fact->value != NULL : fact->changed)
            each(user, fact);
        fact->changed = false;
        if (!fact->value)
            drop(facts, fact);
    }
}
