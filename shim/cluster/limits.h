/*
 * Every maximum and every time of the daemon's part of the cluster.
 */
#ifndef SHIM_CLUSTER_LIMITS_H
#define SHIM_CLUSTER_LIMITS_H

/* Orders that are not done: one for each resource there can be, for each claim that is looked up,
 * and that is prepared by what is read of it (lift_driver.h), what is wiped of each driver, what is
 * told of each container, pods that are evicted, with what is told of that, and pools. */
#define CLUSTER_ORDERS_MAX                                                                         \
    (1024 + 2 * CLUSTER_CLAIMS_MAX + 128 + CLUSTER_REFUSED_MAX + CLUSTER_EVICTIONS_MAX +           \
     CLUSTER_EVICTION_EVENTS_MAX + CLUSTER_POOLS_ORDERED_MAX)
/* Of what is said of one that is tried on. */
#define CLUSTER_TROUBLE_BYTES_MAX 256
/* Pools that are known: one for each resource there can be, and as many that were before. */
#define CLUSTER_POOLS_MAX 2048
/* Bytes of each: 10,000 devices with five attributes each have some 2 MiB. More devices are not
 * published. */
#define CLUSTER_POOL_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* Those that are ordered at once, but for those that have failed and are tried on; with these, and
 * their bytes together: all of them go to an agent that comes, whose queue (RPC_QUEUE_BYTES_MAX)
 * has room for more. */
#define CLUSTER_POOLS_AT_ONCE 4
#define CLUSTER_POOLS_ORDERED_MAX 256
#define CLUSTER_POOLS_BYTES_MAX ((CLUSTER_POOLS_AT_ONCE + 2) * CLUSTER_POOL_BYTES_MAX)
/* Containers that are refused, and remembered; of more, the one that was longest ago is not. */
#define CLUSTER_REFUSED_MAX 128
/* One that was not refused for so long, as a kubelet would have had it several times, was not. */
#define CLUSTER_REFUSED_GAP_MS 300000
/* How often what lasts is told: within the time in which the agent counts it as the same. */
#define CLUSTER_TELL_AGAIN_MS 480000
/* Pods that are evicted: as many as the core ends at once (devicemgr/things/limits.h,
 * ENDINGS_MAX). */
#define CLUSTER_EVICTIONS_MAX 1024
/* What is told of them, while the API server is away. */
#define CLUSTER_EVICTION_EVENTS_MAX 1024
/* Claims that are looked up: as many as the core has (devicemgr/things/limits.h, CLAIMS_MAX), which
 * asks for all of them when it starts, and once. Of more, the oldest are not any more, which are
 * the first to be over. */
#define CLUSTER_CLAIMS_MAX 4096
/* In one message to the agent. */
#define CLUSTER_BATCH_MAX 256
#define CLUSTER_BATCH_BYTES_MAX ((size_t)8 * 1024 * 1024)
/* Before an order is tried again: at first, and at most, doubled each time, with up to a fifth more
 * by chance, for ever; as the kubelet wipes slices, but that it gives up
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go). */
#define CLUSTER_AGAIN_MS_MIN 1000
#define CLUSTER_AGAIN_MS_MAX 300000
/* Since the API server answers again, or the order is another one: so long waits what would wait
 * for more than twice as long, likewise with a fifth by chance. */
#define CLUSTER_BACK_MS 5000
/* An order without an answer for that long is sent again: the agent asks five requests for it at
 * most, mostly one, each of up to 40 s. It passes over what it is at. */
#define CLUSTER_ANSWER_MS 120000
/* How often is looked at what is removed, while something changes; and while something is still to
 * be told. */
#define CLUSTER_LOOK_MS 1000
#define CLUSTER_LOOK_AGAIN_MS 15000
/* Resources that the Node is still to be told are removed, as the daemon before left them: as many
 * as the core remembers; and bytes of their file. */
#define CLUSTER_REMOVED_MAX 1024
#define CLUSTER_REMOVED_BYTES_MAX (CLUSTER_REMOVED_MAX * 320u)
/* From the moment that no agent is connected, or the API server does not answer it, until drivers
 * that are away are left to the kubelet: as long as that waits itself before it wipes their
 * slices. */
#define CLUSTER_PATIENCE_MS 30000
/* Two agents take over from each other within that time, which each tries again after a second. */
#define CLUSTER_RIVALS_MS 30000
/* An agent that is silent is asked for a sign of life; rpc_server_set_pings(). */
#define CLUSTER_PINGS_MS 2000
/* Agents at once: one, its next, and whoever tries. */
#define CLUSTER_CONNECTIONS_MAX 8
#define CLUSTER_REQUEST_BYTES_MAX (16u * 1024 * 1024)

#endif
