/*
 * cri-device-shimctl orders
 */
#include <stdio.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

static const struct table_column COLUMNS[] = {{.name = "KIND"},   {.name = "RESOURCE"},
                                              {.name = "ID"},     {.name = "SINCE"},
                                              {.name = "CHANGE"}, /* of a stop grace period */
                                              {.name = "REASON"}};

static void put_row(struct table *table, const Control__V1__Order *row)
{
    char since[SHOW_AGE_BYTES], more[SHOW_AGE_BYTES], change[SHOW_AGE_BYTES + 16] = "";

    if (row->over)
        snprintf(change, sizeof change, "ended");
    else if (row->more_ms > 0)
        snprintf(change, sizeof change, "%s longer", show_age(row->more_ms, more));
    table_row(table, TABLE_PLAIN);
    table_put(table, row->kind);
    table_put(table, row->resource);
    table_put(table, row->id);
    table_put(table, show_age(row->since_ms, since));
    table_put(table, change);
    table_put(table, row->reason);
}

static void put_name(const struct listing *listing, const Control__V1__Order *row)
{
    list_put_name(listing, row->kind, row->resource, row->id[0] ? row->id : NULL, NULL);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__OrdersResponse, listing, page, answer_order, put_row, put_name);
}

static const struct list ORDERS = {
    .method = CONTROL_ORDERS,
    .response = &control__v1__orders_response__descriptor,
    .argument = LIST_RESOURCE,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
};

const struct command orders_command = {
    .name = "orders",
    .arguments = "[RESOURCE]",
    .summary = "what is cordoned, withdrawn or tainted, and grace periods that were changed",
    .arguments_max = 1,
    .run = list_run,
    .list = &ORDERS,
};
