#include "devicemgr/create.h"

#include <string.h>

#include "devicemgr/choose.h"

/* A question to the runtime: does this allocation's container still run? */
struct check {
    uint64_t number;
    uint64_t create;
    char *pod_uid;
    char *container;
    char *resource;
    char *container_id;
    UT_hash_handle hh;
};

static void check_free(struct devicemgr *mgr, struct check *check)
{
    HASH_DEL(mgr->checks, check);
    free(check->pod_uid);
    free(check->container);
    free(check->resource);
    free(check->container_id);
    free(check);
}

void checks_fini(struct devicemgr *mgr)
{
    struct check *check, *next;

    HASH_ITER(hh, mgr->checks, check, next)
    {
        check_free(mgr, check);
    }
}

static void check_start(struct devicemgr *mgr, const struct create *create,
                        struct allocation *holder)
{
    struct check *check = mem_alloc(1, sizeof *check);
    struct action *action;

    check->number = core_number(mgr);
    check->create = create->number;
    check->pod_uid = mem_strdup(holder->pod_uid);
    check->container = mem_strdup(holder->container);
    check->resource = mem_strdup(holder->resource);
    check->container_id = mem_strdup(allocation_live_id(holder));
    HASH_ADD(hh, mgr->checks, number, sizeof check->number, check);
    holder->check = check->number;
    action = action_push(&mgr->actions, ACTION_CONTAINER_CHECK, check->number);
    action->text = mem_strdup(check->container_id);
}

/* Who asked may be over, its hold shorter than the runtime took: its next attempt would ask again,
 * and so on for ever. */
static void confirm(const struct devicemgr *mgr, struct allocation *holder, uint64_t create)
{
    holder->confirmed = create;
    if (!creates_find(mgr, create))
        holder->late_until_ms = mgr->now_ms + LATE_ANSWER_MS;
}

void devicemgr_container_checked(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                                 bool known, bool running)
{
    struct allocation *holder;
    struct check *check;

    core_at(mgr, now_ms);
    HASH_FIND(hh, mgr->checks, &number, sizeof number, check);
    if (!check)
        return;
    holder = allocations_find(&mgr->allocations, check->pod_uid, check->container, check->resource);
    if (holder && holder->check == number) {
        holder->check = 0;
        if (known && running)
            confirm(mgr, holder, check->create);
        else
            runtime_container_ended(mgr, check->container_id);
        wake_holders(mgr, holder); /* others wait for the answer, or to ask themselves */
    }
    if (creates_find(mgr, check->create))
        wake_create(mgr, creates_find(mgr, check->create));
    check_free(mgr, check);
}

/* ---- whether devices can be used ---- */

static enum create_step refuse_unknown(const struct devicemgr *mgr, const struct create *create,
                                       const struct request_item *want,
                                       struct create_refusal *refusal)
{
    struct ids names = {0};

    resources_names(mgr->resources, &names);
    create_name(create, want->resource, &refusal->text);
    text_add(&refusal->text, "not registered on this node, or removed; known resources: ");
    if (names.len == 0)
        text_add(&refusal->text, "none");
    text_add_ids(&refusal->text, &names);
    ids_fini(&names);
    if (want->token) /* the kubelet has nothing else for this container */
        text_add(&refusal->text,
                 "; if its plugin registers with the kubelet itself now, make the pod anew");
    refusal->code = CODE_FAILED_PRECONDITION;
    return STEP_REFUSE;
}

static enum create_step hold_endpoint(const struct devicemgr *mgr, struct create *create,
                                      const struct resource *resource, const struct ids *ids,
                                      struct create_refusal *refusal)
{
    create->blocks |= BLOCK_ENDPOINT;
    create_name(create, resource->name, &refusal->text);
    endpoint_explain(&resource->endpoint, mgr->now_ms,
                     core_settings_of(mgr, resource->name)->grace_ms, &refusal->text);
    if (ids->len > 0) {
        text_add(&refusal->text, "; device ids ");
        text_add_ids(&refusal->text, ids);
    }
    return STEP_HOLD;
}

