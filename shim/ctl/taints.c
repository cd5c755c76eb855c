/*
 * cri-device-shimctl taints
 */
#include <stdio.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"

static const struct table_column COLUMNS[] = {
    {.name = "RESOURCE"}, /* or driver; "*": any */
    {.name = "ID"},       /* "*": each */
    {.name = "TAINT"},
    {.name = "EFFECT"},
    {.name = "SOURCE"},
    {.name = "SINCE"},
    {.name = "ENDS"},                /* by itself, in */
    {.name = "PODS", .right = true}, /* that do not tolerate it */
    {.name = "NOTE"},
    {.name = "REASON"},
};

static const char *or_any(const char *text)
{
    return text[0] != '\0' ? text : "*";
}

static const char *note_of(const Control__V1__Taint *row)
{
    if (row->held_back)
        return "held-back";
    return row->refused ? "not-followed" : "";
}

static enum table_color color_of(const Control__V1__Taint *row)
{
    if (strcmp(row->effect, "NoExecute") == 0 && !row->refused)
        return TABLE_BAD;
    return strcmp(row->effect, "None") != 0 ? TABLE_WARNING : TABLE_PLAIN;
}

static void put_row(struct table *table, const Control__V1__Taint *row)
{
    char since[SHOW_AGE_BYTES], ends[SHOW_AGE_BYTES], *name;

    if (asprintf(&name, "%s%s%s", row->key, row->value[0] != '\0' ? "=" : "", row->value) < 0)
        abort(); /* out of memory */
    table_row(table, color_of(row));
    table_put(table, or_any(row->resource));
    table_put(table, or_any(row->id));
    table_put(table, name);
    table_put(table, row->effect);
    table_put(table, row->source);
    table_put(table, show_age(row->since_ms, since));
    table_put(table, row->ends ? show_age(row->ends_in_ms, ends) : "");
    table_put_number(table, row->pods);
    table_put(table, note_of(row));
    table_put(table, row->words);
    free(name);
}

static void put_name(const struct listing *listing, const Control__V1__Taint *row)
{
    list_put_name(listing, "taint", or_any(row->resource), or_any(row->id), row->key, row->effect,
                  NULL);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__TaintsResponse, listing, page, answer_taint, put_row, put_name);
}

static const struct list TAINTS = {
    .method = CONTROL_TAINTS,
    .response = &control__v1__taints_response__descriptor,
    .argument = LIST_RESOURCE,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
};

const struct command taints_command = {
    .name = "taints",
    .arguments = "[RESOURCE|DRIVER]",
    .summary = "taints of devices, whoever set them, and how many pods do not tolerate them",
    .arguments_max = 1,
    .run = list_run,
    .list = &TAINTS,
};
