/*
 * shim/relay/session/blocks.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "shim/relay/limits.h"

SCENARIO(a_frame_inside_a_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(a_continuation_of_another_stream)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 4, 3, "\x82", 1);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(a_continuation_of_nothing)
{
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 4, 1, "\x82", 1);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

SCENARIO(a_runtimes_frame_inside_a_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed_bad(w, RUNTIME, "a frame inside a header block");
}

SCENARIO(a_block_that_is_not_hpack)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x80", 1);
    feed_bad(w, CLIENT, "a header block that is not HPACK");
    saw(w, CLIENT, "GOAWAY 1 9\n");
}

SCENARIO(a_block_that_ends_too_early)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x40\x05", 2);
    feed_bad(w, CLIENT, "a header block that ends too early");
    saw(w, CLIENT, "GOAWAY 1 9\n");
}

SCENARIO(a_runtimes_block_that_is_not_hpack_passes)
{
    call(w, 1, CREATE, "a");
    forward(w, w->calls[0], NULL);
    move_on(w);
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 1, "\x80", 1);
    data(w, 1, "\0\0\0\0\1i", 6, 0);
    h2_frame(&w->out, NGHTTP2_HEADERS, 5, 1, "\x88", 1);
    feed(w, RUNTIME);
    told(w, "answered CreateContainer 0 i\nended CreateContainer\n");
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    w->read_to[CLIENT] = buffer_len(&w->to[CLIENT]);
}

SCENARIO(a_header_block_without_end)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x82", 1);
    for (size_t i = 0; i < RELAY_HEADER_BLOCK_BYTES_MAX / RELAY_HEADER_FRAME_BYTES; i++)
        h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
    feed_bad(w, CLIENT, "a header block without end");
    saw(w, CLIENT, "GOAWAY 1 11\n");
}

SCENARIO(a_runtimes_header_block_without_end)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, 0, 1, "\x88", 1);
    for (size_t i = 0; i < RELAY_HEADER_BLOCK_BYTES_MAX / RELAY_HEADER_FRAME_BYTES; i++)
        h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
    feed_bad(w, RUNTIME, "a header block of the runtime's without end");
}

/* A text of an error as a runtime makes it of what it was given, a command of megabytes. */
ONCE(a_runtimes_text_of_two_mib_passes)
{
    static const char head[] = "\x88\x00\x0bgrpc-status\x01"
                               "2\x00\x0cgrpc-message\x7f\x81\xff\x7f";
    char text[16384];

    call(w, 1, CREATE, "a");
    forward(w, w->calls[0], NULL);
    move_on(w);
    memset(text, 'x', sizeof text);
    h2_frame(&w->out, NGHTTP2_HEADERS, 1, 1, head, sizeof head - 1);
    for (size_t i = 1; i <= 128; i++)
        h2_frame(&w->out, NGHTTP2_CONTINUATION, i == 128 ? 4 : 0, 1, text, sizeof text);
    feed(w, RUNTIME);
    told(w, "answered CreateContainer 2 -\nended CreateContainer\n");
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    w->read_to[CLIENT] = buffer_len(&w->to[CLIENT]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_inside_a_header_block),
        cmocka_unit_test(a_continuation_of_another_stream),
        cmocka_unit_test(a_continuation_of_nothing),
        cmocka_unit_test(a_runtimes_frame_inside_a_header_block),
        cmocka_unit_test(a_block_that_is_not_hpack),
        cmocka_unit_test(a_block_that_ends_too_early),
        cmocka_unit_test(a_runtimes_block_that_is_not_hpack_passes),
        cmocka_unit_test(a_header_block_without_end),
        cmocka_unit_test(a_runtimes_header_block_without_end),
        cmocka_unit_test(a_runtimes_text_of_two_mib_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
