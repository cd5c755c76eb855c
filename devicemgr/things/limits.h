/*
 * Every maximum of the device manager.
 */
#ifndef DEVICEMGR_THINGS_LIMITS_H
#define DEVICEMGR_THINGS_LIMITS_H

/* A message a person reads: two or three terminal lines and a plugin's words; half of what gRPC
 * status texts may have (RPC_STATUS_TEXT_BYTES_MAX is 1024). */
#define TEXT_BYTES_MAX 512
/* Of it: a peer's own words, one name (a pod's has at most 253 characters), a list of ids. */
#define TEXT_WORDS_BYTES_MAX 160
#define TEXT_IDS_BYTES_MAX 64

/* What a create that asks for devices is known by, all together: the ids of sandbox and pod, and
 * the names of namespace, pod and container, at most 253 characters each with the kubelet. */
#define DEMAND_NAMES_BYTES_MAX 4096

/* sun_path holds 108 bytes with its NUL; the plugin directory needs at least "/x/". */
#define SOCKET_NAME_BYTES_MAX 104

/* A node has a handful; 200 are asked for by the largest known users. */
#define RESOURCES_MAX 1024
/* Of them those of one socket, whose plugin has one: it lists the same devices for each. */
#define SOCKET_RESOURCES_MAX 64
/* What the devices of all plugins may take in memory: those of one with an id like a UUID and one
 * NUMA node some 160 bytes, so 800,000 of them. */
#define DEVICES_BYTES_MAX (128 * (size_t)1024 * 1024)
/* What the answers of all plugins for containers, which are kept as long as their allocations, may
 * take in memory: four of the largest messages. One has some KB, and a node some hundred. */
#define OPTIONS_BYTES_MAX (64 * (size_t)1024 * 1024)
/* Creates pending or forwarded at once: a node runs at most some hundred pods. */
#define CREATES_MAX 4096
/* Devices that are looked at in one turn for creates that choose, but for the last one of them,
 * which may look at all of a resource: 20 ms, of the loop that everything else waits for. */
#define TURN_DEVICE_LOOKS_MAX 200000
/* What an operator may have set at once, 600 bytes each at most without its id, and the operator's
 * own words of it. */
#define ORDERS_MAX 4096
#define ORDER_REASON_BYTES_MAX 256
/* Of what he has asked for and is not answered yet, orders and releases together, each as large as
 * the control socket's requests: who asks waits for the answer, or has gone, and the store or the
 * runtime takes its time. */
#define STEERS_MAX 64
/* Tolerations of one pod, or of one device of a claim, as the API has it, and what an annotation of
 * them may have: each at most 500 bytes. */
#define TOLERATIONS_MAX 16
#define TOLERATIONS_BYTES_MAX 8192
/* Taints of one slice, as the API allows: 16 of each of 64 devices; and DeviceTaintRules, some
 * hundred bytes each: they are a cluster's, and set by hand. */
#define SLICE_TAINTS_MAX 1024
#define TAINT_RULES_MAX 1024
/* Who may have reserved a claim (status.reservedFor), as the API allows. */
#define CLAIM_CONSUMERS_MAX 256
/* Who may use a claim with a device that is tainted from here is asked of the cluster so often: one
 * GET for each such claim of this node. */
#define CLAIM_LOOK_AGAIN_MS 60000
/* It is asked again so long after it has refused to tell that, before that is a word. */
#define CLAIM_LOOK_REFUSED_MS 10000
/* Of the pods that are to be evicted, so many within a minute at most, whatever the settings say:
 * it is how many moments are kept. */
#define EVICT_PER_MINUTE_MAX 600
/* Devices of one resource on which taints by health act at once are one of so many: a plugin's
 * rollout that shows all of them unhealthy is no reason to empty a node. */
#define TAINT_HEALTH_SHARE 4
/* Devices of one resource that are counted at once for a list: some microseconds each. */
#define RESOURCE_COUNT_MAX 2000
/* Containers of which the last refusal is remembered, each with what it asked for: one kilobyte and
 * some 40 bytes for each id that a token names. */
