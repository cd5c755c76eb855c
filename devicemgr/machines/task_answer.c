/*
 * Requests, and their ends.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/happened.h"
#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/things/moment.h"

static struct action *answer(struct state *state, uint64_t number, int code, const char *message)
{
    struct action *action = action_push(&state->actions, ACTION_CLAIM_DONE, number);

    action->code = code;
    action->text = code == CODE_OK ? NULL : mem_strdup(message ? message : "");
    return action;
}

/* What came of a prepare that we wanted; `words`: why nothing did. */
static void log_renewed(struct state *state, const struct claim *claim, const char *words)
{
    struct text text = {0};

    claim_explain_renewed(claim, words, &text);
    state_log(state, words ? LEVEL_WARNING : LEVEL_INFO, &text);
}

void task_answer(struct state *state, const struct claimant *claimant, int code,
                 const char *message)
{
    if (claimant->number == 0)
        log_renewed(state, claimant->task->claim, message ? message : "");
    else
        answer(state, claimant->number, code, message);
}

static void note(struct tasks *tasks, const struct claim_refusal *refusal, int code, char *text)
{
    /* Its texts are copied. */
    const struct claim_refused_one said = {.uid = (char *)(uintptr_t)refusal->uid,
                                           .driver = (char *)(uintptr_t)refusal->driver,
                                           .pod_namespace =
                                               (char *)(uintptr_t)refusal->pod_namespace,
                                           .name = (char *)(uintptr_t)refusal->name,
                                           .unprepare = refusal->unprepare,
                                           .word = claim_refusal_word(refusal->kind),
                                           .clears = claim_refusal_clears(refusal->kind),
                                           .code = code,
                                           .text = text};

    tasks->counts.refused[refusal->unprepare ? TASK_UNPREPARE : TASK_PREPARE][refusal->kind]++;
    claim_refused_note(&tasks->state->claim_refused, tasks->state->now_ms, &said);
}

void task_refuse(struct tasks *tasks, uint64_t number, const struct claim_refusal *refusal)
{
    struct text text = {0};

    claim_refusal_explain(tasks->state, refusal, &text);
    if (number == 0) {
        state_log(tasks->state, LEVEL_WARNING, &text);
        return;
    }
    note(tasks, refusal, claim_refusal_code(refusal->kind), text.buf);
    answer(tasks->state, number, claim_refusal_code(refusal->kind), text.buf)->stops =
        refusal->kind == CLAIM_REFUSED_DRAIN;
}

static void tell_line(const struct tasks *tasks, const struct claim *claim,
                      enum devicemgr_line line, const char *what)
{
    struct text text = {0};

    claim_explain_done(claim, what, &text);
    state_log_about(tasks->state, LEVEL_INFO,
                    (struct devicemgr_about){.line = line, .resource = claim->driver}, &text);
}

void task_tell(const struct tasks *tasks, const struct task *task, enum devicemgr_event_kind kind,
               bool again)
{
    const struct claim *claim = task->claim;

    happened_to_claim(tasks->state, kind, again, claim, NULL);
    if (again)
        return;
    if (kind == DEVICEMGR_EVENT_CLAIM_PREPARED)
        tell_line(tasks, claim, DEVICEMGR_LINE_CLAIM_PREPARED, "prepared");
    else if (kind == DEVICEMGR_EVENT_CLAIM_OWED)
        tell_line(tasks, claim, DEVICEMGR_LINE_CLAIM_OWED,
                  "told to be unprepared; its driver, which is away, is told when it is back");
    else
        tell_line(tasks, claim, DEVICEMGR_LINE_CLAIM_UNPREPARED, "unprepared");
}

void task_free(struct tasks *tasks, struct task *task)
{
    HASH_DEL(tasks->by_claim, task);
    free(task->failed);
    free(task);
}

struct claimant *claimant_edit(struct tasks *tasks, uint64_t number)
{
    struct claimant *claimant;

    HASH_FIND(hh, tasks->by_number, &number, sizeof number, claimant);
    return claimant;
}

struct claimant *claimant_add(struct tasks *tasks, struct task *task, enum task_kind kind,
                              uint64_t number)
{
    struct claimant *claimant = mem_alloc(1, sizeof *claimant);

    claimant->number = number;
    claimant->kind = kind;
    claimant->turn = ++tasks->turn;
    claimant->since_ms = tasks->state->now_ms;
    claimant->task = task;
    DL_APPEND(task->claimants, claimant);
    DL_APPEND2(tasks->first, claimant, all_prev, all_next);
    if (number == 0)
        return claimant;
    assert(!claimant_edit(tasks, number));
    HASH_ADD(hh, tasks->by_number, number, sizeof claimant->number, claimant);
    return claimant;
}

