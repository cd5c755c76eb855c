/*
 * shim/relay/session/withheld.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

SCENARIO(a_fragment_comes_first)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "hello");
    saw(w, RUNTIME, HEAD(1) "DATA 1 20 .....<fragment>hello END\n");
    told(w, "request CreateContainer 5 hello\n");
    answer(w, 1, "id");
    move_on(w);
}

SCENARIO(another_message_takes_its_place)
{
    call(w, 1, CREATE, "hello");
    forward_instead(w, w->calls[0], NULL, "something longer", 16);
    saw(w, RUNTIME, HEAD(1) "DATA 1 21 .....something longer END\n");
    call(w, 3, CREATE, "hello");
    forward_instead(w, w->calls[1], FRAGMENT, "hullo", 5);
    saw(w, RUNTIME, HEAD(3) "DATA 3 20 .....<fragment>hullo END\n");
    call(w, 5, CREATE, "hello");
    forward_instead(w, w->calls[2], NULL, "", 0);
    saw(w, RUNTIME, HEAD(5) "DATA 5 5 ..... END\n");
    /* what lies behind the message stays */
    request(w, 7, CREATE);
    data(w, 7, "\0\0\0\0\3abc\0\0\0\0\1z", 14, 0);
    data(w, 7, "tail", 4, H2_END_STREAM);
    feed(w, CLIENT);
    forward_instead(w, w->calls[3], NULL, "x", 1);
    saw(w, RUNTIME, HEAD(7) "DATA 7 16 .....x.....ztail END\n");
    answer(w, 1, "id");
    told(w, "request CreateContainer 5 hello\nrequest CreateContainer 5 hello\n"
            "request CreateContainer 5 hello\nrequest CreateContainer 3 abc\n"
            "answered CreateContainer 0 id\nended CreateContainer\n");
}

SCENARIO(bytes_behind_the_first_message_follow_it)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\3abc\0\0\0\0\1z", 14, 0);
    data(w, 1, "tail", 4, H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "request CreateContainer 3 abc\n");
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, HEAD(1) "DATA 1 28 .....<fragment>abc.....ztail END\n");
}

/* It is what a state has beside some hundred bytes. */
static void expect_held(struct world *w, size_t bytes)
{
    struct buffer state = {0};

    assert_int_equal(session_freeze(w->session, &state), 0);
    assert_in_range(session_held(w->session), bytes, bytes + 100);
    assert_in_range(buffer_len(&state), bytes, bytes + 3000);
    buffer_fini(&state);
}

ONCE(what_is_held_is_counted)
{
    expect_held(w, 0);
    request(w, 1, CREATE);
    fill(w, 1, 5, 0);
    fill(w, 1, 30000, 0);
    feed(w, CLIENT);
    expect_held(w, 30005);
    request(w, 3, "StopPodSandbox");
    data(w, 3, "\0\0\x20\0\0", 5, 0);
    fill(w, 3, 20000, 0);
    feed(w, CLIENT);
    expect_held(w, 50010);
    h2_rst(&w->out, 1, 8);
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    expect_held(w, 0);
    move_on(w);
}

SCENARIO(a_larger_message_waits_for_the_windows)
{
    char *large = calloc(1, 100000);

    assert_non_null(large);
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\0\3abc", 8, 0);
    feed(w, CLIENT);
    forward_instead(w, w->calls[0], NULL, large, 100000);
    free(large);
    assert_true(w->quiet || buffer_len(&w->to[RUNTIME]) - w->read_to[RUNTIME] < 66000);
    /* 99,997 bytes more than the client knows of: swallowed, of each window */
    h2_window(&w->out, 1, 65535);
    h2_window(&w->out, 0, 65535);
    feed(w, RUNTIME);
    saw(w, CLIENT, "");
    h2_window(&w->out, 1, 100005 - 65535);
    h2_window(&w->out, 0, 100005 - 65535 + 1);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +9\n");
    assert_true(w->quiet || client_window(w) == 65536);
    move_on(w);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 0 END\n");
}

