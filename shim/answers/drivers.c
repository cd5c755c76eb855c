#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

const char *answer_driver_state(const Control__V1__Driver *row)
{
    if (row->connected)
        return "connected";
    if (row->moved)
        return "moved";
    return row->n_endpoints > 0 ? "away" : "gone";
}

static json_t *endpoint_of(const Control__V1__DriverEndpoint *is)
{
    json_t *one = must(json_object());

    json_value_set(one, "path", json_value_text(is->path));
    json_value_set(one, "connected", json_boolean(is->connected));
    json_value_set(one, "since", answer_ago(is->since_ms));
    json_value_set(one, "called", json_boolean(is->called));
    json_value_set(one, "services", json_value_texts(is->services, is->n_services));
    return one;
}

static json_t *claims_of(const Control__V1__Driver *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "known", json_value_number(row->claims));
    json_value_set(one, "prepared", json_value_number(row->prepared));
    json_value_set(one, "owed", json_value_number(row->owed));
    json_value_set(one, "waits", json_value_number(row->waits));
    return one;
}

json_t *answer_driver(const Control__V1__Driver *row)
{
    json_t *one = must(json_object()), *endpoints = must(json_array());

    for (size_t i = 0; i < row->n_endpoints; i++)
        json_value_append(endpoints, endpoint_of(row->endpoints[i]));
    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "state", json_value_text(answer_driver_state(row)));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "why", json_value_text_or_null(row->why));
    json_value_set(one, "services", json_value_texts(row->services, row->n_services));
    json_value_set(one, "endpoints", endpoints);
    json_value_set(one, "slices", json_value_text_or_null(row->slices));
    json_value_set(one, "claims", claims_of(row));
    json_value_set(one, "health",
                   row->health ? json_pack("{s:I}", "unhealthy", (json_int_t)row->unhealthy)
                               : json_null());
    json_value_set(one, "kubelet", json_value_text_or_null(row->kubelet));
    return one;
}
