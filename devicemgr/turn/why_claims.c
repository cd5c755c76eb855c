/*
 * Why a claim waits, or was refused. What is told is what the machine itself goes by; nothing here
 * is given a state that it could change.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/why.h"

/* Who asks, about what. */
struct asking {
    const struct state *state; /* with the time of the question */
    const struct tasks *tasks; /* with that state */
    const char *pod;           /* NULL: all that wait */
    const char *container;     /* NULL: any of its */
    const struct devicemgr_why_name *theirs;
    size_t theirs_len;
    void (*each)(void *user, const struct devicemgr_why_claim *claim);
    void *user;
};

/* ---- who is meant ---- */

static bool is_among(const struct asking *asking, const char *pod_namespace, const char *name)
{
    for (size_t i = 0; i < asking->theirs_len; i++) {
        if (strcmp(asking->theirs[i].pod_namespace, pod_namespace) == 0 &&
            strcmp(asking->theirs[i].name, name) == 0)
            return true;
    }
    return false;
}

/* "POD-CLAIM-xxxxx", in the pod's namespace. */
static bool is_named_after(const char *pod, const char *pod_namespace, const char *name)
{
    const char *slash = strchr(pod, '/');
    size_t len;

    if (slash && (strlen(pod_namespace) != (size_t)(slash - pod) ||
                  strncmp(pod, pod_namespace, (size_t)(slash - pod)) != 0))
        return false;
    pod = slash ? slash + 1 : pod;
    len = strlen(pod);
    return len > 0 && strncmp(name, pod, len) == 0 && name[len] == '-' &&
           strchr(name + len + 1, '-');
}

/* As a claim, or as one of a pod: of that uid, which the runtime knows by name. */
static bool is_meant_by_name(const struct asking *asking, const char *uid,
                             const char *pod_namespace, const char *name)
{
    const struct pod *pod = pods_find(&asking->state->pods, asking->pod);

    return meant_pod(asking->pod, uid, pod_namespace, name) ||
           is_among(asking, pod_namespace, name) ||
           is_named_after(asking->pod, pod_namespace, name) ||
           (pod && strcmp(pod->pod_namespace, pod_namespace) == 0 &&
            is_named_after(pod->name, pod_namespace, name));
}

static bool is_meant(const struct asking *asking, const struct claim *claim)
{
    bool used = meant_uses(asking->state, asking->pod, NULL, claim);

    if (used && asking->container)
        return meant_uses(asking->state, asking->pod, asking->container, claim);
    return used || is_meant_by_name(asking, claim->uid, claim->pod_namespace, claim->name);
}

/* ---- one claim ---- */

/* Whether what was refused then was done later. `claim` NULL: nothing is kept of it. */
static bool is_over(const struct claim *claim, const struct claim_refused_one *refusal)
{
    if (refusal->unprepare)
        return !claim;
    return claim && claim->state == CLAIM_PREPARED && claim->since_ms >= refusal->last_ms;
}

static void tell_refusal(const struct asking *asking, struct devicemgr_why_claim *why,
                         const struct claim_refused_one *refusal)
{
    if (!refusal)
        return;
    why->refused_unprepare = refusal->unprepare;
    why->refused_word = refusal->word;
    why->refused_text = refusal->text;
    why->refused_clears = refusal->clears;
    why->refused_code = refusal->code;
    why->refused_times = refusal->times;
    why->refused_first_ms_ago = ago(asking->state->now_ms, refusal->first_ms);
    why->refused_last_ms_ago = ago(asking->state->now_ms, refusal->last_ms);
}

/* The caller frees them. */
static struct devicemgr_why_request *requests_of(const struct asking *asking,
                                                 const struct task *task)
{
    size_t len = task_asks(task), i = 0;
    struct devicemgr_why_request *requests = mem_alloc(len, sizeof *requests);
    uint64_t now_ms = asking->state->now_ms;

    for (const struct claimant *c = task ? task->claimants : NULL; c; c = c->next) {
        uint64_t limit_ms = task_limit_ms(asking->tasks, c);

        requests[i++] = (struct devicemgr_why_request){
            .unprepare = c->kind == TASK_UNPREPARE,
            .waited_ms = ago(now_ms, c->since_ms),
            .left_ms = limit_ms == UINT64_MAX ? UINT64_MAX : time_left(now_ms, limit_ms),
        };
    }
    return requests;
}

