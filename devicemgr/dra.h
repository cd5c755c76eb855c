/*
 * Dynamic resource allocation on this node: drivers and the claims that they prepare.
 *
 * A driver is known by its name; each socket it serves at is an *instance* of it. Two may be there
 * at once while it is rolled over to a new version: the newest that is connected is used. A driver
 * is *away* while no instance of it is connected. One that is away may have *moved*: it was seen
 * with the kubelet itself since, which it belongs to until it is connected here again.
 *
 * A claim is kept for each driver that it has devices of, by the claim's uid and the driver's name.
 * What is asked for one is done one after the other, each on the driver that is there: it is asked
 * whenever it is (it makes its own state anew in Prepare), and waited for while it is away. That a
 * call goes out is durable before it does; what came of it is durable before it is told. So after a
 * crash at any moment it is known what the driver may have.
 *
 * As in devicemgr.h: `now_ms` is a clock that never steps back, arguments are copied or only read,
 * functions cannot fail, and events about a call or instance that is over are ignored. Claims may
 * be asked for before devicemgr_restored(), and wait for it, and what the cluster says may be told;
 * all else comes after it.
 */
#ifndef DEVICEMGR_DRA_H
#define DEVICEMGR_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct devicemgr;

/* ---- drivers ---- */

struct devicemgr_driver_instance {
    const char *name;     /* of the driver */
    const char *endpoint; /* its socket's path */
    /* What it says it serves, as in its registration: "v1.DRAPlugin"; in its order. */
    const char *const *services;
    size_t services_len;
};

/* One registers; answered by the port driver_registered. `instance` is the caller's number, never
 * 0, and new each time. Name and endpoint that are registered already are refused, in the kubelet's
 * words. One that was refused is over. It is not connected yet. */
void devicemgr_driver_register(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                               const struct devicemgr_driver_instance *is);
/* There is a connection to it: it can be called. */
void devicemgr_driver_connected(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance);
/* Its connection is over, and the calls on it with it: no answer of them will come. Or there was
 * none, since it cannot be reached. `why` is for people. It may be connected again. */
void devicemgr_driver_lost(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                           const char *why);
/* Its registration is over, and so are its calls. */
void devicemgr_driver_deregister(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance);

/* The ResourceSlices of this driver, which is away, are gone. That is remembered until it is back,
 * over restarts, too. */
void devicemgr_driver_wiped(struct devicemgr *mgr, uint64_t now_ms, const char *name);

/* A driver has registered with the kubelet itself, as this; nothing is answered. From then on, or
 * from when it is away here as long as that instance is there, it is the kubelet's: what it has
 * prepared is let go of as soon as no container runs with it, which the
 * kubelet knows of and unprepares there. `instance` is as of devicemgr_driver_register(), and may
 * be connected, be lost and be over likewise; it is called for what was asked for here before, and
 * told what the driver is owed (the port driver_settle), of which the kubelet knows nothing any
 * more. False: that does not concern us, since such a driver is not known; then the instance is
 * over. */
bool devicemgr_driver_moved(struct devicemgr *mgr, uint64_t now_ms, uint64_t instance,
                            const struct devicemgr_driver_instance *is)
    __attribute__((warn_unused_result));
/* Whether it is to be found out if the kubelet itself has some driver: one that is away and of
 * which that is not known, or which has moved and still is to be called. */
bool devicemgr_drivers_sought(const struct devicemgr *mgr);

struct devicemgr_driver {
    const char *name;
    const char *const *services; /* of the newest instance, or of the last that there was */
    size_t services_len;
    bool registered;   /* some instance is */
    bool connected;    /* and one can be called */
    uint64_t away_ms;  /* not connected: since when, on the clock of now_ms */
    const char *why;   /* likewise, for people; "": nothing is known of it */
    bool wiped;        /* likewise: devicemgr_driver_wiped() */
    bool moved;        /* likewise: devicemgr_driver_moved() */
    uint64_t moved_ms; /* and since when, or since when there is this process, if it is less long */
    size_t claims;     /* those that it may have something of */
    size_t owed;       /* of them: it is still to be told to unprepare them */
};
/* Another number whenever what devicemgr_drivers() says may differ, but for its counts; never 0. */
uint64_t devicemgr_drivers_version(const struct devicemgr *mgr);
/* Calls `each` for every driver known, in the natural order of names, before it returns. One is
 * known while it is registered, here or, as it was told, with the kubelet itself, for some minutes
 * after it has gone, and as long as there is a claim of it, or, with a cluster, its slices are not
 * gone, unless others need its place. `each` must not send events. */
void devicemgr_drivers(const struct devicemgr *mgr,
                       void (*each)(void *user, const struct devicemgr_driver *driver), void *user);

/* ---- how many, for metrics: looked up when it is asked for, but for what has come to pass ---- */

struct devicemgr_dra_counts {
    size_t drivers, connected; /* known, and of them; of the others there are those that */
    size_t moved, gone; /* are with the kubelet, and of which nothing is registered anywhere */
    size_t claims, prepared, owed;
    size_t waits; /* requests of the kubelet's that are not answered */
    /* Since the start: */
    uint64_t prepares_done, unprepares_done;
    uint64_t unprepares_put_off; /* answered, and owed */
    uint64_t wipes;              /* of a driver's slices */
};
void devicemgr_dra_count(const struct devicemgr *mgr, struct devicemgr_dra_counts *out);
/* Calls `each` for every state that a claim that is kept can be in, and how many are. */
void devicemgr_claims_by_state(const struct devicemgr *mgr,
                               void (*each)(void *user, const char *state, size_t claims),
                               void *user);
