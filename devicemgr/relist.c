/*
 * When the runtime is listed, and what must be remembered while it is.
 */
#include <string.h>

#include "devicemgr/core.h"
#include "devicemgr/limits.h"
#include "devicemgr/moment.h"
#include "devicemgr/runtime.h"

void runtime_list_by(struct devicemgr *mgr, uint64_t at_ms)
{
    mgr->list_ms = earlier(mgr->list_ms, at_ms);
}

void runtime_restored(struct devicemgr *mgr)
{
    mgr->rows_lost_until_ms = mgr->now_ms + OUTCOME_MS;
    if (mgr->rows_lost || mgr->allocations.by_key)
        runtime_list_by(mgr, mgr->rows_lost_until_ms);
}

static void ask_list(struct devicemgr *mgr)
{
    mgr->list_ms = UINT64_MAX;
    mgr->list_asked = true;
    action_push(&mgr->actions, ACTION_RUNTIME_LIST, 0);
}

void runtime_list_soon(struct devicemgr *mgr)
{
    if (mgr->listing || mgr->list_asked)
        return;
    if (mgr->now_ms < mgr->listing_ms + LIST_EVERY_MS)
        runtime_list_by(mgr, mgr->listing_ms + LIST_EVERY_MS);
    else
        ask_list(mgr);
}

void runtime_tick(struct devicemgr *mgr)
{
    if (mgr->now_ms >= mgr->list_ms)
        ask_list(mgr);
}

/* ---- what ended meanwhile ---- */

/* A container that ended while a list is being asked for, which may name it as one that runs. */
struct ended {
    char *container_id;
    UT_hash_handle hh;
};

bool runtime_has_ended(const struct devicemgr *mgr, const char *container_id)
{
    const struct ended *ended;

    HASH_FIND_STR(mgr->ended, container_id, ended);
    return ended != NULL;
}

void runtime_note_ended(struct devicemgr *mgr, const char *container_id)
{
    struct ended *ended;

    if (!mgr->listing || runtime_has_ended(mgr, container_id))
        return;
    ended = mem_alloc(1, sizeof *ended);
    ended->container_id = mem_strdup(container_id);
    HASH_ADD_KEYPTR(hh, mgr->ended, ended->container_id, strlen(ended->container_id), ended);
}

void runtime_forget_ended(struct devicemgr *mgr)
{
    struct ended *ended, *next;

    HASH_ITER(hh, mgr->ended, ended, next)
    {
        HASH_DEL(mgr->ended, ended);
        free(ended->container_id);
        free(ended);
    }
}

/* ---- a list begins, and has come ---- */

void devicemgr_runtime_listing(struct devicemgr *mgr)
{
    runtime_forget_ended(mgr); /* it will not name what has ended by now */
    mgr->epoch++;
    mgr->listing = true;
    mgr->list_asked = false;
    mgr->listing_ms = mgr->now_ms;
}

void runtime_list_again(struct devicemgr *mgr)
{
    uint64_t at_ms = UINT64_MAX;

    if (mgr->rows_lost)
        at_ms = mgr->rows_lost_until_ms;
    for (const struct allocation *a = mgr->allocations.by_key; a; a = a->hh.next) {
        if (a->unknown_in)
            at_ms = earlier(at_ms, a->unknown_until_ms);
    }
    for (const struct sandbox *s = mgr->pods.sandboxes; s; s = s->hh.next) {
        if (s->state == SANDBOX_DOUBTED && !s->dead)
            at_ms = earlier(at_ms, s->reopen_ms);
    }
    if (at_ms < mgr->listing_ms + LIST_EVERY_MS)
        at_ms = mgr->listing_ms + LIST_EVERY_MS;
    mgr->list_ms = at_ms;
}

void runtime_list_for_absent(struct devicemgr *mgr)
{
    for (const struct pod *pod = mgr->pods.by_uid; pod; pod = pod->hh.next) {
        uint64_t until_ms = pod->newest ? 0 : runtime_returns_until_ms(mgr, pod);

        if (until_ms > mgr->now_ms)
            runtime_list_by(mgr, until_ms);
    }
}