#define REFUSED_MAX 128
/* Who is refused since its names are longer than that, is remembered up to here: a place in the
 * list of pods is to fit into a request for the next page. */
#define REFUSED_NAMES_BYTES_MAX (4 * DEMAND_NAMES_BYTES_MAX)
/* Resources one container may name, and the text that names them: 253 + 1 + 63 bytes a name. */
#define REQUEST_RESOURCES_MAX 64
#define REQUEST_BYTES_MAX 24576
/* Most devices one container may ask for, by number or by token: some 40 bytes each and as many
 * lines in tables; a token of so many is a message of megabytes. */
#define REQUEST_COUNT_MAX 65535
/* How many devices of one resource, by how many claims, a container is given for claims: pairs. */
#define REQUEST_CLAIMED_MAX 4096
/* NUMA nodes are numbered from 0; Linux is built for 1024 at most (NODES_SHIFT in
 * arch/x86/Kconfig). */
#define NUMA_NODES_MAX 1024
/* Of the devices that a token names, so many wake their create one by one; with more it is woken by
 * any change among the resource's holders. */
#define WAKE_IDS_MAX 64
/* Sandboxes not in the table of which an end is remembered, 200 bytes each: a late create comes
 * within minutes, and a node of 110 pods does not remove so many in that time. */
#define SANDBOX_ENDS_MAX 2048
/* Pods that are gone and whose uid is remembered, 150 bytes each: as long as the kubelet's
 * checkpoint may still name them, until its next write. */
#define PODS_GONE_MAX 2048
/* Container names of one pod whose ignored annotation was logged. */
#define POD_IGNORED_MAX 64
/* Container names of one pod that are remembered to have come with a token. */
#define POD_TOKENS_MAX 64

/* How long a pod that only the kubelet's checkpoint names may take to its first sandbox: the
 * kubelet gives up on a pod's volumes after 2 min 3 s, and begins anew. Its devices are not chosen
 * for others meanwhile. Longer, and a pod that was deleted before it began, and stays in that file
 * until its next write, would keep them from others that long. */
#define POD_COMES_MS 300000

/* How long after the stop of a sandbox that was dead its pod may get a new one: the kubelet stops
 * the old sandbox in every attempt to make a new one, and waits for that 2 min and for the new one
 * 4 min, where a network plugin hangs; attempts come 10 to 15 s after one another. */
#define SANDBOX_REMADE_MS 300000
/* How long a pod of before a reboot may take that the runtime has forgotten and the kubelet's
 * checkpoint still names: as long as the API server, without which the kubelet does not know its
 * pods, may be away after a reboot of many nodes. Longer, and the devices of one that was deleted
 * meanwhile would be kept from annotation requests, if that file is not written. */
#define POD_RETURNS_MS 3600000

/* Drivers of dynamic resource allocation: a node has a handful. Each may tell so many services:
 * there are three versions of two. What they are named by, and claims: at most 253 characters each,
 * and a path, which sun_path bounds. */
#define DRIVERS_MAX 64
#define DRIVER_SERVICES_MAX 16
#define DRIVER_NAMES_BYTES_MAX 1024
/* Instances of one driver that are registered at once: a roll-over has two, one that crashes in a
 * loop under new names leaves its sockets behind. */
#define DRIVER_INSTANCES_MAX 16
/* Claims that a driver may have something of: a node runs some hundred pods with two or three each;
 * more are kept only if a kubelet forgets what it has asked for. */
#define CLAIMS_MAX 4096
#define CLAIM_NAMES_BYTES_MAX 1024
/* Containers that are remembered to use one claim: 256 pods may share one, with some containers
 * each. */
#define CLAIM_USERS_MAX 1024
/* One that no list of the runtime shows may be in the making for so long after it was asked for; a
 * claim that it would use is not unprepared meanwhile. The kubelet tries that again each 10 to 15
 * s. */
#define CLAIM_USER_COMES_MS 10000
/* What a driver answers for one claim, and those of all claims together: the API allows a claim 32
 * devices, with some names each. */
#define CLAIM_DEVICES_MAX 256
/* Of those that it had before, which containers may run with yet, or a kubelet may name: some
 * answers' worth. */
