#include "devicemgr/books/checkpoint.h"

#include <assert.h>

#include "devicemgr/books/ledger.h"
#include "devicemgr/books/ordered.h"
#include "devicemgr/books/record.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

void checkpoint_fini(struct checkpoint *checkpoint)
{
    dirty_rows_free(&checkpoint->carried);
    free(checkpoint->error);
}

/* Whether the checkpoint has, or is about to have, an allocation of the pod: a reservation that is
 * given up takes no row of its pod along. */
static bool pod_kept(const struct state *state, const struct pod *pod)
{
    const struct allocation *a = allocations_of_pod(&state->allocations, pod->uid);

    while (a && a->row == ALLOCATION_RESERVED && !allocation_durable(a))
        a = a->pod_next;
    return a || pod->remembers;
}

static bool resource_kept(const struct resource *resource)
{
    return !resource->builtin && resource->endpoint.socket_good;
}

/* NULL: there is nothing to be kept of it. */
static uint8_t *value_of(struct state *state, const struct dirty_thing *thing, size_t *bytes_len)
{
    const struct allocation *a = thing->allocation;

    *bytes_len = 0;
    if (a && (allocation_durable(a) || a->row == ALLOCATION_CARRIED))
        return record_of_allocation(a, state->settings.boot_id, bytes_len);
    if (thing->resource && resource_kept(thing->resource))
        return record_of_resource(thing->resource, state->settings.boot_id, bytes_len);
    if (thing->pod && pod_kept(state, thing->pod))
        return record_of_pod(thing->pod, state->now_ms, bytes_len);
    if (thing->order && thing->order->state != ORDER_ENDING)
        return record_of_order(thing->order, state->settings.boot_id, bytes_len);
    if (thing->driver)
        return record_of_driver(thing->driver, bytes_len);
    if (thing->claim && claim_state_kept(thing->claim->state))
        return record_of_claim(thing->claim, state->settings.boot_id, bytes_len);
    if (thing->ending && thing->ending->state != ENDING_GONE)
        return record_of_ending(thing->ending, state->settings.boot_id, bytes_len);
    if (thing->shutdown && shutdown_under_way(&state->shutdown))
        return record_of_shutdown(&state->shutdown, state->settings.boot_id, bytes_len);
    if (thing->loss && state->listing.rows_lost) {
        *bytes_len = 1;
        return (uint8_t *)mem_strdup("1");
    }
    return NULL;
}

/* Whether there is something to be kept of it, or will be when a commit begins; or somebody waits
 * to hear that there is nothing any more. */
static bool is_wanted(const struct state *state, const struct dirty_thing *thing)
{
    return (thing->allocation && (thing->allocation->row != ALLOCATION_RESERVED ||
                                  allocation_durable(thing->allocation))) ||
           (thing->resource && resource_kept(thing->resource)) ||
           (thing->pod && pod_kept(state, thing->pod)) || thing->order || thing->driver ||
           (thing->claim && claim_state_kept(thing->claim->state)) || thing->ending ||
           (thing->shutdown && shutdown_under_way(&state->shutdown)) || thing->loss;
}

uint64_t checkpoint_next_ms(const struct state *state)
{
    return state->checkpoint.by_ms;
}

void checkpoint_within(struct state *state, uint64_t ms)
{
    if (state->draining && !state->checkpoint.error)
        state->dirty.due = true; /* there may be no later */
    else if (state->checkpoint.by_ms == UINT64_MAX)
        state->checkpoint.by_ms = state->now_ms + ms;
}

void checkpoint_drain(struct state *state)
{
    if (state->checkpoint.by_ms != UINT64_MAX && !state->checkpoint.error)
        state->dirty.due = true;
}

void checkpoint_tick(struct state *state)
{
    if (state->now_ms < checkpoint_next_ms(state))
        return;
    state->checkpoint.by_ms = UINT64_MAX;
    state->dirty.due = true;
}

static void note_stored(const struct dirty_thing *thing, bool is_stored)
{
    if (thing->stored)
        *thing->stored = is_stored;
}

uint64_t checkpoint_begin(struct state *state)
{
    struct checkpoint *checkpoint = &state->checkpoint;
    uint64_t commit = state_number(state);
    struct action *action = action_push(&state->actions, ACTION_COMMIT, commit);

    assert(!checkpoint->commit && !checkpoint->carried);
    checkpoint->commit = commit;
    checkpoint->carried = state->dirty.rows;
    state->dirty.rows = NULL;
    state->dirty.due = false;
    checkpoint->by_ms = UINT64_MAX;
    action->rows = mem_alloc(HASH_COUNT(checkpoint->carried), sizeof *action->rows);
    for (struct dirty_row *row = checkpoint->carried; row; row = row->hh.next) {
        struct action_row *out = &action->rows[action->rows_len++];
        const struct dirty_thing thing = dirty_thing(state, row);
        size_t names_bytes;

        if (thing.allocation && thing.allocation->row == ALLOCATION_QUEUED)
            allocation_carry(thing.allocation, commit);
        if (thing.order)
            order_carry(thing.order, commit);
        if (thing.claim)
            claim_carry(thing.claim, commit);
        out->kind = row->kind;
        out->names = mem_key(row->parts, DIRTY_KEYS_LEN, &names_bytes);
        mem_parts(out->names, out->key, DIRTY_KEYS_LEN);
        out->value = value_of(state, &thing, &out->value_bytes);
        row->put = out->value != NULL;
        note_stored(&thing, row->stored || row->put);
    }
    return commit;
}

