#include "devicemgr/rules/leaving.h"

#include <string.h>

#include "devicemgr/books/facts.h"

#include "devicemgr/rules/rule.h"

/* scheduling.SystemCriticalPriority + 1000, system-node-critical (pkg/apis/scheduling/types.go). */
#define NODE_CRITICAL 2000001000

/* What has no uid is of several clients' pods, none of them the kubelet's, and has no row. */
bool leaving_pod(const struct state *state, const struct pod *pod)
{
    return pod->uid[0] != '\0' && pod->newest && !pod->removed && !facts_pod_over(state, pod->uid);
}

/* A container that was made before the shim came is known by the cluster's word only. */
static bool uses_claim(const struct state *state, const struct claim *claim, const char *pod_uid)
{
    const struct consumers *consumers = consumers_find(state->tainted.consumers, claim->uid);

    if (consumers && ids_contain(&consumers->reserved_for, pod_uid))
        return true;
    for (size_t i = 0; i < claim->users_len; i++) {
        const struct sandbox *sandbox = pods_find_sandbox(&state->pods, claim->users[i].sandbox_id);

        if (sandbox && strcmp(sandbox->pod->uid, pod_uid) == 0)
            return true;
    }
    return false;
}

bool leaving_holds(const struct state *state, const char *pod_uid)
{
    if (facts_pod_holds(state, pod_uid) || kubelet_names_pod(state, pod_uid))
        return true;
    for (const struct claim *claim = state->claims.by_key; claim; claim = claim->hh.next) {
        if (claim_state_kept(claim->state) && uses_claim(state, claim, pod_uid))
            return true;
    }
    return false;
}

int32_t leaving_priority(const struct shutdown *shutdown, const struct pod *pod)
{
    const struct shutdown_known *known =
        shutdown_find_known(shutdown, pod->uid, pod->pod_namespace, pod->name, pod->static_pod);

    if (known)
        return known->priority;
    return pod->static_pod ? NODE_CRITICAL : 0;
}

bool leaving_sandboxes(const struct state *state)
{
    const struct sandbox *sandbox = state->pods.sandboxes;

    while (sandbox && !facts_sandbox_ready(sandbox))
        sandbox = sandbox->hh.next;
    return sandbox != NULL;
}
