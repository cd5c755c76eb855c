/*
 * All tasks: who asks, and what comes from outside.
 */
#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "cri-proto/utf8.h"
#include "devicemgr/books/state.h"
#include "devicemgr/dra.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/things/cdi.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/things/name.h"
#include "devicemgr/words/cdi.h"

void tasks_fini(struct tasks *tasks)
{
    struct task *task, *next;

    while (tasks->first)
        claimant_free(tasks, tasks->first);
    HASH_CLEAR(hh_call, tasks->by_call);
    HASH_ITER(hh, tasks->by_claim, task, next) {
        task_free(tasks, task);
    }
}

static void advance_all(struct tasks *tasks)
{
    struct task *task, *next;

    HASH_ITER(hh, tasks->by_claim, task, next) {
        task_advance(tasks, task);
    }
}

/* What was owed is in the way of others of its driver no more, or not as it was. */
static void settle(struct tasks *tasks)
{
    while (tasks->owed_less) {
        tasks->owed_less = false;
        advance_all(tasks);
    }
}

static void expire_all(struct tasks *tasks)
{
    struct task *task, *next;

    HASH_ITER(hh, tasks->by_claim, task, next) {
        task_expire(tasks, task);
        task_advance(tasks, task);
    }
}

/* ---- who asks ---- */

static bool names_fit(const char *driver, const struct devicemgr_claim *claim)
{
    return claim->uid[0] != '\0' && driver[0] != '\0' && utf8_is_text(claim->uid) &&
           utf8_is_text(driver) && utf8_is_text(claim->pod_namespace) &&
           utf8_is_text(claim->name) &&
           strlen(claim->uid) + strlen(driver) + strlen(claim->pod_namespace) +
                   strlen(claim->name) <=
               CLAIM_NAMES_BYTES_MAX;
}

/* CLAIM_REFUSAL_KINDS: nothing is in the way. */
static enum claim_refusal_kind check(const struct tasks *tasks, const char *driver,
                                     const struct devicemgr_claim *claim)
{
    const struct state *state = tasks->state;

    if (!names_fit(driver, claim))
        return CLAIM_REFUSED_NAMES;
    if (state->draining)
        return CLAIM_REFUSED_DRAIN;
    if (HASH_COUNT(tasks->by_number) >= CLAIM_REQUESTS_MAX)
        return CLAIM_REFUSED_QUEUE;
    if (!claims_find(&state->claims, claim->uid, driver) &&
        claims_len(&state->claims) >= CLAIMS_MAX)
        return CLAIM_REFUSED_MANY;
    return CLAIM_REFUSAL_KINDS;
}

void tasks_ask(struct tasks *tasks, enum task_kind kind, uint64_t number,
               struct devicemgr_batch batch, const char *driver,
               const struct devicemgr_claim *claim)
{
    struct state *state = tasks->state;
    const struct claim_refusal refusal = {.kind = check(tasks, driver, claim),
                                          .driver = driver,
                                          .pod_namespace = claim->pod_namespace,
                                          .name = claim->name,
                                          .uid = claim->uid,
                                          .unprepare = kind == TASK_UNPREPARE};
    struct claim *is;
    struct task *task;

    if (refusal.kind != CLAIM_REFUSAL_KINDS) {
        task_refuse(tasks, number, &refusal);
        return;
    }
    is = claims_edit(&state->claims, claim->uid, driver);
    if (!is)
        is = claims_add(&state->claims, claim->uid, driver, claim->pod_namespace, claim->name);
    task = task_ensure(tasks, is);
    claimant_add(tasks, task, kind, number)->batch = batch;
    if (kind == TASK_PREPARE || is->unanswered) { /* which may have been given others since */
        task_note_looks(state, is);
        claim_forget_allocation(is);
    }
    action_push(&state->actions, ACTION_CLAIM_LOOK, 0)->claim = action_claim(is);
    if (batch.number != 0) {
        tasks->asked = true;
        return;
    }
    task_advance(tasks, task);
    settle(tasks);
}

