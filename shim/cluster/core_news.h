/*
 * What the core is told of the cluster for the claims of DRA drivers: the ResourceSlices of this
 * node as the agent reports them, what is allocated to a claim, which is looked up when the core
 * asks, and taints (core_taints.h).
 */
#ifndef SHIM_CLUSTER_CORE_NEWS_H
#define SHIM_CLUSTER_CORE_NEWS_H

#include "shim/cluster/orders.h"
#include "shim/core/host.h"
#include "shim/facts.h"

/* Embedded in its owner; private. */
struct core_news {
    struct host *host;
    struct cluster_orders *orders;
    struct news_claim *looked_up; /* a uthash */
    uint64_t server_boot_ms; /* of the API server's clock, as the agent tells it; 0: not known */
};

/* All is borrowed until the end. */
void core_news_init(struct core_news *news, struct host *host, struct cluster_orders *orders);
/* Before its orders. */
void core_news_fini(struct core_news *news);

/* Its clock, before the facts by which it was told (State.server_boot_ms). */
void core_news_clock(struct core_news *news, uint64_t server_boot_ms);
/* What has changed of the facts is told, and is no news any more. */
void core_news_facts(struct core_news *news, struct facts *facts);
/* They have all slices of this node and all rules, since an agent was connected, as far as it can
 * have them. */
void core_news_taints_told(struct core_news *news);
/* The agent has gone: they may be others before the next one has told them. */
void core_news_taints_doubted(struct core_news *news);
/* Whether the API server can be asked to evict pods. */
void core_news_reached(struct core_news *news, bool reached);
/* The core's question (ports.h, claim_look). Answered when the API server has, as the claim is
 * after that was asked; while it is away, or refuses, not at all. One that is asked again before
 * that is answered once. */
void core_news_look_up(struct core_news *news, const struct devicemgr_claim *claim);

#endif
