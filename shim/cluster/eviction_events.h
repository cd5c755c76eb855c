/*
 * Pods that are to go for taints of their devices, for the cluster: an Event on the pod says so,
 * and another one that it need not any more, as the cluster's own controller has them
 * (pkg/controller/devicetainteviction/device_taint_eviction.go), by a reason of ours.
 */
#ifndef SHIM_CLUSTER_EVICTION_EVENTS_H
#define SHIM_CLUSTER_EVICTION_EVENTS_H

#include <stddef.h>

#include "devicemgr/ports.h"
#include "shim/cluster/orders.h"

/* Embedded in its owner; private. */
struct eviction_events {
    struct cluster_orders *orders;
    size_t under_way;
};

/* `orders` is borrowed until the end, which comes with theirs. */
void eviction_events_init(struct eviction_events *events, struct cluster_orders *orders);

/* Something has come to pass: told, if it is of an eviction. Of more than
 * CLUSTER_EVICTION_EVENTS_MAX that wait for the API server the rest is left out. */
void eviction_events_happened(struct eviction_events *events, const struct devicemgr_event *event);

#endif
