#include "config/values.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"

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

bool value_is_glob(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

bool value_duration(const char *text, uint64_t *out_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    const size_t units_len = sizeof UNITS / sizeof *UNITS;
    uint64_t total = 0;
    size_t unit = 0;

    do {
        size_t digits = strspn(text, "0123456789"), letters;
        uint64_t value = strtoull(text, NULL, 10);

        if (digits == 0 || digits > 9)
            return false;
        text += digits;
        letters = strcspn(text, "0123456789");
        while (unit < units_len && (strlen(UNITS[unit].name) != letters ||
                                    strncmp(UNITS[unit].name, text, letters) != 0))
            unit++;
        if (unit == units_len)
            return false;
        total += value * UNITS[unit++].ms;
        text += letters;
    } while (*text);
    *out_ms = total;
    return true;
}

/* ---- help ---- */

void value_wrong_type(struct reading *r, const char *name, struct tree_node *node,
                      const char *expected)
{
    static const char *const NAMES[] = {
        [TREE_TABLE] = "a table",      [TREE_ARRAY] = "an array", [TREE_STRING] = "a string",
        [TREE_INTEGER] = "an integer", [TREE_FLOAT] = "a float",  [TREE_BOOLEAN] = "a boolean",
        [TREE_DATE] = "a date or time"};

    value_refuse(r, node, expected, "%s is %s", name, NAMES[node->type]);
}

static void wrong_text(struct reading *r, const char *name, struct tree_node *node,
                       const char *expected)
{
    value_refuse(r, node, expected, "%s is %s", name, quote(node->text, node->text_len).text);
}

bool value_check_len(struct reading *r, const char *name, struct tree_node *node, size_t min,
                     size_t max)
{
    char expected[64];

    if (max == 0 || (node->children_len >= min && node->children_len <= max))
        return true;
    if (min > 0)
        snprintf(expected, sizeof expected, "from %zu to %zu", min, max);
    else
        snprintf(expected, sizeof expected, "at most %zu", max);
    value_refuse(r, node, expected, "%s has %zu elements", name, node->children_len);
    return false;
}

void *value_allocate(struct reading *r, size_t n, size_t bytes)
{
    void *out = calloc(n > 0 ? n : 1, bytes);

    r->out_of_memory = r->out_of_memory || !out;
    return out;
}

char *value_copy(struct reading *r, const char *text, size_t len)
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

static bool is_string(struct reading *r, const char *name, struct tree_node *node,
                      const char *expected)
{
    if (node->type == TREE_STRING)
        return true;
    value_wrong_type(r, name, node, expected);
    return false;
}

static bool has_nul(const struct tree_node *node)
{
    return strlen(node->text) != node->text_len;
}

static void put_text(struct reading *r, const char *text, size_t len, void *slot)
{
    char **to = slot;

    free(*to);
    *to = value_copy(r, text, len);
}

static void put_path(struct reading *r, const struct schema_key *key, struct tree_node *node,
                     const char *path, size_t len, const char *why, char **slot)
{
    char expected[128];

    if (len <= key->limit) {
        put_text(r, path, len, slot);
        return;
    }
    snprintf(expected, sizeof expected, "at most %zu bytes%s", key->limit, why);
    value_refuse(r, node, expected, "%s is %zu bytes long: %s", key->name, len,
                 quote(path, len).text);
}

/* ---- one for each type ---- */

static bool read_text(struct reading *r, const struct schema_text *rule, const char *name,
                      const char *verb, struct tree_node *node)
{
    if (has_nul(node) || !rule->valid(node->text)) {
        value_refuse(r, node, rule->value, "%s %s %s", name, verb,
                     quote(node->text, node->text_len).text);
        return false;
    }
    return true;
}

static void read_socket(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    static const char EXPECTED[] = "an absolute path in quotes, with or without unix:// in front";
    const char *path;

    if (!is_string(r, key->name, node, EXPECTED))
        return;
    path = node->text + (strncmp(node->text, "unix://", 7) == 0 ? 7 : 0);
    if (has_nul(node) || !is_absolute(path))
        wrong_text(r, key->name, node, EXPECTED);
    else if (path[strlen(path) - 1] == '/')
        wrong_text(r, key->name, node, "the path of a socket, not a directory");
    else
        put_path(r, key, node, path, strlen(path), ", the limit of a unix socket", slot);
}

static void read_directory(struct reading *r, const struct schema_key *key, struct tree_node *node,
                           void *slot)
{
    size_t len = node->text_len;

    if (!is_string(r, key->name, node, "an absolute path in quotes"))
        return;
    if (has_nul(node) || !is_absolute(node->text)) {
        wrong_text(r, key->name, node, "an absolute path");
        return;
    }
    while (len > 1 && node->text[len - 1] == '/')
        len--;
    put_path(r, key, node, node->text, len, key->reason, slot);
}

static void read_duration(struct reading *r, const struct schema_key *key, struct tree_node *node,
                          void *slot)
{
    static const char EXPECTED[] =
        "a duration in quotes, such as \"500ms\", \"5s\", \"5m\" or \"1h30m\"";
    uint64_t ms, min = 0, max = 0;
    char expected[128];

    if (node->type == TREE_INTEGER) {
        snprintf(expected, sizeof expected,
                 "a duration with its unit, in quotes, such as \"%llds\"", (long long)node->number);
        value_wrong_type(r, key->name, node, expected);
        return;
    }
    if (!is_string(r, key->name, node, EXPECTED))
        return;
    if (has_nul(node) || !value_duration(node->text, &ms)) {
        wrong_text(r, key->name, node, EXPECTED);
        return;
    }
    if (key->min)
        value_duration(key->min, &min);
    value_duration(key->max, &max);
    if (ms >= min && ms <= max) {
        *(uint64_t *)slot = ms;
        return;
    }
    if (key->min)
        snprintf(expected, sizeof expected, "from \"%s\" to \"%s\"", key->min, key->max);
    else
        snprintf(expected, sizeof expected, "at most \"%s\"", key->max);
    wrong_text(r, key->name, node, expected);
}

/* "a", "b" or "c" */
static void list_choices(const struct schema_choice *choices, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; choices[i].name; i++)
        used += (size_t)snprintf(out + used, size - used, "%s\"%s\"",
                                 i == 0                ? ""
                                 : choices[i + 1].name ? ", "
                                                       : " or ",
                                 choices[i].name);
}

