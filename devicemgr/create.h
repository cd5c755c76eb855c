/*
 * One CreateContainer that asks for devices, from its arrival to the runtime's answer.
 *
 *   SELECTING ──▶ ALLOCATING ──▶ COMMITTING ──▶ PRESTARTING ──▶ FORWARDED ──▶ end
 *
 *   SELECTING    devices are found and reserved, for all resources or for none; waits for usable
 *                endpoints and devices, for who holds them, for a plugin's preference
 *   ALLOCATING   what has no runtime options in force is asked of its plugin
 *   COMMITTING   if anything is new: the checkpoint
 *   PRESTARTING  PreStartContainer of the plugins that want it, every time
 *   FORWARDED    the verdict is given; waits for the runtime's answer
 *
 * Refused, cancelled or taken over by the client's retry, it may end in each of them; what it had
 * reserved and not committed is free again then.
 */
#ifndef DEVICEMGR_CREATE_H
#define DEVICEMGR_CREATE_H

#include "devicemgr/core.h"
#include "devicemgr/request.h"

enum create_state {
    CREATE_SELECTING,
    CREATE_ALLOCATING,
    CREATE_COMMITTING,
    CREATE_PRESTARTING,
    CREATE_FORWARDED,
};

/* Why a create does not go on; several at once. */
enum create_block {
    BLOCK_ENDPOINT = 1 << 0,  /* a plugin is away, or has sent no list yet */
    BLOCK_UNHEALTHY = 1 << 1, /* a device is unhealthy or not listed */
    BLOCK_HOLDER = 1 << 2,    /* whether a device's holder still runs is not known yet */
    BLOCK_PREFER = 1 << 3,    /* a call is under way: GetPreferredAllocation */
    BLOCK_ALLOCATE = 1 << 4,  /* Allocate */
    BLOCK_COMMIT = 1 << 5,    /* the store */
    BLOCK_PRESTART = 1 << 6,  /* PreStartContainer */
    BLOCK_SANDBOX = 1 << 7,   /* its sandbox is not ready, as the runtime last said */
};

/* What a plugin says of its preference is asked once. */
enum create_prefer {
    PREFER_NOT_ASKED,
    PREFER_ASKED,
    PREFER_ANSWERED,
};

struct create_item {
    const struct request_item *want;
    uint64_t call; /* the plugin call under way; 0: none */
    enum create_prefer prefer;
    struct ids offered;   /* to the plugin for its preference, in natural order; until it answers */
    struct ids preferred; /* of these, in the plugin's order */
    uint64_t prestarted;  /* the endpoint that answered PreStartContainer; 0: none yet */
};

struct create {
    uint64_t number;
    char *sandbox_id;
    char *pod_uid;
    char *pod_namespace;
    char *pod_name;
    char *container;
    uint32_t attempt;
    struct request request;
    struct create_item *items; /* one for each of request.items */
    enum create_state state;
    uint64_t arrival;
    bool woken;         /* to be looked at */
    struct wait *waits; /* what may wake it (wake.c) */
    uint64_t due_ms;    /* when time does; UINT64_MAX: never */
    size_t due_at;      /* its place in the heap, from 1; 0: none */
    struct create *commit_prev, *commit_next;
    unsigned blocks; /* enum create_block */
    uint64_t started_ms;
    uint64_t limit_ms; /* the client's deadline, less a margin */
    bool held;
    uint64_t held_ms;       /* when it began to be; only while `held` */
    uint64_t hold_until_ms; /* likewise */
    uint64_t commit;        /* the commit that carries it; 0: none yet */
    UT_hash_handle hh;
};

/* How far one look at a create got. */
enum create_step {
    STEP_GO,     /* the state's work is done */
    STEP_CALL,   /* a call is under way, which has a deadline of its own */
    STEP_HOLD,   /* the world must change first */
    STEP_REFUSE, /* it never will */
};

struct create_refusal {
    int code;         /* of STEP_REFUSE */
    uint64_t hold_ms; /* of STEP_HOLD: how long it may last, all in all */
    struct text text;
};

enum call_kind {
    CALL_ALLOCATE,
    CALL_PREFER,
    CALL_PRESTART,
};

/* ---- create.c: the states after SELECTING, and the end; create_admit.c: the arrival ---- */

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
void create_refuse(struct devicemgr *mgr, struct create *create, int code, const struct text *text);
/* The two halves that are left before it was admitted. */
void create_push_refusal(struct devicemgr *mgr, uint64_t number, int code, const struct text *text);
void create_free(struct devicemgr *mgr, struct create *create);
/* Of the items' looks so far, the refusal of the worst; of several that hold, the first in words,
 * the shortest in time: none of them can be missed. */
void create_worst(const struct devicemgr *mgr, const struct create_item *item,
                  enum create_step step, const struct create_refusal *of_item,
                  enum create_step *worst, struct create_refusal *refusal);
/* Adds `container "c" of pod "ns/name": `, and `resource r: ` unless it is NULL. */
void create_name(const struct create *create, const char *resource, struct text *text);

/* Whether the create is of its sandbox's pod, which is who holds what it gets. GO or REFUSE; a
 * sandbox that is not known says nothing. */
enum create_step create_check_pod(const struct devicemgr *mgr, const struct create *create,
                                  struct create_refusal *refusal);

/* Whether pods of this namespace may ask by annotation, if any may. */
bool create_namespace_allowed(const struct devicemgr *mgr, const char *pod_namespace);

/* ---- create_call.c: calls on plugins ---- */

/* Begins a call for item `index` on the devices `ids`; `timeout_ms` is cut to what the client's
 * deadline leaves. The action's other fields are for the caller to fill. */
struct action *create_call(struct devicemgr *mgr, struct create *create, size_t index,
                           enum call_kind kind, const struct resource *resource,
                           const struct ids *ids, uint64_t timeout_ms);
/* Cancels the item's call, if there is one. */
void create_call_cancel(struct devicemgr *mgr, struct create_item *item);
/* Adds which call is under way and for how long. */
void create_call_explain(const struct devicemgr *mgr, const struct create_item *item,
                         struct text *text);
/* The endpoint's connection is over, and the calls on it with it. */
void calls_drop(struct devicemgr *mgr, uint64_t endpoint);
void calls_fini(struct devicemgr *mgr);

/* ---- create_select.c: the state SELECTING ---- */

/* Finds and reserves the devices of every item, or of none. */
enum create_step create_select(struct devicemgr *mgr, struct create *create,
                               struct create_refusal *refusal);
/* Whether an item's devices can be used now: the resource is known, its endpoint active, the ids
 * listed and healthy. GO, HOLD or REFUSE. */
enum create_step create_item_usable(struct devicemgr *mgr, struct create *create,
                                    const struct request_item *want, const struct ids *ids,
                                    struct create_refusal *refusal);
/* Gives back what was reserved and is not committed, or about to be. */
void create_release(struct devicemgr *mgr, struct create *create);
void checks_fini(struct devicemgr *mgr);

#endif
