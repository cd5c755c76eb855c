/* shim/relay/header_listener.c: what a listener learns of blocks cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "h2_script.h"
#include "shim/relay/frame.h"
#include "shim/relay/header_listener.h"
#include "shim/relay/limits.h"

/* A block without its frame head. */
static void put_block(struct h2_writer *w, struct buffer *out, const char *const *fields)
{
    h2_headers(w, out, 1, 0, -1, 0, fields);
    buffer_consume(out, FRAME_HEAD_BYTES);
}

static void feed(struct header_listener *l, const struct buffer *b, size_t cut)
{
    const uint8_t *p = buffer_data(b);
    size_t len = buffer_len(b);

    for (size_t n; len > 0; p += n, len -= n) {
        n = cut < len ? cut : len;
        assert_int_equal(header_listener_feed(l, p, n, false), 0);
    }
    assert_int_equal(header_listener_feed(l, NULL, 0, true), 0);
}

static void fields_are_learnt_at_any_cut(void **state)
{
    const char *const request[] = {":path",
                                   "/runtime.v1.RuntimeService/CreateContainer",
                                   "grpc-encoding",
                                   "gzip",
                                   "grpc-timeout",
                                   "2S",
                                   "x",
                                   "y",
                                   NULL};
    const char *const bare[] = {":path", "/runtime.v1.RuntimeService/Status", NULL};
    const char *const trailers[] = {"grpc-status", "14", "grpc-timeout", "soon", NULL};

    (void)state;
    for (size_t cut = 1; cut < 80; cut++) {
        struct header_listener *l = header_listener_new();
        const struct header_fields *f = header_listener_fields(l);
        struct h2_writer w;
        struct buffer b = {0};

        h2_writer_init(&w);
        assert_int_equal(f->grpc_status, -1);
        for (int again = 0; again < 3; again++) { /* later from the dynamic table */
            put_block(&w, &b, request);
            feed(l, &b, cut);
            assert_int_equal(f->method, CRI_CREATE_CONTAINER);
            assert_int_equal(f->encoding, MESSAGE_GZIP);
            assert_int_equal(f->timeout_ms, 2000);
            assert_int_equal(f->grpc_status, -1);
            buffer_fini(&b);
        }
        put_block(&w, &b, bare);
        feed(l, &b, cut);
        assert_int_equal(f->method, CRI_OTHER);
        assert_int_equal(f->encoding, MESSAGE_IDENTITY);
        assert_true(f->timeout_ms == UINT64_MAX);
        buffer_fini(&b);
        put_block(&w, &b, trailers);
        feed(l, &b, cut);
        assert_int_equal(f->grpc_status, 14);
        assert_true(f->timeout_ms == UINT64_MAX);
        buffer_fini(&b);
        h2_writer_fini(&w);
        header_listener_free(l);
    }
}

static void an_error_s_text_is_kept_until_the_next_block(void **state)
{
    static char long_text[RELAY_STATUS_TEXT_BYTES_MAX + 100];
    const char *const refused[] = {"grpc-status", "2", "grpc-message", "no such %25 device", NULL};
    const char *const fine[] = {"grpc-status", "0", "grpc-message", "", NULL};
    const char *const cut_off[] = {"grpc-status", "2", "grpc-message", long_text, NULL};

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t cut = 1; cut < 40; cut++) {
        struct header_listener *l = header_listener_new();
        struct h2_writer w;
        struct buffer b = {0};

        h2_writer_init(&w);
        for (int again = 0; again < 3; again++) {
            put_block(&w, &b, refused);
            feed(l, &b, cut);
            assert_string_equal(header_listener_message(l), "no such %25 device");
            buffer_fini(&b);
            put_block(&w, &b, fine);
            feed(l, &b, cut);
            assert_null(header_listener_message(l));
            buffer_fini(&b);
        }
        put_block(&w, &b, cut_off);
        feed(l, &b, 4000);
        assert_int_equal(strlen(header_listener_message(l)), RELAY_STATUS_TEXT_BYTES_MAX);
        buffer_fini(&b);
        h2_writer_fini(&w);
        header_listener_free(l);
    }
}

/* A block that leaves the table as it is would be known by its bytes the next time, and its text
 * not. */
