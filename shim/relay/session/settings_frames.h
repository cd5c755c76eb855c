/*
 * SETTINGS frames as they pass, and their ACKs: table sizes for the header listeners, windows and
 * frame sizes of the runtime's for what we withhold (RFC 9113 §6.5).
 */
#ifndef SHIM_RELAY_SESSION_SETTINGS_FRAMES_H
#define SHIM_RELAY_SESSION_SETTINGS_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "shim/relay/lane.h"
#include "shim/relay/session.h"

/* One of `from` begins, goes on, is whole. The head, and the ACK: 0, or the session's error. */
int settings_frames_head(struct session *s, enum session_end from);
void settings_frames_piece(struct session *s, enum session_end from, const uint8_t *body,
                           size_t len);
void settings_frames_end(struct session *s, enum session_end from);

/* An ACK from `from`, whose encoder obeys the other end's SETTINGS from here on; it is kept if it
 * is for us, or must wait. */
int settings_frames_ack(struct session *s, enum session_end from, enum lane_how *how);

#endif
