/*
 * Who is evicted for taints, and when.
 *
 *   WAITS ──▶ ASKED        it is due, the store has its taint, and fewer than
 *     ▲         │          settings.evict_per_minute went in the last minute: its end is asked for
 *     │         │          (end.h)
 *     └─────────┘          it is not due any more, or not yet: that is taken back
 *
 * What is to be is found out anew after whatever happens, from the holders that there are then
 * (rules/evictable.h); so nothing has to be remembered to be undone, and what is due is looked at
 * once more when its time has come. A pod is there once, however many taints of however many
 * devices it is for: the earliest counts. It is gone from here with its last taint, with a
 * toleration, or with itself. One whose containers were stopped for it, or that was evicted, is
 * kept from coming back as long as the runtime knows it and its taint is there: a kubelet that
 * finds its sandbox stopped makes another.
 *
 * Those that an earlier process has asked for count among those of the last minute, as far as their
 * rows are there: a pod that the runtime has forgotten since then does not.
 *
 * A kubelet asks nothing for a pod that comes to a claim which is prepared already, so that only
 * the cluster knows that it may use it: of a claim that is tainted from here that is asked again,
 * from the taint on, once in CLAIM_LOOK_AGAIN_MS.
 *
 * Each one is for itself: asking does not wait, and what becomes of one that is asked for (a
 * disruption budget that does not let it go) is nobody else's concern. Before the runtime's first
 * list nobody is asked for, since nobody knows who is there.
 */
#ifndef DEVICEMGR_MACHINES_EVICT_H
#define DEVICEMGR_MACHINES_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/words/reason.h"

struct evictable;

enum eviction_state {
    EVICTION_WAITS,
    EVICTION_ASKED,
};

/* Of one pod. */
struct eviction {
    char *pod_uid;
    enum eviction_state state;
    bool found;     /* by the look under way */
    bool adopted;   /* asked for before what is told now; whether it is so still is not known yet */
    bool clusters;  /* some of its taints are the cluster's; while adopted: or may have been */
    uint64_t at_ms; /* when it is due, by its first taint; UINT64_MAX: that is not known yet */
    char *why;      /* for that one: a part of a sentence */
    UT_hash_handle hh;
};

/* What is to be done about a pod. */
enum eviction_step_kind {
    EVICTION_ASK,
    EVICTION_CONFIRM, /* what was asked for before is so still */
    EVICTION_TAKE_BACK,
};

struct eviction_step {
    enum eviction_step_kind kind;
    char *pod_uid;
    char *why;
    struct eviction_step *prev, *next;
};

struct evicts {
    struct state *state;
    struct eviction *by_uid;
    struct eviction_step *steps; /* oldest first */
    /* When the last ones were asked for, as many as may be within a minute, in a ring. */
    uint64_t asked_ms[EVICT_PER_MINUTE_MAX];
    uint64_t asked;        /* how many, with those that an earlier process has asked for */
    uint64_t asked_before; /* of them: by that one */
    uint64_t taken_back;   /* of pods that are there yet, likewise */
    uint64_t look_ms;      /* when who may use some claim is asked for again; UINT64_MAX: never */
    uint64_t looks;        /* how often a claim was looked at; for tests */
    size_t stale;          /* holders of which nothing is known, at the last look */
    bool adopted;          /* what was asked for before this start is known */
};

void evicts_fini(struct evicts *evicts);
/* Finds out who is to go now: after events and ticks, unless nothing is NoExecute, nor was, and
 * nobody who may use a claim is to be asked for again. */
void evicts_review(struct evicts *evicts);
static inline bool evicts_quiet(const struct evicts *evicts)
{
    const struct state *state = evicts->state;

    return evicts->adopted && !evicts->by_uid && evicts->stale == 0 &&
           evicts->look_ms == UINT64_MAX && !tainted_no_execute(&state->tainted, &state->orders);
}
/* Taints of the cluster may be others by now: for whoever was asked for it is to be known anew that
 * it is so still. */
void evicts_doubt(struct evicts *evicts);
/* Who may use some claim is asked for again at that time: the cluster has refused to tell it. */
void evicts_look_at(struct evicts *evicts, uint64_t at_ms);
/* Whether it is not known yet, also since a start, that the pod is to go still, if it was to. */
bool evicts_in_doubt(const struct evicts *evicts, const char *pod_uid);
/* The oldest step, for eviction_step_free(); NULL: nothing is to be done. */
struct eviction_step *evicts_take(struct evicts *evicts);
void eviction_step_free(struct eviction_step *step);
/* When somebody is due by time alone; UINT64_MAX: never. */
uint64_t evicts_next_ms(const struct evicts *evicts);
/* When one that WAITS is asked for; now or earlier: as soon as it is its turn; UINT64_MAX: that is
 * not known yet. */
uint64_t evicts_due_ms(const struct evicts *evicts, const struct eviction *eviction);
/* How many are due, or will be, and are not asked for yet; and how many are. */
size_t evicts_len(const struct evicts *evicts, enum eviction_state state);

#endif
