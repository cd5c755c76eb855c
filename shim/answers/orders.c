#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

json_t *answer_order(const Control__V1__Order *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "kind", json_value_text(row->kind));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "id", json_value_text_or_null(row->id));
    json_value_set(one, "reason", json_value_text_or_null(row->reason));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "moreSeconds", answer_seconds(row->more_ms));
    json_value_set(one, "over", json_boolean(row->over));
    return one;
}
