/*
 * What a request for a claim waits for, and how long it may.
 */
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static bool is_away(const struct tasks *tasks, const struct claim *claim)
{
    const struct driver *driver = drivers_find(&tasks->state->drivers, claim->driver);

    return !driver || !driver_callable(driver);
}

/* It is for this one that done is what is being done. */
static bool is_served(const struct task *task, const struct claimant *claimant)
{
    if (task->phase != TASK_CALLING && task->phase != TASK_KEEPING)
        return false;
    for (const struct claimant *c = task->claimants; c && c->kind == task->kind; c = c->next) {
        if (c == claimant)
            return true;
    }
    return false;
}

uint64_t task_limit_ms(const struct tasks *tasks, const struct claimant *claimant)
{
    const struct task *task = claimant->task;

    if (is_served(task, claimant))
        return task->phase == TASK_CALLING
                   ? UINT64_MAX
                   : later_by(later(task->answered_ms, claimant->since_ms), CLAIM_KEEP_MS);
    return tasks->state->draining ? 0 : later_by(claimant->since_ms, CLAIM_HOLD_MS);
}

/* What is in the way, if something is owed. */
static const char *owed_name(const struct tasks *tasks, const struct claimant *claimant)
{
    const struct claim *owed = task_owed_before(tasks, claimant);

    return owed ? owed->name : NULL;
}

static enum claim_refusal_kind kind_of(const struct tasks *tasks, const struct claimant *claimant)
{
    const struct task *task = claimant->task;

    if (!tasks->restored)
        return CLAIM_REFUSED_UNREAD;
    if (task->phase == TASK_CALLING && is_served(task, claimant))
        return CLAIM_WAITS_DRIVER;
    if (tasks->state->draining)
        return CLAIM_REFUSED_DRAIN;
    if (task->phase == TASK_STORING || task->phase == TASK_KEEPING)
        return CLAIM_REFUSED_UNSTORED;
    if (task->listing)
        return CLAIM_REFUSED_USED;
    if (task->phase != TASK_CALLING && is_away(tasks, task->claim))
        return CLAIM_REFUSED_AWAY;
    /* or a call for another request has just ended, and with it the time of this one */
    return task->phase == TASK_IDLE && owed_name(tasks, claimant) ? CLAIM_REFUSED_OWED
                                                                  : CLAIM_REFUSED_TURN;
}

static const char *words_of(const struct tasks *tasks, const struct claimant *claimant,
                            enum claim_refusal_kind kind, struct text *words)
{
    if (kind == CLAIM_REFUSED_USED && task_users_say(claimant->task->claim, words))
        return words->buf;
    return kind == CLAIM_REFUSED_OWED ? owed_name(tasks, claimant) : NULL;
}

struct claim_refusal task_why(const struct tasks *tasks, const struct claimant *claimant,
                              struct text *words)
{
    const struct task *task = claimant->task;
    struct claim_refusal refusal =
        claim_refusal_of(task->claim, kind_of(tasks, claimant), claimant->kind == TASK_UNPREPARE);

    refusal.words = words_of(tasks, claimant, refusal.kind, words);
    refusal.waited_ms = ago(tasks->state->now_ms, claimant->since_ms);
    return refusal;
}

struct claim_refusal task_why_owed(const struct task *task)
{
    struct claim_refusal refusal = claim_refusal_of(
        task->claim, task->phase == TASK_CALLING ? CLAIM_WAITS_DRIVER : CLAIM_WAITS_OWED, true);

    refusal.words = task->failed;
    return refusal;
}

void task_expire(struct tasks *tasks, struct task *task)
{
    struct claimant *claimant, *next;

    DL_FOREACH_SAFE(task->claimants, claimant, next) {
        struct text words = {0};
        struct claim_refusal refusal;

        if (tasks->state->now_ms < task_limit_ms(tasks, claimant))
            continue;
        if (!tasks->state->draining && !is_away(tasks, task->claim) &&
            task_users_wait_on(claimant)) {
            claimant->since_ms = tasks->state->now_ms;
            continue;
        }
        refusal = task_why(tasks, claimant, &words);
        task_refuse(tasks, claimant->number, &refusal);
        claimant_free(tasks, claimant);
    }
}
