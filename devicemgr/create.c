#include "devicemgr/create.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/options.h"

/* ---- words ---- */

void create_name(const struct create *create, const char *resource, struct text *text)
{
    text_add(text, "container \"%.63s\" of pod \"", create->container);
    text_add_words(text, create->pod_namespace, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, "/");
    text_add_words(text, create->pod_name, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, "\": ");
    if (!resource)
        return;
    text_add(text, "resource ");
    text_add_words(text, resource, TEXT_WORDS_BYTES_MAX / 2);
    text_add(text, ": ");
}

struct create *creates_find(const struct devicemgr *mgr, uint64_t number)
{
    struct create *create;

    HASH_FIND(hh, mgr->creates, &number, sizeof number, create);
    return create;
}

static struct allocation *item_allocation(const struct devicemgr *mgr, const struct create *create,
                                          size_t index)
{
    return allocations_find(&mgr->allocations, create->pod_uid, create->container,
                            create->request.items[index].resource);
}

/* ---- the end ---- */

void create_free(struct devicemgr *mgr, struct create *create)
{
    HASH_DEL(mgr->creates, create);
    wake_leave(mgr, create);
    if (create->state == CREATE_COMMITTING)
        DL_DELETE2(mgr->committing, create, commit_prev, commit_next);
    for (size_t i = 0; create->items && i < create->request.len; i++) {
        ids_fini(&create->items[i].offered);
        ids_fini(&create->items[i].preferred);
    }
    free(create->items);
    request_fini(&create->request);
    free(create->sandbox_id);
    free(create->pod_uid);
    free(create->pod_namespace);
    free(create->pod_name);
    free(create->container);
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

void create_push_refusal(struct devicemgr *mgr, uint64_t number, int code, const struct text *text)
{
    struct action *action = action_push(&mgr->actions, ACTION_VERDICT, number);

    action->code = code;
    action->text = mem_strdup(text->buf);
}

static void abandon(struct devicemgr *mgr, struct create *create)
{
    for (size_t i = 0; i < create->request.len; i++)
        create_call_cancel(mgr, &create->items[i]);
    create_release(mgr, create);
}

void create_refuse(struct devicemgr *mgr, struct create *create, int code, const struct text *text)
{
    create_push_refusal(mgr, create->number, code, text);
    abandon(mgr, create);
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

static enum create_step allocate_item(struct devicemgr *mgr, struct create *create, size_t index,
                                      struct create_refusal *refusal)
{
    struct create_item *item = &create->items[index];
    struct allocation *allocation = item_allocation(mgr, create, index);
    const struct resource *resource;
    enum create_step step = create_item_usable(mgr, create, item->want, &allocation->ids, refusal);

    if (step != STEP_GO)
        return step;
    resource = resources_find(mgr->resources, item->want->resource);
    if (resource->builtin) {
        allocate_builtin(allocation, resource);
        return STEP_GO;
    }
    if (options_in_force(mgr, allocation, resource))
        return STEP_GO;
    if (!item->call)
        create_call(mgr, create, index, CALL_ALLOCATE, resource, &allocation->ids,
                    core_settings_of(mgr, resource->name)->allocate_timeout_ms);
    create->blocks |= BLOCK_ALLOCATE;
    return STEP_CALL;
}

/* ---- COMMITTING ---- */

/* Queues what is new for the next commit; false: nothing is. */
static bool queue_rows(struct devicemgr *mgr, struct create *create)
{
    bool queued = false;

    for (size_t i = 0; i < create->request.len; i++) {
        struct allocation *allocation = item_allocation(mgr, create, i);

        if (allocation->durable && !allocation->fresh)
            continue;
        allocation->queued = true;
        checkpoint_touch_allocation(mgr, allocation);
        checkpoint_touch_pod(mgr, create->pod_uid);
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
        struct text text = {0};

        if (create->commit != commit)
            continue;
        create->commit = 0;
        if (!error) {
            DL_DELETE2(mgr->committing, create, commit_prev, commit_next);
            create->state = CREATE_PRESTARTING;
            wake_create(mgr, create);
            continue;
        }
        create_name(create, create->request.items[0].resource, &text);
        text_add(&text, "the allocation cannot be stored: ");
        text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
        create_refuse(mgr, create, CODE_UNAVAILABLE, &text);
    }
}

/* ---- PRESTARTING ---- */

static enum create_step prestart_item(struct devicemgr *mgr, struct create *create, size_t index,
                                      struct create_refusal *refusal)
{
    struct create_item *item = &create->items[index];
    struct allocation *allocation = item_allocation(mgr, create, index);
    const struct resource *resource;
    enum create_step step = create_item_usable(mgr, create, item->want, &allocation->ids, refusal);

    if (step != STEP_GO)
        return step;
    resource = resources_find(mgr->resources, item->want->resource);
    if (!item->call && (resource->builtin || !resource->endpoint.pre_start ||
                        item->prestarted == resource->endpoint.number))
        return STEP_GO;
    if (!item->call)
        create_call(mgr, create, index, CALL_PRESTART, resource, &allocation->ids,
                    mgr->settings.prestart_timeout_ms);
    create->blocks |= BLOCK_PRESTART;
    return STEP_CALL;
}

/* ---- FORWARDED ---- */

/* What the shim chose is written on the container, where runtime.c finds it again. */
static void merge_token(const struct allocation *allocation, struct options_merge *merge)
{
    V1beta1__ContainerAllocateResponse *own = options_new();
    char *key = request_token_key(allocation->resource);
    char *value = request_token_value(allocation->resource, &allocation->ids);

    options_add_annotation(own, key, value);
    options_merge_add(merge, own);
    free(key);
    free(value);
    options_free(own);
}

static void log_conflicts(struct devicemgr *mgr, const struct create *create,
                          const struct options_merge *merge)
{
    struct allocation *first = item_allocation(mgr, create, 0);
    struct text text = {0};

    if (merge->conflicts == 0 || first->conflict_logged)
        return;
    first->conflict_logged = true;
    create_name(create, NULL, &text);
    text_add(&text, "its resources disagree about %zu runtime options, the first wins: ",
             merge->conflicts);
    text_add_words(&text, merge->conflict, TEXT_WORDS_BYTES_MAX);
    core_log(mgr, LEVEL_WARNING, &text);
}

static void log_forwarded(struct devicemgr *mgr, const struct create *create)
{
    struct text text = {0};

    create_name(create, NULL, &text);
    text_add(&text, "forwarded with");
    for (size_t i = 0; i < create->request.len; i++) {
        text_add(&text, " %s ", create->request.items[i].resource);
        text_add_ids(&text, &item_allocation(mgr, create, i)->ids);
    }
    core_log(mgr, LEVEL_INFO, &text);
}

/* What is written under our own prefix says who holds what: a plugin that writes there would hold
 * devices of others in its containers' names. */
static void merge_given(struct devicemgr *mgr, const struct create *create, size_t index,
                        struct options_merge *merge)
{
    const struct allocation *allocation = item_allocation(mgr, create, index);
    struct resource *resource = resources_find(mgr->resources, allocation->resource);
    size_t left_out = merge->left_out;
    struct text text = {0};

    options_merge_add(merge, allocation->options);
    if (merge->left_out == left_out || resource->planting_logged)
        return;
    resource->planting_logged = true;
    text_add(&text,
             "resource %s: its plugin's Allocate answers with annotations under \"%s\", which are "
             "the shim's own: they are left out",
             resource->name, REQUEST_KEY_PREFIX);
    core_log(mgr, LEVEL_WARNING, &text);
}

/* The tokens go in first: no plugin can overwrite what says who holds its devices. */
static void forward(struct devicemgr *mgr, struct create *create)
{
    struct action *action = action_push(&mgr->actions, ACTION_VERDICT, create->number);
    struct options_merge merge;

    options_merge_init(&merge);
    for (size_t i = 0; i < create->request.len; i++) {
        if (!create->request.items[i].token)
            merge_token(item_allocation(mgr, create, i), &merge);
    }
    merge.reserved = REQUEST_KEY_PREFIX;
    for (size_t i = 0; i < create->request.len; i++)
        merge_given(mgr, create, i, &merge);
    log_conflicts(mgr, create, &merge);
    log_forwarded(mgr, create);
    action->options = options_merge_take(&merge);
    options_merge_fini(&merge);
}

/* The containers can run from now on; the answer says under which id. */
static void settle(struct devicemgr *mgr, struct create *create, const char *container_id)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, create->sandbox_id);
    bool dead = !sandbox || sandbox->stopped;

    for (size_t i = 0; i < create->request.len; i++) {
        struct allocation *allocation = item_allocation(mgr, create, i);

        if (!allocation || allocation->create != create->number)
            continue; /* its pod was removed, and may have been made anew */
        allocation->epoch = mgr->epoch;
        if (dead)
            allocation_set_idle(allocation);
        else if (container_id)
            allocation_set_live(allocation, container_id, create->sandbox_id, create->attempt);
        else
            core_outcome_unknown(mgr, allocation, create->sandbox_id);
    }
}

