/*
 * The part of the answer to Why that is about claims.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/why.h"
#include "shim/boot_clock.h"
#include "shim/control/limits.h"
#include "shim/control/why.h"
#include "shim/must.h"

static char *copy(const char *text)
{
    return must(strdup(text));
}

/* ---- one claim ---- */

static void add_requests(Control__V1__ClaimWhy *to, const struct devicemgr_why_claim *is)
{
    to->requests = must(calloc(is->requests_len + 1, sizeof *to->requests));
    for (size_t i = 0; i < is->requests_len && i < CONTROL_WHY_IDS_MAX; i++) {
        const struct devicemgr_why_request *from = &is->requests[i];
        Control__V1__ClaimRequest *request = must(malloc(sizeof *request));

        control__v1__claim_request__init(request);
        request->unprepare = from->unprepare;
        request->waited_ms = from->waited_ms;
        request->unbounded = from->left_ms == UINT64_MAX;
        request->left_ms = request->unbounded ? 0 : from->left_ms;
        to->requests[to->n_requests++] = request;
    }
}

static void set_refusal(Control__V1__ClaimWhy *to, const struct devicemgr_why_claim *is)
{
    Control__V1__Refusal *refusal;

    if (!is->refused_word)
        return;
    refusal = must(malloc(sizeof *refusal));
    control__v1__refusal__init(refusal);
    refusal->reason = why_reason(is->refused_word, is->refused_text, is->refused_clears);
    refusal->code = is->refused_code;
    refusal->times = is->refused_times;
    refusal->first_ms = is->refused_first_ms_ago;
    refusal->last_ms = is->refused_last_ms_ago;
    to->refusal = refusal;
    to->refused_unprepare = is->refused_unprepare;
}

static void on_claim(void *user, const struct devicemgr_why_claim *is)
{
    static const Control__V1__Finding__Step STEPS[] = {
        [DEVICEMGR_WHY_GO] = CONTROL__V1__FINDING__STEP__GO,
        [DEVICEMGR_WHY_ASK] = CONTROL__V1__FINDING__STEP__ASK,
        [DEVICEMGR_WHY_WAIT] = CONTROL__V1__FINDING__STEP__WAIT,
        [DEVICEMGR_WHY_REFUSE] = CONTROL__V1__FINDING__STEP__REFUSE};
    struct why *why = user;
    Control__V1__WhyResponse *response = &why->response;
    Control__V1__ClaimWhy *to;

    if (response->n_claims == CONTROL_WHY_CLAIMS_MAX) {
        response->more = true;
        return;
    }
    to = must(malloc(sizeof *to));
    control__v1__claim_why__init(to);
    to->namespace_ = copy(is->pod_namespace);
    to->name = copy(is->name);
    to->uid = copy(is->uid);
    to->driver = copy(is->driver);
    to->state = copy(is->state);
    to->since_ms = is->since_ms_ago;
    add_requests(to, is);
    to->step = STEPS[is->step];
    if (is->word)
        to->reason = why_reason(is->word, is->text, is->clears);
    to->retry_ms = is->retry_ms;
    set_refusal(to, is);
    response->claims[response->n_claims++] = to;
}

/* ---- a pod's claims, as the agent knows them ---- */

struct names {
    struct devicemgr_why_name *v;
    size_t len;
};

static void on_name(void *to, const char *pod_namespace, const char *claim)
{
    struct names *names = to;

    names->v = must(realloc(names->v, (names->len + 1) * sizeof *names->v));
    names->v[names->len++] = (struct devicemgr_why_name){copy(pod_namespace), copy(claim)};
}

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->len; i++) {
        free((char *)(uintptr_t)names->v[i].pod_namespace);
        free((char *)(uintptr_t)names->v[i].name);
    }
    free(names->v);
}

/* ---- all of them ---- */

void why_add_claims(struct why *why, const struct list_from *from, const char *pod,
                    const char *container)
{
    struct names theirs = {0};

    why->response.claims = must(calloc(CONTROL_WHY_CLAIMS_MAX, sizeof *why->response.claims));
    if (pod && from->pod_claims)
        from->pod_claims(from->user, pod, on_name, &theirs);
    devicemgr_why_claims(from->core, boot_now_ms(), pod, container, theirs.v, theirs.len, on_claim,
                         why);
    names_fini(&theirs);
}

void why_free_claims(struct why *why)
{
    for (size_t i = 0; i < why->response.n_claims; i++)
        control__v1__claim_why__free_unpacked(why->response.claims[i], NULL);
    free(why->response.claims);
}
