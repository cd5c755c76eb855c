/*
 * The state FORWARDED: the verdict with all options, and what the runtime says to it.
 */
#include "devicemgr/books/happened.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/machines/create.h"
#include "devicemgr/rules/usable.h"
#include "devicemgr/things/name.h"
#include "devicemgr/things/options.h"

/* What the shim chose is written on the container, where rebuild.c finds it again; and what that is
 * in the place of. */
static void merge_token(const struct allocation *allocation, struct options_merge *merge)
{
    V1beta1__ContainerAllocateResponse *own = options_new();
    char *key = request_token_key(allocation->resource);
    char *value = request_token_value(allocation->resource, &allocation->ids);

    options_add_annotation(own, key, value);
    free(key);
    free(value);
    if (allocation_replaced(allocation)) {
        key = request_asked_key(allocation->resource);
        value = request_token_value(allocation->resource, &allocation->asked);
        options_add_annotation(own, key, value);
        free(key);
        free(value);
    }
    options_merge_add(merge, own);
    options_free(own);
}

/* What is written under our own prefix says who holds what: a plugin that writes there would hold
 * devices of others in its containers' names. */
static void merge_given(struct state *state, const struct wanted *wanted,
                        struct options_merge *merge)
{
    size_t left_out = merge->left_out;
    struct text text = {0};

    options_merge_add(merge, wanted->has->options);
    if (merge->left_out == left_out ||
        !resource_planting_once(resources_mutable(&state->resources, wanted->resource)))
        return;
    text_add(&text,
             "resource %s: its plugin's Allocate answers with annotations under \"%s\", which are "
             "the shim's own: they are left out",
             wanted->want->resource, REQUEST_KEY_PREFIX);
    state_log_about(state, LEVEL_WARNING, name_about_demand(wanted->demand, wanted->want->resource),
                    &text);
}

/* CDI devices alone would be refused: what else it was given may do. */
static void log_unread(struct state *state, const struct wanted *wanted)
{
    struct text text = {0};

    if (wanted->has->options->n_cdi_devices == 0 || !usable_cdi_unread(state) ||
        !resource_unread_once(resources_mutable(&state->resources, wanted->resource)))
        return;
    text_add(&text,
             "resource %s: its plugin's Allocate answers with CDI devices, too, which the runtime "
             "does not read",
             wanted->want->resource);
    state_log_about(state, LEVEL_WARNING, name_about_demand(wanted->demand, wanted->want->resource),
                    &text);
}

static void log_conflicts(struct state *state, const struct wanted *first,
                          const struct options_merge *merge)
{
    struct text text = {0};

    if (merge->conflicts == 0 ||
        !allocation_conflict_once(allocations_mutable(&state->allocations, first->has)))
        return;
    name_demand(first->demand, NULL, &text);
    text_add(&text, "its resources disagree about %zu runtime options, the first wins: ",
             merge->conflicts);
    text_add_words(&text, merge->conflict, TEXT_WORDS_BYTES_MAX);
    state_log_about(state, LEVEL_WARNING, name_about_demand(first->demand, NULL), &text);
}

static void log_forwarded(struct state *state, const struct create *create)
{
    struct text text = {0};

    name_demand(&create->demand, NULL, &text);
    text_add(&text, "forwarded with");
    for (size_t i = 0; i < create->demand.request.len; i++) {
        text_add(&text, " %s ", create->wanted[i].want->resource);
        text_add_ids(&text, &create->wanted[i].has->ids);
    }
    state_log_about(state, LEVEL_INFO,
                    name_line(DEVICEMGR_LINE_ALLOCATED, name_about_demand(&create->demand, NULL)),
                    &text);
}

static void tell_replaced(struct state *state, const struct create *create, size_t index)
{
    const struct allocation *allocation = create->wanted[index].has;
    struct text words = {0}, text = {0};

    text_add(&words, "in the place of ");
    text_add_ids(&words, &allocation->asked);
    name_demand(&create->demand, allocation->resource, &text);
    text_add(&text, "has now device ids ");
    text_add_ids(&text, &allocation->ids);
    text_add(&text, " %s, lost", words.buf);
    state_log_about(state, LEVEL_WARNING,
                    name_line(DEVICEMGR_LINE_REPLACED,
                              name_about_demand(&create->demand, allocation->resource)),
                    &text);
    happened_replaced(state, allocation, words.buf);
    state->replaced++;
}

