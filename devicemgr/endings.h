/*
 * Pods that are ended from here: what the runtime and the cluster have done of it, and what others
 * must know. Who wants one to end: operator.h.
 */
#ifndef DEVICEMGR_ENDINGS_H
#define DEVICEMGR_ENDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/ports.h"

struct devicemgr;

/* Whether there is any of which nothing more is to be made; none is of any pod while the machine
 * goes down. */
bool devicemgr_refuses_sandboxes(const struct devicemgr *mgr);
struct devicemgr_refusal {
    int code;        /* of gRPC */
    char words[512]; /* for who asks */
};
/* Whether a sandbox of this pod is not to be run; *out only then. */
bool devicemgr_sandbox_refused(const struct devicemgr *mgr, const char *pod_uid,
                               struct devicemgr_refusal *out);

/* How many there are, by how far that is (things/ending.h), and what was done since the start. */
struct devicemgr_endings {
    size_t asked, evicting, evicted, stopping, stopped;
    uint64_t stops, stops_failed; /* of containers */
    uint64_t evictions;           /* orders to the cluster: another one for a pod counts again */
    uint64_t ended;               /* pods */
};
void devicemgr_endings(const struct devicemgr *mgr, struct devicemgr_endings *out);

/* The sidecars of a pod, as the cluster has it: init containers that are restarted always. */
struct devicemgr_sidecars {
    const char *pod_uid;
    const char *pod_namespace; /* this and the next only with names */
    const char *pod_name;
    bool mirror;              /* of a static pod, which has another uid */
    const char *const *names; /* in their order; those beyond SIDECARS_MAX are none */
    size_t names_len;         /* 0: it has none, or is no more */
};
/* In place of what was told before; copied. It is not stored: whoever tells it does so anew after a
 * restart. Where the pod is stopped here they are the last to be; without this, and until it is
 * told, all containers are stopped at once. */
void devicemgr_sidecars(struct devicemgr *mgr, const struct devicemgr_sidecars *sidecars);

/* Those that are to go for taints of their devices. */
struct devicemgr_evictions {
    /* Not asked for yet: it is tolerated for a time, or so many went in the last minute. */
    size_t waiting;
    size_t asked;     /* they are among those above */
    size_t stale;     /* holders of such devices of which nothing is known: they are passed over */
    size_t held_back; /* devices whose health would evict, were there not too many (taints.h) */
    uint64_t asked_total, taken_back_total; /* since the start */
};
void devicemgr_evictions(const struct devicemgr *mgr, struct devicemgr_evictions *out);

/* The end of the port `stop_container`: `code` 0 with one that has ended, NOT_FOUND with one that
 * is not there; else a gRPC code with the runtime's words. */
void devicemgr_container_stopped(struct devicemgr *mgr, uint64_t now_ms, uint64_t op, int code,
                                 const char *message);
/* Likewise of the port `stop_sandbox`. */
void devicemgr_sandbox_stop_ended(struct devicemgr *mgr, uint64_t now_ms, uint64_t op, int code,
                                  const char *message);
/* Whether the cluster can be asked to evict pods; before this is said it can. While it cannot,
 * `evict_force_after` does not go on. One that is back may have just started (taints.h). */
void devicemgr_cluster_reached(struct devicemgr *mgr, uint64_t now_ms, bool reached);
/* The end of the port `evict_pod`. */
void devicemgr_pod_evicted(struct devicemgr *mgr, uint64_t now_ms, uint64_t order,
                           enum devicemgr_evicted outcome);

#endif
