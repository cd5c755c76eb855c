#include "devicemgr/things/request.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cri-proto/resource_name.h"
#include "cri-proto/token.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/toleration.h"

void request_fini(struct request *request)
{
    for (size_t i = 0; i < request->len; i++) {
        free(request->items[i].resource);
        ids_fini(&request->items[i].ids);
        ids_fini(&request->items[i].preferred);
        by_claims_fini(&request->items[i].by);
    }
    free(request->items);
    *request = (struct request){0};
}

static bool is_key_of(const char *key, const char *container)
{
    return request_is_token_key(key) && strcmp(key + strlen(REQUEST_KEY_PREFIX), container) == 0;
}

const char *request_annotation_of(const struct devicemgr_annotation *annotations, size_t len,
                                  const char *container)
{
    for (size_t i = 0; i < len; i++) {
        if (is_key_of(annotations[i].key, container) &&
            !tolerations_is_annotation(annotations[i].key, annotations[i].value))
            return annotations[i].value;
    }
    return NULL;
}

bool request_is_own_key(const char *key)
{
    return request_is_token_key(key) || request_is_asked_key(key) > 0;
}

static struct request_item *find(const struct request *request, const char *resource)
{
    for (size_t i = 0; i < request->len; i++) {
        if (strcmp(request->items[i].resource, resource) == 0)
            return &request->items[i];
    }
    return NULL;
}

bool request_names(const struct request *request, const char *resource)
{
    return find(request, resource) != NULL;
}

static struct request_item *append(struct request *request, const char *resource, size_t count)
{
    struct request_item *item;

    request->items = mem_grow(request->items, request->len, sizeof *request->items);
    item = &request->items[request->len++];
    *item = (struct request_item){.resource = mem_strdup(resource), .count = count};
    return item;
}

/* ---- claims ---- */

int request_add_claimed(struct request *request, const char *resource, const char *id,
                        const char *claim_uid, struct text *error)
{
    struct request_item *item = find(request, resource);

    if (!item && request->len == REQUEST_RESOURCES_MAX) {
        text_add(error, "more than %d resources", REQUEST_RESOURCES_MAX);
        return -1;
    }
    if (item && item->by.len == REQUEST_CLAIMED_MAX) {
        text_add(error, "more than %d devices of claims", REQUEST_CLAIMED_MAX);
        return -1;
    }
    if (!item)
        item = append(request, resource, 0);
    item->token = item->claimed = true;
    ids_insert(&item->ids, id);
    item->count = item->ids.len;
    by_claims_add(&item->by, id, claim_uid, false);
    return 0;
}

/* ---- token ---- */

char *request_token_key(const char *resource)
{
    char *key = token_key(resource);

    if (!key)
        abort(); /* out of memory */
    return key;
}

char *request_asked_key(const char *resource)
{
    char *key = request_token_key(resource), *asked;

    if (asprintf(&asked, TOKEN_ASKED_PREFIX "%s", key) < 0)
        abort(); /* out of memory */
    free(key);
    return asked;
}

char *request_token_value(const char *resource, const struct ids *ids)
{
    char *value = token_value(resource, (const char *const *)ids->v, ids->len);

    if (!value)
        abort(); /* out of memory: names and ids are UTF-8 (resource_name.h, devices.h, record.c) */
    return value;
}

static int token_take_ids(struct request_item *item, const json_t *list, struct text *error)
{
    size_t index;
    json_t *id;

    if (json_array_size(list) > REQUEST_COUNT_MAX) {
        text_add(error, "%zu device ids, more than %d", json_array_size(list), REQUEST_COUNT_MAX);
        return -1;
    }
    json_array_foreach(list, index, id) {
        if (json_string_length(id) == 0) {
            text_add(error, "ids[%zu] is no device id", index);
            return -1;
        }
        ids_add(&item->ids, json_string_value(id));
    }
    ids_sort(&item->ids);
    if (ids_repeat(&item->ids)) {
        text_add(error, "a device id is named twice");
        return -1;
    }
    item->count = item->ids.len;
    return 0;
}

static int token_check_key(const char *key, const char *resource, struct text *error)
{
    char *expected = request_token_key(resource);
    int result = strcmp(key, expected) == 0 ? 0 : -1;

    if (result < 0)
        text_add(error, "the key of resource %s is %s", resource, expected);
    free(expected);
    return result;
}

static int token_take(struct request *request, const char *key, const json_t *root,
                      struct text *error)
{
    const json_t *ids = json_object_get(root, "ids");
    const char *resource = json_string_value(json_object_get(root, "resource"));
    struct request_item *item;

