#include "config/read.h"

#include <stdio.h>
#include <string.h>

/* No key is as long as this by far: nothing is near it. */
#define NEAR_BYTES_MAX 64

struct tree_node *read_find(const struct tree_node *table, const char *key)
{
    for (size_t i = 0; table && table->type == TREE_TABLE && i < table->children_len; i++) {
        struct tree_node *child = &table->children[i];

        if (child->key_len == strlen(key) && memcmp(child->key, key, child->key_len) == 0)
            return child;
    }
    return NULL;
}

/* ---- keys that are none ---- */

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many characters to add, leave out or replace. */
static size_t edit_distance(const char *a, size_t a_len, const char *b)
{
    size_t row[NEAR_BYTES_MAX + 1], b_len = strlen(b);

    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t above = row[j];

            row[j] = min(min(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_len];
}

static const struct schema_key *nearest(enum schema_section section, const struct tree_node *node)
{
    const struct schema_key *found = NULL, *key = NULL;
    size_t found_distance = 0;

    while (node->key_len <= NEAR_BYTES_MAX && (key = schema_next(section, key))) {
        size_t distance = edit_distance(node->key, node->key_len, key->name);

        if (!found || distance < found_distance) {
            found = key;
            found_distance = distance;
        }
    }
    if (found && found_distance > 1 && found_distance > strlen(found->name) / 3)
        return NULL;
    return found;
}

/* The section that has this very key, the nearest name here, or all names. */
static void advise(enum schema_section section, const struct tree_node *node, char *out,
                   size_t size)
{
    const struct schema_key *key = NULL;
    size_t used;

    for (enum schema_section other = 0; other < SECTION_PATH; other++) {
        if (other != section && schema_find(other, node->key, node->key_len)) {
            snprintf(out, size, "it in %s", schema_tables[other].name);
            return;
        }
    }
    key = nearest(section, node);
    if (key) {
        snprintf(out, size, "\"%s\", the nearest name known", key->name);
        return;
    }
    used = (size_t)snprintf(out, size, "one of ");
    while ((key = schema_next(section, key)))
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 used > strlen("one of ") ? ", " : "", key->name);
}

/* One table, or an array of nothing else. */
static bool is_table(const struct tree_node *node)
{
    for (size_t i = 0; node->type == TREE_ARRAY && i < node->children_len; i++) {
        if (node->children[i].type != TREE_TABLE)
            return false;
    }
    return node->type == TREE_TABLE || (node->type == TREE_ARRAY && node->children_len > 0);
}

static void check_names(struct reading *r, enum schema_section section,
                        const struct tree_node *table)
{
    for (size_t i = 0; i < table->children_len; i++) {
        const struct tree_node *node = &table->children[i];
        char expected[512];

        if (schema_find(section, node->key, node->key_len))
            continue;
        advise(section, node, expected, sizeof expected);
        faults_add(&r->faults, node->key_at, expected, "unknown %s %s in %s",
                   is_table(node) ? "table" : "key", quote(node->key, node->key_len).text,
                   schema_tables[section].name);
    }
}

/* ---- keys that are known ---- */

static void put_defaults(struct reading *r, enum schema_section section, void *base)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        void *slot = schema_slot(key, section, base);

        if (key->type == VALUE_TABLE)
            put_defaults(r, key->inner, base);
        else if (section != SECTION_RESOURCE || key->section == section)
            value_default(r, key, slot);
        else if (key->type == VALUE_DURATION)
            *(uint64_t *)slot = *(uint64_t *)schema_slot(key, key->section, r->config);
        else
            *(int *)slot = *(int *)schema_slot(key, key->section, r->config);
    }
}

static void read_keys(struct reading *r, enum schema_section section, struct tree_node *table,
                      void *base);

/* A string is a table that has the first key only, to go by another name. */
static void read_element(struct reading *r, const struct schema_key *list, struct tree_node *node,
                         void *base)
{
    const struct schema_table *table = &schema_tables[list->inner];
    char name[64];

    snprintf(name, sizeof name, "an element of %s", list->name);
    if (node->type == TREE_STRING && table->or_text) {
        const struct schema_key *key = schema_next(list->inner, NULL);

        value_read(r, key, name, node, schema_slot(key, list->inner, base));
    } else if (value_check_type(r, name, node, TREE_TABLE, table->element)) {
        read_section(r, list->inner, node, base);
    }
}

static void read_tables(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    size_t bytes = schema_tables[key->inner].bytes;
    char *elements = NULL;

    if (value_check_type(r, key->name, node, TREE_ARRAY, key->expected))
        elements = value_list(r, key, node, 1, bytes, slot);
    for (size_t i = 0; elements && i < node->children_len; i++)
        read_element(r, key, &node->children[i], elements + i * bytes);
}

static void read_table(struct reading *r, const struct schema_key *key, struct tree_node *node,
                       void *base)
{
    char expected[64];

    snprintf(expected, sizeof expected, "a table, %s", schema_tables[key->inner].name);
    if (value_check_type(r, key->name, node, TREE_TABLE, expected))
        read_keys(r, key->inner, node, base);
}

static void read_keys(struct reading *r, enum schema_section section, struct tree_node *table,
                      void *base)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        struct tree_node *node = read_find(table, key->name);
        void *slot = schema_slot(key, section, base);

        if (!node && key->required)
            faults_add(&r->faults, table->at, key->required, "%s has no %s",
                       schema_tables[section].one, key->name);
        else if (!node)
            continue;
        else if (key->type == VALUE_TABLE)
            read_table(r, key, node, base);
        else if (key->type == VALUE_TABLES)
            read_tables(r, key, node, slot);
        else
            value_read(r, key, key->name, node, slot);
    }
    check_names(r, section, table);
}

void read_section(struct reading *r, enum schema_section section, struct tree_node *table,
                  void *base)
{
    put_defaults(r, section, base);
    if (table)
        read_keys(r, section, table, base);
}

void read_fini(enum schema_section section, void *base)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        void *slot = schema_slot(key, section, base);

        if (key->type == VALUE_TABLE) {
            read_fini(key->inner, base);
            continue;
        }
        for (size_t i = 0; key->type == VALUE_TABLES && i < *value_len(key, slot); i++)
            read_fini(key->inner, *(char **)slot + i * schema_tables[key->inner].bytes);
        value_fini(key, slot);
    }
}