#define CLAIM_FORMER_MAX 1024
#define CLAIM_RESPONSE_BYTES_MAX ((size_t)64 * 1024)
#define CLAIMS_BYTES_MAX ((size_t)16 * 1024 * 1024)
/* ResourceSlices of this node: the API allows one 128 devices. */
#define SLICES_MAX 1024
#define SLICE_DEVICES_MAX 1024
/* Counters that one speaks of, and what its devices draw on them: the API allows 8 sets of 32, and
 * 64 devices that draw on 32 of each of two. */
#define SLICE_COUNTERS_MAX 1024
#define SLICE_DRAWS_MAX 4096
/* What is owed to a driver that is back goes out so many at a time: most drivers do one thing after
 * the other, each within its time. One that failed is tried again after this long, twice as long
 * each time, at most so long. */
#define OWED_AT_ONCE 8
#define OWED_RETRY_MS_MIN 1000
#define OWED_RETRY_MS_MAX 60000
/* Claims of which the last refusal is remembered, two kilobytes each. */
#define CLAIMS_REFUSED_MAX 128
/* A claim whose CDI devices the runtime cannot resolve is prepared anew not more often than this,
 * twice as long after each time, at most so long: the kubelet tries the create again each 10 to 15
 * s. */
#define ANEW_MS_MIN 10000
#define ANEW_MS_MAX 300000
/* A claim at which its driver has ended so often, one time after the other, may be what ends it: it
 * is refused, and asked for again as the kubelet does, each 60 to 90 s, since the driver has others
 * to serve. */
#define CLAIM_LOST_MAX 3
/* Names in the words of a runtime that are looked at: those of a claim. */
#define UNRESOLVED_MAX 32
/* Who may wait for claims at once. */
#define CLAIM_REQUESTS_MAX 4096
/* How long one waits for a driver that is away, or for its turn: the kubelet gives up after 45 s,
 * and is to see our words. */
#define CLAIM_HOLD_MS 40000
/* How long what came of a call may take to be stored: a commit that takes longer is waited for in
 * vain, but one that ends as the kubelet's time does is not. */
#define CLAIM_KEEP_MS 5000
/* A driver that has gone, and of which nothing is kept, is forgotten after so long, with a cluster
 * not before its slices are gone: as the default of a plugin's grace period. */
#define DRIVER_KEEP_MS 300000

/* Pods that are being ended, or were and are kept from coming back: some times as many as a node
 * runs; and who may ask for one: each taint on a device of it does by itself. */
#define ENDINGS_MAX 1024
#define ENDING_ASKS_MAX 64
/* The least of a grace, as of the kubelet's (pkg/kubelet/pod_workers.go): nobody is killed without
 * a word. The most that a pod may have: what fits seconds in 32 bits. */
#define END_GRACE_MS_MIN 1000
#define END_GRACE_MS_MAX (2147483647ULL * 1000)
/* A pod's own that does not stand on its containers: the API's default. */
#define END_POD_GRACE_MS 30000
/* After a stop that failed the runtime is listed again in so long, twice as long each time, at most
 * so long. */
#define END_RETRY_MS_MIN 1000
#define END_RETRY_MS_MAX 30000

/* Pods of the cluster whose sidecars are known, and how many of each: some times as many as a node
 * runs, and as a pod has. */
#define SIDECAR_PODS_MAX 4096
#define SIDECARS_MAX 64

/* Groups of a shutdown, as many as the settings may have; and pods of the cluster that are known by
 * their priority: some times as many as a node runs. */
#define SHUTDOWN_GROUPS_MAX 64
#define SHUTDOWN_KNOWN_MAX 4096
/* Of the time that the machine waits so much is left: for the agent to hear of the end, and to let
 * go. */
#define SHUTDOWN_MARGIN_MS 1000
/* Priorities are waited for so long: an agent that has just come may be listing pods. */
#define SHUTDOWN_KNOW_MS 2000
/* A kubelet that has let go of its lock is waited for so long yet: what it has stopped last may be
 * at its end. */