/* A second frame of an open call is not let past the stream's window either. */
SCENARIO(what_follows_a_forwarded_message_waits_for_the_stream_window)
{
    h2_settings(&w->out, 4, 30);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    move_on(w);
    request(w, 1, CREATE);
    message(w, 1, "abcde", 0);
    feed(w, CLIENT);
    move_on(w);
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, "DATA 1 20 .....<fragment>abcde\n");
    data(w, 1, "0123456789ABCDEFGHIJ", 20, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 10 0123456789\n");
    h2_window(&w->out, 1, 30);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 10 ABCDEFGHIJ END\n");
    saw(w, CLIENT, "WINDOW 1 +20\n");
}

SCENARIO(a_relayed_call_waits_for_the_connection_window)
{
    struct buffer frame = {0};

    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc"); /* 10 bytes more than the client knows */
    request(w, 3, "Version");
    fill(w, 3, 65500, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_data(&frame, 3, "0123456789ABCDEFGHIJ", 20, H2_END_STREAM, 6); /* 27 of 27 */
    h2_put(&w->out, buffer_data(&frame), 20);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    h2_window(&w->out, 3, 65500);
    h2_window(&w->out, 0, 5); /* in the middle of the frame: 22 of it may go */
    feed(w, RUNTIME);
    h2_put(&w->out, buffer_data(&frame) + 20, buffer_len(&frame) - 20);
    feed(w, CLIENT);
    h2_window(&w->out, 0, 50);
    feed(w, RUNTIME);
    buffer_fini(&frame);
    calls_are(w, 1);
    call(w, 5, "Version", "x");
    if (!w->quiet)
        assert_non_null(memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), "J", 1));
    move_on(w);
}

SCENARIO(the_runtimes_windows_are_never_outgrown)
{
    h2_settings(&w->out, 4, 20);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    move_on(w);
    call(w, 1, CREATE, "0123456789");
    move_on(w);
    forward(w, w->calls[0], FRAGMENT);
    saw(w, RUNTIME, "DATA 1 20 .....<fragment>01234\n");
    h2_window(&w->out, 1, 3);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 3 567\n");
    saw(w, CLIENT, "");
    h2_settings(&w->out, 4, 10); /* the window is -10 now */
    feed(w, RUNTIME);
    ack(w, CLIENT);
    h2_window(&w->out, 1, 10);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "SETTINGS ACK\n");
    h2_settings(&w->out, 4, 11);
    feed(w, RUNTIME);
    saw(w, RUNTIME, ""); /* a larger one counts from the client's ACK on (RFC 9113 §6.5.3) */
    ack(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\nDATA 1 1 8\n");
    h2_window(&w->out, 1, 1);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 1 1 9 END\n");
}

/* What others send passes beside calls that wait, and the ledger knows of it when those go on. */
SCENARIO(what_passed_meanwhile_is_not_sent_again)
{
    h2_settings(&w->out, 4, 100000); /* the connection's window is the narrow one */
    feed(w, RUNTIME);
    ack(w, CLIENT);
    move_on(w);
    request(w, 1, CREATE);
    h2_put(&w->out, "\0\0\7\0\1\0\0\0\1\0\0\0\0\2hi", 16);
    request(w, 3, "Version");
    fill(w, 3, 65500, 0); /* 35 are left of the connection's window */
    feed(w, CLIENT);
    move_on(w);
    forward(w, w->calls[0], "<a fragment of more than that>"); /* 37 with what is around it */
    saw(w, RUNTIME, "DATA 1 35 .... <a fragment of more than that>\n");
    data(w, 3, "x", 1, 0); /* the client may, and the runtime has no room */
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    move_on(w);
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(a_fragment_comes_first_script);
    without_memory(another_message_takes_its_place_script);
    without_memory(a_relayed_call_waits_for_the_connection_window_script);
    without_memory(the_runtimes_windows_are_never_outgrown_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fragment_comes_first),
        cmocka_unit_test(another_message_takes_its_place),
        cmocka_unit_test(bytes_behind_the_first_message_follow_it),
        cmocka_unit_test(what_is_held_is_counted),
        cmocka_unit_test(a_larger_message_waits_for_the_windows),
        cmocka_unit_test(what_follows_a_forwarded_message_waits_for_the_stream_window),
        cmocka_unit_test(a_relayed_call_waits_for_the_connection_window),
        cmocka_unit_test(the_runtimes_windows_are_never_outgrown),
        cmocka_unit_test(what_passed_meanwhile_is_not_sent_again),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
