/*
 * The requests for devices that annotations carry.
 *
 * Input: a run of texts that end in NUL, a letter in front of each: 't' and a key, and its value as
 * the next text, is a token, anything else a request annotation. What is accepted must print and
 * parse to the same again; what is refused must have said why, in words fit for a terminal.
 */
#include <string.h>

#include "cri-proto/resource_name.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/request.h"
#include "tests/fuzz/fuzz.h"

static void check_error(const struct text *error)
{
    FUZZ_CHECK(error->len > 0 && error->len < sizeof error->buf, "%zu bytes", error->len);
    FUZZ_CHECK(strlen(error->buf) == error->len, "a NUL within");
    for (size_t i = 0; i < error->len; i++)
        FUZZ_CHECK((unsigned char)error->buf[i] >= ' ' && error->buf[i] != 0x7f, "%s", error->buf);
}

static void check_equal(const struct request_item *a, const struct request_item *b)
{
    FUZZ_CHECK(strcmp(a->resource, b->resource) == 0, "%s, %s", a->resource, b->resource);
    FUZZ_CHECK(a->count == b->count && a->token == b->token, "%s", a->resource);
    FUZZ_CHECK(ids_equal(&a->ids, &b->ids), "%s", a->resource);
}

static void check_item(const struct request_item *item)
{
    FUZZ_CHECK(resource_name_valid(item->resource), "%s", item->resource);
    FUZZ_CHECK(item->count > 0, "%s", item->resource);
    FUZZ_CHECK(item->token ? item->count == item->ids.len : item->ids.len == 0, "%s",
               item->resource);
    FUZZ_CHECK(item->token || item->count <= REQUEST_COUNT_MAX, "%s", item->resource);
}

static void token_again(const struct request_item *item)
{
    char *key = request_token_key(item->resource);
    char *value = request_token_value(item->resource, &item->ids);
    struct request again = {0};
    struct text error = {0};

    FUZZ_CHECK(request_is_token_key(key), "%s", key);
    FUZZ_CHECK(request_add_token(&again, key, value, &error) == 0, "%s", error.buf);
    FUZZ_CHECK(again.len == 1, "%s", value);
    check_equal(item, &again.items[0]);
    request_fini(&again);
    free(key);
    free(value);
}

/* Prints the items that are no tokens as one annotation; NULL: there are none. */
static char *print_annotation(const struct request *request)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        abort();
    for (size_t i = 0; i < request->len; i++) {
        if (!request->items[i].token)
            fprintf(out, "%s%s=%zu", ftell(out) > 0 ? " ,\t" : "", request->items[i].resource,
                    request->items[i].count);
    }
    fclose(out);
    if (len > 0)
        return text;
    free(text);
    return NULL;
}

static void annotation_again(const struct request *request)
{
    char *value = print_annotation(request);
    struct request again = {0};
    struct text error = {0};
    size_t at = 0;

    if (!value)
        return;
    if (strlen(value) <= REQUEST_BYTES_MAX) {
        FUZZ_CHECK(request_add_annotation(&again, value, &error) == 0, "%s", error.buf);
        request_sort(&again);
        for (size_t i = 0; i < request->len; i++) {
            if (!request->items[i].token)
                check_equal(&request->items[i], &again.items[at++]);
        }
        FUZZ_CHECK(at == again.len, "%zu, %zu", at, again.len);
    }
    request_fini(&again);
    free(value);
}

static int add_next(struct request *request, struct fuzz_input *in, struct text *error)
{
    bool token = fuzz_u8(in) == 't';
    char *first = fuzz_text(in);
    char *value = token ? fuzz_text(in) : NULL;
    int r = token ? request_add_token(request, first, value, error)
                  : request_add_annotation(request, first, error);

    free(first);
    free(value);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct request request = {0};
    bool good = true;

    while (good && in.len > 0) {
        struct text error = {0};

        good = add_next(&request, &in, &error) == 0;
        if (!good)
            check_error(&error);
    }
    FUZZ_CHECK(request.len <= REQUEST_RESOURCES_MAX, "%zu", request.len);
    if (good) {
        request_sort(&request);
        for (size_t i = 0; i < request.len; i++) {
            check_item(&request.items[i]);
            FUZZ_CHECK(i == 0 ||
                           strcmp(request.items[i - 1].resource, request.items[i].resource) < 0,
                       "%s", request.items[i].resource);
            if (request.items[i].token)
                token_again(&request.items[i]);
        }
        annotation_again(&request);
    }
    request_fini(&request);
    return 0;
}
