/*
 * What the runtime tells: sandboxes that come and go, containers that end, and its whole list.
 */
#include <string.h>

#include <utlist.h>

#include "devicemgr/core.h"
#include "devicemgr/create.h"
#include "devicemgr/limits.h"

/* Only pods that hold something have a row. */
static void touch_pod(struct devicemgr *mgr, const struct pod *pod)
{
    if (allocations_of_pod(&mgr->allocations, pod->uid))
        checkpoint_touch_pod(mgr, pod->uid);
}

/* What can run of one allocation says whether its pod is over, and so what all of them are. */
static void siblings_changed(struct devicemgr *mgr, const char *pod_uid, bool wakes)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, pod_uid); a;
         a = a->pod_next) {
        allocation_set_stale(a);
        if (wakes)
            wake_holders(mgr, a);
    }
    kubelet_pod_changed(mgr, pod_uid, wakes);
}

void core_pod_changed(struct devicemgr *mgr, const char *pod_uid)
{
    wake_pod(mgr, pod_uid);
    siblings_changed(mgr, pod_uid, true);
}

void core_remove_allocation(struct devicemgr *mgr, struct allocation *allocation)
{
    if (allocation->settled)
        siblings_changed(mgr, allocation->pod_uid, true);
    allocations_remove(&mgr->allocations, allocation);
}

/* What a create took and gave back in one look is no change: two that want the same devices and
 * others besides would wake each other for ever. That a create takes what was free concerns nobody
 * yet: it may be given up. */
void core_settle_allocations(struct devicemgr *mgr)
{
    struct allocation *a, *next;

    DL_FOREACH_SAFE2(mgr->allocations.changed, a, next, changed_next)
    {
        enum allocation_life life = allocation_life(a);

        if (!a->settled || a->known != life)
            siblings_changed(mgr, a->pod_uid, a->settled && life != ALLOCATION_BUSY);
        a->changed = false;
        a->settled = true;
        a->known = life;
    }
    mgr->allocations.changed = NULL;
}

void core_drop_allocation(struct devicemgr *mgr, struct allocation *allocation)
{
    checkpoint_touch_allocation(mgr, allocation);
    checkpoint_touch_pod(mgr, allocation->pod_uid);
    core_remove_allocation(mgr, allocation);
}

/* Whether a container of the pod may run, or is being made. */
static bool pod_holds(const struct devicemgr *mgr, const char *pod_uid)
{
    const struct allocation *a = allocations_of_pod(&mgr->allocations, pod_uid);

    while (a && allocation_life(a) == ALLOCATION_IDLE)
        a = a->pod_next;
    return a != NULL;
}

bool core_pod_over(const struct devicemgr *mgr, const char *pod_uid)
{
    const struct pod *pod = pods_find(&mgr->pods, pod_uid);
    const struct sandbox *newest = pod ? pod->newest : NULL;

    if (!pod)
        return pods_gone(&mgr->pods, pod_uid);
    if (!mgr->listed || pod_holds(mgr, pod_uid)) /* a newer sandbox may exist */
        return false;
    return pod->removed || (newest && newest->stopping && (newest->stopped || newest->dead) &&
                            mgr->now_ms >= newest->remade_by_ms);
}

bool core_sandbox_removed(const struct devicemgr *mgr, const char *sandbox_id)
{
    uint64_t epoch;

    return pods_find_end(&mgr->pods, sandbox_id, &epoch) == SANDBOX_END_REMOVED;
}

void core_name_holder(const struct devicemgr *mgr, const struct allocation *holder,
                      struct text *text)
{
    const struct pod *pod = pods_find(&mgr->pods, holder->pod_uid);

    text_add(text, "container \"%.63s\" of pod \"", holder->container);
    if (pod) {
        text_add_words(text, pod->pod_namespace, TEXT_WORDS_BYTES_MAX / 2);
        text_add(text, "/");
        text_add_words(text, pod->name, TEXT_WORDS_BYTES_MAX / 2);
    } else {
        text_add_words(text, holder->pod_uid, TEXT_WORDS_BYTES_MAX / 2);
    }
    text_add(text, "\"");
}

/* ---- pods that come back after a reboot ---- */

