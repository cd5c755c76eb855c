#include "devicemgr/rules/selection.h"

#include <string.h>

#include "devicemgr/rules/choose.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/rules/usable.h"

#include "devicemgr/rules/rule.h"

/* The question about one resource. */
struct question {
    const struct state *state;
    const struct demand *demand;
    const struct demand_item *item;
    const struct request_item *want;
    const struct allocation *kept; /* what the container has already; NULL: nothing */
    const struct allocation *gone; /* what it had, and is to be dropped; NULL: nothing */
    struct selection_item *answer;
};

/* ---- who has them ---- */

static void add_check(struct selection_item *answer, const struct allocation *holder)
{
    answer->checks = mem_grow(answer->checks, answer->checks_len, sizeof *answer->checks);
    answer->checks[answer->checks_len++] = holder;
}

static struct look look_at_holder(const struct question *q, const struct allocation *holder,
                                  const char *id)
{
    struct look look = holders_look_at(q->state, q->demand, holder, id);

    if (look.reason.kind == REASON_HOLDER_ASKED && look.again_ms == 0 && !holder->said.check)
        add_check(q->answer, holder);
    return look;
}

/* Whether no container but our own can be running with one of the ids, or does not mind. */
static struct look look_at_holders(const struct question *q, const struct ids *ids)
{
    struct look look = {0};

    if (!state_settings_of(q->state, q->want->resource)->exclusive)
        return look;
    for (size_t i = 0; i < ids->len; i++) {
        size_t holders_len;
        struct allocation *const *holders =
            allocations_holders(&q->state->allocations, q->want->resource, ids->v[i], &holders_len);

        for (size_t h = 0; h < holders_len; h++) {
            if (holders[h] != q->kept && holders[h] != q->gone)
                look = look_at_holder(q, holders[h], ids->v[i]);
            if (look.step != LOOK_GO)
                return look;
        }
    }
    return look;
}

/* ---- the shim chooses ---- */

/* The devices that are free for the pod. */
struct pool {
    struct candidate *candidates; /* the healthy ones, in natural order of ids */
    size_t len;
    size_t reused;
    size_t free; /* healthy or not */
};

static struct pool pool_fill(const struct question *q, const struct resource *resource)
{
    struct pool pool = {.candidates = mem_alloc(resource->devices.len, sizeof *pool.candidates)};

    for (size_t i = 0; i < resource->devices.len; i++) {
        const struct device *device = &resource->devices.items[i];
        bool reused;

        if (!holders_none(q->state, q->demand, resource->name, device->id, q->gone, &reused))
            continue;
        pool.free++;
        if (!device->healthy)
            continue;
        pool.candidates[pool.len++] = (struct candidate){.device = device, .reused = reused};
        pool.reused += reused;
    }
    return pool;
}

static struct look refuse_exhausted(const struct resource *resource, const struct pool *pool,
                                    size_t count)
{
    bool usable = resource_usable(resource);

    return (struct look){.step = LOOK_REFUSE,
                         .reason = {.kind = REASON_TOO_FEW_DEVICES,
                                    .resource = resource->name,
                                    .asked = count,
                                    .free = usable ? pool->len : pool->free,
                                    .healthy = usable ? resource->devices.healthy : 0,
                                    .all = resource->devices.len}};
}

static struct look wait_for_healthy(const struct state *state, const struct resource *resource,
                                    const struct pool *pool, size_t count)
{
    struct ids unhealthy = {0};
    struct look look;

    for (size_t i = 0; i < resource->devices.len; i++) {
        if (!resource->devices.items[i].healthy)
            ids_add(&unhealthy, resource->devices.items[i].id);
    }
    look = usable_unhealthy(state, resource, &unhealthy);
    look.reason.kind = REASON_TOO_FEW_ARE_HEALTHY;
    look.reason.asked = count;
    look.reason.free = pool->len;
    ids_fini(&unhealthy);
    return look;
}

/* The plugin is asked only if its answer can make a difference. */
static bool wants_preference(const struct demand_item *item, const struct resource *resource,
                             const struct pool *pool)
{
    return !resource->builtin && resource->endpoint.preferred &&
           item->prefer == DEMAND_PREFER_NOT_ASKED && pool->reused < item->want->count &&
           pool->len > item->want->count;
}

static void ask_plugin(struct selection_item *answer, const struct pool *pool)
{
    answer->ask_plugin = true;
    for (size_t i = 0; i < pool->len; i++) {
        ids_add(&answer->available, pool->candidates[i].device->id);
        if (pool->candidates[i].reused)
            ids_add(&answer->must_include, pool->candidates[i].device->id);
    }
}

static struct look choose_from(const struct question *q, const struct resource *resource,
                               const struct pool *pool, struct ids *ids)
{
    size_t count = q->want->count;

    if (!resource_usable(resource) && (resource->devices.len == 0 || pool->free >= count))
        return usable_away(resource, ids);
    if (pool->free < count)
        return refuse_exhausted(resource, pool, count);
    if (pool->len < count)
        return wait_for_healthy(q->state, resource, pool, count);
    if (wants_preference(q->item, resource, pool))
        ask_plugin(q->answer, pool);
    if (q->answer->ask_plugin || q->item->prefer == DEMAND_PREFER_ASKED)
        return (struct look){.step = LOOK_ASK, .reason.resource = resource->name};
    choose_devices(pool->candidates, pool->len, &q->item->preferred, count, ids);
    return (struct look){0};
}

/* Earlier containers of the pod may hand their devices on: whether they still run must be known. */
static struct look look_at_own_pod(const struct question *q)
{
    const char *resource = q->want->resource;
    struct look look = {0};

