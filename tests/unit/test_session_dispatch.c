/*
 * shim/relay/session/dispatch.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

SCENARIO(a_client_that_pushes)
{
    h2_frame(&w->out, NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4);
    feed_bad(w, CLIENT, "a client must not push");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

SCENARIO(a_runtime_that_pushes)
{
    h2_frame(&w->out, NGHTTP2_PUSH_PROMISE, 4, 1, "\0\0\0\2", 4);
    feed_bad(w, RUNTIME, "the runtime pushes");
    saw(w, CLIENT, "");
}

SCENARIO(padding_longer_than_its_frame)
{
    request(w, 1, CREATE);
    h2_frame(&w->out, NGHTTP2_DATA, H2_PADDED, 1, "\4abc", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(padding_longer_than_its_header_block)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PADDED | 4, 1, "\4abc", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 1\n");
}

SCENARIO(headers_too_short_for_their_priority)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PRIORITY | 4, 1, "\0\0\0\0", 4);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(headers_too_short_for_their_padding)
{
    h2_frame(&w->out, NGHTTP2_HEADERS, H2_PADDED | 4, 1, "", 0);
    feed_bad(w, CLIENT, "a frame shorter than what it says");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(data_and_headers_without_a_stream)
{
    h2_headers(&w->writers[CLIENT], &w->out, 0, 0, -1, 0,
               (const char *[]){":path", "/runtime.v1.RuntimeService/CreateContainer", NULL});
    feed_bad(w, CLIENT, "DATA or HEADERS without a stream");
    saw(w, CLIENT, "GOAWAY 0 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_pushes),
        cmocka_unit_test(a_runtime_that_pushes),
        cmocka_unit_test(padding_longer_than_its_frame),
        cmocka_unit_test(padding_longer_than_its_header_block),
        cmocka_unit_test(headers_too_short_for_their_priority),
        cmocka_unit_test(headers_too_short_for_their_padding),
        cmocka_unit_test(data_and_headers_without_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
