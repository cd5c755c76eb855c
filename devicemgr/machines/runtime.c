#include "devicemgr/machines/runtime.h"

#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"

void runtime_fini(struct runtime *runtime)
{
    adopt_fini(&runtime->adopt);
}

/* Where the kubelet has the pod from (pkg/kubelet/types/pod_update.go): of what is not the API
 * server's that has a mirror at most. */
static bool is_static(const struct devicemgr_sandbox *told)
{
    for (size_t i = 0; i < told->annotations_len; i++) {
        if (strcmp(told->annotations[i].key, "kubernetes.io/config.source") == 0)
            return strcmp(told->annotations[i].value, "api") != 0;
    }
    return false;
}

/* One that was asked for in an earlier boot is like all others from now on. */
static void note_ending(struct state *state, const char *pod_uid)
{
    struct ending *ending = endings_edit(&state->endings, pod_uid);

    if (!ending || !ending->earlier_boot)
        return;
    ending_set_seen(ending);
    dirty_touch_ending(state, ending, false);
}

struct sandbox *runtime_note_sandbox(struct state *state, const struct devicemgr_sandbox *told)
{
    struct pod *pod = pods_ensure(&state->pods, told->pod_uid, told->pod_namespace, told->pod_name);
    struct sandbox *sandbox = pods_ensure_sandbox(&state->pods, pod, told->id, told->attempt);

    sandbox_set_ready(sandbox, state->listing.epoch, told->ready);
    pod_set_boot(pod, state->settings.boot_id);
    if (is_static(told))
        pod_set_static(pod);
    else if (told->ready)
        kubelet_runs_pods(state);
    note_ending(state, told->pod_uid);
    ledger_touch_pod(state, pod);
    return sandbox;
}

void runtime_sandbox_ran(struct state *state, const struct devicemgr_sandbox *sandbox)
{
    struct sandbox *ran = runtime_note_sandbox(state, sandbox);

    sandbox_set_ran(ran);
    tainted_note_pod(state, ran->pod, sandbox->annotations, sandbox->annotations_len);
    ledger_pod_changed(state, sandbox->pod_uid);
}

/* Of a sandbox whose pod is not known: one that was removed is not stopped afterwards. */
static void note_end(struct state *state, const char *sandbox_id, enum sandbox_end end)
{
    if (!facts_sandbox_removed(state, sandbox_id))
        pods_note_end(&state->pods, sandbox_id, end, state->listing.epoch);
}

/* Before it makes a new sandbox the kubelet has the dead one stopped: that is not the pod's end,
 * and looks the same. */
static void note_remaking(struct state *state, struct sandbox *sandbox)
{
    if (!sandbox->dead ||
        (sandbox->state != SANDBOX_OPEN && state->now_ms >= sandbox->remade_by_ms))
        return;
    sandbox_set_remade_by(sandbox, state->now_ms + SANDBOX_REMADE_MS);
    showing_all_at(state, sandbox->remade_by_ms);
}

void runtime_sandbox_stopping(struct state *state, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_edit_sandbox(&state->pods, sandbox_id);

    if (!sandbox) {
        note_end(state, sandbox_id, SANDBOX_END_STOPPING);
        return;
    }
    note_remaking(state, sandbox);
    sandbox_set_stopping(sandbox);
    ledger_pod_changed(state, sandbox->pod->uid);
}

void runtime_sandbox_stop_failed(struct state *state, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_edit_sandbox(&state->pods, sandbox_id);

    if (!sandbox) {
        pods_forget_stopping(&state->pods, sandbox_id);
        return;
    }
    if (sandbox->state == SANDBOX_OPEN || sandbox->state == SANDBOX_STOPPED)
        return;
    sandbox_set_doubted(sandbox, state->now_ms + OUTCOME_MS);
    if (!sandbox->dead) /* else nobody needs to know soon */
        listing_by(state, sandbox->reopen_ms);
}

void runtime_end_containers(struct runtime *runtime, const struct sandbox *sandbox)
{
    for (struct allocation *a =
             allocations_edit_of_pod(&runtime->state->allocations, sandbox->pod->uid);
         a; a = a->pod_next)
        allocation_set_sandbox_ended(a, sandbox->id);
    adopt_sandbox_ended(&runtime->adopt, sandbox->id);
    ledger_pod_changed(runtime->state, sandbox->pod->uid);
}

/* CRI-O stops no container of a sandbox whose pause process has ended: what runs there is
 * listed. */
static void end_stopped(struct runtime *runtime, struct sandbox *sandbox)
{
    if (!sandbox->stopped_dead) {
        runtime_end_containers(runtime, sandbox);
        return;
    }
    for (struct allocation *a =
             allocations_edit_of_pod(&runtime->state->allocations, sandbox->pod->uid);
         a; a = a->pod_next)
        allocation_set_sandbox_closed(a, sandbox->id);
    listing_anew(runtime->state);
    ledger_pod_changed(runtime->state, sandbox->pod->uid);
}

void runtime_sandbox_stopped(struct runtime *runtime, const char *sandbox_id)
{
    struct state *state = runtime->state;
    struct sandbox *sandbox = pods_edit_sandbox(&state->pods, sandbox_id);

    if (!sandbox) {
        note_end(state, sandbox_id, SANDBOX_END_STOPPED);
        return;
    }
    sandbox_set_stopped(sandbox, state->listing.epoch);
    end_stopped(runtime, sandbox);
    ledger_touch_pod(state, sandbox->pod);
    if (allocations_of_pod(&state->allocations, sandbox->pod->uid))
        checkpoint_within(state, STOPPED_STORE_MS);
}

void runtime_sandbox_removed(struct runtime *runtime, const char *sandbox_id)
{
    struct state *state = runtime->state;
    struct sandbox *sandbox = pods_edit_sandbox(&state->pods, sandbox_id);
    struct pod *pod;

    pods_note_end(&state->pods, sandbox_id, SANDBOX_END_REMOVED, state->listing.epoch);
    if (!sandbox)
        return;
    runtime_end_containers(runtime, sandbox);
    ledger_touch_pod(state, sandbox->pod);
    pod = sandbox->pod;
    /* Before the first list a newer sandbox may exist that we have not heard of. */
    if (pod->newest == sandbox) {
        pod_set_removed(pod, state->listing.listed);
        pod_set_boot(pod, state->settings.boot_id);
    }
    if (pod->removed && !facts_pod_runs(state, pod))
        ledger_drop_pod(state, pod);
    else
        pods_remove_sandbox(&state->pods, sandbox);
}

/* ---- containers ---- */

void runtime_container_ended(struct runtime *runtime, const char *container_id)
{
    struct allocation *a;

    listing_note_ended(runtime->state, container_id);
    adopt_container_ended(&runtime->adopt, container_id);
    while ((a = allocations_of_container(&runtime->state->allocations, container_id)))
        allocation_set_ended(a, container_id);
}
