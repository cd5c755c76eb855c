#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

static const char *request_word(bool unprepare)
{
    return unprepare ? "unprepare" : "prepare";
}

static json_t *request_of(const Control__V1__ClaimRequest *request)
{
    json_t *one = must(json_object());

    json_value_set(one, "asks", json_value_text(request_word(request->unprepare)));
    json_value_set(one, "since", answer_ago(request->waited_ms));
    json_value_set(one, "refusedInSeconds",
                   request->unbounded ? json_null() : answer_seconds(request->left_ms));
    return one;
}

static json_t *refusal_of(const Control__V1__ClaimWhy *claim)
{
    json_t *one = answer_refusal(claim->refusal);

    if (claim->refusal)
        json_value_set(one, "asked", json_value_text(request_word(claim->refused_unprepare)));
    return one;
}

json_t *answer_why_claim(const Control__V1__ClaimWhy *claim)
{
    json_t *one = must(json_object()), *requests = must(json_array());

    for (size_t i = 0; i < claim->n_requests; i++)
        json_value_append(requests, request_of(claim->requests[i]));
    json_value_set(one, "namespace", json_value_text_or_null(claim->namespace_));
    json_value_set(one, "name", json_value_text_or_null(claim->name));
    json_value_set(one, "uid", json_value_text_or_null(claim->uid));
    json_value_set(one, "driver", json_value_text(claim->driver));
    json_value_set(one, "state", json_value_text_or_null(claim->state));
    json_value_set(one, "since", claim->state[0] ? answer_ago(claim->since_ms) : json_null());
    json_value_set(one, "waits", requests);
    json_value_set(one, "step", json_value_text(answer_step(claim->step)));
    json_value_set(one, "reason", answer_reason(claim->reason));
    json_value_set(one, "retryInSeconds",
                   claim->retry_ms > 0 ? answer_seconds(claim->retry_ms) : json_null());
    json_value_set(one, "lastRefusal", refusal_of(claim));
    return one;
}
