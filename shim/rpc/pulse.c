#include "shim/rpc/pulse.h"

#include <assert.h>

#include "shim/rpc/link.h"

static void pulse_set_state(struct pulse *pulse, enum pulse_state state)
{
    static const unsigned from[] = {
        [PULSE_HEARD] = 1u << PULSE_HEARD | 1u << PULSE_ASKED | 1u << PULSE_DOUBTED,
        [PULSE_ASKED] = 1u << PULSE_HEARD,
        [PULSE_DOUBTED] = 1u << PULSE_ASKED,
        [PULSE_DEAD] = 1u << PULSE_DOUBTED,
    };

    assert(from[state] & 1u << pulse->state);
    pulse->state = state;
}

static void on_timer(uv_timer_t *timer);

static void wait_for(struct pulse *pulse, uint64_t wait_ms)
{
    pulse->heard = false;
    uv_timer_start(&pulse->timer, on_timer, wait_ms, 0);
}

static void ask(struct link *link)
{
    if (nghttp2_submit_ping(link->session, NGHTTP2_FLAG_NONE, NULL))
        link_break(link, "no memory to ask the peer whether it lives");
    link_wake(link);
}

static void on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;
    struct pulse *pulse = &link->pulse;

    if (pulse->heard) {
        pulse_set_state(pulse, PULSE_HEARD);
        wait_for(pulse, pulse->every_ms);
    } else if (pulse->state == PULSE_HEARD) {
        ask(link);
        pulse_set_state(pulse, PULSE_ASKED);
        wait_for(pulse, pulse->every_ms);
    } else if (pulse->state == PULSE_ASKED) {
        pulse_set_state(pulse, PULSE_DOUBTED);
        wait_for(pulse, 1);
    } else {
        pulse_set_state(pulse, PULSE_DEAD);
        link_break(link, "the peer hangs: it does not answer");
    }
}

void pulse_init(struct pulse *pulse, uv_loop_t *loop, struct link *link)
{
    pulse->every_ms = 0;
    pulse->state = PULSE_HEARD;
    uv_timer_init(loop, &pulse->timer);
    pulse->timer.data = link;
}

void pulse_begin(struct pulse *pulse)
{
    if (pulse->every_ms > 0)
        wait_for(pulse, pulse->every_ms);
}

void pulse_heard(struct pulse *pulse)
{
    pulse->heard = true;
}

bool pulse_is_dead(const struct pulse *pulse)
{
    return pulse->state == PULSE_DEAD;
}
