/*
 * Pods that the cluster is to evict: one order each, as it is to be now.
 */
#include "devicemgr/books/state.h"
#include "devicemgr/machines/end.h"
#include "devicemgr/things/moment.h"

static uint64_t unasked_ms(const struct ends *ends, const struct ending *ending)
{
    uint64_t since_ms = ending->unasked_since_ms;

    return ending->unasked_ms + (since_ms > 0 ? ago(ends->state->now_ms, since_ms) : 0);
}

/* Who has taken back what he asked for has not waited; nor does time count in which nobody could
 * say whether a budget allows it. */
static uint64_t forced_from_ms(const struct ends *ends, const struct ending *ending)
{
    uint64_t after_ms = ends->state->settings.evict_force_after_ms;
    uint64_t from_ms = later_by(ending_asked_ms(ending), unasked_ms(ends, ending));

    return after_ms == 0 ? UINT64_MAX : later_by(from_ms, after_ms);
}

/* When the order for it is to be another one by time alone. */
static uint64_t next_of(const struct ends *ends, const struct ending *ending)
{
    if (ending->state != ENDING_EVICTING || ending->order_forced || ending->unconfirmed ||
        ends->unreached)
        return UINT64_MAX;
    return forced_from_ms(ends, ending);
}

static void note_unasked(struct ends *ends, struct ending *ending)
{
    bool unasked = ending->state == ENDING_EVICTING && ends->unreached;

    if (unasked == (ending->unasked_since_ms > 0))
        return;
    ending->unasked_ms = unasked_ms(ends, ending);
    ending->unasked_since_ms = unasked ? ends->state->now_ms : 0;
    dirty_touch_ending(ends->state, ending, true);
}

void ends_reached(struct ends *ends, bool reached)
{
    ends->unreached = !reached;
    for (struct ending *e = ends->state->endings.by_uid; e; e = e->hh.next)
        note_unasked(ends, e);
}

void end_evict_cancel(struct ends *ends, struct ending *ending)
{
    struct state *state = ends->state;

    if (ending->order != 0 && !actions_drop(&state->actions, ACTION_EVICT_POD, ending->order, 0))
        action_push(&state->actions, ACTION_EVICT_CANCEL, ending->order);
    ending->order = 0;
}

void end_evict_order(struct ends *ends, struct ending *ending)
{
    struct state *state = ends->state;
    uint64_t grace_ms = ending_grace_ms(ending);
    struct action *action;
    bool forced;

    note_unasked(ends, ending);
    forced = state->now_ms >= forced_from_ms(ends, ending);
    if (ending->order != 0 && grace_ms == ending_order_grace_ms(ending) &&
        forced == ending->order_forced)
        return;
    end_evict_cancel(ends, ending);
    ending->order = state_number(state);
    ending->order_grace_ms = grace_ms == ending->pod_grace_ms ? ENDING_POD_GRACE : grace_ms;
    ending->order_forced = forced;
    action = action_push(&state->actions, ACTION_EVICT_POD, ending->order);
    action->eviction = action_eviction(&(struct devicemgr_eviction){
        .pod_uid = ending->pod_uid,
        .pod_namespace = ending->pod_namespace,
        .pod_name = ending->pod_name,
        .own_grace = ending->order_grace_ms == ENDING_POD_GRACE,
        .grace_ms = grace_ms,
        .forced = forced,
        .why = ending->asks->why,
    });
    ends->counts.evictions++;
}

void ends_doubt(struct ends *ends, const char *pod_uid)
{
    struct ending *ending = endings_edit(&ends->state->endings, pod_uid);

    if (!ending || !ending_asked_only_by(ending, END_EVICTION) ||
        (ending->state != ENDING_ASKED && ending->state != ENDING_EVICTING))
        return;
    end_evict_cancel(ends, ending);
    ending->unconfirmed = true;
}

void ends_tick(struct ends *ends)
{
    struct ending *ending, *next;

    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        if (ends->state->now_ms >= next_of(ends, ending))
            end_evict_order(ends, ending);
    }
    end_stop_turns(ends);
}

uint64_t ends_next_ms(const struct ends *ends)
{
    uint64_t next_ms = end_stop_next_ms(ends);

    for (const struct ending *e = ends->state->endings.by_uid; e; e = e->hh.next)
        next_ms = earlier(next_ms, next_of(ends, e));
    return next_ms;
}
