/*
 * Who uses a claim: containers that were asked for with its devices, until they have ended.
 */
#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

/* Whether the other claim has a device of the same names as one of these. It need not be the same
 * device, nor the same share of it: a driver may have one name for all that it gives, as for a file
 * in /dev that all may open. */
static bool look_alike(const struct granted *devices, const struct claim *other)
{
    for (size_t i = 0; i < devices->len; i++) {
        const struct granted_device *device = &devices->v[i];

        if (device->cdi.len > 0 && granted_has_alike(&other->devices, device))
            return true;
    }
    return false;
}

/* It may have its device by another claim, that stays: a driver may have the same names for a
 * device whoever has it, and several may, if they share it, or some only look at it. That another
 * runs for ever is no reason for a pod not to end. */
static bool may_be_anothers(const struct claim *claim, const struct claim_user *user)
{
    for (const struct claim *other = claim->of->first; other; other = other->next) {
        if (other != claim && other->state == CLAIM_PREPARED &&
            claim_find_user(other, user->sandbox_id, user->container) &&
            look_alike(claim_devices_of(claim, user), other))
            return true;
    }
    return false;
}

static const struct claim_user *first_user(const struct claim *claim)
{
    for (size_t i = 0; i < claim->users_len; i++) {
        if (!may_be_anothers(claim, &claim->users[i]))
            return &claim->users[i];
    }
    return NULL;
}

bool task_users_say(const struct claim *claim, struct text *text)
{
    const struct claim_user *user = first_user(claim);

    if (user)
        claim_explain_user(user->container, user->pod, text);
    return user;
}

bool task_users_have(const struct claim *claim)
{
    return first_user(claim);
}

static void refuse_used(struct tasks *tasks, struct task *task, const struct text *user)
{
    task->kind = TASK_UNPREPARE;
    task_refuse_all(tasks, task, CLAIM_REFUSED_USED, user->buf);
}

bool task_users_wait(struct tasks *tasks, struct task *task)
{
    struct text user = {0};

    if (!task_is_asked(task, TASK_UNPREPARE) || !task_users_say(task->claim, &user)) {
        task->listing = false;
        return false;
    }
    if (!task->listing) {
        task->listing = true;
        task->epoch = tasks->state->listing.epoch;
        listing_anew(tasks->state);
    } else if (task->listed) {
        task->listing = task->listed = false;
        refuse_used(tasks, task, &user);
        task_users_renew(tasks, task);
        return false;
    }
    return true;
}

void task_users_renew(struct tasks *tasks, struct task *task)
{
    if (task->claim->state == CLAIM_UNPREPARING && !task->claimants && task_users_have(task->claim))
        claimant_add(tasks, task, TASK_PREPARE, 0);
}

/* Its driver was told to unprepare it, or has not said that it has prepared it anew. What may be
 * what ends its driver is not asked for again each time that it is back. */
static bool may_be_unprepared(const struct claim *claim)
{
    return claim->state == CLAIM_UNPREPARING ||
           (claim->state == CLAIM_SENT && !claim_is_lost(claim));
}

static bool is_to_be_renewed(const struct claim *claim)
{
    return may_be_unprepared(claim) && !claim->moved && task_users_have(claim);
}

bool task_users_wait_on(const struct claimant *claimant)
{
    return claimant->number == 0 && !claimant->next && is_to_be_renewed(claimant->task->claim);
}

void task_users_renew_claim(struct tasks *tasks, struct claim *claim)
{
    if (is_to_be_renewed(claim) && !task_find(tasks, claim))
        claimant_add(tasks, task_ensure(tasks, claim), TASK_PREPARE, 0);
}

void task_users_keep(struct tasks *tasks, struct task *task)
{
    struct text user = {0};

    (void)task_users_say(task->claim, &user);
    refuse_used(tasks, task, &user);
    if (!task->claimants) /* else the kubelet asks for it itself */
        claimant_add(tasks, task, TASK_PREPARE, 0);
}

void task_users_give_up(struct tasks *tasks, struct task *task)
{
    for (const struct claimant *c = task->claimants; c; c = c->next) {
        if (c->number == 0)
            task->claim->given_up = tasks->given_up = true;
    }
}

bool task_users_add(struct tasks *tasks, struct claim *claim,
                    const struct devicemgr_create *request)
{
    struct text pod = {0};

    if (!claimed_by(tasks->state, claim, request))
        return false;
    text_add_words(&pod, request->pod_namespace, TEXT_WORDS_BYTES_MAX);
    text_add(&pod, "/");
    text_add_words(&pod, request->pod_name, TEXT_WORDS_BYTES_MAX);
    if (claim_add_user(claim, request->sandbox_id, request->container, pod.buf, request->pod_uid,
                       tasks->state->now_ms))
        dirty_touch_claim(tasks->state, claim);
    return true;
}

void task_users_ended(struct tasks *tasks, struct claim *claim, const char *sandbox_id)
{
    for (size_t i = claim->users_len; i > 0; i--) {
        if (strcmp(claim->users[i - 1].sandbox_id, sandbox_id) != 0)
            continue;
        claim_drop_user(claim, i - 1);
        dirty_touch_claim(tasks->state, claim);
    }
}

static bool is_shown(const struct state *state, const struct claim_user *user,
                     const struct devicemgr_container *containers, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (containers[i].running && strcmp(containers[i].sandbox_id, user->sandbox_id) == 0 &&
            strcmp(containers[i].name, user->container) == 0 &&
            !facts_never_starts(state, &containers[i]))
            return true;
    }
    return false;
}

static bool is_of(const struct claim_user *user, const struct demand *demand)
{
    return strcmp(demand->sandbox_id, user->sandbox_id) == 0 &&
           strcmp(demand->container, user->container) == 0;
}

/* Its create is not over, also at the runtime, which may take its time; or it has a device of a
 * lifted resource (lift.h): however long ago it was asked for here, what it has is known better
 * than by this list, which may be from before it was made. Or its pod was stopped, perhaps for what
 * it has: that may be known by it alone, without which the rest of the pod would be made again. */
static bool is_known_to_have(const struct state *state, const struct claim_user *user)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, user->sandbox_id);
    const struct allocation *a =
        sandbox ? allocations_of_pod(&state->allocations, sandbox->pod->uid) : NULL;

    for (const struct waiter *w = state->wakes.waiters; w; w = w->hh.next) {
        if (is_of(user, w->demand))
            return true;
    }
    for (; a; a = a->pod_next) {
        if (a->claimed && allocation_life(a) != ALLOCATION_IDLE &&
            strcmp(a->container, user->container) == 0)
            return true;
    }
    return sandbox && facts_sandbox_ready(sandbox) && facts_pod_evicted(state, sandbox->pod->uid);
}

/* A list that is asked for from then on shows it, if it runs. What an earlier process has sent to
 * the runtime may be on its way for longer. */
static uint64_t shown_from_ms(const struct state *state, const struct claim_user *user)
{
    return listing_shows_from(state, later_by(user->asked_ms, CLAIM_USER_COMES_MS));
}

void task_users_listed(struct tasks *tasks, struct claim *claim,
                       const struct devicemgr_container *containers, size_t len)
{
    for (size_t i = claim->users_len; i > 0; i--) {
        const struct claim_user *user = &claim->users[i - 1];

        if (is_shown(tasks->state, user, containers, len) || is_known_to_have(tasks->state, user) ||
            tasks->state->listing.begun_ms < shown_from_ms(tasks->state, user))
            continue;
        claim_drop_user(claim, i - 1);
        dirty_touch_claim(tasks->state, claim);
    }
}
