#include "shim/ctl/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/ctl/table.h"

/* ---- for people ---- */

static void put_process(struct table *table, const char *name, const char *state, int32_t pid,
                        uint64_t uptime_ms, const char *version, const char *detail,
                        enum table_color color)
{
    char age[SHOW_AGE_BYTES];

    table_row(table, color);
    table_put(table, name);
    table_put(table, state);
    if (pid > 0)
        table_put_number(table, (unsigned long long)pid);
    else
        table_put(table, "");
    table_put(table, uptime_ms > 0 ? show_age(uptime_ms, age) : "");
    table_put(table, version);
    table_put(table, detail);
}

static void put_runtime(struct table *table, const Control__V1__Runtime *runtime)
{
    char *version = NULL;

    if (asprintf(&version, "%s %s", runtime->name, runtime->version) < 0)
        abort(); /* out of memory */
    put_process(table, "runtime", runtime->connected ? "connected" : "away", 0,
                runtime->connected ? runtime->since_ms : 0, runtime->name[0] ? version : "",
                runtime->endpoint, runtime->connected ? TABLE_PLAIN : TABLE_BAD);
    free(version);
}

static void put_kubelet(struct table *table, const Control__V1__Kubelet *kubelet)
{
    bool seen = kubelet->pid > 0;
    char state[64];

    snprintf(state, sizeof state, "gate %.48s", kubelet->gate);
    put_process(table, "kubelet", seen ? state : "not seen", kubelet->pid, kubelet->uptime_ms, "",
                kubelet->words,
                strcmp(kubelet->gate, "holding") == 0 ? TABLE_WARNING : TABLE_PLAIN);
}

static void show_processes(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "NAME"},   {.name = "STATE"},   {.name = "PID", .right = true},
        {.name = "UPTIME"}, {.name = "VERSION"}, {.name = "DETAIL", .wide = true},
    };
    struct table *table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);

    for (size_t i = 0; i < status->n_processes; i++) {
        const Control__V1__Process *process = status->processes[i];
        bool there = i == 0 || process->version[0];

        put_process(table, process->name,
                    i == 0  ? "running"
                    : there ? "connected"
                            : "away",
                    process->pid, process->uptime_ms, process->version, "",
                    there ? TABLE_PLAIN : TABLE_BAD);
    }
    if (status->runtime)
        put_runtime(table, status->runtime);
    if (status->kubelet)
        put_kubelet(table, status->kubelet);
    table_print(table);
}

static void show_troubles(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "DEGRADED"}, {.name = "SINCE"}, {.name = "WHY"}};
    struct table *table;
    char age[SHOW_AGE_BYTES];

    if (status->n_troubles == 0)
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    for (size_t i = 0; i < status->n_troubles; i++) {
        table_row(table, TABLE_BAD);
        table_put(table, status->troubles[i]->what);
        table_put(table, show_age(status->troubles[i]->since_ms, age));
        table_put(table, status->troubles[i]->why);
    }
    table_print(table);
}

/* "vendor.com/gpu g0: dust in the fan" */
static void put_newest(struct table *table, const Control__V1__Order *order)
{
    char *text;

    if (!order) { /* of a daemon of another release */
        table_put(table, "");
        return;
    }
    if (asprintf(&text, "%s%s%s%s%s", order->resource, order->id[0] ? " " : "", order->id,
                 order->reason[0] ? ": " : "", order->reason) < 0)
        abort(); /* out of memory */
    table_put(table, text);
    free(text);
}

static void show_orders(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {{.name = "ORDERS"},
                                                  {.name = "COUNT", .right = true},
                                                  {.name = "OLDEST"},
                                                  {.name = "NEWEST"}};
    struct table *table;
    char age[SHOW_AGE_BYTES];

    if (status->n_orders == 0)
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    for (size_t i = 0; i < status->n_orders; i++) {
        table_row(table, TABLE_WARNING);
        table_put(table, status->orders[i]->kind);
        table_put_number(table, status->orders[i]->count);
        table_put(table, show_age(status->orders[i]->oldest_ms, age));
        put_newest(table, status->orders[i]->newest);
    }
    table_print(table);
}

static void show_dra(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "DRIVERS", .right = true}, {.name = "CONNECTED", .right = true},
        {.name = "CLAIMS", .right = true},  {.name = "PREPARED", .right = true},
        {.name = "OWED", .right = true},    {.name = "WAITS", .right = true},
    };
    const Control__V1__DraCount *dra = status->dra;
    struct table *table;

    if (!dra)
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    table_row(table, dra->connected < dra->drivers ? TABLE_BAD
                     : dra->owed > 0               ? TABLE_WARNING
                                                   : TABLE_PLAIN);
    table_put_number(table, dra->drivers);
    table_put_number(table, dra->connected);
    table_put_number(table, dra->claims);
    table_put_number(table, dra->prepared);
    table_put_number(table, dra->owed);
    table_put_number(table, dra->waits);
    table_print(table);
}

static void show_published(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "PUBLISHED"},
        {.name = "POOL"},
        {.name = "DEVICES", .right = true},
        {.name = "LEFT-OUT", .right = true},
        {.name = "AT API SERVER"},
        {.name = "WHY"},
    };
    struct table *table;

    if (status->n_published == 0)
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    for (size_t i = 0; i < status->n_published; i++) {
        const Control__V1__PublishedPool *is = status->published[i];

        table_row(table, is->trouble[0]                   ? TABLE_BAD
                         : is->left_out > 0 || !is->there ? TABLE_WARNING
                                                          : TABLE_PLAIN);
        table_put(table, is->resource);
        table_put(table, is->pool);
        table_put_number(table, is->devices);
        table_put_number(table, is->left_out);
        table_put(table, is->there ? "yes" : "not yet");
        table_put(table, is->trouble);
    }
    table_print(table);
    if (status->published_more > 0)
        fprintf(show->out, "and %" PRIu64 " more\n", status->published_more);
}

