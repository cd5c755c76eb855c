/*
 * The run of a create through its states.
 */
#include "devicemgr/machines/create.h"

#include <assert.h>

#include <utlist.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/ended.h"
#include "devicemgr/rules/usable.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"
#include "devicemgr/things/options.h"

/* ---- the state ---- */

static bool may_move(enum create_state from, enum create_state to)
{
    switch (from) {
    case CREATE_SELECTING:
        return to == CREATE_ALLOCATING;
    case CREATE_ALLOCATING:
        return to == CREATE_COMMITTING || to == CREATE_PRESTARTING;
    case CREATE_COMMITTING:
        return to == CREATE_PRESTARTING;
    case CREATE_PRESTARTING:
        return to == CREATE_FORWARDED;
    case CREATE_FORWARDED:
        break;
    }
    return false;
}

/* Asserts that the picture in create.h has the move. */
static void create_set_state(struct creates *creates, struct create *create,
                             enum create_state state)
{
    assert(may_move(create->state, state));
    if (create->state == CREATE_COMMITTING) {
        DL_DELETE2(creates->committing, create, commit_prev, commit_next);
        create->commit = 0;
    }
    create->state = state;
    if (state == CREATE_COMMITTING)
        DL_APPEND2(creates->committing, create, commit_prev, commit_next);
    if (state == CREATE_FORWARDED)
        wake_decided(&creates->state->wakes, &create->waiter);
}

/* ---- ALLOCATING ---- */

static bool options_in_force(const struct state *state, const struct wanted *wanted)
{
    const struct allocation *allocation = wanted->has;
    enum devicemgr_refresh refresh = wanted->settings->refresh;

    if (allocation->fresh)
        return true;
    if (!allocation->options)
        return false;
    if (usable_unread(state, allocation->options)) /* it may give them in another way by now */
        return false;
    if (refresh == DEVICEMGR_REFRESH_NEVER)
        return true;
    if (!same_boot(allocation->boot_id, state->settings.boot_id))
        return false;
    return refresh == DEVICEMGR_REFRESH_REBOOT ||
           allocation->generation == wanted->resource->generation;
}

/* A built-in device's options cost nothing, so they always follow the config. */
static void allocate_builtin(struct state *state, const struct wanted *wanted)
{
    struct allocation *allocation = allocations_mutable(&state->allocations, wanted->has);
    V1beta1__ContainerAllocateResponse *options =
        resource_builtin_options(wanted->resource, &allocation->ids);

    if (allocation->options && options_equal(allocation->options, options))
        options_free(options);
    else
        allocation_set_fresh(allocation, options, wanted->resource->generation);
}

static struct look allocate_item(struct creates *creates, struct create *create, size_t index,
                                 const struct wanted *wanted)
{
    const struct call_question asks = {.kind = CALL_ALLOCATE,
                                       .ids = &wanted->has->ids,
                                       .timeout_ms = wanted->settings->allocate_timeout_ms,
                                       .at_once = wanted->settings->allocates_at_once};

    if (wanted->resource->builtin)
        allocate_builtin(creates->state, wanted);
    if (wanted->resource->builtin || options_in_force(creates->state, wanted))
        return (struct look){0};
    create_call(creates, create, index, wanted->resource, asks);
    return create_call_look(create, index);
}

/* ---- COMMITTING ---- */

/* Likewise, that it may run with claims. */
static bool queue_claims(struct state *state, const struct demand *demand)
{
    bool queued = false;

    for (struct claim *c = state->claims.by_key; c; c = c->hh.next) {
        if (!claimed_unstored(state, c, demand->sandbox_id, demand->container))
            continue;
        dirty_touch_claim(state, c); /* the commit under way may fail, or be from before */
        queued = true;
    }
    return queued;
}

/* Queues what is new for the next commit; false: nothing is. */
static bool queue_rows(struct state *state, const struct create *create)
{
    bool queued = queue_claims(state, &create->demand);

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation =
            allocations_mutable(&state->allocations, create->wanted[i].has);

        if (allocation->row == ALLOCATION_DURABLE && !allocation->fresh)
            continue;
        allocation_queue(allocation);
        dirty_touch_allocation(state, allocation);
        dirty_touch_pod(state, allocation->pod_uid);
        if (create->wanted[i].settings->exclusive)
            ledger_forget_before(state, allocation);
        queued = true;
    }
    return queued;
}

void creates_commit_began(struct creates *creates, uint64_t commit)
{
    for (struct create *create = creates->committing; create; create = create->commit_next)
        create->commit = create->commit ? create->commit : commit;
}

