/*
 * Pods that the core wants evicted (devicemgr/ports.h, evict_pod): each an order, for as long as it
 * takes.
 */
#ifndef SHIM_CLUSTER_EVICTIONS_H
#define SHIM_CLUSTER_EVICTIONS_H

#include <stdint.h>

#include "devicemgr/ports.h"
#include "shim/cluster/orders.h"
#include "shim/core/host.h"

/* Embedded in its owner; private. */
struct evictions {
    struct host *host;
    struct cluster_orders *orders;
    void (*cancel)(void *user, uint64_t order);
    void *user;
    struct eviction *asked; /* by the core's number; a uthash */
};

/* `cancel` takes an order back. All is borrowed until the end. */
void evictions_init(struct evictions *evictions, struct host *host, struct cluster_orders *orders,
                    void (*cancel)(void *user, uint64_t order), void *user);
/* Before its orders. */
void evictions_fini(struct evictions *evictions);

/* `number` is the core's, not in use. Ends in devicemgr_pod_evicted(). */
void evictions_ask(struct evictions *evictions, uint64_t number,
                   const struct devicemgr_eviction *eviction);
/* One that is over is ignored. */
void evictions_cancel(struct evictions *evictions, uint64_t number);

#endif
