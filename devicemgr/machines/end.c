#include "devicemgr/machines/end.h"

#include <utlist.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/happened.h"
#include "devicemgr/books/ledger.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/words/ending.h"

/* ---- life ---- */

static void waiter_free(struct ends *ends, struct end_waiter *waiter)
{
    DL_DELETE(ends->waiters, waiter);
    ends->waiters_len--;
    free(waiter->pod_uid);
    free(waiter->text);
    free(waiter);
}

void ends_fini(struct ends *ends)
{
    struct end_stop *stop, *next;

    HASH_ITER(hh, ends->stops, stop, next) {
        end_stop_free(end_stop_take(ends, stop->op));
    }
    while (ends->sandboxes)
        end_sandbox_free(end_sandbox_take(ends, ends->sandboxes->op));
    while (ends->waiters)
        waiter_free(ends, ends->waiters);
}

/* ---- who is told ---- */

static void set_told(struct ending *ending)
{
    for (struct ending_ask *ask = ending->asks; ask; ask = ask->next)
        ending_ask_set_told(ask);
}

/* ---- the states ---- */

/* Somebody is to hear of it, once it is stored. */
static void note_changed(struct ends *ends, struct ending *ending)
{
    ending->changed = true;
    dirty_touch_ending(ends->state, ending, true);
}

static void log_ending(struct ends *ends, const struct ending *ending, int level)
{
    struct text text = {0};

    ending_tell(ending, &text);
    state_log_about(ends->state, level, ending_about(ending), &text);
}

/* That it is over, as its state says how. */
static void tell_over(struct ends *ends, const struct ending *ending)
{
    ends->counts.ended++;
    happened_to_pod(ends->state, DEVICEMGR_EVENT_ENDED, ending, ending_state_name(ending->state),
                    NULL);
}

/* It is over, as `state` says. Who asked is told, unless all were before: then something was in the
 * making, and has ended now, too, or the pod is gone. What was over before is told by the commit
 * that carries that: behind a restart it counts as told. */
static void end(struct ends *ends, struct ending *ending, enum ending_state state)
{
    bool was_over = ending_is_over(ending);

    ending_set_state(ending, state);
    if (ending_told(ending)) {
        ending->changed = ending->changed || state == ENDING_GONE;
    } else {
        ending->changed = ending->changed || !was_over;
        log_ending(ends, ending, LEVEL_INFO);
    }
    dirty_touch_ending(ends->state, ending, true);
    wake_pod(&ends->state->wakes, ending->pod_uid);
}

static bool wants_local(const struct ends *ends, const struct ending *ending)
{
    const struct pod *pod = pods_find(&ends->state->pods, ending->pod_uid);

    return !ends->state->settings.cluster || ending_forced_local(ending) || ending->static_pod ||
           (pod && pod->static_pod) || ending->pod_name[0] == '\0' ||
           (ending->state == ENDING_EVICTED && ending_grace_is_shorter(ending));
}

static void begin_stopping(struct ends *ends, struct ending *ending)
{
    struct state *state = ends->state;

    end_evict_cancel(ends, ending);
    ending_set_state(ending, ENDING_STOPPING);
    ending->epoch = state->listing.epoch;
    listing_anew(state);
    log_ending(ends, ending, LEVEL_WARNING);
    dirty_touch_ending(state, ending, true);
    wake_pod(&state->wakes, ending->pod_uid);
}

/* It is over once its containers have been stopped, all of those that a list has shown which was
 * asked for since; what is in the making now is shown by a later one. Then its sandboxes may be
 * stopped. */
static void settle(struct ends *ends, struct ending *ending)
{
    if (ending->state == ENDING_STOPPING && !ending->unconfirmed &&
        ends->listed_epoch > ending->epoch && !end_stop_under_way(ends, ending)) {
        end(ends, ending, ENDING_STOPPED);
        listing_by(ends->state, ends->state->now_ms + OUTCOME_MS);
    }
    end_sandbox_stop(ends, ending);
}

/* What was stopped here only since somebody wanted that is the cluster's again. */
static void leave_to_cluster(struct ends *ends, struct ending *ending)
{
    bool here = ending->state == ENDING_STOPPING || ending->state == ENDING_STOPPED;

    if (!here || wants_local(ends, ending))
        return;
    end_stop_cancel(ends, ending);
    ending_set_left(ending);
    note_changed(ends, ending);
    wake_pod(&ends->state->wakes, ending->pod_uid);
}

