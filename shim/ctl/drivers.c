/*
 * cri-device-shimctl drivers
 */
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"
#include "shim/must.h"

static const struct table_column COLUMNS[] = {
    {.name = "NAME"},
    {.name = "STATE"},
    {.name = "SINCE"},
    {.name = "SERVICES"},
    {.name = "ENDPOINTS", .right = true},
    {.name = "PATH", .wide = true}, /* of the endpoint that is called */
    {.name = "CLAIMS", .right = true},
    {.name = "PREPARED", .right = true},
    {.name = "OWED", .right = true},
    {.name = "WAITS", .right = true},
    {.name = "HEALTH"},  /* whether it is told, or how many devices are not */
    {.name = "KUBELET"}, /* registered, or shown */
    {.name = "SLICES"},  /* while it is away */
    {.name = "WHY"},     /* it is */
};

static const char *state_of(const Control__V1__Driver *row)
{
    if (row->connected)
        return "connected";
    if (row->moved)
        return "moved";
    return row->n_endpoints > 0 ? "away" : "gone";
}

static enum table_color color_of(const Control__V1__Driver *row)
{
    if (!row->connected && !row->moved)
        return TABLE_BAD;
    return row->owed > 0 || row->unhealthy > 0 ? TABLE_WARNING : TABLE_PLAIN;
}

/* ---- for people ---- */

static void put_health(struct table *table, const Control__V1__Driver *row)
{
    char text[48];

    snprintf(text, sizeof text, "%llu unhealthy", (unsigned long long)row->unhealthy);
    table_put(table, row->unhealthy > 0 ? text : row->health ? "told" : "");
}

static const char *path_of(const Control__V1__Driver *row)
{
    for (size_t i = 0; i < row->n_endpoints; i++) {
        if (row->endpoints[i]->called)
            return row->endpoints[i]->path;
    }
    return row->n_endpoints > 0 ? row->endpoints[row->n_endpoints - 1]->path : "";
}

static void put_row(struct table *table, const Control__V1__Driver *row)
{
    char *services = list_join(row->services, row->n_services);
    char since[SHOW_AGE_BYTES];

    table_row(table, color_of(row));
    table_put(table, row->name);
    table_put(table, state_of(row));
    table_put(table, show_age(row->since_ms, since));
    table_put(table, services);
    table_put_number(table, row->n_endpoints);
    table_put(table, path_of(row));
    table_put_number(table, row->claims);
    table_put_number(table, row->prepared);
    table_put_number(table, row->owed);
    table_put_number(table, row->waits);
    put_health(table, row);
    table_put(table, row->kubelet);
    table_put(table, row->slices);
    table_put(table, row->why);
    free(services);
}

/* ---- for programs ---- */

static json_t *endpoint_of(const Control__V1__DriverEndpoint *is)
{
    json_t *one = must(json_object());

    json_value_set(one, "path", json_value_text(is->path));
    json_value_set(one, "connected", json_boolean(is->connected));
    json_value_set(one, "since", show_ago(is->since_ms));
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

static json_t *driver_of(const Control__V1__Driver *row)
{
    json_t *one = must(json_object()), *endpoints = must(json_array());

    for (size_t i = 0; i < row->n_endpoints; i++)
        json_value_append(endpoints, endpoint_of(row->endpoints[i]));
    json_value_set(one, "name", json_value_text(row->name));
    json_value_set(one, "state", json_value_text(state_of(row)));
    json_value_set(one, "since", show_ago(row->since_ms));
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

/* ---- the command ---- */

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__DriversResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__Driver *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, driver_of(row));
        else if (listing->table)
            put_row(listing->table, row);
        else
            list_put_name(listing, "driver", row->name, NULL);
    }
}

static const struct list DRIVERS = {
    .method = CONTROL_DRIVERS,
    .response = &control__v1__drivers_response__descriptor,
    .argument = LIST_DRIVER,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
    .none = "no such driver is known; see cri-device-shimctl drivers",
};

const struct command drivers_command = {
    .name = "drivers",
    .arguments = "[DRIVER]",
    .summary = "DRA drivers: since when they are there or away and why, their claims",
    .arguments_max = 1,
    .run = list_run,
    .list = &DRIVERS,
};