bool runtime_of_earlier_boot(const struct devicemgr *mgr, const struct pod *pod)
{
    const char *boot_id = mgr->settings.boot_id;

    return pod->boot_id[0] != '\0' && boot_id[0] != '\0' && strcmp(pod->boot_id, boot_id) != 0;
}

/* Until when a pod that has no sandbox may come back: there are runtimes that forget all sandboxes
 * with a reboot, and the kubelet makes new ones when its API server has told it of its pods. Within
 * a boot it keeps the newest sandbox as long as there is the pod. */
static uint64_t returns_until_ms(const struct devicemgr *mgr, const struct pod *pod)
{
    if (!mgr->kubelet.ready)
        return UINT64_MAX;
    if (!runtime_of_earlier_boot(mgr, pod))
        return 0;
    return mgr->kubelet.ready_ms +
           (kubelet_names_pod(mgr, pod->uid) ? POD_RETURNS_MS : POD_COMES_MS);
}

/* ---- lists that the core asks for ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void list_by(struct devicemgr *mgr, uint64_t at_ms)
{
    mgr->list_ms = earlier(mgr->list_ms, at_ms);
}

void core_outcome_unknown(struct devicemgr *mgr, struct allocation *allocation,
                          const char *sandbox_id)
{
    allocation_set_unknown(allocation, sandbox_id, mgr->now_ms + OUTCOME_MS);
    list_by(mgr, allocation->unknown_until_ms);
}

void runtime_restored(struct devicemgr *mgr)
{
    mgr->rows_lost_until_ms = mgr->now_ms + OUTCOME_MS;
    if (mgr->rows_lost || mgr->allocations.by_key)
        list_by(mgr, mgr->rows_lost_until_ms);
}

static void ask_list(struct devicemgr *mgr)
{
    mgr->list_ms = UINT64_MAX;
    mgr->list_asked = true;
    action_push(&mgr->actions, ACTION_RUNTIME_LIST, 0);
}

void runtime_list_soon(struct devicemgr *mgr)
{
    if (mgr->listing || mgr->list_asked)
        return;
    if (mgr->now_ms < mgr->listing_ms + LIST_EVERY_MS)
        list_by(mgr, mgr->listing_ms + LIST_EVERY_MS);
    else
        ask_list(mgr);
}

void runtime_tick(struct devicemgr *mgr)
{
    if (mgr->now_ms >= mgr->list_ms)
        ask_list(mgr);
}

/* After a list: what it was too early for wants another. */
static void list_again(struct devicemgr *mgr)
{
    uint64_t at_ms = UINT64_MAX;

    if (mgr->rows_lost)
        at_ms = mgr->rows_lost_until_ms;
    for (const struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        if (a->unknown)
            at_ms = earlier(at_ms, a->unknown_until_ms);
    }
    for (const struct sandbox *s = mgr->pods.sandboxes; s; s = s->hh.next) {
        if (s->reopen_ms > 0 && !s->stopped && !s->dead)
            at_ms = earlier(at_ms, s->reopen_ms);
    }
    if (at_ms < mgr->listing_ms + LIST_EVERY_MS)
        at_ms = mgr->listing_ms + LIST_EVERY_MS;
    mgr->list_ms = at_ms;
}

/* The next pod that does not come back is dropped by the list after its time. */
static void list_for_absent(struct devicemgr *mgr)
{
    for (const struct pod *pod = mgr->pods.by_uid; pod; pod = pod->hh.next) {
        uint64_t until_ms = pod->newest ? 0 : returns_until_ms(mgr, pod);

        if (until_ms > mgr->now_ms)
            list_by(mgr, until_ms);
    }
}

/* ---- one sandbox, one container ---- */

static struct sandbox *note_sandbox(struct devicemgr *mgr, const struct devicemgr_sandbox *told)
{
    struct pod *pod = pods_ensure(&mgr->pods, told->pod_uid, told->pod_namespace, told->pod_name);
    struct sandbox *sandbox = pods_ensure_sandbox(&mgr->pods, pod, told->id, told->attempt);

    sandbox->epoch = mgr->epoch;
    sandbox->dead = !told->ready;
    pod_set_boot(pod, mgr->settings.boot_id);
    touch_pod(mgr, pod);
    return sandbox;
}

