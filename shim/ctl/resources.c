/*
 * cri-device-shimctl resources, and plugins
 */
#include <inttypes.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"
#include "shim/must.h"

#define NONE "no such resource is known; see cri-device-shimctl resources"

/* ---- resources ---- */

static const struct table_column RESOURCE_COLUMNS[] = {
    {.name = "NAME"},
    {.name = "STATE"},
    {.name = "DEVICES", .right = true},
    {.name = "HEALTHY", .right = true},
    {.name = "HELD", .right = true},
    {.name = "FREE", .right = true},
    {.name = "KUBELET", .right = true}, /* sees so many healthy ones, of so many */
    {.name = "ORDERS"},
    {.name = "EXCLUSIVE", .wide = true},
    {.name = "REASON", .wide = true}, /* that it is withdrawn for */
};

static enum table_color color_of(const char *state)
{
    if (strcmp(state, "active") == 0 || strcmp(state, "builtin") == 0)
        return TABLE_PLAIN;
    return strcmp(state, "connecting") == 0 ? TABLE_WARNING : TABLE_BAD;
}

static void put_resource_row(struct table *table, const Control__V1__Resource *row)
{
    char shown[48] = "", orders[48] = "";
    enum table_color color = color_of(row->state);

    if (row->shown)
        snprintf(shown, sizeof shown, "%" PRIu64 "/%" PRIu64, row->shown_healthy,
                 row->shown_devices);
    if (row->withdrawn)
        snprintf(orders, sizeof orders, "withdrawn");
    else if (row->cordoned > 0)
        snprintf(orders, sizeof orders, "%" PRIu64 " cordoned", row->cordoned);
    table_row(table, color == TABLE_PLAIN && orders[0] ? TABLE_WARNING : color);
    table_put(table, row->name);
    table_put(table, row->state);
    table_put_number(table, row->devices);
    table_put_number(table, row->healthy);
    table_put_number(table, row->held);
    table_put_number(table, row->free);
    table_put(table, shown);
    table_put(table, orders);
    table_put(table, row->exclusive ? "yes" : "no");
    table_put(table, row->withdrawal ? row->withdrawal->reason : "");
}

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

static json_t *resource_of(const Control__V1__Resource *row)
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
    json_value_set(one, "withdrawal", list_cordon(row->withdrawal));
    return one;
}

static void put_resources(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__ResourcesResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__Resource *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, resource_of(row));
        else if (listing->table)
            put_resource_row(listing->table, row);
        else
            list_put_name(listing, "resource", row->name, NULL);
    }
}

static const struct list RESOURCES = {
    .method = CONTROL_RESOURCES,
    .response = &control__v1__resources_response__descriptor,
    .argument = LIST_RESOURCE,
    .columns = RESOURCE_COLUMNS,
    .columns_len = sizeof RESOURCE_COLUMNS / sizeof *RESOURCE_COLUMNS,
    .put = put_resources,
    .none = NONE,
};

const struct command resources_command = {
    .name = "resources",
    .arguments = "[RESOURCE]",
    .summary = "how many devices there are, are healthy, held, free, and what the kubelet sees",
    .arguments_max = 1,
    .run = list_run,
    .list = &RESOURCES,
};

/* ---- plugins ---- */

static const struct table_column PLUGIN_COLUMNS[] = {
    {.name = "RESOURCE"},   {.name = "STATE"},  {.name = "SINCE"},
    {.name = "GRACE-LEFT"}, /* until its resource is removed, with the next */
    {.name = "EXTENDED"},   {.name = "SOCKET"}, {.name = "OPTIONS", .wide = true},
    {.name = "ERROR"},
};

static const char *options_text(const Control__V1__Plugin *row)
{
    if (!row->options_known)
        return "";
    if (row->preferred_allocation)
        return row->pre_start ? "preferred,pre-start" : "preferred";
    return row->pre_start ? "pre-start" : "none";
}

static void put_plugin_row(struct table *table, const Control__V1__Plugin *row)
{
    char since[SHOW_AGE_BYTES], left[SHOW_AGE_BYTES], more[SHOW_AGE_BYTES];

    table_row(table, color_of(row->state));
    table_put(table, row->resource);
    table_put(table, row->state);
    table_put(table, show_age(row->since_ms, since));
    table_put(table, row->away ? show_age(row->grace_left_ms, left) : "");
    table_put(table, row->grace_more_ms > 0 ? show_age(row->grace_more_ms, more) : "");
    table_put(table, row->socket);
    table_put(table, options_text(row));
    table_put(table, row->error);
}

static json_t *away_of(const Control__V1__Plugin *row)
{
    json_t *away;

    if (!row->away)
        return json_null();
    away = must(json_object());
    json_value_set(away, "since", show_ago(row->away_ms));
    json_value_set(away, "graceLeftSeconds", show_seconds(row->grace_left_ms));
    json_value_set(away, "graceExtendedSeconds", show_seconds(row->grace_more_ms));
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

static json_t *plugin_of(const Control__V1__Plugin *row)
{
    json_t *one = must(json_object());

    json_value_set(one, "resource", json_value_text(row->resource));
    json_value_set(one, "socket", json_value_text_or_null(row->socket));
    json_value_set(one, "state", json_value_text(row->state));
    json_value_set(one, "since", show_ago(row->since_ms));
    json_value_set(one, "away", away_of(row));
    json_value_set(one, "options", options_of(row));
    return one;
}

static void put_plugins(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__PluginsResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__Plugin *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, plugin_of(row));
        else if (listing->table)
            put_plugin_row(listing->table, row);
        else
            list_put_name(listing, "plugin", row->resource, NULL);
    }
}

static const struct list PLUGINS = {
    .method = CONTROL_PLUGINS,
    .response = &control__v1__plugins_response__descriptor,
    .argument = LIST_RESOURCE,
    .columns = PLUGIN_COLUMNS,
    .columns_len = sizeof PLUGIN_COLUMNS / sizeof *PLUGIN_COLUMNS,
    .put = put_plugins,
    .none = "no plugin serves such a resource; see cri-device-shimctl plugins",
};

const struct command plugins_command = {
    .name = "plugins",
    .arguments = "[RESOURCE]",
    .summary = "who serves which resource, since when, and how long one that is away may be",
    .arguments_max = 1,
    .run = list_run,
    .list = &PLUGINS,
};
