/* shim/relay/long_strings.c, in front of a listener's decoder: header fields that are longer than
 * that takes, cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "shim/relay/buffer.h"
#include "shim/relay/header_listener.h"
#include "shim/relay/limits.h"
#include "shim/relay/long_strings.h"

#define LONG_BYTES (LONG_STRINGS_BYTES + 1)

static void put(struct buffer *b, const void *bytes, size_t len)
{
    assert_int_equal(buffer_put(b, bytes, len), 0);
}
#define PUT(b, text) put(b, text, sizeof(text) - 1)

/* `huffman`: 0, or the bit that says so. */
static void put_string(struct buffer *b, uint8_t huffman, size_t len)
{
    uint8_t byte = huffman | 0x7f;
    size_t rest = len - 127;

    put(b, &byte, 1);
    for (; rest >= 0x80; rest >>= 7) {
        byte = (uint8_t)(rest | 0x80);
        put(b, &byte, 1);
    }
    byte = (uint8_t)rest;
    put(b, &byte, 1);
    for (size_t i = 0; i < len; i++)
        put(b, "\x87", 1);
}

/* A block in pieces of `cut`, with its end. */
static int feed(struct header_listener *l, const struct buffer *b, size_t cut)
{
    const uint8_t *at = buffer_data(b);
    size_t len = buffer_len(b);
    int r = 0;

    for (size_t n; r == 0 && len > 0; at += n, len -= n) {
        n = cut < len ? cut : len;
        r = header_listener_feed(l, at, n, false);
    }
    return r < 0 ? r : header_listener_feed(l, (const uint8_t *)"", 0, true);
}

/* The newest entry of the table alone. */
static int feed_newest(struct header_listener *l)
{
    return header_listener_feed(l, (const uint8_t *)"\xbe", 1, true);
}

static const size_t CUTS[] = {1, 2, 3, 5, 1000, LONG_BYTES, SIZE_MAX};
#define CUTS_LEN (sizeof CUTS / sizeof *CUTS)

/* Its table has one entry. */
static struct header_listener *listener_with_entry(void)
{
    struct header_listener *l = header_listener_new();

    assert_int_equal(header_listener_feed(l,
                                          (const uint8_t *)"\x40\x0bgrpc-status\x01"
                                                           "5",
                                          15, true),
                     0);
    return l;
}

static void what_is_around_a_long_string_is_read(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 4; form++) {
        for (size_t i = 0; i < CUTS_LEN; i++) {
            struct header_listener *l = listener_with_entry();
            struct buffer b = {0};

            PUT(&b, "\x04\x2a/runtime.v1.RuntimeService/CreateContainer");
            put(&b, form & 1 ? "\x10" : "\x00", 1); /* never indexed, and not indexed */
            if (form & 2)
                put_string(&b, 0, LONG_BYTES);
            else
                PUT(&b, "\x05x-big");
            put_string(&b, form & 1 ? 0x80 : 0, LONG_BYTES + i);
            PUT(&b, "\x00\x0cgrpc-timeout\x02"
                    "2S\xbe");
            assert_int_equal(feed(l, &b, CUTS[i]), 0);
            assert_int_equal(header_listener_fields(l)->method, CRI_CREATE_CONTAINER);
            assert_int_equal(header_listener_fields(l)->timeout_ms, 2000);
            assert_int_equal(header_listener_fields(l)->grpc_status, 5);
            assert_int_equal(feed_newest(l), 0); /* the table is as it was */
            assert_int_equal(header_listener_fields(l)->grpc_status, 5);
            header_listener_free(l);
            buffer_fini(&b);
        }
    }
}

/* RFC 7541 §4.4. */
static void one_that_is_too_large_for_the_table_leaves_it_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS_LEN; i++) {
        struct header_listener *l = listener_with_entry();
        struct buffer b = {0};

        PUT(&b, "\x40\x05x-big");
        put_string(&b, 0x80, LONG_BYTES);
        PUT(&b, "\x40\x0bgrpc-status\x01"
                "7");
        assert_int_equal(feed(l, &b, CUTS[i]), 0);
        assert_int_equal(feed_newest(l), 0);
        assert_int_equal(header_listener_fields(l)->grpc_status, 7);
        assert_int_equal(header_listener_feed(l, (const uint8_t *)"\xbf", 1, true), -EBADMSG);
        header_listener_free(l);
        buffer_fini(&b);
    }
}

static void one_that_may_fit_the_table_is_told(void **state)
{
    struct header_listener *l = header_listener_new();
    struct buffer b = {0};

    (void)state;
    assert_int_equal(header_listener_table_size(l, LONG_STRINGS_STAND_IN_BYTES + 1), 0);
    PUT(&b, "\x00\x05x-big");
    put_string(&b, 0, LONG_BYTES);
    assert_int_equal(feed(l, &b, 1000), 0);
    buffer_fini(&b);
    PUT(&b, "\x40\x05x-big");
    put_string(&b, 0, LONG_BYTES);
    assert_int_equal(feed(l, &b, 1000), -EBADMSG);
    buffer_fini(&b);
    header_listener_free(l);
}

static void the_longest_that_is_decoded_is(void **state)
{
    struct header_listener *l = header_listener_new();
    struct buffer b = {0};

    (void)state;
    assert_int_equal(header_listener_table_size(l, LONG_STRINGS_BYTES + 100), 0);
    PUT(&b, "\x3f\xc5\x80\x04"); /* the encoder takes all of that for its table */
    PUT(&b, "\x40\x0cgrpc-message");
    put_string(&b, 0, LONG_STRINGS_BYTES);
    assert_int_equal(feed(l, &b, 1000), 0);
    assert_int_equal(feed_newest(l), 0);
    assert_int_equal(strlen(header_listener_message(l)), RELAY_STATUS_TEXT_BYTES_MAX);
    buffer_fini(&b);
    header_listener_free(l);
}

static void a_block_does_not_end_within_a_string(void **state)
{
    struct buffer b = {0};

    (void)state;
    PUT(&b, "\x00\x05x-big");
    put_string(&b, 0, LONG_BYTES);
    for (size_t less = 1; less < LONG_BYTES + 10; less = less * 3 + 1) {
        struct header_listener *l = header_listener_new();
        struct buffer part = {0};

        put(&part, buffer_data(&b), buffer_len(&b) - less);
        assert_int_equal(feed(l, &part, 1000), -EBADMSG);
        buffer_fini(&part);
        header_listener_free(l);
    }
    buffer_fini(&b);
}

/* Neither may a length have no end. */
static void none_is_longer_than_a_block(void **state)
{
    static const uint8_t endless[] = {0, 0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    struct header_listener *l = header_listener_new();
    struct buffer b = {0};

    (void)state;
    PUT(&b, "\x00\x05x-big");
    put_string(&b, 0, RELAY_HEADER_BLOCK_BYTES_MAX + 1);
    assert_int_equal(feed(l, &b, 1000), -EBADMSG);
    buffer_fini(&b);
    header_listener_free(l);
    l = header_listener_new();
    assert_int_equal(header_listener_feed(l, endless, sizeof endless, false), -EBADMSG);
    header_listener_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_around_a_long_string_is_read),
        cmocka_unit_test(one_that_is_too_large_for_the_table_leaves_it_empty),
        cmocka_unit_test(one_that_may_fit_the_table_is_told),
        cmocka_unit_test(the_longest_that_is_decoded_is),
        cmocka_unit_test(a_block_does_not_end_within_a_string),
        cmocka_unit_test(none_is_longer_than_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
