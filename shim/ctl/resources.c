/*
 * cri-device-shimctl resources, and plugins
 */
#include <inttypes.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

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

static void put_resources(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__ResourcesResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__Resource *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, answer_resource(row));
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

static void put_plugins(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__PluginsResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__Plugin *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, answer_plugin(row));
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
