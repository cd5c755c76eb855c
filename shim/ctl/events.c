#include "shim/ctl/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/answers/answers.h"
#include "shim/boot_clock.h"
#include "shim/ctl/table.h"
#include "shim/must.h"
#include "shim/printable.h"
#include "shim/rpc/rpc.h"

/* A daemon that is away is asked again after so long. */
#define AGAIN_S 1

struct reading {
    struct show show;
    struct table *table; /* NULL: lines, or JSON */
    json_t *items;       /* NULL: not in one document */
    bool heard;          /* the daemon has said something */
    uint64_t after;      /* the last one's id */
    bool follows;        /* each is written as it comes */
    bool full;           /* who reads takes nothing just now */
    int err;             /* of that; 0: all was taken */
};

/* ---- for people ---- */

static void put_ids(FILE *out, const Control__V1__Event *event)
{
    for (size_t i = 0; i < event->n_ids; i++) {
        if (i > 0)
            fputc(',', out);
        put_printable(out, event->ids[i]);
    }
    if (event->ids_total > event->n_ids)
        fprintf(out, "%s(%" PRIu64 " more)", event->n_ids > 0 ? " " : "",
                event->ids_total - event->n_ids);
}

static void put_pod(FILE *out, const Control__V1__Event *event)
{
    if (event->pod_name[0]) {
        put_printable(out, event->pod_namespace);
        fputc('/', out);
    }
    put_printable(out, event->pod_name[0] ? event->pod_name : event->pod_uid);
}

static void put_claim(FILE *out, const Control__V1__Event *event)
{
    fputs("claim ", out);
    put_printable(out, event->claim_namespace);
    fputc('/', out);
    put_printable(out, event->claim_name);
}

static void put_cell(struct table *table, void (*put)(FILE *, const Control__V1__Event *),
                     const Control__V1__Event *event)
{
    char *text = NULL;
    size_t len;
    FILE *out = must(open_memstream(&text, &len));

    put(out, event);
    if (fclose(out) != 0)
        abort(); /* out of memory */
    table_put(table, text);
    free(text);
}

static enum table_color color_of(const Control__V1__Event *event)
{
    static const char *const BAD[] = {"lost",     "removed",     "refused",   "withdrawn",
                                      "cordoned", "driver-went", "claim-owed"};

    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        if (strcmp(event->kind, BAD[i]) == 0)
            return TABLE_WARNING;
    }
    return TABLE_PLAIN;
}

static void add_row(struct table *table, const Control__V1__Event *event)
{
    char age[SHOW_AGE_BYTES];

    table_row(table, color_of(event));
    table_put(table, show_age(event->last_ms, age));
    table_put(table, event->times > 1 ? show_age(event->first_ms, age) : "");
    table_put_number(table, event->times);
    table_put(table, event->kind);
    table_put(table, event->resource);
    put_cell(table, put_ids, event);
    put_cell(table, event->claim_uid[0] ? put_claim : put_pod, event);
    table_put(table, event->container);
    table_put(table, event->word);
    table_put(table, event->text);
}

/* A line, of those that come one by one. */
static void put_line(const struct show *show, const Control__V1__Event *event)
{
    char time[ANSWER_TIME_BYTES];

    fprintf(show->out, "%s %-14s", answer_time(event->last_ms, time), event->kind);
    if (event->resource[0]) {
        fputc(' ', show->out);
        put_printable(show->out, event->resource);
    }
    if (event->ids_total > 0) {
        fputs(" [", show->out);
        put_ids(show->out, event);
        fputc(']', show->out);
    }
    if (event->pod_uid[0]) {
        fputc(' ', show->out);
        put_pod(show->out, event);
        if (event->container[0]) { /* else it is about all of the pod */
            fputc('/', show->out);
            put_printable(show->out, event->container);
        }
    }
    if (event->claim_uid[0]) {
        fputc(' ', show->out);
        put_claim(show->out, event);
    }
    if (event->times > 1)
        fprintf(show->out, " x%" PRIu64, event->times);
    if (event->text[0])
        fputs(": ", show->out);
    put_printable(show->out, event->text);
    fputc('\n', show->out);
}

/* ---- as they come ---- */

static void show_event(const struct reading *reading, const Control__V1__Event *event)
{
    const struct show *show = &reading->show;

    if (reading->items) {
        json_value_append(reading->items, answer_event(event));
    } else if (show->format == SHOW_JSON) {
        show_json(show, answer_event(event));
    } else if (show->format == SHOW_NAME) {
        fprintf(show->out, "event/%" PRIu64 "\n", event->id);
    } else if (reading->table) {
        add_row(reading->table, event);
    } else {
        put_line(show, event);
    }
}

/* A whole line, at once. */
static void write_event(struct reading *reading, const Control__V1__Event *event)
{
    char *text = NULL;
    size_t len;

    reading->show.out = must(open_memstream(&text, &len));
    show_event(reading, event);
    if (fclose(reading->show.out) != 0)
        abort(); /* out of memory */
    reading->err = show_write_out(text);
    free(text);
}

