/*
 * A stream of the client's that the session has a part in, and the table of them. What is in no
 * table passes, and nobody looks.
 *
 * A call that is intercepted begins in COLLECT, one that is observed in OPEN, and so does one of
 * which nothing is known but that DATA of it waits for the runtime's connection window (PARKED).
 *
 *      COLLECT ──whole──▶ DECIDE ──forwarded──▶ OPEN ──answered──▶ gone
 *         │                  │                    │
 *         │too large         │refused             │cut short
 *         └──────────────────┼────────────────────┘
 *                            ▼
 *                         BARRIER ──the runtime has stopped, the client has ended──▶ gone
 *                            │
 *                            │the runtime has stopped or answered, the client goes on
 *                            ▼
 *                         STOPPING ──all that it waits for have stopped──▶ gone
 *
 * Besides: to OPEN undecided, from COLLECT when no whole message comes, from DECIDE when nobody can
 * read it, from both when trailers come; and from all three to STOPPING when the runtime answers
 * before the client has ended.
 *
 *   phase      what is so                                                waits for
 *   ---------  --------------------------------------------------------  -----------------------
 *   COLLECT    the request's DATA is gathered                            MESSAGE
 *   DECIDE     the first message is whole; the rest is gathered          OWNER
 *   OPEN       bytes pass; what is queued goes as the windows allow      ANSWER, perhaps WINDOW
 *   BARRIER    reset towards the runtime, which may have answered        RUNTIME
 *              already; the client will have its answer from us
 *   STOPPING   the client has all of its answer, and was asked to stop;  CLIENT, perhaps RUNTIME
 *              what it still sends is thrown away and credited
 *
 * From every phase it is gone when the client resets it, when a GOAWAY of the runtime's says that
 * it will not look at it, and with the session; above BARRIER also when the runtime resets it.
 */
#ifndef SHIM_RELAY_SESSION_STREAM_H
#define SHIM_RELAY_SESSION_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The key is a stream's number, of which each frame of a call is looked up: one multiplication
 * spreads it as well as uthash's own hash of any bytes does. */
#define HASH_FUNCTION(key, len, hash)                                                              \
    do {                                                                                           \
        (hash) = *(const uint32_t *)(key)*0x9e3779b1u;                                             \
        (hash) ^= (hash) >> 16;                                                                    \
    } while (0)
#define HASH_NONFATAL_OOM 1 /* no memory: hh.tbl is NULL */
#include <uthash.h>

#include "shim/relay/buffer.h"
#include "shim/relay/flow.h"
#include "shim/relay/session.h"
#include "shim/rpc/message.h"

enum stream_kind {
    STREAM_PARKED,      /* only waits for a window; looked at by nobody */
    STREAM_OBSERVED,    /* passes, and its messages are shown to the owner */
    STREAM_INTERCEPTED, /* withheld until the owner decides; has a ledger of its own */
};

enum stream_phase {
    STREAM_NEW, /* not yet in the table */
    STREAM_COLLECT,
    STREAM_DECIDE,
    STREAM_OPEN,
    STREAM_BARRIER,
    STREAM_STOPPING,
};

/* What must come before a stream goes on. */
enum stream_wait {
    STREAM_WAIT_MESSAGE = 1 << 0, /* the rest of the request's first message, from the client */
    STREAM_WAIT_OWNER = 1 << 1,   /* session_forward() or session_refuse() */
    STREAM_WAIT_WINDOW = 1 << 2,  /* room at the runtime for what is queued */
    STREAM_WAIT_ANSWER = 1 << 3,  /* the runtime's */
    STREAM_WAIT_RUNTIME = 1 << 4, /* its ACK of the SETTINGS behind our RST_STREAM */
    STREAM_WAIT_CLIENT = 1 << 5,  /* the same of the client's, or its END_STREAM */
    STREAM_WAIT_ALL = (1 << 6) - 1,
};

/* What the owner knows of the call. */
enum stream_owner {
    STREAM_UNREAD, /* nothing yet: the request is not whole */
    STREAM_TOLD,   /* request() has told it; ended() or a refusal will end it */
    STREAM_UNTOLD, /* nothing, or nothing any more, and it will not hear of it */
};

