/*
 * What an operator sets. What is set: lists.h.
 *
 * Each ends in the port `steered` with the caller's `number`, once what it changes is durable, or
 * cannot be: then nothing has changed. They are taken one after the other. What is so already is no
 * error. `reason` is quoted in refusals; "": none. `at_s` is when, by a clock that is not looked at
 * here, and is kept for whoever lists it. All of it outlives restarts and reboots.
 */
#ifndef DEVICEMGR_OPERATOR_H
#define DEVICEMGR_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct devicemgr;

/* Nobody new gets these devices, listed now or not: they are not chosen, shown to the kubelet as
 * unhealthy, and a create that names one is held, then refused for now. A pod that has one keeps
 * it, and its containers are made again with it. */
void devicemgr_cordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *resource,
                      const char *const *ids, size_t ids_len, const char *reason, uint64_t at_s);
void devicemgr_uncordon(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *const *ids, size_t ids_len);

/* It is over with this resource here: nobody new gets any of it (creates are refused at once), pods
 * that have some keep it. The kubelet is shown what its own pods have, and once that is nothing the
 * resource no more. */
void devicemgr_withdraw(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                        const char *resource, const char *reason, uint64_t at_s);
void devicemgr_withdraw_undo(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                             const char *resource);

/* The stop grace period that is under way ends so much later, each time; or now. None is:
 * FAILED_PRECONDITION. Counts until the plugin is back, or the resource removed; a period that
 * begins anew with a reboot is as much longer. */
void devicemgr_grace_extend(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                            const char *resource, uint64_t more_ms, uint64_t at_s);
void devicemgr_grace_end(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                         const char *resource, uint64_t at_s);

/* A taint of a device (taints.h), listed now or not, or of one of a DRA driver: `resource` is its
 * name then, and `id` "pool/device". `taint` is "key[=value]:Effect". Another one of the same key
 * and effect takes its place. It ends by itself after `for_ms`, in another boot from then on; 0: it
 * does not. Who is to be evicted for it is so once it is durable. `dry`: ends at once, nothing
 * changes, and the message says who would be. */
void devicemgr_taint(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *resource,
                     const char *id, const char *taint, uint64_t for_ms, const char *reason,
                     uint64_t at_s, bool dry);
/* `taint` is "key[:Effect]"; without an effect those of each. */
void devicemgr_untaint(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                       const char *resource, const char *id, const char *taint);

/*
 * Takes all devices from a pod that should not be there, its uid, "namespace/name", or its name in
 * any namespace. The runtime is listed first. FAILED_PRECONDITION: a container of the pod runs, or
 * may come to, or it has a sandbox that is not stopped, or several pods are called so, or the
 * runtime does not answer; NOT_FOUND: no such pod has any. Nothing has changed then. ABORTED: its
 * devices are free, but a restart brings that back until the store takes it. `dry`: ends before
 * anything would change, with 0 if nothing is in the way, and perhaps a remark. `by` says who asks,
 * and why, and is told with the event of each allocation that was taken.
 */
void devicemgr_release(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod,
                       const char *by, bool dry);

/* Of a grace: the pod's own. */
#define DEVICEMGR_POD_GRACE UINT64_MAX

/*
 * Ends a pod that the runtime knows, its uid, "namespace/name", or its name in any namespace: by
 * the API server where there is one (devicemgr_settings.cluster) and it is not to be `here`, else
 * by stopping its containers; nothing of it is made any more until that is taken back. Answered
 * when it is durable, not when the pod has ended, which is an event (ports.h). ABORTED: it is being
 * done, but a restart forgets it until the store takes it. UNAVAILABLE: the runtime has not been
 * listed since the start. What is asked for again has the shorter grace. Grace: at least 1 s.
 */
void devicemgr_end(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod,
                   uint64_t grace_ms, bool here, const char *reason, uint64_t at_s);
/* The operator does not want that any more. NOT_FOUND: he has not asked for it. */
void devicemgr_end_cancel(struct devicemgr *mgr, uint64_t now_ms, uint64_t number, const char *pod);

#endif