void tasks_asked(struct tasks *tasks)
{
    if (!tasks->asked)
        return;
    tasks->asked = false;
    advance_all(tasks);
    settle(tasks);
}

void tasks_cancelled(struct tasks *tasks, uint64_t number)
{
    struct claimant *claimant = claimant_edit(tasks, number);
    struct task *task;

    actions_drop(&tasks->state->actions, ACTION_CLAIM_DONE, number, 0);
    if (!claimant)
        return;
    task = claimant->task;
    claimant_free(tasks, claimant);
    task_advance(tasks, task);
}

/* ---- what comes from outside ---- */

void tasks_restored(struct tasks *tasks, bool lost)
{
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next) {
        if (claim->state == CLAIM_OWED)
            task_ensure(tasks, claim);
        /* What it has may be in another's way; who may use it may have to go, and until that is
         * told nobody is let go of whom an earlier process has asked for it. */
        if (claim->users_len > 0 || claim->state != CLAIM_OWED)
            action_push(&tasks->state->actions, ACTION_CLAIM_LOOK, 0)->claim = action_claim(claim);
    }
    tasks->restored = true;
    tasks->doubt = lost;
    tasks_let_go(tasks);
    tasks_slices_changed(tasks);
}

void tasks_drain(struct tasks *tasks)
{
    expire_all(tasks);
}

/* ---- containers ---- */

static void log_about(struct tasks *tasks, const struct demand *demand, const struct text *text)
{
    state_log_about(tasks->state, LEVEL_WARNING, name_about_demand(demand, NULL), text);
}

static void tell_held(struct tasks *tasks, const struct demand *demand, const struct reason *held)
{
    struct state *state = tasks->state;
    struct claim *claim = claims_edit(&state->claims, held->claim->uid, held->claim->driver);
    struct text text = {0};

    if (!claim_tell_held_once(claim))
        return;
    reason_explain(state, demand, held, &text);
    log_about(tasks, demand, &text);
}

static void tell_cdi_unknown(struct tasks *tasks, const struct demand *demand)
{
    struct text text = {0};

    tasks->state->cdi_told = true;
    name_demand(demand, NULL, &text);
    cdi_explain_unknown(&text);
    log_about(tasks, demand, &text);
}

/* What nobody knows enough of to refuse it. */
static void tell_doubts(struct tasks *tasks, const struct devicemgr_create *request,
                        const struct look *look)
{
    const struct state *state = tasks->state;
    struct demand demand = {0};

    demand_init(&demand, DEMAND_OF_NO_CREATE, state->now_ms, request);
    if (look->reason.kind == REASON_CLAIM_HELD)
        tell_held(tasks, &demand, &look->reason);
    if (state->cdi == DEVICEMGR_CDI_UNKNOWN && !state->cdi_told && claimed_any(state, request))
        tell_cdi_unknown(tasks, &demand);
    demand_fini(&demand);
}

/* An unprepare has failed, or was given up; the kubelet, which names it, does not ask. */
static void renew_now(struct tasks *tasks, struct claim *claim)
{
    struct task *task;

    task_users_renew_claim(tasks, claim);
    task = task_edit(tasks, claim);
    if (task)
        task_advance(tasks, task);
}

void tasks_created(struct tasks *tasks, const struct devicemgr_create *request,
                   const struct look *look)
{
    struct claim *claim = request->cdi_devices_len > 0 ? tasks->state->claims.by_key : NULL;
    struct claim *next;

    if (claim)
        tell_doubts(tasks, request, look);
    for (; claim; claim = next) {
        next = claim->hh.next;
        if (task_users_add(tasks, claim, request) && claim->state == CLAIM_UNPREPARING)
            renew_now(tasks, claim);
    }
    settle(tasks);
}

void tasks_made(struct tasks *tasks, const char *sandbox_id, const char *container)
{
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next)
        claim_note_asked(claim, sandbox_id, container, tasks->state->now_ms);
}

/* The kubelet makes its containers without asking for it once more, also where the driver has
 * failed to prepare it anew, or to unprepare it. */
