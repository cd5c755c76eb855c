/*
 * What the runtime is seen to do: sandboxes that come and go, containers that end.
 */
#include "devicemgr/runtime.h"

#include "devicemgr/core.h"
#include "devicemgr/limits.h"

struct sandbox *runtime_note_sandbox(struct devicemgr *mgr, const struct devicemgr_sandbox *told)
{
    struct pod *pod = pods_ensure(&mgr->pods, told->pod_uid, told->pod_namespace, told->pod_name);
    struct sandbox *sandbox = pods_ensure_sandbox(&mgr->pods, pod, told->id, told->attempt);

    sandbox_set_ready(sandbox, mgr->epoch, told->ready);
    pod_set_boot(pod, mgr->settings.boot_id);
    core_touch_pod(mgr, pod);
    return sandbox;
}

void devicemgr_sandbox_ran(struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_sandbox *sandbox)
{
    core_at(mgr, now_ms);
    sandbox_set_ran(runtime_note_sandbox(mgr, sandbox));
    core_pod_changed(mgr, sandbox->pod_uid);
}

/* Of a sandbox whose pod is not known: one that was removed is not stopped afterwards. */
static void note_end(struct devicemgr *mgr, const char *sandbox_id, enum sandbox_end end)
{
    if (!core_sandbox_removed(mgr, sandbox_id))
        pods_note_end(&mgr->pods, sandbox_id, end, mgr->epoch);
}

/* Before it makes a new sandbox the kubelet has the dead one stopped: that is not the pod's end,
 * and looks the same. */
static void note_remaking(struct devicemgr *mgr, struct sandbox *sandbox)
{
    if (!sandbox->dead || (sandbox->state != SANDBOX_OPEN && mgr->now_ms >= sandbox->remade_by_ms))
        return;
    sandbox_set_remade_by(sandbox, mgr->now_ms + SANDBOX_REMADE_MS);
    advertise_all_at(mgr, sandbox->remade_by_ms);
}

void devicemgr_sandbox_stopping(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, sandbox_id);

    core_at(mgr, now_ms);
    if (!sandbox) {
        note_end(mgr, sandbox_id, SANDBOX_END_STOPPING);
        return;
    }
    note_remaking(mgr, sandbox);
    sandbox_set_stopping(sandbox);
    core_pod_changed(mgr, sandbox->pod->uid);
}

void devicemgr_sandbox_stop_failed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, sandbox_id);

    core_at(mgr, now_ms);
    if (!sandbox) {
        pods_forget_stopping(&mgr->pods, sandbox_id);
        return;
    }
    if (sandbox->state == SANDBOX_OPEN || sandbox->state == SANDBOX_STOPPED)
        return;
    sandbox_set_doubted(sandbox, mgr->now_ms + OUTCOME_MS);
    if (!sandbox->dead) /* else nobody needs to know soon */
        runtime_list_by(mgr, sandbox->reopen_ms);
}

void runtime_end_containers(struct devicemgr *mgr, const struct sandbox *sandbox)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, sandbox->pod->uid); a;
         a = a->pod_next)
        allocation_set_sandbox_ended(a, sandbox->id);
    adopt_sandbox_ended(mgr, sandbox->id);
    core_pod_changed(mgr, sandbox->pod->uid);
}

void devicemgr_sandbox_stopped(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, sandbox_id);

    core_at(mgr, now_ms);
    if (!sandbox) {
        note_end(mgr, sandbox_id, SANDBOX_END_STOPPED);
        return;
    }
    sandbox_set_stopped(sandbox, mgr->epoch);
    runtime_end_containers(mgr, sandbox);
    core_touch_pod(mgr, sandbox->pod);
}

void devicemgr_sandbox_removed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, sandbox_id);
    struct pod *pod;

    core_at(mgr, now_ms);
    pods_note_end(&mgr->pods, sandbox_id, SANDBOX_END_REMOVED, mgr->epoch);
    if (!sandbox)
        return;
    runtime_end_containers(mgr, sandbox);
    core_touch_pod(mgr, sandbox->pod);
    pod = sandbox->pod;
    /* Before the first list a newer sandbox may exist that we have not heard of. */
    if (pod->newest == sandbox) {
        pod_set_removed(pod, mgr->listed);
        pod_set_boot(pod, mgr->settings.boot_id);
    }
    if (pod->removed && !core_pod_runs(mgr, pod))
        core_drop_pod(mgr, pod);
    else
        pods_remove_sandbox(&mgr->pods, sandbox);
}

/* ---- containers ---- */

void core_outcome_unknown(struct devicemgr *mgr, struct allocation *allocation,
                          const char *sandbox_id)
{
    allocation_set_unknown(allocation, sandbox_id, mgr->now_ms + OUTCOME_MS);
    runtime_list_by(mgr, allocation->unknown_until_ms);
}

void runtime_container_ended(struct devicemgr *mgr, const char *container_id)
{
    struct allocation *a;

    runtime_note_ended(mgr, container_id);
    adopt_container_ended(mgr, container_id);
    while ((a = allocations_of_container(&mgr->allocations, container_id)))
        allocation_set_ended(a, container_id);
}

void devicemgr_container_removed(struct devicemgr *mgr, uint64_t now_ms, const char *container_id)
{
    core_at(mgr, now_ms);
    runtime_container_ended(mgr, container_id);
}