static enum devicemgr_why_step step_of(enum claim_refusal_kind kind)
{
    return kind == CLAIM_WAITS_DRIVER || kind == CLAIM_REFUSED_UNSTORED ? DEVICEMGR_WHY_ASK
                                                                        : DEVICEMGR_WHY_WAIT;
}

static void tell_now(const struct asking *asking, const struct task *task,
                     struct devicemgr_why_claim *why, struct text *text)
{
    struct text words = {0};
    struct claim_refusal refusal;

    if (task && task->claimants)
        refusal = task_why(asking->tasks, task->claimants, &words);
    else if (task && task->claim->state == CLAIM_OWED)
        refusal = task_why_owed(task);
    else
        return;
    claim_refusal_explain(asking->state, &refusal, text);
    why->step = step_of(refusal.kind);
    why->word = claim_refusal_word(refusal.kind);
    why->text = text->buf;
    why->clears = claim_refusal_clears(refusal.kind);
    if (refusal.kind == CLAIM_WAITS_OWED)
        why->retry_ms = time_left(asking->state->now_ms, task->retry_ms);
}

static void tell_claim(const struct asking *asking, const struct claim *claim)
{
    const struct task *task = task_find(asking->tasks, claim);
    const struct claim_refused_one *refusal =
        claim_refused_find(&asking->state->claim_refused, claim->uid, claim->driver);
    struct devicemgr_why_request *requests;
    struct devicemgr_why_claim why = {.uid = claim->uid,
                                      .pod_namespace = claim->pod_namespace,
                                      .name = claim->name,
                                      .driver = claim->driver,
                                      .state = claim_state_word(claim->state),
                                      .since_ms_ago = ago(asking->state->now_ms, claim->since_ms)};
    struct text text = {0};

    if (asking->pod ? !is_meant(asking, claim) : !task && (!refusal || is_over(claim, refusal)))
        return;
    requests = requests_of(asking, task);
    why.requests = requests;
    why.requests_len = task_asks(task);
    tell_now(asking, task, &why, &text);
    tell_refusal(asking, &why, refusal);
    asking->each(asking->user, &why);
    free(requests);
}

/* One of which nothing is kept. */
static void tell_refused(const struct asking *asking, const struct claim_refused_one *refusal)
{
    struct devicemgr_why_claim why = {.uid = refusal->uid,
                                      .pod_namespace = refusal->pod_namespace,
                                      .name = refusal->name,
                                      .driver = refusal->driver,
                                      .state = ""};

    if (claims_find(&asking->state->claims, refusal->uid, refusal->driver) ||
        (asking->pod
             ? !is_meant_by_name(asking, refusal->uid, refusal->pod_namespace, refusal->name)
             : is_over(NULL, refusal)))
        return;
    tell_refusal(asking, &why, refusal);
    asking->each(asking->user, &why);
}

void devicemgr_why_claims(const struct devicemgr *mgr, uint64_t now_ms, const char *pod,
                          const char *container, const struct devicemgr_why_name *theirs,
                          size_t theirs_len,
                          void (*each)(void *user, const struct devicemgr_why_claim *claim),
                          void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct tasks tasks = mgr->tasks;
    const struct asking asking = {.state = state,
                                  .tasks = &tasks,
                                  .pod = pod,
                                  .container = container,
                                  .theirs = theirs,
                                  .theirs_len = theirs_len,
                                  .each = each,
                                  .user = user};
    const struct claim_refused_one *refusal = state->claim_refused.by_key;

    tasks.state = state;
    for (const struct claim *c = state->claims.by_key; c; c = c->hh.next)
        tell_claim(&asking, c);
    for (; refusal; refusal = refusal->hh.next)
        tell_refused(&asking, refusal);
    free(state);
}
