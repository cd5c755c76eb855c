#include "config/compare.h"

#include <stdio.h>
#include <string.h>

#include "config/schema.h"

/* ---- two configurations ---- */

enum difference {
    SAME = 0,
    LIVE = 1,
    FIXED = 3, /* until a restart; with others, all of them */
};

static enum difference compare_section(enum schema_section section, void *a, void *b);

/* Tables are compared one by one; one more, or one less, is another list. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the schema is */
static enum difference compare_value(const struct schema_key *key, void *a, void *b)
{
    size_t bytes = schema_tables[key->inner].bytes;
    enum difference found = SAME;

    if (key->type != VALUE_TABLES || *value_len(key, a) != *value_len(key, b))
        return value_same(key, a, b) ? SAME : key->live ? LIVE : FIXED;
    for (size_t i = 0; found != FIXED && i < *value_len(key, a); i++)
        found |= compare_section(key->inner, *(char **)a + i * bytes, *(char **)b + i * bytes);
    return found;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the schema is */
static enum difference compare_section(enum schema_section section, void *a, void *b)
{
    const struct schema_key *key = NULL;
    enum difference found = SAME;

    while ((key = schema_next(section, key)))
        found |= compare_value(key, schema_slot(key, section, a), schema_slot(key, section, b));
    return found;
}

/* Where a value of which there is one is. */
static void *slot_in(const struct config *config, const struct schema_key *key)
{
    return schema_slot(key, key->section, (void *)config);
}

/* The row behind `key` (NULL: the first) of a value of which there is one; NULL: no more. */
static const struct schema_key *next_value(const struct schema_key *key)
{
    do
        key = key ? key + 1 : schema_keys;
    while (key < schema_keys + schema_keys_len &&
           (key->section > SECTION_CONTROL || key->type == VALUE_TABLE || key->older_name));
    return key < schema_keys + schema_keys_len ? key : NULL;
}

void config_compare(const struct config *a, const struct config *b,
                    void (*each)(void *user, const char *name, bool live), void *user)
{
    const struct schema_key *key = NULL;
    char name[SCHEMA_NAME_BYTES];

    while ((key = next_value(key))) {
        enum difference found = compare_value(key, slot_in(a, key), slot_in(b, key));

        schema_full_name(key, name);
        if (found != SAME)
            each(user, name, found == LIVE);
    }
}

void config_exchange_live(struct config *a, struct config *b)
{
    const struct schema_key *key = NULL;

    while ((key = next_value(key))) {
        if (compare_value(key, slot_in(a, key), slot_in(b, key)) == LIVE)
            value_exchange(key, slot_in(a, key), slot_in(b, key));
    }
}

/* ---- one ---- */

bool config_value(const struct config *config, const char *name, char *out)
{
    const struct schema_key *key = NULL;
    char full[SCHEMA_NAME_BYTES];

    while ((key = next_value(key))) {
        schema_full_name(key, full);
        if (strcmp(full, name) == 0) {
            value_print(key, slot_in(config, key), out, CONFIG_FILE_BYTES_MAX);
            return true;
        }
    }
    return false;
}

/* ---- one, and what it is without a file ---- */

void config_differences(const struct config *config,
                        void (*each)(void *user, const struct config_difference *difference),
                        void *user)
{
    for (enum schema_section section = SECTION_TOP; section <= SECTION_CONTROL; section++) {
        const struct schema_key *key = NULL;

        while ((key = next_value(key))) {
            struct config_difference difference;

            if (key->section != section)
                continue;
            schema_full_name(key, difference.key);
            value_print(key, slot_in(config, key), difference.value, DIFFERENCE_BYTES_MAX);
            schema_initial(key, config, difference.initial, DIFFERENCE_BYTES_MAX);
            if (strcmp(difference.value, difference.initial) != 0)
                each(user, &difference);
        }
    }
}
