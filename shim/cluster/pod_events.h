/*
 * Containers that are refused again and again, for the cluster: an Event on the pod says so once
 * that has lasted for `cluster.events_after`, and again when the reason is another, or after a
 * while. The kubelet, too, makes an Event of each refusal, in which ours is a message among those
 * that pass; this one says for how long, in one Event that is counted on.
 */
#ifndef SHIM_CLUSTER_POD_EVENTS_H
#define SHIM_CLUSTER_POD_EVENTS_H

#include <stdint.h>

#include "config/config.h"
#include "devicemgr/ports.h"
#include "shim/cluster/orders.h"

/* Embedded in its owner; private. */
struct pod_events {
    struct cluster_orders *orders;
    const struct config *config;
    void (*cancel)(void *cluster, uint64_t order);
    void *cluster;
    struct refused_container *by_key; /* a uthash; the one that was refused longest ago first */
};

/* `cancel` takes an order back. All is borrowed until the end. */
void pod_events_init(struct pod_events *events, const struct config *config,
                     struct cluster_orders *orders, void (*cancel)(void *cluster, uint64_t order),
                     void *cluster);
/* Before its orders. */
void pod_events_fini(struct pod_events *events);

/* Something has come to pass, at `now_ms`: a refusal counts, and what a container gets ends it. */
void pod_events_happened(struct pod_events *events, uint64_t now_ms,
                         const struct devicemgr_event *event);

#endif
