/*
 * shim/relay/session/from_client.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/relay/limits.h"

SCENARIO(a_message_is_withheld_until_it_is_whole)
{
    request(w, 1, CREATE);
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(1));
    data(w, 1, "\0\0\0", 3, 0);
    feed(w, CLIENT);
    data(w, 1, "\0\5hel", 5, 0);
    feed(w, CLIENT);
    told(w, "");
    data(w, 1, "lo", 2, H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request CreateContainer 5 hello\n");
    saw(w, RUNTIME, "");
    assert_true(w->quiet || w->calls[0]->timeout_ms == 1500);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 10 .....hello END\n");
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
    told(w, "answered CreateContainer 0 id\nended CreateContainer\n");
    calls_are(w, 0);
}

SCENARIO(the_end_may_come_in_a_frame_of_its_own)
{
    request(w, 1, CREATE);
    message(w, 1, "one", 0);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, HEAD(1) "DATA 1 8 .....one END\n");

    request(w, 3, CREATE);
    message(w, 3, "two", 0);
    feed(w, CLIENT);
    forward(w, w->calls[1], FRAGMENT);
    move_on(w);
    data(w, 3, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 3 0 END\n");
    answer(w, 3, "x");
    answer(w, 1, "y");
    calls_are(w, 0);
}

/* The held bytes move when their buffer grows, and the message with them. */
SCENARIO(bytes_behind_a_held_message_do_not_lose_it)
{
    uint8_t held[247], tail[300], sent[1 + sizeof held + sizeof tail] = "f";
    struct buffer framed = {0};

    memset(held, 'm', sizeof held);
    memset(tail, 't', sizeof tail);
    memcpy(sent + 1, held, sizeof held);
    memcpy(sent + 1 + sizeof held, tail, sizeof tail);
    h2_message(&framed, 0, held, sizeof held); /* 252 bytes; a buffer begins with 256 */
    request(w, 1, CREATE);
    data(w, 1, buffer_data(&framed), buffer_len(&framed), 0);
    feed(w, CLIENT);
    data(w, 1, tail, sizeof tail, H2_END_STREAM);
    feed(w, CLIENT);
    buffer_fini(&framed);
    if (w->calls_len > 0 && !w->quiet) {
        assert_int_equal(w->calls[0]->message_bytes, sizeof held);
        assert_memory_equal(w->calls[0]->message, held, sizeof held);
    }
    forward(w, w->calls[0], "f");
    if (!w->quiet)
        assert_non_null(
            memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), sent, sizeof sent));
    move_on(w);
}

SCENARIO(what_is_no_whole_message_passes)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\11abc", 8, H2_END_STREAM);
    request(w, 3, CREATE);
    data(w, 3, "\0\0", 2, H2_END_STREAM);
    request(w, 5, CREATE);
    data(w, 5, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME,
        HEAD(1) "DATA 1 8 .....abc END\n" HEAD(3) "DATA 3 2 .. END\n" HEAD(5) "DATA 5 0 END\n");
    h2_headers(&w->writers[CLIENT], &w->out, 7, H2_END_STREAM, -1, 0,
               (const char *[]){":path", "/runtime.v1.RuntimeService/CreateContainer", NULL});
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 7 END :path=/runtime.v1.RuntimeService/CreateContainer\n");
    told(w, "");
    calls_are(w, 3);
}

SCENARIO(an_empty_message_is_a_message)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "");
    told(w, "request CreateContainer 0 \n");
    saw(w, RUNTIME, HEAD(1) "DATA 1 15 .....<fragment> END\n");
}

SCENARIO(trailers_send_the_call_on_without_its_message)
{
    static const char *const trailers[] = {"x-end", "1", NULL};

    request(w, 1, CREATE);
    message(w, 1, "held", 0);
    request(w, 3, CREATE);
    data(w, 3, "\0\0\0\0\7half", 9, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_headers(&w->writers[CLIENT], &w->out, 1, H2_END_STREAM, -1, 0, trailers);
    h2_headers(&w->writers[CLIENT], &w->out, 3, H2_END_STREAM, -1, 0, trailers);
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 1 END x-end=1\nHEADERS 3 END x-end=1\n");
    saw(w, CLIENT, "WINDOW 0 +9\nWINDOW 0 +9\n");
    told(w, "ended CreateContainer\n");
    answer(w, 1, "x");
    answer(w, 3, "x");
    told(w, "");
    calls_are(w, 0);
}

SCENARIO(a_message_over_the_limit_is_refused)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\1\0\0\1x", 6, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    told(w, "");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END :status=200 content-type=application/grpc grpc-status=8 grpc-message="
        "CreateContainer: message of 16777217 bytes is larger than the limit of 16777216\n"
        "RST 1 0\nSETTINGS\n");
}

