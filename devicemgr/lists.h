/*
 * What there is, row by row: resources, plugins, devices, allocations, pods, orders, drivers,
 * claims. For who tells an operator.
 *
 * To ask changes nothing. Rows come in the natural order of their keys ("g2" before "g10"). The
 * texts of a row are borrowed until the next event, the rest of it until `each` returns. `each` is
 * called before return, must not send events, and ends the list with false: it may be gone on with
 * from there at any later time, by the key of the last row. What came and went between is not seen.
 */
#ifndef DEVICEMGR_LISTS_H
#define DEVICEMGR_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct devicemgr;

/* Which rows are meant; a zeroed struct means all. What a list has not is not looked at. */
struct devicemgr_which {
    const char *resource;      /* NULL: any */
    const char *pod;           /* its uid, "namespace/name", or its name in any; NULL: any */
    const char *pod_namespace; /* NULL: any; of claims it is their own */
    const char *driver;        /* NULL: any */
    const char *const *after;  /* the key's parts, of the row before; NULL: from the first on */
    bool again; /* of allocations and resources: that row, too, which was not told to its end */
};

/* ---- resources. The key is the name ---- */

#define DEVICEMGR_RESOURCE_KEY 1
struct devicemgr_resource {
    const char *name;
    size_t steps;      /* that it took to count it */
    bool uncounted;    /* held, free and what is shown are not said: they are too many for one call
                        * (RESOURCE_COUNT_MAX), and devicemgr_devices() says them piece by piece */
    const char *state; /* of its plugin's endpoint (things/endpoint.h); "builtin": it has none */
    bool exclusive;    /* a device is in one running container at a time */
    size_t devices;    /* as listed last, with the next */
    size_t healthy;
    size_t held; /* by containers that may run or be made again, or given away by the kubelet; those
                  * that are not listed any more, too */
    size_t free; /* who asks by annotation could have them now */
    size_t cordoned;       /* by the operator (operator.h), listed now or not */
    const char *withdrawn; /* likewise, the whole of it: the reason, ""; NULL: it is not */
    uint64_t withdrawn_at_s;
    bool shown; /* to the kubelet, which sees these: */
    size_t shown_devices, shown_healthy;
};
/* It costs as many steps as there are allocations, and devices that somebody has, for each row;
 * where an operator has set something of the resource, as there are devices. */
void devicemgr_resources(const struct devicemgr *mgr, uint64_t now_ms,
                         const struct devicemgr_which *which,
                         bool (*each)(void *user, const struct devicemgr_resource *resource),
                         void *user);

/* ---- plugins: resources that are not built in. The key is the resource ---- */

#define DEVICEMGR_PLUGIN_KEY 1
struct devicemgr_plugin {
    const char *resource;
    const char *socket; /* that is, or was, dialled; "": none yet */
    const char *state;  /* connecting, active, grace, gone (things/endpoint.h) */
    uint64_t since_ms_ago;
    bool stopped; /* it is away: since so long, and so long it may be yet */
    uint64_t stopped_ms_ago;
    uint64_t grace_left_ms; /* with what the operator has set: */
    uint64_t grace_more_ms; /* it ends so much later */
    const char
        *error; /* why it was lost last, while it is away; NULL: it was not, or nobody knows */
    bool have_options; /* what it said of itself: */
    bool pre_start, preferred;
};
void devicemgr_plugins(const struct devicemgr *mgr, uint64_t now_ms,
                       const struct devicemgr_which *which,
                       bool (*each)(void *user, const struct devicemgr_plugin *plugin), void *user);

/* ---- devices. The key is resource and id ---- */

/* Who has a device. */
struct devicemgr_holder {
    const char *pod_uid, *pod_namespace, *pod_name; /* namespace and name "": not known */
    const char *container;
    const char *state; /* an allocation's; "promised": the kubelet gave it away, and no more, or it
                          has another in its place */
};

