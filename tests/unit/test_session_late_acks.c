/*
 * shim/relay/session/late_acks.c, by scripts (session_script.h).
 */
#include "session_script.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Three bytes of stream 3 are parked, HIJ, though the client has sent no more than it may. */
static void park(struct world *w)
{
    w->plan = PLAN_FRAGMENT;
    call(w, 1, CREATE, "abc"); /* 10 bytes more than the client knows */
    request(w, 3, "RunPodSandbox");
    fill(w, 3, 65500, 0);
    data(w, 3, "0123456789ABCDEFGHIJ", 20, 0);
    feed(w, CLIENT);
    move_on(w);
}

/* RFC 9113 §6.9.2: behind its ACK a lower window counts, for what the client sent before as
 * well. */
SCENARIO(the_ack_of_a_lower_window_waits_for_what_is_parked)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    h2_settings(&w->out, 4, 70000);
    feed(w, RUNTIME);
    move_on(w);
    h2_settings_ack(&w->out);
    data(w, 3, "more", 4, 0);
    h2_settings_ack(&w->out);
    request(w, 5, "CreateContainer");
    feed(w, CLIENT);
    saw(w, RUNTIME, HEAD(5));
    h2_window(&w->out, 0, 2);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 2 HI\n");
    h2_window(&w->out, 0, 2);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 2 Jm\nSETTINGS ACK\nSETTINGS ACK\n");
    h2_window(&w->out, 0, 100);
    feed(w, RUNTIME);
    saw(w, RUNTIME, "DATA 3 3 ore\n");
    h2_settings(&w->out, 4, 50);
    feed(w, RUNTIME);
    move_on(w);
    ack(w, CLIENT);
    saw(w, RUNTIME, "SETTINGS ACK\n");
}

SCENARIO(the_ack_of_a_lower_window_goes_when_what_is_parked_goes)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    feed(w, RUNTIME);
    move_on(w);
    ack(w, CLIENT);
    saw(w, RUNTIME, "");
    h2_rst(&w->out, 3, 8);
    feed(w, CLIENT);
    saw(w, RUNTIME, "RST 3 8\nSETTINGS ACK\n");
}

/* A header block behind the ACK may be written with the new table; it cannot wait, nor can the ACK
 * then. What is parked was not seen by the runtime, and the client is told that. */
SCENARIO(a_header_block_behind_the_ack_of_a_lower_window)
{
    park(w);
    h2_settings(&w->out, 4, 100);
    h2_settings(&w->out, 1, 4096);
    feed(w, RUNTIME);
    move_on(w);
    h2_settings_ack(&w->out);
    h2_settings_ack(&w->out);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    request(w, 5, CREATE);
    feed(w, CLIENT);
    saw(w, RUNTIME, "RST 3 8\nSETTINGS\nSETTINGS ACK\nSETTINGS ACK\n" HEAD(5));
    data(w, 3, "more", 4, H2_END_STREAM);
    feed(w, CLIENT);
    saw(w, RUNTIME, "");
    ack(w, RUNTIME);
    saw(w, CLIENT, "RST 3 7\nSETTINGS\n");
    ack(w, CLIENT);
    calls_are(w, 2);
}

static void without_memory_nothing_leaks_or_breaks(void **state)
{
    (void)state;
    without_memory(the_ack_of_a_lower_window_waits_for_what_is_parked_script);
    without_memory(a_header_block_behind_the_ack_of_a_lower_window_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ack_of_a_lower_window_waits_for_what_is_parked),
        cmocka_unit_test(the_ack_of_a_lower_window_goes_when_what_is_parked_goes),
        cmocka_unit_test(a_header_block_behind_the_ack_of_a_lower_window),
        cmocka_unit_test(without_memory_nothing_leaks_or_breaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
