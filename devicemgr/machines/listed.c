#include "devicemgr/machines/listed.h"

#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/machines/rebuild.h"
#include "devicemgr/machines/runtime.h"
#include "devicemgr/things/limits.h"

/* Until when a pod that has no sandbox may come back: there are runtimes that forget all sandboxes
 * with a reboot, and the kubelet makes new ones when its API server has told it of its pods. Within
 * a boot it keeps the newest sandbox as long as there is the pod. */
static uint64_t returns_until_ms(const struct state *state, const struct pod *pod)
{
    if (!state->kubelet.ready)
        return UINT64_MAX;
    if (!facts_pod_of_earlier_boot(state, pod))
        return 0;
    return state->kubelet.ready_ms +
           (kubelet_names_pod(state, pod->uid) ? POD_RETURNS_MS : POD_COMES_MS);
}

/* Whether the list under way was asked for before the sandbox's stop: it may name as running what
 * the stop has ended. */
static bool stopped_since(const struct state *state, const struct sandbox *sandbox)
{
    return sandbox->state == SANDBOX_STOPPED && sandbox->stop_epoch >= state->listing.epoch;
}

/* Ready long enough after a stop that failed, or even after one that did not: it is not being
 * stopped any more. */
static void note_ready(struct state *state, struct sandbox *sandbox)
{
    if ((sandbox->state == SANDBOX_STOPPED && !stopped_since(state, sandbox)) ||
        (sandbox->state == SANDBOX_DOUBTED && state->listing.begun_ms >= sandbox->reopen_ms))
        sandbox_set_open(sandbox);
}

/* A list that was asked for before the sandbox was removed may still name it. */
static void note_listed(struct state *state, const struct devicemgr_sandbox *told)
{
    struct sandbox *sandbox;
    uint64_t epoch;

    if (pods_find_end(&state->pods, told->id, &epoch) == SANDBOX_END_REMOVED &&
        epoch >= state->listing.epoch)
        return;
    sandbox = runtime_note_sandbox(state, told);
    if (sandbox == sandbox->pod->newest)
        tainted_note_pod(state, sandbox->pod, told->annotations, told->annotations_len);
    if (told->ready)
        note_ready(state, sandbox);
}

/* Whether a listed container runs for all we know. */
static bool is_running(const struct state *state, const struct devicemgr_container *container,
                       const struct sandbox *sandbox)
{
    return container->running && !facts_never_starts(state, container) &&
           (sandbox->stopped_dead || !stopped_since(state, sandbox)) &&
           !listing_has_ended(state, container->id);
}

/* A sandbox that is not listed, with a container that is and runs: it is as good as dead. */
static void keep_sandboxes(struct state *state, const struct devicemgr_container *containers,
                           size_t containers_len)
{
    for (size_t i = 0; i < containers_len; i++) {
        struct sandbox *sandbox = pods_edit_sandbox(&state->pods, containers[i].sandbox_id);

        if (!sandbox || sandbox->epoch >= state->listing.epoch ||
            !is_running(state, &containers[i], sandbox))
            continue;
        sandbox_set_ready(sandbox, state->listing.epoch, false);
    }
}

/* Forgets sandboxes that the list should have and has not. */
static void drop_unlisted(struct runtime *runtime)
{
    struct state *state = runtime->state;
    struct sandbox *sandbox, *next;

    HASH_ITER(hh, state->pods.sandboxes, sandbox, next) {
        if (sandbox->epoch >= state->listing.epoch)
            continue;
        runtime_end_containers(runtime, sandbox);
        pods_note_end(&state->pods, sandbox->id, SANDBOX_END_REMOVED, state->listing.epoch);
        pods_remove_sandbox(&state->pods, sandbox);
    }
}

