/*
 * What the device manager needs of the world: calls on plugins, the store, the runtime, an ear for
 * its verdicts.
 *
 * The core does no I/O. Each event (devicemgr.h) may queue actions; devicemgr_run() carries them
 * out by calling these functions, never from inside an event. A port returns at once and reports
 * its result later as an event; all pointers it is given are borrowed until it returns.
 */
#ifndef DEVICEMGR_PORTS_H
#define DEVICEMGR_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

/* One row of the checkpoint. Keys not used by a kind are "". */
enum devicemgr_record_kind {
    DEVICEMGR_RECORD_RESOURCE,   /* key[0] resource name; checkpoint.v1.Resource */
    DEVICEMGR_RECORD_ALLOCATION, /* pod uid, container, resource; checkpoint.v1.Allocation */
    DEVICEMGR_RECORD_POD,        /* key[0] pod uid; checkpoint.v1.Pod */
    DEVICEMGR_RECORD_ORDER,      /* kind, resource, id or ""; checkpoint.v1.Order */
    DEVICEMGR_RECORD_DRIVER,     /* key[0] its name; checkpoint.v1.Driver */
    DEVICEMGR_RECORD_CLAIM,      /* claim uid, driver; checkpoint.v1.Claim */
    DEVICEMGR_RECORD_ENDING,     /* key[0] pod uid; checkpoint.v1.Ending */
    DEVICEMGR_RECORD_SHUTDOWN,   /* key[0] "shutdown"; checkpoint.v1.Shutdown */
    DEVICEMGR_RECORD_LOSS,       /* key[0] "rows_lost": they were, and the runtime has not been
                                  * listed late enough since. A store may write it by itself */
};

struct devicemgr_record {
    enum devicemgr_record_kind kind;
    const char *key[3];
    const void *value; /* NULL: delete the row */
    size_t value_bytes;
};

/* A CDI name of a request, and what goes on in its place, wherever it stands there; none:
 * nothing. */
struct devicemgr_rename {
    const char *name;
    const char *const *to;
    size_t to_len;
};

/* How a held or intercepted CreateContainer goes on. */
struct devicemgr_verdict {
    int code;             /* 0: forward; else the gRPC code of the refusal */
    const char *message;  /* of a refusal; NULL when forwarded */
    const char *resource; /* which it is for; NULL: not for one */
    uint64_t held_ms;     /* for so long it waited for the world to change; 0: not at all */
    /* Merged runtime options to put in front; NULL: there are none. Without these and the next the
     * request is forwarded untouched. */
    const V1beta1__ContainerAllocateResponse *options;
    /* Of CDI names that are not what its claims have any more (dra.h). */
    const struct devicemgr_rename *renames;
    size_t renames_len;
};

/* Who asks for a pod's end, where that is a taint of its device. */
#define DEVICEMGR_ASKER_EVICTION "eviction"

/* What has come to pass that who watches the node wants to hear of. */
enum devicemgr_event_kind {
    DEVICEMGR_EVENT_REGISTERED, /* a plugin, which has told its options */
    DEVICEMGR_EVENT_LOST,       /* its connection; `text`: how */
    DEVICEMGR_EVENT_BACK,       /* it lists its devices again */
    DEVICEMGR_EVENT_REMOVED,    /* its resource, since it did not come back in time */
    DEVICEMGR_EVENT_ALLOCATED,  /* a container was made with these devices */
    DEVICEMGR_EVENT_RELEASED,   /* no container of those runs any more */
    DEVICEMGR_EVENT_TAKEN,      /* an operator has taken them; `text`: who, and why */
    DEVICEMGR_EVENT_REPLACED,   /* a container is made with these devices in the place of what is
                                * lost; `text`: of which */
    DEVICEMGR_EVENT_HELD_BACK,  /* so many devices are unhealthy that not all of them are tainted
                                * NoExecute; `text`: how many */
    DEVICEMGR_EVENT_REFUSED,  /* a create; `word`: the reason's, `text`: what the client was told */
    DEVICEMGR_EVENT_ENDING,   /* a pod is to end; `word`: who asks, `text`: why */
    DEVICEMGR_EVENT_ENDED,    /* it has; `word`: how */
    DEVICEMGR_EVENT_SPARED,   /* who asked for that wants it no more; with the same */
    DEVICEMGR_EVENT_SHUTDOWN, /* the machine's; `word`: what it has come to, `text`: a sentence */
    /* Of DRA; `resource`: the driver's name. */
    DEVICEMGR_EVENT_DRIVER_CAME,      /* it can be called; `text`: at which endpoint */
    DEVICEMGR_EVENT_DRIVER_WENT,      /* at none any more; `text`: why */
    DEVICEMGR_EVENT_DRIVER_MOVED,     /* it is the kubelet's; `text`: at which endpoint */
    DEVICEMGR_EVENT_SLICES_WIPED,     /* its ResourceSlices are gone while it is away */
    DEVICEMGR_EVENT_CLAIM_PREPARED,   /* `ids`: the devices, "pool/name" */
    DEVICEMGR_EVENT_CLAIM_OWED,       /* it was said to be unprepared while its driver is away */
    DEVICEMGR_EVENT_CLAIM_UNPREPARED, /* the driver has done so */
    DEVICEMGR_EVENT_KINDS,            /* how many there are */
};
/* Ids that an event names. */
#define DEVICEMGR_EVENT_IDS_MAX 64