static void read_choice(struct reading *r, const struct schema_key *key, struct tree_node *node,
                        void *slot)
{
    char expected[128];

    list_choices(key->choices, expected, sizeof expected);
    if (!is_string(r, key->name, node, expected))
        return;
    for (const struct schema_choice *choice = key->choices; choice->name; choice++) {
        if (!has_nul(node) && strcmp(choice->name, node->text) == 0) {
            *(int *)slot = choice->value;
            return;
        }
    }
    wrong_text(r, key->name, node, expected);
}

static void read_flag(struct reading *r, const struct schema_key *key, struct tree_node *node,
                      void *slot)
{
    if (node->type == TREE_BOOLEAN)
        *(bool *)slot = node->number;
    else
        value_wrong_type(r, key->name, node, "true or false, without quotes");
}

static void read_count(struct reading *r, const struct schema_key *key, struct tree_node *node,
                       void *slot)
{
    char expected[64];

    snprintf(expected, sizeof expected, "a whole number from %s to %s, without quotes", key->min,
             key->max);
    if (node->type != TREE_INTEGER)
        value_wrong_type(r, key->name, node, expected);
    else if (node->number < strtoll(key->min, NULL, 10) ||
             node->number > strtoll(key->max, NULL, 10))
        value_refuse(r, node, expected, "%s is %lld", key->name, (long long)node->number);
    else
        *(unsigned *)slot = (unsigned)node->number;
}

static void read_names(struct reading *r, const struct schema_key *key, struct tree_node *node,
                       void *slot)
{
    char element[64], **names;

    if (node->type != TREE_ARRAY) {
        value_wrong_type(r, key->name, node, key->expected);
        return;
    }
    if (!value_check_len(r, key->name, node, 0, key->limit))
        return;
    snprintf(element, sizeof element, "%s's element", key->name);
    for (size_t i = 0; i < node->children_len; i++) {
        struct tree_node *item = &node->children[i];

        if (!is_string(r, element, item, key->text->type) ||
            !read_text(r, key->text, key->name, "holds", item))
            node->wrong = true;
    }
    if (node->wrong)
        return;
    value_fini(key, slot);
    *(char ***)slot = names = value_allocate(r, node->children_len, sizeof *names);
    *value_len(key, slot) = names ? node->children_len : 0;
    for (size_t i = 0; names && i < node->children_len; i++)
        names[i] = value_copy(r, node->children[i].text, node->children[i].text_len);
}

