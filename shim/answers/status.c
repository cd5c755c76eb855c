#include "shim/answers/answers.h"

#include <string.h>

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *processes_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_processes; i++) {
        const Control__V1__Process *process = status->processes[i];
        json_t *one = must(json_object());

        json_value_set(one, "name", json_value_text(process->name));
        json_value_set(one, "version", json_value_text_or_null(process->version));
        json_value_set(one, "pid", process->pid > 0 ? json_integer(process->pid) : json_null());
        json_value_set(one, "uptimeSeconds",
                       process->uptime_ms > 0 ? answer_seconds(process->uptime_ms) : json_null());
        json_value_append(list, one);
    }
    return list;
}

static json_t *runtime_of(const Control__V1__Runtime *runtime)
{
    json_t *one = must(json_object());

    json_value_set(one, "endpoint", json_value_text(runtime->endpoint));
    json_value_set(one, "connected", json_boolean(runtime->connected));
    json_value_set(one, "since", answer_ago(runtime->since_ms));
    json_value_set(one, "name", json_value_text_or_null(runtime->name));
    json_value_set(one, "version", json_value_text_or_null(runtime->version));
    json_value_set(one, "listed", json_boolean(runtime->listed));
    return one;
}

static json_t *kubelet_of(const Control__V1__Kubelet *kubelet)
{
    json_t *one = must(json_object());

    json_value_set(one, "pid", kubelet->pid > 0 ? json_integer(kubelet->pid) : json_null());
    json_value_set(one, "uptimeSeconds",
                   kubelet->uptime_ms > 0 ? answer_seconds(kubelet->uptime_ms) : json_null());
    json_value_set(one, "gate", json_value_text(kubelet->gate));
    json_value_set(one, "gateHeldSeconds", answer_seconds(kubelet->held_ms));
    json_value_set(one, "taken", json_value_text_or_null(kubelet->words));
    return one;
}

static json_t *troubles_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_troubles; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "what", json_value_text(status->troubles[i]->what));
        json_value_set(one, "why", json_value_text(status->troubles[i]->why));
        json_value_set(one, "since", answer_ago(status->troubles[i]->since_ms));
        json_value_append(list, one);
    }
    return list;
}

static json_t *newest_of(const Control__V1__Order *order)
{
    json_t *one;

    if (!order)
        return json_null();
    one = must(json_object());
    json_value_set(one, "resource", json_value_text(order->resource));
    json_value_set(one, "id", json_value_text_or_null(order->id));
    json_value_set(one, "reason", json_value_text_or_null(order->reason));
    json_value_set(one, "since", answer_ago(order->since_ms));
    return one;
}

static json_t *orders_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_orders; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "kind", json_value_text(status->orders[i]->kind));
        json_value_set(one, "count", json_value_number(status->orders[i]->count));
        json_value_set(one, "oldest", answer_ago(status->orders[i]->oldest_ms));
        json_value_set(one, "newest", newest_of(status->orders[i]->newest));
        json_value_append(list, one);
    }
    return list;
}

static json_t *dra_of(const Control__V1__DraCount *dra)
{
    json_t *one;

    if (!dra)
        return json_null();
    one = must(json_object());
    json_value_set(one, "drivers", json_value_number(dra->drivers));
    json_value_set(one, "connected", json_value_number(dra->connected));
    json_value_set(one, "claims", json_value_number(dra->claims));
    json_value_set(one, "prepared", json_value_number(dra->prepared));
    json_value_set(one, "owed", json_value_number(dra->owed));
    json_value_set(one, "waits", json_value_number(dra->waits));
    return one;
}

static json_t *published_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_published; i++) {
        const Control__V1__PublishedPool *is = status->published[i];
        json_t *one = must(json_object());

        json_value_set(one, "resource", json_value_text(is->resource));
        json_value_set(one, "pool", json_value_text(is->pool));
        json_value_set(one, "devices", json_value_number(is->devices));
        json_value_set(one, "leftOut", json_value_number(is->left_out));
        json_value_set(one, "atApiServer", json_boolean(is->there));
        json_value_set(one, "trouble", json_value_text_or_null(is->trouble));
        json_value_append(list, one);
    }
    return list;
}

