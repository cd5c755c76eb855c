#include "config/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- durations ---- */

static const struct unit {
    const char *name;
    uint64_t ms;
} UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {0}};

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
static bool parse_duration(const char *text, uint64_t *out_ms)
{
    const struct unit *unit = UNITS;
    uint64_t total = 0;

    do {
        size_t digits = strspn(text, "0123456789"), letters;
        uint64_t value = strtoull(text, NULL, 10);

        if (digits == 0 || digits > 9)
            return false;
        text += digits;
        letters = strcspn(text, "0123456789");
        while (unit->name &&
               (strlen(unit->name) != letters || strncmp(unit->name, text, letters) != 0))
            unit++;
        if (!unit->name)
            return false;
        total += value * unit++->ms;
        text += letters;
    } while (*text);
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

/* ---- lists and memory ---- */

void *value_allocate(struct reading *r, size_t n, size_t bytes)
{
    void *out = calloc(n > 0 ? n : 1, bytes);

    r->out_of_memory = r->out_of_memory || !out;
    return out;
}

char *value_text(struct reading *r, const char *text, size_t len)
{
    char *out = value_allocate(r, len + 1, 1);

    if (out)
        memcpy(out, text, len);
    return out;
}

size_t *value_len(const struct schema_key *key, void *slot)
{
    return (size_t *)((char *)slot + (key->len - key->offset));
}

void *value_list(struct reading *r, const struct schema_key *key, struct tree_node *node,
                 size_t min, size_t bytes, void *slot)
{
    size_t n = node->children_len;
    char expected[64];

    if (key->limit > 0 && (n < min || n > key->limit)) {
        if (min > 0)
            snprintf(expected, sizeof expected, "from %zu to %zu", min, key->limit);
        else
            snprintf(expected, sizeof expected, "at most %zu", key->limit);
        value_refuse(r, node, expected, "%s has %zu elements", key->name, n);
        return NULL;
    }
    value_fini(key, slot);
    *(void **)slot = value_allocate(r, n, bytes);
    *value_len(key, slot) = *(void **)slot ? n : 0;
    return *(void **)slot;
}

bool value_check_type(struct reading *r, const char *name, struct tree_node *node,
                      enum tree_type type, const char *expected)
{
    static const char *const NAMES[] = {
        [TREE_TABLE] = "a table",      [TREE_ARRAY] = "an array", [TREE_STRING] = "a string",
        [TREE_INTEGER] = "an integer", [TREE_FLOAT] = "a float",  [TREE_BOOLEAN] = "a boolean",
        [TREE_DATE] = "a date or time"};

    if (node->type != type)
        value_refuse(r, node, expected, "%s is %s", name, NAMES[node->type]);
    return node->type == type;
}

/* ---- one reader for each type ---- */

/* Of a node of the right type. False: its text is none of those that are expected; anything else
 * that is wrong they note themselves. */
typedef bool read_fn(struct reading *r, const struct schema_key *key, struct tree_node *node,
                     void *slot);

static bool has_nul(const struct tree_node *node)
{
    return node->type == TREE_STRING && strlen(node->text) != node->text_len;
}

/* Of a string or an integer. */
static void refuse_value(struct reading *r, const char *name, struct tree_node *node,
                         const char *expected)
{
    if (node->type == TREE_STRING)
        value_refuse(r, node, expected, "%s is %s", name, quote(node->text, node->text_len).text);
    else
        value_refuse(r, node, expected, "%s is %lld", name, (long long)node->number);
}

static void put_text(struct reading *r, const char *text, size_t len, void *slot)
{
    free(*(char **)slot);
    *(char **)slot = value_text(r, text, len);
}

static bool read_text(struct reading *r, const struct schema_key *key, struct tree_node *node,
                      void *slot)
{
    if (!key->text->valid(node->text))
        return false;
    put_text(r, node->text, node->text_len, slot);
    return true;
}

/* A socket's path may have "unix://" in front, a directory's '/' at its end. */
static bool read_path(struct reading *r, const struct schema_key *key, struct tree_node *node,
                      void *slot)
{
    bool socket = key->type == VALUE_SOCKET;
    const char *path = node->text + (socket && strncmp(node->text, "unix://", 7) == 0 ? 7 : 0);
    size_t len = strlen(path);
    char expected[128];

    if (!text_is_absolute(path) && (!key->may_be_empty || node->text_len > 0))
        return false;
    while (!socket && len > 1 && path[len - 1] == '/')
        len--;
    snprintf(expected, sizeof expected, "at most %zu bytes%s", key->limit,
             key->reason ? key->reason : ", the limit of a unix socket");
    if (socket && len > 0 && path[len - 1] == '/')
        refuse_value(r, key->name, node, "the path of a socket, not a directory");
    else if (len > key->limit)
        value_refuse(r, node, expected, "%s is %zu bytes long: %s", key->name, len,
                     quote(path, len).text);
    else
        put_text(r, path, len, slot);
    return true;
}

static bool read_duration(struct reading *r, const struct schema_key *key, struct tree_node *node,
                          void *slot)
{
    uint64_t ms, min = 0, max = 0;
    char expected[64];

    if (!parse_duration(node->text, &ms))
        return false;
    parse_duration(key->min ? key->min : "0s", &min);
    parse_duration(key->max, &max);
    if (key->min)
        snprintf(expected, sizeof expected, "from \"%s\" to \"%s\"", key->min, key->max);
    else
        snprintf(expected, sizeof expected, "at most \"%s\"", key->max);
    if (ms >= min && ms <= max)
        *(uint64_t *)slot = ms;
    else
        refuse_value(r, key->name, node, expected);
    return true;
}

static bool read_choice(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    const struct schema_choice *choice = key->choices;

    (void)r;
    while (choice->name && strcmp(choice->name, node->text) != 0)
        choice++;
    if (choice->name)
        *(int *)slot = choice->value;
    return choice->name;
}

static bool read_number(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    (void)r;
    if (key->type == VALUE_FLAG)
        *(bool *)slot = node->number;
    else if (node->number < strtoll(key->min, NULL, 10) ||
             node->number > strtoll(key->max, NULL, 10))
        return false;
    else
        *(unsigned *)slot = (unsigned)node->number;
    return true;
}

static bool read_names(struct reading *r, const struct schema_key *key, struct tree_node *node,
                       void *slot)
{
    char **names = value_list(r, key, node, 0, sizeof *names, slot), element[64];

    snprintf(element, sizeof element, "%s's element", key->name);
    for (size_t i = 0; names && i < node->children_len; i++) {
        struct tree_node *item = &node->children[i];

        if (value_check_type(r, element, item, TREE_STRING, key->text->type)) {
            if (has_nul(item) || !key->text->valid(item->text))
                value_refuse(r, item, key->text->value, "%s holds %s", key->name,
                             quote(item->text, item->text_len).text);
            else
                names[i] = value_text(r, item->text, item->text_len);
        }
        node->wrong = node->wrong || item->wrong;
    }
    return true;
}

static void read_env(struct reading *r, const char *list, struct tree_node *node,
                     struct config_env *out)
{
    if (node->key_len == 0 || strlen(node->key) != node->key_len || strchr(node->key, '=')) {
        faults_add(&r->faults, node->key_at, "the name of an environment variable, without '='",
                   "%s has the name %s", list, quote(node->key, node->key_len).text);
    } else if (!value_check_type(r, node->key, node, TREE_STRING, "a text in quotes")) {
        return;
    } else if (has_nul(node)) {
        value_refuse(r, node, "a text without it", "%s holds a NUL", node->key);
    } else {
        out->name = value_text(r, node->key, node->key_len);
        out->value = value_text(r, node->text, node->text_len);
    }
}

static bool read_environment(struct reading *r, const struct schema_key *key,
                             struct tree_node *node, void *slot)
{
    struct config_env *envs = value_list(r, key, node, 1, sizeof *envs, slot);

    for (size_t i = 0; envs && i < node->children_len; i++)
        read_env(r, key->name, &node->children[i], &envs[i]);
    return true;
}

/* ---- all of them ---- */

static const struct type {
    enum tree_type type;
    read_fn *read;
    size_t bytes;         /* at the slot: the value, or where it is */
    unsigned texts;       /* there: one, or of each element of a list */
    const char *expected; /* NULL: the key's */
} TYPES[VALUE_TABLES + 1] = {
    [VALUE_TEXT] = {TREE_STRING, read_text, sizeof(char *), 1, NULL},
    [VALUE_SOCKET] = {TREE_STRING, read_path, sizeof(char *), 1,
                      "an absolute path in quotes, with or without unix:// in front"},
    [VALUE_DIRECTORY] = {TREE_STRING, read_path, sizeof(char *), 1, "an absolute path in quotes"},
    [VALUE_DURATION] = {TREE_STRING, read_duration, sizeof(uint64_t), 0,
                        "a duration in quotes, such as \"500ms\", \"5s\", \"5m\" or \"1h30m\""},
    [VALUE_CHOICE] = {TREE_STRING, read_choice, sizeof(int), 0, NULL},
    [VALUE_FLAG] = {TREE_BOOLEAN, read_number, sizeof(bool), 0, "true or false, without quotes"},
    [VALUE_COUNT] = {TREE_INTEGER, read_number, sizeof(unsigned), 0, NULL},
    [VALUE_NAMES] = {TREE_ARRAY, read_names, sizeof(char **), 1, NULL},
    [VALUE_ENVIRONMENT] = {TREE_TABLE, read_environment, sizeof(struct config_env *), 2, NULL},
    [VALUE_TABLES] = {TREE_ARRAY, NULL, sizeof(void *), 0, NULL},
};

/* "a", "b" or "c" */
static void list_choices(const struct schema_choice *choices, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; choices[i].name; i++) {
        const char *before = i == 0 ? "" : choices[i + 1].name ? ", " : " or ";

        used += (size_t)snprintf(out + used, size - used, "%s\"%s\"", before, choices[i].name);
    }
}