/* The runtime refused it: devices that the shim chose for this container, and no container was ever
 * made with, are free for others. What the kubelet chose is the kubelet's to give back. */
static void give_up_chosen(struct devicemgr *mgr, const struct create *create)
{
    for (size_t i = 0; i < create->request.len; i++) {
        struct allocation *allocation = item_allocation(mgr, create, i);

        if (allocation && allocation->create == create->number && allocation->tentative)
            core_drop_allocation(mgr, allocation);
    }
}

void devicemgr_create_answered(struct devicemgr *mgr, uint64_t now_ms, uint64_t number,
                               const char *container_id)
{
    struct create *create = creates_find(mgr, number);

    core_at(mgr, now_ms);
    if (!create || create->state != CREATE_FORWARDED)
        return;
    if (container_id)
        settle(mgr, create, container_id);
    else
        give_up_chosen(mgr, create);
    create_release(mgr, create);
    if (container_id)
        core_release_leftovers(mgr, create->pod_uid, create->container, &create->request);
    create_free(mgr, create);
}

static bool drop_verdict(struct devicemgr *mgr, uint64_t number)
{
    for (struct action *action = mgr->actions.first; action; action = action->next) {
        if (action->kind == ACTION_VERDICT && action->subject == number) {
            action->kind = ACTION_NONE;
            return true;
        }
    }
    return false;
}