static enum create_step hold_unhealthy(const struct devicemgr *mgr, struct create *create,
                                       const struct resource *resource, const struct ids *ids,
                                       struct create_refusal *refusal)
{
    struct ids unhealthy = {0}, missing = {0};
    uint64_t since_ms = mgr->now_ms;

    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (!device) {
            ids_add(&missing, ids->v[i]);
        } else if (!device->healthy) {
            ids_add(&unhealthy, ids->v[i]);
            since_ms = device->since_ms < since_ms ? device->since_ms : since_ms;
        }
    }
    create->blocks |= BLOCK_UNHEALTHY;
    create_name(create, resource->name, &refusal->text);
    if (unhealthy.len > 0) {
        text_add(&refusal->text, "unhealthy for ");
        text_add_duration(&refusal->text, mgr->now_ms - since_ms);
        text_add(&refusal->text, ": device ids ");
        text_add_ids(&refusal->text, &unhealthy);
    }
    if (missing.len > 0) {
        text_add(&refusal->text, "%s%s: device ids ", unhealthy.len > 0 ? "; " : "",
                 resource->builtin ? "no such device node on the host"
                                   : "not listed by the plugin");
        text_add_ids(&refusal->text, &missing);
    }
    ids_fini(&unhealthy);
    ids_fini(&missing);
    return STEP_HOLD;
}

enum create_step create_item_usable(struct devicemgr *mgr, struct create *create,
                                    const struct request_item *want, const struct ids *ids,
                                    struct create_refusal *refusal)
{
    const struct resource *resource = resources_find(mgr->resources, want->resource);

    if (!resource)
        return refuse_unknown(mgr, create, want, refusal);
    if (!resource_usable(resource))
        return hold_endpoint(mgr, create, resource, ids, refusal);
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (!device || !device->healthy)
            return hold_unhealthy(mgr, create, resource, ids, refusal);
    }
    return STEP_GO;
}

/* ---- who holds a device ---- */

static bool same_pod(const struct create *create, const struct allocation *holder)
{
    return strcmp(create->pod_uid, holder->pod_uid) == 0;
}

/* Whether the runtime has said that the holder's container runs, in answer to this create or, for
 * its own pod, too late for one before. */
static bool said_to_run(const struct devicemgr *mgr, const struct create *create,
                        const struct allocation *holder)
{
    return holder->confirmed == create->number ||
           (same_pod(create, holder) && mgr->now_ms < holder->late_until_ms);
}

/* The kubelet makes the containers of a pod one after the other, and hands a device on only when
 * the init container that had it has done its work: when it asks for the next one, none of an
 * exited one is in the making. */
static bool handed_on_by_kubelet(const struct create *create, const struct allocation *holder)
{
    return same_pod(create, holder) && !holder->own_choice && holder->seen_exited &&
           allocation_life(holder) == ALLOCATION_UNKNOWN;
}

/* The refusal is read by whoever may read the refused pod, who may be another's tenant. */
static void name_holder(struct devicemgr *mgr, const struct create *create,
                        const struct allocation *holder, const char *id, struct text *text)
{
    const struct pod *pod = pods_find(&mgr->pods, holder->pod_uid);
    struct text line = {0};

    if (!mgr->settings.hide_other_namespaces ||
        (pod && strcmp(pod->pod_namespace, create->pod_namespace) == 0)) {
        core_name_holder(mgr, holder, text);
        return;
    }
    text_add(text, "a container of another namespace");
    text_add(&line, "resource %s: device ", holder->resource);
    text_add_words(&line, id, TEXT_IDS_BYTES_MAX);
    text_add(&line, " is held by ");
    core_name_holder(mgr, holder, &line);
    core_log(mgr, LEVEL_DEBUG, &line);
}

/* GO: no container of the holder can be running. */
static enum create_step holder_idle(struct devicemgr *mgr, struct create *create,
                                    struct allocation *holder, const char *id,
                                    struct create_refusal *refusal)
{
    enum allocation_life life = allocation_life(holder);