struct devicemgr_event {
    enum devicemgr_event_kind kind;
    /* It may have been told before, by an earlier process, or be nothing new: it counts if what was
     * told last of its resource, or of these devices of the container, was the opposite. */
    bool again;
    const char *resource;   /* this and the texts below: NULL, not about one */
    const char *const *ids; /* the first of `ids_total` */
    size_t ids_len, ids_total;
    const char *pod_uid, *pod_namespace, *pod_name, *container;
    const char *claim_uid, *claim_namespace, *claim_name;
    const char *word; /* static */
    const char *text; /* may have any bytes of a peer's */
};

/* What has happened by a line of the log that somebody may look for. */
enum devicemgr_line {
    DEVICEMGR_LINE_OTHER,
    DEVICEMGR_LINE_REGISTERED, /* a plugin registers */
    DEVICEMGR_LINE_LISTED,     /* its devices, for the first time, or otherwise than before */
    DEVICEMGR_LINE_AWAY,       /* it is lost, or does not list any */
    DEVICEMGR_LINE_REMOVED,    /* its resource is */
    DEVICEMGR_LINE_ALLOCATED,  /* a creation goes on with its devices */
    DEVICEMGR_LINE_FREED,      /* devices are taken from a container that does not run any more */
    DEVICEMGR_LINE_REPLACED,   /* devices are given in the place of what is lost */
    DEVICEMGR_LINE_ADOPTED,    /* devices that the kubelet gave away itself */
    DEVICEMGR_LINE_STRANGE_TOKEN, /* the kubelet does not know of it */
    DEVICEMGR_LINE_ORDERED,       /* by the operator */
    DEVICEMGR_LINE_UNSTORED,      /* state cannot be stored */
    DEVICEMGR_LINE_STORED,        /* it can again */
    DEVICEMGR_LINE_RUNTIME_LISTED,
    DEVICEMGR_LINE_ENDING,      /* of a pod that is ended from here */
    DEVICEMGR_LINE_SHUTDOWN,    /* of the machine */
    DEVICEMGR_LINE_DRIVER_CAME, /* this and the next two as the events of these names */
    DEVICEMGR_LINE_DRIVER_WENT,
    DEVICEMGR_LINE_DRIVER_MOVED,
    DEVICEMGR_LINE_SLICES_WIPED,
    DEVICEMGR_LINE_CLAIM_PREPARED,
    DEVICEMGR_LINE_CLAIM_OWED,
    DEVICEMGR_LINE_CLAIM_UNPREPARED,
    DEVICEMGR_LINES, /* how many there are */
};

/* What a line of the log is about, besides its words. NULL: not about one, or not known. */
struct devicemgr_about {
    enum devicemgr_line line;
    const char *resource;
    const char *pod_namespace, *pod_name;
    const char *container;
};

/* A claim as the kubelet names it to a driver (dra.h). */
struct devicemgr_claim {
    const char *pod_namespace;
    const char *name;
    const char *uid;
};

/* Where a claim stands among those that are asked for in one. */
struct devicemgr_batch {
    uint64_t number; /* 0: it is asked for by itself */
    size_t place;    /* of a higher one is who comes later */
};

/* What became of it. */
struct devicemgr_claim_done {
    int code;            /* 0: prepared, or unprepared; else a gRPC code */
    const char *message; /* why not; NULL with code 0 */
    bool stops;          /* it is not, since this process stops: the next one may answer it */
    /* Of one that was prepared: the bytes of NodePrepareResourceResponse of dra v1. */
    const void *response;
    size_t response_bytes;
};

/* A pod that the cluster is to evict. */
struct devicemgr_eviction {
    const char *pod_uid;
    const char *pod_namespace;
    const char *pod_name;
    bool own_grace; /* the pod's own; else: */
    uint64_t grace_ms;
    bool forced;     /* without regard to disruption budgets */
    const char *why; /* a part of a sentence, for people */
};

/* What became of it. */
enum devicemgr_evicted {
    DEVICEMGR_EVICTED,   /* its deletion is accepted */
    DEVICEMGR_NOT_THERE, /* no pod of that uid is there (any more) */
    DEVICEMGR_IS_STATIC, /* it is a static pod's mirror: its end would change nothing */
};

/* What became of what an operator asked for. */
struct devicemgr_steered {
    int code;            /* 0: it is so, and durable; else a gRPC code */
    bool changed;        /* with 0: it was not so before */
    const char *message; /* what is so, or why not; a sentence for the operator */
};

