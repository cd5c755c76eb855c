/*
 * One direction of a relayed connection: walks the frames, passes what is to pass, puts own frames
 * in between.
 *
 * What passes is written straight from the caller's buffer, in as few pieces as possible, partial
 * frames too. The owner says at each frame's head how the frame goes on, and sees the bodies of
 * those that it taps.
 */
#ifndef SHIM_RELAY_LANE_H
#define SHIM_RELAY_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "shim/relay/buffer.h"
#include "shim/relay/frame.h"
#include "shim/relay/header_memo.h"
#include "shim/relay/tally.h"

enum lane_how {
    LANE_PASS, /* passes, nobody looks */
    LANE_TAP,  /* passes, the owner sees the body */
    LANE_KEEP, /* does not pass, the owner sees the body */
    /* A payload of at most LANE_GATHER_BYTES_MAX is shown whole to end(), which may pass it on. */
    LANE_GATHER,
};

#define LANE_GATHER_BYTES_MAX 8
#define LANE_PIECES_MAX 32
#define LANE_WATCHED_BITS 64

struct lane;

struct lane_ops {
    /* A frame begins. 0 and *how set, or a negative code, which ends the walk. */
    int (*head)(void *user, struct lane *lane, const struct frame_head *head, enum lane_how *how);
    /* A piece of a tapped or kept frame: `body` without padding and priority fields (RFC 9113 §6.1,
     * §6.2), `wire_bytes` with them. */
    int (*piece)(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes,
                 size_t wire_bytes);
    /* A header block of one frame, without padding and priority, that has come whole: in the place
     * of the three others. It passes. Not while lane.stepwise. */
    int (*block)(void *user, struct lane *lane, const uint8_t *body, size_t body_bytes);
    /* A frame is over that does not only pass (LANE_PASS). `whole` is the frame with its head when
     * it was gathered, else NULL. */
    int (*end)(void *user, struct lane *lane, const uint8_t *whole);
    void (*write)(void *user, struct lane *lane, const struct iovec *pieces, int n);
};

struct lane {
    const struct lane_ops *ops; /* borrowed, with user, for the lane's life */
    void *user;
    /* The owner's: bits of the frame types that pass without head() and end(); DATA only on a
     * stream that is not watched. It may change in each callback, for the frames that follow. */
    uint32_t passing;
    uint64_t watched;     /* the owner's: the streams that are looked at, by lane_watched_bit() */
    uint64_t data_passed; /* the payload bytes of such DATA, for the owner to take */
    /* The owner's, too: blocks in `memo`, borrowed, of these methods pass without block(), but on a
     * stream that is watched. NULL: there is none. */
    uint32_t passing_methods; /* bits of enum cri_method */
    const struct header_memo *memo;
    /* Where such blocks are counted, as requests or answers; borrowed. NULL: nowhere. */
    struct tally *tally;
    bool answers;
    uint32_t stream_passed; /* the highest stream of such a block, for the owner to see */
    bool stepwise;          /* the owner's: no block() */
    bool looked;            /* until the owner clears it: not all has only passed (lane_place()) */

    struct frame_head head; /* of the frame under way */
    enum lane_how how;
    /* The first frame, an end's SETTINGS, is through: nothing may come before it (RFC 9113
     * §3.4). */
    bool begun;
    bool within; /* between head() and end() */
    /* Between HEADERS and the end of its CONTINUATIONs: nothing may be put in (RFC 9113 §4.3). */
    bool in_block;
    uint32_t left;    /* payload bytes to come */
    uint32_t skip;    /* of those, bytes in front of the body */
    uint32_t body;    /* body bytes to come */
    bool pad_unknown; /* the first payload byte, the padding's length, is still to come */

    /* A head, or a gathered frame, not yet whole. */
    uint8_t carry[FRAME_HEAD_BYTES + LANE_GATHER_BYTES_MAX];
    size_t carry_len;
    /* A carry that passes, until written. */
    uint8_t spill[FRAME_HEAD_BYTES + LANE_GATHER_BYTES_MAX];
    bool spilled;

    struct iovec pieces[LANE_PIECES_MAX]; /* what passes, not yet written */
    int pieces_len;
    struct buffer inject; /* whole frames of ours, waiting for a frame boundary */
};

/* Where the walk stands. */
struct lane_place {
    uint32_t left;
    struct frame_head head;
    uint8_t how;
    uint8_t within;
    uint8_t carry_len;
    uint8_t carry[FRAME_HEAD_BYTES];
};

/* Streams share bits: some are watched for another's sake, which costs time and nothing else. */
static inline unsigned lane_watched_bit(uint32_t stream_id)
{
    return stream_id / 2 % LANE_WATCHED_BITS; /* a client's streams are odd (RFC 9113 §5.1.1) */
}

/* For embedding; lane_fini() frees what it holds. */
void lane_init(struct lane *lane, const struct lane_ops *ops, void *user);
void lane_fini(struct lane *lane);

/* Walks `len` bytes. 0, or what a callback returned, or for a frame that is looked at: -EPROTO, a
 * padding longer than its frame; -EMSGSIZE, a frame too short for its fixed fields. What passed up
 * to there has been written. */
int lane_feed(struct lane *lane, const uint8_t *bytes, size_t len)
    __attribute__((warn_unused_result));

/* Passes a gathered frame on; only from within end(), with what it was given. */
void lane_pass_gathered(struct lane *lane, const uint8_t *whole);

/* Where a lane stands that was not `looked` at a frame in what it was fed. With data_passed and
 * stream_passed that is all that this has changed in it. */
struct lane_place lane_place(const struct lane *lane);

/* The lane stands there, as if it had been fed the same and nobody had looked; nothing is written.
 * 0 or -EPROTO: it cannot have come there so. */
int lane_put(struct lane *lane, const struct lane_place *place) __attribute__((warn_unused_result));

/* Writes `inject` if the lane is at a frame boundary; else the walk does so when it gets there. */
void lane_flush(struct lane *lane);

#endif