void devicemgr_sandbox_ran(struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_sandbox *sandbox)
{
    core_at(mgr, now_ms);
    note_sandbox(mgr, sandbox)->ran = true;
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
    if (!sandbox->dead || (sandbox->stopping && mgr->now_ms >= sandbox->remade_by_ms))
        return;
    sandbox->remade_by_ms = mgr->now_ms + SANDBOX_REMADE_MS;
    list_by(mgr, sandbox->remade_by_ms);
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
    sandbox->stopping = true;
    sandbox->reopen_ms = 0;
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
    if (!sandbox->stopping || sandbox->stopped)
        return;
    sandbox->reopen_ms = mgr->now_ms + OUTCOME_MS;
    if (!sandbox->dead) /* else nobody needs to know soon */
        list_by(mgr, sandbox->reopen_ms);
}

/* No container of this sandbox runs any more: it was stopped, or removed. */
static void end_containers(struct devicemgr *mgr, const struct sandbox *sandbox)
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
    sandbox->stopping = sandbox->stopped = true;
    sandbox->stop_epoch = mgr->epoch;
    end_containers(mgr, sandbox);
    touch_pod(mgr, sandbox->pod);
}

static void drop_pod_allocations(struct devicemgr *mgr, const char *pod_uid)
{
    struct allocation *allocation;

    while ((allocation = allocations_of_pod(&mgr->allocations, pod_uid)))
        core_drop_allocation(mgr, allocation);
}

static void drop_pod(struct devicemgr *mgr, struct pod *pod)
{
    drop_pod_allocations(mgr, pod->uid);
    wake_pod(mgr, pod->uid);
    kubelet_pod_changed(mgr, pod->uid, true);
    pods_remove(&mgr->pods, pod);
}

/* Whether a container of the pod may run, in whichever sandbox. */
static bool pod_runs(const struct devicemgr *mgr, const struct pod *pod)
{
    const struct allocation *a = allocations_of_pod(&mgr->allocations, pod->uid);

    while (a && a->lives_len == 0 && !a->unknown)
        a = a->pod_next;
    return a != NULL;
}

void devicemgr_sandbox_removed(struct devicemgr *mgr, uint64_t now_ms, const char *sandbox_id)
{
    struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, sandbox_id);
    struct pod *pod;

    core_at(mgr, now_ms);
    pods_note_end(&mgr->pods, sandbox_id, SANDBOX_END_REMOVED, mgr->epoch);
    if (!sandbox)
        return;
    end_containers(mgr, sandbox);
    touch_pod(mgr, sandbox->pod);
    pod = sandbox->pod;
    /* Before the first list a newer sandbox may exist that we have not heard of. */
    if (pod->newest == sandbox) {
        pod->removed = mgr->listed;
        pod_set_boot(pod, mgr->settings.boot_id);
    }
    if (pod->removed && !pod_runs(mgr, pod))
        drop_pod(mgr, pod);
    else
        pods_remove_sandbox(&mgr->pods, sandbox);
}

/* A container that ended while a list is being asked for, which may name it as one that runs. */
struct ended {
    char *container_id;
    UT_hash_handle hh;
};

static bool is_ended(const struct devicemgr *mgr, const char *container_id)
{
    const struct ended *ended;

    HASH_FIND_STR(mgr->ended, container_id, ended);
    return ended != NULL;
}

static void note_ended(struct devicemgr *mgr, const char *container_id)
{
    struct ended *ended;

    if (!mgr->listing || is_ended(mgr, container_id))
        return;
    ended = mem_alloc(1, sizeof *ended);
    ended->container_id = mem_strdup(container_id);
    HASH_ADD_KEYPTR(hh, mgr->ended, ended->container_id, strlen(ended->container_id), ended);
}

void runtime_fini(struct devicemgr *mgr)
{
    struct ended *ended, *next;

    HASH_ITER(hh, mgr->ended, ended, next)
    {
        HASH_DEL(mgr->ended, ended);
        free(ended->container_id);
        free(ended);
    }
}

void runtime_container_ended(struct devicemgr *mgr, const char *container_id)
{
    struct allocation *a;

    note_ended(mgr, container_id);
    adopt_container_ended(mgr, container_id);
    while ((a = allocations_of_container(&mgr->allocations, container_id)))
        allocation_set_ended(a, container_id);
}

