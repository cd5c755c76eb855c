/*
 * What is owed to drivers: claims that were told to be unprepared while the driver was away.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* The kubelet had it in its books since the claim was asked for: then it is allocated yet, and what
 * the claim has is not the same. What it has unprepared since then may be anybody's who asks
 * later. */
static bool is_kept_in_books(const struct tasks *tasks, const struct task *owed,
                             const struct claim *claim)
{
    const struct task *task = task_find(tasks, claim);
    const struct claimant *last = task ? task->claimants : NULL;

    while (last && last->next && last->next->kind == TASK_PREPARE)
        last = last->next;
    return owed->in_use && last && last->turn <= owed->looked;
}

/* The driver may have it: by us, or by the kubelet itself. */
static bool may_be_had(const struct tasks *tasks, const struct claim *owed)
{
    return owed->sent || task_was_elsewhere(tasks, owed);
}

/* Whether they may be the same thing: one of which no other is made is nothing else, nor is one
 * that draws on other counters. */
static bool may_be_one(const struct tasks *tasks, const char *driver,
                       const struct granted_device *a, const struct granted_device *b)
{
    const struct slices *slices = &tasks->state->slices;

    if (strcmp(a->pool, b->pool) != 0)
        return false;
    return strcmp(a->device, b->device) == 0 ||
           !(slices_apart(slices, driver, a->pool, a->device) ||
             slices_apart(slices, driver, b->pool, b->device) ||
             slices_draw_apart(slices, driver, a->pool, a->device, b->device));
}

static bool may_meet(const struct tasks *tasks, const char *driver, const struct granted *a,
                     const struct granted *b)
{
    for (size_t i = 0; i < a->len; i++) {
        for (size_t k = 0; k < b->len; k++) {
            if (may_be_one(tasks, driver, &a->v[i], &b->v[k]))
                return true;
        }
    }
    return false;
}

/* A kubelet has one of a name at a time, and drivers go by that: they would take down what they
 * have prepared since for the other one. */
static bool has_name_of(const struct claim *owed, const struct claim *claim)
{
    return strcmp(owed->name, claim->name) == 0 &&
           strcmp(owed->pod_namespace, claim->pod_namespace) == 0;
}

/* Each is tried before anything else. One that failed is in the way of its name, and of what may be
 * the same devices, or of any, as long as that is not known of both; unless it never had any, or
 * the kubelet has it in its books. What is not allocated may be in a moment. */
static bool is_in_the_way(const struct tasks *tasks, const struct claim *owed,
                          const struct claim *claim)
{
    const struct task *task = task_find(tasks, owed);

    if (!task || !task->tried || task->phase != TASK_IDLE || has_name_of(owed, claim))
        return true;
    return may_be_had(tasks, owed) && !is_kept_in_books(tasks, task, claim) &&
           (task->in_use || claim->allocation.len == 0 || owed->devices.len == 0 ||
            owed->unanswered || may_meet(tasks, claim->driver, &owed->devices, &claim->allocation));
}

/* One that is owed no more is in the way until that is stored: after a crash it would be told
 * again, behind what was prepared since. */
const struct claim *task_owed_first(const struct tasks *tasks, const struct claim *claim)
{
    if (claim->of->owed == 0 && claim->of->owed_stored == 0)
        return NULL;
    for (const struct claim *c = claim->of->first; c; c = c->next) {
        bool owed = c->state == CLAIM_OWED ? is_in_the_way(tasks, c, claim) : c->owed_stored;

        if (c != claim && owed)
            return c;
    }
    return NULL;
}

/* It may be what is owed itself. */
static const struct claim *owed_first(const struct tasks *tasks, const struct claim *claim)
{
    return claim->state == CLAIM_OWED ? claim : task_owed_first(tasks, claim);
}

const struct claim *task_owed_before(const struct tasks *tasks, const struct claimant *claimant)
{
    const struct claims_of *of = claimant->task->claim->of;
    const struct claim *owed = owed_first(tasks, claimant->task->claim);

    if (claimant->batch.number == 0 || of->owed + of->owed_stored == 0)
        return owed;
    for (const struct claimant *c = tasks->first; c && !owed; c = c->all_next) {
        if (c->batch.number == claimant->batch.number && c->kind == TASK_PREPARE &&
            c->task->phase == TASK_IDLE)
            owed = owed_first(tasks, c->task->claim);
    }
    return owed;
}

bool task_owed_may_go(const struct tasks *tasks, const struct task *task)
{
    return tasks->state->now_ms >= task->retry_ms && task->claim->of->owed_calls < OWED_AT_ONCE;
}

void task_owed_failed(struct tasks *tasks, struct task *task, const char *message)
{
    const char *words = message ? message : "no reason given";
    bool again = task->failed && strcmp(task->failed, words) == 0;
    struct text text = {0};

    task->pause_ms = longer_pause(task->pause_ms, OWED_RETRY_MS_MIN, OWED_RETRY_MS_MAX);
    task->retry_ms = tasks->state->now_ms + task->pause_ms;
    task->tried = true;
    task->in_use = false;
    if (again)
        return; /* it is said */
    free(task->failed);
    task->failed = mem_strdup(words);
    claim_explain_owed(task->claim, words, &text);
    state_log(tasks->state, LEVEL_WARNING, &text);
}

void task_owed_anew(struct task *task)
{
    task->tried = task->in_use = false;
    task->retry_ms = task->pause_ms = 0;
}

uint64_t task_owed_next_ms(const struct tasks *tasks, const struct task *task)
{
    const struct driver *driver = drivers_find(&tasks->state->drivers, task->claim->driver);

    if (task->phase != TASK_IDLE || task->claim->state != CLAIM_OWED || !task->tried ||
        task->listing || !driver || !driver_callable(driver))
        return UINT64_MAX;
    if (task->retry_ms > tasks->state->now_ms || task_owed_may_go(tasks, task))
        return task->retry_ms;
    return UINT64_MAX; /* others are under way */
}
