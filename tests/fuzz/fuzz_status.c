/*
 * gRPC's status fields and deadlines, as a peer wrote them and as we write them.
 *
 * Input: the field's bytes. Whatever they are, what is read has its maximum, is text, and is the
 * same when it is written and read once more.
 */
#include <string.h>

#include "shim/rpc/status.h"
#include "tests/fuzz/fuzz.h"

/* A copy with nothing behind it, so that a byte too many is seen. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void check_encoded(const char *encoded, size_t len)
{
    FUZZ_CHECK(strlen(encoded) == len && len < STATUS_ENCODED_BYTES_MAX, "%zu", len);
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(encoded[i] >= ' ' && encoded[i] <= '~', "byte %zu: %02x", i,
                   (unsigned char)encoded[i]);
}

static void check_message(const uint8_t *value, size_t len)
{
    char text[STATUS_TEXT_BYTES_MAX], again[STATUS_TEXT_BYTES_MAX], cut[STATUS_TEXT_BYTES_MAX];
    char encoded[STATUS_ENCODED_BYTES_MAX];
    size_t encoded_len;

    status_decode(value, len, text);
    FUZZ_CHECK(strnlen(text, sizeof text) <= RPC_STATUS_TEXT_BYTES_MAX, "no end");
    FUZZ_CHECK(strlen(text) <= len, "%zu of %zu bytes", strlen(text), len);
    status_copy(text, cut);
    FUZZ_CHECK(strcmp(text, cut) == 0, "cut twice");
    encoded_len = status_encode(text, encoded);
    check_encoded(encoded, encoded_len);
    status_decode((const uint8_t *)encoded, encoded_len, again);
    FUZZ_CHECK(strcmp(text, again) == 0, "\"%s\", \"%s\"", text, again);
}

static bool continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* What is cut off begins with a character's first byte; else there is none near, and it is no
 * UTF-8. */
static void check_cut(const char *text, size_t kept)
{
    bool character = false;

    for (size_t back = 1; back <= 3 && back <= kept; back++)
        character = character || !continues(text[kept - back]);
    FUZZ_CHECK(!continues(text[kept]) || !character, "cut at %zu within a character", kept);
}

/* Text of ours may be longer than what is kept, and any bytes but NUL. */
static void check_long_text(const uint8_t *value, size_t len)
{
    size_t times = len > 0 ? 2 * RPC_STATUS_TEXT_BYTES_MAX / len + 2 : 0;
    char *text = malloc(times * len + 1);
    char encoded[STATUS_ENCODED_BYTES_MAX], kept[STATUS_TEXT_BYTES_MAX];
    char again[STATUS_TEXT_BYTES_MAX];
    size_t encoded_len;

    if (!text)
        abort();
    for (size_t i = 0; i < times * len; i++)
        text[i] = value[i % len] ? (char)value[i % len] : '?';
    text[times * len] = '\0';
    encoded_len = status_encode(text, encoded);
    check_encoded(encoded, encoded_len);
    status_copy(text, kept);
    FUZZ_CHECK(strncmp(text, kept, strlen(kept)) == 0, "not its beginning");
    check_cut(text, strlen(kept));
    status_decode((const uint8_t *)encoded, encoded_len, again);
    FUZZ_CHECK(strcmp(kept, again) == 0, "\"%s\", \"%s\"", kept, again);
    free(text);
}

static void check_timeout(const uint8_t *value, size_t len)
{
    char text[STATUS_TIMEOUT_BYTES_MAX];
    uint64_t timeout_ms, again_ms;

    if (!status_timeout_parse(value, len, &timeout_ms))
        return;
    FUZZ_CHECK(timeout_ms <= STATUS_TIMEOUT_MS_MAX, "%llu", (unsigned long long)timeout_ms);
    status_timeout_format(timeout_ms, text);
    FUZZ_CHECK(strnlen(text, sizeof text) < sizeof text, "no end");
    FUZZ_CHECK(status_timeout_parse((const uint8_t *)text, strlen(text), &again_ms), "%s", text);
    FUZZ_CHECK(again_ms >= timeout_ms, "%s is less", text);
    /* Eight digits: what is rounded up stays within a unit of it. */
    FUZZ_CHECK(again_ms - timeout_ms <= timeout_ms / 1000 + 1, "%s is far more", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *value = copy_of(data, size);
    int code = status_code_parse(value, size);

    FUZZ_CHECK(code >= RPC_OK && code <= RPC_UNAUTHENTICATED, "%d", code);
    FUZZ_CHECK(rpc_code_name(code) && *rpc_code_name(code), "%d", code);
    check_message(value, size);
    check_long_text(value, size);
    check_timeout(value, size);
    free(value);
    return 0;
}