struct devicemgr_ports {
    /* Dial the plugin's socket (a file name in the plugin directory), fetch its options, then open
     * ListAndWatch. It is to be root's or of `uid`, who registered it (0 also where that is not
     * known). Events that follow: endpoint_options, endpoint_list..., endpoint_lost (once, ends
     * it). */
    void (*endpoint_open)(void *user, uint64_t endpoint, const char *resource,
                          const char *socket_name, uint32_t uid);
    /* No event of this endpoint, nor of calls on it, is wanted any more. */
    void (*endpoint_close)(void *user, uint64_t endpoint);
    /* The answer to a Register call: code 0, or the gRPC code with the message. */
    void (*register_done)(void *user, uint64_t registration, int code, const char *message);
    /* Calls on a plugin; each ends in the event of the same name, unless cancelled. */
    void (*allocate)(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                     size_t ids_len, uint64_t timeout_ms);
    void (*prefer)(void *user, uint64_t endpoint, uint64_t call, const char *const *available,
                   size_t available_len, const char *const *must_include, size_t must_include_len,
                   size_t size, uint64_t timeout_ms);
    void (*prestart)(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                     size_t ids_len, uint64_t timeout_ms);
    void (*call_cancel)(void *user, uint64_t call);
    /* Make all records durable, or none; ends in devicemgr_committed(). One at a time: the next
     * comes after that event. */
    void (*commit)(void *user, uint64_t commit, const struct devicemgr_record *records,
                   size_t records_len);
    /* Ask the runtime whether this container still runs; ends in devicemgr_container_checked(). */
    void (*container_check)(void *user, uint64_t check, const char *container_id);
    /* List the runtime once more, asked for from now on: devicemgr_runtime_listing() follows, also
     * if a list is under way. */
    void (*runtime_list)(void *user);
    /* Stop this container of the runtime, which has so long until it is killed; ends in
     * devicemgr_container_stopped(). These and the next four are not called where no pod is
     * ended. */
    void (*stop_container)(void *user, uint64_t op, const char *container_id, uint64_t grace_ms);
    /* Nobody waits for that any more, and it need not go on. */
    void (*stop_cancel)(void *user, uint64_t op);
    /* Stop this sandbox of the runtime; ends in devicemgr_sandbox_stop_ended(). */
    void (*stop_sandbox)(void *user, uint64_t op, const char *sandbox_id);
    /* Have the cluster evict the pod, tried for ever; ends in devicemgr_pod_evicted(). */
    void (*evict_pod)(void *user, uint64_t order, const struct devicemgr_eviction *eviction);
    /* Nobody waits for that any more; it may have been done. */
    void (*evict_cancel)(void *user, uint64_t order);
    /* The end of a create that devicemgr_create() left pending. */
    void (*verdict)(void *user, uint64_t create, const struct devicemgr_verdict *verdict);
    /* The answer to devicemgr_prefer(): none is no preference. */
    void (*preferred)(void *user, uint64_t number, const char *const *ids, size_t ids_len);
    /* Something has come to pass. NULL: nobody listens, and it costs nothing. */
    void (*event)(void *user, const struct devicemgr_event *event);
    /* The end of devicemgr_cordon() and its like, and of devicemgr_release(); not called where none
     * of them is. */
    void (*steered)(void *user, uint64_t number, const struct devicemgr_steered *steered);
    /* The answer to devicemgr_driver_register(): code 0, or the gRPC code with the message. */
    void (*driver_registered)(void *user, uint64_t instance, int code, const char *message);
    /* Calls on an instance of a driver, about one claim; each ends in devicemgr_claim_answered(),
     * within `timeout_ms`, or by the end of the instance's connection. Those of one batch that come
     * in one devicemgr_run() are to reach the driver as one, by their places: it may do for them
     * together what it does not for each. These and the next are not called where nobody registers
     * a driver. */
    void (*driver_prepare)(void *user, uint64_t instance, uint64_t call,
                           struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                           uint64_t timeout_ms);
    void (*driver_unprepare)(void *user, uint64_t instance, uint64_t call,
                             struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                             uint64_t timeout_ms);
    /* As driver_unprepare, of what is owed to a driver that is the kubelet's by now, or was since,
     * or may have been before a restart: the kubelet may have had the claim prepared again. If it
     * has it in its own books nothing is sent, and devicemgr_claim_in_use() is told. `asked`: the
     * kubelet waits here for a prepare of it, and has it in its books for that alone, unless they
     * have the driver's answer to an earlier one. NULL: nobody can say, and driver_unprepare is
     * called. */
    void (*driver_settle)(void *user, uint64_t instance, uint64_t call,
                          const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms);
    /* A claim is asked for: what is allocated to it now is to be told
     * (devicemgr_claim_allocation()) by whoever can find out. NULL: nobody can. */
    void (*claim_look)(void *user, const struct devicemgr_claim *claim);
    /* The end of devicemgr_claim_prepare(), devicemgr_claim_unprepare(). */
    void (*claim_done)(void *user, uint64_t number, const struct devicemgr_claim_done *done);
    /* `level` is a syslog level; `about` is never NULL, and may have any bytes of a peer's. */
    void (*log)(void *user, int level, const struct devicemgr_about *about, const char *text);
};

#endif