void devicemgr_create_cancelled(struct devicemgr *mgr, uint64_t now_ms, uint64_t number)
{
    struct create *create = creates_find(mgr, number);
    bool told = !drop_verdict(mgr, number);

    core_at(mgr, now_ms);
    if (!create)
        return;
    if (create->state == CREATE_FORWARDED && told)
        settle(mgr, create, NULL);
    abandon(mgr, create);
    create_free(mgr, create);
}

/* ---- the run through the states ---- */

static enum create_step refuse_terminating(const struct create *create, bool known,
                                           struct create_refusal *refusal)
{
    create_name(create, create->request.items[0].resource, &refusal->text);
    text_add(&refusal->text, "the pod is terminating: its sandbox %.12s %s", create->sandbox_id,
             known ? "was told to stop by a client of the runtime" : "was removed");
    refusal->code = CODE_FAILED_PRECONDITION;
    return STEP_REFUSE;
}

/* Whether a container can be made in the sandbox. That it is dead may be old news: a runtime that
 * comes back may list it as not ready for a moment. */
static enum create_step sandbox_open(struct devicemgr *mgr, struct create *create,
                                     struct create_refusal *refusal)
{
    const struct sandbox *sandbox = pods_find_sandbox(&mgr->pods, create->sandbox_id);

    if (!sandbox || sandbox->stopping)
        return refuse_terminating(create, sandbox != NULL, refusal);
    if (!sandbox->dead)
        return STEP_GO;
    runtime_list_soon(mgr);
    create->blocks |= BLOCK_SANDBOX;
    create_name(create, create->request.items[0].resource, &refusal->text);
    text_add(&refusal->text, "the runtime lists its sandbox %.12s as not ready",
             create->sandbox_id);
    refusal->hold_ms = core_settings_of(mgr, create->request.items[0].resource)->hold_ms;
    return STEP_HOLD;
}

void create_worst(const struct devicemgr *mgr, const struct create_item *item,
                  enum create_step step, const struct create_refusal *of_item,
                  enum create_step *worst, struct create_refusal *refusal)
{
    uint64_t hold_ms = core_settings_of(mgr, item->want->resource)->hold_ms;

    if (step == STEP_HOLD && *worst == STEP_HOLD && hold_ms < refusal->hold_ms)
        refusal->hold_ms = hold_ms;
    if (step <= *worst)
        return;
    *worst = step;
    *refusal = *of_item;
    refusal->hold_ms = hold_ms;
}

static enum create_step each_item(struct devicemgr *mgr, struct create *create,
                                  enum create_step (*look)(struct devicemgr *, struct create *,
                                                           size_t, struct create_refusal *),
                                  struct create_refusal *refusal)
{
    enum create_step worst = STEP_GO;

