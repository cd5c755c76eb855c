/*
 * Questions to the runtime: does the container of an allocation still run?
 */
#include "devicemgr/create.h"
#include "devicemgr/limits.h"

struct check {
    uint64_t number;
    uint64_t create; /* for which it is asked, though it may be over by then */
    char *pod_uid;   /* this and the next two: of the allocation, which may be gone by then */
    char *container;
    char *resource;
    char *container_id;
    UT_hash_handle hh;
};

static void check_free(struct devicemgr *mgr, struct check *check)
{
    HASH_DEL(mgr->checks, check);
    free(check->pod_uid);
    free(check->container);
    free(check->resource);
    free(check->container_id);
    free(check);
}

void checks_fini(struct devicemgr *mgr)
{
    struct check *check, *next;

    HASH_ITER(hh, mgr->checks, check, next)
    {
        check_free(mgr, check);
    }
}

void check_start(struct devicemgr *mgr, const struct create *create, struct allocation *holder)
{
    struct check *check = mem_alloc(1, sizeof *check);
    struct action *action;

    check->number = core_number(mgr);
    check->create = create->number;
    check->pod_uid = mem_strdup(holder->pod_uid);
    check->container = mem_strdup(holder->container);
    check->resource = mem_strdup(holder->resource);
    check->container_id = mem_strdup(allocation_live_id(holder));
    HASH_ADD(hh, mgr->checks, number, sizeof check->number, check);
    allocation_set_asked(holder, check->number);
    action = action_push(&mgr->actions, ACTION_CONTAINER_CHECK, check->number);
    action->text = mem_strdup(check->container_id);
}

/* Who asked may be over, its hold shorter than the runtime took: its next attempt would ask again,
 * and so on for ever. */
static void confirm(const struct devicemgr *mgr, struct allocation *holder, uint64_t create)
{
    allocation_set_said_to_run(holder, create,
                               creates_find(mgr, create) ? 0 : mgr->now_ms + LATE_ANSWER_MS);
}

/* Others wait for the answer, too, or to ask themselves. */
static void take_answer(struct devicemgr *mgr, struct allocation *holder, const struct check *check,
                        enum devicemgr_checked answer)
{
    if (answer == DEVICEMGR_RUNS)
        confirm(mgr, holder, check->create);
    else if (answer == DEVICEMGR_NOT_ANSWERED)
        allocation_set_unanswered(holder, mgr->now_ms + CHECK_AGAIN_MS);
    wake_holders(mgr, holder);
}

char *check_answered(struct devicemgr *mgr, uint64_t number, enum devicemgr_checked answer)
{
    struct allocation *holder;
    struct check *check;
    char *ended = NULL;

    HASH_FIND(hh, mgr->checks, &number, sizeof number, check);
    if (!check)
        return NULL;
    holder = allocations_find(&mgr->allocations, check->pod_uid, check->container, check->resource);
    if (holder && allocation_set_answered(holder, number)) {
        take_answer(mgr, holder, check, answer);
        if (answer == DEVICEMGR_GONE)
            ended = mem_strdup(check->container_id);
    }
    if (creates_find(mgr, check->create))
        wake_create(mgr, creates_find(mgr, check->create));
    check_free(mgr, check);
    return ended;
}

size_t checks_len(const struct devicemgr *mgr)
{
    return HASH_COUNT(mgr->checks);
}
