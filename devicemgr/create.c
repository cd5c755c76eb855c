#include "devicemgr/create.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/moment.h"
#include "devicemgr/options.h"
#include "devicemgr/usable.h"

struct create *creates_find(const struct devicemgr *mgr, uint64_t number)
{
    struct create *create;

    HASH_FIND(hh, mgr->creates, &number, sizeof number, create);
    return create;
}

struct allocation *create_allocation(const struct devicemgr *mgr, const struct create *create,
                                     size_t index)
{
    return allocations_find(&mgr->allocations, create->demand.pod_uid, create->demand.container,
                            create->demand.request.items[index].resource);
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

static void leave_committing(struct devicemgr *mgr, struct create *create)
{
    DL_DELETE2(mgr->committing, create, commit_prev, commit_next);
    create->commit = 0;
}

/* The one place where a create moves. */
static void set_state(struct devicemgr *mgr, struct create *create, enum create_state state)
{
    assert(may_move(create->state, state));
    if (create->state == CREATE_COMMITTING)
        leave_committing(mgr, create);
    create->state = state;
    if (state == CREATE_COMMITTING)
        DL_APPEND2(mgr->committing, create, commit_prev, commit_next);
}

/* ---- the end ---- */

void create_free(struct devicemgr *mgr, struct create *create)
{
    HASH_DEL(mgr->creates, create);
    wake_leave(mgr, create);
    if (create->state == CREATE_COMMITTING)
        leave_committing(mgr, create);
    for (size_t i = 0; create->items && i < create->demand.request.len; i++) {
        ids_fini(&create->items[i].offered);
    }
    free(create->items);
    demand_fini(&create->demand);
    free(create);
}

void creates_fini(struct devicemgr *mgr)
{
    struct create *create, *next;

    HASH_ITER(hh, mgr->creates, create, next)
    {
        create_free(mgr, create);
    }
}

void create_push_refusal(struct devicemgr *mgr, const struct create *create,
                         const struct reason *reason)
{
    struct action *action = action_push(&mgr->actions, ACTION_VERDICT, create->number);
    struct text text = {0}, hidden = {0};

    reason_explain(mgr, &create->demand, reason, &text);
    action->code = reason_code(reason->kind);
    action->text = mem_strdup(text.buf);
    if (reason_explain_hidden(mgr, &create->demand, reason, &hidden))
        core_log(mgr, LEVEL_DEBUG, &hidden);
}

void create_abandon(struct devicemgr *mgr, struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++)
        create_call_cancel(mgr, &create->items[i]);
    create_release(mgr, create);
}

void create_refuse(struct devicemgr *mgr, struct create *create, const struct reason *reason)
{
    create_push_refusal(mgr, create, reason);
    create_abandon(mgr, create);
    create_free(mgr, create);
}

/* ---- ALLOCATING ---- */

static bool options_in_force(const struct devicemgr *mgr, const struct allocation *allocation,
                             const struct resource *resource)
{
    enum devicemgr_refresh refresh = core_settings_of(mgr, resource->name)->refresh;

    if (allocation->fresh)
        return true;
    if (!allocation->options)
        return false;
    if (refresh == DEVICEMGR_REFRESH_NEVER)
        return true;
    if (mgr->settings.boot_id[0] == '\0' || /* not known, so never the same as another */
        strcmp(allocation->boot_id, mgr->settings.boot_id) != 0)
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

static struct look allocate_item(struct devicemgr *mgr, struct create *create, size_t index)
{
    const struct request_item *want = create->demand.items[index].want;
    struct create_item *item = &create->items[index];
    struct allocation *allocation = create_allocation(mgr, create, index);
    const struct resource *resource;
    struct look look = usable_ids(mgr, want, &allocation->ids);

    if (look.step != LOOK_GO)
        return look;
    resource = resources_find(mgr->resources, want->resource);
    if (resource->builtin) {
        allocate_builtin(allocation, resource);
        return look;
    }
    if (options_in_force(mgr, allocation, resource))
        return look;
    if (!item->call)
        create_call(mgr, create, index, CALL_ALLOCATE, resource, &allocation->ids,
                    core_settings_of(mgr, resource->name)->allocate_timeout_ms);
    return create_call_look(mgr, create, index);
}

/* ---- COMMITTING ---- */

/* Queues what is new for the next commit; false: nothing is. */
static bool queue_rows(struct devicemgr *mgr, struct create *create)
{
    bool queued = false;

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation = create_allocation(mgr, create, i);

        if (allocation->row == ALLOCATION_DURABLE && !allocation->fresh)
            continue;
        allocation_queue(allocation);
        checkpoint_touch_allocation(mgr, allocation);
        checkpoint_touch_pod(mgr, create->demand.pod_uid);
        queued = true;
    }
    return queued;
}

void creates_commit_began(struct devicemgr *mgr, uint64_t commit)
{
    for (struct create *create = mgr->committing; create; create = create->commit_next)
        create->commit = create->commit ? create->commit : commit;
}

void creates_committed(struct devicemgr *mgr, uint64_t commit, const char *error)
{
    struct create *create, *next;

    DL_FOREACH_SAFE2(mgr->committing, create, next, commit_next)
    {
        const struct reason reason = {.kind = REASON_STORE_FAILED,
                                      .resource = create->demand.request.items[0].resource,
                                      .words = error};

        if (create->commit != commit)
            continue;
        if (!error) {
            set_state(mgr, create, CREATE_PRESTARTING);
            wake_create(mgr, create);
            continue;
        }
        create_refuse(mgr, create, &reason);
    }
}

/* ---- PRESTARTING ---- */

