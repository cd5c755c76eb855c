#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *refusal_of(const Control__V1__PodContainer *container)
{
    json_t *refusal;

    if (!container->refused_word[0])
        return json_null();
    refusal = must(json_object());
    json_value_set(refusal, "word", json_value_text(container->refused_word));
    json_value_set(refusal, "times", json_value_number(container->refused_times));
    json_value_set(refusal, "last", answer_ago(container->refused_ms));
    return refusal;
}

static json_t *container_of(const Control__V1__PodContainer *container)
{
    json_t *one = must(json_object());

    json_value_set(one, "name", json_value_text(container->name));
    json_value_set(one, "devices", json_value_number(container->devices));
    json_value_set(one, "state", json_value_text_or_null(container->state));
    json_value_set(one, "waitsSince",
                   container->waits ? answer_ago(container->waited_ms) : json_null());
    json_value_set(one, "lastRefusal", refusal_of(container));
    return one;
}

json_t *answer_pod(const Control__V1__Pod *row)
{
    json_t *one = must(json_object()), *containers = must(json_array());

    for (size_t i = 0; i < row->n_containers; i++)
        json_value_append(containers, container_of(row->containers[i]));
    json_value_set(one, "namespace", json_value_text_or_null(row->pod_namespace));
    json_value_set(one, "name", json_value_text_or_null(row->name));
    json_value_set(one, "uid", json_value_text(row->uid));
    json_value_set(one, "sandbox", json_value_text_or_null(row->sandbox));
    json_value_set(one, "containers", containers);
    json_value_set(one, "containersTotal", json_value_number(row->containers_total));
    return one;
}
