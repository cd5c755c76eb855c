#include "devicemgr/rules/selection.h"

#include "devicemgr/rules/kept_back.h"
#include "devicemgr/rules/pool.h"
#include "devicemgr/rules/replaceable.h"
#include "devicemgr/rules/tainted.h"
#include "devicemgr/rules/usable.h"

#include "devicemgr/rules/rule.h"

/* ---- the shim chooses ---- */

static struct look refuse_exhausted(const struct wanted *wanted, const struct pool *pool,
                                    bool usable)
{
    const struct devices *devices = &wanted->resource->devices;

    return (struct look){.step = LOOK_REFUSE,
                         .reason = {.kind = REASON_TOO_FEW_DEVICES,
                                    .resource = wanted->want->resource,
                                    .asked = wanted->want->count,
                                    .free = usable ? pool->len : pool->free,
                                    .healthy = usable ? devices->healthy : 0,
                                    .all = devices->len}};
}

/* Of a resource that is published for claims a pod has what it had before, and no more. */
static struct look refuse_published(const struct wanted *wanted)
{
    return (struct look){.step = LOOK_REFUSE,
                         .reason = {.kind = REASON_PUBLISHED,
                                    .resource = wanted->want->resource,
                                    .words = "its pod has too few of its own that are free, and "
                                             "others are given away by ResourceClaims on this "
                                             "node"}};
}