void devicemgr_container_removed(struct devicemgr *mgr, uint64_t now_ms, const char *container_id)
{
    core_at(mgr, now_ms);
    runtime_container_ended(mgr, container_id);
}

/* ---- the whole list ---- */

void devicemgr_runtime_listing(struct devicemgr *mgr)
{
    runtime_fini(mgr); /* it will not name what has ended by now */
    mgr->epoch++;
    mgr->listing = true;
    mgr->list_asked = false;
    mgr->listing_ms = mgr->now_ms;
}

/* Whether the list under way was asked for before the sandbox's stop: it may name as running what
 * the stop has ended. */
static bool stopped_since(const struct devicemgr *mgr, const struct sandbox *sandbox)
{
    return sandbox->stopped && sandbox->stop_epoch >= mgr->epoch;
}

/* Ready long enough after a stop that failed, or even after one that did not: it is not being
 * stopped any more. */
static void note_ready(struct devicemgr *mgr, struct sandbox *sandbox)
{
    if (stopped_since(mgr, sandbox))
        return;
    if (!sandbox->stopped && (sandbox->reopen_ms == 0 || mgr->listing_ms < sandbox->reopen_ms))
        return;
    sandbox->stopping = sandbox->stopped = false;
    sandbox->reopen_ms = 0;
}

/* A list that was asked for before the sandbox was removed may still name it. */
static void note_listed(struct devicemgr *mgr, const struct devicemgr_sandbox *told)
{
    struct sandbox *sandbox;
    uint64_t epoch;

    if (pods_find_end(&mgr->pods, told->id, &epoch) == SANDBOX_END_REMOVED && epoch >= mgr->epoch)
        return;
    sandbox = note_sandbox(mgr, told);
    if (told->ready)
        note_ready(mgr, sandbox);
}

/* Whether a listed container runs for all we know. */
static bool is_running(const struct devicemgr *mgr, const struct devicemgr_container *container,
                       const struct sandbox *sandbox)
{
    return container->running && !stopped_since(mgr, sandbox) && !is_ended(mgr, container->id);
}

/* A sandbox that is not listed, with a container that is and runs: it is as good as dead. */
static void keep_sandboxes(struct devicemgr *mgr, const struct devicemgr_container *containers,
                           size_t containers_len)
{
    for (size_t i = 0; i < containers_len; i++) {
        struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, containers[i].sandbox_id);

        if (!sandbox || sandbox->epoch >= mgr->epoch || !is_running(mgr, &containers[i], sandbox))
            continue;
        sandbox->epoch = mgr->epoch;
        sandbox->dead = true;
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
        end_containers(mgr, sandbox);
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
        if (pod->removed ? pod_holds(mgr, pod->uid)
                         : pod->newest || mgr->now_ms < returns_until_ms(mgr, pod))
            continue;
        drop_pod(mgr, pod);
        mgr->pods_gone++;
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
    return sandbox && !sandbox->stopped && !sandbox->dead ? sandbox : NULL;
}

/* What the list does not show to run does not, unless it came after the list was asked for. */
static void settle_unlisted(struct devicemgr *mgr)
{
    for (struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        const struct sandbox *sandbox;

        if (a->create || a->epoch >= mgr->epoch)
            continue;
        sandbox = a->unknown ? making_in(mgr, a) : NULL;
        allocation_set_idle(a);
        if (sandbox)
            allocation_set_unknown(a, sandbox->id, a->unknown_until_ms);
    }
}

/* What the tokens of a listed container name. */
struct named {
    struct request tokens;
    bool unreadable; /* it has one that cannot be read: it may name anything */
};

/* `mgr` NULL: nothing is logged. */
static void named_init(struct named *named, struct devicemgr *mgr,
                       const struct devicemgr_container *container)
{
    *named = (struct named){0};
    for (size_t i = 0; i < container->annotations_len; i++) {
        const struct devicemgr_annotation *annotation = &container->annotations[i];
        struct text error = {0};

        if (!request_is_token_key(annotation->key))
            continue;
        text_add(&error, "running container %.12s: ", container->id);
        if (request_add_token(&named->tokens, annotation->key, annotation->value, &error) == 0)
            continue;
        named->unreadable = true;
        if (mgr)
            core_log(mgr, LEVEL_WARNING, &error);
    }
}

