/*
 * The first gRPC message of a stream's request or answer: when it is whole, and what it says
 * (session_call.message).
 */
#ifndef SHIM_RELAY_SESSION_CALL_MESSAGE_H
#define SHIM_RELAY_SESSION_CALL_MESSAGE_H

#include <stddef.h>

#include "shim/relay/buffer.h"

struct message_budget;
struct stream;

enum call_message_state { CALL_MESSAGE_PARTIAL, CALL_MESSAGE_WHOLE, CALL_MESSAGE_TOO_LARGE };

/* Of the message that `b` begins with; *bytes_out is its length without its head, unless the head
 * is partial. */
enum call_message_state call_message_measure(const struct buffer *b, size_t *bytes_out);

/* How many bytes of it, or else of its head, are still to come. */
size_t call_message_to_come(const struct buffer *b);

/* Points call.message at the first message in `b`, of `bytes`, which is whole; inflated if need be,
 * within `room`. `b` and `room` are borrowed until call_message_close(). 0, or the gRPC code of
 * what is wrong with it: INTERNAL, which no runtime reads; DATA_LOSS, gzip of which Go may read
 * more than zlib does (several members, unknown flags). */
int call_message_open(struct stream *st, const struct buffer *b, size_t bytes,
                      struct message_budget *room);

/* More has come behind a message that is held, and the queue may have moved. */
void call_message_moved(struct stream *st);

/* There is no message any more. May be called again. */
void call_message_close(struct stream *st);

#endif