    if (life == ALLOCATION_IDLE || handed_on_by_kubelet(create, holder))
        return STEP_GO;
    create_name(create, holder->resource, &refusal->text);
    text_add(&refusal->text, "device ");
    text_add_words(&refusal->text, id, TEXT_IDS_BYTES_MAX);
    text_add(&refusal->text, " is held by ");
    name_holder(mgr, create, holder, id, &refusal->text);
    refusal->code = CODE_UNAVAILABLE;
    if (life == ALLOCATION_LIVE && said_to_run(mgr, create, holder)) {
        text_add(&refusal->text, ", which still runs");
        return STEP_REFUSE;
    }
    if (life == ALLOCATION_LIVE && !holder->check)
        check_start(mgr, create, holder);
    create->blocks |= BLOCK_HOLDER;
    text_add(&refusal->text, "%s",
             life == ALLOCATION_LIVE      ? ", and the runtime has not said yet whether it runs"
             : life == ALLOCATION_UNKNOWN ? ", of which it is not known whether it runs"
                                          : ", which is being created");
    return STEP_HOLD;
}

/* Whether no container but our own, `self`, can be running with one of the ids, or does not mind.
 */
static enum create_step ids_free(struct devicemgr *mgr, struct create *create, const char *resource,
                                 const struct ids *ids, const struct allocation *self,
                                 struct create_refusal *refusal)
{
    if (!core_settings_of(mgr, resource)->exclusive)
        return STEP_GO;
    for (size_t i = 0; i < ids->len; i++) {
        size_t holders_len;
        struct allocation *const *holders =
            allocations_holders(&mgr->allocations, resource, ids->v[i], &holders_len);

        for (size_t h = 0; h < holders_len; h++) {
            enum create_step step = STEP_GO;

            if (holders[h] != self)
                step = holder_idle(mgr, create, holders[h], ids->v[i], refusal);
            if (step != STEP_GO)
                return step;
        }
    }
    return STEP_GO;
}

/* Containers that the checkpoint does not know of may run, until the runtime has listed all of
 * them: nothing new is given out before (the kubelet, too, waits for its sources to be ready).
 * If rows of it are lost, they may also be in the making, and a later list is waited for. */
static enum create_step hold_unlisted(const struct devicemgr *mgr, struct create *create,
                                      const char *resource, struct create_refusal *refusal)
{
    if ((mgr->listed && !mgr->rows_lost) || !core_settings_of(mgr, resource)->exclusive)
        return STEP_GO;
    create->blocks |= BLOCK_HOLDER;
    create_name(create, resource, &refusal->text);
    text_add(&refusal->text,
             "the runtime has not listed its containers %s, so that it is not known "
             "who holds which device",
             mgr->listed ? "again since state was lost" : "yet");
    return STEP_HOLD;
}

/* Whether a later container of the pod runs with one of its devices. */
static bool handed_on(const struct devicemgr *mgr, const struct create *create,
                      const struct allocation *held)
{
    for (size_t i = 0; i < held->ids.len; i++) {
        size_t holders_len;
        struct allocation *const *holders =
            allocations_holders(&mgr->allocations, held->resource, held->ids.v[i], &holders_len);

        for (size_t h = 0; h < holders_len; h++) {
            if (holders[h] != held && same_pod(create, holders[h]) &&
                said_to_run(mgr, create, holders[h]))
                return true;
        }
    }
    return false;
}

/* The devices are ours now: other pods' allocations of them, idle all, are over. A device shared
 * with another container of the same pod stays in both, one of a resource that shares in all. */
static void evict_holders(struct devicemgr *mgr, struct create *create,
                          const struct allocation *allocation)
{
    if (!core_settings_of(mgr, allocation->resource)->exclusive)
        return;
    for (size_t i = 0; i < allocation->ids.len; i++) {
        struct allocation *const *holders;
        size_t holders_len, h = 0;

        holders = allocations_holders(&mgr->allocations, allocation->resource, allocation->ids.v[i],
                                      &holders_len);
        while (h < holders_len) {
            struct text text = {0};

            if (same_pod(create, holders[h])) {
                h++;
                continue;
            }
            text_add(&text, "resource %s: taken from ", allocation->resource);
            core_name_holder(mgr, holders[h], &text);
            text_add(&text, ", which no longer runs: device ids ");
            text_add_ids(&text, &holders[h]->ids);
            core_log(mgr, LEVEL_INFO, &text);
            core_drop_allocation(mgr, holders[h]);
            holders = allocations_holders(&mgr->allocations, allocation->resource,
                                          allocation->ids.v[i], &holders_len);
        }
    }
}

