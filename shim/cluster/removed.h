/*
 * Resources whose grace is over, as the Node is told: capacity 0, so that nothing is scheduled by a
 * number that nobody stands for (pkg/kubelet/cm/devicemanager/manager.go, GetCapacity).
 *
 * A kubelet that has the resource in its checkpoint publishes it by itself, and would undo what another
 * says: it is left to it until it has forgotten the resource. So is one that somebody else has
 * registered with the kubelet.
 */
#ifndef SHIM_CLUSTER_REMOVED_H
#define SHIM_CLUSTER_REMOVED_H

#include <stdbool.h>

#include <uv.h>

#include "shim/cluster/orders.h"
#include "shim/core/host.h"

/* Embedded in its owner; private. */
struct removed {
    struct host *host;
    struct cluster_orders *orders;
    bool (*published)(void *user, const char *resource);
    void *user;
    struct removed_resource *ordered; /* a uthash */
    uv_timer_t timer;
};

/* `published` says whether the kubelet has it. All is borrowed until the end. */
void removed_init(struct removed *removed, uv_loop_t *loop, struct host *host,
                  struct cluster_orders *orders,
                  bool (*published)(void *user, const char *resource), void *user);
/* Before its orders; `closed` runs from the loop. */
void removed_fini(struct removed *removed, uv_close_cb closed);

/* Something of the core's may have changed: it is looked at within CLUSTER_LOOK_MS. */
void removed_look(struct removed *removed);

#endif