static bool may_be_taken_for_prepared(const struct claim *claim)
{
    return claim->state == CLAIM_PREPARED || claim->state == CLAIM_SENT ||
           claim->state == CLAIM_UNPREPARING;
}

/* The driver is asked to prepare the claim anew. Not one that is being prepared, or asked for: that
 * brings names by itself. Nor one that no container was asked for with: where a driver has one name
 * for all that it gives, the name need not be this claim's. */
static void prepare_anew(struct tasks *tasks, struct claim *claim, const char *cdi)
{
    const struct task *busy = task_find(tasks, claim);
    struct text text = {0};
    struct task *task;
    uint64_t pause_ms;

    if (!may_be_taken_for_prepared(claim) || claim->users_len == 0 ||
        (busy && (busy->phase != TASK_IDLE || busy->claimants)) ||
        !claim_anew(claim, tasks->state->now_ms, &pause_ms))
        return;
    claim_explain_anew(claim, cdi, pause_ms, &text);
    state_log(tasks->state, LEVEL_WARNING, &text);
    task = task_ensure(tasks, claim);
    claimant_add(tasks, task, TASK_PREPARE, 0);
    task_advance(tasks, task);
}

void tasks_create_refused(struct tasks *tasks, const char *words)
{
    struct claim *claim, *next;
    struct ids names = {0};

    cdi_unresolved(words, &names);
    for (size_t i = 0; i < names.len; i++) {
        HASH_ITER(hh, tasks->state->claims.by_key, claim, next) {
            if (claim_has_cdi(claim, names.v[i]))
                prepare_anew(tasks, claim, names.v[i]);
        }
    }
    ids_fini(&names);
    settle(tasks);
}

void tasks_sandbox_ended(struct tasks *tasks, const char *sandbox_id)
{
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next)
        task_users_ended(tasks, claim, sandbox_id);
    tasks_let_go(tasks);
    advance_all(tasks);
}

void tasks_listed(struct tasks *tasks, const struct devicemgr_container *containers, size_t len)
{
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next)
        task_users_listed(tasks, claim, containers, len);
    tasks_let_go(tasks);
    for (struct task *task = tasks->by_claim; task; task = task->hh.next) {
        task->listed = task->listing && tasks->state->listing.epoch > task->epoch;
        if (task->listing && !task->listed)
            listing_anew(tasks->state);
    }
    advance_all(tasks);
    settle(tasks);
}

/* ---- what the cluster says ---- */

void tasks_slices_changed(struct tasks *tasks)
{
    if (!tasks->restored)
        return; /* then all are looked at */
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next)
        task_note_local(tasks, claim);
    advance_all(tasks);
}

void tasks_allocation(struct tasks *tasks, const char *uid, bool allocated,
                      const struct devicemgr_claim_device *devices, size_t devices_len)
{
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next) {
        bool alone = claim->alone;
        struct granted granted = {0};

        if (strcmp(claim->uid, uid) != 0)
            continue;
        for (size_t i = 0; i < devices_len && granted.len < CLAIM_DEVICES_MAX; i++) {
            const struct devicemgr_claim_device *is = &devices[i];

            if (strcmp(is->driver, claim->driver) == 0)
                granted_add(&granted, is->pool, is->device, is->share_id, is->admin_access);
        }
        task_note_looks(tasks->state, claim);
        claim_set_allocation(claim, allocated, &granted);
        task_note_looks(tasks->state, claim);
        task_note_local(tasks, claim);
        if (claim->alone != alone && claim->users_len > 0) /* else it comes with who uses it */
            dirty_touch_claim(tasks->state, claim);
    }
    advance_all(tasks);
}

/* ---- drivers ---- */