    if (!resource || !json_is_array(ids) || json_array_size(ids) == 0 ||
        json_object_size(root) != 2) {
        text_add(error, "expected {\"resource\":\"vendor.com/name\",\"ids\":[\"id\",...]}");
        return -1;
    }
    if (!resource_name_valid(resource)) {
        text_add(error, "the ResourceName \"");
        text_add_words(error, resource, TEXT_WORDS_BYTES_MAX);
        text_add(error, "\" is invalid");
        return -1;
    }
    if (token_check_key(key, resource, error) < 0)
        return -1;
    if (find(request, resource)) {
        text_add(error, "the resource is named twice");
        return -1;
    }
    if (request->len == REQUEST_RESOURCES_MAX) {
        text_add(error, "more than %d resources", REQUEST_RESOURCES_MAX);
        return -1;
    }
    item = append(request, resource, 0);
    item->token = true;
    if (token_take_ids(item, ids, error) == 0)
        return 0;
    free(item->resource);
    ids_fini(&item->ids);
    request->len--;
    return -1;
}

int request_add_token(struct request *request, const char *key, const char *value,
                      struct text *error)
{
    json_error_t bad;
    json_t *root = json_loads(value, JSON_REJECT_DUPLICATES, &bad);
    struct text what = {0};
    int result = -1;

    if (root) {
        result = token_take(request, key, root, &what);
        json_decref(root);
    } else {
        text_add_words(&what, bad.text, TEXT_WORDS_BYTES_MAX);
        text_add(&what, " at position %d", bad.position);
        text_add_name(&what, " of ", value);
    }
    if (result == 0)
        return 0;
    text_add(error, "annotation ");
    text_add_words(error, key, TEXT_WORDS_BYTES_MAX);
    text_add(error, ": %s", what.buf);
    return -1;
}

/* ---- request annotation ---- */

/* One "resource=count" of the text; `at` is where it starts, `len` its length without blanks. */
struct field {
    const char *at;
    size_t len;
};

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

static int fail(struct text *error, const char *text, const char *at, const char *what)
{
    text_add(error, "annotation \"");
    text_add_words(error, text, TEXT_WORDS_BYTES_MAX);
    text_add(error, "\": %s at position %zu", what, (size_t)(at - text) + 1);
    return -1;
}

/* 0: not a number from 1 to REQUEST_COUNT_MAX. */
static size_t parse_count(const char *s, size_t len)
{
    size_t count = 0;

    if (len == 0 || s[0] == '0')
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return 0;
        count = count * 10 + (size_t)(s[i] - '0');
        if (count > REQUEST_COUNT_MAX)
            return 0;
    }
    return count;
}

static int add_field(struct request *request, size_t tokens, const char *text, struct field field,
                     struct text *error)
{
    const char *equals = memchr(field.at, '=', field.len);
    const struct request_item *before;
    char *resource;
    size_t count;
    bool valid, full;

    if (!equals)
        return fail(error, text, field.at, "expected resource=count");
    count = parse_count(equals + 1, field.len - (size_t)(equals + 1 - field.at));
    if (count == 0)
        return fail(error, text, equals + 1,
                    "expected a count from 1 to " STRING(REQUEST_COUNT_MAX));
    resource = mem_alloc((size_t)(equals - field.at) + 1, 1);
    memcpy(resource, field.at, (size_t)(equals - field.at));
    valid = resource_name_valid(resource);
    before = find(request, resource);
    full = !before && request->len == REQUEST_RESOURCES_MAX;
    if (valid && !before && !full)
        append(request, resource, count);
    free(resource);
    if (!valid)
        return fail(error, text, field.at, "not a resource name");
    if (before && (size_t)(before - request->items) >= tokens)
        return fail(error, text, field.at, "the resource is named twice");
    if (full)
        return fail(error, text, field.at, "more than " STRING(REQUEST_RESOURCES_MAX) " resources");
    return 0;
}

static struct field trim(const char *start, const char *end)
{
    while (start < end && (*start == ' ' || *start == '\t' || *start == '\n'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n'))
        end--;
    return (struct field){start, (size_t)(end - start)};
}

int request_add_annotation(struct request *request, const char *value, struct text *error)
{
    size_t tokens = request->len;
    const char *start = value;

    if (strlen(value) > REQUEST_BYTES_MAX)
        return fail(error, value, value + REQUEST_BYTES_MAX, "too long a text");
    for (;;) {
        const char *end = strchrnul(start, ',');

        if (add_field(request, tokens, value, trim(start, end), error) < 0)
            return -1;
        if (*end == '\0')
            return 0;
        start = end + 1;
    }
}

static int order(const void *a, const void *b)
{
    return strcmp(((const struct request_item *)a)->resource,
                  ((const struct request_item *)b)->resource);
}

void request_sort(struct request *request)
{
    if (request->len > 1)
        qsort(request->items, request->len, sizeof *request->items, order);
}
