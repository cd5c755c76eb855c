#include "shim/answers/answers.h"

#include <string.h>

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *ask_of(const Control__V1__EndingAsk *ask)
{
    json_t *one = must(json_object());

    json_value_set(one, "by", json_value_text(ask->asker));
    json_value_set(one, "reason", json_value_text_or_null(ask->why));
    json_value_set(one, "graceSeconds",
                   ask->own_grace ? json_null() : answer_seconds(ask->grace_ms));
    json_value_set(one, "here", json_boolean(ask->here));
    return one;
}

static bool waits(const Control__V1__Ending *row)
{
    return strcmp(row->state, "waits") == 0;
}

json_t *answer_ending(const Control__V1__Ending *row)
{
    json_t *one = must(json_object()), *asked = must(json_array());

    for (size_t i = 0; i < row->n_asks; i++)
        json_value_append(asked, ask_of(row->asks[i]));
    json_value_set(one, "namespace", json_value_text_or_null(row->pod_namespace));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "uid", json_value_text(row->uid));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "since", waits(row) ? json_null() : answer_ago(row->asked_ms));
    json_value_set(one, "dueInSeconds", row->due ? answer_seconds(row->due_in_ms) : json_null());
    json_value_set(one, "asked", asked);
    return one;
}
