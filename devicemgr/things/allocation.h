/*
 * The allocations: which devices of a resource which container of which pod holds, with what
 * runtime options; and, the other way round, who holds a device.
 *
 * An allocation is kept per (pod uid, container name, resource) and outlives its container: the
 * next attempt of that container gets the same devices. A device may be in several allocations as
 * long as at most one of them has a container that can run, or the resource is not exclusive; the
 * table allows it, selection.c sees to it.
 *
 * Two things move, each by itself. Its *row* in the checkpoint:
 *
 *             its create has        a commit           it has
 *             all options           begins             succeeded
 *   RESERVED ───────────────▶ QUEUED ────────▶ CARRIED ──────────▶ DURABLE
 *                               ▲                                     │
 *                               └──────────── new options ────────────┘
 *
 * If its create is given up before a commit carries it, or the commit fails, one that was DURABLE
 * before is so again, as it was; another is removed. But where a row has its devices, and new
 * options are all that could not be stored, these are in force, and stored later. One that is to
 * have others in the place of what is lost is RESERVED once more, beside its older row, as long as
 * nobody else is stored with some of that. One that was restored, or is found with a container that
 * runs, is DURABLE at once;
 *
 * and its *life*, what is known of its containers. Several of these may be true at a time, the
 * first of them is its life:
 *
 *   BUSY     a create is being decided, or was forwarded: until its answer, or its end
 *   LIVE     containers that may run: until each of them has ended, by an event, an answer, a list
 *   UNKNOWN  one that nobody has told us of may run, or be in the making: until a list that was
 *            asked for late enough, or the end of its sandbox
 *   IDLE     none of these: it holds its devices no more
 *
 * The kubelet keeps in its books for the pod's life what it gave the container. What that *asks*
 * for and what it has differ where the one is gone, and the shim has put another in its place.
 *
 * All of it is written by the functions below alone, but for `stored`.
 */
#ifndef DEVICEMGR_THINGS_ALLOCATION_H
#define DEVICEMGR_THINGS_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/things/by_claims.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/owners.h"

struct demand;

enum allocation_row {
    ALLOCATION_RESERVED, /* there is none: it goes with its create */
    ALLOCATION_QUEUED,   /* the next commit carries it */
    ALLOCATION_CARRIED,  /* `commit` does */
    ALLOCATION_DURABLE,  /* the checkpoint has it; or will soon, and its container says it, too */
};

enum allocation_life {
    ALLOCATION_ABSENT, /* of one that is not there; allocation_life() never says so */
    ALLOCATION_IDLE,
    ALLOCATION_BUSY,
    ALLOCATION_LIVE, /* the runtime can be asked about the latest of `lives` */
    ALLOCATION_UNKNOWN,
};

/* What an allocation waits for; several at once. */
enum allocation_wait {
    ALLOCATION_WAITS_STORE = 1 << 0,   /* QUEUED, CARRIED: a commit */
    ALLOCATION_WAITS_CREATE = 1 << 1,  /* BUSY: the end of the create */
    ALLOCATION_WAITS_CHECK = 1 << 2,   /* the runtime's answer whether its container runs */
    ALLOCATION_WAITS_LIST = 1 << 3,    /* UNKNOWN: the runtime's list */
    ALLOCATION_WAITS_KUBELET = 1 << 4, /* a reading of the kubelet's checkpoint, for its token */
};

/* Whether the kubelet's checkpoint has what its token says (kubelet.c). */
enum allocation_token {
    ALLOCATION_TOKEN_NONE,   /* nobody has asked yet */
    ALLOCATION_TOKEN_WAITS,  /* it had not: a reading from `token_ms` on tells */
    ALLOCATION_TOKEN_JUDGED, /* it has, or the operator was told that it has not */
};

/* What it contributes to what the kubelet is shown (advertise.c). */
enum shown_hold {
    SHOWN_NOTHING,
    SHOWN_HELD,  /* the kubelet gave its devices away, and may admit their pod again */
    SHOWN_TAKEN, /* the shim did: the kubelet must not */
};

/* A container of an allocation that may run. There is one, but where an earlier one has not ended
 * when the next is made, or its end was not told. */