/* Whether a container with these tokens has the allocation's devices. What the shim has chosen is
 * always written on the container. What the kubelet has is not, where it is from before the plugin
 * was moved; but there a container asks for the same as long as its pod lives. */
static bool names(const struct named *named, const struct allocation *allocation)
{
    if (named->unreadable || !allocation->own_choice)
        return true;
    for (size_t i = 0; i < named->tokens.len; i++) {
        if (strcmp(named->tokens.items[i].resource, allocation->resource) == 0)
            return true;
    }
    return false;
}

static void settle_running(struct devicemgr *mgr, const struct devicemgr_container *container,
                           const struct sandbox *sandbox, const struct named *named)
{
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, sandbox->pod->uid); a;
         a = a->pod_next) {
        if (a->epoch < mgr->epoch && strcmp(a->container, container->name) == 0 && names(named, a))
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
            a->seen_exited = true;
    }
}

/* The sandboxes of a list. */
struct told {
    const struct devicemgr_sandbox *v;
    size_t len;
};

/* The pod's request annotation for this container; NULL: none, or it counts for nothing. */
static const char *told_request(const struct devicemgr *mgr, const struct told *told,
                                const struct devicemgr_container *container)
{
    size_t s = 0;

    while (s < told->len && strcmp(told->v[s].id, container->sandbox_id) != 0)
        s++;
    if (s == told->len || !mgr->settings.annotations ||
        !create_namespace_allowed(mgr, told->v[s].pod_namespace))
        return NULL;
    for (size_t i = 0; i < told->v[s].annotations_len; i++) {
        if (request_is_key_of(told->v[s].annotations[i].key, container->name))
            return told->v[s].annotations[i].value;
    }
    return NULL;
}

/* Whether the shim chose what a container's token names: the token looks the same as the kubelet's,
 * but then its pod has asked for the resource by annotation. */
static bool was_own_choice(const struct devicemgr *mgr, const struct told *told,
                           const struct devicemgr_container *container, const char *resource)
{
    const char *value = told_request(mgr, told, container);
    struct request request = {0};
    struct text ignored = {0};
    bool named = false;

    if (!value || request_add_annotation(&request, value, &ignored) < 0) {
        request_fini(&request);
        return false;
    }
    for (size_t i = 0; i < request.len; i++)
        named = named || strcmp(request.items[i].resource, resource) == 0;
    request_fini(&request);
    return named;
}

/* A running container holds what its token says, whatever the checkpoint has; not if the list is
 * older than what we have heard of that container name since. */
static bool rebuild_one(struct devicemgr *mgr, const struct told *told,
                        const struct devicemgr_container *container, const struct sandbox *sandbox,
                        const struct request_item *token)
{
    struct allocation *allocation =
        allocations_find(&mgr->allocations, sandbox->pod->uid, container->name, token->resource);
    size_t lives_len = allocation ? allocation->lives_len : 0;

    if (allocation &&
        (allocation->create || allocation->epoch >= mgr->epoch ||
         ids_equal(&allocation->ids, &token->ids) ||
         (lives_len > 0 && allocation->lives[lives_len - 1].attempt > container->attempt)))
        return false;
    if (allocation)
        core_drop_allocation(mgr, allocation);
    allocation = allocations_add(&mgr->allocations, sandbox->pod->uid, container->name,
                                 token->resource, &token->ids);
    allocation->durable = true; /* in the container's annotations, and soon in the checkpoint */
    allocation->own_choice = was_own_choice(mgr, told, container, token->resource);
    allocation_set_live(allocation, container->id, sandbox->id, container->attempt);
    checkpoint_touch_allocation(mgr, allocation);
    checkpoint_touch_pod(mgr, sandbox->pod->uid);
    return true;
}

static size_t rebuild(struct devicemgr *mgr, const struct told *told,
                      const struct devicemgr_container *container, const struct sandbox *sandbox,
                      const struct named *named)
{
    size_t rebuilt = 0;

    for (size_t i = 0; i < named->tokens.len; i++) {
        if (named->tokens.items[i].ids.len > 0)
            rebuilt += rebuild_one(mgr, told, container, sandbox, &named->tokens.items[i]);
    }
    return rebuilt;
}

