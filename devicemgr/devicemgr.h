/*
 * The device manager: which container gets which devices, with which runtime options, or why not
 * yet.
 *
 * State and rules only: events come in with the time, actions go out through the ports
 * when devicemgr_run() is called. `now_ms` is a clock that never steps back (CLOCK_BOOTTIME); equal
 * inputs in equal order give equal actions. Out of memory aborts the process.
 * Unless said otherwise arguments are copied or only read, and functions cannot fail. Events about
 * an endpoint, call, create, check or commit that is over are ignored.
 *
 * Where it differs from the kubelet's device manager on purpose (all of it, with tests: README.md):
 * - an endpoint is a bare file name; a second registration closes the first one's connection; one
 *   that fails falls back to the socket that worked; a lost connection is dialled once more
 * - a list equal to the last does nothing; an id listed twice counts as listed last, one that is
 *   no UTF-8 not at all
 * - Allocate is asked at CreateContainer, with a deadline, and again after a reboot (see
 *   settings.refresh)
 * - what cannot be had now is waited for, then refused so that the kubelet tries again
 * - a device is never in two containers that can run, whoever says that a pod is finished
 * - options of several resources are merged in the order of resource names
 * - nothing new is given out before the runtime's first list; what a container holds already, by
 *   the checkpoint, it gets at once
 * - a container's devices are free for later containers of its pod once it does not run. The
 *   kubelet has that for init containers, not for restartable ones and not for others; CRI tells
 *   none of them apart. One that runs keeps what it has; one that is down just when a later one
 *   is made may find its devices gone when it comes back, and gets others (annotation requests)
 * - a container that may still be in the making, since its client or an earlier shim is gone, keeps
 *   its devices until a list of the runtime that was asked for some seconds later is without it
 * - a resource is reported as removed until someone has seen it, not once
 * - a plugin that registers ten times a second is dialled once a second; one that sends no first
 *   list counts as stopped after 30 s
 * - equal choices are made alike: natural order of ids, fewest NUMA nodes
 * - the stop grace period goes on through a restart of the shim; the kubelet begins a fresh one.
 *   The stop time is stored on the clock of now_ms, with settings.boot_id. That clock goes on
 *   while nobody looks and cannot be set: a stepped wall clock, which is never read, neither ends
 *   nor extends the period. In another boot it started anew, and so does the period.
 *
 * README.md has all rules of the kubelet with ours and their tests.
 */
#ifndef DEVICEMGR_DEVICEMGR_H
#define DEVICEMGR_DEVICEMGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/attribute.h"
#include "devicemgr/ports.h"

struct devicemgr;

enum devicemgr_refresh {
    DEVICEMGR_REFRESH_REBOOT, /* cached options are asked for anew after a reboot */
    DEVICEMGR_REFRESH_PLUGIN, /* and when the plugin registered anew */
    DEVICEMGR_REFRESH_NEVER,  /* the kubelet's own rule */
};

/* What one resource has instead of the settings of all. Complete: nothing falls back. */
struct devicemgr_resource_settings {
    const char *name;
    uint64_t grace_ms;
    uint64_t hold_ms;
    uint64_t allocate_timeout_ms;
    uint32_t allocates_at_once; /* for it; 0: any number */
    enum devicemgr_refresh refresh;
    /* One live container at a time holds a device. False: any number may, whoever asks gets any
     * healthy ones. */
    bool exclusive;
    /* A device that is unhealthy for so long is tainted NoExecute: who has it is evicted. 0:
     * never. */
    uint64_t taint_unhealthy_after_ms;
    bool dra;                  /* its devices are published as a DRA driver's (lift.h) */
    bool replace;              /* others are given in the place of lost devices, as which they */
    uint64_t replace_after_ms; /* count after so long (rules/replaceable.h) */
    const struct devicemgr_settings_attribute *attributes;
    size_t attributes_len;
};

/* A taint that the settings have. */
struct devicemgr_settings_taint {
    const char *resource;
    const char *id; /* NULL: of every device of it */
    const char *key, *value, *effect;
};

/* Pods of this priority and more, but for those of the next group, have so long when the machine
 * goes down. */
struct devicemgr_shutdown_group {
    int32_t priority;
    uint64_t grace_ms;
};

