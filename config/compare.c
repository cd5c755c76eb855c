#include "config/compare.h"

#include <stdio.h>
#include <string.h>

#include "config/schema.h"
#include "config/values.h"

enum difference {
    SAME,
    LIVE,
    FIXED, /* until a restart */
};

static enum difference compare_section(enum schema_section section, const void *a, const void *b);

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_names(char **a, char **b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!same_text(a[i], b[i]))
            return false;
    }
    return true;
}

static bool same_environment(const struct config_env *a, const struct config_env *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!same_text(a[i].name, b[i].name) || !same_text(a[i].value, b[i].value))
            return false;
    }
    return true;
}

/* Element by element: one more, or one less, is another table. */
static enum difference compare_tables(const struct schema_key *key, const char *a, const char *b,
                                      size_t len)
{
    size_t bytes = schema_tables[key->inner].bytes;
    enum difference found = SAME;

    for (size_t i = 0; i < len; i++) {
        enum difference one = compare_section(key->inner, a + i * bytes, b + i * bytes);

        found = one > found ? one : found;
    }
    return found;
}

static bool is_list(const struct schema_key *key)
{
    return key->type == VALUE_NAMES || key->type == VALUE_ENVIRONMENT || key->type == VALUE_TABLES;
}

/* Bytes at the slot. */
static size_t size_of(const struct schema_key *key)
{
    switch (key->type) {
    case VALUE_DURATION:
        return sizeof(uint64_t);
    case VALUE_CHOICE:
        return sizeof(int);
    case VALUE_FLAG:
        return sizeof(bool);
    case VALUE_COUNT:
        return sizeof(unsigned);
    default:
        return sizeof(void *);
    }
}

static enum difference compare_list(const struct schema_key *key, void *a, void *b)
{
    size_t len = *value_len(key, a);
    void *x = *(void **)a, *y = *(void **)b;
    bool same = len == *value_len(key, b);

    if (same && key->type == VALUE_TABLES)
        return compare_tables(key, x, y, len);
    if (same)
        same = key->type == VALUE_NAMES ? same_names(x, y, len) : same_environment(x, y, len);
    return same ? SAME : key->live ? LIVE : FIXED;
}

static enum difference compare_value(const struct schema_key *key, void *a, void *b)
{
    bool same;

    if (is_list(key))
        return compare_list(key, a, b);
    if (key->type == VALUE_TEXT || key->type == VALUE_SOCKET || key->type == VALUE_DIRECTORY)
        same = same_text(*(char **)a, *(char **)b);
    else
        same = memcmp(a, b, size_of(key)) == 0;
    return same ? SAME : key->live ? LIVE : FIXED;
}

static enum difference compare_section(enum schema_section section, const void *a, const void *b)
{
    const struct schema_key *key = NULL;
    enum difference found = SAME;

    while ((key = schema_next(section, key))) {
        enum difference one = compare_value(key, schema_slot(key, section, (void *)a),
                                            schema_slot(key, section, (void *)b));

        found = one > found ? one : found;
    }
    return found;
}

/* ---- key by key, of the sections that are no element of an array ---- */

typedef void visit_fn(const struct schema_key *key, enum difference difference, void *a, void *b,
                      void *user);

static void visit(enum schema_section section, void *a, void *b, visit_fn *fn, void *user)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        void *x = schema_slot(key, section, a), *y = schema_slot(key, section, b);

        if (key->type == VALUE_TABLE)
            visit(key->inner, a, b, fn, user);
        else if (!key->older_name)
            fn(key, compare_value(key, x, y), x, y, user);
    }
}

struct told {
    void (*each)(void *user, const char *name, bool live);
    void *user;
};

static void tell(const struct schema_key *key, enum difference difference, void *a, void *b,
                 void *user)
{
    const struct told *told = user;
    const char *section = schema_tables[key->section].name;
    char name[128];

    (void)a, (void)b;
    if (difference == SAME)
        return;
    if (key->type == VALUE_TABLES)
        snprintf(name, sizeof name, "[[%s]]", key->name);
    else if (key->section == SECTION_TOP)
        snprintf(name, sizeof name, "%s", key->name);
    else
        snprintf(name, sizeof name, "%.*s.%s", (int)strlen(section) - 2, section + 1, key->name);
    told->each(told->user, name, difference == LIVE);
}

void config_compare(const struct config *a, const struct config *b,
                    void (*each)(void *user, const char *name, bool live), void *user)
{
    struct told told = {.each = each, .user = user};

    visit(SECTION_TOP, (void *)a, (void *)b, tell, &told);
}

static void exchange(void *a, void *b, size_t bytes)
{
    char kept[sizeof(void *)];

    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
}

static void take(const struct schema_key *key, enum difference difference, void *a, void *b,
                 void *user)
{
    (void)user;
    if (difference != LIVE)
        return;
    exchange(a, b, size_of(key));
    if (is_list(key))
        exchange(value_len(key, a), value_len(key, b), sizeof(size_t));
}

void config_exchange_live(struct config *a, struct config *b)
{
    visit(SECTION_TOP, a, b, take, NULL);
}
