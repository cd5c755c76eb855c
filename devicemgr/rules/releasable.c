#include "devicemgr/rules/releasable.h"

#include "devicemgr/rules/rule.h"

static enum release_bar bar_of(const struct allocation *allocation)
{
    switch (allocation_life(allocation)) {
    case ALLOCATION_BUSY:
        return RELEASE_BAR_CREATING;
    case ALLOCATION_LIVE:
        return RELEASE_BAR_RUNS;
    case ALLOCATION_UNKNOWN:
        return RELEASE_BAR_UNKNOWN;
    default:
        return RELEASE_BAR_NONE;
    }
}

/* Only what was stopped, or found dead, has no containers to come. */
static const struct sandbox *ready_sandbox(const struct state *state, const char *pod_uid)
{
    const struct pod *pod = pods_find(&state->pods, pod_uid);
    const struct sandbox *sandbox = pod ? pod->sandboxes : NULL;

    while (sandbox && (sandbox->state == SANDBOX_STOPPED || sandbox->dead))
        sandbox = sandbox->pod_next;
    return sandbox;
}

struct release_look releasable(const struct state *state, const char *pod_uid)
{
    struct release_look look = {.named = kubelet_names_pod(state, pod_uid)};

    for (const struct allocation *a = allocations_of_pod(&state->allocations, pod_uid); a;
         a = a->pod_next) {
        look.bar = bar_of(a);
        look.holder = a;
        if (look.bar != RELEASE_BAR_NONE)
            return look;
    }
    look.sandbox = ready_sandbox(state, pod_uid);
    if (look.sandbox)
        look.bar = RELEASE_BAR_SANDBOX;
    return look;
}