/* The tokens go in first: no plugin can overwrite what says who holds its devices. */
void create_forward(struct state *state, const struct create *create)
{
    struct action *action = action_push(&state->actions, ACTION_VERDICT, create->number);
    struct options_merge merge;

    action->held_ms = create_held_ms(state, create);
    renames_copy(&action->renames, &create->renames);
    if (create->demand.request.len == 0)
        return; /* what its claims mean the runtime finds by their names */
    options_merge_init(&merge);
    for (size_t i = 0; i < create->demand.request.len; i++) {
        const struct request_item *want = create->wanted[i].want;
        bool chosen = !want->token || want->claimed || allocation_replaced(create->wanted[i].has);

        if (chosen) /* else the kubelet has written it there */
            merge_token(create->wanted[i].has, &merge);
    }
    merge.reserved = request_is_own_key;
    for (size_t i = 0; i < create->demand.request.len; i++) {
        merge_given(state, &create->wanted[i], &merge);
        log_unread(state, &create->wanted[i]);
    }
    log_conflicts(state, create->wanted, &merge);
    log_forwarded(state, create);
    for (size_t i = 0; i < create->demand.request.len; i++) {
        if (create->items[i].replaced)
            tell_replaced(state, create, i);
    }
    action->options = options_merge_take(&merge);
    options_merge_fini(&merge);
}

static void take_up(struct state *state, const struct create *create, struct allocation *allocation,
                    const char *container_id)
{
    allocation_set_live(allocation, container_id, create->demand.sandbox_id,
                        create->demand.attempt);
    happened_to_allocation(state, DEVICEMGR_EVENT_ALLOCATED, false, allocation);
}

/* The containers can run from now on; the answer says under which id. */
static void note_outcome(struct state *state, struct create *create, const char *container_id)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, create->demand.sandbox_id);
    bool dead = !sandbox || sandbox->state == SANDBOX_STOPPED;

    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation = create_allocation(state, create, i);

        if (!allocation)
            continue;
        allocation_set_epoch(allocation, state->listing.epoch);
        if (dead)
            allocation_set_idle(allocation);
        else if (container_id)
            take_up(state, create, allocation, container_id);
        else
            ledger_outcome_unknown(state, allocation, create->demand.sandbox_id);
    }
}

/* The runtime refused it: devices that the shim chose for this container, and no container was ever
 * made with, are free for others, and what they were in the place of is its own again. What the
 * kubelet chose is the kubelet's to give back. */
static void give_up_chosen(struct state *state, const struct create *create)
{
    for (size_t i = 0; i < create->demand.request.len; i++) {
        struct allocation *allocation = create_allocation(state, create, i);

        if (!allocation || !allocation->tentative)
            continue;
        if (allocation->before.len > 0)
            ledger_revert_allocation(state, allocation);
        else
            ledger_drop_allocation(state, allocation);
    }
}

void creates_answered(struct creates *creates, uint64_t number, const char *container_id)
{
    struct state *state = creates->state;
    struct create *create = creates_find(creates, number);

    if (!create || create->state != CREATE_FORWARDED)
        return;
    if (container_id)
        note_outcome(state, create, container_id);
    else
        give_up_chosen(state, create);
    create_release(state, create);
    if (container_id) {
        if (create->demand.request.len > 0)
            ledger_release_leftovers(state, create->demand.pod_uid, create->demand.container,
                                     &create->demand.request);
        refused_made(&state->refused, create->demand.pod_uid, create->demand.container);
    }
    create_free(creates, create);
}

void creates_cancelled(struct creates *creates, uint64_t number)
{
    struct create *create = creates_find(creates, number);
    bool told = !actions_drop(&creates->state->actions, ACTION_VERDICT, number, 0);

    if (!create)
        return;
    if (create->state == CREATE_FORWARDED && told)
        note_outcome(creates->state, create, NULL);
    create_abandon(creates, create);
}