/* Forgets the pods that are gone, and counts them; how many allocations that cost. */
static size_t drop_absent(struct runtime *runtime)
{
    struct state *state = runtime->state;
    size_t kept = HASH_COUNT(state->allocations.by_key);
    struct allocation *allocation, *next;
    struct pod *pod, *next_pod;

    HASH_ITER(hh, state->pods.by_uid, pod, next_pod) {
        if (pod->removed ? facts_pod_holds(state, pod->uid)
                         : pod->newest || state->now_ms < returns_until_ms(state, pod))
            continue;
        ledger_drop_pod(state, pod);
        runtime->pods_dropped++;
    }
    HASH_ITER(hh, state->allocations.by_key, allocation, next) {
        if (state->kubelet.ready && !pods_find(&state->pods, allocation->pod_uid))
            ledger_drop_allocation(state, allocation);
    }
    return kept - HASH_COUNT(state->allocations.by_key);
}

/* The sandbox in which a container of the allocation may be in the making still; NULL: none is. A
 * restored one does not know its own: nothing is made in any but the newest of its pod, and an
 * earlier shim forwarded nothing into one that was run through this one, as after a reboot. One
 * that a list shows as dead may be alive: what was on its way into it may still come. */
static const struct sandbox *making_in(const struct state *state, const struct allocation *a)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, a->unknown_in);
    const struct pod *pod = pods_find(&state->pods, a->pod_uid);

    if (a->unknown_in[0] == '\0')
        sandbox = pod ? pod->newest : NULL;
    if (a->unknown_in[0] == '\0' && sandbox && sandbox->ran)
        return NULL;
    if (state->listing.begun_ms >= listing_shows_from(state, a->unknown_until_ms))
        return NULL;
    return sandbox && sandbox->state != SANDBOX_STOPPED ? sandbox : NULL;
}

/* What the list does not show to run does not, unless it came after the list was asked for. */
static void end_unlisted(struct state *state)
{
    for (struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        const struct sandbox *sandbox;

        if (a->create || a->epoch >= state->listing.epoch)
            continue;
        sandbox = a->unknown_in ? making_in(state, a) : NULL;
        allocation_set_idle(a);
        if (sandbox)
            allocation_set_unknown(a, sandbox->id, a->unknown_until_ms);
    }
}

static void note_running(struct state *state, const struct devicemgr_container *container,
                         const struct sandbox *sandbox, const struct container_tokens *named)
{
    for (struct allocation *a = allocations_edit_of_pod(&state->allocations, sandbox->pod->uid); a;
         a = a->pod_next) {
        if (a->epoch < state->listing.epoch && strcmp(a->container, container->name) == 0 &&
            container_tokens_name(named, a))
            allocation_set_live(a, container->id, sandbox->id, container->attempt);
    }
}

/* What runs by the kubelet's token is not made without one: that it had one is in none of the rows,
 * if these were lost. What the kubelet's checkpoint does not have may be of an annotation that its
 * pod has no more. */
static void note_token(struct state *state, const struct devicemgr_container *container,
                       const struct sandbox *sandbox, const struct container_tokens *named)
{
    struct pod *pod = sandbox->pod;

    for (const struct allocation *a = allocations_of_pod(&state->allocations, pod->uid); a;
         a = a->pod_next) {
        if (a->own_choice || strcmp(a->container, container->name) != 0 ||
            !request_names(&named->tokens, a->resource) || !kubelet_gave(state, a) ||
            pod_had_token(pod, container->name))
            continue;
        pod_note_token(pod, container->name);
        pod_set_remembers(pod);
        dirty_touch_pod(state, pod->uid);
    }
}

static void note_exited(struct state *state, const struct devicemgr_container *container,
                        const struct sandbox *sandbox)
{
    for (struct allocation *a = allocations_edit_of_pod(&state->allocations, sandbox->pod->uid); a;
         a = a->pod_next) {
        if (a->lives_len == 0 && a->epoch < state->listing.epoch &&
            strcmp(a->container, container->name) == 0)
            allocation_set_exited(a);
    }
}

/* The next pod that does not come back is dropped by the list after its time. */
static void list_for_absent(struct state *state)
{
    for (const struct pod *pod = state->pods.by_uid; pod; pod = pod->hh.next) {
        uint64_t until_ms = pod->newest ? 0 : returns_until_ms(state, pod);

        if (until_ms > state->now_ms)
            listing_by(state, until_ms);
    }
}

