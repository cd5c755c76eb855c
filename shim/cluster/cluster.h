/*
 * The daemon's part of the cluster (cri-proto/agent_v1.proto): what the agent knows of it comes in,
 * what is to be done there goes out. The daemon works without an agent, and while the API server is
 * away; what is known of the cluster is then what was last told.
 *
 * Of two agents at once, an old and a new one, the one that came last is served. That two are there
 * for long is told (rivals.h).
 */
#ifndef SHIM_CLUSTER_CLUSTER_H
#define SHIM_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "config/config.h"
#include "shim/cluster/orders.h"
#include "shim/cluster/shutdown_feed.h"
#include "shim/core/host.h"
#include "shim/facts.h"
#include "shim/fd_store.h"
#include "shim/published.h"

struct cluster;
struct lift_driver;

#define CLUSTER_TEXT_BYTES_MAX 256

struct cluster_ops {
    /* Whether the kubelet publishes that resource, or may. */
    bool (*published)(void *user, const char *resource);
    /* What cluster_works() says may be another; not from inside a cluster_ call. */
    void (*changed)(void *user);
};

/* Who is there; texts are empty where nothing is known. */
struct cluster_state {
    bool connected;    /* an agent */
    bool reported;     /* and has told all it knows */
    bool reached;      /* the API server, by what it said last */
    uint64_t since_ms; /* of `connected`; boot_now_ms() */
    pid_t pid;
    char version[64];
    char node[CLUSTER_TEXT_BYTES_MAX];
    char trouble[CLUSTER_TEXT_BYTES_MAX];
    bool pods_known; /* all of the node's are, by what was told last */
    size_t pods, slices;
};

/* Listens at config->cluster.socket (0600), as long as it takes, kept in `store` (NULL: there is
 * none). All is borrowed until the cluster has stopped. No callback comes before return. */
struct cluster *cluster_start(uv_loop_t *loop, const struct config *config, struct host *host,
                              struct fd_store *store, const struct cluster_ops *ops, void *user);

/* The host's `kicked`. */
void cluster_look(struct cluster *cluster);

void cluster_look_at(const struct cluster *cluster, struct cluster_state *out);
/* What the agent says of the machine's shutdown; borrowed until the next call of the loop. */
const struct shutdown_said *cluster_shutdown(const struct cluster *cluster);
/* What the core would be told if it came now, with the pods' priorities; called before return,
 * which borrows it until then. Not where the agent has said nothing of it. */
void cluster_shutdown_now(const struct cluster *cluster,
                          void (*told)(void *to, const struct devicemgr_shutdown_said *said),
                          void *to);
/* keeper_trouble() of its socket. */
const char *cluster_trouble(const struct cluster *cluster, uint64_t *since_ms);

/* The claims of a pod of this node (its uid, "namespace/name", or its name in any), as the agent
 * knows them: calls `each` for all of them before it returns. */
void cluster_pod_claims(const struct cluster *cluster, const char *pod,
                        void (*each)(void *to, const char *pod_namespace, const char *claim),
                        void *to);

/* published.h. */
void cluster_published(const struct cluster *cluster,
                       void (*each)(void *to, const struct published_pool *pool), void *to);
void cluster_slices(const struct cluster *cluster, const char *pool,
                    void (*each)(void *to, const struct published_slice *slice), void *to);

/* The core's question (ports.h, claim_look). */
void cluster_claim_look(struct cluster *cluster, const struct devicemgr_claim *claim);

/* For the host's lift_prepare and lift_cancel; borrowed until it has stopped. */
struct lift_driver *cluster_lift_driver(struct cluster *cluster);

/* What has come to pass (ports.h, event); from the loop, never from inside a cluster_ call. */
void cluster_happened(struct cluster *cluster, const struct devicemgr_event *event);

/* The core's wish, and that it is none any more (ports.h, evict_pod). */
void cluster_evict(struct cluster *cluster, uint64_t number,
                   const struct devicemgr_eviction *eviction);
void cluster_evict_cancel(struct cluster *cluster, uint64_t number);

/* Whether slices of drivers that are away are wiped: an agent is connected, or was lately, the API
 * server answers it, or did lately, and does not refuse that. */
bool cluster_works(const struct cluster *cluster);

/* Ends all calls, removes the socket, frees, then runs `done` from the loop. No done() of an order
 * comes any more. */
void cluster_stop(struct cluster *cluster, void (*done)(void *user), void *user);

#endif
