/*
 * shim/relay/session/from_runtime.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define EARLY(id) "HEADERS " #id " END grpc-status=8 grpc-message= x-note=kept\n"

SCENARIO(early_answers)
{
    request(w, 1, CREATE); /* nothing came yet */
    request(w, 3, CREATE); /* half a message */
    data(w, 3, "\0\0\0", 3, 0);
    request(w, 5, CREATE); /* waits for the decision, and has ended */
    message(w, 5, "abc", H2_END_STREAM);
    feed(w, CLIENT);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "8");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 3, "8");
    h2_answer_end(&w->writers[RUNTIME], &w->out, 5, "8");
    feed(w, RUNTIME);
    told(w, "answered CreateContainer 8 -\nended CreateContainer\n");
    saw(w, RUNTIME, "RST 1 8\nSETTINGS\nRST 3 8\nSETTINGS\nRST 5 8\n");
    saw(w, CLIENT,
        EARLY(1) "RST 1 0\nSETTINGS\n" EARLY(3) "WINDOW 0 +3\nRST 3 0\nSETTINGS\n" EARLY(
            5) "WINDOW 0 +8\n");
    calls_are(w, 2);
    h2_rst(&w->out, 1, 8); /* as clients do with a call that is answered too early */
    data(w, 3, "\0\1x", 3, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 1);
    h2_rst(&w->out, 3, 0); /* as gRPC's servers do behind such an answer; ours has said it */
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +3\n");
    calls_are(w, 0);
    assert_true(w->quiet || client_window(w) == 65535);
}

/* The END_STREAM of a frame that is thrown away reached nobody: the runtime hears of it. */
SCENARIO(an_early_answer_in_the_middle_of_the_last_frame)
{
    struct buffer frame = {0};

    request(w, 1, CREATE);
    h2_data(&frame, 1, "\0\0\0\0\11abc", 8, H2_END_STREAM, -1);
    h2_put(&w->out, buffer_data(&frame), 12);
    feed(w, CLIENT);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "8");
    feed(w, RUNTIME);
    saw(w, RUNTIME, "RST 1 8\n");
    h2_put(&w->out, buffer_data(&frame) + 12, 5);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    if (!w->quiet)
        assert_int_equal(client_window(w), 65535);
    buffer_fini(&frame);
}

/* What is remembered of a block has no text, so it is another answer's than the one before. */
SCENARIO(an_error_s_text_is_told_with_it)
{
    const char *const refused[] = {"grpc-status", "2", "grpc-message", "no such %25 device", NULL};

    for (uint32_t id = 1; id < 9; id += 2) {
        bool has_text = id % 4 == 1;

        call(w, id, "RemoveContainer", "x");
        move_on(w);
        if (has_text)
            h2_headers(&w->writers[RUNTIME], &w->out, id, H2_END_STREAM, -1, 0, refused);
        else
            h2_answer_end(&w->writers[RUNTIME], &w->out, id, "2");
        feed(w, RUNTIME);
        told(w, has_text ? "answered RemoveContainer 2 -no such %25 device\n"
                           "ended RemoveContainer\n"
                         : "answered RemoveContainer 2 -\nended RemoveContainer\n");
    }
    move_on(w);
}

SCENARIO(resets_in_every_phase)
{
    for (int from = CLIENT; from <= RUNTIME; from++) {
        uint32_t id = from == CLIENT ? 1 : 101;

        request(w, id, CREATE);
        request(w, id + 2, CREATE);
        data(w, id + 2, "\0\0\0", 3, 0);
        request(w, id + 4, CREATE);
        message(w, id + 4, "abc", 0);
        feed(w, CLIENT);
        request(w, id + 6, CREATE);
        message(w, id + 6, "def", H2_END_STREAM);
        feed(w, CLIENT);
        forward(w, w->calls[1], NULL);
        move_on(w);
        for (uint32_t i = 0; i < 8; i += 2)
            h2_rst(&w->out, id + i, 8);
        feed(w, from);
        told(w, "ended CreateContainer\nended CreateContainer\n");
        calls_are(w, 0);
    }
    saw(w, RUNTIME, "");
    saw(w, CLIENT, "RST 101 8\nRST 103 8\nWINDOW 0 +3\nRST 105 8\nWINDOW 0 +8\nRST 107 8\n");
}

SCENARIO(a_runtime_that_goes_away_ends_what_it_will_not_look_at)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    call(w, 5, "StopPodSandbox", "c");
    move_on(w);
    h2_goaway(&w->out, 1, 0);
    feed(w, RUNTIME);
    told(w, "ended CreateContainer\nended StopPodSandbox\n");
    saw(w, CLIENT, "GOAWAY 1 0\nWINDOW 0 +6\n");
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 6 .....a END\n");
    h2_goaway(&w->out, 1, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, "GOAWAY 1 0\n");
}

/* Those of answers have one as well; what does not fit passes unread. */
ONCE(copies_of_answers_have_a_common_bound)
{
    static const uint8_t long_id[59995];
    struct buffer framed = {0};
    uint32_t id = 1;

    h2_message(&framed, 0, long_id, sizeof long_id);
    for (; id < 2 * 100; id += 2) {
        call(w, id, "RemoveContainer", "x");
        h2_answer_head(&w->writers[RUNTIME], &w->out, id);
        for (size_t at = 0; at < buffer_len(&framed); at += 15000)
            data(w, id, buffer_data(&framed) + at, 15000, 0);
        feed(w, RUNTIME);
    }
    w->log_read = buffer_len(&w->log);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "0");
    h2_answer_end(&w->writers[RUNTIME], &w->out, id - 2, "0");
    feed(w, RUNTIME);
    told(w, "answered RemoveContainer 0 \nended RemoveContainer\n"
            "answered RemoveContainer 0 -\nended RemoveContainer\n");
    buffer_fini(&framed);
    move_on(w);
}

/* grpc's C core ends a stream that was reset behind its ACK (RFC 9113 §5.1 would have it stop). */
SCENARIO(a_second_answer_behind_the_barrier)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    move_on(w);
    h2_answer_end(&w->writers[RUNTIME], &w->out, 1, "1");
    h2_rst(&w->out, 1, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "HEADERS 1 END grpc-status=1 grpc-message= x-note=kept\n");
    data(w, 1, "rest", 4, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 0);
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(early_answers_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_answers),
        cmocka_unit_test(an_early_answer_in_the_middle_of_the_last_frame),
        cmocka_unit_test(an_error_s_text_is_told_with_it),
        cmocka_unit_test(resets_in_every_phase),
        cmocka_unit_test(a_runtime_that_goes_away_ends_what_it_will_not_look_at),
        cmocka_unit_test(copies_of_answers_have_a_common_bound),
        cmocka_unit_test(a_second_answer_behind_the_barrier),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
