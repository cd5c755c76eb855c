/*
 * What an API server answers to a list or a watch.
 *
 * Input: a byte that says which, then the answer's bytes. They are fed whole, byte by byte, and in
 * two pieces cut where the input says: what comes out is the same, each object is one JSON could be
 * read of, and nothing is held that is over its limit.
 */
#include <string.h>

#include "shim/agent/json_splitter.h"
#include "shim/hash.h"
#include "tests/fuzz/fuzz.h"

struct seen {
    uint64_t hash; /* of all that came, in its order */
    size_t values, heads, bytes;
    bool list;
};

static bool on_value(void *user, const char *text, size_t len, bool head)
{
    struct seen *seen = user;

    FUZZ_CHECK(len >= 2 && text[0] == '{' && text[len - 1] == '}', "%.*s", (int)len, text);
    FUZZ_CHECK(!head || seen->list, "a head of no list");
    FUZZ_CHECK(seen->heads == 0, "something behind the end");
    seen->heads += head;
    seen->values += !head;
    seen->bytes += len;
    seen->hash = hash_bytes(hash_word(seen->hash, len * 2 + head), text, len);
    return true;
}

struct result {
    struct seen seen;
    bool right, whole;
};

static void feed(const struct fuzz_input *in, bool list, size_t step, struct result *result)
{
    struct json_splitter splitter;
    size_t at = 0;

    *result = (struct result){.seen = {.hash = HASH_BEGIN, .list = list}, .right = true};
    json_splitter_init(&splitter, list ? JSON_SPLIT_LIST : JSON_SPLIT_VALUES, on_value,
                       &result->seen);
    while (at < in->len && result->right) {
        size_t len = in->len - at < step ? in->len - at : step;

        result->right = json_splitter_feed(&splitter, (const char *)in->bytes + at, len);
        at += len;
    }
    result->whole = json_splitter_whole(&splitter);
    FUZZ_CHECK(!result->whole || result->right, "whole, and failed");
    FUZZ_CHECK(result->right || *json_splitter_trouble(&splitter), "failed without a word");
    json_splitter_fini(&splitter);
}

static void check_same(const struct result *a, const struct result *b)
{
    FUZZ_CHECK(a->right == b->right && a->whole == b->whole, "%d %d, %d %d", a->right, b->right,
               a->whole, b->whole);
    FUZZ_CHECK(a->seen.hash == b->seen.hash, "%zu and %zu objects", a->seen.values, b->seen.values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct result whole, other;
    bool list = fuzz_u8(&in) & 1;
    size_t cut = fuzz_u8(&in);

    feed(&in, list, SIZE_MAX, &whole);
    FUZZ_CHECK(whole.seen.bytes <= in.len, "more than came");
    FUZZ_CHECK(!list || !whole.whole || whole.seen.heads == 1, "a list without its head");
    feed(&in, list, 1, &other);
    check_same(&whole, &other);
    feed(&in, list, cut + 1, &other);
    check_same(&whole, &other);
    return 0;
}
