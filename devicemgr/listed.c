/*
 * The runtime's whole list: what is there, what is no more, who runs.
 */
#include <string.h>

#include "devicemgr/core.h"
#include "devicemgr/limits.h"
#include "devicemgr/runtime.h"

bool runtime_of_earlier_boot(const struct devicemgr *mgr, const struct pod *pod)
{
    const char *boot_id = mgr->settings.boot_id;

    return pod->boot_id[0] != '\0' && boot_id[0] != '\0' && strcmp(pod->boot_id, boot_id) != 0;
}

/* Until when a pod that has no sandbox may come back: there are runtimes that forget all sandboxes
 * with a reboot, and the kubelet makes new ones when its API server has told it of its pods. Within
 * a boot it keeps the newest sandbox as long as there is the pod. */
uint64_t runtime_returns_until_ms(const struct devicemgr *mgr, const struct pod *pod)
{
    if (!mgr->kubelet.ready)
        return UINT64_MAX;
    if (!runtime_of_earlier_boot(mgr, pod))
        return 0;
    return mgr->kubelet.ready_ms +
           (kubelet_names_pod(mgr, pod->uid) ? POD_RETURNS_MS : POD_COMES_MS);
}

/* Whether the list under way was asked for before the sandbox's stop: it may name as running what
 * the stop has ended. */
static bool stopped_since(const struct devicemgr *mgr, const struct sandbox *sandbox)
{
    return sandbox->state == SANDBOX_STOPPED && sandbox->stop_epoch >= mgr->epoch;
}

/* Ready long enough after a stop that failed, or even after one that did not: it is not being
 * stopped any more. */
static void note_ready(struct devicemgr *mgr, struct sandbox *sandbox)
{
    if ((sandbox->state == SANDBOX_STOPPED && !stopped_since(mgr, sandbox)) ||
        (sandbox->state == SANDBOX_DOUBTED && mgr->listing_ms >= sandbox->reopen_ms))
        sandbox_set_open(sandbox);
}

/* A list that was asked for before the sandbox was removed may still name it. */
static void note_listed(struct devicemgr *mgr, const struct devicemgr_sandbox *told)
{
    struct sandbox *sandbox;
    uint64_t epoch;

    if (pods_find_end(&mgr->pods, told->id, &epoch) == SANDBOX_END_REMOVED && epoch >= mgr->epoch)
        return;
    sandbox = runtime_note_sandbox(mgr, told);
    if (told->ready)
        note_ready(mgr, sandbox);
}

/* Whether a listed container runs for all we know. */
static bool is_running(const struct devicemgr *mgr, const struct devicemgr_container *container,
                       const struct sandbox *sandbox)
{
    return container->running && !stopped_since(mgr, sandbox) &&
           !runtime_has_ended(mgr, container->id);
}

/* A sandbox that is not listed, with a container that is and runs: it is as good as dead. */
static void keep_sandboxes(struct devicemgr *mgr, const struct devicemgr_container *containers,
                           size_t containers_len)
{
    for (size_t i = 0; i < containers_len; i++) {
        struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, containers[i].sandbox_id);

        if (!sandbox || sandbox->epoch >= mgr->epoch || !is_running(mgr, &containers[i], sandbox))
            continue;
        sandbox_set_ready(sandbox, mgr->epoch, false);
    }
}

/* Forgets sandboxes that the list should have and has not. */
static void drop_unlisted(struct devicemgr *mgr)
{
    struct sandbox *sandbox, *next;

    HASH_ITER(hh, mgr->pods.sandboxes, sandbox, next)
    {
        if (sandbox->epoch >= mgr->epoch)
            continue;
        runtime_end_containers(mgr, sandbox);
        pods_note_end(&mgr->pods, sandbox->id, SANDBOX_END_REMOVED, mgr->epoch);
        pods_remove_sandbox(&mgr->pods, sandbox);
    }
}

/* Forgets the pods that are gone, and counts them; how many allocations that cost. */
static size_t drop_absent(struct devicemgr *mgr)
{
    size_t kept = HASH_COUNT(mgr->allocations.by_key);
    struct allocation *allocation, *next;
    struct pod *pod, *next_pod;

    HASH_ITER(hh, mgr->pods.by_uid, pod, next_pod)
    {
        if (pod->removed ? core_pod_holds(mgr, pod->uid)
                         : pod->newest || mgr->now_ms < runtime_returns_until_ms(mgr, pod))
            continue;
        core_drop_pod(mgr, pod);
        mgr->pods_dropped++;
    }
    HASH_ITER(hh, mgr->allocations.by_key, allocation, next)
    {
        if (mgr->kubelet.ready && !pods_find(&mgr->pods, allocation->pod_uid))
            core_drop_allocation(mgr, allocation);
    }
    return kept - HASH_COUNT(mgr->allocations.by_key);
}

/* The sandbox in which a container of the allocation may be in the making still; NULL: none is. A
 * restored one does not know its own: nothing is made in any but the newest of its pod, and an
 * earlier shim forwarded nothing into one that was run through this one, as after a reboot. */
static const struct sandbox *making_in(const struct devicemgr *mgr, const struct allocation *a)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, a->unknown_in);
    const struct pod *pod = pods_find(&mgr->pods, a->pod_uid);

    if (a->unknown_in[0] == '\0')
        sandbox = pod ? pod->newest : NULL;
    if (a->unknown_in[0] == '\0' && sandbox && sandbox->ran)
        return NULL;
    if (mgr->listing_ms >= a->unknown_until_ms)
        return NULL;
    return sandbox && sandbox->state != SANDBOX_STOPPED && !sandbox->dead ? sandbox : NULL;
}

