/*
 * What tests of shim/cluster/ begin with: orders on a loop, without an agent.
 */
#ifndef TESTS_UNIT_ORDERS_STAGE_H
#define TESTS_UNIT_ORDERS_STAGE_H

#include "shim/cluster/orders.h"
#include "tests/unit/waiting.h"

/* Embedded in the test's fixture. */
struct orders_stage {
    struct world *world;
    struct cluster_orders orders;
    unsigned due; /* how often there was something to be done */
    bool closed;
};

static inline void orders_stage_due(void *user)
{
    struct orders_stage *stage = user;

    stage->due++;
}

static inline void orders_stage_init(struct orders_stage *stage)
{
    stage->world = world_new();
    cluster_orders_init(&stage->orders, &stage->world->loop, orders_stage_due, stage);
}

static inline void orders_stage_closed(uv_handle_t *handle)
{
    const struct cluster_orders *orders = handle->data;
    struct orders_stage *stage = orders->user;

    stage->closed = true;
}

/* What works on the orders must be gone. Returns world_free()'s. */
static inline int orders_stage_fini(struct orders_stage *stage)
{
    cluster_orders_fini(&stage->orders, orders_stage_closed);
    WAIT(stage->world, stage->closed);
    return world_free(stage->world);
}

#endif