static void one_with_a_text_is_read_each_time(void **state)
{
    static const uint8_t refused[] = "\x00\x0cgrpc-message\x02no\x00\x0bgrpc-status\x01\x32";
    static const uint8_t fine[] = "\x00\x0cgrpc-message\x00\x00\x0bgrpc-status\x01\x30";
    struct header_listener *l = header_listener_new();

    (void)state;
    for (int again = 0; again < 3; again++) {
        assert_int_equal(header_listener_feed(l, refused, sizeof refused - 1, false), 0);
        assert_int_equal(header_listener_feed(l, NULL, 0, true), 0);
        assert_int_equal(header_listener_fields(l)->grpc_status, 2);
        assert_string_equal(header_listener_message(l), "no");
        assert_false(header_listener_recall(l, refused, sizeof refused - 1));
        assert_int_equal(header_listener_feed(l, fine, sizeof fine - 1, false), 0);
        assert_int_equal(header_listener_feed(l, NULL, 0, true), 0);
        assert_null(header_listener_message(l));
        assert_true(header_listener_recall(l, fine, sizeof fine - 1));
    }
    header_listener_free(l);
}

static void table_sizes_are_followed(void **state)
{
    const char *const fields[] = {"x-one",       "first value", "x-two", "second value",
                                  "grpc-status", "5",           NULL};
    struct header_listener *l = header_listener_new();
    struct h2_writer w;
    struct buffer b = {0};

    (void)state;
    h2_writer_init(&w);
    for (uint32_t size = 0; size < 5000; size = size * 3 + 40) {
        assert_int_equal(header_listener_table_size(l, size), 0);
        assert_int_equal(nghttp2_hd_deflate_change_table_size(w.deflater, size), 0);
        for (int i = 0; i < 2; i++) {
            put_block(&w, &b, fields);
            feed(l, &b, 3);
            assert_int_equal(header_listener_fields(l)->grpc_status, 5);
            buffer_fini(&b);
        }
    }
    h2_writer_fini(&w);
    header_listener_free(l);
}

/* However large a table the two ends agree on. */
static void a_table_without_end_is_told(void **state)
{
    static const uint8_t update[] = {0x3f, 0xe1, 0xff, 0xff, 0x1f};          /* to 64 MiB */
    static const uint8_t field[60000] = {0x40, 1, 'x', 0x7f, 0xde, 0xd2, 3}; /* 59,869 of value */
    struct header_listener *l = header_listener_new();
    int r = header_listener_table_size(l, 64u << 20);
    size_t blocks = 0;

    (void)state;
    assert_int_equal(r, 0);
    assert_int_equal(header_listener_feed(l, update, sizeof update, true), 0);
    for (; r == 0 && blocks < 100; blocks++)
        r = header_listener_feed(l, field, 7 + 59869, true);
    assert_int_equal(r, -E2BIG);
    assert_int_equal(blocks, RELAY_HEADER_TABLE_BYTES_MAX / (59869 + 33) + 1);
    header_listener_free(l);
}

static void garbage_is_told(void **state)
{
    static const char *const blocks[] = {
        "\x80",                         /* index 0 */
        "\xff\xff\xff\xff\xff\x7f",     /* an index beyond any table */
        "\x3f\xff\xff\x7f",             /* a table larger than agreed */
        "\x40\x85\xff\xff\xff\xff\xff", /* Huffman's end of string */
    };

    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct header_listener *l = header_listener_new();

        assert_int_equal(
            header_listener_feed(l, (const uint8_t *)blocks[i], strlen(blocks[i]), true), -EBADMSG);
        header_listener_free(l);
    }
    header_listener_free(NULL);
}

static void a_block_must_end(void **state)
{
    struct header_listener *l = header_listener_new();

    (void)state;
    assert_int_equal(header_listener_feed(l,
                                          (const uint8_t *)"\x40\x05"
                                                           "ab",
                                          4, false),
                     0);
    assert_int_equal(header_listener_feed(l, NULL, 0, true), -EBADMSG);
    header_listener_free(l);
}

