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
 * The way of one CreateContainer through the files of session/ (inside.h has them in their order):
 *
 *   HEADERS      pass at once; blocks.c reads along. from_client_headers_end() finds that the
 *                method is intercepted, and the stream begins in COLLECT (stream.h has the picture)
 *   DATA         from_client_data_head() keeps the frames, withheld_put() queues their bytes, and
 *                windows.c credits the client for what outgrows its windows
 *   whole        collect() and ask_owner(): call_message.c finds the message, the stream is in
 *                DECIDE, and ops->request() tells the owner
 *   forward      session_forward(): withheld_replace() puts the fragment in front, withheld_open()
 *                sends what the runtime's windows have room for; the stream is OPEN. What the
 *                runtime grants for bytes that the client never sent is swallowed
 *   or refuse    session_refuse(): ending.c resets the stream towards the runtime (BARRIER), waits
 *                until that has said its last, and answers the client
 *   the answer   passes; from_runtime_data_piece() copies it, answered() shows the copy to
 *                ops->answered(), and the stream is gone
 *
 * Not thread-safe, reads no clock. begun() runs from session_begin(), gone() from session_free(),
 * the owner's other callbacks from session_feed(), and ended() from session_free() and
 * session_drain() as well; they may call forward and refuse at once, but neither session_feed() nor
 * session_free().
 */
#ifndef SHIM_RELAY_SESSION_H
#define SHIM_RELAY_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "cri-proto/methods.h"
#include "shim/relay/buffer.h"
#include "shim/relay/lane.h"
#include "shim/relay/tally.h"

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
    /* In answered(), of an error: its text as it stands in the trailers (percent-encoded, and cut
     * at RELAY_STATUS_TEXT_BYTES_MAX); else NULL. */
    const char *status_text;
    void *user; /* the owner's; NULL at first */
};

/* Whoever changes what a number means that session_freeze() writes changes this. That there are
 * more of them does not (session/freeze.c). */
#define SESSION_FORMAT "SHSESS02"

struct session;

/* What the owner, or whoever holds the session, has decided: all that it depends on besides its
 * bytes. */
enum session_decides {
    SESSION_FORWARDS,         /* stream */
    SESSION_FORWARDS_INSTEAD, /* stream, fragment, message */
    SESSION_REFUSES,          /* stream, code, message: the text, with its NUL */
    SESSION_CLASSES,          /* method, class */
    SESSION_DRAINS,
};

struct session_decision {
    enum session_decides what;
    uint32_t stream;
    int code;
    enum cri_method method;
    enum cri_method_class class;
    const void *fragment;
    size_t fragment_bytes;
    const void *message;
    size_t message_bytes;
};

/* The connection's side: where bytes go. */
struct session_ops {
    /* `n` pieces for one end, in order; borrowed until return. Must not call back into the
     * session. */
    void (*write)(void *user, enum session_end to, const struct iovec *pieces, int n);
    /* The session cannot go on, see session_error(), and it was not session_feed() that found out:
     * both connections are to be closed. Must not call back into the session. */
    void (*failed)(void *user);
    /* Before a decision takes effect, for session_apply() to repeat it: from inside of which of the
     * owner's callbacks it was taken (session_told()), 0: of none. Must not call back into the
     * session. May be NULL. */
    void (*decided)(void *user, uint32_t told, const struct session_decision *decision);
};

/* The owner's, who decides on calls. */
struct session_owner_ops {
    /* The session is at work: session_begin(). */
    void (*begun)(void *owner, struct session *s, pid_t client);
    /* It is over; of its calls only ended() follows. Follows begun(). */
    void (*gone)(void *owner, struct session *s);
    /* The request is whole. An intercepted call waits for session_forward() or session_refuse(). */
    void (*request)(void *owner, struct session *s, struct session_call *call);
    /* The runtime has answered; `status` is the gRPC code, `message` its one message, inflated, or
     * NULL when there is none or it cannot be read. Follows request(). */
    void (*answered)(void *owner, struct session_call *call, int status, const uint8_t *message,
                     size_t message_bytes);
    /* The call is over, answered or not: reset by either end, or the session ends. Follows
     * request(). */
    void (*ended)(void *owner, struct session_call *call);
    /* From inside of session_begin(): an earlier owner was told of the call, and it goes on without
     * a decision. Its answer and its end are told. The message is that of an observed call,
     * borrowed until return; NULL if it is none, or cannot be read any more. May be NULL: nothing
     * is told. */
    void (*regained)(void *owner, struct session *s, struct session_call *call);
};

struct session_owner {
    const struct session_owner_ops *ops;
    void *user; /* their `owner` */
};

