/*
 * The allocations: which devices of a resource which container of which pod holds, with what
 * runtime options; and, the other way round, who holds a device.
 *
 * An allocation is kept per (pod uid, container name, resource) and outlives its container: the
 * next attempt of that container gets the same devices. A device may be in several allocations as
 * long as at most one of them has a container that can run, or the resource is not exclusive; the
 * table allows it, create_select.c sees to it.
 */
#ifndef DEVICEMGR_ALLOCATION_H
#define DEVICEMGR_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/advertise.h"
#include "devicemgr/ids.h"
#include "devicemgr/mem.h"

/* Whether a container of an allocation can be running: whether it still holds its devices. */
enum allocation_life {
    ALLOCATION_IDLE,    /* none can: it holds them no more */
    ALLOCATION_BUSY,    /* a create is being decided, or was forwarded and is not answered yet */
    ALLOCATION_LIVE,    /* one of `lives` may run: the runtime can be asked */
    ALLOCATION_UNKNOWN, /* one whose id nobody told us may run, or be in the making: until a list */
};

/* A container of an allocation that may run. There is one, but where an earlier one has not ended
 * when the next is made, or its end was not told. */
struct allocation_live {
    char *container_id;
    char *sandbox_id;
    uint32_t attempt;
};

struct allocation {
    char *pod_uid;
    char *container;
    char *resource;
    struct ids ids; /* sorted */
    bool durable;   /* its row is in the checkpoint; else a reservation */
    bool stored;    /* the store may have a row of it (checkpoint.c) */
    bool tentative; /* chosen by the shim, and no container was made with it yet */
    /* Chosen by the shim; else by the kubelet, or it cannot be told. */
    bool own_choice;
    enum advertise_hold shown; /* what advertise.c has made of it */

    V1beta1__ContainerAllocateResponse *options; /* durable ones; NULL: to be asked for */
    char *boot_id;                               /* boot in which they were given; "" unknown */
    uint64_t generation;                         /* resource.generation then */

    V1beta1__ContainerAllocateResponse *fresh; /* given by the plugin, not durable yet */
    uint64_t fresh_generation;
    bool queued;     /* to be carried by the next commit */
    uint64_t commit; /* the one under way that carries it; 0: none */

    uint64_t create;               /* the create that works on it; 0: none */
    struct allocation_live *lives; /* by attempt, the latest last */
    size_t lives_len;
    bool unknown;     /* besides `lives`, one may be in the making: see ALLOCATION_UNKNOWN */
    char *unknown_in; /* the sandbox in which; "": not known; NULL: none is */
    uint64_t unknown_until_ms; /* a list asked for from then on shows it, if it was made */
    bool seen_exited;          /* the last list showed its container, exited */
    uint64_t epoch;            /* listing in which its containers were last heard of (runtime.c) */
    uint64_t check;            /* the runtime is being asked about the latest of `lives`; 0: no */
    uint64_t confirmed;        /* the create for which the runtime said "it runs"; 0: none */
    uint64_t late_until_ms;    /* it said so to a create that was over: counts until then; 0: no */
    bool conflict_logged;
    /* Of its token (kubelet.c): when a create came with it that waits for the kubelet's checkpoint
     * to be read, 0: none does; and that the checkpoint had it, or the operator was told. */
    uint64_t unproven_ms;
    bool judged;

    struct allocations *table;
    bool changed; /* since core_settle_allocations(); then it is in table->changed */
    struct allocation *changed_prev, *changed_next;
    bool stale; /* since advertise_settle(); then it is in table->stale */
    struct allocation *stale_prev, *stale_next;
    bool settled;               /* it was there then */
    enum allocation_life known; /* its life then */
    char *key;
    size_t key_bytes;
    struct allocation *pod_next;
    UT_hash_handle hh;
};

struct allocations {
    struct allocation *by_key;
    struct claim *claims;       /* by resource and id */
    struct pod_group *pods;     /* by pod uid */
    struct allocation *changed; /* what can run may be another since this was last looked at */
    struct allocation *stale;   /* what advertise.c has made of it may be another, likewise */
    struct ids dropped;         /* resources of those removed that were shown; for advertise.c */
};

/* A zeroed struct is an empty table. */
void allocations_fini(struct allocations *table);

/* Adds one that is not there yet; `ids` are copied and sorted. */
struct allocation *allocations_add(struct allocations *table, const char *pod_uid,
                                   const char *container, const char *resource,
                                   const struct ids *ids);
struct allocation *allocations_find(const struct allocations *table, const char *pod_uid,
                                    const char *container, const char *resource);
void allocations_remove(struct allocations *table, struct allocation *allocation);
/* All that hold the device, oldest first; valid until the table changes. */
struct allocation *const *allocations_holders(const struct allocations *table, const char *resource,
                                              const char *id, size_t *holders_len);
/* One that has the container among those that may run; NULL: none. */
struct allocation *allocations_of_container(const struct allocations *table,
                                            const char *container_id);
/* A pod's allocations, linked by pod_next; NULL: none. */
struct allocation *allocations_of_pod(const struct allocations *table, const char *pod_uid);

/* What its pod is has changed: advertise.c looks at it again. */
void allocation_set_stale(struct allocation *allocation);
/* The create that works on it, or 0. */
void allocation_set_create(struct allocation *allocation, uint64_t create);
enum allocation_life allocation_life(const struct allocation *allocation);
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
/* Nothing of that sandbox runs any more, or is in the making. */
void allocation_set_sandbox_ended(struct allocation *allocation, const char *sandbox_id);
/* None runs, and none is in the making. */
void allocation_set_idle(struct allocation *allocation);

/* Sets what the plugin answered, to be made durable; takes `options`. */
void allocation_set_fresh(struct allocation *allocation,
                          V1beta1__ContainerAllocateResponse *options, uint64_t generation);
/* The commit that carried it is durable: the fresh options, if any, are those in force. */
void allocation_confirm(struct allocation *allocation, const char *boot_id);
/* Back to what is durable; fresh options are dropped. */
void allocation_revert(struct allocation *allocation);

#endif
