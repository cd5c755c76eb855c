/*
 * shim/relay/session.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <string.h>

#include <cmocka.h>

static const char *const NAMES[] = {"Version", "ListContainers", "Status", "ExecSync"};

static void random_frame(struct world *w, enum session_end from, struct h2_random *r)
{
    static const uint8_t bytes[600];
    uint32_t stream = 1 + 2 * h2_random(r, 40);
    const char *const fields[] = {":path", NAMES[h2_random(r, 4)], "x-a", "one",
                                  "x-b",   NAMES[h2_random(r, 4)], NULL};
    int flags = (int)h2_random(r, 2) | (h2_random(r, 2) ? H2_PRIORITY : 0);
    int pad = h2_random(r, 2) ? (int)h2_random(r, 200) : -1;
    int type = (int)h2_random(r, 14);

    switch (type) {
    case NGHTTP2_DATA:
        h2_data(&w->out, stream, bytes, h2_random(r, 400), (int)h2_random(r, 2), pad);
        break;
    case NGHTTP2_HEADERS:
        h2_headers(&w->writers[from], &w->out, stream, flags, pad, h2_random(r, 12), fields);
        break;
    case NGHTTP2_SETTINGS: {
        uint8_t entry[12] = {0, 3, 0, 0, 0, 7, 0x99, 0x99, 1, 2, 3, 4};

        h2_frame(&w->out, type, 0, 0, entry, 6 * h2_random(r, 3));
        if (h2_random(r, 2))
            h2_settings_ack(&w->out);
        break;
    }
    case NGHTTP2_GOAWAY:
        h2_goaway(&w->out, 0x7fffffff, 0);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        h2_window(&w->out, h2_random(r, 2) ? stream : 0, h2_random(r, 5000));
        break;
    case NGHTTP2_PUSH_PROMISE:
    case NGHTTP2_CONTINUATION:
        h2_frame(&w->out, 0x42, 0xff, 0x80000003, bytes, h2_random(r, 300));
        break;
    default: /* PRIORITY, RST_STREAM, PING and types nobody knows, of any length */
        h2_frame(&w->out, type, (int)h2_random(r, 256), stream | h2_random(r, 2) << 31, bytes,
                 h2_random(r, 30));
        break;
    }
}

static void other_traffic_passes_byte_for_byte(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct h2_random r = {seed};
        struct world w = {.cut = seed % 12, .random_cuts = seed % 3 == 0, .random = {seed}};

        world_init(&w);
        greet(&w);
        for (int i = 0; i < 60; i++) {
            enum session_end from = h2_random(&r, 2) ? CLIENT : RUNTIME;

            for (uint32_t n = h2_random(&r, 6); n > 0; n--)
                random_frame(&w, from, &r);
            feed(&w, from);
            /* ACKs so that the SETTINGS in flight stay few */
            h2_settings_ack(&w.out);
            h2_settings_ack(&w.out);
            feed(&w, from == CLIENT ? RUNTIME : CLIENT);
        }
        same(&w.to[RUNTIME], &w.fed[CLIENT]);
        same(&w.to[CLIENT], &w.fed[RUNTIME]);
        assert_int_equal(session_calls(w.session), 0);
        world_fini(&w);
    }
}

static void one_read_is_one_write(void **state)
{
    struct world w = {0};
    unsigned writes;

    (void)state;
    world_init(&w);
    greet(&w);
    for (uint32_t id = 1; id < 100; id += 2) {
        request(&w, id, "Version");
        message(&w, id, "some bytes", H2_END_STREAM);
        h2_window(&w.out, 0, 1);
    }
    writes = w.writes;
    feed_bytes(&w, CLIENT, buffer_data(&w.out), buffer_len(&w.out) - 100);
    assert_int_equal(w.writes, writes + 1);
    /* a frame's head cut in two costs no write of its own */
    feed_bytes(&w, CLIENT, buffer_data(&w.out) + buffer_len(&w.out) - 100, 100);
    assert_int_equal(w.writes, writes + 2);
    same(&w.to[RUNTIME], &w.fed[CLIENT]);
    buffer_fini(&w.out);
    h2_window(&w.out, 0, 1);
    h2_frame(&w.out, NGHTTP2_PING, 0, 0, "12345678", 8);
    for (size_t at = 1; at < buffer_len(&w.out); at++) {
        writes = w.writes;
        feed_bytes(&w, RUNTIME, buffer_data(&w.out), at);
        feed_bytes(&w, RUNTIME, buffer_data(&w.out) + at, buffer_len(&w.out) - at);
        assert_true(w.writes <= writes + 2);
    }
    same(&w.to[CLIENT], &w.fed[RUNTIME]);
    world_fini(&w);
}

