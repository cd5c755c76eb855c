/*
 * shim/relay/session/ending.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "shim/relay/limits.h"

SCENARIO(a_refusal_waits_for_the_barrier)
{
    call(w, 1, CREATE, "abc");
    refuse(w, w->calls[0], "50% \xc3\xbc\n");
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    saw(w, CLIENT, "WINDOW 0 +8\n");
    told(w, "request CreateContainer 3 abc\n");
    h2_frame(&w->out, NGHTTP2_PING, 0, 0, "12345678", 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "FRAME 6 0 8\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "50%25 %C3%BC%0A"));
    told(w, "");
    calls_are(w, 0);
    /* the runtime's encoder and the client's decoder are still in step */
    call(w, 3, "Version", "v");
    answer(w, 3, "1");
    answer(w, 3, "2");
    saw(w, CLIENT,
        ANSWER_HEAD(3) "DATA 3 6 .....1\n" ANSWER_END(3)
            ANSWER_HEAD(3) "DATA 3 6 .....2\n" ANSWER_END(3));
}

SCENARIO(a_refusal_in_the_callback)
{
    w->plan = PLAN_REFUSE;
    call(w, 1, CREATE, "abc");
    saw(w, RUNTIME, HEAD(1) "RST 1 8\nSETTINGS\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +8\n" REFUSAL(1, "no"));
}

SCENARIO(the_decoder_keeps_its_table)
{
    size_t entries;

    answer(w, 1, "x");
    call(w, 1, CREATE, "abc");
    move_on(w);
    entries = nghttp2_hd_inflate_get_num_table_entries(w->readers[CLIENT].inflater);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    saw(w, CLIENT, "WINDOW 0 +8\n" REFUSAL(1, "no"));
    assert_int_equal(nghttp2_hd_inflate_get_num_table_entries(w->readers[CLIENT].inflater),
                     entries);
}

SCENARIO(a_refusal_in_the_middle_of_a_header_block)
{
    struct buffer block = {0};

    call(w, 1, CREATE, "a");
    move_on(w);
    h2_headers(&w->writers[CLIENT], &block, 3, 0, -1, 4,
               (const char *[]){":path", "/x/y/zzzzzzzzzz", "x-long", "some more text", NULL});
    h2_put(&w->out, buffer_data(&block), 20);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    h2_put(&w->out, buffer_data(&block) + 20, buffer_len(&block) - 20);
    feed(w, CLIENT);
    saw(w, RUNTIME, "HEADERS 3 :path=/x/y/zzzzzzzzzz x-long=some more text\nRST 1 8\nSETTINGS\n");
    buffer_fini(&block);
}

SCENARIO(a_lowered_table_size_is_said_by_the_refusal)
{
    static const uint8_t twice[] = {0, 1, 0, 0, 0, 64, 0, 1, 0, 0, 8, 0};
    struct h2_reader *decoder = &w->readers[CLIENT];

    answer(w, 9, "fill");
    move_on(w);
    h2_settings(&w->out, 1, 100);
    h2_reader_announced(decoder, 100);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    refuse(w, w->calls[0], "one");
    refuse(w, w->calls[0], "two");
    move_on(w);
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one") REFUSAL(3, "two"));
    /* the runtime's own encoder says it as well, a little later */
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 100);
    answer(w, 5, "x");
    move_on(w);

    /* raised, lowered to two sizes, raised again: the smallest counts (RFC 7541 §4.2) */
    h2_settings(&w->out, 1, 4096);
    h2_reader_announced(decoder, 4096);
    h2_settings(&w->out, 1, 50);
    h2_reader_announced(decoder, 50);
    h2_settings(&w->out, 1, 4096);
    h2_reader_announced(decoder, 4096);
    h2_settings(&w->out, 1, 2000);
    h2_reader_announced(decoder, 2000);
    feed(w, CLIENT);
    for (int i = 0; i < 4; i++)
        ack(w, RUNTIME);
    call(w, 7, CREATE, "c");
    refuse(w, w->calls[0], "three");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(7, "three"));
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 50);
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 2000);
    answer(w, 9, "y");
    move_on(w);

    /* two sizes in one frame: a decoder may insist on the smaller */
    h2_frame(&w->out, NGHTTP2_SETTINGS, 0, 0, twice, sizeof twice);
    h2_reader_announced(decoder, 64);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    call(w, 11, CREATE, "d");
    refuse(w, w->calls[0], "four");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(11, "four"));
    nghttp2_hd_deflate_change_table_size(w->writers[RUNTIME].deflater, 64);
    answer(w, 13, "z");
    saw(w, CLIENT, ANSWER_HEAD(13) "DATA 13 6 .....z\n" ANSWER_END(13));
}

SCENARIO(the_runtimes_headers_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_answer_head(&w->writers[RUNTIME], &w->out, 1);
    feed(w, RUNTIME);
    saw(w, CLIENT, ANSWER_HEAD(1));
    ack(w, RUNTIME);
    saw(w, CLIENT, "HEADERS 1 END grpc-status=14 grpc-message=no\n");
}

