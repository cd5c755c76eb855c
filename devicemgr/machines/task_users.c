/*
 * Who uses a claim: containers that were asked for with its devices, until they have ended.
 */
#include <string.h>

#include "devicemgr/books/state.h"
#include "devicemgr/machines/task.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

bool task_users_say(const struct claim *claim, struct text *text)
{
    if (claim->users_len == 0)
        return false;
    claim_explain_user(claim->users[0].container, claim->users[0].pod, text);
    return true;
}

void task_users_add(struct tasks *tasks, struct claim *claim,
                    const struct devicemgr_create *request)
{
    struct text pod = {0};

    if (!claimed_by(claim, request))
        return;
    text_add_words(&pod, request->pod_namespace, TEXT_WORDS_BYTES_MAX);
    text_add(&pod, "/");
    text_add_words(&pod, request->pod_name, TEXT_WORDS_BYTES_MAX);
    if (claim_add_user(claim, request->sandbox_id, request->container, pod.buf,
                       tasks->state->now_ms))
        dirty_touch_claim(tasks->state, claim);
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

static bool is_shown(const struct claim_user *user, const struct devicemgr_container *containers,
                     size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (containers[i].running && strcmp(containers[i].sandbox_id, user->sandbox_id) == 0 &&
            strcmp(containers[i].name, user->container) == 0)
            return true;
    }
    return false;
}

void task_users_listed(struct tasks *tasks, struct claim *claim,
                       const struct devicemgr_container *containers, size_t len)
{
    for (size_t i = claim->users_len; i > 0; i--) {
        const struct claim_user *user = &claim->users[i - 1];

        if (is_shown(user, containers, len) ||
            tasks->state->listing.begun_ms < later_by(user->asked_ms, CLAIM_USER_COMES_MS))
            continue;
        claim_drop_user(claim, i - 1);
        dirty_touch_claim(tasks->state, claim);
    }
}