static json_t *group_of(const Control__V1__MachineShutdown *is)
{
    json_t *one;

    if (is->groups == 0)
        return json_null();
    one = must(json_object());
    json_value_set(one, "number", json_value_number(is->group));
    json_value_set(one, "of", json_value_number(is->groups));
    json_value_set(one, "priority", is->by_priority ? json_integer(is->priority) : json_null());
    json_value_set(one, "leftSeconds", answer_seconds(is->group_ends_ms));
    return one;
}

static json_t *planned_group_of(size_t number, const Control__V1__ShutdownGroup *is)
{
    json_t *one = must(json_object()), *names = must(json_array());

    for (size_t i = 0; i < is->n_first; i++)
        json_value_append(names, json_value_text(is->first[i]));
    json_value_set(one, "number", json_value_number(number));
    json_value_set(one, "priority", is->by_priority ? json_integer(is->priority) : json_null());
    json_value_set(one, "seconds", answer_seconds(is->time_ms));
    json_value_set(one, "pods", json_value_number(is->pods));
    json_value_set(one, "withDevices", json_value_number(is->holders));
    json_value_set(one, "first", names);
    return one;
}

/* Of a daemon that says nothing of it: null. */
static json_t *plan_of(const Control__V1__MachineShutdown *is)
{
    json_t *one, *groups;

    if (!is->kubelet_ends && is->n_planned == 0)
        return json_null();
    one = must(json_object());
    groups = must(json_array());
    for (size_t i = 0; i < is->n_planned; i++)
        json_value_append(groups, planned_group_of(i + 1, is->planned[i]));
    json_value_set(one, "byKubelet", json_boolean(is->kubelet_ends));
    json_value_set(one, "groups", groups);
    return one;
}

static json_t *shutdown_of(const Control__V1__MachineShutdown *is)
{
    json_t *one, *names;

    if (!is)
        return json_null();
    one = must(json_object());
    names = must(json_array());
    for (size_t i = 0; i < is->n_first_remaining; i++)
        json_value_append(names, json_value_text(is->first_remaining[i]));
    json_value_set(one, "state", json_value_text(is->state));
    json_value_set(one, "since",
                   strcmp(is->state, "none") == 0 ? json_null() : answer_ago(is->since_ms));
    json_value_set(one, "delayed", json_boolean(is->locked));
    json_value_set(one, "limitSeconds",
                   is->limit_ms > 0 ? answer_seconds(is->limit_ms) : json_null());
    json_value_set(one, "wantedSeconds", answer_seconds(is->settings_ms));
    json_value_set(one, "knownPods",
                   is->pods_known ? json_value_number(is->known_pods) : json_null());
    json_value_set(one, "group", group_of(is));
    json_value_set(one, "pods", json_value_number(is->pods));
    json_value_set(one, "remaining", json_value_number(is->remaining));
    json_value_set(one, "firstRemaining", names);
    json_value_set(one, "planned", plan_of(is));
    return one;
}

static json_t *settings_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_settings; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "key", json_value_text(status->settings[i]->key));
        json_value_set(one, "value", json_value_text(status->settings[i]->value));
        json_value_set(one, "default", json_value_text_or_null(status->settings[i]->initial));
        json_value_append(list, one);
    }
    return list;
}

json_t *answer_status(const Control__V1__StatusResponse *status)
{
    json_t *all = must(json_object());

    json_value_set(all, "node", json_value_text_or_null(status->node));
    json_value_set(all, "processes", processes_of(status));
    json_value_set(all, "runtime", status->runtime ? runtime_of(status->runtime) : json_null());
    json_value_set(all, "kubelet", status->kubelet ? kubelet_of(status->kubelet) : json_null());
    json_value_set(all, "degraded", troubles_of(status));
    json_value_set(all, "orders", orders_of(status));
    json_value_set(all, "dra", dra_of(status->dra));
    json_value_set(all, "published", published_of(status));
    json_value_set(all, "publishedMore", json_value_number(status->published_more));
    json_value_set(all, "shutdown", shutdown_of(status->shutdown));
    json_value_set(all, "settings", settings_of(status));
    json_value_set(all, "logLevelSet", json_value_text_or_null(status->log_level_set));
    return all;
}
