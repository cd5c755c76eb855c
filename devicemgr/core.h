/*
 * Inside the device manager: its state, and what its parts do for each other. Not for users of
 * devicemgr.h.
 */
#ifndef DEVICEMGR_CORE_H
#define DEVICEMGR_CORE_H

#include "devicemgr/action.h"
#include "devicemgr/adopt.h"
#include "devicemgr/advertise.h"
#include "devicemgr/allocation.h"
#include "devicemgr/books.h"
#include "devicemgr/checkpoint.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/kubelet.h"
#include "devicemgr/outbox.h"
#include "devicemgr/pod.h"
#include "devicemgr/prefer.h"
#include "devicemgr/request.h"
#include "devicemgr/resource.h"
#include "devicemgr/runtime.h"
#include "devicemgr/text.h"
#include "devicemgr/wake.h"

/* gRPC status codes used here ("Status codes and their use in gRPC"). */
enum {
    CODE_OK = 0,
    CODE_UNKNOWN = 2, /* the kubelet's own refusals of a Register call */
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_ABORTED = 10,
    CODE_UNAVAILABLE = 14,
};

/* syslog levels */
enum {
    LEVEL_ERROR = 3,
    LEVEL_WARNING = 4,
    LEVEL_INFO = 6,
    LEVEL_DEBUG = 7,
};

struct devicemgr {
    struct devicemgr_settings settings;         /* its texts are owned; `resources` sorted */
    struct devicemgr_resource_settings general; /* for a resource that is not among them */
    const struct devicemgr_ports *ports;
    void *user;

    uint64_t now_ms;      /* of the latest event */
    uint64_t last_number; /* of endpoints, calls, checks and commits: one series, never 0 */
    bool running;         /* inside devicemgr_run() */
    bool draining;        /* nothing is held any more */
    char *unread;         /* why the checkpoint's rows are not known yet; NULL: they are */

    struct resource *resources;
    struct ids removed; /* resources, oldest first, until seen or published again */
    struct allocations allocations;
    struct pods pods;
    struct create *creates;    /* by number, in order of arrival */
    struct create *committing; /* by commit_next, those that wait for the store */
    struct wakes wakes;
    uint64_t arrivals;    /* of creates */
    struct call *calls;   /* on plugins, by number */
    struct check *checks; /* of containers, by number */
    struct action_queue actions;
    struct outbox outbox;
    struct checkpoint checkpoint;
    struct advertise advertise;
    struct kubelet_view kubelet;
    struct prefer *prefers; /* by the call on the plugin */

    bool unproven; /* some allocation's token is to be looked for in the kubelet's checkpoint */
    size_t pods_dropped; /* by lists since that was last told */
    bool listed;         /* the runtime's list has been read once */
    bool listing;        /* one is being asked for */
    bool list_asked;     /* the core has asked for one that is not begun yet */
    uint64_t epoch;      /* number of lists asked for: what carries it is newer than the last */
    uint64_t listing_ms; /* when the last was asked for, or somewhat earlier */
    uint64_t list_ms;    /* when the core asks for one; UINT64_MAX: not now */
    struct running *runnings; /* containers, by the last list (adopt.c) */
    struct ended *ended;      /* containers that ended since the list under way was asked for */
    bool rows_lost; /* a container may be in the making of which the checkpoint said nothing: */
    uint64_t rows_lost_until_ms; /* a list asked for from then on shows it */
};

/* Copies them. */
void core_take_settings(struct devicemgr *mgr, const struct devicemgr_settings *settings);
void core_free_settings(struct devicemgr *mgr);
/* Takes the event's time over; time never goes back. */
void core_at(struct devicemgr *mgr, uint64_t now_ms);
uint64_t core_number(struct devicemgr *mgr);
/* What holds for a resource. */
const struct devicemgr_resource_settings *core_settings_of(const struct devicemgr *mgr,
                                                           const char *resource);
/* Whether pods of this namespace may ask by annotation, if any may. */
bool core_namespace_allowed(const struct devicemgr *mgr, const char *pod_namespace);
void core_log(struct devicemgr *mgr, int level, const struct text *text);

/* ---- capacity.c ---- */
/* A resource that was published is no more. */
void capacity_removed(struct devicemgr *mgr, const char *resource);
/* It has devices to show (again). */
void capacity_published(struct devicemgr *mgr, const char *resource);

#endif
