/*
 * How a call ends that the runtime does not answer, or not soon enough: the answers of our own, and
 * how an end is brought to say its last.
 *
 * Either end is stopped by RST_STREAM with an empty SETTINGS behind it, the *barrier*: ACKs come in
 * the order of the SETTINGS (RFC 9113 §6.5.3), so with ours the end has said its last on that
 * stream.
 *
 * A refusal waits for the runtime's, since a header block of the runtime's that was simply dropped
 * would leave the client's HPACK table out of step. If the runtime's own answer comes first, that
 * one passes. Then the client gets its answer: trailers only, all fields as literals without
 * indexing (RFC 7541 §6.2.2), which change no table. One that has not ended its request is asked to
 * stop.
 */
#ifndef SHIM_RELAY_SESSION_ENDING_H
#define SHIM_RELAY_SESSION_ENDING_H

#include "shim/relay/frame.h"

struct session;
struct stream;

/* In the place of a status: RST_STREAM, which says that the runtime has not seen the whole request,
 * so that gRPC's clients send it again by themselves (RFC 9113 §8.7). */
#define ENDING_RESET (-1)

/* The client will have its answer from us: a gRPC code with `message`, which is copied, or
 * ENDING_RESET. The call is over for the owner, who is not told. */
void ending_cut_short(struct session *s, struct stream *st, int code, const char *message);

/* The same by the relay itself, of a call of which bytes are withheld; the text says which
 * method. */
void ending_refuse(struct session *s, struct stream *st, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The runtime is told to stop; ending_runtime_stopped() follows. */
void ending_stop_runtime(struct session *s, struct stream *st);

/* Nothing more of the client's is wanted on this stream: it is asked to stop (RFC 9113 §8.1). What
 * it still sends is thrown away until it has read that. The stream is STOPPING. */
void ending_stop_client(struct session *s, struct stream *st, enum frame_error code);

/* The barrier was acknowledged; the stream may be gone. Of the client its END_STREAM will do. */
void ending_runtime_stopped(struct session *s, uint32_t stream_id);
void ending_client_stopped(struct session *s, uint32_t stream_id);

#endif
