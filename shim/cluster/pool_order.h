/*
 * The order to publish a pool (cri-proto/agent_v1.proto, PublishPool), as the core has it, and what
 * of it can be held against the slices that the cluster has.
 */
#ifndef SHIM_CLUSTER_POOL_ORDER_H
#define SHIM_CLUSTER_POOL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "devicemgr/lift.h"

/* What is told of slices: their devices and taints. Two of them are equal if those are, whatever
 * the order of slices. */
struct pool_sum {
    uint64_t slices;    /* how many */
    uint64_t said;      /* sum of a hash of each */
    int64_t generation; /* of those that were told */
    bool mixed;         /* they have several */
    uint64_t all;       /* of what is ordered: of all of it, attributes too */
};

bool pool_sum_equal(const struct pool_sum *a, const struct pool_sum *b);
/* One more that the cluster has. */
void pool_sum_add(struct pool_sum *sum, const Agent__V1__Slice *slice);

/* Its texts and slices are its own, but for the pool's name, which is borrowed. */
struct pool_order {
    Agent__V1__Order order;
    Agent__V1__PublishPool publish;
    struct pool_sum sum;
    size_t bytes;             /* of its slices */
    size_t devices, left_out; /* that do not fit CLUSTER_POOL_BYTES_MAX, or that the core says */
};

/* Of what the core publishes of that resource; NULL: that there is no such pool. */
void pool_order_init(struct pool_order *order, const char *pool, const struct devicemgr *core,
                     const struct devicemgr_lifted *lifted);
void pool_order_fini(struct pool_order *order);

#endif
