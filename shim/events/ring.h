/*
 * The events that are kept: the newest EVENTS_MAX of a day, EVENTS_BYTES_MAX at most. No I/O, no
 * clock.
 *
 * What comes again is one event, with a new id at the end of the order: who has seen it before sees
 * that it came once more. Ids only grow, so that "all after this one" leaves nothing out.
 */
#ifndef SHIM_EVENTS_RING_H
#define SHIM_EVENTS_RING_H

#include "shim/events/event.h"

TAILQ_HEAD(event_list, event);

struct ring {
    struct event_list events; /* oldest first */
    struct event *by_same;
    size_t len, bytes;
    uint64_t last_id;
    uint64_t gone_id; /* the highest that is no more, and was not replaced; 0: none */
};

void ring_init(struct ring *ring);
void ring_fini(struct ring *ring);

/*
 * Takes `event`, which has come just now, and gives it an id; NULL if it is dropped (and freed),
 * because it came `again` and nothing has changed since: "allocated" and "released" of the same
 * devices' holder, "lost" and "back" of the same plugin are opposites, and so on of drivers and
 * claims. What is too old or too much goes, never the newest.
 */
const struct event *ring_put(struct ring *ring, struct event *event, bool again);

/* Takes one that the file has, with its id, in the file's order. One that does not come after the
 * last one is given the next id. */
void ring_restore(struct ring *ring, struct event *event);

/* The next id is higher than this one. */
void ring_begin_behind(struct ring *ring, uint64_t id);

/* What is older than a day at `now` goes. */
void ring_expire(struct ring *ring, const struct event_moment *now);

/* The first with a higher id; NULL: none. */
const struct event *ring_after(const struct ring *ring, uint64_t id);

#endif
