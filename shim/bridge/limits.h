/*
 * Every maximum and every time of the bridge.
 */
#ifndef SHIM_BRIDGE_LIMITS_H
#define SHIM_BRIDGE_LIMITS_H

#include <stddef.h>

/* Resources shown; as many as the device manager has. */
#define BRIDGE_RESOURCES_MAX 1024
/* A qualified name: a DNS subdomain of 253, '/', 63 more. */
#define RESOURCE_NAME_BYTES_MAX 317
/* One that is longer is no name, but reported as refused, up to this; what is longer yet is not
 * kept at all. */
#define FEED_NAME_BYTES_MAX 4096
/* Containers in one call of the kubelet's, which asks for one at a time. */
#define CONTAINERS_MAX 64

/* The kubelet answers Register when it has dialled back, for which it takes 10 s at most, and has
 * asked for the options. */
#define REGISTER_TIMEOUT_MS 30000
/* From its answer to its opening of the list's stream; then it is taken to have lost it. */
#define STREAM_TIMEOUT_MS 5000
/* Before a registration is tried again: at first, and at most, twice as long each time. The kubelet
 * works the end of a stream off by the resource's name, so that it must not find the next one
 * (PluginDisconnected in pkg/kubelet/cm/devicemanager/manager.go): a few milliseconds are
 * far more than that takes, but on a machine with 30 who wait for each processor, where what can
 * stays open beside the next one (endpoint_register_anew()). */
#define REGISTER_AGAIN_MS_MIN 5
#define REGISTER_AGAIN_MS_MAX 10000
/* A stream that lived so long was in order: the next end is a first one again. */
#define STREAM_SETTLED_MS 1000
/* Connections to one resource's socket at once; for one more the one ends that has been without a
 * call for longest, so long at least. It waits in the kernel's backlog for that. */
#define KEPT_CONNECTIONS_MAX 64
#define KEPT_IDLE_MS 1000
/* Of one connection, in a turn of the loop; each up to KEPT_READ_BYTES_MAX. */
#define KEPT_READS_IN_A_ROW_MAX 4
/* Bytes of requests that are not answered, and of answers to one call that are not taken, of all
 * clients of all sockets together: four of the largest. The kubelet asks for one container at a
 * time. Beyond, the connection that holds most of it ends: this memory outlives the process. */
#define KEPT_HELD_BYTES_MAX ((size_t)64 * 1024 * 1024)
/* A process that has lived so long with what it took over is not killed by it. */
#define KEPT_SETTLED_MS 10
/* A kubelet whose connection to the process before was ended may be at work on what that one had
 * asked of it; it is left alone for so long before it is asked again. */
#define KEPT_LEAVE_MS 100
/* A list waits for the one before to be taken by the kubelet; looked for that often. */
#define LIST_AGAIN_MS 50
/* From one list on a stream to the next: each costs the kubelet a write of its whole checkpoint and
 * an fsync. A burst of changes takes about as long. */
#define LIST_INTERVAL_MS 20
/* What a kubelet takes in one message: gRPC's default, its client of plugins sets none. */
#define KUBELET_LIST_BYTES_MAX (4u * 1024 * 1024)

/* From the moment kubelet.sock has appeared: until then, connects are tried that often. The name
 * appears before listen(2), and what follows races with the kubelet's admission of pods
 * (shim/ARCHITECTURE.md), so the first ones come quickly; a leftover that nobody listens on must
 * cost nothing. After the last: CONNECT_SLOW_MS. */
#define CONNECT_STEPS                                                                              \
    {                                                                                              \
        {2000, 1}, {12000, 10}, {60000, 100},                                                      \
    }
#define CONNECT_SLOW_MS 1000
/* A connection that stood so long was in order: after its end the next one is tried at once, and
 * those steps begin anew. Else whoever listens and hangs up would be connected to without pause. */