struct devicemgr_settings {
    uint64_t grace_ms; /* stop grace period */
    uint64_t hold_ms;
    uint64_t allocate_timeout_ms;
    uint32_t allocates_at_once; /* for one resource; 0: any number */
    uint64_t prestart_timeout_ms;
    uint64_t mask_ms;         /* how long the kubelet is not shown that a plugin is away */
    uint64_t kubelet_wait_ms; /* how long nothing restored is dropped for want of a kubelet */
    enum devicemgr_refresh refresh;
    bool hide_other_namespaces; /* a refusal names no pod of another namespace */
    bool annotations;           /* requests by pod annotation are taken, in these namespaces only */
    const char *const *namespaces; /* "*": in all */
    size_t namespaces_len;
    bool start_without;  /* if they are not taken: who asks so is not refused, but none of ours */
    const char *boot_id; /* "": not known; then nothing restored is of this boot */
    const struct devicemgr_resource_settings *resources; /* by name, once; others: exclusive */
    size_t resources_len;
    uint64_t claim_call_ms; /* how long a driver may take for one call */
    /* Drivers whose answers may be given once more from the checkpoint while they are away. */
    const char *const *cached_prepare;
    size_t cached_prepare_len;
    bool cluster;                      /* there is one that can be asked to evict pods */
    uint64_t evict_force_after_ms;     /* how long disruption budgets are kept to; 0: for ever */
    uint64_t taint_unhealthy_after_ms; /* as in struct devicemgr_resource_settings */
    uint32_t evict_per_minute;         /* so many pods are evicted in any minute; 0: any number */
    const struct devicemgr_settings_taint *taints;
    size_t taints_len;
    const struct devicemgr_shutdown_group *shutdown; /* lowest first, at most 64; none: off */
    size_t shutdown_len;
    /* For tests: what is kept step by step is made out anew after each run; a difference aborts. */
    bool checked;
};

/* `settings` copied; `ports` and `user` borrowed until devicemgr_free(). */
struct devicemgr *devicemgr_new(const struct devicemgr_settings *settings,
                                const struct devicemgr_ports *ports, void *user);
/* Other settings from now on, copied: times, refresh, namespaces and what they allow. What runs
 * already goes by the new ones from the next look on. `mask_ms`, `kubelet_wait_ms`, `boot_id`, and
 * which resources are exclusive and which are a DRA driver's, must be as they were. */
void devicemgr_set_settings(struct devicemgr *mgr, uint64_t now_ms,
                            const struct devicemgr_settings *settings);
/* No port is called. Accepts NULL. */
void devicemgr_free(struct devicemgr *mgr);

/* Carries out what earlier events asked for, and what ports send meanwhile; what takes long it may
 * leave to the next call, due at once. A call from inside a port returns: the outer one goes on. */
void devicemgr_run(struct devicemgr *mgr);

/* When devicemgr_tick() is due at the latest; UINT64_MAX: never. Changes with any event. */
uint64_t devicemgr_next_ms(const struct devicemgr *mgr);
void devicemgr_tick(struct devicemgr *mgr, uint64_t now_ms);

/* ---- start: one row of the checkpoint; before any other event. -1: the row makes no sense and was
 * dropped. ---- */
int devicemgr_restore(struct devicemgr *mgr, uint64_t now_ms, const struct devicemgr_record *record)
    __attribute__((warn_unused_result));
/* Rows that there were are not restored: the file was damaged, or could not be read. Told before
 * devicemgr_restored(); a row that makes no sense counts by itself. A container may then be in the
 * making that nobody knows of, so that nothing new is given out before the runtime's list has been
 * asked for once more, some seconds later. Until then the checkpoint says so, too
 * (DEVICEMGR_RECORD_LOSS): another start waits likewise. */
void devicemgr_rows_lost(struct devicemgr *mgr);
/* The rows cannot be read yet, for this reason (copied), which creates that name devices are
 * refused with; all others pass. May be told again. Before devicemgr_restored(), which
 * ends it, nothing may be told but rows, creates with their ends, and what the kubelet does. */
void devicemgr_rows_unread(struct devicemgr *mgr, const char *why);
/* All rows are in: restored resources begin their grace period, or go on with it if it had begun
 * before in this boot, and their last sockets are dialled. */
