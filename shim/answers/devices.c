#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

const char *answer_device_health(const Control__V1__Device *row)
{
    if (!row->listed)
        return "unlisted";
    return row->healthy ? "healthy" : "unhealthy";
}

static json_t *holder_of(const Control__V1__Holder *holder)
{
    json_t *one = must(json_object());

    json_value_set(one, "namespace", json_value_text_or_null(holder->pod_namespace));
    json_value_set(one, "pod", json_value_text_or_null(holder->pod_name));
    json_value_set(one, "uid", json_value_text(holder->pod_uid));
    json_value_set(one, "container", json_value_text(holder->container));
    json_value_set(one, "state", json_value_text(holder->state));
    return one;
}

static json_t *published_of(const Control__V1__Published *is)
{
    json_t *one;

    if (!is)
        return json_null();
    one = must(json_object());
    json_value_set(one, "pool", json_value_text(is->pool));
    json_value_set(one, "name", json_value_text(is->name));
    json_value_set(one, "slice", json_value_text_or_null(is->slice));
    return one;
}

json_t *answer_device(const Control__V1__Device *row)
{
    json_t *one = must(json_object()), *nodes = must(json_array()), *holders = must(json_array());

    for (size_t i = 0; i < row->n_numa_nodes; i++)
        json_value_append(nodes, must(json_integer(row->numa_nodes[i])));
    for (size_t i = 0; i < row->n_holders; i++)
        json_value_append(holders, holder_of(row->holders[i]));
    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "id", json_value_text(row->id));
    json_value_set(one, "health", json_value_text(answer_device_health(row)));
    json_value_set(one, "since", row->listed ? answer_ago(row->since_ms) : json_null());
    json_value_set(one, "free", json_boolean(row->free));
    json_value_set(one, "kubelet",
                   row->shown ? json_value_text(row->shown_healthy ? "healthy" : "unhealthy")
                              : json_null());
    json_value_set(one, "numaNodes", nodes);
    json_value_set(one, "holders", holders);
    json_value_set(one, "holdersTotal", json_value_number(row->holders_total));
    json_value_set(one, "cordon", answer_cordon(row->cordon));
    json_value_set(one, "withdrawn", json_boolean(row->withdrawn));
    json_value_set(one, "withdrawal", answer_cordon(row->withdrawal));
    json_value_set(one, "published", published_of(row->published));
    return one;
}

json_t *answer_driver_device(const Control__V1__DriverDevice *row)
{
    json_t *one = must(json_object()), *claims = must(json_array());

    for (size_t i = 0; i < row->n_claims; i++) {
        const Control__V1__ClaimName *is = row->claims[i];
        json_t *claim = must(json_object());

        json_value_set(claim, "namespace", json_value_text_or_null(is->namespace_));
        json_value_set(claim, "name", json_value_text_or_null(is->name));
        json_value_set(claim, "uid", json_value_text(is->uid));
        json_value_set(claim, "state", json_value_text(is->state));
        json_value_append(claims, claim);
    }
    json_value_set(one, "driver", json_value_text(row->driver));
    json_value_set(one, "pool", json_value_text(row->pool));
    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "health", answer_health(row->health));
    json_value_set(one, "claims", claims);
    json_value_set(one, "claimsTotal", json_value_number(row->claims_total));
    return one;
}
