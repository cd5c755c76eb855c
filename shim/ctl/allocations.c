/*
 * cri-device-shimctl allocations
 */
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* Ids in a table that is not wide. */
#define IDS_SHOWN 3

static const struct table_column COLUMNS[] = {
    {.name = "NAMESPACE"},
    {.name = "POD"},
    {.name = "CONTAINER"},
    {.name = "RESOURCE"},
    {.name = "DEVICES"},
    {.name = "STATE"},
    {.name = "SINCE"},
    {.name = "CHOSEN-BY", .wide = true},
    {.name = "STORED", .wide = true},
    {.name = "CACHED", .wide = true}, /* its options are: it can be made again without the plugin */
    {.name = "WAITS-FOR", .wide = true},
    {.name = "UID", .wide = true},
};

/* ---- one allocation, perhaps of several rows ---- */

/* Rows that differ in their ids alone are one. */
struct merged {
    const Control__V1__Allocation *row; /* the first of them */
    char **ids;                         /* borrowed from all of them */
    size_t ids_len;
};

static char *join(char *const *texts, size_t len, size_t most)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must(open_memstream(&text, &bytes));

    for (size_t i = 0; i < len && i < most; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", texts[i]);
    if (len > most)
        fprintf(out, " and %zu more", len - most);
    if (fclose(out) != 0)
        abort(); /* out of memory */
    return text;
}

/* "g1", or "g1 (for g0)": what it is in the place of. */
static char *devices_of(const struct merged *merged, size_t most)
{
    const Control__V1__Allocation *row = merged->row;
    char *ids = join(merged->ids, merged->ids_len, most);
    char *asked, *both;

    if (row->n_asked == 0)
        return ids;
    asked = join(row->asked, row->n_asked, most);
    if (asprintf(&both, "%s (for %s)", ids, asked) < 0)
        abort(); /* out of memory */
    free(ids);
    free(asked);
    return both;
}

static void put_row(const struct listing *listing, const struct merged *merged)
{
    const Control__V1__Allocation *row = merged->row;
    struct table *table = listing->table;
    bool wide = listing->show->format == SHOW_WIDE;
    char *ids = devices_of(merged, wide ? SIZE_MAX : IDS_SHOWN);
    char *waits = join(row->waits, row->n_waits, SIZE_MAX);
    char since[SHOW_AGE_BYTES];

    table_row(table, strcmp(row->state, "unknown") == 0 ? TABLE_WARNING : TABLE_PLAIN);
    table_put(table, row->pod_namespace);
    table_put(table, row->pod_name);
    table_put(table, row->container);
    table_put(table, row->resource);
    table_put(table, ids);
    table_put(table, row->state);
    table_put(table, show_age(row->since_ms, since));
    table_put(table, answer_chosen_by(row));
    table_put(table, row->stored ? "yes" : "no");
    table_put(table, row->cached ? "yes" : "no");
    table_put(table, waits);
    table_put(table, row->pod_uid);
    free(ids);
    free(waits);
}

/* ---- the command ---- */

static void put_merged(struct listing *listing)
{
    const struct merged *merged = listing->merged;
    const Control__V1__Allocation *row = merged->row;
    char *pod;

    if (listing->items) {
        json_value_append(listing->items,
                          answer_allocation(merged->row, merged->ids, merged->ids_len));
    } else if (listing->table) {
        put_row(listing, merged);
    } else {
        pod = list_pod_name(row->pod_namespace, row->pod_name, row->pod_uid);
        list_put_name(listing, "allocation", pod, row->container, row->resource, NULL);
        free(pod);
    }
    free(merged->ids);
    free(listing->merged);
    listing->merged = NULL;
}

static bool is_same(const Control__V1__Allocation *a, const Control__V1__Allocation *b)
{
    return strcmp(a->pod_uid, b->pod_uid) == 0 && strcmp(a->container, b->container) == 0 &&
           strcmp(a->resource, b->resource) == 0;
}

static void merge(struct listing *listing, const Control__V1__Allocation *row)
{
    struct merged *merged = listing->merged;

    if (merged && !is_same(merged->row, row)) {
        put_merged(listing);
        merged = NULL;
    }
    if (!merged) {
        merged = listing->merged = must(calloc(1, sizeof *merged));
        merged->row = row;
    }
    merged->ids =
        must(realloc(merged->ids, (merged->ids_len + row->n_ids + 1) * sizeof *merged->ids));
    for (size_t i = 0; i < row->n_ids; i++)
        merged->ids[merged->ids_len++] = row->ids[i];
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    const Control__V1__AllocationsResponse *response = (const void *)page;
    const char *who = command_given(listing->run, "chosen-by");

    for (size_t i = 0; response && i < response->n_rows; i++) {
        if (!who || strcmp(who, answer_chosen_by(response->rows[i])) == 0)
            merge(listing, response->rows[i]);
    }
    if (!response && listing->merged)
        put_merged(listing);
}

static const struct list ALLOCATIONS = {
    .method = CONTROL_ALLOCATIONS,
    .response = &control__v1__allocations_response__descriptor,
    .argument = LIST_RESOURCE,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
};

static bool run_allocations(const struct command_run *run, struct client_failure *failure)
{
    const char *who = command_given(run, "chosen-by");

    if (!who || strcmp(who, "shim") == 0 || strcmp(who, "kubelet") == 0 ||
        strcmp(who, "claim") == 0)
        return list_run(run, failure);
    return client_fail(failure, RPC_INVALID_ARGUMENT,
                       "\"%.64s\" is none of those who choose: shim, kubelet, claim", who);
}

const struct command allocations_command = {
    .name = "allocations",
    .arguments = "[RESOURCE]",
    .summary = "which container has which devices, since when, and who chose them",
    .arguments_max = 1,
    .options = {{"pod", 'p', "POD", "of this pod: its uid, NAMESPACE/NAME, or its name"},
                {"namespace", 'n', "NAMESPACE", "of pods in this namespace"},
                {"chosen-by", '\0', "WHO",
                 "whose devices were chosen by the shim, kubelet or claim"}},
    .run = run_allocations,
    .list = &ALLOCATIONS,
};
