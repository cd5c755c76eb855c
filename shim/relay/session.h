/*
 * One client connection and its runtime connection, seen as two lanes of HTTP/2 frames.
 *
 * A core without I/O: bytes of either end go in, bytes for either end come out through ops->write,
 * verbatim but for the calls the shim has a part in:
 *
 *   observed      bytes pass; the request and the answer are shown to the owner
 *   intercepted   HEADERS pass at once, the request message is withheld until the owner has said
 *                 session_forward() or session_refuse()
 *
 * The life of an intercepted call:
 *
 *   COLLECT ──whole──▶ DECIDE ──forward──▶ OPEN ──answer passed──▶ gone
 *      │                 └────refuse────▶ BARRIER ──our SETTINGS acknowledged──▶ REFUSED ──client
 * done──▶ gone └──too large──────────────────────────▲
 *
 * BARRIER: RST_STREAM and an empty SETTINGS have gone to the runtime. ACKs come in the order of the
 * SETTINGS (RFC 9113 §6.5.3), so with ours the runtime has said its last on that stream, and the
 * answer can be put into the client's lane without taking a header block of the runtime's away,
 * which would break the client's HPACK table.
 *
 * REFUSED: the client has its answer. One that has not ended its request is asked to stop by
 * RST_STREAM, with an empty SETTINGS behind it; what it sends until its ACK is thrown away and
 * credited. A runtime that answers before it was let see the whole request leads there as well.
 *
 * Not thread-safe, reads no clock. Callbacks other than write run from session_feed(), ended() also
 * from session_free() and session_drain(); they may call forward and refuse at once, but neither
 * session_feed() nor session_free().
 */
#ifndef SHIM_RELAY_SESSION_H
#define SHIM_RELAY_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "cri-proto/methods.h"

enum session_end { SESSION_CLIENT, SESSION_RUNTIME };

/* A call that is observed or intercepted. Lives until ended() or session_refuse(). */
struct session_call {
    enum cri_method method;
    uint64_t timeout_ms; /* the client's grpc-timeout when the call began; UINT64_MAX: none */
    /* The request message, inflated; borrowed: of an observed call until request() returns, of an
     * intercepted one until it is forwarded or refused. The bytes may move at a session_feed(), and
     * this with them: do not copy the pointer. */
    const uint8_t *message;
    size_t message_bytes;
    void *user; /* the owner's; NULL at first */
};

struct session_ops {
    /* `n` pieces for one end, in order; borrowed until return. Must not call back into the session.
     */
    void (*write)(void *user, enum session_end to, const struct iovec *pieces, int n);
    /* The request is whole. An intercepted call waits for session_forward() or session_refuse(). */
    void (*request)(void *user, struct session_call *call);
    /* The runtime has answered; `status` is the gRPC code, `message` its one message, inflated, or
     * NULL when there is none or it cannot be read. Follows request(). */
    void (*answered)(void *user, struct session_call *call, int status, const uint8_t *message,
                     size_t message_bytes);
    /* The call is over, answered or not: reset by either end, or the session ends. Follows
     * request(). */
    void (*ended)(void *user, struct session_call *call);
    /* The session cannot go on, see session_error(), and it was not session_feed() that found out:
     * both connections are to be closed. Must not call back into the session. */
    void (*failed)(void *user);
};

struct session;

/* `ops` and `user` borrowed until session_free(). NULL: out of memory. */
struct session *session_new(const struct session_ops *ops, void *user);

/* Every call is ended(); nothing is written. Accepts NULL. */
void session_free(struct session *s);

/*
 * Bytes from one end. 0, or a negative code when the session cannot go on and both connections are
 * to be closed after what was written: -EPROTO the peer broke the protocol, -ENOMEM. A client that
 * broke it, and speaks HTTP/2, is told by a GOAWAY, unless a frame to it is half written.
 */
int session_feed(struct session *s, enum session_end from, const uint8_t *bytes, size_t len)
    __attribute__((warn_unused_result));

/*
 * Lets an intercepted call go on. `fragment` (may be NULL) is put in front of its message: both are
 * encoded CreateContainerRequests, and concatenation is how protobuf merges. 0, or -ENOMEM, then
 * the call is still undecided.
 */
int session_forward(struct session *s, struct session_call *call, const void *fragment,
                    size_t fragment_bytes) __attribute__((warn_unused_result));

/* The same, with another message in the place of the client's: copied, and sent as it is; its size
 * is the caller's to limit. */
int session_forward_instead(struct session *s, struct session_call *call, const void *fragment,
                            size_t fragment_bytes, const void *message, size_t message_bytes)
    __attribute__((warn_unused_result));

/* How calls of `method` that begin from now on are treated here; at first as cri_method_class()
 * says. */
void session_set_class(struct session *s, enum cri_method method, enum cri_method_class class);

/* Ends an intercepted call with a gRPC status; `message` is copied. The call is gone for the owner.
 */
void session_refuse(struct session *s, struct session_call *call, int code, const char *message);

/*
 * Asks the client to open no more calls here and to close when those under way are over: GOAWAY
 * with the highest stream id (RFC 9113 §6.8), so that none of them is lost; the runtime's own is
 * as good, if one has passed. A stream of container events, which has no end of its own, is ended UNAVAILABLE. False: the client has not begun to
 * speak.
 */
bool session_drain(struct session *s);

/* Calls looked at, parked or refused that are not over. */
size_t session_calls(const struct session *s);

/* Of a client from which nothing more comes: whether a call of its still needs our way to the
 * runtime. */
bool session_needs_runtime(const struct session *s);

/* Bytes of our own frames for `to` that wait until the frame that passes is over. */
size_t session_waiting(const struct session *s, enum session_end to);

/* What went wrong after a negative session_feed() or failed(), a literal; else NULL. */
const char *session_error(const struct session *s);

#endif
