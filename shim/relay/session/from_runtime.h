/*
 * What the runtime sends: answers, which pass and are shown, resets, windows, and that it goes
 * away.
 */
#ifndef SHIM_RELAY_SESSION_FROM_RUNTIME_H
#define SHIM_RELAY_SESSION_FROM_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frame.h"
#include "shim/relay/lane.h"

struct session;

/* A header block on a stream is complete. */
void from_runtime_headers_end(struct session *s, uint32_t stream_id, bool ends_stream);

/* A piece of a DATA frame has passed; a frame with END_STREAM has. */
void from_runtime_data_piece(struct session *s, uint32_t stream_id, const uint8_t *body,
                             size_t len);
void from_runtime_data_ended(struct session *s, uint32_t stream_id);

/* RST_STREAM; whether it passes. */
void from_runtime_reset(struct session *s, uint32_t stream_id, enum lane_how *how);

/* A WINDOW_UPDATE, gathered; passes what the client is to be told of it. */
void from_runtime_window_update(struct session *s, const struct frame_head *h,
                                const uint8_t *whole);

/* A GOAWAY begins, goes on, is whole: streams above the last one that the runtime will look at are
 * over (RFC 9113 §6.8). */
void from_runtime_goaway_head(struct session *s);
void from_runtime_goaway_piece(struct session *s, const uint8_t *body, size_t len);
void from_runtime_goaway_end(struct session *s);

#endif
