#include "shim/ctl/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/ctl/table.h"
#include "shim/must.h"

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

/* One that is delayed is told only once there is one. */
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

    if (!is || strcmp(is->state, "none") == 0)
        return;
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

/* ---- for programs ---- */

static json_t *processes_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_processes; i++) {
        const Control__V1__Process *process = status->processes[i];
        json_t *one = must(json_object());

        json_value_set(one, "name", json_value_text(process->name));
        json_value_set(one, "version", json_value_text_or_null(process->version));
        json_value_set(one, "pid", process->pid > 0 ? json_integer(process->pid) : json_null());
        json_value_set(one, "uptimeSeconds",
                       process->uptime_ms > 0 ? show_seconds(process->uptime_ms) : json_null());
        json_value_append(list, one);
    }
    return list;
}

static json_t *runtime_of(const Control__V1__Runtime *runtime)
{
    json_t *one = must(json_object());

    json_value_set(one, "endpoint", json_value_text(runtime->endpoint));
    json_value_set(one, "connected", json_boolean(runtime->connected));
    json_value_set(one, "since", show_ago(runtime->since_ms));
    json_value_set(one, "name", json_value_text_or_null(runtime->name));
    json_value_set(one, "version", json_value_text_or_null(runtime->version));
    json_value_set(one, "listed", json_boolean(runtime->listed));
    return one;
}

static json_t *kubelet_of(const Control__V1__Kubelet *kubelet)
{
    json_t *one = must(json_object());

    json_value_set(one, "pid", kubelet->pid > 0 ? json_integer(kubelet->pid) : json_null());
    json_value_set(one, "uptimeSeconds",
                   kubelet->uptime_ms > 0 ? show_seconds(kubelet->uptime_ms) : json_null());
    json_value_set(one, "gate", json_value_text(kubelet->gate));
    json_value_set(one, "gateHeldSeconds", show_seconds(kubelet->held_ms));
    json_value_set(one, "taken", json_value_text_or_null(kubelet->words));
    return one;
}

static json_t *troubles_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_troubles; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "what", json_value_text(status->troubles[i]->what));
        json_value_set(one, "why", json_value_text(status->troubles[i]->why));
        json_value_set(one, "since", show_ago(status->troubles[i]->since_ms));
        json_value_append(list, one);
    }
    return list;
}

static json_t *newest_of(const Control__V1__Order *order)
{
    json_t *one;

    if (!order)
        return json_null();
    one = must(json_object());
    json_value_set(one, "resource", json_value_text(order->resource));
    json_value_set(one, "id", json_value_text_or_null(order->id));
    json_value_set(one, "reason", json_value_text_or_null(order->reason));
    json_value_set(one, "since", show_ago(order->since_ms));
    return one;
}

static json_t *orders_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_orders; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "kind", json_value_text(status->orders[i]->kind));
        json_value_set(one, "count", json_value_number(status->orders[i]->count));
        json_value_set(one, "oldest", show_ago(status->orders[i]->oldest_ms));
        json_value_set(one, "newest", newest_of(status->orders[i]->newest));
        json_value_append(list, one);
    }
    return list;
}

static json_t *dra_of(const Control__V1__DraCount *dra)
{
    json_t *one;

    if (!dra)
        return json_null();
    one = must(json_object());
    json_value_set(one, "drivers", json_value_number(dra->drivers));
    json_value_set(one, "connected", json_value_number(dra->connected));
    json_value_set(one, "claims", json_value_number(dra->claims));
    json_value_set(one, "prepared", json_value_number(dra->prepared));
    json_value_set(one, "owed", json_value_number(dra->owed));
    json_value_set(one, "waits", json_value_number(dra->waits));
    return one;
}

static json_t *group_of(const Control__V1__MachineShutdown *is)
{
    json_t *one;

    if (is->groups == 0)
        return json_null();
    one = must(json_object());
    json_value_set(one, "number", json_value_number(is->group));
    json_value_set(one, "of", json_value_number(is->groups));
    json_value_set(one, "priority", is->by_priority ? json_integer(is->priority) : json_null());
    json_value_set(one, "leftSeconds", show_seconds(is->group_ends_ms));
    return one;
}

static json_t *shutdown_of(const Control__V1__MachineShutdown *is)
{
    json_t *one, *names;

    if (!is)
        return json_null();
    one = must(json_object());
    names = must(json_array());
    for (size_t i = 0; i < is->n_first_remaining; i++)
        json_value_append(names, json_value_text(is->first_remaining[i]));
    json_value_set(one, "state", json_value_text(is->state));
    json_value_set(one, "since",
                   strcmp(is->state, "none") == 0 ? json_null() : show_ago(is->since_ms));
    json_value_set(one, "delayed", json_boolean(is->locked));
    json_value_set(one, "limitSeconds",
                   is->limit_ms > 0 ? show_seconds(is->limit_ms) : json_null());
    json_value_set(one, "wantedSeconds", show_seconds(is->settings_ms));
    json_value_set(one, "knownPods",
                   is->pods_known ? json_value_number(is->known_pods) : json_null());
    json_value_set(one, "group", group_of(is));
    json_value_set(one, "pods", json_value_number(is->pods));
    json_value_set(one, "remaining", json_value_number(is->remaining));
    json_value_set(one, "firstRemaining", names);
    return one;
}

static json_t *settings_of(const Control__V1__StatusResponse *status)
{
    json_t *list = must(json_array());

    for (size_t i = 0; i < status->n_settings; i++) {
        json_t *one = must(json_object());

        json_value_set(one, "key", json_value_text(status->settings[i]->key));
        json_value_set(one, "value", json_value_text(status->settings[i]->value));
        json_value_set(one, "default", json_value_text_or_null(status->settings[i]->initial));
        json_value_append(list, one);
    }
    return list;
}

static void show_all(const struct show *show, const Control__V1__StatusResponse *status)
{
    json_t *all = must(json_object());

    json_value_set(all, "processes", processes_of(status));
    json_value_set(all, "runtime", status->runtime ? runtime_of(status->runtime) : json_null());
    json_value_set(all, "kubelet", status->kubelet ? kubelet_of(status->kubelet) : json_null());
    json_value_set(all, "degraded", troubles_of(status));
    json_value_set(all, "orders", orders_of(status));
    json_value_set(all, "dra", dra_of(status->dra));
    json_value_set(all, "shutdown", shutdown_of(status->shutdown));
    json_value_set(all, "settings", settings_of(status));
    json_value_set(all, "logLevelSet", json_value_text_or_null(status->log_level_set));
    show_json(show, all);
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
        show_all(show, status);
    } else if (show->format == SHOW_NAME) {
        fprintf(show->out, "status/%s\n", status->n_troubles > 0 ? "degraded" : "ok");
    } else {
        show_processes(show, status);
        show_troubles(show, status);
        show_orders(show, status);
        show_dra(show, status);
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
