/*
 * What the runtime is seen to do: sandboxes that come and go, containers that end. Its whole list
 * is listed.h's; when one is asked for, listing.h's.
 */
#ifndef DEVICEMGR_MACHINES_RUNTIME_H
#define DEVICEMGR_MACHINES_RUNTIME_H

#include <stddef.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/machines/adopt.h"

struct sandbox;
struct state;

struct runtime {
    struct state *state;
    struct adopt adopt;
    size_t pods_dropped; /* by lists since that was last told */
};

void runtime_fini(struct runtime *runtime);

/* devicemgr_sandbox_ran(), and so on */
void runtime_sandbox_ran(struct state *state, const struct devicemgr_sandbox *sandbox);
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

#endif
