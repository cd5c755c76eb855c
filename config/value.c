#include "config/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- durations ---- */

static const struct unit {
    const char *name;
    uint64_t ms;
} UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {0}};

bool value_duration(const char *text, uint64_t *out_ms)
{
    static const char DIGITS[] = "0123456789";
    const char *rest = text;
    uint64_t total = 0;

    for (const struct unit *unit = UNITS; unit->name; unit++) {
        size_t digits = strspn(rest, DIGITS), letters = strcspn(rest + digits, DIGITS);

        if (letters != strlen(unit->name) || strncmp(rest + digits, unit->name, letters) != 0)
            continue;
        if (digits == 0 || digits > 9)
            return false;
        total += strtoull(rest, NULL, 10) * unit->ms;
        rest += digits + letters;
    }
    if (*rest || rest == text)
        return false;
    *out_ms = total;
    return true;
}

static void print_duration(uint64_t ms, char *out, size_t size)
{
    size_t used = 0;

    snprintf(out, size, "0s");
    for (const struct unit *unit = UNITS; unit->name; unit++) {
        if (ms / unit->ms > 0)
            used += (size_t)snprintf(out + used, size - used, "%" PRIu64 "%s", ms / unit->ms,
                                     unit->name);
        ms %= unit->ms;
    }
}

/* ---- of any type ---- */

static const struct {
    size_t bytes;   /* at the slot: the value, or where it is */
    unsigned texts; /* there: one, or of each element of a list */
} TYPES[VALUE_TABLES + 1] = {
    [VALUE_TEXT] = {sizeof(char *), 1},
    [VALUE_SOCKET] = {sizeof(char *), 1},
    [VALUE_DIRECTORY] = {sizeof(char *), 1},
    [VALUE_DURATION] = {sizeof(uint64_t), 0},
    [VALUE_CHOICE] = {sizeof(int), 0},
    [VALUE_FLAG] = {sizeof(bool), 0},
    [VALUE_COUNT] = {sizeof(unsigned), 0},
    [VALUE_INTEGER] = {sizeof(int32_t), 0},
    [VALUE_SCALAR] = {sizeof(char *), 1},
    [VALUE_NAMES] = {sizeof(char **), 1},
    [VALUE_ENVIRONMENT] = {sizeof(struct config_env *), 2},
    [VALUE_TABLES] = {sizeof(void *), 0},
};

_Static_assert(sizeof(struct config_env) == 2 * sizeof(char *), "two texts");

size_t *value_len(const struct schema_key *key, void *slot)
{
    return (size_t *)((char *)slot + (key->len - key->offset));
}

static bool is_list(const struct schema_key *key)
{
    return key->len > 0;
}

/* The texts of a value, and how many. */
static char **texts_of(const struct schema_key *key, void *slot, size_t *n)
{
    *n = TYPES[key->type].texts * (is_list(key) ? *value_len(key, slot) : 1);
    return is_list(key) ? *(char ***)slot : slot;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool value_same(const struct schema_key *key, void *a, void *b)
{
    size_t a_len, b_len;
    char **a_texts = texts_of(key, a, &a_len), **b_texts = texts_of(key, b, &b_len);

    if (TYPES[key->type].texts == 0)
        return memcmp(a, b, TYPES[key->type].bytes) == 0;
    for (size_t i = 0; a_len == b_len && i < a_len; i++) {
        if (!same_text(a_texts[i], b_texts[i]))
            return false;
    }
    return a_len == b_len;
}

static void exchange(void *a, void *b, size_t bytes)
{
    char kept[sizeof(void *)];

    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
}

void value_exchange(const struct schema_key *key, void *a, void *b)
{
    exchange(a, b, TYPES[key->type].bytes);
    if (is_list(key))
        exchange(value_len(key, a), value_len(key, b), sizeof(size_t));
}

void value_print(const struct schema_key *key, void *slot, char *out, size_t size)
{
    size_t n, used = 0;
    char **texts = texts_of(key, slot, &n);

    *out = '\0';
    for (size_t i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? "," : "",
                                 texts[i] ? texts[i] : "");
    for (size_t i = 0; key->type == VALUE_CHOICE && key->choices[i].name; i++) {
        if (key->choices[i].value == *(int *)slot)
            snprintf(out, size, "%s", key->choices[i].name);
    }
    if (key->type == VALUE_DURATION)
        print_duration(*(uint64_t *)slot, out, size);
    else if (key->type == VALUE_FLAG)
        snprintf(out, size, "%s", *(bool *)slot ? "true" : "false");
    else if (key->type == VALUE_COUNT)
        snprintf(out, size, "%u", *(unsigned *)slot);
    else if (key->type == VALUE_INTEGER)
        snprintf(out, size, "%" PRId32, *(int32_t *)slot);
    else if (key->type == VALUE_TABLES && *value_len(key, slot) > 0)
        snprintf(out, size, "%zu", *value_len(key, slot));
}

/* ---- its memory ---- */

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the schema is */
static void section_fini(enum schema_section section, void *base)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        if (key->type == VALUE_TABLE)
            section_fini(key->inner, base);
        else
            value_fini(key, schema_slot(key, section, base));
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the schema is */
void value_fini(const struct schema_key *key, void *slot)
{
    size_t n;
    char **texts = texts_of(key, slot, &n);

    for (size_t i = 0; key->type == VALUE_TABLES && i < *value_len(key, slot); i++)
        section_fini(key->inner, *(char **)slot + i * schema_tables[key->inner].bytes);
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    if (is_list(key))
        free(*(void **)slot);
}

void config_fini(struct config *config)
{
    section_fini(SECTION_TOP, config);
    memset(config, 0, sizeof *config);
}