void claimant_free(struct tasks *tasks, struct claimant *claimant)
{
    DL_DELETE(claimant->task->claimants, claimant);
    DL_DELETE2(tasks->first, claimant, all_prev, all_next);
    if (claimant->number != 0)
        HASH_DEL(tasks->by_number, claimant);
    free(claimant);
}

static void refuse_first(struct tasks *tasks, struct task *task, enum claim_refusal_kind kind,
                         const char *words)
{
    const struct claimant *first = task->claimants;
    struct claim_refusal refusal =
        claim_refusal_of(task->claim, kind, first->kind == TASK_UNPREPARE);

    refusal.words = words;
    refusal.waited_ms = ago(tasks->state->now_ms, first->since_ms);
    task_refuse(tasks, first->number, &refusal);
    claimant_free(tasks, task->claimants);
}

void task_note_looks(struct state *state, const struct claim *claim)
{
    if (claim_looks(claim))
        wake_all(&state->wakes);
}

/* What the cluster said of its consumers goes with the last that there is of it. */
void task_forget_claim(struct state *state, struct claim *claim)
{
    char *uid = mem_strdup(claim->uid);

    task_note_looks(state, claim);
    claims_remove(&state->claims, claim);
    if (!claims_have(&state->claims, uid))
        consumers_remove(&state->tainted.consumers, uid);
    free(uid);
}

size_t task_asks(const struct task *task)
{
    size_t len = 0;

    for (const struct claimant *c = task ? task->claimants : NULL; c; c = c->next)
        len++;
    return len;
}

bool task_is_asked(const struct task *task, enum task_kind kind)
{
    return task->claimants && task->claimants->kind == kind;
}

void task_refuse_all(struct tasks *tasks, struct task *task, enum claim_refusal_kind kind,
                     const char *words)
{
    enum task_kind of = task->kind;

    while (task_is_asked(task, of))
        refuse_first(tasks, task, kind, words);
}

void task_fail_all(struct tasks *tasks, struct task *task, int code, const char *message)
{
    struct claim_refusal refusal =
        claim_refusal_of(task->claim, CLAIM_REFUSED_DRIVER, task->kind == TASK_UNPREPARE);
    struct text text = {0};

    refusal.words = message;
    claim_refusal_explain(tasks->state, &refusal, &text);
    while (task_is_asked(task, task->kind)) {
        if (task->claimants->number != 0)
            note(tasks, &refusal, code, text.buf);
        task_answer(tasks->state, task->claimants, code, message);
        claimant_free(tasks, task->claimants);
    }
}

static void tell_prepared(struct tasks *tasks, uint64_t number, const struct claim *claim)
{
    struct action *action = action_push(&tasks->state->actions, ACTION_CLAIM_DONE, number);

    action->response = mem_alloc(claim->response_bytes, 1);
    memcpy(action->response, claim->response, claim->response_bytes);
    action->response_bytes = claim->response_bytes;
    tasks->counts.done[TASK_PREPARE]++;
}

static void answer_prepared(struct tasks *tasks, struct claimant *claimant)
{
    if (claimant->number == 0)
        log_renewed(tasks->state, claimant->task->claim, NULL);
    else
        tell_prepared(tasks, claimant->number, claimant->task->claim);
    claimant_free(tasks, claimant);
}

void task_answer_prepared(struct tasks *tasks, struct task *task)
{
    while (task_is_asked(task, TASK_PREPARE))
        answer_prepared(tasks, task->claimants);
}

void task_answer_called(struct tasks *tasks, struct task *task)
{
    while (task_is_asked(task, TASK_PREPARE) && task->claimants->called)
        answer_prepared(tasks, task->claimants);
}

void task_answer_unprepared(struct tasks *tasks, struct task *task)
{
    while (task_is_asked(task, TASK_UNPREPARE)) {
        if (task->claim->state == CLAIM_OWED)
            tasks->counts.put_off++;
        else
            tasks->counts.done[TASK_UNPREPARE]++;
        task_answer(tasks->state, task->claimants, CODE_OK, NULL);
        claimant_free(tasks, task->claimants);
    }
}