/* The plugin is asked only if its answer can make a difference. */
static bool wants_preference(const struct wanted *wanted, const struct pool *pool)
{
    const struct resource *resource = wanted->resource;

    return !resource->builtin && resource->endpoint.has_preference &&
           wanted->want->prefer == PREFER_NOT_ASKED && pool->reused < wanted->want->count &&
           pool->len > wanted->want->count;
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

static struct look choose_from(const struct state *state, const struct wanted *wanted,
                               const struct pool *pool, struct selection_item *answer)
{
    size_t count = wanted->want->count;
    bool usable = resource_usable(wanted->resource);
    struct look withdrawn = {0};

    if (wanted->orders)
        withdrawn = kept_back_withdrawn(wanted);
    if (pool->len < count && withdrawn.step != LOOK_GO)
        return withdrawn;
    if (!usable && (wanted->resource->devices.len == 0 || pool->free >= count))
        return usable_away(wanted->resource, &wanted->want->ids); /* which names none */
    if (pool->free < count)
        return wanted->settings->dra ? refuse_published(wanted)
                                     : refuse_exhausted(wanted, pool, usable);
    if (pool->len < count && pool->len + pool->kept_back.len >= count)
        return kept_back_too_few(state, wanted, pool->len, &pool->kept_back);
    if (pool->len < count && pool->len + pool->kept_back.len + pool->tainted.len >= count)
        return tainted_too_few(state, wanted, pool->len, &pool->tainted);
    if (pool->len < count)
        return usable_too_few(state, wanted, pool->len);
    if (wants_preference(wanted, pool))
        ask_plugin(answer, pool);
    if (answer->ask_plugin || wanted->want->prefer == PREFER_ASKED)
        return (struct look){.step = LOOK_ASK, .reason.resource = wanted->want->resource};
    choose_devices(pool->candidates, pool->len, &wanted->want->preferred, count, &answer->ids);
    return (struct look){0};
}

static struct look choose(const struct state *state, const struct wanted *wanted,
                          struct selection_item *answer)
{
    struct look look;
    struct pool pool;

    if (!wanted->resource)
        return usable_unknown(state, wanted->want);
    look = holders_listed(state, wanted);
    if (look.step == LOOK_GO)
        look = holders_of_pod(state, wanted, &answer->checks);
    if (look.step != LOOK_GO)
        return look;
    pool = pool_fill(state, wanted);
    answer->looks = pool.looks;
    look = choose_from(state, wanted, &pool, answer);
    pool_fini(&pool);
    return look;
}

/* ---- it is known which ---- */

/* Whether they can be had: usable, and no other container's. */
static struct look look_at_ids(const struct state *state, const struct wanted *wanted,
                               const struct ids *ids, struct selection_item *answer)
{
    bool token = wanted->want->token;
    struct look look = {0};

    if (!token) /* handed on: that is not waited for, usable or not, since others may be free */
        look = holders_of_ids(state, wanted, ids, &answer->checks);
    if (look.step == LOOK_GO)
        look = usable_ids(state, wanted, ids);
    if (look.step == LOOK_GO && token)
        look = holders_of_ids(state, wanted, ids, &answer->checks);
    return look;
}

/* ---- some of them are lost ---- */

/* Those that are not among `ids`, nor what the kubelet gave the container. */
static void add_new(const struct wanted *wanted, const struct ids *chosen, const struct ids *ids,
                    struct ids *out)
{
    for (size_t i = 0; i < chosen->len; i++) {
        if (!ids_contain_sorted(ids, chosen->v[i]) &&
            !ids_contain_sorted(&wanted->want->ids, chosen->v[i]))
            ids_add(out, chosen->v[i]);
    }
}

/* Whether the kubelet, which may be giving what was chosen to another pod, has let go of it; sets
 * `mark`, what it is to let go of. What was asked for by annotation it knows nothing of. */
static bool let_go(const struct state *state, const struct wanted *wanted, const struct ids *ids,
                   struct selection_item *answer)
{
    const struct replacing *replacing =
        replacings_find(&state->replacings, wanted->demand, wanted->want->resource);

    if (!wanted->want->token || !wanted->settings->exclusive)
        return true;
    add_new(wanted, &answer->ids, ids, &answer->mark);
    return answer->mark.len == 0 ||
           (replacing && replacing->confirmed && ids_equal(&replacing->ids, &answer->mark));
}

/* Why others cannot be taken yet that were chosen in the place of what `lost` waits for. */
static struct look look_at_others(const struct state *state, const struct wanted *wanted,
                                  const struct ids *ids, struct look lost,
                                  struct selection_item *answer)
{
    const struct allocation *has = answer->drop ? NULL : wanted->has;
    struct look look = holders_listed(state, wanted);

    if (look.step == LOOK_GO && has)
        look = holders_look_at(state, wanted->demand, has, has->ids.v[0], &answer->checks);
    if (look.step == LOOK_GO) /* of those that stay */
        look = holders_of_ids(state, wanted, &answer->ids, &answer->checks);
    if (look.step == LOOK_GO && !let_go(state, wanted, ids, answer)) {
        lost.step = LOOK_WAIT;
        lost.reason.kind = REASON_REPLACING;
        ids_copy(&lost.reason.others, answer->mark.v, answer->mark.len);
        return lost;
    }
    look_fini(&lost);
    return look;
}

/* Whether what `look` found may be lost. */
static bool may_be_lost(const struct look *look)
{
    const struct reason *reason = &look->reason;

    if (reason->kind == REASON_DEVICES_UNHEALTHY)
        return true;
    return look->step != LOOK_GO && reason->holder &&
           holders_stand_in(reason->holder, reason->ids.v[0]);
}

/* Others in the place of what is lost of `ids`, which `look` waits for: it goes on waiting until
 * they are lost, if there are no others, and as long as these cannot be taken. */
static struct look replace(const struct state *state, const struct wanted *wanted,
                           const struct ids *ids, struct look look, struct selection_item *answer)
{
    uint64_t from_ms = UINT64_MAX;
    const struct ids *asked;
    struct look of_pod;

    if (may_be_lost(&look))
        from_ms = replaceable_from_ms(state, wanted, ids);
    if (from_ms == UINT64_MAX)
        return look;
    if (state->now_ms < from_ms) {
        look.again_ms = from_ms;
        return look;
    }
    of_pod = holders_of_pod(state, wanted, &answer->checks);
    if (of_pod.step != LOOK_GO) {
        look_fini(&look);
        return of_pod;
    }
    if (!replaceable_choose(state, wanted, ids, &answer->ids)) {
        if (look.reason.kind == REASON_DEVICES_UNHEALTHY)
            look.reason.kind = REASON_NO_OTHER_DEVICE;
        return look;
    }
    look = look_at_others(state, wanted, ids, look, answer);
    if (look.step != LOOK_GO) {
        ids_fini(&answer->ids);
        return look;
    }
    asked = wanted->want->token ? &wanted->want->ids : allocation_asked(wanted->has);
    ids_copy(&answer->instead, asked->v, asked->len);
    answer->drop = wanted->has;
    return look;
}

/* The kubelet has chosen. */
static struct look take_told(const struct state *state, const struct wanted *wanted,
                             struct selection_item *answer)
{
    const struct ids *ids = &wanted->want->ids;
    struct look look = look_at_ids(state, wanted, ids, answer);

    look = replace(state, wanted, ids, look, answer);
    if (look.step == LOOK_GO)
        look = holders_listed(state, wanted);
    if (look.step == LOOK_GO && answer->ids.len == 0)
        ids_copy(&answer->ids, ids->v, ids->len);
    return look;
}

/* ---- what the container has already ---- */

static struct look refuse_changed(const struct wanted *wanted)
{
    return (struct look){.step = LOOK_REFUSE,
                         .reason = {.kind = REASON_REQUEST_CHANGED,
                                    .resource = wanted->want->resource,
                                    .held = wanted->has->ids.len,
                                    .asked = wanted->want->count}};
}

/* Whether the kubelet has decided since that it is not the container's: it gets others, or another
 * container has its devices. That one may come without a token, and is not waited for then; nor is
 * it where the shim has put its devices in the place of what the token says. */
static bool decided_anew(const struct state *state, const struct wanted *wanted)
{
    const struct allocation *has = wanted->has;

    if (wanted->want->token && !ids_equal(allocation_asked(has), &wanted->want->ids))
        return true;
    return (!wanted->want->token || allocation_replaced(has)) && holders_promised(state, wanted);
}

/* GO: it can be kept, or is over, to be dropped; else it is in the way. */
static struct look look_at_had(const struct state *state, const struct wanted *wanted,
                               struct selection_item *answer)
{
    const struct allocation *has = wanted->has;
    struct look look = {0};

    if (allocation_waits(has) & ALLOCATION_WAITS_STORE) {
        /* of an earlier create, given up while its commit was under way */
        look.step = LOOK_ASK;
        look.reason = (struct reason){.kind = REASON_UNSTORED,
                                      .resource = wanted->want->resource,
                                      .since_ms = wanted->demand->started_ms};
    } else if (allocation_life(has) == ALLOCATION_BUSY) { /* a forwarded one, not answered yet */
        look = holders_look_at(state, wanted->demand, has, has->ids.v[0], &answer->checks);
    } else if (has->ids.len != wanted->want->count && has->tentative) {
        answer->drop = true; /* nobody ever had it */
    } else if (has->ids.len != wanted->want->count) {
        look = refuse_changed(wanted);
    } else if (decided_anew(state, wanted)) {
        /* What it had before is free once that container is gone. */
        look = holders_look_at(state, wanted->demand, has, has->ids.v[0], &answer->checks);
        answer->drop = look.step == LOOK_GO;
    }
    return look;
}

/* Whether it waits for what the shim chose, and nobody ever had: others may be free. What was
 * chosen in the place of what is lost it is to have beside what stays of that. */
static bool never_had(const struct wanted *wanted, const struct look *look)
{
    return wanted->has->tentative && wanted->has->before.len == 0 && !wanted->want->token &&
           !wanted->settings->dra && look->reason.kind == REASON_DEVICES_UNHEALTHY;
}

static struct look keep(const struct state *state, const struct wanted *wanted,
                        struct selection_item *answer)
{
    struct look look = look_at_ids(state, wanted, &wanted->has->ids, answer);

    if (never_had(wanted, &look)) {
        look_fini(&look);
        answer->drop = true;
        return (struct look){0};
    }
    if (look.step == LOOK_REFUSE && !wanted->want->token && holders_handed_on(state, wanted)) {
        look_fini(&look); /* it was not running then: the shim chooses anew */
        answer->drop = true;
    }
    return replace(state, wanted, &wanted->has->ids, look, answer);
}

/* ---- one resource, and all ---- */

struct look selection_look_at(const struct state *state, const struct wanted *wanted,
                              struct selection_item *answer)
{
    struct look look = {0};

    if (wanted->has)
        look = look_at_had(state, wanted, answer);
    if (look.step == LOOK_GO && wanted->has && !answer->drop)
        look = keep(state, wanted, answer);
    if (look.step == LOOK_GO && (!wanted->has || answer->drop) && answer->ids.len == 0)
        look =
            wanted->want->token ? take_told(state, wanted, answer) : choose(state, wanted, answer);
    if (look.step == LOOK_GO)
        answer->kind = wanted->has && !answer->drop ? SELECTION_KEEP : SELECTION_TAKE;
    return look;
}

void selection_make(const struct state *state, const struct wanted *wanted,
                    struct selection *selection)
{
    *selection = (struct selection){.items_len = wanted->demand->request.len};
    selection->items = mem_alloc(selection->items_len, sizeof *selection->items);
    for (size_t i = 0; i < selection->items_len && selection->look.step != LOOK_REFUSE; i++) {
        struct look look = selection_look_at(state, &wanted[i], &selection->items[i]);

        look_add(&selection->look, &look, wanted[i].settings->hold_ms);
    }
}

void selection_item_fini(struct selection_item *item)
{
    ids_fini(&item->ids);
    ids_fini(&item->instead);
    ids_fini(&item->mark);
    ids_fini(&item->available);
    ids_fini(&item->must_include);
    free(item->checks.v);
}

void selection_fini(struct selection *selection)
{
    for (size_t i = 0; i < selection->items_len; i++)
        selection_item_fini(&selection->items[i]);
    free(selection->items);
    look_fini(&selection->look);
}