#define DEVICEMGR_DEVICE_KEY 2
struct devicemgr_device {
    const char *resource;
    const char *id;
    bool listed; /* else the plugin lists it no more, and somebody has it */
    bool healthy;
    uint64_t since_ms_ago; /* that it is, or is not; of one that is listed */
    bool free;             /* as in struct devicemgr_resource */
    const char *cordon;    /* the operator's reason (operator.h), ""; NULL: it is not cordoned */
    uint64_t cordon_at_s;
    const char *withdrawn; /* its resource is, as above; with the next */
    uint64_t withdrawn_at_s;
    bool shown; /* to the kubelet, and how: */
    bool shown_healthy;
    const int64_t *nodes; /* NUMA nodes; none: no topology */
    size_t nodes_len;
    const struct devicemgr_holder *holders;
    size_t holders_len;
};
void devicemgr_devices(const struct devicemgr *mgr, uint64_t now_ms,
                       const struct devicemgr_which *which,
                       bool (*each)(void *user, const struct devicemgr_device *device), void *user);

/* The id of a device of the resource that `is` says yes to, of all those that are listed or that
 * somebody has: the last of them in the list's order. NULL: none. It is borrowed as a row's texts
 * are. */
const char *devicemgr_device_find(const struct devicemgr *mgr, const char *resource,
                                  bool (*is)(void *user, const char *id), void *user);

/* ---- allocations: what a container has of a resource. The key is namespace, pod, uid, container,
 * resource ---- */

#define DEVICEMGR_ALLOCATION_KEY 5
struct devicemgr_allocation {
    const char *pod_uid, *pod_namespace, *pod_name;
    const char *container;
    const char *resource;
    /* creating: a create is being decided, or the runtime makes it · running: its container may run
     * · unknown: some container may run, or be in the making · kept: none, but the pod may make it
     * again · over: none, and none will be */
    const char *state;
    uint64_t since_ms_ago; /* as far as this life of the process knows */
    const char *const *ids;
    size_t ids_len;
    const char *const *asked; /* what `ids` are in the place of; none: of nothing */
    size_t asked_len;
    bool own_choice; /* the shim chose the devices; else the kubelet, */
    bool claimed;    /* or the scheduler, for claims */
    bool stored;     /* the checkpoint has it */
    bool cached;     /* with its runtime options: the plugin need not be there to make it again */
    /* What it waits for. */
    bool waits_store, waits_create, waits_check, waits_list;
};
void devicemgr_allocations(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_allocation *allocation),
                           void *user);
/* Whether two of a resource may both have the device: by one claim, or as one that only looks. Each
 * is named as its record is: the pod's uid, container, resource. */
bool devicemgr_allocations_share(const struct devicemgr *mgr, const char *id,
                                 const char *const one[static 3],
                                 const char *const other[static 3]);

/* ---- pods that hold devices, wait for them or were refused. The key is namespace, name, uid
 * ---- */

struct devicemgr_pod_container {
    const char *name;
    size_t devices;    /* that it has */
    const char *state; /* an allocation's, or "promised"; "": it has none */
    bool waits;        /* a create of it is held, or being decided */
    uint64_t waited_ms;
    /* Its last refusal, also if it was made since; NULL: none is remembered. */
    const char *refused_word;
    uint64_t refused_times;
    uint64_t refused_ms_ago;
};

#define DEVICEMGR_POD_KEY 3
struct devicemgr_pod {
    const char *uid, *pod_namespace, *name;
    const char
        *sandbox; /* the newest's state: ready, not-ready, stopping, stopped; "": not known */
    const struct devicemgr_pod_container *containers; /* by name */
    size_t containers_len;
};
void devicemgr_pods(const struct devicemgr *mgr, uint64_t now_ms,
                    const struct devicemgr_which *which,
                    bool (*each)(void *user, const struct devicemgr_pod *pod), void *user);

/* ---- pods that are ended from here, were and are kept from coming back, or are to be for taints
 * of their devices. The key is namespace, name, uid ---- */

struct devicemgr_ending_ask {
    const char *asker; /* operator, eviction, shutdown */
    const char *why;
    bool own_grace; /* the pod's; else: */
    uint64_t grace_ms;
    bool here; /* not by the API server */
};

#define DEVICEMGR_ENDING_KEY 3
struct devicemgr_ending_row {
    const char *pod_namespace, *name, *uid; /* the first two "": not known */
    /* waits: a taint of its device is tolerated for a while yet, or so many went in the last
     * minute, or it is not known yet whether it has to go · asked: that is not stored yet ·
     * evicting: the API server is asked · evicted: it has done so, and the kubelet ends it ·
     * stopping: its containers are being stopped · stopped: none of them runs · gone */
    const char *state;
    uint64_t asked_ms_ago; /* not with waits */
    bool due; /* in so long; waits: it is asked for; stopping: its containers are killed */
    uint64_t due_in_ms;
    const struct devicemgr_ending_ask *asks; /* who asked first first */
    size_t asks_len;
};
void devicemgr_ending_rows(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_ending_row *row),
                           void *user);