/* The store has what it had before: whatever became of the row meanwhile is to be written, if there
 * is anything to write or to delete. */
static void take_back_row(struct state *state, const struct dirty_row *row)
{
    const struct dirty_thing thing = dirty_thing(state, row);
    struct dirty_row *dirty;

    note_stored(&thing, row->stored);
    if (row->stored || is_wanted(state, &thing)) {
        dirty_ensure(state, row->kind, row->parts)->stored = row->stored;
        return;
    }
    dirty = dirty_find(&state->dirty, row->key, row->key_bytes);
    if (!dirty)
        return;
    if (thing.claim)
        claim_committed(thing.claim, true); /* that there is nothing is as it is to be */
    HASH_DEL(state->dirty.rows, dirty);
    dirty_row_free(dirty);
}

static void finish_row(struct state *state, const struct dirty_row *row, uint64_t commit,
                       bool durable)
{
    const struct dirty_thing thing = dirty_thing(state, row);
    struct allocation *allocation = thing.allocation;

    if (durable)
        note_stored(&thing, row->put);
    if (thing.order && thing.order->commit == commit)
        ordered_committed(state, thing.order, durable);
    if (thing.claim && thing.claim->commit == commit)
        claim_committed(thing.claim, durable);
    if (row->kind == DEVICEMGR_RECORD_ALLOCATION)
        wake_pod(&state->wakes, row->parts[0]); /* the container's next create waits for it */
    if (!allocation || allocation->commit != commit)
        return;
    if (durable || allocation->options) /* a row has its devices: the options may follow */
        allocation_confirm(allocation, state->settings.boot_id);
    else if (allocation_durable(allocation))
        ledger_revert_allocation(state, allocation);
    else
        ledger_remove_allocation(state, allocation);
}

/* The store may be full for hours: its attempts get rarer, and those of new creates come
 * besides. */
static void retry_later(struct state *state)
{
    struct checkpoint *checkpoint = &state->checkpoint;

    checkpoint->pause_ms =
        longer_pause(checkpoint->pause_ms, COMMIT_RETRY_MS_MIN, COMMIT_RETRY_MS_MAX);
    checkpoint->by_ms = state->now_ms + checkpoint->pause_ms;
}

static void rows_unstored(struct dirty_row *rows)
{
    for (struct dirty_row *row = rows; row; row = row->hh.next)
        row->stored = false;
}

void checkpoint_store_reset(struct state *state)
{
    struct checkpoint *checkpoint = &state->checkpoint;

    rows_unstored(state->dirty.rows);
    rows_unstored(checkpoint->carried);
    for (struct pod *pod = state->pods.by_uid; pod; pod = pod->hh.next) {
        pod->stored = false;
        if (pod->remembers)
            dirty_touch_pod(state, pod->uid);
    }
    for (struct resource *r = state->resources; r; r = r->hh.next) {
        r->stored = false;
        dirty_touch_resource(state, r->name, true);
    }
    for (struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        a->stored = false;
        dirty_touch_allocation(state, a);
        dirty_touch_pod(state, a->pod_uid);
    }
    for (struct order *order = state->orders.by_key; order; order = order->hh.next) {
        order->stored = false;
        dirty_touch_order(state, order);
    }
    for (struct driver *driver = state->drivers.by_name; driver; driver = driver->hh.next) {
        driver->stored = false;
        dirty_touch_driver(state, driver);
    }
    for (struct claim *claim = state->claims.by_key; claim; claim = claim->hh.next) {
        claim_set_unstored(claim);
        dirty_touch_claim(state, claim);
    }
    for (struct ending *ending = state->endings.by_uid; ending; ending = ending->hh.next) {
        ending->stored = false;
        dirty_touch_ending(state, ending, true);
    }
    state->shutdown.stored = false;
    if (shutdown_under_way(&state->shutdown))
        dirty_touch_shutdown(state);
    dirty_touch_loss(state, true);
}

/* A store may fail for hours: it is said when that begins, when it is for another reason, and when
 * it ends. */
static void log_error(struct state *state, const char *error)
{
    struct checkpoint *checkpoint = &state->checkpoint;
    struct text text = {0};

    if (error && (!checkpoint->error || strcmp(checkpoint->error, error) != 0)) {
        text_add(&text, "state cannot be stored: ");
        text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
        state_log_about(state, LEVEL_ERROR,
                        (struct devicemgr_about){.line = DEVICEMGR_LINE_UNSTORED}, &text);
    } else if (!error && checkpoint->error) {
        text_add(&text, "state can be stored again");
        state_log_about(state, LEVEL_INFO, (struct devicemgr_about){.line = DEVICEMGR_LINE_STORED},
                        &text);
    }
    if (error && !checkpoint->error)
        checkpoint->failing_ms = state->now_ms;
    free(checkpoint->error);
    checkpoint->error = error ? mem_strdup(error) : NULL;
}

bool checkpoint_finish(struct state *state, uint64_t commit, const char *error)
{
    struct checkpoint *checkpoint = &state->checkpoint;

    if (commit != checkpoint->commit)
        return false;
    checkpoint->commit = 0;
    for (struct dirty_row *row = checkpoint->carried; row; row = row->hh.next)
        finish_row(state, row, commit, !error);
    for (struct dirty_row *row = checkpoint->carried; error && row; row = row->hh.next)
        take_back_row(state, row);
    dirty_rows_free(&checkpoint->carried);
    log_error(state, error);
    if (error && state->dirty.rows)
        retry_later(state);
    if (!error)
        checkpoint->pause_ms = 0;
    return true;
}