/* Who follows has enough when nobody takes what is written, for good or just now. */
static bool on_response(void *user, const ProtobufCMessage *message)
{
    const Control__V1__EventsResponse *response = (const void *)message;
    struct reading *reading = user;

    reading->heard = true;
    reading->full = reading->follows && !show_is_taken(0);
    if (reading->full)
        return false;
    if (response->anew)
        reading->after = 0;
    if (response->missed > 0)
        fprintf(stderr, "warning: %" PRIu64 " events were missed: no more are kept\n",
                response->missed);
    if (response->event) {
        reading->after = response->event->id;
        if (reading->follows)
            write_event(reading, response->event);
        else
            show_event(reading, response->event);
    }
    return reading->err == 0;
}

/* ---- the command ---- */

/* False: an option's value is wrong. */
static bool request_of(const struct command_run *run, Control__V1__EventsRequest *request,
                       struct client_failure *failure)
{
    const char *resource = command_given(run, "resource"), *pod = command_given(run, "pod");
    const char *since = command_given(run, "since");

    control__v1__events_request__init(request);
    if (resource)
        request->resource = (char *)(uintptr_t)resource;
    if (pod)
        request->pod = (char *)(uintptr_t)pod;
    request->follow = command_given(run, "follow") != NULL;
    if (since && (!show_duration_parse(since, &request->since_ms) || request->since_ms == 0))
        return client_fail(failure, RPC_INVALID_ARGUMENT,
                           "--since %.64s is no duration: 90s, 15m, 2h, 1d", since);
    return true;
}

/* Until somebody ends it, or nobody reads it. A daemon that restarts is not the end, one that
 * refuses is. While who reads takes his time, as a pager, nobody answers the daemon's pings: so
 * nothing is asked for meanwhile (client_rest()), and what was not written comes again. */
static bool follow(const struct command_run *run, Control__V1__EventsRequest *request,
                   struct client_failure *failure)
{
    struct reading reading = {.show = run->show, .follows = true};
    uint64_t since_ms = request->since_ms, begun_ms = boot_now_ms();
    bool first = true;

    reading.show.one_line = true;
    while (reading.err == 0 && !show_is_unread()) {
        request->after = reading.after;
        if (since_ms > 0) /* before the command was given, however long ago that is */
            request->since_ms = since_ms + (boot_now_ms() - begun_ms);
        if (client_listen(run->client, CONTROL_EVENTS, &request->base,
                          &control__v1__events_response__descriptor, false, on_response, &reading,
                          failure)) {
            if (reading.full)
                (void)show_is_taken(-1);
            continue;
        }
        if (failure->code != RPC_UNAVAILABLE || (first && !reading.heard))
            return false;
        first = false;
        if (reading.heard)
            fprintf(stderr, "warning: %s\n", failure->words);
        reading.heard = false;
        sleep(AGAIN_S);
    }
    return command_not_written(failure, reading.err ? reading.err : -EPIPE);
}

static bool list(const struct command_run *run, const Control__V1__EventsRequest *request,
                 struct client_failure *failure)
{
    static const struct table_column COLUMNS[] = {
        {.name = "LAST"},
        {.name = "FIRST", .wide = true},
        {.name = "TIMES", .right = true},
        {.name = "EVENT"},
        {.name = "RESOURCE"},
        {.name = "DEVICES"},
        {.name = "POD"},
        {.name = "CONTAINER"},
        {.name = "REASON"},
        {.name = "TEXT", .wide = true},
    };
    struct reading reading = {.show = run->show};
    bool done;

    if (run->show.format == SHOW_JSON)
        reading.items = must(json_array());
    else if (run->show.format != SHOW_NAME)
        reading.table = table_new(&run->show, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    done = client_listen(run->client, CONTROL_EVENTS, &request->base,
                         &control__v1__events_response__descriptor, CLIENT_CALL_MS_MAX, on_response,
                         &reading, failure);
    if (reading.items) {
        json_t *all = must(json_object());

        json_value_set(all, "items", reading.items);
        show_json(&run->show, all);
    }
    if (reading.table)
        table_print(reading.table);
    return done;
}

static bool events_run(const struct command_run *run, struct client_failure *failure)
{
    Control__V1__EventsRequest request;

    if (!request_of(run, &request, failure))
        return false;
    return request.follow ? follow(run, &request, failure) : list(run, &request, failure);
}

const struct command events_command = {
    .name = "events",
    .arguments = "",
    .summary = "what came to pass in the last day: plugins, allocations, refusals, the gate",
    .options = {{"follow", 'f', NULL, "go on with those that come, over restarts of the daemon"},
                {"resource", 'r', "NAME", "only of this resource, or DRA driver"},
                {"pod", 'p', "POD", "only of this pod: its uid, NAMESPACE/NAME or name"},
                {"since", 'S', "DURATION", "only those of the last 90s, 15m, 2h"}},
    .run = events_run,
};
