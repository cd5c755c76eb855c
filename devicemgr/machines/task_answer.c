/*
 * The ends of requests.
 */
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/things/moment.h"

void task_answer(struct state *state, uint64_t number, int code, const char *message)
{
    struct action *action = action_push(&state->actions, ACTION_CLAIM_DONE, number);

    action->code = code;
    action->text = code == CODE_OK ? NULL : mem_strdup(message ? message : "");
}

void task_refuse(struct state *state, uint64_t number, const struct claim_refusal *refusal)
{
    struct text text = {0};

    claim_refusal_explain(state, refusal, &text);
    task_answer(state, number, claim_refusal_code(refusal->kind), text.buf);
}

void claimant_free(struct tasks *tasks, struct claimant *claimant)
{
    DL_DELETE(claimant->task->claimants, claimant);
    DL_DELETE2(tasks->first, claimant, all_prev, all_next);
    HASH_DEL(tasks->by_number, claimant);
    free(claimant);
}

static void refuse_first(struct tasks *tasks, struct task *task, enum claim_refusal_kind kind,
                         const char *words)
{
    const struct claimant *first = task->claimants;
    const struct claim_refusal refusal = {
        .kind = kind,
        .driver = task->claim->driver,
        .pod_namespace = task->claim->pod_namespace,
        .name = task->claim->name,
        .words = words,
        .waited_ms = ago(tasks->state->now_ms, first->since_ms),
    };

    task_refuse(tasks->state, first->number, &refusal);
    claimant_free(tasks, task->claimants);
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
    while (task_is_asked(task, task->kind)) {
        task_answer(tasks->state, task->claimants->number, code, message);
        claimant_free(tasks, task->claimants);
    }
}

void task_answer_prepared(struct tasks *tasks, struct task *task)
{
    const struct claim *claim = task->claim;

    while (task_is_asked(task, TASK_PREPARE)) {
        struct action *action =
            action_push(&tasks->state->actions, ACTION_CLAIM_DONE, task->claimants->number);

        action->response = mem_alloc(claim->response_bytes, 1);
        memcpy(action->response, claim->response, claim->response_bytes);
        action->response_bytes = claim->response_bytes;
        claimant_free(tasks, task->claimants);
    }
}

void task_answer_unprepared(struct tasks *tasks, struct task *task)
{
    while (task_is_asked(task, TASK_UNPREPARE)) {
        task_answer(tasks->state, task->claimants->number, CODE_OK, NULL);
        claimant_free(tasks, task->claimants);
    }
}
