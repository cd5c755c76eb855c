#include "shim/answers/answers.h"

#include "shim/json_value.h"
#include "shim/must.h"

static json_t *shown_of(const Control__V1__Resource *row)
{
    json_t *shown;

    if (!row->shown)
        return json_null();
    shown = must(json_object());
    json_value_set(shown, "devices", json_value_number(row->shown_devices));
    json_value_set(shown, "healthy", json_value_number(row->shown_healthy));
    return shown;
}

json_t *answer_resource(const Control__V1__Resource *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "exclusive", json_boolean(row->exclusive));
    json_value_set(one, "devices", json_value_number(row->devices));
    json_value_set(one, "healthy", json_value_number(row->healthy));
    json_value_set(one, "held", json_value_number(row->held));
    json_value_set(one, "free", json_value_number(row->free));
    json_value_set(one, "kubelet", shown_of(row));
    json_value_set(one, "cordoned", json_value_number(row->cordoned));
    json_value_set(one, "withdrawn", json_boolean(row->withdrawn));
    json_value_set(one, "withdrawal", answer_cordon(row->withdrawal));
    return one;
}

static json_t *away_of(const Control__V1__Plugin *row)
{
    json_t *away;

    if (!row->away)
        return json_null();
    away = must(json_object());
    json_value_set(away, "since", answer_ago(row->away_ms));
    json_value_set(away, "graceLeftSeconds", answer_seconds(row->grace_left_ms));
    json_value_set(away, "graceExtendedSeconds", answer_seconds(row->grace_more_ms));
    json_value_set(away, "error", json_value_text_or_null(row->error));
    return away;
}

static json_t *options_of(const Control__V1__Plugin *row)
{
    json_t *options;

    if (!row->options_known)
        return json_null();
    options = must(json_object());
    json_value_set(options, "preferredAllocation", json_boolean(row->preferred_allocation));
    json_value_set(options, "preStart", json_boolean(row->pre_start));
    return options;
}

json_t *answer_plugin(const Control__V1__Plugin *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "socket", json_value_text_or_null(row->socket));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "since", answer_ago(row->since_ms));
    json_value_set(one, "away", away_of(row));
    json_value_set(one, "options", options_of(row));
    return one;
}
