/*
 * The DRA driver of lifted resources (devicemgr/lift.h): what the core calls it for (ports.h,
 * driver_prepare). A claim is prepared by what is allocated to it, as the agent reads it, and by
 * that alone: each device is a name (cri-proto/lift_marker.h), which is looked into when a
 * container is made. To unprepare one there is nothing to be done.
 */
#ifndef SHIM_CLUSTER_LIFT_DRIVER_H
#define SHIM_CLUSTER_LIFT_DRIVER_H

#include <stdint.h>

#include <uv.h>

#include "shim/cluster/orders.h"
#include "shim/core/host.h"

struct lift_call;

/* Embedded in its owner; private. */
struct lift_driver {
    struct host *host;
    struct cluster_orders *orders;
    void (*cancel)(void *cluster, uint64_t order);
    void *cluster;
    struct lift_call *calls; /* a uthash */
    uv_timer_t timer;        /* of what nobody answers in time */
};

/* `cancel` takes an order back. All is borrowed until the end. */
void lift_driver_init(struct lift_driver *driver, uv_loop_t *loop, struct host *host,
                      struct cluster_orders *orders, void (*cancel)(void *cluster, uint64_t order),
                      void *cluster);
/* Before its orders; `closed` runs from the loop. */
void lift_driver_fini(struct lift_driver *driver, uv_close_cb closed);

/* Ends in devicemgr_claim_answered(), from the loop, within `timeout_ms`, unless it is
 * cancelled. */
void lift_driver_prepare(struct lift_driver *driver, uint64_t call,
                         const struct devicemgr_claim *claim, uint64_t timeout_ms);
/* Accepts one that is none. */
void lift_driver_cancel(struct lift_driver *driver, uint64_t call);

#endif
