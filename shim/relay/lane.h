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

enum lane_how {
    LANE_PASS,   /* passes, nobody looks */
    LANE_TAP,    /* passes, the owner sees the body */
    LANE_KEEP,   /* does not pass, the owner sees the body */
    LANE_GATHER, /* a payload of at most LANE_GATHER_BYTES_MAX is shown whole to end(), which may
                    pass it on */
};

#define LANE_GATHER_BYTES_MAX 8
#define LANE_PIECES_MAX 32

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
    uint32_t passing; /* the owner's: bits of the frame types that pass without head() and end() */
    bool stepwise;    /* the owner's: no block() */
    struct frame_head head; /* of the frame under way */
    enum lane_how how;
    bool begun;  /* the first frame, an end's SETTINGS, is through: nothing may come before it (RFC
                    9113 §3.4) */
    bool within; /* between head() and end() */
    bool in_block; /* between HEADERS and the end of its CONTINUATIONs: nothing may be put in (RFC
                      9113 §4.3) */
    uint32_t left; /* payload bytes to come */
    uint32_t skip; /* of those, bytes in front of the body */
    uint32_t body; /* body bytes to come */
    bool pad_unknown; /* the first payload byte, the padding's length, is still to come */
    uint8_t carry[FRAME_HEAD_BYTES +
                  LANE_GATHER_BYTES_MAX]; /* a head, or a gathered frame, not yet whole */
    size_t carry_len;
    uint8_t
        spill[FRAME_HEAD_BYTES + LANE_GATHER_BYTES_MAX]; /* a carry that passes, until written */
    bool spilled;
    struct iovec pieces[LANE_PIECES_MAX]; /* what passes, not yet written */
    int pieces_len;
    struct buffer inject; /* whole frames of ours, waiting for a frame boundary */
};

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

/* Writes `inject` if the lane is at a frame boundary; else the walk does so when it gets there. */
void lane_flush(struct lane *lane);

#endif