static void read_env(struct reading *r, const char *list, struct tree_node *node,
                     struct config_env *out)
{
    const struct quoted name = quote(node->key, node->key_len);

    if (node->key_len == 0 || strlen(node->key) != node->key_len || strchr(node->key, '=')) {
        faults_add(&r->faults, node->key_at, "the name of an environment variable, without '='",
                   "%s has the name %s", list, name.text);
        return;
    }
    if (!is_string(r, node->key, node, "a text in quotes"))
        return;
    if (has_nul(node)) {
        value_refuse(r, node, "a text without it", "%s holds a NUL", node->key);
        return;
    }
    out->name = value_copy(r, node->key, node->key_len);
    out->value = value_copy(r, node->text, node->text_len);
}

static void read_environment(struct reading *r, const struct schema_key *key,
                             struct tree_node *node, void *slot)
{
    struct config_env *envs;

    if (node->type != TREE_TABLE) {
        value_wrong_type(r, key->name, node, key->expected);
        return;
    }
    if (!value_check_len(r, key->name, node, 1, key->limit))
        return;
    *(struct config_env **)slot = envs = value_allocate(r, node->children_len, sizeof *envs);
    *value_len(key, slot) = envs ? node->children_len : 0;
    for (size_t i = 0; envs && i < node->children_len; i++)
        read_env(r, key->name, &node->children[i], &envs[i]);
}

void value_read(struct reading *r, const struct schema_key *key, const char *name,
                struct tree_node *node, void *slot)
{
    static void (*const READ[])(struct reading *, const struct schema_key *, struct tree_node *,
                                void *) = {
        [VALUE_SOCKET] = read_socket,     [VALUE_DIRECTORY] = read_directory,
        [VALUE_DURATION] = read_duration, [VALUE_CHOICE] = read_choice,
        [VALUE_FLAG] = read_flag,         [VALUE_COUNT] = read_count,
        [VALUE_NAMES] = read_names,       [VALUE_ENVIRONMENT] = read_environment};

    if (key->type != VALUE_TEXT)
        READ[key->type](r, key, node, slot);
    else if (is_string(r, name, node, key->text->type) && read_text(r, key->text, name, "is", node))
        put_text(r, node->text, node->text_len, slot);
}

/* As if the file had it. */
void value_default(struct reading *r, const struct schema_key *key, void *slot)
{
    char *text = key->initial ? value_copy(r, key->initial, strlen(key->initial)) : NULL,
         *rest = text, *name;
    struct tree_node names[8] = {0}, node = {.type = TREE_STRING, .text = text, .children = names};

    if (!text)
        return;
    node.text_len = strlen(text);
    if (key->type == VALUE_FLAG) {
        node.type = TREE_BOOLEAN;
        node.number = strcmp(text, "true") == 0;
    } else if (key->type == VALUE_COUNT) {
        node.type = TREE_INTEGER;
        node.number = strtoll(text, NULL, 10);
    } else if (key->type == VALUE_NAMES) {
        node.type = TREE_ARRAY;
        while ((name = strsep(&rest, ",")) && *name && node.children_len < 8)
            names[node.children_len++] =
                (struct tree_node){.type = TREE_STRING, .text = name, .text_len = strlen(name)};
    }
    value_read(r, key, key->name, &node, slot);
    free(text);
}

void value_fini(const struct schema_key *key, void *slot)
{
    if (key->type == VALUE_TEXT || key->type == VALUE_SOCKET || key->type == VALUE_DIRECTORY)
        free(*(char **)slot);
    if (key->type == VALUE_NAMES) {
        for (size_t i = 0; i < *value_len(key, slot); i++)
            free((*(char ***)slot)[i]);
        free(*(char ***)slot);
    }
    if (key->type == VALUE_ENVIRONMENT) {
        for (size_t i = 0; i < *value_len(key, slot); i++) {
            free((*(struct config_env **)slot)[i].name);
            free((*(struct config_env **)slot)[i].value);
        }
        free(*(struct config_env **)slot);
    }
}