/* ---- the shim chooses ---- */

struct pool {
    struct candidate
        *candidates; /* free ones, in natural order of ids; healthy ones first counted */
    size_t len;
    size_t reused;
    size_t free; /* healthy or not */
};

/* Whether the device is free for this pod; sets `reused` if an earlier container of it had it. */
static bool device_free(struct devicemgr *mgr, const struct create *create, const char *resource,
                        const char *id, bool *reused)
{
    size_t holders_len;
    struct allocation *const *holders =
        allocations_holders(&mgr->allocations, resource, id, &holders_len);

    *reused = false;
    if (!core_settings_of(mgr, resource)->exclusive)
        return true;
    for (size_t i = 0; i < holders_len; i++) {
        if (allocation_life(holders[i]) != ALLOCATION_IDLE)
            return false;
        if (same_pod(create, holders[i]))
            *reused = true;
        else if (!core_pod_over(mgr, holders[i]->pod_uid))
            return false;
    }
    return !kubelet_promised(mgr, resource, id, create->pod_uid, create->container);
}

static struct pool pool_fill(struct devicemgr *mgr, const struct create *create,
                             const struct resource *resource)
{
    struct pool pool = {.candidates = mem_alloc(resource->devices.len, sizeof *pool.candidates)};

    for (size_t i = 0; i < resource->devices.len; i++) {
        const struct device *device = &resource->devices.items[i];
        bool reused;

        if (!device_free(mgr, create, resource->name, device->id, &reused))
            continue;
        pool.free++;
        if (!device->healthy)
            continue;
        pool.candidates[pool.len++] = (struct candidate){.device = device, .reused = reused};
        pool.reused += reused;
    }
    return pool;
}

static enum create_step refuse_exhausted(const struct create *create,
                                         const struct resource *resource, const struct pool *pool,
                                         size_t count, struct create_refusal *refusal)
{
    bool usable = resource_usable(resource);

    create_name(create, resource->name, &refusal->text);
    text_add(&refusal->text, "too few devices: asked %zu, free %zu, healthy %zu of %zu", count,
             usable ? pool->len : pool->free, usable ? resource->devices.healthy : 0,
             resource->devices.len);
    refusal->code = CODE_RESOURCE_EXHAUSTED;
    return STEP_REFUSE;
}

static enum create_step hold_too_few_healthy(const struct devicemgr *mgr, struct create *create,
                                             const struct resource *resource,
                                             const struct pool *pool, size_t count,
                                             struct create_refusal *refusal)
{
    struct ids unhealthy = {0};

    create->blocks |= BLOCK_UNHEALTHY;
    for (size_t i = 0; i < resource->devices.len; i++) {
        if (!resource->devices.items[i].healthy)
            ids_add(&unhealthy, resource->devices.items[i].id);
    }
    hold_unhealthy(mgr, create, resource, &unhealthy, refusal);
    text_add(&refusal->text, "; asked %zu, free and healthy %zu", count, pool->len);
    ids_fini(&unhealthy);
    return STEP_HOLD;
}

static void ask_preference(struct devicemgr *mgr, struct create *create, size_t index,
                           const struct resource *resource, const struct pool *pool)
{
    const struct request_item *want = create->items[index].want;
    struct ids available = {0};
    struct action *action;
    uint64_t timeout_ms = core_settings_of(mgr, resource->name)->allocate_timeout_ms;

    for (size_t i = 0; i < pool->len; i++)
        ids_add(&available, pool->candidates[i].device->id);
    action = create_call(mgr, create, index, CALL_PREFER, resource, &available,
                         timeout_ms < PREFER_TIMEOUT_MS ? timeout_ms : PREFER_TIMEOUT_MS);
    action->size = want->count;
    for (size_t i = 0; i < pool->len; i++) {
        if (pool->candidates[i].reused)
            ids_add(&action->must_include, pool->candidates[i].device->id);
    }
    create->items[index].prefer = PREFER_ASKED;
    ids_fini(&create->items[index].offered);
    create->items[index].offered = available;
}

/* The plugin is asked only if its answer can make a difference. */
static bool wants_preference(const struct create_item *item, const struct resource *resource,
                             const struct pool *pool)
{
    return !resource->builtin && resource->endpoint.preferred && item->prefer == PREFER_NOT_ASKED &&
           pool->reused < item->want->count && pool->len > item->want->count;
}