ONCE(too_much_held_is_refused)
{
    h2_window(&w->out, 0, 100 << 20);
    feed(w, RUNTIME);
    for (uint32_t id = 1; id < 10; id += 2) {
        request(w, id, CREATE);
        data(w, id, "\0\0\xf0\0\0", 5, 0);
        fill(w, id, 14 << 20, 0);
        feed(w, CLIENT);
    }
    ack(w, RUNTIME);
    assert_non_null(memmem(buffer_data(&w->to[CLIENT]), buffer_len(&w->to[CLIENT]),
                           "too many bytes are held", 23));
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

/* Bytes behind the message of a call that waits for its decision count as well. */
ONCE(too_much_behind_a_held_message_ends_the_call)
{
    h2_window(&w->out, 0, 100 << 20);
    feed(w, RUNTIME);
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    fill(w, 1, 65 << 20, 0);
    feed(w, CLIENT);
    told(w, "request CreateContainer 3 abc\nended CreateContainer\n");
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

/* And those behind one that was let go, of a client that looks at no window: what the shim has put
 * in front keeps them from passing, and the connection's window is the runtime's to open. */
ONCE(too_much_behind_a_forwarded_message_ends_the_call)
{
    w->plan = PLAN_FRAGMENT;
    h2_window(&w->out, 0, 200 << 20);
    feed(w, RUNTIME);
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    fill(w, 1, 66 << 20, 0);
    feed(w, CLIENT);
    told(w, "request CreateContainer 3 abc\nended CreateContainer\n");
    ack(w, RUNTIME);
    assert_non_null(memmem(buffer_data(&w->to[CLIENT]), buffer_len(&w->to[CLIENT]),
                           "too many bytes are held", 23));
    buffer_fini(&w->to[CLIENT]);
    buffer_fini(&w->to[RUNTIME]);
}

SCENARIO(more_than_the_window_is_not_kept)
{
    request(w, 1, "Version");
    fill(w, 1, 60000, 0);
    request(w, 3, CREATE);
    fill(w, 3, 5536, 0);
    feed_bad(w, CLIENT, "more DATA than the connection's window");
    saw(w, CLIENT, "GOAWAY 3 3\n");
}

SCENARIO(a_kept_frame_larger_than_the_runtime_allows)
{
    uint8_t *bytes = calloc(1, 20000);

    assert_non_null(bytes);
    h2_settings(&w->out, 5, 18000);
    feed(w, RUNTIME);
    request(w, 1, CREATE);
    data(w, 1, "\0\0\xf0\0\0", 5, 0);
    data(w, 1, bytes, 18000, 0);
    feed(w, CLIENT);
    move_on(w);
    data(w, 1, bytes, 18001, 0);
    free(bytes);
    feed_bad(w, CLIENT, "a frame larger than the runtime allows");
    saw(w, CLIENT, "GOAWAY 1 6\n");
}

SCENARIO(an_observed_call_passes_and_is_shown)
{
    request(w, 1, "StopPodSandbox");
    data(w, 1, "\0\0", 2, 0);
    data(w, 1, "\0\0\2o", 4, 0);
    feed(w, CLIENT);
    told(w, "");
    h2_data(&w->out, 1, "k", 1, H2_END_STREAM, 9);
    feed(w, CLIENT);
    told(w, "request StopPodSandbox 2 ok\n");
    answer(w, 1, "");
    told(w, "answered StopPodSandbox 0 \nended StopPodSandbox\n");

    request(w, 3, "RunPodSandbox");
    message(w, 3, "x", H2_END_STREAM);
    request(w, 5, "RemoveContainer");
    message(w, 5, "y", H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request RunPodSandbox 1 x\nrequest RemoveContainer 1 y\n");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 3, "13"); /* trailers only */
    h2_rst(&w->out, 5, 2);
    feed(w, RUNTIME);
    told(w, "answered RunPodSandbox 13 -\nended RunPodSandbox\nended RemoveContainer\n");

    /* the end without trailers */
    request(w, 7, "RunPodSandbox");
    message(w, 7, "x", H2_END_STREAM);
    feed(w, CLIENT);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 7);
    data(w, 7, "\0\0\0\0\1i", 6, H2_END_STREAM);
    feed(w, RUNTIME);
    told(w, "request RunPodSandbox 1 x\nanswered RunPodSandbox 0 i\nended RunPodSandbox\n");

    /* an answer that is longer than is read */
    request(w, 9, "RemovePodSandbox");
    message(w, 9, "x", H2_END_STREAM);
    feed(w, CLIENT);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 9);
    data(w, 9, "\0\0\1\x86\xa0", 5, 0);
    fill(w, 9, 100000, 0);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 9, "0");
    feed(w, RUNTIME);
    told(w,
         "request RemovePodSandbox 1 x\nanswered RemovePodSandbox 0 -\nended RemovePodSandbox\n");
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    calls_are(w, 0);
}

