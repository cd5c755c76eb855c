#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

const char *answer_step(Control__V1__Finding__Step number)
{
    static const char *const NAMES[] = {[CONTROL__V1__FINDING__STEP__GO] = "go",
                                        [CONTROL__V1__FINDING__STEP__ASK] = "ask",
                                        [CONTROL__V1__FINDING__STEP__WAIT] = "wait",
                                        [CONTROL__V1__FINDING__STEP__REFUSE] = "refuse"};
    size_t step = (size_t)number;

    return step < sizeof NAMES / sizeof *NAMES ? NAMES[step] : "unknown";
}

json_t *answer_reason(const Control__V1__Reason *reason)
{
    json_t *one;

    if (!reason)
        return json_null();
    one = must(json_object());
    json_value_set(one, "word", json_value_text(reason->word));
    json_value_set(one, "text", json_value_text_or_null(reason->text));
    json_value_set(one, "clears", json_value_text(reason->clears));
    return one;
}

static json_t *finding_of(const Control__V1__Finding *finding)
{
    json_t *one = must(json_object());

    json_value_set(one, "resource", json_value_text_or_null(finding->resource));
    json_value_set(one, "asked", json_integer((json_int_t)finding->asked));
    json_value_set(one, "step", json_value_text(answer_step(finding->step)));
    json_value_set(one, "has", json_boolean(finding->has));
    json_value_set(one, "ids", json_value_texts(finding->ids, finding->n_ids));
    json_value_set(one, "idsTotal", json_integer((json_int_t)finding->ids_total));
    json_value_set(one, "reason", answer_reason(finding->reason));
    return one;
}

static json_t *pending_of(const Control__V1__Pending *pending)
{
    json_t *one;

    if (!pending)
        return json_null();
    one = must(json_object());
    json_value_set(one, "since", answer_ago(pending->waited_ms));
    json_value_set(one, "refusedInSeconds",
                   pending->left_ms > 0 ? answer_seconds(pending->left_ms) : json_null());
    json_value_set(one, "forwarded", json_boolean(pending->forwarded));
    return one;
}

json_t *answer_refusal(const Control__V1__Refusal *refusal)
{
    json_t *one;

    if (!refusal)
        return json_null();
    one = must(json_object());
    json_value_set(one, "reason", answer_reason(refusal->reason));
    json_value_set(one, "code", json_value_text(rpc_code_name(refusal->code)));
    json_value_set(one, "times", json_integer((json_int_t)refusal->times));
    json_value_set(one, "first", answer_ago(refusal->first_ms));
    json_value_set(one, "last", answer_ago(refusal->last_ms));
    return one;
}

static json_t *container_of(const Control__V1__Container *container)
{
    json_t *one = must(json_object()), *findings = must(json_array());

    for (size_t i = 0; i < container->n_findings; i++)
        json_value_append(findings, finding_of(container->findings[i]));
    json_value_set(one, "namespace", json_value_text_or_null(container->pod_namespace));
    json_value_set(one, "pod", json_value_text_or_null(container->pod_name));
    json_value_set(one, "uid", json_value_text(container->pod_uid));
    json_value_set(one, "container", json_value_text(container->name));
    json_value_set(one, "pending", pending_of(container->pending));
    json_value_set(one, "now", findings);
    json_value_set(one, "lastRefusal", answer_refusal(container->refusal));
    return one;
}

json_t *answer_why(const Control__V1__WhyResponse *response)
{
    json_t *all = must(json_object()), *items = must(json_array()), *claims = must(json_array());
    json_t *endings = must(json_array());

    for (size_t i = 0; i < response->n_containers; i++)
        json_value_append(items, container_of(response->containers[i]));
    for (size_t i = 0; i < response->n_claims; i++)
        json_value_append(claims, answer_why_claim(response->claims[i]));
    for (size_t i = 0; i < response->n_endings; i++)
        json_value_append(endings, answer_ending(response->endings[i]));
    json_value_set(all, "items", items);
    json_value_set(all, "claims", claims);
    json_value_set(all, "endings", endings);
    json_value_set(all, "more", json_boolean(response->more));
    return all;
}