    for (size_t i = 0; i < create->request.len; i++) {
        struct create_refusal of_item = {0};
        enum create_step step = look(mgr, create, i, &of_item);

        create_worst(mgr, &create->items[i], step, &of_item, &worst, refusal);
    }
    return worst;
}

/* Does the work of the state the create is in, as far as it can be done now. */
static enum create_step work(struct devicemgr *mgr, struct create *create,
                             struct create_refusal *refusal)
{
    enum create_step step = sandbox_open(mgr, create, refusal);

    if (step != STEP_GO)
        return step;
    if (create_check_pod(mgr, create, refusal) == STEP_REFUSE)
        return STEP_REFUSE; /* the runtime has told since whose sandbox it is */
    switch (create->state) {
    case CREATE_SELECTING:
        return create_select(mgr, create, refusal);
    case CREATE_ALLOCATING:
        return each_item(mgr, create, allocate_item, refusal);
    case CREATE_COMMITTING:
        create->blocks |= BLOCK_COMMIT;
        return STEP_CALL;
    case CREATE_PRESTARTING:
        return each_item(mgr, create, prestart_item, refusal);
    case CREATE_FORWARDED:
        break;
    }
    return STEP_CALL;
}

static void next_state(struct devicemgr *mgr, struct create *create)
{
    switch (create->state) {
    case CREATE_SELECTING:
        create->state = CREATE_ALLOCATING;
        break;
    case CREATE_ALLOCATING:
        create->state = queue_rows(mgr, create) ? CREATE_COMMITTING : CREATE_PRESTARTING;
        if (create->state == CREATE_COMMITTING)
            DL_APPEND2(mgr->committing, create, commit_prev, commit_next);
        break;
    case CREATE_PRESTARTING:
        create->state = CREATE_FORWARDED;
        forward(mgr, create);
        break;
    case CREATE_COMMITTING: /* left by creates_committed() */
    case CREATE_FORWARDED:
        abort();
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void hold(struct devicemgr *mgr, struct create *create, const struct create_refusal *why)
{
    struct text line = {0};

    if (!create->held) {
        text_add(&line, "held: %s", why->text.buf);
        core_log(mgr, LEVEL_DEBUG, &line); /* at each try of the kubelet's */
        create->held = true;
        create->held_ms = mgr->now_ms;
    }
    create->hold_until_ms = earlier(create->held_ms + why->hold_ms,
                                    earlier(create->started_ms + HOLD_MS_MAX, create->limit_ms));
}

/* The client's deadline ends while a call is under way. */
static void refuse_late(struct devicemgr *mgr, struct create *create)
{
    struct text text = {0};
    size_t i = 0;

    if (create->blocks & BLOCK_COMMIT) {
        create_name(create, create->request.items[0].resource, &text);
        text_add(&text, "state was not stored within ");
        text_add_duration(&text, mgr->now_ms - create->started_ms);
    } else {
        while (!create->items[i].call)
            i++;
        create_name(create, create->request.items[i].resource, &text);
        create_call_explain(mgr, &create->items[i], &text);
    }
    text_add(&text, ", and the client's deadline ends");
    create_refuse(mgr, create, CODE_DEADLINE_EXCEEDED, &text);
}

static void create_advance(struct devicemgr *mgr, struct create *create)
{
    struct create_refusal refusal;
    enum create_step step;

    do {
        refusal = (struct create_refusal){.code = CODE_UNAVAILABLE};
        create->blocks = 0;
        step = work(mgr, create, &refusal);
        if (step == STEP_GO)
            next_state(mgr, create);
    } while (step == STEP_GO && create->state != CREATE_FORWARDED);
    if (step == STEP_REFUSE) {
        create_refuse(mgr, create, refusal.code, &refusal.text);
    } else if (step == STEP_HOLD && mgr->draining) {
        text_add(&refusal.text, "; the shim is being stopped");
        create_refuse(mgr, create, CODE_UNAVAILABLE, &refusal.text);
    } else if (step == STEP_HOLD) {
        hold(mgr, create, &refusal);
        if (mgr->now_ms >= create->hold_until_ms)
            create_refuse(mgr, create, CODE_UNAVAILABLE, &refusal.text);
    } else if (step == STEP_CALL) {
        create->held = false;
        if (mgr->now_ms >= create->limit_ms)
            refuse_late(mgr, create);
    }
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
                         : create->held                    ? create->hold_until_ms
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
