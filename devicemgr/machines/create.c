#include "devicemgr/machines/create.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/rules/usable.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/options.h"

struct create *creates_find(const struct creates *creates, uint64_t number)
{
    struct create *create;

    HASH_FIND(hh, creates->by_number, &number, sizeof number, create);
    return create;
}

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

static void leave_committing(struct creates *creates, struct create *create)
{
    DL_DELETE2(creates->committing, create, commit_prev, commit_next);
    create->commit = 0;
}

/* The one place where a create moves. */
static void set_state(struct creates *creates, struct create *create, enum create_state state)
{
    assert(may_move(create->state, state));
    if (create->state == CREATE_COMMITTING)
        leave_committing(creates, create);
    create->state = state;
    if (state == CREATE_COMMITTING)
        DL_APPEND2(creates->committing, create, commit_prev, commit_next);
    if (state == CREATE_FORWARDED)
        wake_decided(&creates->state->wakes, &create->waiter);
}

/* ---- the end ---- */

void create_free(struct creates *creates, struct create *create)
{
    HASH_DEL(creates->by_number, create);
    wake_leave(&creates->state->wakes, &create->waiter);
    if (create->state == CREATE_COMMITTING)
        leave_committing(creates, create);
    for (size_t i = 0; create->items && i < create->demand.request.len; i++) {
        ids_fini(&create->items[i].offered);
    }
    free(create->items);
    demand_fini(&create->demand);
    free(create);
}

void creates_fini(struct creates *creates)
{
    struct create *create, *next;

    HASH_ITER(hh, creates->by_number, create, next)
    {
        create_free(creates, create);
    }
}

void create_push_refusal(struct state *state, const struct create *create,
                         const struct reason *reason)
{
    struct action *action = action_push(&state->actions, ACTION_VERDICT, create->number);
    struct text text = {0}, hidden = {0};

    reason_explain(state, &create->demand, reason, &text);
    action->code = reason_code(reason->kind);
    action->text = mem_strdup(text.buf);
    if (reason_explain_hidden(state, &create->demand, reason, &hidden))
        state_log(state, LEVEL_DEBUG, &hidden);
}

void create_abandon(struct creates *creates, struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++)
        create_call_cancel(creates, &create->items[i]);
    create_release(creates->state, create);
}

void create_refuse(struct creates *creates, struct create *create, const struct reason *reason)
{
    create_push_refusal(creates->state, create, reason);
    create_abandon(creates, create);
    create_free(creates, create);
}

/* ---- ALLOCATING ---- */

static bool options_in_force(const struct state *state, const struct allocation *allocation,
                             const struct resource *resource)
{
    enum devicemgr_refresh refresh = state_settings_of(state, resource->name)->refresh;

    if (allocation->fresh)
        return true;
    if (!allocation->options)
        return false;
    if (refresh == DEVICEMGR_REFRESH_NEVER)
        return true;
    if (state->settings.boot_id[0] == '\0' || /* not known, so never the same as another */
        strcmp(allocation->boot_id, state->settings.boot_id) != 0)
        return false;
    return refresh == DEVICEMGR_REFRESH_REBOOT || allocation->generation == resource->generation;
}

/* A built-in device's options cost nothing, so they always follow the config. */
static void allocate_builtin(struct allocation *allocation, const struct resource *resource)
{
    V1beta1__ContainerAllocateResponse *options =
        resource_builtin_options(resource, &allocation->ids);

    if (allocation->options && options_equal(allocation->options, options))
        options_free(options);
    else
        allocation_set_fresh(allocation, options, resource->generation);
}

static struct look allocate_item(struct creates *creates, struct create *create, size_t index,
                                 struct allocation *allocation, const struct resource *resource)
{
    struct state *state = creates->state;
    struct create_item *item = &create->items[index];
    const struct look go = {0};

