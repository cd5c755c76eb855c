/*
 * What is left of drivers that have moved to the kubelet.
 */
#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"

static bool has_moved(const struct tasks *tasks, const char *name)
{
    const struct driver *driver = drivers_find(&tasks->state->drivers, name);

    return driver && driver->moved;
}

bool task_was_elsewhere(const struct tasks *tasks, const struct claim *claim)
{
    const struct driver *driver = drivers_find(&tasks->state->drivers, claim->driver);

    return driver && driver->was_elsewhere;
}

/* What runs with it is known here alone: it may be in another's way, and is prepared anew where the
 * runtime cannot resolve it. What is owed the kubelet takes for done. */
bool task_is_the_kubelets(const struct tasks *tasks, const struct claim *claim)
{
    return (claim->moved || has_moved(tasks, claim->driver)) && claim->users_len == 0 &&
           claim_state_kept(claim->state) && claim->state != CLAIM_OWED;
}

/* It may prepare the claim there itself, and unprepare it; and the driver may be here again before
 * it was told what it is owed, or before the last container has ended that runs with it. */
void task_note_moved(struct tasks *tasks, struct claim *claim)
{
    if (!claim_state_kept(claim->state) || claim->moved || !has_moved(tasks, claim->driver))
        return;
    claim_set_moved(claim, true);
    dirty_touch_claim(tasks->state, claim);
}

bool task_note_here(const struct tasks *tasks, struct claim *claim)
{
    if (!claim->moved || has_moved(tasks, claim->driver))
        return false;
    claim_set_moved(claim, false);
    return true;
}

void tasks_let_go(struct tasks *tasks)
{
    struct claim *claim, *next;

    HASH_ITER(hh, tasks->state->claims.by_key, claim, next) {
        task_note_moved(tasks, claim);
        if (task_find(tasks, claim) || !task_is_the_kubelets(tasks, claim))
            continue;
        dirty_touch_claim(tasks->state, claim);
        task_forget_claim(tasks->state, claim);
    }
}

size_t tasks_asks(const struct tasks *tasks, const char *driver)
{
    const struct claims_of *of = claims_of(&tasks->state->claims, driver);
    size_t len = 0;

    for (const struct claim *claim = of ? of->first : NULL; claim; claim = claim->next)
        len += task_asks(task_find(tasks, claim));
    return len;
}
