/*
 * One CreateContainer that asks for devices, from its arrival to the runtime's answer. One with
 * claims only has nothing to do but in COMMITTING, if they are not stored, and in FORWARDED.
 *
 *                      ┌────── nothing is new ───────▼
 *   SELECTING ──▶ ALLOCATING ──▶ COMMITTING ──▶ PRESTARTING ──▶ FORWARDED ──▶ end
 *
 *   SELECTING    devices are found and reserved, for all resources or for none; waits for usable
 *                endpoints and devices, for who holds them, for a plugin's preference
 *   ALLOCATING   what has no runtime options in force is asked of its plugin
 *   COMMITTING   waits for the checkpoint to have it, and that it may run with its claims
 *   PRESTARTING  PreStartContainer of the plugins that want it, every time
 *   FORWARDED    the verdict is given; waits for the runtime's answer
 *
 * Refused, cancelled or taken over by the client's retry, it may end in each of them; what it had
 * reserved and not committed is free again then.
 */
#ifndef DEVICEMGR_MACHINES_CREATE_H
#define DEVICEMGR_MACHINES_CREATE_H

#include "devicemgr/books/state.h"
#include "devicemgr/questions/calls.h"
#include "devicemgr/questions/check.h"
#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"
#include "devicemgr/things/renames.h"
#include "devicemgr/words/reason.h"

enum create_state {
    CREATE_SELECTING,
    CREATE_ALLOCATING,
    CREATE_COMMITTING,
    CREATE_PRESTARTING,
    CREATE_FORWARDED,
};

/* The calls for one resource of the demand. */
struct create_item {
    struct call *call;   /* the one under way; NULL: none */
    uint64_t queued_ms;  /* since when it waits for others' to be over; 0: it does not */
    uint64_t prestarted; /* the endpoint that answered PreStartContainer; 0: none yet */
    bool replaced;       /* it gets others in the place of what is lost, by this create */
};

struct create {
    uint64_t number;
    struct demand demand;
    struct create_item *items; /* one for each of demand.request.items */
    struct wanted *wanted;     /* likewise: what there is of it, during a look */
    enum create_state state;   /* moved by create.c's create_set_state() alone */
    struct waiter waiter;
    struct create *commit_prev, *commit_next;
    uint64_t limit_ms;      /* the client's deadline, less a margin */
    bool waiting;           /* for the world to change: it is held */
    uint64_t waiting_ms;    /* since when; this and the next two only while `waiting` */
    uint64_t hold_until_ms; /* then it is refused */
    uint64_t again_ms;      /* when time alone may change why; UINT64_MAX: never */
    uint64_t held_ms;       /* for so long it was held before; 1 at least, if it was at all */
    uint64_t commit;        /* the commit that carries it; 0: none yet */
    struct renames renames; /* of CDI names that it has (rules/lapsed.h) */
    bool unclaimed;         /* with which it has nothing of the claims that it names */
    UT_hash_handle hh;
};

struct creates {
    struct state *state;
    struct calls *calls;
    struct checks *checks;
    struct create *by_number;  /* in order of arrival */
    struct create *committing; /* by commit_next, those that wait for the store */
    uint64_t refused[REASON_KINDS];
};

/*
 * Who calls whom: create_admit.c, create.c, create_take.c, create_forward.c, create_call.c,
 * creates.c, each only those behind it.
 */

/* How long it was held, all in all; 0: never. */
static inline uint64_t create_held_ms(const struct state *state, const struct create *create)
{
    uint64_t now_ms = state->now_ms;

    if (!create->waiting)
        return create->held_ms;
    return create->held_ms + (now_ms > create->waiting_ms ? now_ms - create->waiting_ms : 1);
}

/* ---- creates.c: the table; the end of a create ---- */

