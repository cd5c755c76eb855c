#include "config/values.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/listen_address.h"

/* ---- rules for texts ---- */

static bool has_controls(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    }
    return false;
}

static bool is_absolute(const char *text)
{
    return text[0] == '/' && !has_controls(text);
}

bool value_is_path(const char *text)
{
    return is_absolute(text) && strlen(text) < PATH_MAX;
}

bool value_is_node_path(const char *text)
{
    return value_is_path(text) && text[strlen(text) - 1] != '/';
}

bool value_is_permissions(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (!strchr("rwm", *at) || strchr(at + 1, *at))
            return false;
    }
    return *text != '\0';
}

/* A label of RFC 1123 in lower case. */
bool value_is_namespace(const char *text)
{
    size_t len = strlen(text);

    if (strcmp(text, "*") == 0)
        return true;
    return len > 0 && len <= 63 && text[0] != '-' && text[len - 1] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool value_is_comm(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= COMM_BYTES_MAX && !has_controls(text) && !strchr(text, '/');
}

bool value_is_listen(const char *text)
{
    struct listen_address address;

    return !*text || listen_address_parse(text, &address);
}

bool value_is_glob(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
static bool parse_duration(const char *text, uint64_t *out_ms)
{
    static const struct unit {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {0}};
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

static void put_path(struct reading *r, const struct schema_key *key, struct tree_node *node,
                     const char *path, size_t len, void *slot)
{
    char expected[128];

    if (len <= key->limit) {
        put_text(r, path, len, slot);
        return;
    }
    snprintf(expected, sizeof expected, "at most %zu bytes%s", key->limit,
             key->reason ? key->reason : ", the limit of a unix socket");
    value_refuse(r, node, expected, "%s is %zu bytes long: %s", key->name, len,
                 quote(path, len).text);
}

static bool read_socket(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    const char *path = node->text + (strncmp(node->text, "unix://", 7) == 0 ? 7 : 0);

    if (key->may_be_empty && node->text_len == 0) {
        put_text(r, "", 0, slot);
        return true;
    }
    if (!is_absolute(path))
        return false;
    if (path[strlen(path) - 1] == '/')
        refuse_value(r, key->name, node, "the path of a socket, not a directory");
    else
        put_path(r, key, node, path, strlen(path), slot);
    return true;
}

static bool read_directory(struct reading *r, const struct schema_key *key, struct tree_node *node,
                           void *slot)
{
    size_t len = node->text_len;

    if (!is_absolute(node->text))
        return false;
    while (len > 1 && node->text[len - 1] == '/')
        len--;
    put_path(r, key, node, node->text, len, slot);
    return true;
}

static bool read_duration(struct reading *r, const struct schema_key *key, struct tree_node *node,
                          void *slot)
{
    uint64_t ms, min = 0, max = 0;
    char expected[64];

    if (!parse_duration(node->text, &ms))
        return false;
    snprintf(expected, sizeof expected, "at most \"%s\"", key->max);
    parse_duration(key->max, &max);
    if (key->min) {
        snprintf(expected, sizeof expected, "from \"%s\" to \"%s\"", key->min, key->max);
        parse_duration(key->min, &min);
    }
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

static bool read_flag(struct reading *r, const struct schema_key *key, struct tree_node *node,
                      void *slot)
{
    (void)r;
    (void)key;
    *(bool *)slot = node->number;
    return true;
}

static bool read_count(struct reading *r, const struct schema_key *key, struct tree_node *node,
                       void *slot)
{
    (void)r;
    if (node->number < strtoll(key->min, NULL, 10) || node->number > strtoll(key->max, NULL, 10))
        return false;
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
    const char *expected; /* NULL: the key's */
    read_fn *read;
} TYPES[VALUE_TABLES + 1] = {
    [VALUE_TEXT] = {TREE_STRING, NULL, read_text},
    [VALUE_SOCKET] = {TREE_STRING, "an absolute path in quotes, with or without unix:// in front",
                      read_socket},
    [VALUE_DIRECTORY] = {TREE_STRING, "an absolute path in quotes", read_directory},
    [VALUE_DURATION] = {TREE_STRING,
                        "a duration in quotes, such as \"500ms\", \"5s\", \"5m\" or \"1h30m\"",
                        read_duration},
    [VALUE_CHOICE] = {TREE_STRING, NULL, read_choice},
    [VALUE_FLAG] = {TREE_BOOLEAN, "true or false, without quotes", read_flag},
    [VALUE_COUNT] = {TREE_INTEGER, NULL, read_count},
    [VALUE_NAMES] = {TREE_ARRAY, NULL, read_names},
    [VALUE_ENVIRONMENT] = {TREE_TABLE, NULL, read_environment},
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
    if (node.type == TREE_STRING) {
        node.text = text;
        node.text_len = strlen(text);
    }
    node.number = node.type == TREE_BOOLEAN ? strcmp(text, "true") == 0 : strtoll(text, NULL, 10);
    while (node.type == TREE_ARRAY && (name = strsep(&rest, ",")) && *name && node.children_len < 8)
        names[node.children_len++] =
            (struct tree_node){.type = TREE_STRING, .text = name, .text_len = strlen(name)};
    value_read(r, key, key->name, &node, slot);
    free(text);
}

_Static_assert(sizeof(struct config_env) == 2 * sizeof(char *), "two texts");

void value_fini(const struct schema_key *key, void *slot)
{
    /* Of a list: those of an element. */
    size_t texts = key->type == VALUE_NAMES ? 1 : key->type == VALUE_ENVIRONMENT ? 2 : 0;

    for (size_t i = 0; texts > 0 && i < *value_len(key, slot) * texts; i++)
        free((*(char ***)slot)[i]);
    if (texts > 0 || key->type == VALUE_TEXT || key->type == VALUE_SOCKET ||
        key->type == VALUE_DIRECTORY)
        free(*(void **)slot);
}