/* One byte on the wire for a field of 3,000: the bound is on what it decodes to. */
static void a_list_without_end_is_told(void **state)
{
    struct header_listener *l = header_listener_new();
    struct h2_writer w;
    struct buffer b = {0};
    char value[2900];
    const char *const fields[] = {"x-bomb", value, NULL};
    uint8_t again = 0x80 | 62; /* the newest entry of the dynamic table */
    int r = 0;

    (void)state;
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    h2_writer_init(&w);
    put_block(&w, &b, fields);
    assert_int_equal(header_listener_feed(l, buffer_data(&b), buffer_len(&b), false), 0);
    for (size_t i = 0; i < RELAY_HEADER_LIST_BYTES_MAX / 2000 && r == 0; i++)
        r = header_listener_feed(l, &again, 1, false);
    assert_int_equal(r, -E2BIG);
    buffer_fini(&b);
    h2_writer_fini(&w);
    header_listener_free(l);
}

/* Blocks that come again and again, in between others that move the dynamic table. */
/* What another process goes on with. */
static struct header_listener *frozen_and_thawed(struct header_listener *l)
{
    struct buffer frozen = {0};
    struct frozen_writer w = {.out = &frozen};
    struct frozen_reader r;

    header_listener_freeze(l, &w);
    header_listener_free(l);
    r = (struct frozen_reader){.at = buffer_data(&frozen), .left = buffer_len(&frozen)};
    l = header_listener_thaw(&r);
    assert_non_null(l);
    assert_true(frozen_at_end(&r));
    buffer_fini(&frozen);
    return l;
}

/* SETTINGS_HEADER_TABLE_SIZE has 32 bits, and an encoder may use all that it was allowed. */
static void the_largest_table_is_thawed(void **state)
{
    static const uint8_t update[] = {0x3f, 0xe0, 0xff, 0xff, 0xff, 0x0f}; /* to 2^32 - 1 */
    struct header_listener *l = header_listener_new();

    (void)state;
    assert_int_equal(header_listener_table_size(l, UINT32_MAX), 0);
    assert_int_equal(header_listener_feed(l, update, sizeof update, true), 0);
    l = frozen_and_thawed(l);
    assert_int_equal(header_listener_feed(l, update, sizeof update, true), 0);
    header_listener_free(l);
}

static void any_sequence_of_blocks_is_followed(void **state)
{
    static const char *const paths[] = {"/runtime.v1.RuntimeService/CreateContainer",
                                        "/runtime.v1.RuntimeService/StopPodSandbox", "/"};
    static const enum cri_method methods[] = {CRI_CREATE_CONTAINER, CRI_STOP_POD_SANDBOX,
                                              CRI_OTHER};
    static const char *const statuses[] = {"0", "5", "14"};
    static const int codes[] = {0, 5, 14};

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct h2_random r = {seed};
        struct header_listener *l = header_listener_new();
        const struct header_fields *f = header_listener_fields(l);
        struct h2_writer w;

        h2_writer_init(&w);
        for (int i = 0; i < 200; i++) {
            uint32_t path = h2_random(&r, 3), status = h2_random(&r, 3);
            char text[8] = "same";
            const char *const fields[] = {":path",   paths[path], "grpc-status", statuses[status],
                                          "x-other", text,        NULL};
            struct buffer b = {0};

            if (h2_random(&r, 20) == 0)
                snprintf(text, sizeof text, "%u", h2_random(&r, 50));
            if (h2_random(&r, 40) == 0) {
                uint32_t size = h2_random(&r, 300);

                assert_int_equal(header_listener_table_size(l, size), 0);
                assert_int_equal(nghttp2_hd_deflate_change_table_size(w.deflater, size), 0);
            }
            if (h2_random(&r, 10) == 0) {
                l = frozen_and_thawed(l);
                f = header_listener_fields(l);
            }
            put_block(&w, &b, fields);
            feed(l, &b, h2_random(&r, 2) ? 1 + h2_random(&r, 60) : SIZE_MAX);
            if (f->method != methods[path] || f->grpc_status != codes[status])
                fail_msg("seed %u, block %d", (unsigned)seed, i);
            buffer_fini(&b);
        }
        h2_writer_fini(&w);
        header_listener_free(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_learnt_at_any_cut),
        cmocka_unit_test(an_error_s_text_is_kept_until_the_next_block),
        cmocka_unit_test(one_with_a_text_is_read_each_time),
        cmocka_unit_test(table_sizes_are_followed),
        cmocka_unit_test(a_table_without_end_is_told),
        cmocka_unit_test(garbage_is_told),
        cmocka_unit_test(a_block_must_end),
        cmocka_unit_test(a_list_without_end_is_told),
        cmocka_unit_test(the_largest_table_is_thawed),
        cmocka_unit_test(any_sequence_of_blocks_is_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