/* The frame under way when the decision falls goes on behind it. */
SCENARIO(a_decision_in_the_middle_of_a_frame)
{
    struct buffer frame = {0};

    request(w, 1, CREATE);
    message(w, 1, "one", 0);
    request(w, 3, CREATE);
    message(w, 3, "two", 0);
    feed(w, CLIENT);
    move_on(w);
    h2_data(&frame, 1, "0123456789", 10, H2_END_STREAM, 5);
    h2_put(&w->out, buffer_data(&frame), 9 + 1 + 4);
    feed(w, CLIENT);
    forward(w, w->calls[0], NULL);
    saw(w, RUNTIME, "DATA 1 12 .....one0123\n");
    h2_put(&w->out, buffer_data(&frame) + 14, buffer_len(&frame) - 14);
    feed(w, CLIENT);
    saw(w, RUNTIME, "DATA 1 6 456789 END\n");
    saw(w, CLIENT, "WINDOW 1 +1\nWINDOW 0 +1\nWINDOW 0 +5\n");
    buffer_fini(&frame);
    h2_data(&frame, 3, "0123456789", 10, H2_END_STREAM, -1);
    h2_put(&w->out, buffer_data(&frame), 9 + 4);
    feed(w, CLIENT);
    refuse(w, w->calls[1], "no");
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\n");
    h2_put(&w->out, buffer_data(&frame) + 13, buffer_len(&frame) - 13);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    saw(w, CLIENT, "WINDOW 0 +12\nWINDOW 0 +6\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(3, "no"));
    buffer_fini(&frame);
}

/* Every told call ends exactly once: world_fini() looks. */
SCENARIO(freed_in_every_phase)
{
    request(w, 1, CREATE);
    request(w, 3, CREATE);
    data(w, 3, "\0\0\0", 3, 0);
    feed(w, CLIENT);
    call(w, 5, CREATE, "held");
    call(w, 7, CREATE, "forwarded");
    call(w, 9, CREATE, "refused");
    call(w, 11, CREATE, "refused, answered");
    call(w, 13, "RunPodSandbox", "observed");
    forward(w, w->calls[1], FRAGMENT);
    refuse(w, w->calls[3], "no");
    ack(w, RUNTIME);
    refuse(w, w->calls[2], "no");
    assert_true(w->quiet || w->calls_len == 3);
    data(w, 15, "rest", 4, 0);
    h2_put(&w->out, "\0\0\x9", 3);
    feed(w, CLIENT);
    move_on(w);
}

SCENARIO(another_class_for_the_calls_to_come)
{
    call(w, 1, "Version", "one");
    session_set_class(w->session, CRI_VERSION, CRI_CLASS_OBSERVED);
    call(w, 3, "Version", "two");
    told(w, "request Version 3 two\n");
    request(w, 5, LIST);
    feed(w, CLIENT); /* has begun: goes as it did */
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_INTERCEPTED);
    message(w, 5, "three", H2_END_STREAM);
    feed(w, CLIENT);
    told(w, "");
    answer(w, 3, "v");
    told(w, "answered Version 0 v\nended Version\n");
    call(w, 7, LIST, "four");
    told(w, "request ListContainers 4 four\n");
    if (!w->quiet)
        assert_null(memmem(buffer_data(&w->to[RUNTIME]), buffer_len(&w->to[RUNTIME]), "four", 4));
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_RELAYED);
    session_set_class(w->session, CRI_VERSION, CRI_CLASS_RELAYED);
    call(w, 9, LIST, "five");
    call(w, 11, "Version", "six");
    told(w, "");
    move_on(w);
    forward(w, w->calls[0], NULL); /* intercepted when it began */
    saw(w, RUNTIME, "DATA 7 9 .....four END\n");
    answer(w, 7, "list");
    told(w, "answered ListContainers 0 list\nended ListContainers\n");
    calls_are(w, 0);
}

