/* shim/rpc/status.c: status and deadline as header fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "shim/rpc/status.h"

static const char *encode(const char *text)
{
    static char out[STATUS_ENCODED_BYTES_MAX];

    size_t len = status_encode(text, out);

    assert_int_equal(len, strlen(out));
    return out;
}

static const char *decode(const char *text)
{
    static char out[STATUS_TEXT_BYTES_MAX];

    status_decode((const uint8_t *)text, strlen(text), out);
    return out;
}

static void names_every_code(void **state)
{
    (void)state;
    assert_string_equal(rpc_code_name(RPC_OK), "OK");
    assert_string_equal(rpc_code_name(RPC_UNAVAILABLE), "UNAVAILABLE");
    for (int code = RPC_OK; code <= RPC_UNAUTHENTICATED; code++) {
        assert_non_null(rpc_code_name(code));
        assert_int_equal(strcmp(rpc_code_name(code), "UNKNOWN") == 0, code == RPC_UNKNOWN);
    }
    assert_string_equal(rpc_code_name(17), "UNKNOWN");
    assert_string_equal(rpc_code_name(-1), "UNKNOWN");
}

static void percent_encodes_what_is_not_printable(void **state)
{
    (void)state;
    assert_string_equal(encode(""), "");
    assert_string_equal(encode("plain text ~"), "plain text ~");
    assert_string_equal(encode("100%"), "100%25");
    assert_string_equal(encode("a\nb\x7f\xc3\xa4"), "a%0Ab%7F%C3%A4");
}

static void decodes_what_it_encodes(void **state)
{
    char all[256], back[STATUS_TEXT_BYTES_MAX];

    (void)state;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    status_decode((const uint8_t *)encode(all), strlen(encode(all)), back);
    assert_string_equal(back, all);
}

static void decodes_broken_escapes_as_they_are(void **state)
{
    (void)state;
    assert_string_equal(decode("%"), "%");
    assert_string_equal(decode("%4"), "%4");
    assert_string_equal(decode("%zz%41%4z%c3%A4"), "%zzA%4z\xc3\xa4");
    assert_string_equal(decode("a%00b"), "a?b");
    assert_string_equal(decode("\xff raw"), "\xff raw");
}

static void cuts_long_texts_before_a_character(void **state)
{
    char text[RPC_STATUS_TEXT_BYTES_MAX + 8], out[STATUS_TEXT_BYTES_MAX];

    (void)state;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    status_copy(text, out);
    assert_int_equal(strlen(out), RPC_STATUS_TEXT_BYTES_MAX);
    /* A three-byte character that ends at, or runs over, the limit. */
    for (size_t over = 0; over <= 3; over++) {
        memset(text, 'a', sizeof text - 1);
        memcpy(text + RPC_STATUS_TEXT_BYTES_MAX - 3 + over, "\xe2\x82\xac", 3);
        status_copy(text, out);
        assert_int_equal(strlen(out),
                         RPC_STATUS_TEXT_BYTES_MAX - (over == 0 || over == 3 ? 0 : 3 - over));
        assert_string_equal(decode(text), out);
    }
    /* Not UTF-8 at all. */
    memset(text, 0x80, sizeof text - 1);
    status_copy(text, out);
    assert_int_equal(strlen(out), RPC_STATUS_TEXT_BYTES_MAX);
    assert_int_equal(strlen(encode(text)), 3 * RPC_STATUS_TEXT_BYTES_MAX);
}

static int code(const char *text)
{
    return status_code_parse((const uint8_t *)text, strlen(text));
}

static void parses_codes(void **state)
{
    (void)state;
    assert_int_equal(code("0"), RPC_OK);
    assert_int_equal(code("14"), RPC_UNAVAILABLE);
    assert_int_equal(code("16"), RPC_UNAUTHENTICATED);
    assert_int_equal(code("17"), RPC_UNKNOWN);
    assert_int_equal(code(""), RPC_UNKNOWN);
    assert_int_equal(code("-1"), RPC_UNKNOWN);
    assert_int_equal(code("1x"), RPC_UNKNOWN);
    assert_int_equal(code("000"), RPC_UNKNOWN);
}

static const char *format_timeout(uint64_t ms)
{
    static char out[STATUS_TIMEOUT_BYTES_MAX];

    status_timeout_format(ms, out);
    return out;
}

static uint64_t timeout(const char *text)
{
    uint64_t ms = 0;

    assert_true(status_timeout_parse((const uint8_t *)text, strlen(text), &ms));
    return ms;
}

