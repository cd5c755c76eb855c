#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

json_t *answer_taint(const Control__V1__Taint *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "resource", json_value_text_or_null(row->resource));
    json_value_set(one, "id", json_value_text_or_null(row->id));
    json_value_set(one, "key", json_value_text(row->key));
    json_value_set(one, "value", json_value_text_or_null(row->value));
    json_value_set(one, "effect", json_value_text(row->effect));
    json_value_set(one, "source", json_value_text(row->source));
    json_value_set(one, "reason", json_value_text_or_null(row->words));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "endsInSeconds", row->ends ? answer_seconds(row->ends_in_ms) : json_null());
    json_value_set(one, "heldBack", json_boolean(row->held_back));
    json_value_set(one, "followed", json_boolean(!row->refused));
    json_value_set(one, "pods", json_value_number(row->pods));
    return one;
}