void core_release_leftovers(struct devicemgr *mgr, const char *pod_uid, const char *container,
                            const struct request *has)
{
    struct allocation *a, *next;

    for (a = allocations_of_pod(&mgr->allocations, pod_uid); a; a = next) {
        const struct named named = {.tokens = *has};
        struct text text = {0};

        next = a->pod_next;
        if (!a->own_choice || strcmp(a->container, container) != 0 || names(&named, a) ||
            allocation_life(a) != ALLOCATION_IDLE)
            continue;
        core_name_holder(mgr, a, &text);
        text_add(&text, ": its pod's annotation asks for resource %s no more: device ids ",
                 a->resource);
        text_add_ids(&text, &a->ids);
        text_add(&text, " are free");
        core_log(mgr, LEVEL_INFO, &text);
        core_drop_allocation(mgr, a);
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
             mgr->pods_gone);
    if (!first)
        text_add(&text, " since the last such line");
    core_log(mgr, LEVEL_INFO, &text);
    mgr->pods_gone = 0;
}

/* One container; how many allocations were made of what it says. */
static size_t settle_listed(struct devicemgr *mgr, const struct told *told,
                            const struct devicemgr_container *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, container->sandbox_id);
    struct named named;
    size_t rebuilt;

    if (!sandbox)
        return 0;
    if (!is_running(mgr, container, sandbox)) {
        settle_exited(mgr, container, sandbox);
        return 0;
    }
    adopt_running(mgr, container, sandbox);
    named_init(&named, mgr, container);
    settle_running(mgr, container, sandbox, &named);
    rebuilt = rebuild(mgr, told, container, sandbox, &named);
    request_fini(&named.tokens);
    return rebuilt;
}

/* Once all are settled: an older attempt may still run with what this one does not name. */
static void release_listed(struct devicemgr *mgr, const struct devicemgr_container *container)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, container->sandbox_id);
    struct named named;

    if (!sandbox || !container->running || container->annotations_len == 0 ||
        !allocations_of_pod(&mgr->allocations, sandbox->pod->uid) ||
        !is_running(mgr, container, sandbox))
        return;
    named_init(&named, NULL, container);
    if (named.tokens.len > 0 && !named.unreadable)
        core_release_leftovers(mgr, sandbox->pod->uid, container->name, &named.tokens);
    request_fini(&named.tokens);
}

void devicemgr_runtime_listed(struct devicemgr *mgr, uint64_t now_ms,
                              const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                              const struct devicemgr_container *containers, size_t containers_len)
{
    const struct told told = {sandboxes, sandboxes_len};
    size_t rebuilt = 0;
    bool first = !mgr->listed;

    core_at(mgr, now_ms);
    if (!mgr->listing)
        devicemgr_runtime_listing(mgr);
    mgr->listing = false;
    mgr->rows_lost = mgr->rows_lost && mgr->listing_ms < mgr->rows_lost_until_ms;
    for (size_t i = 0; i < sandboxes_len; i++)
        note_listed(mgr, &sandboxes[i]);
    adopt_clear(mgr);
    keep_sandboxes(mgr, containers, containers_len);
    drop_unlisted(mgr);
    settle_unlisted(mgr);
    for (size_t i = 0; i < containers_len; i++)
        rebuilt += settle_listed(mgr, &told, &containers[i]);
    for (size_t i = 0; i < containers_len; i++)
        release_listed(mgr, &containers[i]);
    adopt_settle(mgr);
    mgr->listed = true;
    kubelet_settle_sources(mgr);
    log_list(mgr, first, rebuilt, drop_absent(mgr));
    list_again(mgr);
    list_for_absent(mgr);
    advertise_all(mgr);
    wake_all(mgr);
}

void runtime_settle_sources(struct devicemgr *mgr)
{
    if (!kubelet_settle_sources(mgr))
        return;
    log_list(mgr, false, 0, drop_absent(mgr));
    list_for_absent(mgr);
    advertise_all(mgr);
    wake_all(mgr);
}
