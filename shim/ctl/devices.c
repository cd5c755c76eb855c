/*
 * cri-device-shimctl devices
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

static const struct table_column COLUMNS[] = {
    {.name = "RESOURCE"},
    {.name = "ID"},
    {.name = "HEALTH"},
    {.name = "SINCE", .wide = true},
    {.name = "NUMA"},
    {.name = "KUBELET", .wide = true},
    {.name = "STATE"}, /* free, or the first holder's */
    {.name = "HOLDER"},
    {.name = "CORDON"}, /* or that the resource is withdrawn */
    {.name = "REASON", .wide = true},
    {.name = "PUBLISHED", .wide = true}, /* the ResourceSlice that has it */
};

static const char *state_of(const Control__V1__Device *row)
{
    if (row->n_holders > 0)
        return row->holders[0]->state;
    return row->free ? "free" : "";
}

static const char *cordon_of(const Control__V1__Device *row)
{
    if (row->withdrawn)
        return "withdrawn";
    return row->cordon ? "cordoned" : "";
}

static const char *reason_of(const Control__V1__Device *row)
{
    if (row->withdrawal)
        return row->withdrawal->reason;
    return row->cordon ? row->cordon->reason : "";
}

static const char *published_of(const Control__V1__Device *row)
{
    if (!row->published)
        return "";
    return row->published->slice[0] ? row->published->slice : "not yet";
}

static enum table_color color_of(const Control__V1__Device *row)
{
    if (!row->listed || !row->healthy)
        return TABLE_BAD;
    return row->cordon || row->withdrawn ? TABLE_WARNING : TABLE_PLAIN;
}

/* ---- for people ---- */

static void put_nodes(struct table *table, const Control__V1__Device *row)
{
    char text[64] = "";

    for (size_t i = 0; i < row->n_numa_nodes && strlen(text) < sizeof text - 1; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRId64, i > 0 ? "," : "",
                 row->numa_nodes[i]);
    table_put(table, text);
}

static void put_holder(struct table *table, const Control__V1__Device *row)
{
    const Control__V1__Holder *first = row->n_holders > 0 ? row->holders[0] : NULL;
    char *pod, *text;

    if (!first) {
        table_put(table, "");
        return;
    }
    pod = list_pod_name(first->pod_namespace, first->pod_name, first->pod_uid);
    if ((row->holders_total > 1 ? asprintf(&text, "%s/%s and %" PRIu64 " more", pod,
                                           first->container, row->holders_total - 1)
                                : asprintf(&text, "%s/%s", pod, first->container)) < 0)
        abort(); /* out of memory */
    table_put(table, text);
    free(pod);
    free(text);
}

static void put_row(struct table *table, const Control__V1__Device *row)
{
    char since[SHOW_AGE_BYTES];

    table_row(table, color_of(row));
    table_put(table, row->resource);
    table_put(table, row->id);
    table_put(table, answer_device_health(row));
    table_put(table, row->listed ? show_age(row->since_ms, since) : "");
    put_nodes(table, row);
    table_put(table, !row->shown ? "" : row->shown_healthy ? "healthy" : "unhealthy");
    table_put(table, state_of(row));
    put_holder(table, row);
    table_put(table, cordon_of(row));
    table_put(table, reason_of(row));
    table_put(table, published_of(row));
}

/* ---- those of drivers: DRIVER, POOL/NAME ---- */

static void put_claim(struct table *table, const Control__V1__DriverDevice *row)
{
    const Control__V1__ClaimName *first = row->n_claims > 0 ? row->claims[0] : NULL;
    char *claim, *text;

    table_put(table, first ? first->state : "");
    if (!first) {
        table_put(table, "");
        return;
    }
    claim = list_pod_name(first->namespace_, first->name, first->uid);
    if ((row->claims_total > 1
             ? asprintf(&text, "claim %s and %" PRIu64 " more", claim, row->claims_total - 1)
             : asprintf(&text, "claim %s", claim)) < 0)
        abort(); /* out of memory */
    table_put(table, text);
    free(claim);
    free(text);
}

static void put_driver_row(struct table *table, const Control__V1__DriverDevice *row)
{
    const Control__V1__DeviceHealth *health = row->health;
    char since[SHOW_AGE_BYTES], *id;

    if (asprintf(&id, "%s/%s", row->pool, row->name) < 0)
        abort(); /* out of memory */
    table_row(table, health && strcmp(health->state, "unhealthy") == 0 ? TABLE_BAD : TABLE_PLAIN);
    table_put(table, row->driver);
    table_put(table, id);
    table_put(table, health ? health->state : "");
    table_put(table, health ? show_age(health->said_ms, since) : "");
    table_put(table, ""); /* its NUMA nodes are the scheduler's to know */
    table_put(table, "");
    put_claim(table, row);
    table_put(table, "");
    table_put(table, health ? health->message : "");
    table_put(table, "");
    free(id);
}

static void put_driver_rows(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__DriverDevicesResponse *response = (const void *)page;

    for (size_t i = 0; response && i < response->n_rows; i++) {
        const Control__V1__DriverDevice *row = response->rows[i];

        if (listing->items)
            json_value_append(listing->items, answer_driver_device(row));
        else if (listing->table)
            put_driver_row(listing->table, row);
        else
            list_put_name(listing, "device", row->driver, row->pool, row->name, NULL);
    }
}

static const struct list DRIVER_DEVICES = {
    .method = CONTROL_DRIVER_DEVICES,
    .response = &control__v1__driver_devices_response__descriptor,
    .put = put_driver_rows,
};

/* ---- the command ---- */

static void put_name(const struct listing *listing, const Control__V1__Device *row)
{
    list_put_name(listing, "device", row->resource, row->id, NULL);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__DevicesResponse, listing, page, answer_device, put_row, put_name);
}

static const struct list DEVICES = {
    .method = CONTROL_DEVICES,
    .response = &control__v1__devices_response__descriptor,
    .argument = LIST_RESOURCE | LIST_DRIVER,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
    .none = "no device of such a resource is known; see cri-device-shimctl resources",
    .behind = &DRIVER_DEVICES,
    .behind_items = "driverDevices",
};

const struct command devices_command = {
    .name = "devices",
    .arguments = "[RESOURCE|DRIVER]",
    .summary = "each device: its health, NUMA nodes, who has it, whether it is cordoned",
    .arguments_max = 1,
    .run = list_run,
    .list = &DEVICES,
};
