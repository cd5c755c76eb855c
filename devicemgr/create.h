/*
 * One CreateContainer that asks for devices, from its arrival to the runtime's answer.
 *
 *                      ┌────── nothing is new ───────▼
 *   SELECTING ──▶ ALLOCATING ──▶ COMMITTING ──▶ PRESTARTING ──▶ FORWARDED ──▶ end
 *
 *   SELECTING    devices are found and reserved, for all resources or for none; waits for usable
 *                endpoints and devices, for who holds them, for a plugin's preference
 *   ALLOCATING   what has no runtime options in force is asked of its plugin
 *   COMMITTING   waits for the checkpoint to have it
 *   PRESTARTING  PreStartContainer of the plugins that want it, every time
 *   FORWARDED    the verdict is given; waits for the runtime's answer
 *
 * Refused, cancelled or taken over by the client's retry, it may end in each of them; what it had
 * reserved and not committed is free again then.
 */
#ifndef DEVICEMGR_CREATE_H
#define DEVICEMGR_CREATE_H

#include "devicemgr/core.h"
#include "devicemgr/demand.h"
#include "devicemgr/look.h"

enum create_state {
    CREATE_SELECTING,
    CREATE_ALLOCATING,
    CREATE_COMMITTING,
    CREATE_PRESTARTING,
    CREATE_FORWARDED,
};

/* The calls for one resource of the demand. */
struct create_item {
    uint64_t call;       /* the one under way; 0: none */
    struct ids offered;  /* to the plugin for its preference, in natural order; until it answers */
    uint64_t prestarted; /* the endpoint that answered PreStartContainer; 0: none yet */
};

struct create {
    uint64_t number;
    struct demand demand;
    struct create_item *items; /* one for each of demand.items */
    enum create_state state;   /* moved by create.c alone */
    uint64_t arrival;
    bool woken;         /* to be looked at */
    struct wait *waits; /* what may wake it (wake.c) */
    uint64_t due_ms;    /* when time does; UINT64_MAX: never */
    size_t due_at;      /* its place in the heap, from 1; 0: none */
    struct create *commit_prev, *commit_next;
    uint64_t limit_ms; /* the client's deadline, less a margin */
    bool held;
    uint64_t held_ms;       /* when it began to be; only while `held` */
    uint64_t hold_until_ms; /* likewise */
    uint64_t again_ms;      /* likewise: when time alone may change why; UINT64_MAX: never */
    uint64_t commit;        /* the commit that carries it; 0: none yet */
    UT_hash_handle hh;
};

enum call_kind {
    CALL_ALLOCATE,
    CALL_PREFER,
    CALL_PRESTART,
};

/* ---- create.c: its states, and the end; create_admit.c: the arrival ---- */

/* devicemgr_create() */
bool creates_begin(struct devicemgr *mgr, uint64_t number, const struct devicemgr_create *request);
/* Looks again at every create that was woken. */
void creates_advance(struct devicemgr *mgr);
/* Looks at all: none that was not woken may go on. One may be refused that another overtook. */
void creates_check(struct devicemgr *mgr);
void creates_fini(struct devicemgr *mgr);
/* A commit takes every create that waits for one. */
void creates_commit_began(struct devicemgr *mgr, uint64_t commit);
void creates_committed(struct devicemgr *mgr, uint64_t commit, const char *error);
/* NULL: no such create, or over. */
struct create *creates_find(const struct devicemgr *mgr, uint64_t number);
/* Queues the verdict, cancels its calls, gives back what it reserved, frees it. */
void create_refuse(struct devicemgr *mgr, struct create *create, const struct reason *reason);
/* Of one that was not admitted: queues the verdict; frees it. */
void create_push_refusal(struct devicemgr *mgr, const struct create *create,
                         const struct reason *reason);
void create_free(struct devicemgr *mgr, struct create *create);
/* Cancels its calls, and gives back what it reserved. */
void create_abandon(struct devicemgr *mgr, struct create *create);
/* What it has of resource `index`; NULL: nothing. */
struct allocation *create_allocation(const struct devicemgr *mgr, const struct create *create,
                                     size_t index);

/* ---- create_forward.c: the state FORWARDED ---- */

/* Queues the verdict. */
void create_forward(struct devicemgr *mgr, struct create *create);
/* ---- create_call.c: calls on plugins ---- */

/* Begins a call for item `index` on the devices `ids`; `timeout_ms` is cut to what the client's
 * deadline leaves. The action's other fields are for the caller to fill. */
struct action *create_call(struct devicemgr *mgr, struct create *create, size_t index,
                           enum call_kind kind, const struct resource *resource,
                           const struct ids *ids, uint64_t timeout_ms);
/* Cancels the item's call, if there is one. */
void create_call_cancel(struct devicemgr *mgr, struct create_item *item);
/* The item's call is not answered yet: ASK. */
struct look create_call_look(const struct devicemgr *mgr, const struct create *create,
                             size_t index);
/* devicemgr_preferred(), of a call of ours */
void call_preferred(struct devicemgr *mgr, uint64_t number, int code,
                    const V1beta1__PreferredAllocationResponse *response);
/* The endpoint's connection is over, and the calls on it with it. */
void calls_drop(struct devicemgr *mgr, uint64_t endpoint);
/* How many are under way. */
size_t calls_len(const struct devicemgr *mgr);
void calls_fini(struct devicemgr *mgr);

/* ---- create_take.c: the state SELECTING ---- */

/* Acts on what selection.h says: asks, drops, and reserves the devices of every item, or of none. */
struct look create_take(struct devicemgr *mgr, struct create *create);
/* Gives back what was reserved and is not committed, or about to be. */
void create_release(struct devicemgr *mgr, struct create *create);

/* ---- check.c: questions to the runtime ---- */

/* Asks whether the holder's container still runs. */
void check_start(struct devicemgr *mgr, const struct create *create, struct allocation *holder);
/* How many questions about containers are open. */
size_t checks_len(const struct devicemgr *mgr);
/* devicemgr_container_checked(). Which container has ended, by that; the caller frees it. NULL: it
 * has not, or is of no interest any more. */
char *check_answered(struct devicemgr *mgr, uint64_t number, enum devicemgr_checked answer);
void checks_fini(struct devicemgr *mgr);

#endif
