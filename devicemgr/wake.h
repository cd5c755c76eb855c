/*
 * Which creates a change concerns, and when the next one is due.
 *
 * A create that waits is looked at again when something it may wait for has changed: its pod, a
 * resource it names, who holds a device it wants. Indexes from each of these to the creates find
 * them, so that an event costs what it concerns, not what waits. wake_...() marks them; create.c
 * looks at them, in order of arrival, from devicemgr_run().
 */
#ifndef DEVICEMGR_WAKE_H
#define DEVICEMGR_WAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocation;
struct create;
struct devicemgr;

/* A create that is to be looked at; it may be over by then. */
struct woken {
    uint64_t number;
    uint64_t arrival;
};

/* A zeroed struct has no creates. */
struct wakes {
    struct wake_list *lists; /* by what they wait for */
    struct create **due;     /* a heap: the one that is due first is first */
    size_t due_len;
    struct woken *woken;
    size_t woken_len;
    uint64_t looks; /* how often a create was looked at; for tests */
};

void wakes_fini(struct wakes *wakes);

/* The create was admitted, is looked at for the first time soon; it goes. */
void wake_join(struct devicemgr *mgr, struct create *create);
void wake_leave(struct devicemgr *mgr, struct create *create);

void wake_create(struct devicemgr *mgr, struct create *create);
void wake_all(struct devicemgr *mgr);
/* Creates of this pod. */
void wake_pod(struct devicemgr *mgr, const char *pod_uid);
/* Whether its devices can be used, or which there are, has changed. */
void wake_resource(struct devicemgr *mgr, const char *resource);
/* Which of its devices may be chosen has changed: creates that choose. */
void wake_choosers(struct devicemgr *mgr, const char *resource);
/* Who may run with its devices has changed: creates that want one of them, or choose. */
void wake_holders(struct devicemgr *mgr, const struct allocation *allocation);
/* All that have become due. */
void wake_tick(struct devicemgr *mgr);
/* UINT64_MAX: not by time alone. */
void wake_set_due(struct devicemgr *mgr, struct create *create, uint64_t due_ms);
/* When the next one is due; UINT64_MAX: none is. */
uint64_t wakes_next_ms(const struct devicemgr *mgr);
/* Takes those that were woken, in order of arrival: their numbers, which the caller frees. */
uint64_t *wakes_take(struct devicemgr *mgr, size_t *len);

/* Another create of the same pod and container that is not forwarded yet; NULL: none. */
struct create *wake_find_other(const struct devicemgr *mgr, const struct create *create);

#endif
