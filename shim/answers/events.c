#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *claim_of(const Control__V1__Event *event)
{
    json_t *one;

    if (!event->claim_uid[0])
        return json_null();
    one = must(json_object());
    json_value_set(one, "namespace", json_value_text_or_null(event->claim_namespace));
    json_value_set(one, "name", json_value_text_or_null(event->claim_name));
    json_value_set(one, "uid", json_value_text(event->claim_uid));
    return one;
}

json_t *answer_event(const Control__V1__Event *event)
{
    json_t *one = must(json_object());

    json_value_set(one, "id", json_integer((json_int_t)event->id));
    json_value_set(one, "last", answer_ago(event->last_ms));
    json_value_set(one, "first", answer_ago(event->first_ms));
    json_value_set(one, "times", json_integer((json_int_t)event->times));
    json_value_set(one, "kind", json_value_text(event->kind));
    json_value_set(one, "resource", json_value_text_or_null(event->resource));
    json_value_set(one, "ids", json_value_texts(event->ids, event->n_ids));
    json_value_set(one, "idsTotal", json_integer((json_int_t)event->ids_total));
    json_value_set(one, "namespace", json_value_text_or_null(event->pod_namespace));
    json_value_set(one, "pod", json_value_text_or_null(event->pod_name));
    json_value_set(one, "uid", json_value_text_or_null(event->pod_uid));
    json_value_set(one, "container", json_value_text_or_null(event->container));
    json_value_set(one, "claim", claim_of(event));
    json_value_set(one, "reason", json_value_text_or_null(event->word));
    json_value_set(one, "text", json_value_text_or_null(event->text));
    return one;
}