void devicemgr_restored(struct devicemgr *mgr, uint64_t now_ms);

/* ---- plugins ---- */

/* A plugin of the user `uid` called Register (README.md, "Registration"); ends in register_done. */
void devicemgr_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                        const char *version, const char *socket_name, uint32_t uid,
                        const char *resource);
/* The same of one found by its registration socket; who tells answers for the absolute path. */
void devicemgr_register_at(struct devicemgr *mgr, uint64_t now_ms, uint64_t registration,
                           const char *version, const char *path, uint32_t uid,
                           const char *resource);
/* The Register call's client went away before register_done. */
void devicemgr_register_cancelled(struct devicemgr *mgr, uint64_t registration);
void devicemgr_endpoint_options(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                                const V1beta1__DevicePluginOptions *options);
void devicemgr_endpoint_list(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const V1beta1__ListAndWatchResponse *list);
/* Calls on the endpoint are over, too: no result of them is wanted. Before the options have come,
 * `reason` is what the plugin's Register call is told; it may say which step failed in the
 * kubelet's words ("failed to dial device plugin: ...", "failed to get device plugin options:
 * ..."), else the first of these is put in front. The port gives up on a silent socket by itself
 * (kubelet: 10 s). */
void devicemgr_endpoint_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t endpoint,
                             const char *reason);

/* Results of plugin calls: `code` 0 with the response, which can be packed
 * (cri-proto/field_numbers.h), or a gRPC code with the plugin's words. */
void devicemgr_allocated(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                         const char *message, const V1beta1__AllocateResponse *response);
void devicemgr_preferred(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                         const char *message, const V1beta1__PreferredAllocationResponse *response);
void devicemgr_prestarted(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                          const char *message);

/* ---- built-in devices: a resource that needs no plugin; the whole list, again at each change
 * ---- */
struct devicemgr_builtin_device {
    const char *id;
    bool healthy;
    const char *host_path;
    const char *container_path;
    const char *permissions;
    /* What the container gets besides: further nodes of the same device, mounts, envs. May be
     * NULL. */
    const V1beta1__ContainerAllocateResponse *more;
};
void devicemgr_builtin(struct devicemgr *mgr, uint64_t now_ms, const char *resource,
                       const struct devicemgr_builtin_device *devices, size_t devices_len);

/* ---- containers ---- */
struct devicemgr_annotation {
    const char *key;
    const char *value;
};

struct devicemgr_create {
    const char *sandbox_id;
    uint32_t sandbox_attempt; /* of its config in the request; 0 if that is not there */
    const char *pod_uid;
    const char *pod_namespace;
    const char *pod_name;
    const char *container;
    uint32_t attempt;
    const struct devicemgr_annotation *container_annotations; /* tokens */
    size_t container_annotations_len;
    const struct devicemgr_annotation *pod_annotations; /* requests */
    size_t pod_annotations_len;
    /* Names that its request has, of claims perhaps (dra.h): those of its field, then so many that
     * annotations have. */
    const char *const *cdi_devices;
    size_t cdi_devices_len;
    size_t cdi_annotated_len;
    uint64_t deadline_ms; /* on the clock of now_ms; UINT64_MAX: the client set none */
};

/*
 * A CreateContainer is to be decided. False: it asks for no device, and names none that a claim has
 * or had (dra.h): forward it untouched, no verdict comes. True: a verdict for `create` (the
 * caller's number, unique until it is refused, cancelled or answered) will come through the port. A
 * pending create of the same container is refused ABORTED: the client's retry takes it over.
 */
bool devicemgr_create(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                      const struct devicemgr_create *request) __attribute__((warn_unused_result));
/* The client gave the pending or forwarded create up, its connection is gone, or the runtime's
 * answer does not tell whether the container was made; its outcome stays unknown. */
void devicemgr_create_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t create);
/* The shim is about to end: creates that wait for a plugin, a device or its holder, and all that
 * will, are refused at once, UNAVAILABLE; calls of plugins under way go on. For ever. What is to be
 * stored within some time is now, unless the store has failed last. */
void devicemgr_drain(struct devicemgr *mgr, uint64_t now_ms);
/* The runtime's answer to a create that a verdict let pass; container_id NULL: it refused.
 * What the shim chose for a container that was never made is free again then, its rows deleted. */