void creates_fini(struct creates *creates);
/* NULL: no such create, or over. */
struct create *creates_find(struct creates *creates, uint64_t number);
/* With what it goes on, if it does; `renames` are taken. */
void creates_rename(struct creates *creates, uint64_t number, struct renames *renames);
/* Wakes who waits for a call on the resource's plugin to be over. */
void creates_call_over(struct creates *creates, const char *resource);
/* The allocation that it works on, of the resource `index`; NULL: there is none, also when its pod
 * was removed, and made anew. */
struct allocation *create_allocation(struct state *state, const struct create *create,
                                     size_t index);
/* Gives back what was reserved and is not committed, or about to be. */
void create_release(struct state *state, const struct create *create);
/* Its end without a verdict: cancels its calls, gives back what it reserved, frees it. */
void create_abandon(struct creates *creates, struct create *create);
/* Adds why it is refused, or waits; who reads that may not be told all, which is logged. */
void create_explain(struct state *state, const struct create *create, const struct reason *reason,
                    struct text *text);
/* Queues the verdict, and abandons it. */
void create_refuse(struct creates *creates, struct create *create, const struct reason *reason);
void create_free(struct creates *creates, struct create *create);

/* ---- create_call.c: what its plugins are asked, and answer ---- */

/* Asks for item `index`, unless it is being asked already, its plugin is for as many others as it
 * may be at once, or there is hardly any time left behind these; the client's deadline cuts the
 * timeout, who asks is filled in. */
void create_call(struct creates *creates, struct create *create, size_t index,
                 const struct resource *resource, struct call_question asks);
/* The item's call is not answered yet, or not made: ASK. */
struct look create_call_look(const struct create *create, size_t index);
/* devicemgr_allocated(), and so on, of calls that are ours, by their numbers. */
void creates_allocated(struct creates *creates, uint64_t number, int code, const char *message,
                       const V1beta1__AllocateResponse *response);
void creates_preferred(struct creates *creates, uint64_t number, int code,
                       const V1beta1__PreferredAllocationResponse *response);
void creates_prestarted(struct creates *creates, uint64_t number, int code, const char *message);
/* The endpoint's connection is over, and the calls on it with it. */
void creates_endpoint_ended(struct creates *creates, uint64_t endpoint);

/* ---- create_forward.c: the state FORWARDED ---- */

/* Queues the verdict. */
void create_forward(struct state *state, const struct create *create);
/* devicemgr_create_answered(), devicemgr_create_cancelled() */
void creates_answered(struct creates *creates, uint64_t number, const char *container_id);
void creates_cancelled(struct creates *creates, uint64_t number);

/* ---- create_take.c: the state SELECTING ---- */

/* Acts on what selection.h says: asks, drops, and reserves the devices of every item, or of
 * none. */
struct look create_take(struct creates *creates, struct create *create);
/* The cluster has said something of the claims of this uid, by which containers may have devices of
 * lifted resources by now. */
void creates_claim_told(struct creates *creates, const char *uid);

/* ---- create.c: the run through the states ---- */

/* Looks again at one that was woken, if it is not over by now. Returns what it asks for, borrowed,
 * if it was forwarded by that; else NULL. */
const struct demand *creates_advance(struct creates *creates, uint64_t number);
/* Looks at all: none that was not woken may go on. One may be refused that another overtook. */
void creates_verify(struct creates *creates);
/* A commit takes every create that waits for one. */
void creates_commit_began(struct creates *creates, uint64_t commit);
void creates_committed(struct creates *creates, uint64_t commit, const char *error);

/* ---- create_admit.c: the arrival ---- */

/* devicemgr_create(); one that is refused for what others have found. */
void creates_begin_refused(struct creates *creates, uint64_t number,
                           const struct devicemgr_create *said, const struct reason *reason);
bool creates_begin(struct creates *creates, uint64_t number, const struct devicemgr_create *said);
/* One that asks for claims only. False: it asks for none that is known, and, if it is not
 * `renamed`, passes as it is. */
bool creates_begin_claimed(struct creates *creates, uint64_t number,
                           const struct devicemgr_create *said, bool renamed);

#endif
