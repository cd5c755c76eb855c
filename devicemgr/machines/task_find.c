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

struct task *task_ensure(struct tasks *tasks, struct claim *claim)
{
    struct task *task = task_edit(tasks, claim);

    if (task)
        return task;
    task = mem_alloc(1, sizeof *task);
    task->claim = claim;
    HASH_ADD_PTR(tasks->by_claim, claim, task);
    return task;
}
