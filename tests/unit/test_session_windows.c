/*
 * shim/relay/session/windows.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <string.h>

#include <cmocka.h>

/* Bytes of DATA that the runtime was sent. */
static uint64_t data_sent(const struct world *w)
{
    struct h2_reader r;
    struct h2_seen frame;
    uint64_t bytes = 0;

    h2_reader_init(&r);
    r.bytes = buffer_data(&w->to[RUNTIME]) + strlen(H2_PREFACE);
    r.len = buffer_len(&w->to[RUNTIME]) - strlen(H2_PREFACE);
    while (h2_read(&r, &frame))
        bytes += frame.type == NGHTTP2_DATA ? frame.wire_len : 0;
    h2_reader_fini(&r);
    return bytes;
}

SCENARIO(a_promise_outlives_the_call_that_it_was_made_for)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\0\x9c\x40", 5, 0); /* 40,000 bytes */
    fill(w, 1, 40000, H2_END_STREAM);
    feed(w, CLIENT);
    /* all but what came when it had half its window again */
    assert_true(w->quiet || client_window(w) == 65535 - 7232);
    forward(w, w->calls[0], NULL);
    answer(w, 1, "id");
    calls_are(w, 0);
    request(w, 3, "Version");
    fill(w, 3, 65535 - 7232, H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || data_sent(w) == 65535);
    h2_window(&w->out, 0, 40005);
    feed(w, RUNTIME);
    assert_true(w->quiet || data_sent(w) == 40005 + 65535 - 7232);
    move_on(w);
}

SCENARIO(what_passed_before_a_call_is_known_counts)
{
    w->plan = PLAN_FRAGMENT;
    request(w, 1, "Version");
    fill(w, 1, 65535 - 8, H2_END_STREAM);
    request(w, 3, CREATE);
    message(w, 3, "abc", H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || data_sent(w) == 65535);
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    assert_true(w->quiet || data_sent(w) == 65535 + strlen(FRAGMENT));
    move_on(w);
}

SCENARIO(padding_is_dropped_and_credited)
{
    request(w, 1, CREATE);
    h2_data(&w->out, 1, "\0\0\0\0", 4, 0, 200);
    h2_data(&w->out, 1, "\3abc", 4, 0, 0);
    h2_data(&w->out, 1, "", 0, H2_END_STREAM, 20);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 1 +201\nWINDOW 0 +201\nWINDOW 1 +1\nWINDOW 0 +1\nWINDOW 0 +21\n");
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, HEAD(1) "DATA 1 8 .....abc END\n");
}

SCENARIO(a_message_over_the_windows_is_credited)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\3\x0d\x40", 5, 0); /* 200,000 bytes */
    fill(w, 1, 65535 - 5, 0);
    feed(w, CLIENT);
    /* the stream at once; the connection, below 32,768, up to what the runtime would take */
    saw(w, CLIENT, "WINDOW 1 +150854\nWINDOW 0 +32773\n");
    for (int i = 0; i < 4; i++) {
        assert_true(client_window(w) >= 32768);
        fill(w, 1, 32768, 0);
        feed(w, CLIENT);
    }
    told(w, "");
    fill(w, 1, 200000 - 65530 - 4 * 32768, H2_END_STREAM);
    feed(w, CLIENT);
    assert_int_equal(w->calls_len, 1);
    forward(w, w->calls[0], NULL);
    /* what was credited early is taken off the runtime's updates */
    for (uint32_t left = 200005; left > 0; left -= left < 65535 ? left : 65535) {
        h2_window(&w->out, 0, left < 65535 ? left : 65535);
        h2_window(&w->out, 1, left < 65535 ? left : 65535);
        feed(w, RUNTIME);
    }
    assert_int_equal(client_window(w), 65535);
    move_on(w);
}

SCENARIO(injected_bytes_are_swallowed_from_later_updates)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc");
    move_on(w);
    h2_window(&w->out, 1, 18);
    h2_window(&w->out, 0, 4);
    h2_window(&w->out, 0, 14);
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +8\nWINDOW 0 +100\n");
}