ONCE(observed_requests_have_a_common_bound)
{
    for (uint32_t id = 1; id < 8; id += 2) {
        request(w, id, "RunPodSandbox");
        data(w, id, "\0\0\xf0\0\0", 5, 0);
        fill(w, id, (15 << 20) - 1, 0);
        feed(w, CLIENT);
    }
    for (uint32_t id = 7; id < 8; id -= 2) {
        data(w, id, "x", 1, H2_END_STREAM);
        feed(w, CLIENT);
    }
    assert_int_equal(w->calls_len, 2);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    move_on(w);
}

/* DATA on an idle stream must not hide the call that begins there later. */
SCENARIO(data_before_headers_does_not_hide_a_call)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc");
    request(w, 3, "Version");
    fill(w, 3, 65500, 0);
    data(w, 5, "0123456789ABCDEFGH", 18, 0); /* the runtime would take 17 */
    feed(w, CLIENT);
    move_on(w);
    call(w, 5, CREATE, "abc");
    told(w, "request CreateContainer 3 abc\n");
    move_on(w);
}

SCENARIO(too_many_streams)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};

    for (uint32_t i = 0; i < RELAY_STREAMS_MAX; i++)
        h2_headers(&w->writers[CLIENT], &w->out, 2 * i + 1, 0, -1, 0, fields);
    feed(w, CLIENT);
    calls_are(w, RELAY_STREAMS_MAX);
    h2_headers(&w->writers[CLIENT], &w->out, 2 * RELAY_STREAMS_MAX + 1, 0, -1, 0, fields);
    feed_bad(w, CLIENT, "too many calls on one connection");
    saw(w, CLIENT, "GOAWAY 8193 11\n");
}

SCENARIO(an_observed_call_too_many_passes_unread)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/StopPodSandbox", NULL};

    for (uint32_t i = 0; i <= RELAY_STREAMS_MAX; i++)
        h2_headers(&w->writers[CLIENT], &w->out, 2 * i + 1, 0, -1, 0, fields);
    message(w, 2 * RELAY_STREAMS_MAX + 1, "x", H2_END_STREAM);
    feed(w, CLIENT);
    calls_are(w, RELAY_STREAMS_MAX);
    told(w, "");
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
}

SCENARIO(odd_streams_pass_and_leave_nothing_behind)
{
    data(w, 77, "idle", 4, 0);
    h2_request(&w->writers[CLIENT], &w->out, 2, "Version");
    data(w, 2, "even", 4, H2_END_STREAM);
    h2_rst(&w->out, 0, 1);
    h2_rst(&w->out, 99, 1);
    h2_window(&w->out, 0, 0);
    h2_frame(&w->out, NGHTTP2_DATA, H2_PADDED, 5, "\xff", 1); /* nobody looks */
    h2_frame(&w->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "abc", 3);
    h2_frame(&w->out, NGHTTP2_GOAWAY, 0, 0, "a", 1);
    h2_frame(&w->out, NGHTTP2_SETTINGS, 0, 0, "abcdefgh", 8);
    feed(w, CLIENT);
    h2_frame(&w->out, NGHTTP2_WINDOW_UPDATE, 0, 0, "abc", 3);
    h2_frame(&w->out, NGHTTP2_GOAWAY, 0, 0, "a", 1);
    h2_frame(&w->out, NGHTTP2_HEADERS, 4, 0, "\x88", 1);
    h2_window(&w->out, 0, 0x80000000);
    h2_settings(&w->out, 4, 0x80000000);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
    calls_are(w, 0);
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(a_message_is_withheld_until_it_is_whole_script);
    without_memory(bytes_behind_a_held_message_do_not_lose_it_script);
    without_memory(an_observed_call_passes_and_is_shown_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_withheld_until_it_is_whole),
        cmocka_unit_test(the_end_may_come_in_a_frame_of_its_own),
        cmocka_unit_test(bytes_behind_a_held_message_do_not_lose_it),
        cmocka_unit_test(what_is_no_whole_message_passes),
        cmocka_unit_test(an_empty_message_is_a_message),
        cmocka_unit_test(trailers_send_the_call_on_without_its_message),
        cmocka_unit_test(a_message_over_the_limit_is_refused),
        cmocka_unit_test(too_much_held_is_refused),
        cmocka_unit_test(too_much_behind_a_held_message_ends_the_call),
        cmocka_unit_test(too_much_behind_a_forwarded_message_ends_the_call),
        cmocka_unit_test(more_than_the_window_is_not_kept),
        cmocka_unit_test(a_kept_frame_larger_than_the_runtime_allows),
        cmocka_unit_test(an_observed_call_passes_and_is_shown),
        cmocka_unit_test(observed_requests_have_a_common_bound),
        cmocka_unit_test(data_before_headers_does_not_hide_a_call),
        cmocka_unit_test(too_many_streams),
        cmocka_unit_test(an_observed_call_too_many_passes_unread),
        cmocka_unit_test(odd_streams_pass_and_leave_nothing_behind),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