struct allocation_live {
    char *container_id;
    char *sandbox_id;
    uint32_t attempt;
};

struct allocation {
    const char *pod_uid, *container, *resource; /* within `key` */
    struct ids ids;                             /* sorted */
    struct ids asked; /* sorted; what the kubelet said, or the shim chose at first, that `ids` are
                       * in the place of; empty: of nothing */
    bool own_choice;  /* the shim chose them; else the kubelet did, or it cannot be told */
    bool claimed;     /* else: they are its claims' (lift.h), which say who shares them: */
    struct by_claims by; /* by which; empty: that is not known */
    bool tentative;      /* the shim chose them, and no container was made with them yet */
    struct ids before;   /* likewise, in the place of what is lost of these, which it has again if
                          * none is; sorted; empty: of nothing */
    struct ids before_asked; /* `asked` with these */

    enum allocation_row row;
    bool renews;     /* not DURABLE: the checkpoint has an older row, which else stays; or a
                      * container says it */
    uint64_t commit; /* CARRIED: by which */
    bool stored;     /* the store may have a row of it; checkpoint.c's */

    V1beta1__ContainerAllocateResponse *options; /* durable ones; NULL: to be asked for */
    char *boot_id;                               /* boot in which they were given; "" unknown */
    uint64_t generation;                         /* resource.generation then */
    V1beta1__ContainerAllocateResponse *fresh;   /* given by the plugin, not durable yet */
    uint64_t fresh_generation;
    size_t options_bytes, fresh_bytes; /* what they take */

    uint64_t create;               /* BUSY: the create that works on it; 0: none */
    struct allocation_live *lives; /* LIVE: by attempt, the latest last */
    size_t lives_len;
    char *unknown_in;          /* UNKNOWN: the sandbox in which, "": not known; NULL: none is */
    uint64_t unknown_until_ms; /* a list asked for from then on shows it, if it was made */
    uint64_t epoch;            /* listing in which its containers were last heard of */
    /* What was asked and said of the containers that it has now. */
    struct allocation_said {
        uint64_t check;         /* the runtime is being asked about the latest of `lives`; 0: no */
        uint64_t again_ms;      /* it did not answer, and is asked again from then on; 0: not so */
        uint64_t to;            /* the create to which it said "it runs"; 0: none */
        uint64_t late_until_ms; /* it said so to a create that was over: counts until then; 0: no */
        bool exited;            /* its last list showed one that has exited */
    } said;

    enum allocation_token token;
    uint64_t token_ms; /* WAITS: when the create with it came */

    enum shown_hold shown;
    bool conflict_logged;

    struct allocations *table;
    bool changed; /* since its life was told; then it is in table->changed */
    struct allocation *changed_prev, *changed_next;
    enum allocation_life known; /* its life as it was told last; ABSENT: it never was */
    uint64_t known_ms;          /* since when it is that */
    bool stale;                 /* for advertise.c; then it is in table->stale */
    struct allocation *stale_prev, *stale_next;
    char *key;
    size_t key_bytes;
    struct allocation *pod_next;
    UT_hash_handle hh;
};

struct allocations {
    struct allocation *by_key;
    struct owners *devices;     /* by resource and id */
    struct owners *asked;       /* likewise, of what others are in the place of */
    struct owners *containers;  /* by id */
    struct pod_group *pods;     /* by pod uid */
    struct allocation *changed; /* whose life may be another since it was told */
    struct allocation *stale;   /* of which advertise.c may make another thing, likewise */
    struct ids dropped;         /* resources of those removed that were shown; for advertise.c */
    size_t options_bytes;       /* what all options take, the fresh ones, too */
    uint64_t looks;             /* how often one was asked for a container's end; for tests */
};

/* A zeroed struct is an empty table. */
void allocations_fini(struct allocations *table);

/* Adds one that is not there yet; `ids` are copied and sorted. */
struct allocation *allocations_add(struct allocations *table, const char *pod_uid,
                                   const char *container, const char *resource,
                                   const struct ids *ids);
/* NULL: there is none. */
const struct allocation *allocations_find(const struct allocations *table, const char *pod_uid,
                                          const char *container, const char *resource);