/* Pods without devices of ours come and go behind our back all the time where others use the
 * runtime: they are counted, and told with what is worth a line. */
static void log_list(struct runtime *runtime, bool first, size_t rebuilt, size_t lost)
{
    struct state *state = runtime->state;
    struct text text = {0};

    if (!first && rebuilt == 0 && lost == 0)
        return;
    text_add(&text,
             "runtime listed: %u pods, %u allocations kept (%zu of them rebuilt from containers), "
             "%zu pods are gone",
             HASH_COUNT(state->pods.by_uid), HASH_COUNT(state->allocations.by_key), rebuilt,
             runtime->pods_dropped);
    if (!first)
        text_add(&text, " since the last such line");
    state_log_about(state, LEVEL_INFO,
                    (struct devicemgr_about){.line = DEVICEMGR_LINE_RUNTIME_LISTED}, &text);
    runtime->pods_dropped = 0;
}

/* One container; how many allocations were made of what it says. */
static size_t take_container(struct runtime *runtime, const struct listed_sandboxes *told,
                             const struct devicemgr_container *container)
{
    struct state *state = runtime->state;
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, container->sandbox_id);
    struct container_tokens named;
    size_t rebuilt;
    bool is_new;

    if (!sandbox)
        return 0;
    if (!is_running(state, container, sandbox)) {
        note_exited(state, container, sandbox);
        return 0;
    }
    is_new = adopt_running(&runtime->adopt, container, sandbox);
    /* What is wrong with them is told once, not by each list. */
    container_tokens_read(&named, is_new ? state : NULL, container);
    note_running(state, container, sandbox, &named);
    rebuilt = rebuild_container(state, told, container, sandbox, &named);
    note_token(state, container, sandbox, &named);
    container_tokens_fini(&named);
    return rebuilt;
}

/* Once it is known what runs: an older attempt may still run with what this one does not name. */
static void release_listed(struct state *state, const struct devicemgr_container *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, container->sandbox_id);
    struct container_tokens named;

    if (!sandbox || !container->running || container->annotations_len == 0 ||
        !allocations_of_pod(&state->allocations, sandbox->pod->uid) ||
        !is_running(state, container, sandbox))
        return;
    container_tokens_read(&named, NULL, container);
    if (named.tokens.len > 0 && !named.unreadable)
        ledger_release_leftovers(state, sandbox->pod->uid, container->name, &named.tokens);
    container_tokens_fini(&named);
}

void listed_take(struct runtime *runtime, const struct devicemgr_sandbox *sandboxes,
                 size_t sandboxes_len, const struct devicemgr_container *containers,
                 size_t containers_len)
{
    struct state *state = runtime->state;
    const struct listed_sandboxes told = {sandboxes, sandboxes_len};
    size_t rebuilt = 0;
    bool first = !state->listing.listed;

    listing_come(state);
    for (size_t i = 0; i < sandboxes_len; i++)
        note_listed(state, &sandboxes[i]);
    keep_sandboxes(state, containers, containers_len);
    drop_unlisted(runtime);
    end_unlisted(state);
    for (size_t i = 0; i < containers_len; i++)
        rebuilt += take_container(runtime, &told, &containers[i]);
    for (size_t i = 0; i < containers_len; i++)
        release_listed(state, &containers[i]);
    adopt_forget_unlisted(&runtime->adopt);
    adopt_all(&runtime->adopt);
    listing_read(state);
    kubelet_become_ready(state);
    log_list(runtime, first, rebuilt, drop_absent(runtime));
    listing_again(state);
    list_for_absent(state);
    showing_all(state);
    wake_all(&state->wakes);
}

void listed_when_ready(struct runtime *runtime)
{
    struct state *state = runtime->state;

    if (!kubelet_become_ready(state))
        return;
    log_list(runtime, false, 0, drop_absent(runtime));
    list_for_absent(state);
    showing_all(state);
    wake_all(&state->wakes);
}