/* What is to be done now. One that is ASKED waits for its commit. */
static void advance(struct ends *ends, struct ending *ending)
{
    if (ending->unconfirmed)
        return;
    switch (ending->state) {
    case ENDING_ASKED:
    case ENDING_EVICTING:
    case ENDING_EVICTED:
        if (wants_local(ends, ending)) {
            begin_stopping(ends, ending);
        } else if (ending->state != ENDING_EVICTED) {
            ending_set_state(ending, ENDING_EVICTING);
            end_evict_order(ends, ending);
        }
        break;
    case ENDING_STOPPING:
    case ENDING_STOPPED:
        end_stop_sooner(ends, ending);
        settle(ends, ending);
        break;
    case ENDING_GONE:
    case ENDING_STATES:
        break;
    }
}

/* ---- what is heard of it ---- */

void ends_restored(struct ends *ends)
{
    struct ending *ending, *next;

    ends->restored = true;
    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        ending->unconfirmed = ending_asked_only_by(ending, END_EVICTION);
        if (ending->earlier_boot) /* with which ended what was stopped in it */
            leave_to_cluster(ends, ending);
        advance(ends, ending);
    }
}

void ends_listed(struct ends *ends, const struct devicemgr_container *containers,
                 size_t containers_len)
{
    struct ending *ending, *next;

    ends->listed_epoch = ends->state->listing.epoch;
    end_stop_listed(ends, containers, containers_len);
    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        /* It may turn out to be static, or its own grace is known now. */
        if ((ending->state == ENDING_EVICTING || ending->state == ENDING_EVICTED) &&
            !ending->changed && ending->commit == 0)
            advance(ends, ending);
        settle(ends, ending);
    }
    ends_look(ends);
}

/* Some runtimes forget all sandboxes with a reboot, and the kubelet goes on with their pods. */
static bool is_gone(const struct ends *ends, const struct ending *ending)
{
    const struct state *state = ends->state;

    return !pods_find(&state->pods, ending->pod_uid) && state->listing.listed &&
           state->kubelet.ready && ends->listed_epoch > ending->epoch &&
           (!ending->earlier_boot || state->now_ms >= state->kubelet.ready_ms + POD_RETURNS_MS);
}

void ends_look(struct ends *ends)
{
    struct ending *ending, *next;

    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        if (ending->state == ENDING_ASKED || ending->state == ENDING_GONE || !is_gone(ends, ending))
            continue;
        end_stop_cancel(ends, ending);
        end_evict_cancel(ends, ending);
        end(ends, ending, ENDING_GONE);
    }
}

/* One that failed counts for nothing: what runs is stopped when a later list shows it. */
static void note_failed(struct ends *ends, struct ending *ending, const char *container_id,
                        const char *message)
{
    struct state *state = ends->state;
    struct text text = {0};

    ends->counts.stops_failed++;
    ends->pause_ms = longer_pause(ends->pause_ms, END_RETRY_MS_MIN, END_RETRY_MS_MAX);
    ending->epoch = state->listing.epoch;
    listing_by(state, state->now_ms + ends->pause_ms);
    text_add(&text, "container %.12s was not stopped, which is tried again: ", container_id);
    text_add_words(&text, message, TEXT_WORDS_BYTES_MAX);
    state_log_about(state, LEVEL_WARNING, ending_about(ending), &text);
}

char *ends_stopped(struct ends *ends, uint64_t op, int code, const char *message)
{
    struct end_stop *stop = end_stop_take(ends, op);
    struct ending *ending = stop ? endings_edit(&ends->state->endings, stop->pod_uid) : NULL;
    char *ended = NULL;

    if (!stop)
        return NULL;
    if (code == CODE_OK || code == CODE_NOT_FOUND) {
        ends->pause_ms = 0;
        ended = mem_strdup(stop->container_id);
        end_stop_turns(ends);
        settle(ends, ending);
    } else {
        note_failed(ends, ending, stop->container_id, message);
    }
    end_stop_free(stop);
    return ended;
}

void ends_evicted(struct ends *ends, uint64_t order, enum devicemgr_evicted outcome)
{
    struct ending *ending = ends->state->endings.by_uid;

    while (ending && ending->order != order)
        ending = ending->hh.next;
    if (!ending || order == 0)
        return;
    ending->order = 0;
    if (outcome != DEVICEMGR_IS_STATIC) {
        end(ends, ending, ENDING_EVICTED);
        return;
    }
    ending_set_static(ending);
    begin_stopping(ends, ending);
}

