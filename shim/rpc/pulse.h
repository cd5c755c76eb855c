/*
 * Whether the other end of a link lives: of one that is silent a PING is asked, and one that does
 * not answer it either is taken to hang. Every HTTP/2 peer answers (RFC 9113 §6.7).
 *
 *     HEARD ──every_ms of silence──▶ ASKED ──every_ms of silence──▶ DOUBTED ──still nothing──▶ DEAD
 *       ▲                              │                              │
 *       └────────────────────────── bytes ────────────────────────────┘
 *
 * DOUBTED lasts a turn of the loop: what came while this process itself was stopped is read first.
 */
#ifndef SHIM_RPC_PULSE_H
#define SHIM_RPC_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct link;

enum pulse_state {
    PULSE_HEARD,
    PULSE_ASKED,
    PULSE_DOUBTED,
    PULSE_DEAD,
};

/* Embedded in its link. */
struct pulse {
    uint64_t every_ms; /* 0, at first: it is not looked at; set before the link is open */

    /* private */
    enum pulse_state state;
    bool heard; /* since the timer was started */
    uv_timer_t timer;
};

void pulse_init(struct pulse *pulse, uv_loop_t *loop, struct link *link);
/* The link is open. */
void pulse_begin(struct pulse *pulse);
/* Bytes came. */
void pulse_heard(struct pulse *pulse);
/* Whether the link was broken because the peer hangs. */
bool pulse_is_dead(const struct pulse *pulse);

#endif