/* The same, to be changed. */
struct allocation *allocations_edit(struct allocations *table, const char *pod_uid,
                                    const char *container, const char *resource);
/* One that was found by who could only read the table. Accepts NULL. */
static inline struct allocation *allocations_mutable(struct allocations *table,
                                                     const struct allocation *allocation)
{
    (void)table;
    return (struct allocation *)allocation;
}

/* Of the container that is to be made, for the resource `index` of what it asks for. */
const struct allocation *allocations_demanded(const struct allocations *table,
                                              const struct demand *demand, size_t index);
void allocations_remove(struct allocations *table, struct allocation *allocation);
/* All allocations that hold the device, oldest first; valid until the table changes. */
const struct owners *allocations_holders(const struct allocations *table, const char *resource,
                                         const char *id);
/* All allocations that others are in for, among them the device; likewise. */
const struct owners *allocations_askers(const struct allocations *table, const char *resource,
                                        const char *id);
/* One that has the container among those that may run; NULL: none. */
struct allocation *allocations_of_container(struct allocations *table, const char *container_id);
/* A pod's allocations, linked by pod_next; NULL: none. */
const struct allocation *allocations_of_pod(const struct allocations *table, const char *pod_uid);
/* The same, to be changed. */
struct allocation *allocations_edit_of_pod(struct allocations *table, const char *pod_uid);

/* Whether options of that size may be kept with all others, OPTIONS_BYTES_MAX. */
bool allocations_have_room(const struct allocations *table, size_t options_bytes);

/* The first of table->changed, whose life may have changed, no more in that list. */
struct allocation *allocations_take_changed(struct allocations *table);
/* Its life as it is now is the known one. */
void allocation_set_known(struct allocation *allocation, uint64_t now_ms);
/* Its life may be another: it is in table->changed until that is told, and in table->stale. */
void allocation_set_changed(struct allocation *allocation);
/* What its pod is has changed: it is in table->stale until advertise.c looks at it again. */
void allocation_set_stale(struct allocation *allocation);
/* The first of these, which are in table->stale, no more in that list. */
struct allocation *allocations_take_stale(struct allocations *table);
void allocation_set_shown(struct allocation *allocation, enum shown_hold shown);

/* enum allocation_wait */
unsigned allocation_waits(const struct allocation *allocation);
static inline enum allocation_life allocation_life(const struct allocation *allocation)
{
    if (allocation->create)
        return ALLOCATION_BUSY;
    if (allocation->lives_len > 0)
        return ALLOCATION_LIVE;
    return allocation->unknown_in ? ALLOCATION_UNKNOWN : ALLOCATION_IDLE;
}

/* Whether others are in the place of what the kubelet gave it. */
static inline bool allocation_replaced(const struct allocation *allocation)
{
    return allocation->asked.len > 0;
}

/* What the kubelet gave it, and asks for with each of its containers; what it has, if the kubelet
 * gave it nothing. */
static inline const struct ids *allocation_asked(const struct allocation *allocation)
{
    return allocation_replaced(allocation) ? &allocation->asked : &allocation->ids;
}

/* Whether the kubelet has given it others than it has, which are the pod's in its books. */
static inline bool allocation_promised(const struct allocation *allocation)
{
    return allocation_replaced(allocation) && !allocation->own_choice;
}

/* Of one that was added just now: its devices are in the place of these, which are copied and
 * sorted; as many. None, or the same: they are not. */
void allocation_set_replaced(struct allocation *allocation, const struct ids *asked);
/* Who chose its devices: the shim, or the kubelet. */
void allocation_set_own_choice(struct allocation *allocation, bool own_choice);
/* Or the scheduler, for these claims: copied. NULL: it was not for claims. */
void allocation_set_claimed(struct allocation *allocation, const struct by_claims *by);
/* The shim did just now: see `tentative`. */
void allocation_set_tentative(struct allocation *allocation);
void allocation_set_token(struct allocation *allocation, enum allocation_token token,
                          uint64_t token_ms);
/* True the first time. */
bool allocation_conflict_once(struct allocation *allocation);

/* ---- its containers ---- */