static enum create_step choose_from(struct devicemgr *mgr, struct create *create, size_t index,
                                    const struct resource *resource, const struct pool *pool,
                                    struct ids *ids, struct create_refusal *refusal)
{
    struct create_item *item = &create->items[index];
    size_t count = item->want->count;

    if (!resource_usable(resource) && (resource->devices.len == 0 || pool->free >= count))
        return hold_endpoint(mgr, create, resource, ids, refusal);
    if (pool->free < count)
        return refuse_exhausted(create, resource, pool, count, refusal);
    if (pool->len < count)
        return hold_too_few_healthy(mgr, create, resource, pool, count, refusal);
    if (wants_preference(item, resource, pool))
        ask_preference(mgr, create, index, resource, pool);
    if (item->prefer == PREFER_ASKED) {
        create->blocks |= BLOCK_PREFER;
        return STEP_CALL;
    }
    choose_devices(pool->candidates, pool->len, &item->preferred, count, ids);
    return STEP_GO;
}

/* Earlier containers of the pod may hand their devices on: whether they still run must be known. */
static enum create_step settle_own_pod(struct devicemgr *mgr, struct create *create,
                                       const char *resource, struct create_refusal *refusal)
{
    enum create_step worst = STEP_GO;

    if (!core_settings_of(mgr, resource)->exclusive)
        return STEP_GO; /* nothing is handed on */
    for (struct allocation *a = allocations_of_pod(&mgr->allocations, create->pod_uid); a;
         a = a->pod_next) {
        struct create_refusal ignored = {0};

        if (strcmp(a->resource, resource) != 0 || allocation_life(a) != ALLOCATION_LIVE)
            continue;
        if (holder_idle(mgr, create, a, a->ids.v[0], &ignored) == STEP_HOLD) {
            worst = STEP_HOLD;
            *refusal = ignored;
        }
    }
    return worst;
}

static enum create_step choose(struct devicemgr *mgr, struct create *create, size_t index,
                               struct ids *ids, struct create_refusal *refusal)
{
    const char *name = create->items[index].want->resource;
    const struct resource *resource = resources_find(mgr->resources, name);
    enum create_step step;
    struct pool pool;

    if (!resource)
        return refuse_unknown(mgr, create, create->items[index].want, refusal);
    step = hold_unlisted(mgr, create, name, refusal);
    if (step == STEP_GO)
        step = settle_own_pod(mgr, create, name, refusal);
    if (step != STEP_GO)
        return step;
    pool = pool_fill(mgr, create, resource);
    step = choose_from(mgr, create, index, resource, &pool, ids, refusal);
    free(pool.candidates);
    return step;
}

/* ---- one item ---- */

static enum create_step refuse_changed(const struct create *create, const struct request_item *want,
                                       const struct allocation *held,
                                       struct create_refusal *refusal)
{
    create_name(create, NULL, &refusal->text);
    text_add(&refusal->text, "changed request for resource %s from %zu to %zu", want->resource,
             held->ids.len, want->count);
    refusal->code = CODE_FAILED_PRECONDITION;
    return STEP_REFUSE;
}

/* GO with *held: what the container has already; with NULL: it has nothing (any more). */
static enum create_step find_held(struct devicemgr *mgr, struct create *create,
                                  const struct request_item *want, struct allocation **held,
                                  struct create_refusal *refusal)
{
    struct allocation *allocation =
        allocations_find(&mgr->allocations, create->pod_uid, create->container, want->resource);
    enum create_step step;

    *held = NULL;
    if (!allocation)
        return STEP_GO;
    if (allocation->queued || allocation->commit) {
        /* of an earlier create, given up while its commit was under way */
        create->blocks |= BLOCK_COMMIT;
        return STEP_CALL;
    }
    if (allocation_life(allocation) == ALLOCATION_BUSY) /* a forwarded one, not answered yet */
        return holder_idle(mgr, create, allocation, allocation->ids.v[0], refusal);
    if (allocation->ids.len != want->count)
        return refuse_changed(create, want, allocation, refusal);
    if (!want->token || ids_equal(&allocation->ids, &want->ids)) {
        *held = allocation;
        return STEP_GO;
    }
    /* The kubelet has decided anew; what it gave before is free once that container is gone. */
    step = holder_idle(mgr, create, allocation, allocation->ids.v[0], refusal);
    if (step == STEP_GO)
        core_drop_allocation(mgr, allocation);
    return step;
}