    if (resource->builtin) {
        allocate_builtin(allocation, resource);
        return go;
    }
    if (options_in_force(state, allocation, resource))
        return go;
    if (!item->call)
        create_call(creates, create, index, CALL_ALLOCATE, resource, &allocation->ids,
                    state_settings_of(state, resource->name)->allocate_timeout_ms);
    return create_call_look(creates, create, index);
}

/* ---- COMMITTING ---- */

/* Queues what is new for the next commit; false: nothing is. */
static bool queue_rows(struct state *state, struct create *create)
{
    bool queued = false;

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation =
            allocations_demanded(&state->allocations, &create->demand, i);

        if (allocation->row == ALLOCATION_DURABLE && !allocation->fresh)
            continue;
        allocation_queue(allocation);
        dirty_touch_allocation(state, allocation);
        dirty_touch_pod(state, create->demand.pod_uid);
        queued = true;
    }
    return queued;
}

void creates_commit_began(struct creates *creates, uint64_t commit)
{
    for (struct create *create = creates->committing; create; create = create->commit_next)
        create->commit = create->commit ? create->commit : commit;
}

void creates_committed(struct creates *creates, uint64_t commit, const char *error)
{
    struct create *create, *next;

    DL_FOREACH_SAFE2(creates->committing, create, next, commit_next)
    {
        const struct reason reason = {.kind = REASON_STORE_FAILED,
                                      .resource = create->demand.request.items[0].resource,
                                      .words = error};

        if (create->commit != commit)
            continue;
        if (!error) {
            set_state(creates, create, CREATE_PRESTARTING);
            wake_one(&creates->state->wakes, &create->waiter);
            continue;
        }
        create_refuse(creates, create, &reason);
    }
}

/* ---- PRESTARTING ---- */

static struct look prestart_item(struct creates *creates, struct create *create, size_t index,
                                 struct allocation *allocation, const struct resource *resource)
{
    struct state *state = creates->state;
    struct create_item *item = &create->items[index];
    const struct look go = {0};

    if (!item->call && (resource->builtin || !resource->endpoint.pre_start ||
                        item->prestarted == resource->endpoint.number))
        return go;
    if (!item->call)
        create_call(creates, create, index, CALL_PRESTART, resource, &allocation->ids,
                    state->settings.prestart_timeout_ms);
    return create_call_look(creates, create, index);
}

/* ---- the run through the states ---- */

typedef struct look item_look(struct creates *creates, struct create *create, size_t index,
                              struct allocation *allocation, const struct resource *resource);

/* `look_at` is for an item whose devices may be used. */
static struct look look_at_item(struct creates *creates, struct create *create, size_t index,
                                item_look *look_at)
{
    struct state *state = creates->state;
    const struct request_item *want = create->demand.items[index].want;
    struct allocation *allocation =
        allocations_demanded(&state->allocations, &create->demand, index);
    struct look look = usable_ids(state, want, &allocation->ids);

    if (look.step != LOOK_GO)
        return look;
    return look_at(creates, create, index, allocation,
                   resources_find(state->resources, want->resource));
}

static struct look each_item(struct creates *creates, struct create *create, item_look *look_at)
{
    struct look look = {0};

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct look of_item = look_at_item(creates, create, i, look_at);

        look_add(
            &look, &of_item,
            state_settings_of(creates->state, create->demand.request.items[i].resource)->hold_ms);
    }
    return look;
}

/* Does the work of the state the create is in, as far as it can be done now. */
static struct look work(struct creates *creates, struct create *create)
{
    struct look look = usable_sandbox(creates->state, &create->demand);

    if (look.reason.kind == REASON_SANDBOX_NOT_READY)
        listing_soon(creates->state);
    if (look.step != LOOK_GO)
        return look;
    switch (create->state) {
    case CREATE_SELECTING:
        return create_take(creates, create);
    case CREATE_ALLOCATING:
        return each_item(creates, create, allocate_item);
    case CREATE_PRESTARTING:
        return each_item(creates, create, prestart_item);
    case CREATE_COMMITTING:
    case CREATE_FORWARDED:
        break;
    }
    look.step = LOOK_ASK;
    look.reason = (struct reason){.kind = REASON_UNSTORED,
                                  .resource = create->demand.request.items[0].resource,
                                  .since_ms = create->demand.started_ms};
    return look;
}

