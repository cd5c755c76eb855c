/*
 * cri-device-shimctl endings
 */
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/endings.h"
#include "shim/ctl/list.h"
#include "shim/must.h"

static const struct table_column COLUMNS[] = {
    {.name = "NAMESPACE"},
    {.name = "NAME"},
    {.name = "STATE"},
    {.name = "BY"}, /* who asks */
    {.name = "SINCE"},
    {.name = "DUE"},    /* in: that it is asked for; that its containers are killed */
    {.name = "REASON"}, /* of the first who asks */
    {.name = "UID", .wide = true},
};

/* ---- for people ---- */

/* Who asks, each once, in the order in which they did; for the caller to free. */
static char *askers_of(const Control__V1__Ending *row)
{
    char **names = must(calloc(row->n_asks + 1, sizeof *names)), *joined;
    size_t len = 0;

    for (size_t i = 0; i < row->n_asks; i++) {
        size_t before = 0;

        while (before < len && strcmp(names[before], row->asks[i]->asker) != 0)
            before++;
        names[before] = row->asks[i]->asker;
        len += before == len;
    }
    joined = list_join(names, len);
    free(names);
    return joined;
}

static bool waits(const Control__V1__Ending *row)
{
    return strcmp(row->state, "waits") == 0;
}

static void put_row(struct table *table, const Control__V1__Ending *row)
{
    char since[SHOW_AGE_BYTES], due[SHOW_AGE_BYTES], *askers = askers_of(row);

    table_row(table, waits(row) ? TABLE_PLAIN : TABLE_WARNING);
    table_put(table, row->pod_namespace);
    table_put(table, row->name);
    table_put(table, row->state);
    table_put(table, askers);
    table_put(table, waits(row) ? "" : show_age(row->asked_ms, since));
    table_put(table, row->due ? show_age(row->due_in_ms, due) : "");
    table_put(table, row->n_asks > 0 ? row->asks[0]->why : "");
    table_put(table, row->uid);
    free(askers);
}

/* ---- for "why" ---- */

static void put_ask(const struct show *show, const Control__V1__EndingAsk *ask)
{
    char grace[SHOW_AGE_BYTES];

    fprintf(show->out, "    by %s", ask->asker);
    if (ask->why[0]) {
        fputs(": ", show->out);
        show_put(show, ask->why);
    }
    if (!ask->own_grace)
        fprintf(show->out, " (with %s)", show_age(ask->grace_ms, grace));
    fputc('\n', show->out);
}

void ending_put(const struct show *show, const Control__V1__Ending *row)
{
    char *pod = list_pod_name(row->pod_namespace, row->name, row->uid), age[SHOW_AGE_BYTES];

    fputs(show->format == SHOW_NAME ? "pod/" : "pod ", show->out);
    show_put(show, pod);
    free(pod);
    if (show->format == SHOW_NAME) {
        fputc('\n', show->out);
        return;
    }
    if (waits(row))
        fputs(" is to be evicted", show->out);
    else
        fprintf(show->out, " is ended for %s: %s", show_age(row->asked_ms, age), row->state);
    if (row->due)
        fprintf(show->out, waits(row) ? ", in %s" : ", killed in %s",
                show_age(row->due_in_ms, age));
    fputc('\n', show->out);
    for (size_t i = 0; i < row->n_asks; i++)
        put_ask(show, row->asks[i]);
}

/* ---- the command ---- */

static void put_name(const struct listing *listing, const Control__V1__Ending *row)
{
    char *pod = list_pod_name(row->pod_namespace, row->name, row->uid);

    list_put_name(listing, "pod", pod, NULL);
    free(pod);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__EndingsResponse, listing, page, answer_ending, put_row, put_name);
}

static const struct list ENDINGS = {
    .method = CONTROL_ENDINGS,
    .response = &control__v1__endings_response__descriptor,
    .argument = LIST_POD,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
    .none = "no such pod is ended, or is to be",
};

const struct command endings_command = {
    .name = "endings",
    .arguments = "[POD]",
    .summary = "pods that are ended from here, or will be for taints: who asks, why, how far it is",
    .arguments_max = 1,
    .options = {{"namespace", 'n', "NAMESPACE", "in this namespace"}},
    .run = list_run,
    .list = &ENDINGS,
};
