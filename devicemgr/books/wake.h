/*
 * Which creates a change concerns, and when the next one is due.
 *
 * A create that waits is looked at again when something it may wait for has changed: its pod, a
 * resource it names, who holds a device it wants. Indexes from each of these to those who wait find
 * them, so that an event costs what it concerns, not what waits; but for the end of a call, which
 * wakes all that wait for their turn at the plugin. wake_...() marks them; create.c looks at them,
 * in order of arrival, from devicemgr_run(); who may hang a plugin comes behind all others, which
 * would else have no turn where there are many of these, each new again and again.
 */
#ifndef DEVICEMGR_BOOKS_WAKE_H
#define DEVICEMGR_BOOKS_WAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/mem.h"

struct allocation;
struct demand;

/* Who waits: a part of the create, which is over before the waiter is. */
struct waiter {
    uint64_t number;             /* the create's */
    const struct demand *demand; /* likewise */
    bool replaces;               /* it may get others than its token says, or has: as if it chose */
    uint64_t arrival;
    bool late;    /* its plugin did not answer for it the last time: looked at behind the rest */
    bool woken;   /* to be looked at */
    bool decided; /* its verdict is given: it is looked at no more, and has no due time */
    struct wait *waits; /* what may wake it */
    uint64_t due_ms;    /* when time does; UINT64_MAX: never */
    size_t due_at;      /* its place in the heap, from 1; 0: none */
    UT_hash_handle hh;
};

/* One that is to be looked at; it may be over by then. */
struct woken {
    uint64_t number;
    uint64_t arrival;
    bool late;
};

/* A zeroed struct has nobody who waits. */
struct wakes {
    struct waiter *waiters;  /* by number */
    struct wake_list *lists; /* by what they wait for */
    struct waiter **due;     /* a heap: the one that is due first is first */
    size_t due_len;
    struct woken *woken;
    size_t woken_len;
    uint64_t arrivals;     /* of creates */
    uint64_t looks;        /* how often a create was looked at; for tests */
    uint64_t device_looks; /* how often a device was, for those that choose */
};

/* All have left. */
void wakes_fini(struct wakes *wakes);

/* Its create was admitted, and is looked at for the first time soon; `number` and `demand`, which
 * is borrowed until it leaves, are set. `due_ms` as of wake_set_due(). */
void wake_join(struct wakes *wakes, struct waiter *waiter, uint64_t due_ms);
/* Its verdict is given. */
void wake_decided(struct wakes *wakes, struct waiter *waiter);
/* One that has not joined may leave, too. */
void wake_leave(struct wakes *wakes, struct waiter *waiter);

void wake_one(struct wakes *wakes, struct waiter *waiter);
void wake_all(struct wakes *wakes);
/* Creates of this pod. */
void wake_pod(struct wakes *wakes, const char *pod_uid);
/* Whether its devices can be used, or which there are, has changed. */
void wake_resource(struct wakes *wakes, const char *resource);
/* Which of its devices may be chosen has changed: creates that choose. */
void wake_choosers(struct wakes *wakes, const char *resource);
/* Who may run with its devices has changed: creates that want one of them, or choose. */
void wake_holders(struct wakes *wakes, const struct allocation *allocation);
/* All that have become due. */
void wake_tick(struct wakes *wakes, uint64_t now_ms);
/* UINT64_MAX: not by time alone. */
void wake_set_due(struct wakes *wakes, struct waiter *waiter, uint64_t due_ms);
/* When the next one is due; UINT64_MAX: none is. */
uint64_t wakes_next_ms(const struct wakes *wakes);
/* Takes those that were woken, in that order: their numbers, which the caller frees. */
uint64_t *wakes_take(struct wakes *wakes, size_t *len);

/* Those of them that were not looked at after all. */
void wakes_put_back(struct wakes *wakes, const uint64_t *numbers, size_t len);

/* NULL: that create is over. */
struct waiter *wakes_find(struct wakes *wakes, uint64_t number);
/* Another one for the same pod and container that is not decided yet; NULL: none. */
const struct waiter *wakes_find_other(const struct wakes *wakes, const struct demand *demand);

#endif
