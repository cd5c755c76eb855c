/*
 * One call on a channel, as the session sees it.
 *
 *     WAITING ──headers──▶ ANSWERED ──trailers──▶ OVER
 *        └─ trailers only, reset, deadline, lost, cancel ─▶ OVER
 *
 * WAITING waits for the server, ANSWERED for messages and the end. OVER waits for the timer's close
 * callback, which frees the call.
 */
#ifndef SHIM_RPC_CALL_H
#define SHIM_RPC_CALL_H

#include "shim/rpc/channel.h"

/* Takes the call out of everything, without a word; its memory stays until the loop's next turn. */
void call_detach(struct rpc_call *call);
/* The same, and tells its owner. */
void call_end(struct rpc_call *call, int code, const char *text);

/* Of struct link_ops, for a channel's link. */
void call_frame_received(struct link *link, const nghttp2_frame *frame);
void call_frame_sent(struct link *link, const nghttp2_frame *frame);
int call_headers_begin(struct link *link, const nghttp2_frame *frame);
int call_header(void *stream, const uint8_t *name, size_t name_len, const uint8_t *value,
                size_t len);
void call_data(void *stream, const uint8_t *data, size_t len);
void call_stream_closed(void *stream, uint32_t error_code);

#endif
