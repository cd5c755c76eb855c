/*
 * Pools of ResourceSlices in which resources are published as those of a DRA driver
 * (devicemgr/lift.h): ordered whenever the core has other ones, or the cluster's slices are not as
 * they were ordered. A kubelet that starts deletes all slices of its node
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go), and a person may.
 *
 * What was ordered before is not remembered over restarts: each pool is ordered once by each
 * daemon, which costs the API server a list where it is right. A pool that is there and not wanted
 * any more is taken away, also by a daemon that publishes none.
 */
#ifndef SHIM_CLUSTER_POOLS_H
#define SHIM_CLUSTER_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/cluster/orders.h"
#include "shim/core/host.h"
#include "shim/facts.h"

struct pool;

/* Embedded in its owner; private. */
struct pools {
    struct host *host;
    struct cluster_orders *orders;
    void *cluster;
    const struct facts *facts;
    const char *node;
    struct pool *by_name;         /* a uthash */
    uint64_t version;             /* devicemgr_lifted_version() at the last look */
    uint64_t changes;             /* of the cluster's slices */
    bool complete;                /* all of those are known */
    size_t going, ordered, bytes; /* at a look: orders that have not failed, all, and their bytes */
    bool owing;                   /* at the last one something was due that had no room */
    uint64_t looked_ms;
    uv_timer_t timer;
};

/* `node` is its name, "" as long as it is not known. All is borrowed until the end. */
void pools_init(struct pools *pools, uv_loop_t *loop, struct host *host,
                struct cluster_orders *orders, void *cluster, const struct facts *facts,
                const char *node);
/* Before its orders; `closed` runs from the loop. */
void pools_fini(struct pools *pools, uv_close_cb closed);

/* Something of the core's may have changed: if so, it is looked at in the loop's next turn, but not
 * more often than each CLUSTER_LOOK_MS. */
void pools_look(struct pools *pools);
/* So may have the cluster's slices, by what the agent tells: likewise. */
void pools_reported(struct pools *pools, const Agent__V1__ReportRequest *report);
/* Whether all of those are known, by what was told last. */
void pools_complete(struct pools *pools, bool complete);

/* An order was answered, of whatever kind: what waited for that is looked at, likewise. */
void pools_answered(struct pools *pools);

/* One of a resource that is published, or is to be; borrowed until something else is called. */
struct pools_pool {
    const char *resource, *name;
    size_t devices, left_out; /* of what was ordered last */
    bool there;               /* it is as it is to be: nothing is under way, or due */
    uint64_t order;           /* 0: none is under way */
};
/* Calls `each` for all of them before it returns. */
void pools_each(const struct pools *pools, void (*each)(void *to, const struct pools_pool *pool),
                void *to);

#endif
