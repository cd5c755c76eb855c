#include "devicemgr/books/facts.h"

#include <string.h>

#include "devicemgr/books/state.h"

bool facts_pod_holds(const struct state *state, const char *pod_uid)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, pod_uid);

    while (a && allocation_life(a) == ALLOCATION_IDLE)
        a = a->pod_next;
    return a != NULL;
}

bool facts_pod_runs(const struct state *state, const struct pod *pod)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, pod->uid);

    while (a && a->lives_len == 0 && !a->unknown_in)
        a = a->pod_next;
    return a != NULL;
}

bool facts_pod_over(const struct state *state, const char *pod_uid)
{
    const struct pod *pod = pods_find(&state->pods, pod_uid);
    const struct sandbox *newest = pod ? pod->newest : NULL;

    if (!pod)
        return pods_gone(&state->pods, pod_uid);
    if (!state->listing.listed || facts_pod_holds(state, pod_uid)) /* a newer sandbox may exist */
        return false;
    return pod->removed || (newest && newest->state != SANDBOX_OPEN &&
                            (newest->state == SANDBOX_STOPPED || newest->dead) &&
                            state->now_ms >= newest->remade_by_ms);
}

bool facts_pod_evicted(const struct state *state, const char *pod_uid)
{
    const struct ending *ending = endings_find(&state->endings, pod_uid);

    return ending && ending_refuses(ending) && ending_find_ask(ending, END_EVICTION, END_ONCE);
}

bool facts_sandbox_ready(const struct sandbox *sandbox)
{
    return !sandbox->dead && sandbox->state != SANDBOX_STOPPED;
}

bool facts_pod_has_left(const struct state *state, const struct shutdown_pod *leaving)
{
    const struct ending *ending = endings_find(&state->endings, leaving->uid);
    const struct pod *pod = pods_find(&state->pods, leaving->uid);
    const struct sandbox *sandbox = pod ? pod->sandboxes : NULL;

    while (sandbox && !facts_sandbox_ready(sandbox))
        sandbox = sandbox->pod_next;
    return leaving->asked && (!ending || ending_is_over(ending)) && !sandbox;
}

bool facts_sandbox_removed(const struct state *state, const char *sandbox_id)
{
    uint64_t epoch;

    return pods_find_end(&state->pods, sandbox_id, &epoch) == SANDBOX_END_REMOVED;
}

bool facts_never_starts(const struct state *state, const struct devicemgr_container *container)
{
    const struct sandbox *sandbox =
        container->created ? pods_find_sandbox(&state->pods, container->sandbox_id) : NULL;

    return sandbox && (sandbox->state == SANDBOX_STOPPED ||
                       (sandbox->dead && sandbox != sandbox->pod->newest));
}

bool facts_pod_of_earlier_boot(const struct state *state, const struct pod *pod)
{
    const char *boot_id = state->settings.boot_id;

    return pod->boot_id[0] != '\0' && boot_id[0] != '\0' && strcmp(pod->boot_id, boot_id) != 0;
}