/* ---- what an operator has set (operator.h). The key is kind, resource and id ---- */

#define DEVICEMGR_ORDER_KEY 3
#define DEVICEMGR_ORDER_KINDS 4
struct devicemgr_order {
    const char *kind; /* cordon, withdrawal, grace, taint, one after the other */
    const char *resource;
    const char *id; /* of a cordon; of a taint "KEY:EFFECT DEVICE" (devicemgr_taints() has more of
                     * it); else "" */
    const char *reason;
    uint64_t at_s;
    uint64_t more_ms; /* of a grace period: it ends so much later; 0 with `over` */
    bool over;        /* it was ended */
};
void devicemgr_orders(const struct devicemgr *mgr, const struct devicemgr_which *which,
                      bool (*each)(void *user, const struct devicemgr_order *order), void *user);

/* ---- drivers of dynamic resource allocation. The key is the name ---- */

/* One socket that a driver serves at. */
struct devicemgr_driver_endpoint {
    uint64_t instance; /* the number that it registered by */
    const char *endpoint;
    const char *const *services; /* as it told them */
    size_t services_len;
    bool connected;
    uint64_t since_ms_ago; /* that it is, or is not */
    bool called;           /* it is the one that is */
};

#define DEVICEMGR_DRIVER_KEY 1
struct devicemgr_driver_row {
    const char *name;
    const struct devicemgr_driver_endpoint *endpoints; /* who registered first first */
    size_t endpoints_len;
    const char *const *services; /* of the newest endpoint, or of the last that there was */
    size_t services_len;
    bool connected;
    uint64_t since_ms_ago; /* that it is, or is away; as far as this life of the process knows */
    const char *why;       /* it is away, for people; "": it is not, or nothing is known of it */
    bool wiped;            /* its ResourceSlices are gone since it is away */
    bool moved;            /* it was seen with the kubelet itself since it is away */
    size_t claims;         /* of which it has something, or may have */
    size_t prepared, owed; /* of them */
    size_t waits;          /* of the kubelet's requests for its claims: that are not answered yet */
};
void devicemgr_driver_rows(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_driver_row *driver),
                           void *user);

/* ---- claims. The key is namespace, name, uid and driver ---- */

/* A device that a claim was given, as its driver answered. */
struct devicemgr_granted {
    const char *pool, *device;
    const char *share_id; /* NULL: it is not shared on purpose */
    bool admin;           /* it is looked at only; known of what the cluster has told */
    const char *const *cdi;
    size_t cdi_len;
};

/* A container that may run with devices of a claim. */
struct devicemgr_claim_use {
    const char *pod;     /* "namespace/name" */
    const char *pod_uid; /* "": not known */
    const char *container;
};

#define DEVICEMGR_CLAIM_KEY 4
struct devicemgr_claim_row {
    const char *uid, *pod_namespace, *name;
    const char *driver;
    /* new: it is from before its driver came here · asked: the driver has nothing of it yet · sent:
     * its prepare was · prepared · unpreparing: its unprepare was sent · owed: it was said to be
     * unprepared, and its driver is to be told · gone: it is unprepared, which is not stored yet */
    const char *state;
    uint64_t since_ms_ago; /* as far as this life of the process knows */
    bool stored;           /* the checkpoint has it */
    bool prepared;         /* since then, for the first time: */
    uint64_t prepared_ms_ago;
    bool local;  /* its devices are this node's alone, as far as that was seen */
    size_t asks; /* requests of the kubelet's that are not answered yet */
    const struct devicemgr_granted *devices;
    size_t devices_len;
    const struct devicemgr_claim_use *users;
    size_t users_len;
};
void devicemgr_claim_rows(const struct devicemgr *mgr, uint64_t now_ms,
                          const struct devicemgr_which *which,
                          bool (*each)(void *user, const struct devicemgr_claim_row *claim),
                          void *user);

#endif