/* Whether all that it gets was stored once, whatever became of this commit: what plugins have given
 * anew is in force all the same. */
static bool is_kept(struct state *state, const struct create *create)
{
    if (!claimed_stored(state, create->demand.sandbox_id, create->demand.container))
        return false;
    for (size_t i = 0; i < create->demand.request.len; i++) {
        const struct allocation *allocation = create_allocation(state, create, i);

        if (!allocation || !allocation->options)
            return false;
    }
    return true;
}

/* NULL: it has claims only. */
static const char *first_resource(const struct create *create)
{
    return create->demand.request.len > 0 ? create->demand.request.items[0].resource : NULL;
}

void creates_committed(struct creates *creates, uint64_t commit, const char *error)
{
    struct create *create, *next;

    DL_FOREACH_SAFE2(creates->committing, create, next, commit_next)
    {
        const struct reason reason = {
            .kind = REASON_STORE_FAILED, .resource = first_resource(create), .words = error};

        if (create->commit != commit)
            continue;
        if (!error || is_kept(creates->state, create)) {
            create_set_state(creates, create, CREATE_PRESTARTING);
            wake_one(&creates->state->wakes, &create->waiter);
            continue;
        }
        create_refuse(creates, create, &reason);
    }
}

/* ---- PRESTARTING ---- */

static struct look prestart_item(struct creates *creates, struct create *create, size_t index,
                                 const struct wanted *wanted)
{
    const struct resource *resource = wanted->resource;
    const struct create_item *item = &create->items[index];
    const struct call_question asks = {.kind = CALL_PRESTART,
                                       .ids = &wanted->has->ids,
                                       .timeout_ms = creates->state->settings.prestart_timeout_ms};

    if (!item->call && (resource->builtin || !resource->endpoint.pre_start ||
                        item->prestarted == resource->endpoint.number))
        return (struct look){0};
    create_call(creates, create, index, resource, asks);
    return create_call_look(create, index);
}

/* ---- the run through the states ---- */

/* What it goes on with, as far as can be told: what is new is stored before. */
static const V1beta1__ContainerAllocateResponse *given(const struct create *create,
                                                       const struct allocation *allocation)
{
    return create->state == CREATE_ALLOCATING && allocation->fresh ? allocation->fresh
                                                                   : allocation->options;
}

/* Of all whose devices may be used; `usable`: that was seen already, in this look. */
static struct look allocate_or_prestart(struct creates *creates, struct create *create, bool usable)
{
    struct look look = {0};

    for (size_t i = 0; i < create->demand.request.len; i++) {
        const struct wanted *wanted = &create->wanted[i];
        struct look of_one = {0};

        if (!usable)
            of_one = usable_ids(creates->state, wanted, &wanted->has->ids);
        if (of_one.step == LOOK_GO && create->state == CREATE_ALLOCATING)
            of_one = allocate_item(creates, create, i, wanted);
        else if (of_one.step == LOOK_GO)
            of_one = prestart_item(creates, create, i, wanted);
        if (of_one.step == LOOK_GO)
            of_one = usable_given(creates->state, wanted, given(create, wanted->has));
        if (of_one.step != LOOK_ASK)
            create->items[i].queued_ms = 0; /* it waits for something else, or for nothing */
        look_add(&look, &of_one, wanted->settings->hold_ms);
    }
    return look;
}

/* Does the work of the state the create is in, as far as it can be done now. */
static struct look work(struct creates *creates, struct create *create, bool usable)
{
    switch (create->state) {
    case CREATE_SELECTING:
        return create->demand.request.len > 0 ? create_take(creates, create) : (struct look){0};
    case CREATE_ALLOCATING:
    case CREATE_PRESTARTING:
        return allocate_or_prestart(creates, create, usable);
    case CREATE_COMMITTING:
    case CREATE_FORWARDED:
        break;
    }
    return (struct look){.step = LOOK_ASK,
                         .reason = {.kind = REASON_UNSTORED,
                                    .resource = first_resource(create),
                                    .since_ms = create->demand.started_ms}};
}

static void next_state(struct creates *creates, struct create *create)
{
    switch (create->state) {
    case CREATE_SELECTING:
        create_set_state(creates, create, CREATE_ALLOCATING);
        break;
    case CREATE_ALLOCATING:
        create_set_state(creates, create,
                         queue_rows(creates->state, create) ? CREATE_COMMITTING
                                                            : CREATE_PRESTARTING);
        break;
    case CREATE_PRESTARTING:
        create_set_state(creates, create, CREATE_FORWARDED);
        create_forward(creates->state, create);
        break;
    case CREATE_COMMITTING: /* left by creates_committed() */
    case CREATE_FORWARDED:
        abort();
    }
}

