/*
 * What is told of pools of ResourceSlices (pools.h), for people.
 */
#ifndef SHIM_CLUSTER_PUBLISHED_H
#define SHIM_CLUSTER_PUBLISHED_H

#include "shim/cluster/orders.h"
#include "shim/cluster/pools.h"
#include "shim/facts.h"
#include "shim/published.h"

/* Calls `each` for every resource that is published, or is to be, before it returns. */
void published_each(const struct pools *pools, const struct cluster_orders *orders,
                    void (*each)(void *to, const struct published_pool *pool), void *to);
/* Likewise for the slices of a pool, as the agent has told of them: of its highest generation. */
void published_slices(const struct facts *facts, const char *pool,
                      void (*each)(void *to, const struct published_slice *slice), void *to);

#endif
