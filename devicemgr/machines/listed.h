/*
 * The runtime's whole list: what is there, what is no more, who runs. What a listed container says
 * that it has is rebuild.h's, what the kubelet gave to one that says nothing, adopt.h's.
 */
#ifndef DEVICEMGR_MACHINES_LISTED_H
#define DEVICEMGR_MACHINES_LISTED_H

#include <stddef.h>

#include "devicemgr/devicemgr.h"

struct runtime;

/* devicemgr_runtime_listed() */
void listed_take(struct runtime *runtime, const struct devicemgr_sandbox *sandboxes,
                 size_t sandboxes_len, const struct devicemgr_container *containers,
                 size_t containers_len);
/* Drops what was restored and is not there, if the sources have become ready. */
void listed_when_ready(struct runtime *runtime);

#endif
