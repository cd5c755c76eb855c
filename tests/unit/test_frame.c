/* shim/relay/frame.c: frames of ours, read by another hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "h2_script.h"
#include "shim/relay/frame.h"
#include "shim/rpc/rpc.h"

static void assert_reads(struct buffer *b, struct h2_reader *r, const char *expected)
{
    struct buffer text = {0};

    h2_transcript(r, buffer_data(b), buffer_len(b), &text);
    assert_string_equal((const char *)buffer_data(&text), expected);
    buffer_fini(&text);
    buffer_fini(b);
}

static void heads_are_read(void **state)
{
    struct frame_head h;

    (void)state;
    frame_head_read((const uint8_t *)"\x01\x02\x03\x07\xa5\xff\xff\xff\xfe", &h);
    assert_int_equal(h.length, 0x010203);
    assert_int_equal(h.type, FRAME_GOAWAY);
    assert_int_equal(h.flags, 0xa5);
    assert_int_equal(h.stream_id, 0x7ffffffe);
    assert_int_equal(frame_read_u32((const uint8_t *)"\xff\0\0\x01"), 0xff000001);
    assert_int_equal(strlen(FRAME_PREFACE), FRAME_PREFACE_BYTES);
}

static void frames_are_written(void **state)
{
    struct buffer b = {0};
    struct h2_reader r;

    (void)state;
    h2_reader_init(&r);
    assert_int_equal(frame_put_data(&b, 1, (const uint8_t *)"abc", 3, false), 0);
    assert_int_equal(frame_put_data(&b, 0x7fffffff, NULL, 0, true), 0);
    assert_int_equal(frame_put_rst_stream(&b, 3, FRAME_CANCEL), 0);
    assert_int_equal(frame_put_settings_empty(&b), 0);
    assert_int_equal(frame_put_window_update(&b, 0, 0x7fffffff), 0);
    assert_int_equal(frame_put_goaway(&b, 9, FRAME_ENHANCE_YOUR_CALM), 0);
    assert_reads(&b, &r,
                 "DATA 1 3 abc\nDATA 2147483647 0 END\nRST 3 8\nSETTINGS\n"
                 "WINDOW 0 +2147483647\nGOAWAY 9 11\n");
    h2_reader_fini(&r);
}

static void a_status_reads_as_headers(void **state)
{
    struct buffer b = {0};
    struct h2_reader r;

    (void)state;
    h2_reader_init(&r);
    assert_int_equal(frame_put_status(&b, 1, 14, "50% \xc3\xbc\n", true, -1), 0);
    assert_int_equal(frame_put_status(&b, 3, 0, "", false, -1), 0);
    assert_reads(&b, &r,
                 "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=14 "
                 "grpc-message=50%25 %C3%BC%0A\nHEADERS 3 END grpc-status=0 grpc-message=\n");
    assert_int_equal(nghttp2_hd_inflate_get_num_table_entries(r.inflater), 61); /* static */
    h2_reader_fini(&r);
}

/* Every length of a text and of an integer's prefix, up to the cut. */
static void a_status_of_any_length(void **state)
{
    char text[2 * RPC_STATUS_TEXT_BYTES_MAX + 1];
    struct h2_reader r;

    (void)state;
    h2_reader_init(&r);
    for (size_t n = 0; n < sizeof text; n += n < 300 ? 1 : 97) {
        struct buffer b = {0};
        struct h2_seen f;
        size_t kept = n < RPC_STATUS_TEXT_BYTES_MAX ? n : RPC_STATUS_TEXT_BYTES_MAX;

        for (int wide = 0; wide <= 1; wide++) {
            memset(text, wide ? '%' : 'x', n);
            text[n] = '\0';
            assert_int_equal(frame_put_status(&b, 1, 8, text, true, -1), 0);
            r.bytes = buffer_data(&b);
            r.len = buffer_len(&b);
            assert_true(h2_read(&r, &f));
            assert_true(f.len <= 16384);
            assert_int_equal(buffer_len(&r.fields),
                             strlen(" :status=200 content-type=application/grpc grpc-status=8"
                                    " grpc-message=") +
                                 kept * (wide ? 3 : 1));
            buffer_fini(&b);
        }
    }
    h2_reader_fini(&r);
}

static void a_status_says_the_table_size(void **state)
{
    static const uint32_t sizes[] = {0, 30, 31, 32, 158, 159, 4095, 4096, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buffer b = {0};
        struct h2_reader r;

        h2_reader_init(&r);
        assert_int_equal(nghttp2_hd_inflate_change_table_size(r.inflater, sizes[i]), 0);
        assert_int_equal(frame_put_status(&b, 1, 14, "x", true, sizes[i]), 0);
        assert_reads(&b, &r,
                     "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=14 "
                     "grpc-message=x\n");
        assert_int_equal(nghttp2_hd_inflate_get_max_dynamic_table_size(r.inflater), sizes[i]);
        h2_reader_fini(&r);
    }
}

static void without_memory_nothing_is_put(void **state)
{
    struct buffer b = {0};

    (void)state;
    alloc_fail_at(1);
    alloc_fail_enable(true);
    assert_int_equal(frame_put_goaway(&b, 1, 0), -ENOMEM);
    alloc_fail_at(1);
    assert_int_equal(frame_put_status(&b, 1, 1, "text", true, 0), -ENOMEM);
    alloc_fail_enable(false);
    assert_int_equal(buffer_len(&b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_read),
        cmocka_unit_test(frames_are_written),
        cmocka_unit_test(a_status_reads_as_headers),
        cmocka_unit_test(a_status_of_any_length),
        cmocka_unit_test(a_status_says_the_table_size),
        cmocka_unit_test(without_memory_nothing_is_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
