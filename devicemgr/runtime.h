/*
 * What the runtime tells: runtime.c takes what it is seen to do, listed.c its whole list, rebuild.c
 * what the listed containers say that they have; relist.c asks for lists.
 *
 * A list is older than what was seen since it was asked for. So each list has a number, the epoch,
 * from the moment it is asked for, and what is heard of meanwhile carries it.
 */
#ifndef DEVICEMGR_RUNTIME_H
#define DEVICEMGR_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/request.h"

struct allocation;
struct pod;
struct sandbox;

/* ---- runtime.c ---- */

/* No container of this id runs. */
void runtime_container_ended(struct devicemgr *mgr, const char *container_id);
/* A container of the allocation may be made in the sandbox yet, though nobody waits for it. */
void core_outcome_unknown(struct devicemgr *mgr, struct allocation *allocation,
                          const char *sandbox_id);
/* The sandbox is there: finds or adds it, and its pod. */
struct sandbox *runtime_note_sandbox(struct devicemgr *mgr, const struct devicemgr_sandbox *told);
/* No container of this sandbox runs any more: it was stopped, or removed. */
void runtime_end_containers(struct devicemgr *mgr, const struct sandbox *sandbox);

/* ---- relist.c ---- */

/* What is restored is known for certain only by a list that comes later. */
void runtime_restored(struct devicemgr *mgr);
/* Wants a list, now or as soon as may be. */
void runtime_list_soon(struct devicemgr *mgr);
/* Wants one then, or before. */
void runtime_list_by(struct devicemgr *mgr, uint64_t at_ms);
/* After a list: what it was too early for wants another. */
void runtime_list_again(struct devicemgr *mgr);
/* The next pod that does not come back is dropped by the list after its time. */
void runtime_list_for_absent(struct devicemgr *mgr);
/* Asks for the list that is due. */
void runtime_tick(struct devicemgr *mgr);
/* If a list is being asked for, it may name this container as one that runs. */
void runtime_note_ended(struct devicemgr *mgr, const char *container_id);
bool runtime_has_ended(const struct devicemgr *mgr, const char *container_id);
void runtime_forget_ended(struct devicemgr *mgr);

/* ---- listed.c ---- */

/* Drops what was restored and is not there, if the sources have become ready. */
void runtime_settle_sources(struct devicemgr *mgr);
/* Whether the runtime knew the pod last in an earlier boot. */
bool runtime_of_earlier_boot(const struct devicemgr *mgr, const struct pod *pod);
/* Until when a pod that has no sandbox may come back; UINT64_MAX: it is not known yet. */
uint64_t runtime_returns_until_ms(const struct devicemgr *mgr, const struct pod *pod);

/* ---- rebuild.c ---- */

/* The sandboxes of a list. */
struct listed_sandboxes {
    const struct devicemgr_sandbox *v;
    size_t len;
};

/* What the tokens of a listed container name. */
struct container_tokens {
    struct request tokens;
    bool unreadable; /* it has one that cannot be read: it may name anything */
};

/* The caller gives `named->tokens` to request_fini(). `mgr` NULL: nothing is logged. */
void container_tokens_read(struct container_tokens *named, struct devicemgr *mgr,
                           const struct devicemgr_container *container);
/* Whether a container with these tokens has the allocation's devices. */
bool container_tokens_name(const struct container_tokens *named,
                           const struct allocation *allocation);
/* A running container holds what its tokens say, whatever the checkpoint has; not if the list is
 * older than what was heard of that container name since. How many allocations were made anew. */
size_t runtime_rebuild(struct devicemgr *mgr, const struct listed_sandboxes *told,
                       const struct devicemgr_container *container, const struct sandbox *sandbox,
                       const struct container_tokens *named);
/* A container was made with the resources of `has` and no other: what the shim chose for those of
 * its name before it, which have ended, of a resource that is not among them is free. */
void core_release_leftovers(struct devicemgr *mgr, const char *pod_uid, const char *container,
                            const struct request *has);

#endif
