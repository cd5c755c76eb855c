/*
 * What the client sends on its streams: requests, which pass, are shown or are withheld, and
 * resets.
 */
#ifndef SHIM_RELAY_SESSION_FROM_CLIENT_H
#define SHIM_RELAY_SESSION_FROM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frame.h"
#include "shim/relay/lane.h"

struct session;

/* HEADERS begin on a stream. */
void from_client_headers_head(struct session *s, uint32_t stream_id);
/* Its header block is complete. 0, or the session's error. */
int from_client_headers_end(struct session *s, uint32_t stream_id, bool ends_stream);

/* A DATA frame begins, goes on, is whole; as lane_ops. */
int from_client_data_head(struct session *s, const struct frame_head *h, enum lane_how *how);
int from_client_data_piece(struct session *s, const struct lane *lane, const uint8_t *body,
                           size_t body_bytes, size_t wire_bytes);
void from_client_data_end(struct session *s, const struct lane *lane);

/* RST_STREAM; whether it passes. */
void from_client_reset(struct session *s, uint32_t stream_id, enum lane_how *how);

/* The session was thawed: the owner is told of all that waits for a decision. */
void from_client_ask_again(struct session *s);

#endif