/* What the list does not show to run does not, unless it came after the list was asked for. */
static void settle_unlisted(struct devicemgr *mgr)
{
    for (struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        const struct sandbox *sandbox;

        if (a->create || a->epoch >= mgr->epoch)
            continue;
        sandbox = a->unknown_in ? making_in(mgr, a) : NULL;
        allocation_set_idle(a);
        if (sandbox)
            allocation_set_unknown(a, sandbox->id, a->unknown_until_ms);
    }
}

static void settle_running(struct devicemgr *mgr, const struct devicemgr_container *container,
                           const struct sandbox *sandbox, const struct container_tokens *named)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, sandbox->pod->uid); a;
         a = a->pod_next) {
        if (a->epoch < mgr->epoch && strcmp(a->container, container->name) == 0 &&
            container_tokens_name(named, a))
            allocation_set_live(a, container->id, sandbox->id, container->attempt);
    }
}

static void settle_exited(struct devicemgr *mgr, const struct devicemgr_container *container,
                          const struct sandbox *sandbox)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, sandbox->pod->uid); a;
         a = a->pod_next) {
        if (a->lives_len == 0 && a->epoch < mgr->epoch &&
            strcmp(a->container, container->name) == 0)
            allocation_set_exited(a);
    }
}

/* Pods without devices of ours come and go behind our back all the time where others use the
 * runtime: they are counted, and told with what is worth a line. */
static void log_list(struct devicemgr *mgr, bool first, size_t rebuilt, size_t lost)
{
    struct text text = {0};

    if (!first && rebuilt == 0 && lost == 0)
        return;

    text_add(&text,
             "runtime listed: %u pods, %u allocations kept (%zu of them rebuilt from containers), "
             "%zu pods are gone",
             HASH_COUNT(mgr->pods.by_uid), HASH_COUNT(mgr->allocations.by_key), rebuilt,
             mgr->pods_dropped);
    if (!first)
        text_add(&text, " since the last such line");
    core_log(mgr, LEVEL_INFO, &text);
    mgr->pods_dropped = 0;
}

/* One container; how many allocations were made of what it says. */
static size_t settle_listed(struct devicemgr *mgr, const struct listed_sandboxes *told,
                            const struct devicemgr_container *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, container->sandbox_id);
    struct container_tokens named;
    size_t rebuilt;
    bool is_new;

    if (!sandbox)
        return 0;
    if (!is_running(mgr, container, sandbox)) {
        settle_exited(mgr, container, sandbox);
        return 0;
    }
    is_new = adopt_running(mgr, container, sandbox);
    container_tokens_read(&named, is_new ? mgr : NULL, container); /* told once, not by each list */
    settle_running(mgr, container, sandbox, &named);
    rebuilt = runtime_rebuild(mgr, told, container, sandbox, &named);
    request_fini(&named.tokens);
    return rebuilt;
}

/* Once all are settled: an older attempt may still run with what this one does not name. */
static void release_listed(struct devicemgr *mgr, const struct devicemgr_container *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, container->sandbox_id);
    struct container_tokens named;

    if (!sandbox || !container->running || container->annotations_len == 0 ||
        !allocations_of_pod(&mgr->allocations, sandbox->pod->uid) ||
        !is_running(mgr, container, sandbox))
        return;
    container_tokens_read(&named, NULL, container);
    if (named.tokens.len > 0 && !named.unreadable)
        core_release_leftovers(mgr, sandbox->pod->uid, container->name, &named.tokens);
    request_fini(&named.tokens);
}

void devicemgr_runtime_listed(struct devicemgr *mgr, uint64_t now_ms,
                              const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                              const struct devicemgr_container *containers, size_t containers_len)
{
    const struct listed_sandboxes told = {sandboxes, sandboxes_len};
    size_t rebuilt = 0;
    bool first = !mgr->listed;

    core_at(mgr, now_ms);
    if (!mgr->listing)
        devicemgr_runtime_listing(mgr);
    mgr->listing = false;
    mgr->rows_lost = mgr->rows_lost && mgr->listing_ms < mgr->rows_lost_until_ms;
    for (size_t i = 0; i < sandboxes_len; i++)
        note_listed(mgr, &sandboxes[i]);
    keep_sandboxes(mgr, containers, containers_len);
    drop_unlisted(mgr);
    settle_unlisted(mgr);
    for (size_t i = 0; i < containers_len; i++)
        rebuilt += settle_listed(mgr, &told, &containers[i]);
    for (size_t i = 0; i < containers_len; i++)
        release_listed(mgr, &containers[i]);
    adopt_forget_unlisted(mgr);
    adopt_settle(mgr);
    mgr->listed = true;
    kubelet_settle_sources(mgr);
    log_list(mgr, first, rebuilt, drop_absent(mgr));
    runtime_list_again(mgr);
    runtime_list_for_absent(mgr);
    advertise_all(mgr);
    wake_all(mgr);
}

void runtime_settle_sources(struct devicemgr *mgr)
{
    if (!kubelet_settle_sources(mgr))
        return;
    log_list(mgr, false, 0, drop_absent(mgr));
    runtime_list_for_absent(mgr);
    advertise_all(mgr);
    wake_all(mgr);
}