/* ---- who asks ---- */

static struct ending *find_or_add(struct ends *ends, const char *pod_uid)
{
    struct state *state = ends->state;
    const struct pod *pod = pods_find(&state->pods, pod_uid);
    struct ending *ending = endings_edit(&state->endings, pod_uid);

    if (ending || endings_len(&state->endings) >= ENDINGS_MAX)
        return ending;
    ending =
        endings_add(&state->endings, pod_uid, pod ? pod->pod_namespace : "", pod ? pod->name : "");
    if (pod && pod->static_pod)
        ending_set_static(ending);
    return ending;
}

/* What its containers do is not known: those that a list shows are stopped. */
void ends_confirm(struct ends *ends, const char *pod_uid)
{
    struct ending *ending = endings_edit(&ends->state->endings, pod_uid);

    if (!ending || !ending->unconfirmed)
        return;
    ending->unconfirmed = false;
    ending->epoch = ends->state->listing.epoch;
    listing_anew(ends->state);
    if (!ending->changed && ending->commit == 0) /* else what it waits for is not stored yet */
        advance(ends, ending);
}

/* What its asker has asked for before, and has come to its end: it has less time for what comes to
 * run yet. NULL: it has not. */
static const struct ending_ask *find_over(const struct ending *ending,
                                          const struct end_request *request)
{
    return request->once && ending_is_over(ending)
               ? ending_find_ask(ending, request->asker, request->token)
               : NULL;
}

static const struct ending *ask(struct ends *ends, const char *pod_uid,
                                const struct end_request *request)
{
    struct ending *ending = find_or_add(ends, pod_uid);
    const struct ending_ask *over = ending ? find_over(ending, request) : NULL;
    const struct ending_ask said = {.asker = request->asker,
                                    .token = request->token,
                                    .asked_ms = ends->state->now_ms,
                                    .grace_ms = later(request->grace_ms, END_GRACE_MS_MIN),
                                    .or_less = request->or_less,
                                    .force_local = request->force_local,
                                    .why = (char *)request->why,
                                    .at_s = request->at_s,
                                    .told = over && over->told};

    if (!ending || !ending_ask(ending, &said))
        return NULL;
    if (ending->asks_len > 1 && !wants_local(ends, ending) && ending_grace_is_open(ending))
        listing_anew(ends->state); /* its containers say what its own is */
    ends_confirm(ends, pod_uid);
    note_changed(ends, ending);
    if (over)
        return ending;
    ends->counts.asked++;
    happened_to_pod(ends->state, DEVICEMGR_EVENT_ENDING, ending, end_asker_name(request->asker),
                    request->why);
    return ending;
}

void ends_ask(struct ends *ends, const char *pod_uid, const struct end_request *request)
{
    (void)ask(ends, pod_uid, request);
}

static void forget(struct ends *ends, struct ending *ending)
{
    struct state *state = ends->state;

    wake_pod(&state->wakes, ending->pod_uid);
    end_stop_cancel(ends, ending);
    end_evict_cancel(ends, ending);
    dirty_touch_ending(state, ending, true);
    endings_remove(&state->endings, ending);
}

void ends_cancel(struct ends *ends, const char *pod_uid, enum end_asker asker, uint64_t token)
{
    struct ending *ending = endings_edit(&ends->state->endings, pod_uid);
    const struct ending_ask *own = ending ? ending_find_ask(ending, asker, token) : NULL;
    bool over = facts_pod_over(ends->state, pod_uid);

    if (!own || ending->state == ENDING_GONE) /* of which who asked is told */
        return;
    if (!over)
        happened_to_pod(ends->state, DEVICEMGR_EVENT_SPARED, ending, end_asker_name(asker),
                        own->why);
    if (ending->asks_len > 1) {
        bool here = own->force_local;

        ending_drop_ask(ending, own);
        dirty_touch_ending(ends->state, ending, true);
        if (ending->state == ENDING_EVICTING && ends->restored) /* budgets may count again */
            advance(ends, ending);
        else if (here)
            leave_to_cluster(ends, ending);
    } else {
        /* That the cluster has taken the eviction may not have been heard here. */
        if (over && asker == END_EVICTION && !ending_told(ending)) {
            ending_set_state(ending, ENDING_GONE);
            log_ending(ends, ending, LEVEL_INFO);
            tell_over(ends, ending);
        }
        forget(ends, ending);
    }
}