#define SHUTDOWN_LEFT_MS 2000
/* A machine that has not gone down so long after all was done will not, though nobody has said so:
 * who would is gone. systemd gives most units 90 s to stop. */
#define SHUTDOWN_GIVEN_UP_MS 600000

/* Devices of one resource that are published as a DRA driver's, in 256 slices: a change that
 * concerns all of them is as many requests. Of each so many attributes and taints as the API takes
 * (staging/src/k8s.io/api/resource/v1/types.go). */
#define LIFTED_DEVICES_MAX 16384
#define LIFTED_ATTRIBUTES_MAX 32
#define LIFTED_TAINTS_MAX 16

/* A create is never held longer than this, all in all, and its refusal leaves this long before the
 * client's own deadline, so that the client sees our words and not its own. */
#define HOLD_MS_MAX 60000
#define DEADLINE_MARGIN_MS 200
/* How long a runtime may go on with a call whose client is gone, or that failed: containerd and
 * CRI-O cancel it with its connection, and are through with what could not be cancelled in a second
 * or two. What may come of such a call is not known until a list that was asked for after this
 * time; less than the default hold, so that who waits for a device gets it without another attempt.
 */
#define OUTCOME_MS 4000
/* That a container runs, said when the create that wanted to know was refused already, counts so
 * long for the creates of its pod: the kubelet tries again after 11 to 15 s. */
#define LATE_ANSWER_MS 30000
/* What is meant for a container is kept from the kubelet's other pods for so long after its last
 * attempt: the kubelet makes one that fails again after 5 min at most (MaxContainerBackOff). */
#define REPLACING_MS 360000
/* A runtime that did not say whether a container runs is asked again after this long. */
#define CHECK_AGAIN_MS 1000
/* Lists of the runtime that the core asks for come no closer. */
#define LIST_EVERY_MS 1000
/* An operator who releases a pod waits so long for a list of the runtime: less than whoever asks
 * for it waits, with a commit after it. */
#define RELEASE_LIST_MS 5000
/* A commit that failed is tried again after this long, twice as long each time, at most so long. */
#define COMMIT_RETRY_MS_MIN 1000
#define COMMIT_RETRY_MS_MAX 30000
/* That a pod's sandbox was stopped is stored after so long, if nothing else is meanwhile: of many
 * that end it is one commit, and of one that is deleted all rows go by then, or soon. One that has
 * finished stays as it is, and nobody stops it again. */
#define STOPPED_STORE_MS 10000
/* Most a plugin may think about its preference. */
#define PREFER_TIMEOUT_MS 500
/* A plugin that was late with its preference for the kubelet is not asked by it again for this
 * long: the kubelet waits for each answer before it looks at another pod. */
#define PREFER_REST_MS 30000
/* Preferences the kubelet may wait for at once. It asks for one after the other; what is over that
 * comes from clients that gave up. Each keeps the ids it was asked about. */
#define PREFERS_MAX 64
/* A redialled connection that ends sooner than this is not dialled again: the plugin flaps. */
#define REDIAL_AGAIN_MS 1000

/* A plugin is dialled so often in quick succession, by its own registrations or ours; from then on
 * once in so long. One that registers ten times a second costs ten dials and then one a second. */
#define DIALS_AT_ONCE 10
#define DIAL_EVERY_MS 1000
/* Register calls that are refused are logged alike, all callers' together: whoever reaches the
 * socket may make thousands a second, each with another name. Each caller is told. */
#define REFUSALS_TOLD_AT_ONCE 10
#define REFUSAL_TOLD_EVERY_MS 10000
/* Of the lists of one resource that differ so many are logged in quick succession; from then on
 * what came of them once in so long. A plugin whose health flaps a hundred times a second must not
 * have the log kept from others' lines. */
#define LISTS_TOLD_AT_ONCE 10
#define LIST_TOLD_EVERY_MS 10000
/* How long a plugin that is connected may take until its first list before it counts as stopped. */
#define FIRST_LIST_MS 30000
/* A stop time is stored once its endpoint has been away this long: a plugin that only flaps, or is
 * dialled again, costs no write. What a crash before that adds to the grace period is less. */
#define STOP_STORE_MS 1000

#endif