SCENARIO(the_runtimes_whole_answer_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    refuse(w, w->calls[0], "no");
    move_on(w);
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
    ack(w, RUNTIME);
    saw(w, CLIENT, "");
    told(w, "");
    saw(w, RUNTIME, "");
    calls_are(w, 0);
}

SCENARIO(resets_before_the_barrier)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    refuse(w, w->calls[0], "one");
    refuse(w, w->calls[0], "two");
    move_on(w);
    h2_rst(&w->out, 1, 5);
    feed(w, RUNTIME);
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one"));
    told(w, "");
    calls_are(w, 0);
}

SCENARIO(a_refused_client_that_goes_on_sending)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_data(&w->out, 1, "more", 4, 0, 3);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 0 +8\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "no") "RST 1 0\nSETTINGS\n");
    data(w, 1, "and more", 8, 0);
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, CLIENT, "WINDOW 0 +8\n");
    saw(w, RUNTIME, "");
    calls_are(w, 0);

    request(w, 3, CREATE);
    message(w, 3, "abc", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    ack(w, RUNTIME);
    move_on(w);
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 0);
    ack(w, CLIENT); /* the stream's that ended */
    ack(w, CLIENT); /* the one's that reset */
    saw(w, RUNTIME, "");
}

/* RFC 9113 §8.1: a client that stops when it is asked to owes no END_STREAM. What it sent before it
 * was asked is thrown away. */
SCENARIO(a_refused_client_that_stops)
{
    request(w, 1, CREATE);
    message(w, 1, "abc", 0);
    request(w, 3, CREATE);
    message(w, 3, "abc", 0);
    h2_settings(&w->out, 5, 20000); /* between ours, and one's ACK is not the other's */
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    move_on(w);
    h2_settings(&w->out, 5, 20000);
    h2_settings_ack(&w->out); /* the greeting's is through: of the client's own */
    h2_settings_ack(&w->out);
    feed(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS 5=20000\nSETTINGS ACK\n" REFUSAL(1, "no") "RST 1 0\nSETTINGS\n");
    h2_settings_ack(&w->out); /* the runtime's */
    data(w, 1, "more", 4, 0);
    feed(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\n");
    calls_are(w, 2);
    ack(w, CLIENT);
    saw(w, RUNTIME, "");
    calls_are(w, 1);
    refuse(w, w->calls[0], "no");
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\n");
    saw(w, CLIENT, "WINDOW 0 +4\nWINDOW 0 +8\n");
}

/* One that never acknowledges is no reason to remember ever more. */
ONCE(a_refused_client_that_acknowledges_nothing)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};
    uint32_t id = 1;

    w->plan = PLAN_REFUSE;
    for (int i = 0; i <= RELAY_STREAMS_MAX; i++, id += 2) {
        h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
        message(w, id, "", 0);
        feed(w, CLIENT);
        if (i < RELAY_STREAMS_MAX)
            ack(w, RUNTIME);
        if (i < RELAY_STREAMS_MAX)
            h2_rst(&w->out, id, 8);
    }
    calls_are(w, 1);
    h2_settings_ack(&w->out);
    feed_bad(w, RUNTIME, "too many SETTINGS without an ACK");
}

/* Refusals the client resets at once leave a barrier each, until the runtime acknowledges. */
ONCE(too_many_barriers)
{
    const char *const fields[] = {":path", "/runtime.v1.RuntimeService/CreateContainer", NULL};
    uint32_t id = 1;

    w->plan = PLAN_REFUSE;
    for (; id < 2 * RELAY_STREAMS_MAX + 1; id += 2) {
        h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
        message(w, id, "", H2_END_STREAM);
        h2_rst(&w->out, id, 8);
    }
    feed(w, CLIENT);
    calls_are(w, 0);
    h2_headers(&w->writers[CLIENT], &w->out, id, 0, -1, 0, fields);
    message(w, id, "", H2_END_STREAM);
    feed_bad(w, CLIENT, "the runtime does not acknowledge SETTINGS");
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(a_refused_client_that_goes_on_sending_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_waits_for_the_barrier),
        cmocka_unit_test(a_refusal_in_the_callback),
        cmocka_unit_test(the_decoder_keeps_its_table),
        cmocka_unit_test(a_refusal_in_the_middle_of_a_header_block),
        cmocka_unit_test(a_lowered_table_size_is_said_by_the_refusal),
        cmocka_unit_test(the_runtimes_headers_before_the_barrier),
        cmocka_unit_test(the_runtimes_whole_answer_before_the_barrier),
        cmocka_unit_test(resets_before_the_barrier),
        cmocka_unit_test(a_refused_client_that_goes_on_sending),
        cmocka_unit_test(a_refused_client_that_stops),
        cmocka_unit_test(a_refused_client_that_acknowledges_nothing),
        cmocka_unit_test(too_many_barriers),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
