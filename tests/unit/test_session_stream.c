/*
 * shim/relay/session/stream.c: what a stream waits for in each of its phases, by scripts, and the
 * moves that there are.
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/log.h"
#include "shim/relay/limits.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"

/* "OWNER", "ANSWER WINDOW". */
static void print_waits(unsigned waits, char text[64])
{
    static const struct {
        unsigned wait;
        const char *name;
    } NAMES[] = {
        {STREAM_WAIT_MESSAGE, "MESSAGE"}, {STREAM_WAIT_OWNER, "OWNER"},
        {STREAM_WAIT_ANSWER, "ANSWER"},   {STREAM_WAIT_WINDOW, "WINDOW"},
        {STREAM_WAIT_CLIENT, "CLIENT"},   {STREAM_WAIT_RUNTIME, "RUNTIME"},
    };
    int len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (waits & NAMES[i].wait)
            len += sprintf(text + len, "%s%s", len > 0 ? " " : "", NAMES[i].name);
    }
}

/* "PHASE WAITS" of a stream; "gone". */
static void is(const struct world *w, uint32_t id, const char *expected)
{
    const struct stream *st = w->session ? stream_find(w->session->streams, id) : NULL;
    char waits[64], text[128] = "gone";

    if (w->quiet)
        return;
    if (st) {
        print_waits(stream_waits(st), waits);
        snprintf(text, sizeof text, "%s %s", stream_phase_name(st->phase), waits);
    }
    assert_string_equal(text, expected);
}

SCENARIO(a_call_that_is_forwarded)
{
    is(w, 1, "gone");
    request(w, 1, CREATE);
    feed(w, CLIENT);
    is(w, 1, "COLLECT MESSAGE");
    message(w, 1, "hello", 0);
    feed(w, CLIENT);
    is(w, 1, "DECIDE OWNER");
    forward(w, w->calls[0], NULL);
    is(w, 1, "OPEN ANSWER");
    data(w, 1, "", 0, H2_END_STREAM);
    feed(w, CLIENT);
    is(w, 1, "OPEN ANSWER");
    answer(w, 1, "id");
    is(w, 1, "gone");
}

/* The streams of which each frame is looked at. */
static void watched(const struct world *w, uint64_t bits)
{
    if (w->quiet)
        return;
    assert_true(w->session->sides[CLIENT].lane.watched == bits);
    assert_true(w->session->sides[RUNTIME].lane.watched == bits);
}

SCENARIO(no_more_streams_are_watched_than_are_known)
{
    call(w, 1, "GetContainerEvents", "");
    watched(w, 1);
    call(w, 3, "Version", "");
    call(w, 5, CREATE, "hello");
    watched(w, 1 | 4);
    call(w, 5 + 128, CREATE, "shares a bit");
    watched(w, 1 | 4);
    forward(w, w->calls[1], NULL);
    answer(w, 5, "id");
    watched(w, 1 | 4);
    refuse(w, w->calls[1], "no");
    watched(w, 1 | 4);
    ack(w, RUNTIME);
    watched(w, 1);
    answer(w, 3, "v");
    h2_rst(&w->out, 1, 8);
    feed(w, CLIENT);
    watched(w, 0);
}

SCENARIO(a_call_without_a_window)
{
    h2_settings(&w->out, 4, 3);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    call(w, 1, CREATE, "hello");
    forward(w, w->calls[0], NULL);
    is(w, 1, "OPEN ANSWER WINDOW");
    h2_window(&w->out, 1, 100);
    feed(w, RUNTIME);
    is(w, 1, "OPEN ANSWER");
}

SCENARIO(a_call_that_is_refused)
{
    request(w, 1, CREATE);
    message(w, 1, "hello", 0);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    is(w, 1, "BARRIER RUNTIME");
    ack(w, RUNTIME);
    is(w, 1, "STOPPING CLIENT");
    ack(w, CLIENT);
    is(w, 1, "gone");
    call(w, 3, CREATE, "hello"); /* the client has ended its side */
    refuse(w, w->calls[0], "no");
    is(w, 3, "BARRIER RUNTIME");
    ack(w, RUNTIME);
    is(w, 3, "gone");
}