void devicemgr_create_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t create,
                               const char *container_id);
/* Removed, or exited: it will never run again. */
void devicemgr_container_removed(struct devicemgr *mgr, uint64_t now_ms, const char *container_id);
/* What the runtime said of one container. */
enum devicemgr_checked {
    DEVICEMGR_GONE,         /* it does not know it, or it has exited: it will never run again */
    DEVICEMGR_RUNS,         /* it is created or running */
    DEVICEMGR_NOT_ANSWERED, /* it said nothing: it was slow, or cannot be asked just now */
};
/* No device is taken from a container unseen: with DEVICEMGR_NOT_ANSWERED who wants it waits on,
 * and asks again a moment later, as long as it waits. */
void devicemgr_container_checked(struct devicemgr *mgr, uint64_t now_ms, uint64_t check,
                                 enum devicemgr_checked answer);

/* ---- pods ---- */
struct devicemgr_sandbox {
    const char *id;
    const char *pod_uid;
    const char *pod_namespace;
    const char *pod_name;
    uint32_t attempt;
    bool ready;
    /* all, or of one that ran what counts at once */
    const struct devicemgr_annotation *annotations;
    size_t annotations_len;
};
void devicemgr_sandbox_ran(struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_sandbox *sandbox);
/* The stop was asked for: creates in it are refused from now on. */
void devicemgr_sandbox_stopping(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id);
/* The runtime refused the stop, or its answer never came: it may be stopped, half or not at all. It
 * is taken to be stopping for some seconds more; if the runtime lists it as ready after that,
 * creates in it are admitted again. A new stop counts anew. */
void devicemgr_sandbox_stop_failed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id);
/* The runtime said it is stopped; all its containers are dead. Of a sandbox that was listed as not
 * ready it may say so with containers that run (CRI-O): the next list tells. */
void devicemgr_sandbox_stopped(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id);
void devicemgr_sandbox_removed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id);

/* Whether creates that an earlier process has forwarded, to which the runtime has not answered yet,
 * are under way: as long as they are, and until a list that was asked for some seconds after that
 * (the last one's client may have given it up), what the checkpoint has and no list shows may be in
 * the making. */
void devicemgr_earlier_creates(struct devicemgr *mgr, uint64_t now_ms, bool under_way);

/* The runtime's list is being asked for: what happens from now on is newer than its answer. Without
 * this call everything devicemgr_runtime_listed() does not name is dropped. */
void devicemgr_runtime_listing(struct devicemgr *mgr);

/* The runtime's whole truth, at start, after each reconnect, and when the port `runtime_list` asked
 * for it. Nothing that was restored is dropped before the first, and before a kubelet has listed
 * (devicemgr_kubelet_listed(), or settings.kubelet_wait_ms after devicemgr_restored()); a pod of
 * an earlier boot, of which the runtime knows nothing any more, is given some time even then. What
 * may still be in the making, since its client went away or the shim was killed, is believed not to
 * be there only when it is not in a list that was asked for some seconds later (OUTCOME_MS). */
struct devicemgr_container {
    const char *id;
    const char *sandbox_id;
    const char *name;
    uint32_t attempt;
    bool running; /* created or running: it may hold devices */
    const struct devicemgr_annotation *annotations;
    size_t annotations_len;
    bool created; /* with `running`: it has not been started */
};
void devicemgr_runtime_listed(struct devicemgr *mgr, uint64_t now_ms,
                              const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                              const struct devicemgr_container *containers, size_t containers_len);

/* ---- capacity: as the kubelet's GetCapacity; what is kept back stays in it, as on a cordoned node
 * ---- */
struct devicemgr_capacity {
    const char *resource;
    size_t capacity;    /* its devices, healthy or not */
    size_t healthy;     /* none while the plugin is away */
    size_t kept_back;   /* from new holders, healthy or not: cordoned, tainted, or withdrawn */
    size_t allocatable; /* the healthy ones that are not kept back */
    /* The plugin was away for the whole grace period, and nobody has seen that yet: to be published
     * as 0 and 0, so that others may publish the name. */
    bool removed;
};
/* Calls `each` for every resource that had a list, in the order of names, before it returns; what
 * it is given is borrowed until `each` returns. `each` must not send events. */