void tasks_driver_came(struct tasks *tasks, const char *driver)
{
    const struct claims_of *of = claims_of(&tasks->state->claims, driver);
    struct claim *claim = of ? of->first : NULL;

    for (struct claim *c = claim; c; c = c->next)
        task_users_renew_claim(tasks, c);
    for (struct claim *c = claim; c; c = c->next) {
        struct task *task = task_edit(tasks, c);

        if (task && !claim_is_lost(c))
            task_owed_anew(task);
    }
    while (claim) {
        struct claim *next = claim->next;
        struct task *task = task_edit(tasks, claim);

        if (task)
            task_advance(tasks, task);
        claim = next;
    }
    settle(tasks);
}

void tasks_instance_lost(struct tasks *tasks, uint64_t instance)
{
    struct task *task, *next;

    HASH_ITER(hh_call, tasks->by_call, task, next) {
        if (task->instance == instance)
            task_unanswered(tasks, task);
    }
    settle(tasks);
}

void tasks_answered(struct tasks *tasks, uint64_t call, int code, const char *message,
                    const void *response, size_t response_bytes)
{
    struct task *task;

    HASH_FIND(hh_call, tasks->by_call, &call, sizeof call, task);
    if (task)
        task_answered(tasks, task, code, message, response, response_bytes);
    settle(tasks);
}

void tasks_in_use(struct tasks *tasks, uint64_t call)
{
    struct task *task;

    HASH_FIND(hh_call, tasks->by_call, &call, sizeof call, task);
    if (task)
        task_in_use(tasks, task);
    settle(tasks);
}

/* ---- the store ---- */

static bool is_to_be_stored(const struct task *task)
{
    return task->phase == TASK_STORING || task->phase == TASK_KEEPING;
}

void tasks_commit_began(struct tasks *tasks)
{
    for (struct task *task = tasks->by_claim; task; task = task->hh.next) {
        if (is_to_be_stored(task) && task->commit == 0)
            task->commit = task->claim->commit;
    }
}

/* What was owed by the store alone is so no more. */
static void note_owed_less(struct tasks *tasks)
{
    for (struct claims_of *of = tasks->state->claims.by_driver; of; of = of->hh.next) {
        tasks->owed_less = tasks->owed_less || of->owed_less;
        of->owed_less = false;
    }
}

/* What we have asked for ourselves, and was given up as it could not be stored. */
static void renew_given_up(struct tasks *tasks)
{
    tasks->given_up = false;
    for (struct claim *claim = tasks->state->claims.by_key; claim; claim = claim->hh.next) {
        if (claim->given_up)
            task_users_renew_claim(tasks, claim);
        claim->given_up = false;
    }
    advance_all(tasks);
}

void tasks_committed(struct tasks *tasks, uint64_t commit, const char *error)
{
    struct task *task, *next;

    HASH_ITER(hh, tasks->by_claim, task, next) {
        bool durable = task->claim->durable;

        if (!is_to_be_stored(task) || (task->commit != commit && !durable))
            continue;
        task->commit = 0;
        task_committed(tasks, task, durable ? NULL : error);
    }
    note_owed_less(tasks);
    if (tasks->given_up && !error)
        renew_given_up(tasks);
    settle(tasks);
}

/* ---- time ---- */

static uint64_t owed_next_ms(const struct tasks *tasks, const struct claims_of *of)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct claim *claim = of->owed > 0 ? of->first : NULL; claim; claim = claim->next) {
        const struct task *task = claim->state == CLAIM_OWED ? task_find(tasks, claim) : NULL;

        if (task)
            next_ms = earlier(next_ms, task_owed_next_ms(tasks, task));
    }
    return next_ms;
}

uint64_t tasks_next_ms(const struct tasks *tasks)
{
    uint64_t next_ms = UINT64_MAX;

    for (const struct claimant *c = tasks->first; c; c = c->all_next)
        next_ms = earlier(next_ms, task_limit_ms(tasks, c));
    for (const struct claims_of *of = tasks->state->claims.by_driver; of; of = of->hh.next)
        next_ms = earlier(next_ms, owed_next_ms(tasks, of));
    return next_ms;
}

void tasks_tick(struct tasks *tasks)
{
    if (tasks->state->now_ms < tasks_next_ms(tasks))
        return;
    expire_all(tasks);
    settle(tasks);
}