/* Calls `each` for every ground that there is, with how many requests were refused for it. */
void devicemgr_claims_refused(const struct devicemgr *mgr,
                              void (*each)(void *user, bool unprepare, const char *reason,
                                           uint64_t count),
                              void *user);

/* ---- claims ---- */

/*
 * The kubelet asks for one claim to be prepared, or unprepared, by one driver. `number` is the
 * caller's, never 0, and unique until the port claim_done has ended it. It comes
 * - with the driver's devices, or its error, in its own words;
 * - while the driver is away, after some time, with UNAVAILABLE and the reason; at once where that
 *   is known to be right without it (README.md, "Claims").
 * The same asked twice is done once, and ends twice. A claim that a container was made with (the
 * CDI names in devicemgr_create()) is not unprepared before the runtime runs it no more.
 * Claims of one `batch`, whose number is the caller's, too, are one request of the kubelet's: those
 * of them for which the driver can be asked at once it is asked for together (ports.h).
 */
void devicemgr_claim_prepare(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             struct devicemgr_batch batch, const char *driver,
                             const struct devicemgr_claim *claim);
void devicemgr_claim_unprepare(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                               struct devicemgr_batch batch, const char *driver,
                               const struct devicemgr_claim *claim);
/* Nobody waits for it any more: claim_done does not come. What the driver is doing goes on. */
void devicemgr_claim_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t number);

/*
 * The end of a call on a driver (ports driver_prepare, driver_unprepare): `code` 0, or a gRPC code
 * with words for people, the driver's own where it has some. What a driver says of the one claim
 * in its answer (`error`) is such a failure, too: UNKNOWN with its words. `response` is the bytes
 * of the claim's NodePrepareResourceResponse of dra v1, as the driver sent them, unknown fields and
 * all; with code 0 of a prepare only.
 */
void devicemgr_claim_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t call, int code,
                              const char *message, const void *response, size_t response_bytes);
/* The other end of driver_settle: the kubelet has the claim prepared by its own books, and nothing
 * was sent. If it has asked for it here, nothing is owed of it any more, and it is prepared as
 * ever; else it is looked up again later. */
void devicemgr_claim_in_use(struct devicemgr *mgr, uint64_t now_ms, uint64_t call);

/* ---- containers that are made with a claim's devices: devicemgr_create() has their CDI names ----
 * Of what a claim had before a kubelet may name some yet: the verdict has others in their place
 * (rules/lapsed.h). */

/* What the runtime makes of CDI devices in a request. */
enum devicemgr_cdi {
    DEVICEMGR_CDI_UNKNOWN,   /* it does not say, or nobody can tell from what it says */
    DEVICEMGR_CDI_NONE,      /* it starts a container without them */
    DEVICEMGR_CDI_ANNOTATED, /* it reads annotations of them only */
    DEVICEMGR_CDI_READ,      /* it reads their field, too */
    DEVICEMGR_CDI_UNHEARD,   /* it has not said yet, and is to say */
};
/* As the runtime says now; at first UNKNOWN. A container with devices of claims that it would start
 * without them is refused, and one whose plugin gives nothing but CDI devices. Where nobody knows
 * they pass; of claims that is logged, once for each time that this is told. Those of a plugin wait
 * for a runtime that is UNHEARD; creates with claims are for the caller to put off. */
void devicemgr_runtime_cdi(struct devicemgr *mgr, uint64_t now_ms, enum devicemgr_cdi cdi);

/* The runtime has refused a CreateContainer, with these words. If they say that it cannot resolve
 * CDI devices which a driver has answered for claims, each of the drivers is asked once more to
 * prepare them, as if the kubelet did: so that its next create may find them. One at a time for a
 * claim, and less and less often while that does not help. */
void devicemgr_create_refused(struct devicemgr *mgr, uint64_t now_ms, const char *words);

/* ---- what the cluster says, told by whoever can see it; without it less is done while a driver is
 * away (README.md, "Claims") ---- */

/* What devices are made of, by its name in their pool. Amounts are whole numbers of one unit,
 * whichever that is. */
struct devicemgr_counter {
    const char *name;
    bool there;    /* the slice says how much there is of it */
    uint64_t much; /* that */
};
struct devicemgr_draw {
    const char *device;
    size_t counter; /* which of the counters */
    uint64_t much;  /* the device takes that, as long as somebody has it */
};
struct devicemgr_slice {
    const char *uid;
    const char *driver;
    const char *pool;
    const char *const *devices;
    size_t devices_len;
    /* None of them draws on counters (consumesCounters), as those do that may be made of the
     * same. */
    bool apart;
    const struct devicemgr_counter *counters;
    size_t counters_len;
    const struct devicemgr_draw *draws;
    size_t draws_len;
};
/* A ResourceSlice whose spec.nodeName is this node, as it is now. */
void devicemgr_slice(struct devicemgr *mgr, uint64_t now_ms, const struct devicemgr_slice *slice);
/* It is no more. */
void devicemgr_slice_gone(struct devicemgr *mgr, uint64_t now_ms, const char *uid);

struct devicemgr_claim_device {
    const char *driver;
    const char *pool;
    const char *device;
    const char *share_id; /* NULL: it is not shared on purpose */
    bool admin_access;
};
/* What is allocated to the claim of this uid (status.allocation.devices.results), read since the
 * port claim_look asked for it. `allocated` false: nothing, or there is no such claim any more. */
void devicemgr_claim_allocation(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                                bool allocated, const struct devicemgr_claim_device *devices,
                                size_t devices_len);

#endif