static struct look prestart_item(struct devicemgr *mgr, struct create *create, size_t index)
{
    const struct request_item *want = create->demand.items[index].want;
    struct create_item *item = &create->items[index];
    struct allocation *allocation = create_allocation(mgr, create, index);
    const struct resource *resource;
    struct look look = usable_ids(mgr, want, &allocation->ids);

    if (look.step != LOOK_GO)
        return look;
    resource = resources_find(mgr->resources, want->resource);
    if (!item->call && (resource->builtin || !resource->endpoint.pre_start ||
                        item->prestarted == resource->endpoint.number))
        return look;
    if (!item->call)
        create_call(mgr, create, index, CALL_PRESTART, resource, &allocation->ids,
                    mgr->settings.prestart_timeout_ms);
    return create_call_look(mgr, create, index);
}

/* ---- the run through the states ---- */

static struct look each_item(struct devicemgr *mgr, struct create *create,
                             struct look (*look_at)(struct devicemgr *, struct create *, size_t))
{
    struct look look = {0};

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct look of_item = look_at(mgr, create, i);

        look_add(&look, &of_item,
                 core_settings_of(mgr, create->demand.request.items[i].resource)->hold_ms);
    }
    return look;
}

/* Does the work of the state the create is in, as far as it can be done now. */
static struct look work(struct devicemgr *mgr, struct create *create)
{
    struct look look = usable_sandbox(mgr, &create->demand);

    if (look.reason.kind == REASON_SANDBOX_NOT_READY)
        runtime_list_soon(mgr);
    if (look.step != LOOK_GO)
        return look;
    switch (create->state) {
    case CREATE_SELECTING:
        return create_take(mgr, create);
    case CREATE_ALLOCATING:
        return each_item(mgr, create, allocate_item);
    case CREATE_PRESTARTING:
        return each_item(mgr, create, prestart_item);
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

static void next_state(struct devicemgr *mgr, struct create *create)
{
    switch (create->state) {
    case CREATE_SELECTING:
        set_state(mgr, create, CREATE_ALLOCATING);
        break;
    case CREATE_ALLOCATING:
        set_state(mgr, create, queue_rows(mgr, create) ? CREATE_COMMITTING : CREATE_PRESTARTING);
        break;
    case CREATE_PRESTARTING:
        set_state(mgr, create, CREATE_FORWARDED);
        create_forward(mgr, create);
        break;
    case CREATE_COMMITTING: /* left by creates_committed() */
    case CREATE_FORWARDED:
        abort();
    }
}

static void hold(struct devicemgr *mgr, struct create *create, const struct look *look)
{
    struct text line = {0}, hidden = {0};

    if (!create->held) {
        text_add(&line, "held: ");
        reason_explain(mgr, &create->demand, &look->reason, &line);
        core_log(mgr, LEVEL_DEBUG, &line); /* at each try of the kubelet's */
        if (reason_explain_hidden(mgr, &create->demand, &look->reason, &hidden))
            core_log(mgr, LEVEL_DEBUG, &hidden);
        create->held = true;
        create->held_ms = mgr->now_ms;
    }
    create->hold_until_ms =
        earlier(create->held_ms + look->hold_ms,
                earlier(create->demand.started_ms + HOLD_MS_MAX, create->limit_ms));
    create->again_ms = look->again_ms > 0 ? look->again_ms : UINT64_MAX;
}

static void act_on(struct devicemgr *mgr, struct create *create, struct look *look)
{
    if (look->step == LOOK_REFUSE) {
        create_refuse(mgr, create, &look->reason);
    } else if (look->step == LOOK_WAIT && mgr->draining) {
        look->reason.ends = REASON_ENDS_BY_DRAIN;
        create_refuse(mgr, create, &look->reason);
    } else if (look->step == LOOK_WAIT) {
        hold(mgr, create, look);
        if (mgr->now_ms >= create->hold_until_ms)
            create_refuse(mgr, create, &look->reason);
    } else if (look->step == LOOK_ASK) {
        create->held = false;
        look->reason.ends = REASON_ENDS_BY_DEADLINE;
        if (mgr->now_ms >= create->limit_ms)
            create_refuse(mgr, create, &look->reason);
    }
}

static void create_advance(struct devicemgr *mgr, struct create *create)
{
    struct look look;

    do {
        look = work(mgr, create);
        if (look.step == LOOK_GO)
            next_state(mgr, create);
    } while (look.step == LOOK_GO && create->state != CREATE_FORWARDED);
    act_on(mgr, create, &look);
    look_fini(&look);
}

void devicemgr_drain(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    mgr->draining = true;
    wake_all(mgr);
}

void creates_advance(struct devicemgr *mgr)
{
    size_t len;
    uint64_t *numbers = wakes_take(mgr, &len);

    for (size_t i = 0; i < len; i++) {
        struct create *create = creates_find(mgr, numbers[i]);

        if (!create || !create->woken)
            continue;
        create->woken = false;
        if (create->state == CREATE_FORWARDED)
            continue;
        mgr->wakes.looks++;
        create_advance(mgr, create);
        create = creates_find(mgr, numbers[i]);
        if (create)
            wake_set_due(mgr, create,
                         create->state == CREATE_FORWARDED ? UINT64_MAX
                         : create->held ? earlier(create->hold_until_ms, create->again_ms)
                                        : create->limit_ms);
    }
    free(numbers);
}

void creates_check(struct devicemgr *mgr)
{
    struct create *create, *next;

    HASH_ITER(hh, mgr->creates, create, next)
    {
        enum create_state before = create->state;
        uint64_t number = create->number;

        if (before == CREATE_FORWARDED)
            continue;
        create_advance(mgr, create);
        create = creates_find(mgr, number);
        assert(!create || create->state == before); /* else it was not woken */
    }
}