static void formats_timeouts_in_eight_digits(void **state)
{
    (void)state;
    assert_string_equal(format_timeout(1), "1m");
    assert_string_equal(format_timeout(99999999), "99999999m");
    assert_string_equal(format_timeout(100000000), "100000S");
    assert_string_equal(format_timeout(100000001), "100001S");
    assert_string_equal(format_timeout(UINT64_C(99999999) * 1000 + 1), "1666667M");
    assert_string_equal(format_timeout(UINT64_C(99999999) * 60000 + 1), "1666667H");
    assert_string_equal(format_timeout(UINT64_MAX), "99999999H");
    for (uint64_t ms = 1; ms < UINT64_C(1) << 45; ms = ms * 7 + 3)
        assert_true(timeout(format_timeout(ms)) >= ms);
}

static void parses_timeouts(void **state)
{
    uint64_t ms = 7;

    (void)state;
    assert_int_equal(timeout("0n"), 0);
    assert_int_equal(timeout("1n"), 1);
    assert_int_equal(timeout("1000001n"), 2);
    assert_int_equal(timeout("1500u"), 2);
    assert_int_equal(timeout("25m"), 25);
    assert_int_equal(timeout("25S"), 25000);
    assert_int_equal(timeout("2M"), 120000);
    assert_int_equal(timeout("1H"), 3600000);
    assert_int_equal(timeout("99999999H"), STATUS_TIMEOUT_MS_MAX);
    assert_false(status_timeout_parse((const uint8_t *)"", 0, &ms));
    assert_false(status_timeout_parse((const uint8_t *)"S", 1, &ms));
    assert_false(status_timeout_parse((const uint8_t *)"5", 1, &ms));
    assert_false(status_timeout_parse((const uint8_t *)"5s", 2, &ms));
    assert_false(status_timeout_parse((const uint8_t *)"-5S", 3, &ms));
    assert_false(status_timeout_parse((const uint8_t *)"123456789S", 10, &ms));
    assert_int_equal(ms, 7);
}

static void maps_http_statuses(void **state)
{
    (void)state;
    assert_int_equal(status_from_http(400), RPC_INTERNAL);
    assert_int_equal(status_from_http(401), RPC_UNAUTHENTICATED);
    assert_int_equal(status_from_http(403), RPC_PERMISSION_DENIED);
    assert_int_equal(status_from_http(404), RPC_UNIMPLEMENTED);
    assert_int_equal(status_from_http(429), RPC_UNAVAILABLE);
    assert_int_equal(status_from_http(502), RPC_UNAVAILABLE);
    assert_int_equal(status_from_http(503), RPC_UNAVAILABLE);
    assert_int_equal(status_from_http(504), RPC_UNAVAILABLE);
    assert_int_equal(status_from_http(200), RPC_UNKNOWN);
    assert_int_equal(status_from_http(0), RPC_UNKNOWN);
}

static void maps_resets(void **state)
{
    (void)state;
    assert_int_equal(status_from_h2(NGHTTP2_NO_ERROR), RPC_INTERNAL);
    assert_int_equal(status_from_h2(NGHTTP2_PROTOCOL_ERROR), RPC_INTERNAL);
    assert_int_equal(status_from_h2(NGHTTP2_COMPRESSION_ERROR), RPC_INTERNAL);
    assert_int_equal(status_from_h2(NGHTTP2_STREAM_CLOSED), RPC_UNKNOWN);
    assert_int_equal(status_from_h2(NGHTTP2_REFUSED_STREAM), RPC_UNAVAILABLE);
    assert_int_equal(status_from_h2(NGHTTP2_CANCEL), RPC_CANCELLED);
    assert_int_equal(status_from_h2(NGHTTP2_ENHANCE_YOUR_CALM), RPC_RESOURCE_EXHAUSTED);
    assert_int_equal(status_from_h2(NGHTTP2_INADEQUATE_SECURITY), RPC_PERMISSION_DENIED);
    assert_int_equal(status_from_h2(0x12345678), RPC_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_every_code),
        cmocka_unit_test(percent_encodes_what_is_not_printable),
        cmocka_unit_test(decodes_what_it_encodes),
        cmocka_unit_test(decodes_broken_escapes_as_they_are),
        cmocka_unit_test(cuts_long_texts_before_a_character),
        cmocka_unit_test(parses_codes),
        cmocka_unit_test(formats_timeouts_in_eight_digits),
        cmocka_unit_test(parses_timeouts),
        cmocka_unit_test(maps_http_statuses),
        cmocka_unit_test(maps_resets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