static void hold(struct state *state, struct create *create, const struct look *look)
{
    uint64_t left_ms = HOLD_MS_MAX - earlier(create->held_ms, HOLD_MS_MAX);
    struct text line = {0};

    if (!create->waiting) {
        text_add(&line, "held: ");
        create_explain(state, create, &look->reason, &line);
        /* Not louder: it comes with each try of the kubelet's. */
        state_log_about(state, LEVEL_DEBUG,
                        name_about_demand(&create->demand, look->reason.resource), &line);
        create->waiting = true;
        create->waiting_ms = state->now_ms;
    }
    create->hold_until_ms =
        earlier(create->waiting_ms + earlier(look->hold_ms, left_ms), create->limit_ms);
    create->again_ms = moment_or_never(look->again_ms);
}

/* What was found: whether the create is to be refused for it, now. */
static bool act_on(struct state *state, struct create *create, struct look *look)
{
    switch (look->step) {
    case LOOK_GO:
        break;
    case LOOK_ASK:
        create->held_ms = create_held_ms(state, create);
        create->waiting = false;
        if (state->draining && look->reason.kind == REASON_CALL_QUEUED) {
            look->reason.ends = REASON_ENDS_BY_DRAIN;
            return true;
        }
        look->reason.ends = REASON_ENDS_BY_DEADLINE;
        return state->now_ms >= create->limit_ms;
    case LOOK_WAIT:
        if (state->draining) {
            look->reason.ends = REASON_ENDS_BY_DRAIN;
            return true;
        }
        hold(state, create, look);
        return state->now_ms >= create->hold_until_ms;
    case LOOK_REFUSE:
        return true;
    }
    return false;
}

static bool is_open(const struct state *state, const char *sandbox_id)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, sandbox_id);

    return sandbox && sandbox->state == SANDBOX_OPEN;
}

/* Of one with claims only: it has them until its sandbox has ended, but for what was owed, and is
 * unprepared by now: then it has what it names by another, that is not known here. */
static struct look usable_claims(const struct state *state, const struct create *create)
{
    const struct demand *demand = &create->demand;
    struct look look = ended_pod(state, demand->pod_uid);

    if (look.step == LOOK_GO && !create->unclaimed &&
        !claimed_used(state, demand->sandbox_id, demand->container) &&
        !is_open(state, demand->sandbox_id)) {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_SANDBOX_STOPS;
    }
    return look;
}

/* False: it is over. */
static bool create_advance(struct creates *creates, struct create *create)
{
    bool usable = false, over;
    struct look look;

    wanted_look_up(creates->state, &create->demand, create->wanted);
    look = create->demand.request.len > 0 ? usable_sandbox(creates->state, create->wanted)
                                          : usable_claims(creates->state, create);
    if (look.reason.kind == REASON_SANDBOX_NOT_READY)
        listing_soon(creates->state);
    while (look.step == LOOK_GO && create->state != CREATE_FORWARDED) {
        look = work(creates, create, usable);
        if (look.step == LOOK_GO)
            next_state(creates, create);
        usable = true;
    }
    over = act_on(creates->state, create, &look);
    if (over)
        create_refuse(creates, create, &look.reason);
    look_fini(&look);
    return !over;
}

const struct demand *creates_advance(struct creates *creates, uint64_t number)
{
    struct create *create = creates_find(creates, number);

    if (!create || !create->waiter.woken)
        return NULL;
    create->waiter.woken = false;
    if (create->state == CREATE_FORWARDED)
        return NULL;
    creates->state->wakes.looks++;
    if (!create_advance(creates, create))
        return NULL;
    if (create->state == CREATE_FORWARDED)
        return &create->demand;
    wake_set_due(&creates->state->wakes, &create->waiter,
                 create->waiting ? earlier(create->hold_until_ms, create->again_ms)
                                 : create->limit_ms);
    return NULL;
}

void creates_verify(struct creates *creates)
{
    struct create *create, *next;

    HASH_ITER(hh, creates->by_number, create, next) {
        enum create_state before = create->state;

        if (before != CREATE_FORWARDED && create_advance(creates, create))
            assert(create->state == before); /* else it was not woken */
    }
}