/* The create that works on it, or 0. */
void allocation_set_create(struct allocation *allocation, uint64_t create);
/* The container of which it is asked whether it runs; NULL: none. */
const char *allocation_live_id(const struct allocation *allocation);
/* `container_id` of `sandbox_id` may run from now on, with those that may already. What is not
 * known stays so. */
void allocation_set_live(struct allocation *allocation, const char *container_id,
                         const char *sandbox_id, uint32_t attempt);
/* Some container may run in `sandbox_id`, or be made there yet, nobody knows which: until a list
 * that was asked for from `until_ms` on. */
void allocation_set_unknown(struct allocation *allocation, const char *sandbox_id,
                            uint64_t until_ms);
/* `container_id` runs no more. False: it was none of those that may. */
bool allocation_set_ended(struct allocation *allocation, const char *container_id);
/* Nothing is in the making in that sandbox any more; what runs there goes on. */
void allocation_set_sandbox_closed(struct allocation *allocation, const char *sandbox_id);
/* Nothing of it runs any more, either. */
void allocation_set_sandbox_ended(struct allocation *allocation, const char *sandbox_id);
/* None runs, and none is in the making. */
void allocation_set_idle(struct allocation *allocation);
/* It is about to be removed. */
void allocation_drop_lives(struct allocation *allocation);
/* Its devices, and what they are in the place of, are in the table's indexes from now on; or no
 * more: they are about to be others. */
void allocation_put_in(struct allocation *allocation);
void allocation_take_out(struct allocation *allocation);
/* Its containers were heard of while list `epoch` was the last asked for. */
void allocation_set_epoch(struct allocation *allocation, uint64_t epoch);
/* A list shows a container of it that has exited. */
void allocation_set_exited(struct allocation *allocation);
/* The runtime is asked by `check` whether its latest container runs. */
void allocation_set_asked(struct allocation *allocation, uint64_t check);
/* The answer has come, if that is what it waits for: false, it is about another container. */
bool allocation_set_answered(struct allocation *allocation, uint64_t check);
/* There was none: it may be asked again from `again_ms` on. */
void allocation_set_unanswered(struct allocation *allocation, uint64_t again_ms);
/* It was "it runs", to this create. If that is over, the answer counts for the next one of the pod
 * until `late_until_ms`; 0: it is not. */
void allocation_set_said_to_run(struct allocation *allocation, uint64_t create,
                                uint64_t late_until_ms);

/* ---- its row ---- */

/* Whether the checkpoint has a row of it, be it an older one. */
static inline bool allocation_durable(const struct allocation *allocation)
{
    return allocation->row == ALLOCATION_DURABLE || allocation->renews;
}

/* It stands on a container, or in the kubelet's checkpoint: from RESERVED to DURABLE. One that is
 * QUEUED or CARRIED stays so, and is DURABLE whatever becomes of that. */
void allocation_set_found(struct allocation *allocation);
/* So does its row, with the options that were given in that boot; takes `options`, may be NULL. */
void allocation_set_restored(struct allocation *allocation,
                             V1beta1__ContainerAllocateResponse *options, const char *boot_id);
/* Sets what the plugin answered, to be made durable; takes `options`. */
void allocation_set_fresh(struct allocation *allocation,
                          V1beta1__ContainerAllocateResponse *options, uint64_t generation);
/* From DURABLE to RESERVED: `ids`, which the shim chose, in the place of what is lost of its own;
 * `asked` as with allocation_set_replaced(). Its options are asked for anew, whatever becomes of
 * it. */
void allocation_replace(struct allocation *allocation, const struct ids *ids,
                        const struct ids *asked);
/* From RESERVED or DURABLE to QUEUED: what it has now is to be made durable. */
void allocation_queue(struct allocation *allocation);
/* Of a RESERVED one: its older row is to go, and what it had before is not had again. */
void allocation_forget_before(struct allocation *allocation);
/* From QUEUED to CARRIED. */
void allocation_carry(struct allocation *allocation, uint64_t commit);
/* From CARRIED to DURABLE: the commit succeeded, the fresh options, if any, are those in force. */
void allocation_confirm(struct allocation *allocation, const char *boot_id);
/* Of one of which the checkpoint has a row: back to that, and to what it had before; fresh options
 * are dropped. */
void allocation_revert(struct allocation *allocation);

#endif