/* Header blocks that have come before and passed are not decoded again, until that matters. */
SCENARIO(another_class_for_calls_whose_blocks_are_known)
{
    for (uint32_t id = 1; id < 9; id += 2) {
        call(w, id, LIST, "relayed");
        answer(w, id, "list");
    }
    told(w, "");
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_INTERCEPTED);
    call(w, 9, LIST, "held");
    told(w, "request ListContainers 4 held\n");
    forward(w, w->calls[0], NULL);
    answer(w, 9, "list");
    session_set_class(w->session, CRI_LIST_CONTAINERS, CRI_CLASS_RELAYED);
    call(w, 11, LIST, "relayed");
    answer(w, 11, "list");
    told(w, "answered ListContainers 0 list\nended ListContainers\n");
    if (w->quiet)
        return;
    move_on(w);
    h2_frame(&w->out, NGHTTP2_PUSH_PROMISE, 0, 1, "", 0);
    feed_bad(w, CLIENT, "a client must not push");
    saw(w, CLIENT, "GOAWAY 11 1\n"); /* those that passed are counted */
}

/* No client sends such trailers, but they end the call's wait as others do. */
SCENARIO(trailers_that_are_a_known_block)
{
    for (uint32_t id = 1; id < 7; id += 2) {
        call(w, id, "Version", "relayed");
        answer(w, id, "v");
    }
    request(w, 7, CREATE);
    message(w, 7, "held", 0);
    feed(w, CLIENT);
    told(w, "request CreateContainer 4 held\n");
    request(w, 7, "Version");
    feed(w, CLIENT);
    told(w, "ended CreateContainer\n");
    move_on(w);
}

SCENARIO(a_client_that_is_drained)
{
    call(w, 1, CREATE, "a");
    move_on(w);
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "GOAWAY 2147483647 0\n");
    forward(w, w->calls[0], NULL);
    answer(w, 1, "id");
    saw(w, CLIENT, ANSWER_HEAD(1) "DATA 1 7 .....id\n" ANSWER_END(1));
}

/* RFC 9113 §6.8: the number of the last stream must not rise. */
SCENARIO(a_client_that_the_runtime_drains)
{
    struct buffer frame = {0};

    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    move_on(w);
    h2_goaway(&frame, 1, 0);
    h2_put(&w->out, buffer_data(&frame), 9);
    feed(w, RUNTIME);
    assert_true(session_drain(w->session)); /* between its head and its number */
    h2_put(&w->out, buffer_data(&frame) + 9, 8);
    feed(w, RUNTIME);
    saw(w, CLIENT, "GOAWAY 1 0\nWINDOW 0 +6\n");
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "");
    h2_frame(&w->out, NGHTTP2_CONTINUATION, 0, 5, "", 0);
    feed_bad(w, CLIENT, "a frame inside a header block");
    saw(w, CLIENT, "GOAWAY 1 1\n");
    buffer_fini(&frame);
}

#define EVENTS "GetContainerEvents"
#define STOPS "GetContainerEvents: cri-device-shim stops; ask again\n"

SCENARIO(container_events_end_when_a_client_is_drained)
{
    call(w, 1, EVENTS, "");
    h2_answer_head(&w->writers[RUNTIME], &w->out, 1);
    data(w, 1, "\0\0\0\0\2e1", 7, 0);
    feed(w, RUNTIME);
    call(w, 3, EVENTS, ""); /* nothing has come on it */
    request(w, 5, EVENTS);  /* its request is still to come */
    feed(w, CLIENT);
    told(w, "request GetContainerEvents 0 \nrequest GetContainerEvents 0 \n");
    move_on(w);
    assert_true(session_drain(w->session));
    saw(w, CLIENT, "GOAWAY 2147483647 0\n");
    saw(w, RUNTIME, "RST 1 8\nSETTINGS\nRST 3 8\nSETTINGS\n");
    told(w, "ended GetContainerEvents\nended GetContainerEvents\n");
    data(w, 1, "\0\0\0\0\2e2", 7, 0); /* was under way */
    feed(w, RUNTIME);
    saw(w, CLIENT, "DATA 1 7 .....e2\n");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT,
        "HEADERS 1 END grpc-status=14 grpc-message=" STOPS
        "HEADERS 3 END :status=200 content-type=application/grpc grpc-status=14 "
        "grpc-message=" STOPS);
    calls_are(w, 1);
}