void devicemgr_capacity(const struct devicemgr *mgr,
                        void (*each)(void *user, const struct devicemgr_capacity *capacity),
                        void *user);
/* Whoever publishes has seen that the resource is removed: it is reported no more. Removed
 * resources that nobody has seen are forgotten by a restart: what is not reported then is as gone.
 */
void devicemgr_removed_seen(struct devicemgr *mgr, const char *resource);

/* ---- what it keeps, in numbers: for who watches that nothing piles up ---- */
struct devicemgr_kept {
    size_t creates; /* pending or forwarded */
    size_t calls;   /* on plugins, for creates */
    size_t checks;  /* of containers */
    size_t allocations;
    size_t pods;
    size_t sandboxes;
};
void devicemgr_kept(const struct devicemgr *mgr, struct devicemgr_kept *kept);

/* ---- what it lacks: for who tells an operator. Texts are borrowed until the next event ---- */
struct devicemgr_health {
    const char *unread;   /* why the checkpoint's rows are not known yet; NULL: they are */
    const char *unstored; /* why the last commit failed; NULL: it did not */
    uint64_t unstored_ms; /* since when none has succeeded */
    bool listed;          /* the runtime has listed its containers */
};
void devicemgr_health(const struct devicemgr *mgr, struct devicemgr_health *health);
/* Whether a plugin was told that it is registered and the checkpoint does not say so yet: it has
 * not listed its devices, or its row is not durable. A process that follows would not know of
 * it. */
bool devicemgr_registrations_unstored(const struct devicemgr *mgr);

/* ---- what the kubelet is shown: as devicemgr_run() left it ---- */

/*
 * The shim stands in for each of these resources at the kubelet, which fails a pod for good where
 * a device looks unhealthy. So a device is shown
 *   healthy    while it is, and while its plugin is away for less than settings.mask_ms as it was
 *              last (restored, and not listed since: healthy);
 *   healthy    if it is held, whatever the plugin says, also if it is not listed any more, to a
 *              kubelet that has just started: for settings.mask_ms from devicemgr_kubelet_started()
 *              or devicemgr_restored(), after a reboot once it is told of its pods, and until then
 *              (books/kubelet.h). Only such a one admits pods again;
 *   unhealthy  if a container holds it that asked by annotation: the kubelet must not give it away;
 *   unhealthy  in all other cases.
 * It is held by an allocation the kubelet made, or may have made, of a pod that is not over, or by
 * the kubelet's own checkpoint (devicemgr_kubelet_holds()). A pod is over once it is gone, or its
 * newest sandbox was stopped by a client of the runtime and no container of it runs. One whose
 * sandbox was found dead is not: after a reboot all are, and the kubelet, before it makes new ones,
 * admits their pods again.
 * A resource is shown from its first list on, or its restoring, until its grace period is over.
 */
struct devicemgr_shown {
    const char *resource;
    uint64_t version;     /* another one whenever the list may differ; never 0 */
    uint64_t base;        /* another one whenever it may differ in more than who holds a device,
                           * and what that makes of its health; never 0 */
    uint64_t mask_end_ms; /* the plugin is away, and that shows from then on; 0: it serves, or it
                           * shows already */
    bool expected; /* restored, and its plugin, which is being dialled, has not listed since: what
                    * is shown may be another list in a moment */
};
struct devicemgr_shown_device {
    const char *id;
    bool healthy;
    bool held; /* by the kubelet's doing */
    const int64_t *numa_nodes;
    size_t numa_nodes_len;
};

/* Another number whenever any of what follows may differ; never 0. Cheap. */
uint64_t devicemgr_shown_version(const struct devicemgr *mgr);
/* Calls `each` for every resource shown, in the order of names, before it returns; what it is given
 * is borrowed until `each` returns. `each` must not send events. The same holds for the devices, in
 * the natural order of ids; a resource that is not shown has none. */
void devicemgr_shown(const struct devicemgr *mgr,
                     void (*each)(void *user, const struct devicemgr_shown *shown), void *user);
void devicemgr_shown_devices(const struct devicemgr *mgr, const char *resource,
                             void (*each)(void *user, const struct devicemgr_shown_device *device),
                             void *user);

