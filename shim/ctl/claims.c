/*
 * cri-device-shimctl claims
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/commands.h"
#include "shim/ctl/list.h"
#include "shim/must.h"

static const struct table_column COLUMNS[] = {
    {.name = "NAMESPACE"},
    {.name = "NAME"},
    {.name = "DRIVER"},
    {.name = "STATE"},
    {.name = "PREPARED"}, /* since */
    {.name = "DEVICES"},
    {.name = "HEALTH"}, /* the worst of theirs */
    {.name = "USED-BY"},
    {.name = "WAITS", .right = true}, /* requests of the kubelet's */
    {.name = "CDI", .wide = true},
    {.name = "LOCAL", .wide = true},
    {.name = "STORED", .wide = true},
    {.name = "UID", .wide = true},
};

/* "" if no driver tells. */
static const char *health_of(const Control__V1__Claim *row)
{
    static const char *const RANKS[] = {"", "healthy", "unknown", "unhealthy"};
    size_t worst = 0;

    for (size_t i = 0; i < row->n_devices; i++) {
        const Control__V1__DeviceHealth *health = row->devices[i]->health;
        size_t rank = sizeof RANKS / sizeof *RANKS - 1;

        while (health && rank > worst && strcmp(RANKS[rank], health->state) != 0)
            rank--;
        worst = health && rank > worst ? rank : worst;
    }
    return RANKS[worst];
}

static enum table_color color_of(const Control__V1__Claim *row)
{
    if (strcmp(health_of(row), "unhealthy") == 0)
        return TABLE_BAD;
    return row->asks > 0 || strcmp(row->state, "prepared") != 0 ? TABLE_WARNING : TABLE_PLAIN;
}

/* ---- for people ---- */

static void put_made(struct table *table, const Control__V1__Claim *row,
                     void (*put)(FILE *out, const Control__V1__Claim *row))
{
    char *text = NULL;
    size_t len;
    FILE *out = must(open_memstream(&text, &len));

    put(out, row);
    if (fclose(out) != 0)
        abort(); /* out of memory */
    table_put(table, text);
    free(text);
}

static void make_devices(FILE *out, const Control__V1__Claim *row)
{
    for (size_t i = 0; i < row->n_devices; i++)
        fprintf(out, "%s%s/%s", i > 0 ? "," : "", row->devices[i]->pool, row->devices[i]->name);
}

static void make_cdi(FILE *out, const Control__V1__Claim *row)
{
    bool first = true;

    for (size_t i = 0; i < row->n_devices; i++) {
        for (size_t k = 0; k < row->devices[i]->n_cdi_ids; k++) {
            fprintf(out, "%s%s", first ? "" : ",", row->devices[i]->cdi_ids[k]);
            first = false;
        }
    }
}

static void make_users(FILE *out, const Control__V1__Claim *row)
{
    if (row->n_users > 0)
        fprintf(out, "%s/%s", row->users[0]->pod, row->users[0]->container);
    if (row->users_total > 1)
        fprintf(out, " and %" PRIu64 " more", row->users_total - 1);
}

static void put_row(struct table *table, const Control__V1__Claim *row)
{
    char since[SHOW_AGE_BYTES];

    table_row(table, color_of(row));
    table_put(table, row->namespace_);
    table_put(table, row->name);
    table_put(table, row->driver);
    table_put(table, row->state);
    table_put(table, row->prepared ? show_age(row->prepared_ms, since) : "");
    put_made(table, row, make_devices);
    table_put(table, health_of(row));
    put_made(table, row, make_users);
    table_put_number(table, row->asks);
    put_made(table, row, make_cdi);
    table_put(table, row->local ? "yes" : "no");
    table_put(table, row->stored ? "yes" : "no");
    table_put(table, row->uid);
}

/* ---- the command ---- */

static void put_name(const struct listing *listing, const Control__V1__Claim *row)
{
    char *claim = list_pod_name(row->namespace_, row->name, row->uid);

    list_put_name(listing, "claim", claim, row->driver, NULL);
    free(claim);
}

static void put_rows(struct listing *listing, const ProtobufCMessage *page)
{
    LIST_PUT_EACH(Control__V1__ClaimsResponse, listing, page, answer_claim, put_row, put_name);
}

static const struct list CLAIMS = {
    .method = CONTROL_CLAIMS,
    .response = &control__v1__claims_response__descriptor,
    .argument = LIST_DRIVER,
    .columns = COLUMNS,
    .columns_len = sizeof COLUMNS / sizeof *COLUMNS,
    .put = put_rows,
};

const struct command claims_command = {
    .name = "claims",
    .arguments = "[DRIVER]",
    .summary = "claims of DRA drivers: their state, devices and CDI names, who uses them",
    .arguments_max = 1,
    .options = {{"pod", 'p', "POD", "used by this pod: its uid, NAMESPACE/NAME, or its name"},
                {"namespace", 'n', "NAMESPACE", "in this namespace"}},
    .run = list_run,
    .list = &CLAIMS,
};