static void next_state(struct creates *creates, struct create *create)
{
    switch (create->state) {
    case CREATE_SELECTING:
        set_state(creates, create, CREATE_ALLOCATING);
        break;
    case CREATE_ALLOCATING:
        set_state(creates, create,
                  queue_rows(creates->state, create) ? CREATE_COMMITTING : CREATE_PRESTARTING);
        break;
    case CREATE_PRESTARTING:
        set_state(creates, create, CREATE_FORWARDED);
        create_forward(creates->state, create);
        break;
    case CREATE_COMMITTING: /* left by creates_committed() */
    case CREATE_FORWARDED:
        abort();
    }
}

static void hold(struct state *state, struct create *create, const struct look *look)
{
    struct text line = {0}, hidden = {0};

    if (!create->waiting) {
        text_add(&line, "held: ");
        reason_explain(state, &create->demand, &look->reason, &line);
        state_log(state, LEVEL_DEBUG, &line); /* at each try of the kubelet's */
        if (reason_explain_hidden(state, &create->demand, &look->reason, &hidden))
            state_log(state, LEVEL_DEBUG, &hidden);
        create->waiting = true;
        create->waiting_ms = state->now_ms;
    }
    create->hold_until_ms =
        earlier(create->waiting_ms + look->hold_ms,
                earlier(create->demand.started_ms + HOLD_MS_MAX, create->limit_ms));
    create->again_ms = look->again_ms > 0 ? look->again_ms : UINT64_MAX;
}

static void act_on(struct creates *creates, struct create *create, struct look *look)
{
    struct state *state = creates->state;

    if (look->step == LOOK_REFUSE) {
        create_refuse(creates, create, &look->reason);
    } else if (look->step == LOOK_WAIT && state->draining) {
        look->reason.ends = REASON_ENDS_BY_DRAIN;
        create_refuse(creates, create, &look->reason);
    } else if (look->step == LOOK_WAIT) {
        hold(state, create, look);
        if (state->now_ms >= create->hold_until_ms)
            create_refuse(creates, create, &look->reason);
    } else if (look->step == LOOK_ASK) {
        create->waiting = false;
        look->reason.ends = REASON_ENDS_BY_DEADLINE;
        if (state->now_ms >= create->limit_ms)
            create_refuse(creates, create, &look->reason);
    }
}

static void create_advance(struct creates *creates, struct create *create)
{
    struct look look;

    do {
        look = work(creates, create);
        if (look.step == LOOK_GO)
            next_state(creates, create);
    } while (look.step == LOOK_GO && create->state != CREATE_FORWARDED);
    act_on(creates, create, &look);
    look_fini(&look);
}

void creates_advance(struct creates *creates, uint64_t number)
{
    struct create *create = creates_find(creates, number);

    if (!create || !create->waiter.woken)
        return;
    create->waiter.woken = false;
    if (create->state == CREATE_FORWARDED)
        return;
    creates->state->wakes.looks++;
    create_advance(creates, create);
    create = creates_find(creates, number);
    if (create && create->state != CREATE_FORWARDED)
        wake_set_due(&creates->state->wakes, &create->waiter,
                     create->waiting ? earlier(create->hold_until_ms, create->again_ms)
                                     : create->limit_ms);
}

void creates_verify(struct creates *creates)
{
    struct create *create, *next;

    HASH_ITER(hh, creates->by_number, create, next)
    {
        enum create_state before = create->state;
        uint64_t number = create->number;

        if (before == CREATE_FORWARDED)
            continue;
        create_advance(creates, create);
        create = creates_find(creates, number);
        assert(!create || create->state == before); /* else it was not woken */
    }
}