static void put_state(struct table *table, const Control__V1__MachineShutdown *is)
{
    char *text = NULL;
    int rc = 0;

    if (strcmp(is->state, "groups") == 0 && is->by_priority)
        rc = asprintf(&text, "group %" PRIu32 " of %" PRIu32 ", priority %" PRId32, is->group,
                      is->groups, is->priority);
    else if (strcmp(is->state, "groups") == 0)
        rc = asprintf(&text, "pods with devices");
    if (rc < 0)
        abort(); /* out of memory */
    table_put(table, text ? text : is->state);
    free(text);
}

static void put_planned(struct table *table, size_t number, const Control__V1__MachineShutdown *is)
{
    const Control__V1__ShutdownGroup *group = is->planned[number];
    char *text = NULL;

    if (group->by_priority && asprintf(&text, "group %zu of %zu, priority %" PRId32, number + 1,
                                       is->n_planned, group->priority) < 0)
        abort(); /* out of memory */
    table_put(table, text ? text : "pods with devices");
    free(text);
}

/* What would be, if the machine went down. */
static void show_plan(const struct show *show, const Control__V1__MachineShutdown *is)
{
    static const struct table_column COLUMNS[] = {
        {.name = "ON SHUTDOWN"},
        {.name = "WITHIN"},
        {.name = "PODS", .right = true},
        {.name = "WITH DEVICES", .right = true},
        {.name = "FIRST"},
    };
    struct table *table;
    char age[SHOW_AGE_BYTES];

    if (!is->kubelet_ends && is->n_planned == 0)
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    if (is->kubelet_ends) {
        table_row(table, TABLE_PLAIN);
        table_put(table, "the kubelet ends them");
        for (size_t i = 1; i < sizeof COLUMNS / sizeof *COLUMNS; i++)
            table_put(table, "");
    }
    for (size_t i = 0; i < is->n_planned; i++) {
        const Control__V1__ShutdownGroup *group = is->planned[i];

        table_row(table, TABLE_PLAIN);
        put_planned(table, i, is);
        table_put(table, show_age(group->time_ms, age));
        table_put_number(table, group->pods);
        table_put_number(table, group->holders);
        table_put(table, group->n_first > 0 ? group->first[0] : "");
    }
    table_print(table);
}

static void show_shutdown(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "SHUTDOWN"},
        {.name = "SINCE"},
        {.name = "LEFT"},
        {.name = "PODS", .right = true},
        {.name = "REMAINING", .right = true},
        {.name = "FIRST"},
    };
    const Control__V1__MachineShutdown *is = status->shutdown;
    struct table *table;
    char age[SHOW_AGE_BYTES];

    if (!is)
        return;
    if (strcmp(is->state, "none") == 0) {
        show_plan(show, is);
        return;
    }
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    table_row(table, TABLE_WARNING);
    put_state(table, is);
    table_put(table, show_age(is->since_ms, age));
    table_put(table, is->groups > 0 ? show_age(is->group_ends_ms, age) : "");
    table_put_number(table, is->pods);
    table_put_number(table, is->remaining);
    table_put(table, is->n_first_remaining > 0 ? is->first_remaining[0] : "");
    table_print(table);
}

static void show_settings(const struct show *show, const Control__V1__StatusResponse *status)
{
    static const struct table_column COLUMNS[] = {
        {.name = "SETTING"}, {.name = "VALUE"}, {.name = "DEFAULT"}};
    struct table *table;

    if (status->n_settings == 0 && !status->log_level_set[0])
        return;
    table = table_new(show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    fputc('\n', show->out);
    for (size_t i = 0; i < status->n_settings; i++) {
        table_row(table, TABLE_PLAIN);
        table_put(table, status->settings[i]->key);
        table_put(table, status->settings[i]->value);
        table_put(table, status->settings[i]->initial);
    }
    if (status->log_level_set[0]) {
        table_row(table, TABLE_WARNING);
        table_put(table, "log-level (set)");
        table_put(table, status->log_level_set);
        table_put(table, "the settings'");
    }
    table_print(table);
}

/* ---- the command ---- */

static bool run(const struct command_run *run, struct client_failure *failure)
{
    const struct show *show = &run->show;
    Control__V1__StatusRequest request = CONTROL__V1__STATUS_REQUEST__INIT;
    Control__V1__StatusResponse *status = (Control__V1__StatusResponse *)client_ask(
        run->client, CONTROL_STATUS, &request.base, &control__v1__status_response__descriptor,
        failure);

    if (!status)
        return false;
    if (show->format == SHOW_JSON) {
        show_json(show, answer_status(status));
    } else if (show->format == SHOW_NAME) {
        fprintf(show->out, "status/%s\n", status->n_troubles > 0 ? "degraded" : "ok");
    } else {
        show_processes(show, status);
        show_troubles(show, status);
        show_orders(show, status);
        show_dra(show, status);
        show_published(show, status);
        show_shutdown(show, status);
        show_settings(show, status);
    }
    control__v1__status_response__free_unpacked(status, NULL);
    return true;
}

const struct command status_command = {
    .name = "status",
    .arguments = "",
    .summary = "the processes, what is not as it should be, what was ordered, settings that differ",
    .run = run,
};