#define CONNECT_SETTLED_MS 1000
/* Besides inotify, which may overflow, and sees no mount: the kubelet's directory is looked at. */
#define LOOK_MS 1000
/* Without inotify: often enough to come before the kubelet's first pods most of the time. */
#define LOOK_BLIND_MS 20

/* The daemon is called again at once after a feed that worked, then doubling; at last after a
 * message of which something could not be taken. */
#define FEED_AGAIN_MS_MIN 10
#define FEED_AGAIN_MS_MAX 1000
/* A daemon that speaks another version of the feed; it may be replaced. */
#define FEED_UNKNOWN_AGAIN_MS 10000
/* A daemon that is silent is asked for a sign of life; rpc_channel_set_pings(). */
#define FEED_PINGS_MS 2000
#define REPORT_TIMEOUT_MS 10000
/* Besides bridge.preferred_timeout, which the daemon keeps: its answer comes when that is over. */
#define PREFER_MARGIN_MS 200
#define REPORT_AGAIN_MS 1000

/* The state kept over a restart: at most that large (four full messages of the feed), written at
 * most that often. */
#define SNAPSHOT_BYTES_MAX (64u * 1024 * 1024)
#define SNAPSHOT_DELAY_MS 1000
/* For what the kubelet is not shown yet: who holds a device counts once the mask has run out. The
 * file is written as a whole, and pods come and go. */
#define SNAPSHOT_HELD_DELAY_MS 10000
/* For that long from its start a bridge keeps the sockets of resources and drivers that its file
 * does not name, unless the daemon says sooner which there are. */
#define STORED_MS 5000
/* A process that died so soon after it began to register was quick to die; after so many of them in
 * a row the next one waits before it registers, twice as long each time. While it waits the kubelet
 * fails whoever asks for a device: so it takes many, more than somebody kills by hand, and the wait
 * is short; it only saves the kubelet most of the writes. */
#define STARTS_QUICK_MS 500
#define STARTS_FREE 40
#define STARTS_COUNT_MAX 1000
#define STARTS_DELAY_MS_MIN 100
#define STARTS_DELAY_MS_MAX 1000
/* DRA drivers; a node has a few. What is beyond is not shown. */
#define STAND_INS_MAX 64
/* Of one driver in one call: those of one pod, which may have 32 (pkg/apis/core/validation). */
#define CLAIMS_MAX 256
/* The kubelet waits 45 s for a driver (pkg/kubelet/cm/dra/plugin/dra_plugin.go): for so long a call
 * waits for a daemon that is away, and for so long at most in all. */
#define CLAIMS_WAIT_MS 40000
#define CLAIMS_TIMEOUT_MS 44000
/* A driver that a daemon does not call served when it starts may come within that time; then it is
 * withdrawn from the kubelet. Less than the 30 s after which the kubelet wipes its slices. */
#define STAND_INS_SETTLE_MS 10000
/* A driver that has registered with the kubelet itself is shown on for so long, in which the
 * kubelet registers it, too: it looks each second, and after a try that has failed, which is one
 * more, it waits half a second (pkg/kubelet/pluginmanager). Less than the 5 s after which it opens
 * a stream of health anew. */
#define STAND_INS_MOVED_MS 4000
/* A registration that the kubelet refuses is tried again by itself, after pauses that grow to two
 * minutes; a socket of another name is tried at once. At first, and at most, twice as long each
 * time. */
#define STAND_IN_AGAIN_MS_MIN 1000
#define STAND_IN_AGAIN_MS_MAX 60000
/* Such names, used in turn: the first comes again long after the kubelet's two minutes. The next
 * process looks which of them is there. */
#define STAND_IN_DOORS 64
/* Streams of one driver's health; the kubelet has one. What is kept for them:
 * shim/health_words.h. */
#define STAND_IN_STREAMS_MAX 8

/* A timer's clock stands still while the machine sleeps, the mask's does not. */
#define MASK_LOOK_MS 60000

#endif
