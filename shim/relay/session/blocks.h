/*
 * Header blocks as they pass, HEADERS with their CONTINUATIONs, of both ends: to the listeners
 * (header_listener.h), and what a block says to whom it concerns.
 */
#ifndef SHIM_RELAY_SESSION_BLOCKS_H
#define SHIM_RELAY_SESSION_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frame.h"
#include "shim/relay/session.h"

/* Whether a frame with this head must not come here: blocks are contiguous (RFC 9113 §4.3). */
bool blocks_broken(const struct session *s, enum session_end from, const struct frame_head *h);

/* A frame of a block begins, goes on; with the end of its last the block is complete. 0, or the
 * session's error. */
int blocks_head(struct session *s, enum session_end from, const struct frame_head *h);
int blocks_piece(struct session *s, enum session_end from, const uint8_t *body, size_t len);
int blocks_end(struct session *s, enum session_end from);

/* All of these in one, of a block in one frame that has come whole. */
int blocks_whole(struct session *s, enum session_end from, const struct frame_head *h,
                 const uint8_t *body, size_t len);

#endif
