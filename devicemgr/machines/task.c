#include "devicemgr/machines/task.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/state.h"
#include "devicemgr/rules/without_driver.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* ---- one thing that is done ---- */

static void set_state(struct tasks *tasks, struct task *task, enum claim_state to)
{
    claim_set_state(task->claim, to, tasks->state->now_ms);
    dirty_touch_claim(tasks->state, task->claim);
}

static void idle(struct task *task)
{
    task->phase = TASK_IDLE;
    task->owed = false;
    task->commit = 0;
}

/* The claim is what it was; one that was new is remembered: its unprepare comes. */
static void revert(struct tasks *tasks, struct task *task)
{
    idle(task);
    if (task->claim->state != task->before)
        set_state(tasks, task, task->before == CLAIM_NEW ? CLAIM_ASKED : task->before);
    task_note_local(tasks, task->claim);
}

/* Of one that is called. */
static enum action_kind action_of(const struct task *task)
{
    if (task->owed && task->settles)
        return ACTION_DRIVER_SETTLE;
    return task->kind == TASK_PREPARE ? ACTION_DRIVER_PREPARE : ACTION_DRIVER_UNPREPARE;
}

static const struct driver_instance *usable(const struct tasks *tasks, const struct task *task)
{
    const struct driver *driver = drivers_find(&tasks->state->drivers, task->claim->driver);

    return driver ? driver_callable(driver) : NULL;
}

static void call(struct tasks *tasks, struct task *task, const struct driver_instance *instance)
{
    struct state *state = tasks->state;
    struct action *action;

    action = action_push(&state->actions, action_of(task), instance->number);
    task->phase = TASK_CALLING;
    for (struct claimant *c = task->claimants; c; c = c->next)
        c->called = true;
    task->call = state_number(state);
    task->instance = instance->number;
    HASH_ADD(hh_call, tasks->by_call, call, sizeof task->call, task);
    task->claim->of->owed_calls += task->owed;
    task->looked = tasks->turn;
    action->call = task->call;
    if (!task->owed)
        action->batch = task->claimants->batch; /* of who came first: it is he that is served */
    action->timeout_ms = state->settings.claim_call_ms;
    action->asked = task->settles_asked;
    action->claim = action_claim(task->claim);
}

static void forget_call(struct tasks *tasks, struct task *task)
{
    HASH_DELETE(hh_call, tasks->by_call, task);
    task->claim->of->owed_calls -= task->owed;
}

void task_note_local(struct tasks *tasks, struct claim *claim)
{
    if (claim->local || !claim_state_kept(claim->state) ||
        !without_driver_local(tasks->state, claim))
        return;
    claim_set_local(claim);
    dirty_touch_claim(tasks->state, claim);
}

/* Whether something that is owed is in the way of what is to be prepared. What the kubelet had in
 * its books is, if that was seen before this was asked for: it is seen again, then. */
/* NOLINTNEXTLINE(misc-no-recursion): into one that is owed, whose mark is gone then */
static bool is_behind_owed(struct tasks *tasks, const struct claimant *claimant)
{
    const struct claim *owed = task_owed_before(tasks, claimant);
    struct task *task = owed ? task_edit(tasks, owed) : NULL;

    if (task && task->phase == TASK_IDLE && task->in_use) {
        task_owed_anew(task);
        task_advance(tasks, task);
    }
    return owed;
}

/* It is asked for, and the driver is there. The row says what may be in a moment, before it is;
 * a claim of which there is none is the kubelet's to unprepare until that is done. */
/* NOLINTNEXTLINE(misc-no-recursion): into one that is owed, whose mark is gone then */
static void begin(struct tasks *tasks, struct task *task, const struct driver_instance *instance)
{
    struct claim *claim = task->claim;
    enum claim_state to = task->claimants->kind == TASK_PREPARE ? CLAIM_SENT : CLAIM_UNPREPARING;

    if (task->claimants->kind == TASK_PREPARE && is_behind_owed(tasks, task->claimants))
        return;
    task->kind = task->claimants->kind;
    task->before = claim->state;
    if (task->kind == TASK_UNPREPARE &&
        (claim->state == CLAIM_NEW || claim->state == CLAIM_ASKED)) {
        call(tasks, task, instance);
        return;
    }
    if (task_note_here(tasks, claim) || claim->state != to ||
        (to == CLAIM_SENT && claim_local_doubted(claim)))
        set_state(tasks, task, to);
    task_note_moved(tasks, claim); /* in the same row */
    if (claim->durable) {
        call(tasks, task, instance);
        return;
    }
    task->phase = TASK_STORING;
    task->commit = claim->commit; /* one may carry it already */
}