/* In place of a value of another type. */
static void expected_type(const struct schema_key *key, const struct tree_node *node, char *out,
                          size_t size)
{
    const char *expected = TYPES[key->type].expected;

    if (key->type == VALUE_TEXT)
        expected = key->text->type;
    if (key->type == VALUE_CHOICE)
        list_choices(key->choices, out, size);
    else if (key->type == VALUE_COUNT)
        snprintf(out, size, "a whole number from %s to %s, without quotes", key->min, key->max);
    else if (key->type == VALUE_DURATION && node->type == TREE_INTEGER)
        snprintf(out, size, "a duration with its unit, in quotes, such as \"%llds\"",
                 (long long)node->number);
    else
        snprintf(out, size, "%s", expected ? expected : key->expected);
}

void value_read(struct reading *r, const struct schema_key *key, const char *name,
                struct tree_node *node, void *slot)
{
    const struct type *type = &TYPES[key->type];
    char words[128];
    const char *expected = words;

    expected_type(key, node, words, sizeof words);
    if (!value_check_type(r, name, node, type->type, expected) ||
        (!has_nul(node) && type->read(r, key, node, slot)))
        return;
    if (key->type == VALUE_TEXT)
        expected = key->text->value;
    else if (key->type == VALUE_DIRECTORY)
        expected = "an absolute path";
    refuse_value(r, name, node, expected);
}

