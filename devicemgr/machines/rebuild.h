/*
 * What a listed container says that it has, in its tokens.
 */
#ifndef DEVICEMGR_MACHINES_REBUILD_H
#define DEVICEMGR_MACHINES_REBUILD_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/devicemgr.h"
#include "devicemgr/things/request.h"

struct allocation;
struct sandbox;
struct state;

/* The sandboxes of a list. */
struct listed_sandboxes {
    const struct devicemgr_sandbox *v;
    size_t len;
};

/* What the tokens of a listed container name. */
struct container_tokens {
    struct request tokens;
    struct request asked; /* what those are in the place of */
    bool unreadable;      /* it has one that cannot be read, or another container's: it may name
                           * anything */
};

void container_tokens_fini(struct container_tokens *named);
/* The caller gives `named` to container_tokens_fini(). `log` NULL: nothing is logged. */
void container_tokens_read(struct container_tokens *named, struct state *log,
                           const struct devicemgr_container *container);
/* Whether a container with these tokens has the allocation's devices. */
bool container_tokens_name(const struct container_tokens *named,
                           const struct allocation *allocation);
/* A running container holds what its tokens say, whatever the checkpoint has, but for what the
 * kubelet has, too; not if the list is older than what was heard of that container name since. How
 * many allocations were made of that. */
size_t rebuild_container(struct state *state, const struct listed_sandboxes *told,
                         const struct devicemgr_container *container, const struct sandbox *sandbox,
                         const struct container_tokens *named);

#endif
