/*
 * What the parts of a session share; nobody else includes this.
 *
 * The parts stand on each other in this order, and call downwards only:
 *
 *   freeze           the state of all that is below, for another process to go on from
 *   ../session       the owner's side: new, feed, forward, refuse, drain
 *   dispatch         which frame goes to whom: the lanes' callbacks
 *   blocks           header blocks of either end
 *   from_client      what the client sends on a stream      from_runtime   what the runtime does
 *   settings_frames  SETTINGS and their ACKs, of both ends
 *   late_acks        ACKs of the client's that wait for bytes before them
 *   ending           answers of our own, and how an end is stopped
 *   withheld         the bytes that wait for a decision or a window
 *   stream           a stream's life, and the table of them
 *   windows          what is owed to whom (flow.h)
 *   call_message     the message in a stream's bytes
 *   settings_queue   SETTINGS without an ACK
 *   inside           this: where it all lies, and how a session fails
 *
 * Of what is above it a part knows structs at most: this one those that it embeds, windows and
 * call_message the stream that they work on.
 */
#ifndef SHIM_RELAY_SESSION_INSIDE_H
#define SHIM_RELAY_SESSION_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/frame.h"
#include "shim/relay/header_listener.h"
#include "shim/relay/lane.h"
#include "shim/relay/session.h"
#include "shim/relay/session/late_acks.h"
#include "shim/relay/session/settings_queue.h"
#include "shim/relay/session/windows.h"
#include "shim/rpc/message.h"

/* The header block that an end sends, or has sent last (blocks.h). */
struct session_block {
    uint32_t stream;
    bool ends_stream;
    size_t bytes; /* so far, as RELAY_HEADER_BLOCK_BYTES_MAX counts them */
};

/* One end, and what comes from it. */
struct session_side {
    struct lane lane;
    struct header_listener *listener; /* NULL: gave up, only for the runtime's side */
    struct session_block block;
    struct settings_queue settings; /* sent to the other end, by this one and by us */
    uint32_t table_size;            /* in force for this side's encoder */
    int64_t table_size_news;        /* lowered, and not yet said by this side's encoder; -1: none */
};

struct session {
    const struct session_ops *ops;
    void *user;
    struct session_owner owner;
    bool begun; /* the owner knows of the session */
    struct session_side sides[2];
    size_t preface_seen;
    struct stream *streams;              /* by id */
    uint16_t watched[LANE_WATCHED_BITS]; /* how many of them have a bit in the lanes */
    uint32_t stream_id_max;              /* newest of the client */
    enum cri_method_class classes[CRI_METHODS];
    struct windows windows;
    struct late_acks late_acks;
    size_t queued;                       /* streams that wait for a window */
    size_t request_bytes;                /* in the copies of observed requests */
    size_t response_bytes;               /* in those of answers */
    struct message_budget inflated_room; /* of inflated messages */
    struct message_budget answer_room;   /* of the one answer that is looked at */
    uint8_t goaway[4];                   /* the stream id of the runtime's that is under way */
    size_t goaway_len;
    bool runtime_goes;    /* a GOAWAY of the runtime's has begun to pass */
    uint32_t goaway_last; /* the last stream of what the client was told, which may only fall */
    bool feeding;
    uint32_t data_fed; /* by the last feed, as lane.data_passed counts it */
    unsigned depth;    /* of what was called from outside, and of decisions from inside of that */
    uint32_t told;     /* session_told() */
    int error;
    const char *error_text;
};

static inline enum session_end session_other(enum session_end end)
{
    return end == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT;
}

/* Whose lane it is: the bytes come from that end. */
static inline enum session_end session_end_of(const struct session *s, const struct lane *lane)
{
    return lane == &s->sides[SESSION_CLIENT].lane ? SESSION_CLIENT : SESSION_RUNTIME;
}

/* Frames of ours towards an end travel in the lane that comes from the other. */
static inline struct lane *session_lane_to(struct session *s, enum session_end to)
{
    return &s->sides[session_other(to)].lane;
}

/* The session cannot go on; where a return value tells of it. Returns the first error. */
int session_fail(struct session *s, int error, const char *text);

/* The same where none does. */
void session_give_up(struct session *s, int error, const char *text);

/* For frames of ours that cannot be queued (`r` < 0): the connection is out of step then, and
 * ends. */
void session_must_queue(struct session *s, int r);

/* The client broke the protocol: tells it so (RFC 9113 §5.4.1, §6.8), and fails. */
int session_offend(struct session *s, enum frame_error code, const char *text);

/* A call has ended, with a gRPC code. */
static inline void session_count_end(struct session *s, uint32_t stream, int code)
{
    struct tally *tally = s->sides[SESSION_CLIENT].lane.tally;

    if (tally)
        tally_end(tally, stream, code);
}

/* The owner is about to be told something. */
static inline void session_tells(struct session *s)
{
    s->told++;
}

/* Writes the frames of ours that may go now. */
void session_flush(struct session *s);

#endif
