/*
 * cri-device-shimctl drivers
 */
#include <stdlib.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

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
    table_put(table, answer_driver_state(row));
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

/* ---- the command ---- */

static void put_name(const struct listing *listing, const Control__V1__Driver *row)
{
    list_put_name(listing, "driver", row->name, NULL);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__DriversResponse, listing, page, answer_driver, put_row, put_name);
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
