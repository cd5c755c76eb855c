/*
 * Counts of the calls on a connection: by method, how they ended, and how long they took.
 *
 * It watches header blocks that pass anyway; nothing depends on it, so that a session does the same
 * with one and without (session.h). Stream numbers find a call again: those under way have places
 * in a table of fixed size, and a call that finds none is counted without its time.
 *
 * All blocks of one read have come at the same time: the clock is read once for them, if at all.
 */
#ifndef SHIM_RELAY_TALLY_H
#define SHIM_RELAY_TALLY_H

#include <stdint.h>

#include "cri-proto/methods.h"
#include "shim/histogram.h"

/* gRPC's, and one for numbers that are none. */
#define TALLY_CODES 18
/* Calls under way on one connection that are timed: a kubelet has some tens. */
#define TALLY_PLACES 128
/* Places that are tried for a stream, so that one that goes on for long is in nobody's way. */
#define TALLY_TRIES 4

/* Of all connections together; plain integers. */
struct tally_counts {
    uint64_t begun[CRI_METHODS];
    uint64_t ended[CRI_METHODS][TALLY_CODES];
    uint64_t untimed[CRI_METHODS]; /* begun without a place; how they ended is not known */
    struct histogram took[CRI_METHODS];
};

struct tally_place {
    uint32_t stream; /* 0: free */
    uint32_t method;
    uint64_t begun_us;
};

/* In the place of a read's time. */
#define TALLY_NO_READ 0
#define TALLY_READ_UNASKED 1

struct tally {
    struct tally_counts *counts;
    uint64_t (*now_us)(void); /* more than TALLY_READ_UNASKED */
    uint64_t read_us;         /* of what is read now */
    unsigned elsewhere;       /* calls whose place is not the first of theirs */
    struct tally_place places[TALLY_PLACES];
};

/* What comes up to tally_read_ends() comes at one time. */
static inline void tally_read_begins(struct tally *tally)
{
    tally->read_us = TALLY_READ_UNASKED;
}

static inline void tally_read_ends(struct tally *tally)
{
    tally->read_us = TALLY_NO_READ;
}

/* A request's first header block. One of a stream that has begun, its trailers, counts for
 * nothing. */
void tally_begin(struct tally *tally, uint32_t stream, enum cri_method method);

/* Its end, with a gRPC code. One that has ended, or was not seen to begin, counts for nothing. */
void tally_end(struct tally *tally, uint32_t stream, int code);

/* The connection ends, and all that is under way with it. */
void tally_end_all(struct tally *tally, int code);

#endif
