/*
 * What the runtime tells: runtime.c takes what it is seen to do, listed.c its whole list, rebuild.c
 * what the listed containers say that they have, adopt.c what the kubelet gave to those that say
 * nothing. When a list is asked for is listing.h's.
 */
#ifndef DEVICEMGR_MACHINES_RUNTIME_H
#define DEVICEMGR_MACHINES_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/things/request.h"

struct allocation;
struct pod;
struct sandbox;
struct state;

struct runtime {
    struct state *state;
    struct running *runnings; /* containers, by the last list (adopt.c) */
    size_t pods_dropped;      /* by lists since that was last told */
};

/* ---- runtime.c: devicemgr_sandbox_ran(), and so on ---- */

void runtime_fini(struct runtime *runtime);
void runtime_sandbox_ran(struct state *state, const struct devicemgr_sandbox *told);
void runtime_sandbox_stopping(struct state *state, const char *sandbox_id);
void runtime_sandbox_stop_failed(struct state *state, const char *sandbox_id);
void runtime_sandbox_stopped(struct runtime *runtime, const char *sandbox_id);
void runtime_sandbox_removed(struct runtime *runtime, const char *sandbox_id);
/* No container of this id runs. */
void runtime_container_ended(struct runtime *runtime, const char *container_id);
/* The sandbox is there: finds or adds it, and its pod. */
struct sandbox *runtime_note_sandbox(struct state *state, const struct devicemgr_sandbox *told);
/* No container of this sandbox runs any more: it was stopped, or removed. */
void runtime_end_containers(struct runtime *runtime, const struct sandbox *sandbox);

/* ---- listed.c ---- */

/* devicemgr_runtime_listed() */
void runtime_take_list(struct runtime *runtime, const struct devicemgr_sandbox *sandboxes,
                       size_t sandboxes_len, const struct devicemgr_container *containers,
                       size_t containers_len);
/* Drops what was restored and is not there, if the sources have become ready. */
void runtime_when_ready(struct runtime *runtime);

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

/* The caller gives `named->tokens` to request_fini(). `log` NULL: nothing is logged. */
void container_tokens_read(struct container_tokens *named, struct state *log,
                           const struct devicemgr_container *container);
/* Whether a container with these tokens has the allocation's devices. */
bool container_tokens_name(const struct container_tokens *named,
                           const struct allocation *allocation);
/* A running container holds what its tokens say, whatever the checkpoint has; not if the list is
 * older than what was heard of that container name since. How many allocations were made anew. */
size_t runtime_rebuild(struct state *state, const struct listed_sandboxes *told,
                       const struct devicemgr_container *container, const struct sandbox *sandbox,
                       const struct container_tokens *named);

#endif
