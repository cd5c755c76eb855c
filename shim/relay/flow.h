/*
 * The flow-control ledger of the direction client → runtime (RFC 9113 §5.2), for a connection or a
 * stream.
 *
 * Windows stay end to end as long as every byte passes. The relay withholds bytes, adds some, drops
 * some, and credits the client early; the ledger says what is then owed to whom. It keeps four
 * numbers:
 *
 *   send     what we may still send to the runtime
 *   client   what the client believes it may still send
 *   pending  bytes withheld or added that will be sent to the runtime later
 *   surplus  client - send + pending: by how much the client's belief will be too large once all
 *            that is pending has been sent
 *
 * A positive surplus is paid back by swallowing that much of the runtime's WINDOW_UPDATEs; a
 * negative one, which nobody else would ever pay, by a WINDOW_UPDATE of our own. flow_check() says
 * whether the identity holds.
 */
#ifndef SHIM_RELAY_FLOW_H
#define SHIM_RELAY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct flow {
    int64_t send;
    int64_t client;
    int64_t pending;
    int64_t surplus;
};

/* `window`: the initial window, 65,535 for a connection. */
void flow_init(struct flow *f, int64_t window);

/* The initial window of streams changed by `delta`, for both ends (RFC 9113 §6.9.2). */
void flow_shift(struct flow *f, int64_t delta);

/* `bytes` of DATA came from the client and went on at once. */
void flow_passed(struct flow *f, uint64_t bytes);

/* A DATA frame of `frame_bytes`, padding included, was withheld; `kept_bytes` of it will be sent
 * later. */
void flow_withheld(struct flow *f, uint32_t frame_bytes, uint32_t kept_bytes);

/* `bytes` of ours will be sent to the runtime as well. */
void flow_added(struct flow *f, uint64_t bytes);

/* `bytes` of what was pending have been sent. */
void flow_sent(struct flow *f, uint64_t bytes);

/* `bytes` of what was pending will never be sent. */
void flow_dropped(struct flow *f, uint64_t bytes);

/* The runtime's WINDOW_UPDATE came; returns how much of it the client is to be told, 0: swallow
 * it. */
uint32_t flow_update(struct flow *f, uint32_t increment);

/* We credit the client with `bytes` ourselves. */
void flow_credit(struct flow *f, uint32_t bytes);

/* What the client must be credited now because nobody else will: 0 or more. */
uint32_t flow_owed(const struct flow *f);

/* By how much the client's window lags behind what it could have been for withheld bytes: 0 or
 * more. */
uint32_t flow_lag(const struct flow *f);

/* Whether it does: asserted after each credit, and asked of a ledger that was read
 * (session/freeze.c). */
bool flow_check(const struct flow *f);

#endif