/* All that is pointed to is borrowed until session_free(). NULL: out of memory. */
struct session *session_new(const struct session_ops *ops, void *user, struct session_owner owner);

/* Both ends are there, before the first byte: the owner learns of the session. `client` is the
 * client's process, 0 if it is not known. One that never begins has no calls. Of one that was begun
 * before, for another owner or in another process, the owner is told of each call that waits for a
 * decision, as of a new one, and of the others by regained(). */
void session_begin(struct session *s, pid_t client);

/* The owner is told that it is gone, and of every call that it has ended; nothing is written.
 * Accepts NULL. */
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

/* Of a call that the owner is told of: whether it waits for one of these, or session_refuse(). */
bool session_waits(const struct session_call *call);

/* How calls of `method` that begin from now on are treated here; at first as cri_method_class()
 * says. */
void session_set_class(struct session *s, enum cri_method method, enum cri_method_class class);

/* Ends an intercepted call with a gRPC status; `message` is copied. The call is gone for the
 * owner. */
void session_refuse(struct session *s, struct session_call *call, int code, const char *message);

/*
 * Asks the client to open no more calls here and to close when those under way are over: GOAWAY
 * with the highest stream id (RFC 9113 §6.8), so that none of them is lost; the runtime's own is
 * as good, if one has passed. A stream of container events, which has no end of its own, is ended
 * UNAVAILABLE. False: the client has not begun to speak.
 */
bool session_drain(struct session *s);

/*
 * A session does the same again, byte for byte, if it is fed and begun as it was, and each decision
 * is repeated from inside of the same callback of the owner's. 0; -EPROTO: it does not fit the
 * session's state, which is as before; -ENOMEM.
 */
int session_apply(struct session *s, const struct session_decision *decision)
    __attribute__((warn_unused_result));

/* How many callbacks of the owner's session_feed(), session_begin() or a decision from outside of
 * any has led to so far. */
uint32_t session_told(const struct session *s);

/* What a feed came to of which nobody looked at anything: for who keeps that in the place of its
 * bytes. */
struct session_passed {
    uint32_t data;   /* payload bytes of DATA */
    uint32_t stream; /* the newest one that has passed so */
    struct lane_place place;
};

/* Of the last session_feed(), of bytes `from` an end: whether they went on to the other as they
 * were, but for a frame's head that has not come whole, and nothing else was written. Then what it
 * came to. */
bool session_passed(const struct session *s, enum session_end from, struct session_passed *out);

/* The state is as after such a feed; nothing is written. 0; -EPROTO: it would have been looked
 * at. */
int session_pass(struct session *s, enum session_end from, const struct session_passed *passed)
    __attribute__((warn_unused_result));

/* Another owner from now on, to whom it is to be begun (again). */
void session_set_owner(struct session *s, struct session_owner owner);

/* Counts its calls from now on; borrowed until session_free(). What the session does is the
 * same. */
void session_set_tally(struct session *s, struct tally *tally);

/* Calls looked at, parked or refused that are not over. For tests. */
size_t session_calls(const struct session *s);

/* Of a client from which nothing more comes: whether a call of its still needs our way to the
 * runtime. A stream of container events does not: the runtime ends it when that way ends. */
bool session_needs_runtime(const struct session *s);

/* Whether what came from that end stops in the middle of a header block. */
bool session_is_within_block(const struct session *s, enum session_end from);

/* Bytes of our own frames for `to` that wait until the frame that passes is over. */
size_t session_waiting(const struct session *s, enum session_end to);

/* Bytes of calls, and of our own frames, that are held: most of what session_freeze() writes, if
 * that is much. */
size_t session_held(const struct session *s);

/*
 * The state of a session between two feeds, appended to `out`, for session_thaw() to go on from, in
 * another process perhaps. What the connection keeps (bytes that an end has not taken) is not in
 * it. 0; -EAGAIN within a header block, of which more is to be fed first; -ENOMEM, or the session's
 * error: then what was appended is of no use.
 */
int session_freeze(struct session *s, struct buffer *out) __attribute__((warn_unused_result));

/*
 * A session that goes on from there, to be ended and begun like one of session_new(); with
 * session_begin() it has its owner's knowledge of calls no more. 0 and *out; -EPROTO: another
 * format, or damaged; -ENOMEM.
 */
int session_thaw(const uint8_t *state, size_t len, const struct session_ops *ops, void *user,
                 struct session_owner owner, struct session **out)
    __attribute__((warn_unused_result));

/* What went wrong after a negative session_feed() or failed(), a literal; else NULL. */
const char *session_error(const struct session *s);

#endif