/* As if the file had it. */
void value_default(struct reading *r, const struct schema_key *key, void *slot)
{
    char *text = key->initial ? value_text(r, key->initial, strlen(key->initial)) : NULL,
         *rest = text, *name;
    struct tree_node names[8] = {0}, node = {.type = TYPES[key->type].type, .children = names};

    if (!text)
        return;
    node.number = node.type == TREE_BOOLEAN ? strcmp(text, "true") == 0 : strtoll(text, NULL, 10);
    node.text = text;
    node.text_len = strlen(text);
    while (node.type == TREE_ARRAY && (name = strsep(&rest, ",")) && *name && node.children_len < 8)
        names[node.children_len++] =
            (struct tree_node){.type = TREE_STRING, .text = name, .text_len = strlen(name)};
    value_read(r, key, key->name, &node, slot);
    free(text);
}

/* ---- values that are there ---- */

_Static_assert(sizeof(struct config_env) == 2 * sizeof(char *), "two texts");

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
    else if (key->type == VALUE_TABLES && *value_len(key, slot) > 0)
        snprintf(out, size, "%zu", *value_len(key, slot));
}

void value_fini(const struct schema_key *key, void *slot)
{
    size_t n;
    char **texts = texts_of(key, slot, &n);

    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    if (is_list(key))
        free(*(void **)slot);
}