/* How far the client's END_STREAM is. */
enum stream_end {
    STREAM_GOES_ON,
    STREAM_ENDED,    /* it has come */
    STREAM_END_SENT, /* and has gone to the runtime */
};

struct stream {
    struct session_call call; /* first: the owner's handle is the stream */
    uint32_t id;
    enum stream_kind kind;
    enum stream_phase phase; /* by stream_move() only */
    unsigned waits;          /* of enum stream_wait; stream_waits() has them all */
    enum stream_owner owner;
    enum stream_end request_end;
    bool response_begun;   /* response headers have gone to the client */
    bool response_dropped; /* longer than we read */
    enum message_encoding encoding;
    struct flow flow;
    struct buffer queue;            /* DATA bytes for the runtime, not sent yet */
    struct buffer request;          /* observed: copy of the request so far */
    struct buffer response;         /* copy of the answer so far */
    struct message_reader inflated; /* holds call.message if it came compressed */
    size_t before_ack;              /* bytes of `queue` that go before an ACK (late_acks.h) */
    int refusal_code;               /* of the answer that is ours (ending.h) */
    char *refusal;                  /* owned; NULL: there was no memory */
    UT_hash_handle hh;
};

/* ---- the table ---- */

struct stream *stream_look_up(struct stream *table, uint32_t id);

/* NULL: not in it. Most frames find it empty. */
static inline struct stream *stream_find(struct stream *table, uint32_t id)
{
    return table ? stream_look_up(table, id) : NULL;
}

/* A stream of the call, as its class is at this moment, or of CRI_OTHER: parked. NULL: there are
 * RELAY_STREAMS_MAX, or out of memory. */
struct stream *stream_new(struct session *s, uint32_t id, enum cri_method method);

/* Takes it out of the table, gives back what its bytes take of windows and bounds, and tells the
 * owner that the call is over, if it knows of it. */
void stream_free(struct session *s, struct stream *st);

/* ---- its life ---- */

/* The one place in which a phase changes. A move that the picture does not have is our bug. */
void stream_move(struct stream *st, enum stream_phase to);

const char *stream_phase_name(enum stream_phase phase);

static inline bool stream_is_gated(const struct stream *st)
{
    return st->phase == STREAM_COLLECT || st->phase == STREAM_DECIDE;
}

/* Whether it waits for a window; session.queued counts those. */
static inline bool stream_is_queued(const struct stream *st)
{
    return st->phase == STREAM_OPEN && buffer_len(&st->queue) > 0;
}

/* For tests: all that it waits for, bits of enum stream_wait. */
static inline unsigned stream_waits(const struct stream *st)
{
    return st->waits | (stream_is_queued(st) ? STREAM_WAIT_WINDOW : 0);
}

static inline void stream_has_ended(struct stream *st, enum stream_end how)
{
    if (st->request_end < how)
        st->request_end = how;
}

/* ---- the owner ---- */

/* call.message is the request's. */
void stream_tell(struct session *s, struct stream *st);

/* The call is over for the owner, who is told so if it knows of it. */
void stream_untell(struct session *s, struct stream *st);

/* Another owner comes, who knows nothing yet: of a call that waits for a decision it is told as of
 * a new one, of another that was told by regained(). */
void stream_forget_owner(struct stream *st);
void stream_regain(struct session *s, struct stream *st);

/* ---- its bytes ---- */

/* What is withheld will never be sent. */
void stream_drop_queue(struct session *s, struct stream *st);

/* Take a copy; -ENOMEM also when the connection's share is used up. */
int stream_copy_request(struct session *s, struct stream *st, const uint8_t *body, size_t len)
    __attribute__((warn_unused_result));
int stream_copy_response(struct session *s, struct stream *st, const uint8_t *body, size_t len)
    __attribute__((warn_unused_result));
void stream_drop_request_copy(struct session *s, struct stream *st);
void stream_drop_response_copy(struct session *s, struct stream *st);

#endif