/*
 * The same for the devices at `places` of the list (`marked`: false), then for all that somebody
 * holds (true): those of both come twice. With the same base none differs but those that are held,
 * or were. It costs as many steps as there are of them, and of allocations. False, and nothing was
 * called: the list has devices that the plugin does not list, which makes other places.
 */
bool devicemgr_shown_some(const struct devicemgr *mgr, const char *resource, const uint32_t *places,
                          size_t len,
                          void (*each)(void *user, uint32_t place,
                                       const struct devicemgr_shown_device *device, bool marked),
                          void *user);

/* ---- the kubelet, as far as its calls of the runtime and its files show it ---- */

/* A kubelet process that nobody has seen before has called the runtime (its first call is Version
 * with an empty version): it will admit all its pods anew, and fails for good what it admits while
 * a device of the pod looks unhealthy. Once for each process, and again while it is kept from
 * admitting anything, since its time begins after that; not for one that was told of before a
 * restart of the shim, whose own start counts alike. */
void devicemgr_kubelet_started(struct devicemgr *mgr, uint64_t now_ms);
/* A kubelet was given the runtime's list of sandboxes (ListPodSandbox): it is connected, and knows
 * what there is. Each time or the first time only, the first counts. Until then nothing that was
 * restored is dropped. */
void devicemgr_kubelet_listed(struct devicemgr *mgr, uint64_t now_ms);

/* What the kubelet's own checkpoint says its pods have: the whole, in place of what was told
 * before. Resources that are not shown are ignored as long as they are not, and so are pods known
 * to be over; one that was never heard of counts. `read_ms` is when the reading of the file began,
 * on the clock of now_ms; 0: there is no file, or none that can be read. A container that came with
 * a token before, and lives, and to which the file gives no such devices, is warned of once: the
 * token is somebody else's. A container that runs without a token, from before its plugin was moved
 * over, holds from then on what the file gives it, until it ends. */
struct devicemgr_kubelet_held {
    const char *pod_uid, *container, *resource;
    const char *const *ids;
    size_t ids_len;
    const int64_t *const *numa_nodes; /* of each id; NULL: not known */
    const size_t *numa_nodes_len;
};
void devicemgr_kubelet_holds(struct devicemgr *mgr, uint64_t now_ms, uint64_t read_ms,
                             const struct devicemgr_kubelet_held *held, size_t held_len);

/* Whether a container waits for the kubelet to let go of devices of the resource that are meant for
 * it, which are shown as taken (settings.replace). */
bool devicemgr_replacing(const struct devicemgr *mgr, const char *resource);
/* The kubelet's checkpoint, as devicemgr_kubelet_holds() told it last, has just the healthy devices
 * of the resource's list as it is shown now, and was written, then read, since that was sent. */
void devicemgr_kubelet_took(struct devicemgr *mgr, uint64_t now_ms, const char *resource);

/* What the kubelet asks for one container; all of it is borrowed. */
struct devicemgr_preference {
    const char *resource;
    const char *const *available;
    size_t available_len;
    const char *const *must_include; /* of these */
    size_t must_include_len;
    size_t size; /* how many it wants */
    uint64_t timeout_ms;
};

/*
 * The kubelet asks which devices are preferred. Ends in the port `preferred`, within `timeout_ms`,
 * with what the plugin prefers, or with nothing: it is away, does not offer that, is late, or
 * failed. Devices whose containers have not ended, or that are cordoned, are left out if enough
 * others remain, and then the answer is `size` of those in any case. A plugin that was late is not
 * asked again for a while, since the kubelet admits no pod meanwhile. `number` is the caller's.
 */
void devicemgr_prefer(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                      const struct devicemgr_preference *asked);
/* The kubelet does not wait for it any more. */
void devicemgr_prefer_cancelled(struct devicemgr *mgr, uint64_t number);

/* ---- store ---- */
/* `error` NULL: durable. Else the store's words; nothing of that commit was kept. */
void devicemgr_committed(struct devicemgr *mgr, uint64_t now_ms, uint64_t commit,
                         const char *error);
/* The store is empty: its file was taken away, and another made. All there is to keep is written
 * anew. Told before the end of the commit that found it out, which failed. Meanwhile creates that
 * need nothing new are forwarded: the runtime's containers can tell what they hold. */
void devicemgr_store_reset(struct devicemgr *mgr, uint64_t now_ms);

#endif
