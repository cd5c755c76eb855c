#include "devicemgr/questions/check.h"

#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"

struct check {
    uint64_t number;
    uint64_t create; /* for which it is asked, though it may be over by then */
    char *pod_uid;   /* this and the next two: of the allocation, which may be gone by then */
    char *container;
    char *resource;
    char *container_id;
    UT_hash_handle hh;
};

static void check_free(struct checks *checks, struct check *check)
{
    HASH_DEL(checks->by_number, check);
    free(check->pod_uid);
    free(check->container);
    free(check->resource);
    free(check->container_id);
    free(check);
}

void checks_fini(struct checks *checks)
{
    struct check *check, *next;

    HASH_ITER(hh, checks->by_number, check, next) {
        check_free(checks, check);
    }
}

void checks_start(struct checks *checks, uint64_t create, struct allocation *holder)
{
    struct check *check = mem_alloc(1, sizeof *check);
    struct action *action;

    check->number = state_number(checks->state);
    check->create = create;
    check->pod_uid = mem_strdup(holder->pod_uid);
    check->container = mem_strdup(holder->container);
    check->resource = mem_strdup(holder->resource);
    check->container_id = mem_strdup(allocation_live_id(holder));
    HASH_ADD(hh, checks->by_number, number, sizeof check->number, check);
    allocation_set_asked(holder, check->number);
    action = action_push(&checks->state->actions, ACTION_CONTAINER_CHECK, check->number);
    action->text = mem_strdup(check->container_id);
}

/* Who asked may be over, its hold shorter than the runtime took: its next attempt would ask again,
 * and so on for ever. */
static void confirm(struct state *state, struct allocation *holder, uint64_t create)
{
    allocation_set_said_to_run(
        holder, create, wakes_find(&state->wakes, create) ? 0 : state->now_ms + LATE_ANSWER_MS);
}

/* Others wait for the answer, too, or to ask themselves. */
static void take_answer(struct state *state, struct allocation *holder, const struct check *check,
                        enum devicemgr_checked answer)
{
    if (answer == DEVICEMGR_RUNS)
        confirm(state, holder, check->create);
    else if (answer == DEVICEMGR_NOT_ANSWERED)
        allocation_set_unanswered(holder, state->now_ms + CHECK_AGAIN_MS);
    wake_holders(&state->wakes, holder);
}

char *checks_answered(struct checks *checks, uint64_t number, enum devicemgr_checked answer)
{
    struct state *state = checks->state;
    struct allocation *holder;
    struct waiter *asker;
    struct check *check;
    char *ended = NULL;

    HASH_FIND(hh, checks->by_number, &number, sizeof number, check);
    if (!check)
        return NULL;
    holder =
        allocations_edit(&state->allocations, check->pod_uid, check->container, check->resource);
    if (holder && allocation_set_answered(holder, number)) {
        take_answer(state, holder, check, answer);
        if (answer == DEVICEMGR_GONE)
            ended = mem_strdup(check->container_id);
    }
    asker = wakes_find(&state->wakes, check->create);
    if (asker)
        wake_one(&state->wakes, asker);
    check_free(checks, check);
    return ended;
}

size_t checks_len(const struct checks *checks)
{
    return HASH_COUNT(checks->by_number);
}
