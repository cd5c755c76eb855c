/*
 * shim/relay/session/settings_frames.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "shim/relay/limits.h"

SCENARIO(acks_go_to_whom_they_belong)
{
    call(w, 1, CREATE, "a");
    call(w, 3, CREATE, "b");
    call(w, 5, CREATE, "c");
    move_on(w);
    h2_settings(&w->out, 3, 50);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "one");
    h2_settings(&w->out, 3, 60);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "two");
    refuse(w, w->calls[0], "three");
    h2_settings(&w->out, 3, 70);
    feed(w, CLIENT);
    saw(w, RUNTIME,
        "SETTINGS 3=50\nRST 1 8\nSETTINGS\nSETTINGS 3=60\nRST 3 8\nSETTINGS\nRST 5 8\nSETTINGS\n"
        "SETTINGS 3=70\n");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "one"));
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(3, "two") REFUSAL(5, "three"));
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
}

/* A refusal that falls while the client's SETTINGS are half through goes out behind them. */
SCENARIO(a_barrier_behind_half_a_settings_frame)
{
    struct buffer frame = {0};

    call(w, 1, CREATE, "a");
    move_on(w);
    h2_settings(&frame, 3, 50);
    h2_put(&w->out, buffer_data(&frame), 12);
    feed(w, CLIENT);
    refuse(w, w->calls[0], "no");
    h2_put(&w->out, buffer_data(&frame) + 12, 3);
    feed(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS 3=50\nRST 1 8\nSETTINGS\n");
    move_on(w);
    ack(w, RUNTIME);
    saw(w, CLIENT, "SETTINGS ACK\n");
    ack(w, RUNTIME);
    saw(w, CLIENT, REFUSAL(1, "no"));
    buffer_fini(&frame);
}

/* Acknowledged before it is whole: the runtime knows no better, and nothing may be written to the
 * entry that is gone. */
SCENARIO(an_ack_before_the_settings_are_whole)
{
    struct buffer frame = {0};

    h2_settings(&frame, 1, 64);
    h2_put(&w->out, buffer_data(&frame), 10);
    feed(w, CLIENT);
    ack(w, RUNTIME);
    h2_put(&w->out, buffer_data(&frame) + 10, 5);
    feed(w, CLIENT);
    buffer_fini(&frame);
    h2_settings(&frame, 4, 70000);
    h2_put(&w->out, buffer_data(&frame), 10);
    feed(w, RUNTIME);
    ack(w, CLIENT);
    h2_put(&w->out, buffer_data(&frame) + 10, 5);
    feed(w, RUNTIME);
    buffer_fini(&frame);
    same(&w->to[RUNTIME], &w->fed[CLIENT]);
    same(&w->to[CLIENT], &w->fed[RUNTIME]);
}

SCENARIO(a_flood_of_settings)
{
    for (int i = 0; i < RELAY_SETTINGS_PENDING_MAX; i++)
        h2_settings(&w->out, -1, 0);
    feed(w, CLIENT);
    h2_settings(&w->out, -1, 0);
    feed_bad(w, CLIENT, "too many SETTINGS without an ACK");
    saw(w, CLIENT, "GOAWAY 0 11\n");
}

SCENARIO(a_runtimes_flood_of_settings)
{
    for (int i = 0; i < RELAY_SETTINGS_PENDING_MAX; i++)
        h2_settings(&w->out, -1, 0);
    feed(w, RUNTIME);
    h2_settings(&w->out, -1, 0);
    feed_bad(w, RUNTIME, "SETTINGS cannot be kept");
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(acks_go_to_whom_they_belong_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_go_to_whom_they_belong),
        cmocka_unit_test(a_barrier_behind_half_a_settings_frame),
        cmocka_unit_test(an_ack_before_the_settings_are_whole),
        cmocka_unit_test(a_flood_of_settings),
        cmocka_unit_test(a_runtimes_flood_of_settings),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