/* ---- what can be done now ---- */

/* It may have been sent before, by who has lost the row, or by the kubelet itself. */
static void note_doubt(struct tasks *tasks, struct claim *claim)
{
    if (claim->sent || (claim->state != CLAIM_NEW && claim->state != CLAIM_ASKED) ||
        !(tasks->doubt || task_was_elsewhere(tasks, claim)))
        return;
    claim_set_doubted(claim);
    if (claim->state == CLAIM_ASKED)
        dirty_touch_claim(tasks->state, claim);
}

/* The driver is away. */
static void without_driver(struct tasks *tasks, struct task *task)
{
    struct claim *claim = task->claim;

    if (task->claimants->kind == TASK_PREPARE || claim->state == CLAIM_ASKED)
        note_doubt(tasks, claim);
    if (task->claimants->kind == TASK_PREPARE) {
        if (claim->state == CLAIM_NEW)
            set_state(tasks, task, CLAIM_ASKED);
        if (without_driver_prepared(tasks->state, claim))
            task_answer_prepared(tasks, task);
        return;
    }
    if (!without_driver_unprepared(tasks->state, claim))
        return;
    task->kind = TASK_UNPREPARE;
    task->before = claim->state;
    task->phase = TASK_STORING;
    set_state(tasks, task, CLAIM_OWED);
    task_note_moved(tasks, claim);
}

/* The kubelet may have it prepared by itself since it was put off: a container that has it was
 * asked for since then. */
static bool may_be_again(const struct tasks *tasks, const struct claim *claim)
{
    return claim->moved || task_was_elsewhere(tasks, claim) || task_users_have(claim);
}

/* It has been said that it is unprepared, and goes out as soon as the driver is there; where the
 * kubelet may have it prepared by itself since then, unless it does, or asks for this here. Nor
 * does it go out to prepare it anew, if a container runs with it. Who asks once more after the
 * store has lost that waits until it has it again. */
/* NOLINTNEXTLINE(misc-no-recursion): into one that is owed, whose mark is gone then */
static void owed(struct tasks *tasks, struct task *task, const struct driver_instance *instance)
{
    bool again = task_is_asked(task, TASK_UNPREPARE), asked;

    if (again && !task->claim->durable) {
        task->kind = TASK_UNPREPARE;
        task->before = CLAIM_OWED;
        task->phase = TASK_STORING;
        task->commit = task->claim->commit;
        return;
    }
    if (!may_be_again(tasks, task->claim) || without_driver_unprepared(tasks->state, task->claim))
        task_answer_unprepared(tasks, task);
    if (!instance)
        return;
    if (task_is_asked(task, TASK_PREPARE) && task_users_have(task->claim)) {
        set_state(tasks, task, CLAIM_SENT);
        tasks->owed_less = true;
        begin(tasks, task, instance);
        return;
    }
    task->settles = !again && (may_be_again(tasks, task->claim) || task->claim->earlier);
    asked = task->settles && task_is_asked(task, TASK_PREPARE);
    if (asked && !task->settles_asked) /* in whose way it was may not be any more */
        task_owed_anew(task);
    task->settles_asked = asked;
    if (!task_owed_may_go(tasks, task))
        return;
    task->kind = TASK_UNPREPARE;
    task->before = CLAIM_OWED;
    task->owed = true;
    call(tasks, task, instance);
}

/* It is over for a claim that has no row any more. */
static void drop_if_over(struct tasks *tasks, struct task *task)
{
    struct claim *claim = task->claim;

    if (task->phase != TASK_IDLE || task->claimants || claim->state == CLAIM_OWED)
        return;
    task_free(tasks, task);
    task_note_moved(tasks, claim);
    if (task_is_the_kubelets(tasks, claim))
        dirty_touch_claim(tasks->state, claim);
    else if (claim_state_kept(claim->state))
        return;
    task_forget_claim(tasks->state, claim);
}

/* NOLINTNEXTLINE(misc-no-recursion): into one that is owed, whose mark is gone then */
static void look(struct tasks *tasks, struct task *task)
{
    const struct driver_instance *instance = usable(tasks, task);

    if (task_users_wait(tasks, task))
        return;
    if (task->claim->state == CLAIM_OWED)
        owed(tasks, task, instance);
    else if (task->claimants && instance)
        begin(tasks, task, instance);
    else if (task->claimants)
        without_driver(tasks, task);
}