    if (!state_settings_of(q->state, resource)->exclusive)
        return look; /* nothing is handed on */
    for (const struct allocation *a =
             allocations_of_pod(&q->state->allocations, q->demand->pod_uid);
         a; a = a->pod_next) {
        struct look of_one;

        if (a == q->gone || strcmp(a->resource, resource) != 0 ||
            allocation_life(a) != ALLOCATION_LIVE)
            continue;
        of_one = look_at_holder(q, a, a->ids.v[0]);
        if (of_one.step == LOOK_WAIT) {
            look_fini(&look);
            look = of_one;
        } else {
            look_fini(&of_one);
        }
    }
    return look;
}

static struct look choose(const struct question *q, struct ids *ids)
{
    const struct resource *resource = resources_find(q->state->resources, q->want->resource);
    struct look look;
    struct pool pool;

    if (!resource)
        return usable_unknown(q->state, q->want);
    look = holders_listed(q->state, resource->name);
    if (look.step == LOOK_GO)
        look = look_at_own_pod(q);
    if (look.step != LOOK_GO)
        return look;
    pool = pool_fill(q, resource);
    look = choose_from(q, resource, &pool, ids);
    free(pool.candidates);
    return look;
}

/* ---- one resource ---- */

static struct look refuse_changed(const struct request_item *want, const struct allocation *kept)
{
    return (struct look){.step = LOOK_REFUSE,
                         .reason = {.kind = REASON_REQUEST_CHANGED,
                                    .resource = want->resource,
                                    .held = kept->ids.len,
                                    .asked = want->count}};
}

/* What the container has already: it is kept, or gone, or in the way. */
static struct look look_at_kept(struct question *q)
{
    const struct allocation *allocation = allocations_find(
        &q->state->allocations, q->demand->pod_uid, q->demand->container, q->want->resource);
    struct look look = {0};

    if (!allocation)
        return look;
    if (allocation_waits(allocation) & ALLOCATION_WAITS_STORE) {
        /* of an earlier create, given up while its commit was under way */
        look.step = LOOK_ASK;
        look.reason = (struct reason){.kind = REASON_UNSTORED,
                                      .resource = q->want->resource,
                                      .since_ms = q->demand->started_ms};
        return look;
    }
    if (allocation_life(allocation) == ALLOCATION_BUSY) /* a forwarded one, not answered yet */
        return look_at_holder(q, allocation, allocation->ids.v[0]);
    if (allocation->ids.len != q->want->count)
        return refuse_changed(q->want, allocation);
    if (!q->want->token || ids_equal(&allocation->ids, &q->want->ids)) {
        q->kept = allocation;
        return look;
    }
    /* The kubelet has decided anew; what it gave before is free once that container is gone. */
    look = look_at_holder(q, allocation, allocation->ids.v[0]);
    if (look.step == LOOK_GO)
        q->gone = allocation;
    return look;
}

/* Whether the ids can be had: usable, and no other container's. */
static struct look look_at_ids(const struct question *q, const struct ids *ids)
{
    struct look look = {0};

    /* What was handed on is not waited for, usable or not: others may be free. */
    if (q->kept && !q->want->token)
        look = look_at_holders(q, ids);
    if (look.step == LOOK_GO)
        look = usable_ids(q->state, q->want, ids);
    if (look.step == LOOK_GO)
        look = look_at_holders(q, ids);
    if (look.step == LOOK_GO && !q->kept)
        look = holders_listed(q->state, q->want->resource);
    return look;
}

static struct look take(struct question *q)
{
    struct ids ids = {0};
    struct look look = {0};

    if (q->kept)
        ids_copy(&ids, q->kept->ids.v, q->kept->ids.len);
    else if (q->want->token)
        ids_copy(&ids, q->want->ids.v, q->want->ids.len);
    else
        look = choose(q, &ids);
    if (look.step == LOOK_GO)
        look = look_at_ids(q, &ids);
    if (look.step == LOOK_GO) {
        q->answer->kind = q->kept ? SELECTION_KEEP : SELECTION_TAKE;
        q->answer->kept = q->kept;
        q->answer->ids = ids;
        return look;
    }
    ids_fini(&ids);
    return look;
}

static struct look select_item(const struct state *state, const struct demand *demand, size_t index,
                               struct selection_item *answer)
{
    struct question q = {.state = state,
                         .demand = demand,
                         .item = &demand->items[index],
                         .want = demand->items[index].want,
                         .answer = answer};
    struct look look = look_at_kept(&q);

    if (look.step == LOOK_GO)
        look = take(&q);
    if (look.step == LOOK_REFUSE && q.kept && !q.want->token &&
        holders_handed_on(state, demand, q.kept)) {
        look_fini(&look); /* it was not running then: the shim chooses anew */
        q.gone = q.kept;
        q.kept = NULL;
        look = take(&q);
    }
    q.answer->drop = q.gone;
    return look;
}

void selection_make(const struct state *state, const struct demand *demand,
                    struct selection *selection)
{
    *selection = (struct selection){.items_len = demand->request.len};
    selection->items = mem_alloc(selection->items_len, sizeof *selection->items);
    for (size_t i = 0; i < selection->items_len && selection->look.step != LOOK_REFUSE; i++) {
        struct look look = select_item(state, demand, i, &selection->items[i]);

        look_add(&selection->look, &look,
                 state_settings_of(state, demand->request.items[i].resource)->hold_ms);
    }
}

void selection_fini(struct selection *selection)
{
    for (size_t i = 0; i < selection->items_len; i++) {
        ids_fini(&selection->items[i].ids);
        ids_fini(&selection->items[i].available);
        ids_fini(&selection->items[i].must_include);
        free(selection->items[i].checks);
    }
    free(selection->items);
    look_fini(&selection->look);
}
