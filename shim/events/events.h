/*
 * The node's events (ring.h): taken, kept in a file of state_dir over restarts and reboots, told to
 * who watches.
 *
 * Nothing waits for the disk. What is said is shown once it is written, or could not be: then it is
 * shown all the same, is lost with the process, and events_trouble() says so until the disk takes
 * it again. A kill can cost what came in the last moment (EVENTS_BATCH_MS); who has seen an event
 * will not see its id on another, in this boot not even without a disk (told.h).
 */
#ifndef SHIM_EVENTS_EVENTS_H
#define SHIM_EVENTS_EVENTS_H

#include <uv.h>

#include "shim/events/ring.h"

struct events;

/* Who wants to know when there is more to see. */
struct events_watch {
    void (*more)(void *user); /* from the loop */
    void *user;
    LIST_ENTRY(events_watch) entry;
};

/* Begins to read the file in `state_dir`, for want of a descriptor or memory again and again;
 * `told_path`: told.h's. Both are copied. */
struct events *events_start(uv_loop_t *loop, const char *state_dir, const char *told_path);

/* `said` is copied. What comes before the file is read has its turn then, but for what comes behind
 * EVENTS_EARLY_MAX of them. */
void events_say(struct events *events, const struct event_said *said);

/* The first with a higher id that is shown; NULL: none. Valid until the loop's next turn. */
const struct event *events_after(const struct events *events, uint64_t id);
/* The one behind it, likewise. */
const struct event *events_next(const struct events *events, const struct event *event);
/* Whether the file is read: until then there is nothing to see, and ids are not known. */
bool events_loaded(const struct events *events);
/* The highest id that is shown; 0: none. */
uint64_t events_last(const struct events *events);
/* The highest id of those that are kept no more; 0: none. */
uint64_t events_gone(const struct events *events);
/* For event_ago_ms(). */
void events_now(const struct events *events, struct event_moment *now);

/* `watch` is borrowed until events_unwatch(). */
void events_watch(struct events *events, struct events_watch *watch);
void events_unwatch(struct events_watch *watch);

/* Why they are not kept, or not yet read, and since when (boot_now_ms()); NULL: they are. */
const char *events_trouble(const struct events *events, uint64_t *since_ms);

/* Writes what is not written yet, frees, then runs `done` from the loop. Nobody watches any
 * more. */
void events_stop(struct events *events, void (*done)(void *user), void *user);

#endif