/* ---- the operator ---- */

static struct end_waiter *wait_for(struct ends *ends, uint64_t number, const char *pod_uid)
{
    struct end_waiter *waiter = mem_alloc(1, sizeof *waiter);

    waiter->number = number;
    waiter->pod_uid = mem_strdup(pod_uid);
    DL_APPEND(ends->waiters, waiter);
    ends->waiters_len++;
    return waiter;
}

void ends_order(struct ends *ends, uint64_t number, const char *pod_uid,
                const struct end_request *request)
{
    if (ask(ends, pod_uid, request))
        wait_for(ends, number, pod_uid);
    else
        action_steered(&ends->state->actions, number, CODE_RESOURCE_EXHAUSTED, false,
                       "too many pods are being ended already");
}

bool ends_take_back(struct ends *ends, uint64_t number, const char *pod_uid)
{
    const struct ending *ending = endings_find(&ends->state->endings, pod_uid);
    const struct ending_ask *own = ending ? ending_find_ask(ending, END_OPERATOR, END_ONCE) : NULL;
    struct text text = {0};
    struct end_waiter *waiter;

    if (!own)
        return false;
    ending_tell_taken_back(ending, &text);
    state_log_about(ends->state, LEVEL_WARNING, ending_about(ending), &text);
    waiter = wait_for(ends, number, pod_uid);
    waiter->taken_back = true;
    waiter->text = mem_strdup(text.buf);
    ends_cancel(ends, pod_uid, END_OPERATOR, END_ONCE);
    return true;
}

static void answer(struct ends *ends, struct end_waiter *waiter, const char *error)
{
    const struct ending *ending = endings_find(&ends->state->endings, waiter->pod_uid);
    struct text text = {0};

    if (error) {
        text_add(&text, "not stored yet, which is tried again: until then a restart of the shim "
                        "forgets it: ");
        text_add_words(&text, error, TEXT_WORDS_BYTES_MAX);
    } else if (waiter->taken_back) {
        text_add(&text, "%s", waiter->text);
    } else if (ending) {
        ending_tell(ending, &text);
    } else {
        text_add(&text, "taken back meanwhile");
    }
    action_steered(&ends->state->actions, waiter->number, error ? CODE_ABORTED : CODE_OK, !error,
                   text.buf);
    waiter_free(ends, waiter);
}

/* ---- the store ---- */

void ends_commit_began(struct ends *ends, uint64_t commit)
{
    for (struct ending *e = ends->state->endings.by_uid; e; e = e->hh.next) {
        if (e->changed)
            e->commit = commit;
        e->changed = false;
    }
    for (struct end_waiter *waiter = ends->waiters; waiter; waiter = waiter->next)
        waiter->commit = waiter->commit ? waiter->commit : commit;
}

/* What is stored, or cannot be, is told; and what follows is done. */
static void committed_one(struct ends *ends, struct ending *ending)
{
    ending->commit = 0;
    if (!ending->changed || ending->state != ENDING_ASKED) /* who asks at once is one who asks */
        advance(ends, ending);
    if (ending_is_over(ending) && !ending->changed && !ending_told(ending)) {
        tell_over(ends, ending);
        set_told(ending);
    }
}

void ends_committed(struct ends *ends, uint64_t commit, const char *error)
{
    struct ending *ending, *next;
    struct end_waiter *waiter, *next_waiter;

    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        if (ending->commit == commit)
            committed_one(ends, ending);
    }
    DL_FOREACH_SAFE(ends->waiters, waiter, next_waiter) {
        /* What is taken back before its first row is stored has none: it is done. */
        if (error && (waiter->taken_back || waiter->commit != commit) &&
            !dirty_any_of(&ends->state->dirty, DEVICEMGR_RECORD_ENDING, waiter->pod_uid))
            answer(ends, waiter, NULL);
        else if (waiter->commit == commit)
            answer(ends, waiter, error);
    }
    /* Those of which all have heard now: who has asked meanwhile waits for the next commit. */
    HASH_ITER(hh, ends->state->endings.by_uid, ending, next) {
        if (ending->state == ENDING_GONE && !ending->changed)
            endings_remove(&ends->state->endings, ending);
    }
}
