/*
 * What the pods, their sandboxes and the allocations say together; and what must be told to whom
 * when they change.
 */
#ifndef DEVICEMGR_BOOKS_H
#define DEVICEMGR_BOOKS_H

#include <stdbool.h>

struct allocation;
struct devicemgr;
struct pod;

/* ---- what is so ---- */

/* Whether a container of the pod may run, or is being made: whether it holds any device. */
bool core_pod_holds(const struct devicemgr *mgr, const char *pod_uid);
/* Whether a container of the pod may run, or be in the making, in whichever sandbox. */
bool core_pod_runs(const struct devicemgr *mgr, const struct pod *pod);
/* Whether the pod is over: no container of it runs, and none will be made. It is gone, or somebody
 * had its newest sandbox stopped. Not if that was only found dead: after a reboot all are, and the
 * kubelet goes on with their pods. One that was never heard of is not over. */
bool core_pod_over(const struct devicemgr *mgr, const char *pod_uid);
/* Whether RemovePodSandbox has passed for it, or a list of the runtime had it no more. */
bool core_sandbox_removed(const struct devicemgr *mgr, const char *sandbox_id);

/* ---- what changes ---- */

/* What is true of the pod, its sandboxes and its containers has changed. */
void core_pod_changed(struct devicemgr *mgr, const char *pod_uid);
/* Its row differs from it; only pods that hold something have one. */
void core_touch_pod(struct devicemgr *mgr, const struct pod *pod);
/* Looks at the allocations that have changed: wakes whom that concerns. */
void core_settle_allocations(struct devicemgr *mgr);
/* Removes an allocation from table and checkpoint. */
void core_drop_allocation(struct devicemgr *mgr, struct allocation *allocation);
/* Removes it from the table only. */
void core_remove_allocation(struct devicemgr *mgr, struct allocation *allocation);
/* Removes a pod with all that it holds. */
void core_drop_pod(struct devicemgr *mgr, struct pod *pod);

#endif