SCENARIO(a_call_that_is_answered_too_early)
{
    for (uint32_t id = 1; id <= 3; id += 2) {
        request(w, id, CREATE);
        message(w, id, "hello", 0);
        feed(w, CLIENT);
        h2_answer_end(&w->writers[RUNTIME], &w->out, id, "8");
        feed(w, RUNTIME);
        is(w, id, "STOPPING CLIENT RUNTIME");
        ack(w, id == 1 ? RUNTIME : CLIENT);
        is(w, id, id == 1 ? "STOPPING CLIENT" : "STOPPING RUNTIME");
        ack(w, id == 1 ? CLIENT : RUNTIME);
        is(w, id, "gone");
    }
}

SCENARIO(calls_that_are_not_withheld)
{
    request(w, 1, "StopPodSandbox");
    request(w, 3, "Version");
    feed(w, CLIENT);
    is(w, 1, "OPEN ANSWER");
    is(w, 3, "gone");
    message(w, 1, "pod", H2_END_STREAM);
    feed(w, CLIENT);
    answer(w, 1, "");
    is(w, 1, "gone");
}

/* ---- moves ---- */

static const enum stream_phase PHASES[] = {STREAM_COLLECT, STREAM_DECIDE, STREAM_OPEN,
                                           STREAM_BARRIER, STREAM_STOPPING};

/* In a process of its own, since a move that must not be ends it. */
static bool can_move(enum stream_phase from, enum stream_phase to)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct stream st = {.phase = from};

        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        stream_move(&st, to);
        _exit(st.phase != to);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGABRT);
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

static void the_moves_of_the_picture_and_no_others(void **state)
{
    static const char *const MOVES[] = {
        [STREAM_NEW] = "COLLECT OPEN ",
        [STREAM_COLLECT] = "DECIDE OPEN BARRIER STOPPING ",
        [STREAM_DECIDE] = "OPEN BARRIER STOPPING ",
        [STREAM_OPEN] = "BARRIER STOPPING ",
        [STREAM_BARRIER] = "STOPPING ",
        [STREAM_STOPPING] = "",
    };

    (void)state;
    for (enum stream_phase from = STREAM_NEW; from <= STREAM_STOPPING; from++) {
        char text[128] = "";

        for (size_t i = 0; i < sizeof PHASES / sizeof *PHASES; i++) {
            if (can_move(from, PHASES[i]))
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s ",
                         stream_phase_name(PHASES[i]));
        }
        assert_string_equal(text, MOVES[from]);
    }
}

/* ---- the table ---- */

/* Numbers as a client gives them, of which any may be looked up, and none is found that is not
 * there. */
static void many_streams_are_found(void **state)
{
    struct world w = {0};

    (void)state;
    world_init(&w);
    greet(&w);
    for (uint32_t id = 1; id < 2 * RELAY_STREAMS_MAX; id += 2)
        assert_non_null(stream_new(w.session, id, CRI_OTHER));
    assert_null(stream_new(w.session, 2 * RELAY_STREAMS_MAX + 1, CRI_OTHER));
    for (uint32_t id = 0; id < 2 * RELAY_STREAMS_MAX + 10; id++) {
        const struct stream *st = stream_find(w.session->streams, id);

        assert_true(id % 2 && id < 2 * RELAY_STREAMS_MAX ? st && st->id == id : !st);
    }
    calls_are(&w, RELAY_STREAMS_MAX);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_forwarded),
        cmocka_unit_test(no_more_streams_are_watched_than_are_known),
        cmocka_unit_test(a_call_without_a_window),
        cmocka_unit_test(a_call_that_is_refused),
        cmocka_unit_test(a_call_that_is_answered_too_early),
        cmocka_unit_test(calls_that_are_not_withheld),
        cmocka_unit_test(the_moves_of_the_picture_and_no_others),
        cmocka_unit_test(many_streams_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