/* Before all rows are in, it is not known what the claim's says. */
/* NOLINTNEXTLINE(misc-no-recursion): into one that is owed, whose mark is gone then */
void task_advance(struct tasks *tasks, struct task *task)
{
    if (task->phase != TASK_IDLE)
        return;
    task_expire(tasks, task);
    if (task->claimants && task->claim->state == CLAIM_GONE)
        claims_renew(&tasks->state->claims, task->claim, tasks->state->now_ms);
    if (tasks->restored)
        look(tasks, task);
    drop_if_over(tasks, task);
}

/* ---- the driver's answer ---- */

static bool has_room(const struct tasks *tasks, const struct claim *claim, size_t response_bytes)
{
    return response_bytes <= CLAIM_RESPONSE_BYTES_MAX &&
           tasks->state->claims.response_bytes - claim->response_bytes + response_bytes <=
               CLAIMS_BYTES_MAX;
}

static void keep(struct tasks *tasks, struct task *task)
{
    task->phase = TASK_KEEPING;
    task->answered_ms = tasks->state->now_ms;
}

static void prepared(struct tasks *tasks, struct task *task, const void *response,
                     size_t response_bytes)
{
    struct claim *claim = task->claim;

    if (!has_room(tasks, claim, response_bytes) ||
        !claims_set_response(&tasks->state->claims, claim, response, response_bytes)) {
        idle(task);
        task_refuse_all(tasks, task, CLAIM_REFUSED_ANSWER, NULL);
        return;
    }
    if (task_is_asked(task, TASK_PREPARE))
        (void)task_note_here(tasks, claim); /* in the row of its answer */
    task->anew = claim->prepared_ms > 0;
    if (!task->anew)
        claim_set_prepared(claim, tasks->state->now_ms);
    set_state(tasks, task, CLAIM_PREPARED);
    task_note_local(tasks, claim);
    keep(tasks, task);
}

/* Somebody was asked for since it was called: a kubelet may take the claim for prepared until it is
 * answered, and keeps it for the pod that has come if that says that it is used. What is owed it
 * takes for unprepared. */
static bool is_used_since(const struct task *task)
{
    return !task->owed && task_users_have(task->claim);
}

static void unprepared(struct tasks *tasks, struct task *task)
{
    bool is_new = task->claim->state == CLAIM_NEW; /* it has no row */

    if (is_used_since(task)) {
        idle(task);
        set_state(tasks, task, CLAIM_SENT);
        task_users_keep(tasks, task);
        return;
    }
    if (!task->owed && !is_new && !task->claimants) {
        idle(task); /* its kubelet has given up, and has it prepared until it has asked once more */
        return;
    }
    if (is_new && !dirty_claim_unstored(tasks->state, task->claim)) {
        idle(task);
        task_answer_unprepared(tasks, task);
        return;
    }
    if (is_new)
        set_state(tasks, task, CLAIM_ASKED);
    set_state(tasks, task, CLAIM_GONE);
    keep(tasks, task);
}

void task_answered(struct tasks *tasks, struct task *task, int code, const char *message,
                   const void *response, size_t response_bytes)
{
    forget_call(tasks, task);
    claim_note_answered(task->claim);
    if (code != CODE_OK && task->owed) {
        task_owed_failed(tasks, task, message);
        idle(task);
        tasks->owed_less = true;
    } else if (code != CODE_OK) {
        idle(task);
        task_fail_all(tasks, task, code, message);
        task_users_renew(tasks, task);
    } else if (task->kind == TASK_PREPARE) {
        prepared(tasks, task, response, response_bytes);
    } else {
        unprepared(tasks, task);
    }
    task_advance(tasks, task);
}

/* A kubelet that asks for what it has prepared there (it has restarted, and the claim has another
 * pod) does not want it taken from who runs with it: what was owed is owed to nobody any more. */
void task_in_use(struct tasks *tasks, struct task *task)
{
    bool asked = task->settles_asked;

    forget_call(tasks, task);
    if (!asked)
        task_owed_failed(tasks, task, "the kubelet uses it, and has not unprepared it yet");
    task->in_use = !asked;
    idle(task);
    if (asked)
        set_state(tasks, task, CLAIM_SENT);
    tasks->owed_less = true;
    task_advance(tasks, task);
}

/* It may be what ends the driver, which would be asked again as soon as it is back, and so be kept
 * from all others. */