/* RFC 9113 §3.4: the runtime's SETTINGS come first, though the padding's credit is owed before. */
static void nothing_comes_before_the_runtimes_settings(void **state)
{
    struct world w = {0};

    (void)state;
    world_init(&w);
    h2_put(&w.out, H2_PREFACE, strlen(H2_PREFACE));
    h2_settings(&w.out, -1, 0);
    request(&w, 1, CREATE);
    h2_data(&w.out, 1, "\0\0\0\0\3abc", 8, H2_END_STREAM, 200);
    feed(&w, CLIENT);
    assert_int_equal(buffer_len(&w.to[CLIENT]), 0);
    h2_settings(&w.out, -1, 0);
    feed(&w, RUNTIME);
    saw(&w, CLIENT, "SETTINGS\nWINDOW 0 +201\n");
    world_fini(&w);
}

static void one_that_has_not_spoken_cannot_be_drained(void **state)
{
    struct world w = {0};

    (void)state;
    world_init(&w);
    assert_false(session_drain(w.session));
    assert_int_equal(w.writes, 0);
    world_fini(&w);
}

static void what_is_not_http2_ends_at_its_first_wrong_byte(void **state)
{
    static const char *const lines[] = {"GET / HTTP/1.1\r\n", "PRI * HTTP/1.1\r\n",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\rx", "\x16\x03\x01"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        for (size_t cut = 0; cut < 2; cut++) {
            struct world w = {.cut = cut};

            world_init(&w);
            h2_put(&w.out, lines[i], strlen(lines[i]));
            feed_bad(&w, CLIENT, "the client does not speak HTTP/2");
            assert_int_equal(buffer_len(&w.to[CLIENT]), 0);
            world_fini(&w);
        }
    }
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(freed_in_every_phase_script);
    without_memory(container_events_end_when_a_client_is_drained_script);
}

static unsigned clock_readings;

static uint64_t tick(void)
{
    return 1000 * ++clock_readings;
}

/* Calls of one read have come at one time, whichever way their blocks take. */
static void calls_are_timed_by_the_read(void **state)
{
    static struct tally_counts counts;
    struct tally tally = {.counts = &counts, .now_us = tick};
    struct world w = {0};

    (void)state;
    world_init(&w);
    greet(&w);
    session_set_tally(w.session, &tally);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            request(&w, (uint32_t)round * 6 + 2 * i + 1, "Status");
            message(&w, (uint32_t)round * 6 + 2 * i + 1, "", H2_END_STREAM);
        }
        feed(&w, CLIENT);
        assert_int_equal(clock_readings, 2 * round + 1);
        for (uint32_t i = 0; i < 3; i++)
            h2_answer_end(&w.writers[RUNTIME], &w.out, (uint32_t)round * 6 + 2 * i + 1, "5");
        feed(&w, RUNTIME);
        assert_int_equal(clock_readings, 2 * round + 2);
    }
    assert_int_equal(counts.ended[CRI_OTHER][5], 9);
    assert_int_equal(counts.took[CRI_OTHER].sum_us, 9 * 1000);
    move_on(&w);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_traffic_passes_byte_for_byte),
        cmocka_unit_test(one_read_is_one_write),
        cmocka_unit_test(a_decision_in_the_middle_of_a_frame),
        cmocka_unit_test(freed_in_every_phase),
        cmocka_unit_test(another_class_for_the_calls_to_come),
        cmocka_unit_test(another_class_for_calls_whose_blocks_are_known),
        cmocka_unit_test(trailers_that_are_a_known_block),
        cmocka_unit_test(a_client_that_is_drained),
        cmocka_unit_test(a_client_that_the_runtime_drains),
        cmocka_unit_test(container_events_end_when_a_client_is_drained),
        cmocka_unit_test(nothing_comes_before_the_runtimes_settings),
        cmocka_unit_test(one_that_has_not_spoken_cannot_be_drained),
        cmocka_unit_test(what_is_not_http2_ends_at_its_first_wrong_byte),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
        cmocka_unit_test(calls_are_timed_by_the_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
