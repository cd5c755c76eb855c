/*
 * What the parts of a cluster share: cluster.c has its life and answers who asks, agent_calls.c
 * serves the agent.
 */
#ifndef SHIM_CLUSTER_CLUSTER_INSIDE_H
#define SHIM_CLUSTER_CLUSTER_INSIDE_H

#include <stdbool.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/cluster/cluster.h"
#include "shim/cluster/core_news.h"
#include "shim/cluster/eviction_events.h"
#include "shim/cluster/evictions.h"
#include "shim/cluster/lift_driver.h"
#include "shim/cluster/pod_events.h"
#include "shim/cluster/pools.h"
#include "shim/cluster/removed.h"
#include "shim/cluster/rivals.h"
#include "shim/cluster/shutdown_feed.h"
#include "shim/cluster/wipes.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "shim/rpc/rpc.h"
#include "shim/stopping.h"

struct cluster {
    struct host *host;
    struct rpc_server *server;
    struct listener listener;
    struct keeper *keeper;
    struct cluster_orders orders;
    struct removed removed;
    struct pod_events pod_events;
    struct eviction_events eviction_events;
    struct core_news news;
    struct evictions evictions;
    struct wipes wipes;
    struct pools pools;
    struct lift_driver lift_driver;
    struct shutdown_feed shutdown;
    struct facts facts;
    bool listing[FACT_KINDS_MAX]; /* all of it is being told anew, and was not yet */
    const struct cluster_ops *ops;
    void *user;                 /* its */
    bool works;                 /* cluster_works() */
    uv_timer_t patience;        /* until it does not any more */
    struct rpc_incoming *watch; /* the agent's; NULL: there is none */
    bool lost;                  /* one has gone, which the core is still to be told */
    bool told_reached;          /* so the core was told last */
    struct rivals rivals;
    struct cluster_state state;
    struct stopping stopping;
};

/* ---- cluster.c ---- */

/* Whether it works, after what may have changed that. */
void cluster_judge(struct cluster *cluster);

/* ---- agent_calls.c ---- */

/* What the agent calls; their user is the cluster. */
#define AGENT_CALLS_LEN 3
extern const struct rpc_method AGENT_CALLS[AGENT_CALLS_LEN];

/* To the agent that there is. False: it does not take it, and is served no more. */
bool agent_calls_tell(struct cluster *cluster, Agent__V1__WatchResponse *response);
/* Orders whose time has come, of `user`, which is a cluster. */
void agent_calls_send_due(void *user);
/* That there are two agents, whatever each of them has to say of the API server. */
void agent_calls_look_at_rivals(const struct cluster *cluster, struct cluster_state *out);

#endif
