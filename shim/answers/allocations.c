#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

const char *answer_chosen_by(const Control__V1__Allocation *row)
{
    return row->chosen_here ? "shim" : row->claimed ? "claim" : "kubelet";
}

json_t *answer_allocation(const Control__V1__Allocation *row, char *const *ids, size_t ids_len)
{
    json_t *one = must(json_object());

    json_value_set(one, "namespace", json_value_text_or_null(row->pod_namespace));
    json_value_set(one, "pod", json_value_text_or_null(row->pod_name));
    json_value_set(one, "uid", json_value_text(row->pod_uid));
    json_value_set(one, "container", json_value_text(row->container));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "ids", json_value_texts(ids, ids_len));
    json_value_set(one, "asked", json_value_texts(row->asked, row->n_asked));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "chosenBy", json_value_text(answer_chosen_by(row)));
    json_value_set(one, "stored", json_boolean(row->stored));
    json_value_set(one, "optionsCached", json_boolean(row->cached));
    json_value_set(one, "waitsFor", json_value_texts(row->waits, row->n_waits));
    return one;
}
