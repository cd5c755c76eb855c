/*
 * Resources whose grace is over, as the Node is told: capacity 0, so that nothing is scheduled by a
 * number that nobody stands for (pkg/kubelet/cm/devicemanager/manager.go, GetCapacity).
 *
 * A kubelet that has the resource in its checkpoint publishes it by itself, and would undo what
 * another says: it is left to it until it has forgotten the resource, also if it was ordered
 * before. So is one that somebody else has registered with the kubelet. A plugin that is back ends
 * it: what was ordered is taken back.
 *
 * What the Node was not told yet the next daemon tells it (removed_file.h).
 */
#ifndef SHIM_CLUSTER_REMOVED_H
#define SHIM_CLUSTER_REMOVED_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/cluster/removed_file.h"
#include "shim/cluster/standing.h"
#include "shim/core/host.h"
#include "shim/stopping.h"

/* Embedded in its owner; private. */
struct removed {
    struct host *host;
    bool (*published)(void *user, const char *resource);
    void *user;
    struct standing ordered;
    struct removed_file file;
    unsigned kept_version; /* of `ordered`, that is in there, or will be */
    bool told_unkept;
    uint64_t looked_ms; /* when it was looked last */
    uv_timer_t timer;
    struct stopping stopping;
};

/* Copied; what it points to is borrowed until the end. */
struct removed_world {
    struct host *host;
    struct cluster_orders *orders;
    const char *state_dir; /* its file's; not borrowed */
    /* Whether the kubelet has it. */
    bool (*published)(void *user, const char *resource);
    void *user;
    /* Takes an order back. */
    void (*cancel)(void *cluster, uint64_t order);
    void *cluster;
};

void removed_init(struct removed *removed, uv_loop_t *loop, const struct removed_world *world);
/* Before its orders. `done` runs from the loop, once its file is written. */
void removed_fini(struct removed *removed, void (*done)(void *user), void *user);

/* Something of the core's may have changed: it is looked at in the loop's next turn, but not more
 * often than each CLUSTER_LOOK_MS. */
void removed_look(struct removed *removed);

#endif