/* Whether the ids can be had: usable, and no other container's. */
static enum create_step take_ids(struct devicemgr *mgr, struct create *create,
                                 const struct request_item *want, const struct ids *ids,
                                 const struct allocation *held, struct create_refusal *refusal)
{
    enum create_step step = STEP_GO;

    /* What was handed on is not waited for, usable or not: others may be free. */
    if (held && !want->token)
        step = ids_free(mgr, create, want->resource, ids, held, refusal);
    if (step == STEP_GO)
        step = create_item_usable(mgr, create, want, ids, refusal);
    if (step == STEP_GO)
        step = ids_free(mgr, create, want->resource, ids, held, refusal);
    if (step == STEP_GO && !held)
        step = hold_unlisted(mgr, create, want->resource, refusal);
    return step;
}

static void reserve(struct devicemgr *mgr, const struct create *create,
                    const struct request_item *want, const struct ids *ids, struct allocation *held)
{
    if (!held) {
        held = allocations_add(&mgr->allocations, create->pod_uid, create->container,
                               want->resource, ids);
        held->tentative = held->own_choice = !want->token;
    }
    if (held->own_choice == want->token) {
        held->own_choice = !want->token; /* it could not be told before */
        checkpoint_touch_allocation(mgr, held);
    }
    allocation_set_create(held, create->number);
    if (want->token)
        kubelet_check_token(mgr, held, create->started_ms);
}

/* GO: the item's devices are reserved, or were held before. */
static enum create_step select_item(struct devicemgr *mgr, struct create *create, size_t index,
                                    struct create_refusal *refusal)
{
    const struct request_item *want = create->items[index].want;
    struct allocation *held;
    struct ids ids = {0};
    enum create_step step = find_held(mgr, create, want, &held, refusal);

    if (step != STEP_GO)
        return step;
    if (held)
        ids_copy(&ids, held->ids.v, held->ids.len);
    else if (want->token)
        ids_copy(&ids, want->ids.v, want->ids.len);
    else
        step = choose(mgr, create, index, &ids, refusal);
    if (step == STEP_GO)
        step = take_ids(mgr, create, want, &ids, held, refusal);
    if (step == STEP_GO)
        reserve(mgr, create, want, &ids, held);
    ids_fini(&ids);
    if (step != STEP_REFUSE || !held || want->token || !handed_on(mgr, create, held))
        return step;
    core_drop_allocation(mgr, held); /* it was not running then: the shim chooses anew */
    *refusal = (struct create_refusal){0};
    return select_item(mgr, create, index, refusal);
}

enum create_step create_select(struct devicemgr *mgr, struct create *create,
                               struct create_refusal *refusal)
{
    enum create_step worst = STEP_GO;

    for (size_t i = 0; i < create->request.len && worst != STEP_REFUSE; i++) {
        struct create_refusal of_item = {0};
        enum create_step step = select_item(mgr, create, i, &of_item);

        create_worst(mgr, &create->items[i], step, &of_item, &worst, refusal);
    }
    if (worst != STEP_GO) {
        create_release(mgr, create);
        return worst;
    }
    for (size_t i = 0; i < create->request.len; i++)
        evict_holders(mgr, create,
                      allocations_find(&mgr->allocations, create->pod_uid, create->container,
                                       create->request.items[i].resource));
    return STEP_GO;
}

void create_release(struct devicemgr *mgr, struct create *create)
{
    for (size_t i = 0; i < create->request.len; i++) {
        struct allocation *allocation =
            allocations_find(&mgr->allocations, create->pod_uid, create->container,
                             create->request.items[i].resource);

        if (!allocation || allocation->create != create->number)
            continue;
        allocation_set_create(allocation, 0);
        if (allocation->commit)
            continue; /* the commit decides */
        if (allocation->durable)
            allocation_revert(allocation);
        else
            core_remove_allocation(mgr, allocation);
    }
}
