/*
 * ACKs of the client's that wait for bytes it sent before them.
 *
 * What the client has sent under a window and we have parked may be too much for the runtime behind
 * the ACK of a lower one (RFC 9113 §6.5.3, §6.9.2). A stream with a ledger sends no more than its
 * new window. For one without the ACK itself waits, with all that follow it, until what was parked
 * before it has been sent.
 */
#ifndef SHIM_RELAY_SESSION_LATE_ACKS_H
#define SHIM_RELAY_SESSION_LATE_ACKS_H

#include <stdbool.h>
#include <stdint.h>

struct session;
struct settings_sent;

/* For embedding; zeroed there are none. */
struct late_acks {
    unsigned count;
    bool has_table_size; /* one of them lets the client's encoder change its table */
    bool has_window;
    uint32_t window; /* the last of theirs */
};

/* Whether the client's ACK of `sent` must wait: then it has been noted, and must not pass. Until it
 * goes, late_acks_look() follows each frame that may end the wait. */
bool late_acks_take(struct session *s, const struct settings_sent *sent);

/* There are some: sends them if what they wait for is gone. */
void late_acks_look(struct session *s);

/* A header block of the client's comes, which may need a late ACK before it, for the runtime's
 * decoder: it does not wait. What is parked is given back to the client. */
void late_acks_hurry(struct session *s);

#endif
