/*
 * What is being done for a claim, for all who ask.
 */
#include "devicemgr/machines/task.h"

const struct task *task_find(const struct tasks *tasks, const struct claim *claim)
{
    const struct task *task;

    HASH_FIND_PTR(tasks->by_claim, &claim, task);
    return task;
}

struct task *task_edit(struct tasks *tasks, const struct claim *claim)
{
    return (struct task *)task_find(tasks, claim);
}
