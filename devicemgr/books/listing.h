/*
 * The runtime's lists: when one is asked for, and what must be remembered while it is.
 *
 * A list is older than what was seen since it was asked for. So each list has a number, the epoch,
 * from the moment it is asked for, and what is heard of meanwhile carries it.
 */
#ifndef DEVICEMGR_BOOKS_LISTING_H
#define DEVICEMGR_BOOKS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state;

struct listing {
    bool listed;         /* one has been read */
    bool under_way;      /* one is being asked for */
    bool asked;          /* the core has asked for one that is not begun yet */
    uint64_t epoch;      /* how many were asked for: what carries it is newer than the last */
    uint64_t begun_ms;   /* when the last was asked for, or somewhat earlier */
    uint64_t due_ms;     /* when the core asks for one; UINT64_MAX: not now */
    uint64_t next_ms;    /* the same, as far as that was wanted since the last was asked for */
    struct ended *ended; /* containers that ended since the one under way was asked for */
    bool rows_lost; /* a container may be in the making of which the checkpoint said nothing: */
    uint64_t rows_lost_until_ms; /* a list asked for from then on shows it */
    uint64_t earlier_until_ms;   /* the same of creates of an earlier process; UINT64_MAX: some are
                                * under way */
};

/* From when on a list shows what may be in the making, by itself until `until_ms`. */
uint64_t listing_shows_from(const struct state *state, uint64_t until_ms);

/* devicemgr_rows_lost() */
void listing_rows_lost(struct state *state);
/* What is restored is known for certain only by a list that comes later. */
void listing_restored(struct state *state);
/* devicemgr_earlier_creates() */
void listing_earlier_creates(struct state *state, bool under_way);
/* Asks for one, now or as soon as that may be. */
void listing_soon(struct state *state);
/* The same, of one that is not under way yet. */
void listing_anew(struct state *state);
/* Wants one then, or before. */
void listing_by(struct state *state, uint64_t at_ms);
/* Asks for the one that is due. */
void listing_tick(struct state *state);
/* devicemgr_runtime_listing() */
void listing_begin(struct state *state);
/* It has come, and is being read; it may not have been seen to begin. */
void listing_come(struct state *state);
/* What it shows to run is known. */
void listing_read(struct state *state);
/* It is through: what it was too early for wants another. */
void listing_again(struct state *state);
/* If one is being asked for, it may name this container as one that runs. */
void listing_note_ended(struct state *state, const char *container_id);
bool listing_has_ended(const struct state *state, const char *container_id);
void listing_forget_ended(struct state *state);

#endif