static void lost(struct tasks *tasks, struct task *task)
{
    bool is_owed = task->owed;

    claim_note_lost(task->claim);
    if (claim_is_lost(task->claim) && is_owed) {
        task_owed_failed(tasks, task, "it has ended each time that it was asked");
        tasks->owed_less = true;
    }
    idle(task);
    if (claim_is_lost(task->claim) && !is_owed)
        task_refuse_all(tasks, task, CLAIM_REFUSED_LOST, NULL);
    task_users_renew(tasks, task);
}

void task_unanswered(struct tasks *tasks, struct task *task)
{
    struct state *state = tasks->state;

    forget_call(tasks, task);
    if (actions_drop(&state->actions, action_of(task), task->instance, task->call))
        revert(tasks, task); /* it never left */
    else
        lost(tasks, task);
    task_advance(tasks, task);
}

/* ---- the store's ---- */

/* What was found out meanwhile may forbid that it is put off: what is allocated, or that the driver
 * is with the kubelet. */
static bool may_be_owed(const struct tasks *tasks, const struct task *task)
{
    const struct claim *claim = task->claim;

    if (task->before == CLAIM_ASKED && !claim->sent)
        return !task_was_elsewhere(tasks, claim);
    return without_driver_unprepared(tasks->state, claim);
}

/* Whether it is not to be done any more: nobody waits for it; something was put off meanwhile; a
 * container was asked for with the claim; or it may have other nodes' devices. */
static bool is_off(const struct tasks *tasks, const struct task *task)
{
    if (!task_is_asked(task, task->kind))
        return true;
    if (task->kind == TASK_PREPARE)
        return task_owed_first(tasks, task->claim);
    if (task->before == CLAIM_OWED)
        return false;
    return task_users_have(task->claim) ||
           (task->claim->state == CLAIM_OWED && !may_be_owed(tasks, task));
}

/* What was to be sent may be, and what was to be promised. */
static void stored(struct tasks *tasks, struct task *task)
{
    const struct driver_instance *instance = usable(tasks, task);

    if (is_off(tasks, task)) {
        revert(tasks, task);
    } else if (task->claim->state == CLAIM_OWED) {
        idle(task);
        task_tell(tasks, task, DEVICEMGR_EVENT_CLAIM_OWED, false);
        task_answer_unprepared(tasks, task);
    } else if (instance) {
        call(tasks, task, instance);
    } else {
        revert(tasks, task);
    }
}

static void kept(struct tasks *tasks, struct task *task)
{
    if (task->kind == TASK_PREPARE && task_is_asked(task, TASK_PREPARE) &&
        task_note_here(tasks, task->claim)) {
        set_state(tasks, task, CLAIM_PREPARED); /* with this row, then */
        return;
    }
    tasks->owed_less = tasks->owed_less || task->owed;
    idle(task);
    if (task->kind == TASK_PREPARE) {
        task_tell(tasks, task, DEVICEMGR_EVENT_CLAIM_PREPARED, task->anew);
        task_answer_called(tasks, task);
    } else {
        task_tell(tasks, task, DEVICEMGR_EVENT_CLAIM_UNPREPARED, false);
        task_answer_unprepared(tasks, task);
    }
}

/* The driver has done it, and that is not known for sure: it is asked again. One that was new stays
 * gone, since nobody may ask once more: a row that the store may have of it yet goes later. */
static void not_kept(struct tasks *tasks, struct task *task, const char *error)
{
    enum claim_state to = CLAIM_UNPREPARING;

    if (task->owed) /* or its driver would be told as fast as the store fails */
        task_owed_failed(tasks, task, error);
    idle(task);
    if (task->kind == TASK_UNPREPARE && task->before == CLAIM_NEW)
        return;
    if (task->kind == TASK_PREPARE)
        to = CLAIM_SENT;
    else if (task->before == CLAIM_ASKED || task->before == CLAIM_OWED)
        to = task->before;
    set_state(tasks, task, to);
    tasks->owed_less = true;
}

void task_committed(struct tasks *tasks, struct task *task, const char *error)
{
    if (error) {
        if (task->phase == TASK_STORING) {
            tasks->owed_less = true; /* it may be what was to be put off */
            revert(tasks, task);
            task_users_give_up(tasks, task);
        } else {
            not_kept(tasks, task, error);
        }
        task_refuse_all(tasks, task, CLAIM_REFUSED_STORE, error);
    } else if (task->phase == TASK_STORING) {
        stored(tasks, task);
    } else {
        kept(tasks, task);
    }
    task_advance(tasks, task);
}