/* What the runtime will never be sent, nobody but us would ever credit. */
SCENARIO(a_smaller_message_is_credited)
{
    request(w, 1, CREATE);
    message(w, 1, "0123456789", 0);
    feed(w, CLIENT);
    forward_instead(w, w->calls[0], NULL, "abc", 3);
    saw(w, CLIENT, "WINDOW 1 +7\nWINDOW 0 +7\n");
    h2_window(&w->out, 1, 8); /* it has read what it got */
    h2_window(&w->out, 0, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 1 +8\nWINDOW 0 +8\n");
    assert_true(w->quiet || client_window(w) == 65535);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    move_on(w);
    /* with its last byte sent a client needs no more of the stream's */
    call(w, 3, CREATE, "0123456789");
    forward_instead(w, w->calls[1], NULL, "abc", 3);
    saw(w, CLIENT, "WINDOW 0 +7\n");
    move_on(w);
}

/* The runtime's updates are swallowed for bytes that are held, but others must not starve. */
SCENARIO(held_calls_do_not_starve_others)
{
    for (uint32_t id = 1; id < 200; id += 2) {
        request(w, id, CREATE);
        data(w, id, "\0\0\0\3\xe8", 5, 0);
        fill(w, id, 1000, H2_END_STREAM);
        feed(w, CLIENT);
    }
    assert_true(w->quiet || w->calls_len == 100);
    for (uint32_t id = 201; id < 220; id += 2) {
        request(w, id, "Version");
        fill(w, id, 32000, H2_END_STREAM);
        feed(w, CLIENT);
        h2_window(&w->out, 0, 32000);
        feed(w, RUNTIME);
        assert_true(w->quiet || client_window(w) >= 32768);
    }
    move_on(w);
}

/* The window is enough for what is held, but not for what passes then: the runtime, which has read
 * only that, need not open it again. */
SCENARIO(what_passes_beside_a_held_call_does_not_close_the_window)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\1\0\0", 5, 0);
    fill(w, 1, 30000 - 5, 0);
    feed(w, CLIENT);
    assert_true(w->quiet || client_window(w) == 65535 - 30000);
    request(w, 3, "Version");
    fill(w, 3, 65535 - 30000, H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || client_window(w) == 30000);
}

/* As before, while the client has been promised more than the runtime takes. */
SCENARIO(what_passes_beside_a_promise_does_not_close_the_window)
{
    request(w, 1, CREATE);
    data(w, 1, "\0\0\1\0\0", 5, 0);
    fill(w, 1, 32768, 0);
    feed(w, CLIENT);
    assert_true(w->quiet || client_window(w) == 65535);
    fill(w, 1, 20000, 0);
    feed(w, CLIENT);
    assert_true(w->quiet || client_window(w) == 45535);
    request(w, 3, "Version");
    fill(w, 3, 45535, H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || client_window(w) == 20000);
}

/* Lowered below what is withheld, the window would never open again by the runtime's doing. */
SCENARIO(a_lowered_window_does_not_strand_a_half_message)
{
    request(w, 1, CREATE);
    data(w, 1,
         "\0\0\0\0\144"
         "0123456789",
         15, 0);
    feed(w, CLIENT);
    move_on(w);
    h2_settings(&w->out, 4, 10);
    feed(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS 4=10\nWINDOW 1 +16479\n");
    ack(w, CLIENT);
    fill(w, 1, 90, H2_END_STREAM);
    feed(w, CLIENT);
    assert_true(w->quiet || w->calls_len == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promise_outlives_the_call_that_it_was_made_for),
        cmocka_unit_test(what_passed_before_a_call_is_known_counts),
        cmocka_unit_test(padding_is_dropped_and_credited),
        cmocka_unit_test(a_message_over_the_windows_is_credited),
        cmocka_unit_test(injected_bytes_are_swallowed_from_later_updates),
        cmocka_unit_test(a_smaller_message_is_credited),
        cmocka_unit_test(held_calls_do_not_starve_others),
        cmocka_unit_test(what_passes_beside_a_held_call_does_not_close_the_window),
        cmocka_unit_test(what_passes_beside_a_promise_does_not_close_the_window),
        cmocka_unit_test(a_lowered_window_does_not_strand_a_half_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
