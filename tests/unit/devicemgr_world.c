#include "devicemgr_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/options.h"
#include "devicemgr/things/request.h"
#include "devicemgr/turn/turn.h"

static const char *const KINDS[] = {"resource", "allocation", "pod",      "order", "driver",
                                    "claim",    "ending",     "shutdown", "loss"};

/* ---- lines ---- */

static void line_add(struct world_line **lines, char *text)
{
    struct world_line *line = calloc(1, sizeof *line);

    line->text = text;
    while (*lines)
        lines = &(*lines)->next;
    *lines = line;
}

static char *line_take(struct world_line **lines)
{
    struct world_line *line = *lines;
    char *text;

    if (!line)
        return NULL;
    *lines = line->next;
    text = line->text;
    free(line);
    return text;
}

static void record(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void record(struct world *w, const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    line_add(&w->lines, text);
}

void expect(struct world *w, const char *line)
{
    char *got = line_take(&w->lines);
    size_t len = strlen(line);

    if (!got)
        fail_msg("expected \"%s\", but no port was called", line);
    if (len > 0 && line[len - 1] == '*' && strncmp(got, line, len - 1) == 0)
        len = 0;
    if (len > 0)
        assert_string_equal(got, line);
    free(got);
}

void expect_with(struct world *w, const char *head, ...)
{
    char *got = line_take(&w->lines);
    const char *part;
    va_list parts;

    if (!got)
        fail_msg("expected \"%s...\", but no port was called", head);
    if (strncmp(got, head, strlen(head)) != 0)
        fail_msg("expected \"%s...\", got \"%s\"", head, got);
    va_start(parts, head);
    while ((part = va_arg(parts, const char *))) {
        if (!strstr(got, part))
            fail_msg("\"%s\" is not in \"%s\"", part, got);
    }
    va_end(parts);
    free(got);
}

void expect_nothing(struct world *w)
{
    if (w->lines)
        fail_msg("unexpected: \"%s\"", w->lines->text);
}

void expect_event(struct world *w, const char *line)
{
    char *got = line_take(&w->events);

    if (!got)
        fail_msg("expected \"%s\", but there was no event", line);
    if (strncmp(got, line, strlen(line)) != 0)
        fail_msg("expected \"%s...\", got \"%s\"", line, got);
    free(got);
}

void expect_no_event(struct world *w)
{
    if (w->events)
        fail_msg("unexpected: \"%s\"", w->events->text);
}

void ignore_all(struct world *w)
{
    while (w->lines)
        free(line_take(&w->lines));
    while (w->events)
        free(line_take(&w->events));
}

void forget_logs(struct world *w)
{
    while (w->logs)
        free(line_take(&w->logs));
}

size_t logged(struct world *w, const char *part)
{
    size_t count = 0;

    while (w->logs) {
        char *text = line_take(&w->logs);

        count += strstr(text, part) != NULL;
        free(text);
    }
    return count;
}

/* ---- ports ---- */

static const char *join(const char *const *ids, size_t len)
{
    static char text[4096];
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < len && used < sizeof text - 1; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "", ids[i]);
    return text;
}

static void on_open(void *user, uint64_t endpoint, const char *resource, const char *socket,
                    uint32_t uid)
{
    struct world *w = user;

    w->endpoint = endpoint;
    if (uid)
        record(w, "open %s %s of %u", resource, socket, uid);
    else
        record(w, "open %s %s", resource, socket);
}

static void on_close(void *user, uint64_t endpoint)
{
    (void)endpoint;
    record(user, "close");
}

static void on_register_done(void *user, uint64_t registration, int code, const char *message)
{
    if (code == 0)
        record(user, "registered %" PRIu64, registration);
    else
        record(user, "register %" PRIu64 " refused %d: %s", registration, code, message);
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t len, uint64_t timeout_ms)
{
    struct world *w = user;

    (void)endpoint;
    w->call = call;
    record(w, "allocate %s in %" PRIu64 "ms", join(ids, len), timeout_ms);
}

static void on_prefer(void *user, uint64_t endpoint, uint64_t call, const char *const *available,
                      size_t available_len, const char *const *must, size_t must_len, size_t size,
                      uint64_t timeout_ms)
{
    struct world *w = user;
    char *free_ids = strdup(join(available, available_len));

    (void)endpoint;
    w->call = call;
    record(w, "prefer %zu of %s with %s in %" PRIu64 "ms", size, free_ids,
           must_len ? join(must, must_len) : "none", timeout_ms);
    free(free_ids);
}

static void on_prestart(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t len, uint64_t timeout_ms)
{
    struct world *w = user;

    (void)endpoint;
    w->call = call;
    record(w, "prestart %s in %" PRIu64 "ms", join(ids, len), timeout_ms);
}

static void on_cancel(void *user, uint64_t call)
{
    (void)call;
    record(user, "cancel");
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    struct world *w = user;

    w->check = check;
    record(w, "check %s", container_id);
}

static void on_runtime_list(void *user)
{
    record(user, "list");
}

static void on_stop_container(void *user, uint64_t op, const char *container_id, uint64_t grace_ms)
{
    struct world *w = user;

    w->stop = op;
    record(w, "stop %s in %" PRIu64 "ms", container_id, grace_ms);
}

static void on_stop_cancel(void *user, uint64_t op)
{
    (void)op;
    record(user, "stop no more");
}

static void on_stop_sandbox(void *user, uint64_t op, const char *sandbox_id)
{
    struct world *w = user;

    w->stop = op;
    record(w, "stop sandbox %s", sandbox_id);
}

static void on_evict_pod(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    struct world *w = user;

    w->order = order;
    record(w, "evict %s (%s/%s) in %" PRIu64 "ms%s: %s", eviction->pod_uid, eviction->pod_namespace,
           eviction->pod_name, eviction->own_grace ? 0 : eviction->grace_ms,
           eviction->forced ? " by force" : "", eviction->why);
}

static void on_evict_cancel(void *user, uint64_t order)
{
    (void)order;
    record(user, "evict no more");
}

static void on_verdict(void *user, uint64_t create_number, const struct devicemgr_verdict *verdict)
{
    const V1beta1__ContainerAllocateResponse *o = verdict->options;
    char text[2048] = "";
    size_t n = 0;

    if (verdict->code != 0) {
        assert_null(o);
        record(user, "verdict %" PRIu64 " refused %d: %s", create_number, verdict->code,
               verdict->message);
        return;
    }
    assert_null(verdict->message);
    for (size_t i = 0; i < verdict->renames_len; i++) {
        const struct devicemgr_rename *is = &verdict->renames[i];

        record(user, "rename %s to %s", is->name, is->to_len ? join(is->to, is->to_len) : "none");
    }
    if (!o) {
        struct world *w = user;

        w->passed = create_number;
        if (!w->slow)
            devicemgr_create_answered(w->mgr, w->now_ms, create_number, "k");
        return;
    }
    for (size_t i = 0; i < o->n_envs; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", o->envs[i]->key,
                              o->envs[i]->value);
    for (size_t i = 0; i < o->n_devices; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s<%s:%s", o->devices[i]->container_path,
                              o->devices[i]->host_path, o->devices[i]->permissions);
    for (size_t i = 0; i < o->n_annotations; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", o->annotations[i]->key,
                              o->annotations[i]->value);
    for (size_t i = 0; i < o->n_cdi_devices; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " cdi:%s", o->cdi_devices[i]->name);
    record(user, "verdict %" PRIu64 " forward%s", create_number, text);
}

static void on_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    record(user, "preferred %" PRIu64 ": %s", number, ids_len ? join(ids, ids_len) : "nothing");
}

static void on_event(void *user, const struct devicemgr_event *event)
{
    static const char *const NAMES[] = {
        "registered",      "lost",         "back",         "removed",        "allocated",
        "released",        "taken",        "replaced",     "held-back",      "refused",
        "ending",          "ended",        "spared",       "shutdown",       "driver-came",
        "driver-went",     "driver-moved", "slices-wiped", "claim-prepared", "claim-owed",
        "claim-unprepared"};
    struct world *w = user;
    char *text;

    assert_int_equal(sizeof NAMES / sizeof *NAMES, DEVICEMGR_EVENT_KINDS);
    assert_true(event->ids_len <= event->ids_total);
    if (asprintf(&text, "%s%s %s [%s] %s/%s/%s %s: %s", event->again ? "again " : "",
                 NAMES[event->kind], event->resource ? event->resource : "-",
                 join(event->ids, event->ids_len),
                 event->pod_namespace ? event->pod_namespace : "-",
                 event->pod_name ? event->pod_name : "-", event->container ? event->container : "-",
                 event->claim_name ? event->claim_name
                 : event->word     ? event->word
                                   : "-",
                 event->text ? event->text : "-") < 0)
        abort();
    line_add(&w->events, text);
}

static const char *or_none(const char *text)
{
    return text ? text : "-";
}

static void on_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    if (steered->code == 0)
        record(user, "steered %" PRIu64 "%s: %s", number, steered->changed ? "" : " as before",
               steered->message);
    else
        record(user, "steer %" PRIu64 " refused %d: %s", number, steered->code, steered->message);
}

static void on_driver_registered(void *user, uint64_t instance, int code, const char *message)
{
    if (code == 0)
        record(user, "driver %" PRIu64 " registered", instance);
    else
        record(user, "driver %" PRIu64 " refused %d: %s", instance, code, message);
}

static void on_driver_call(struct world *w, const char *what, uint64_t instance, uint64_t call,
                           const struct devicemgr_claim *claim, uint64_t timeout_ms)
{
    w->call = call;
    w->instance = instance;
    record(w, "%s %s (%s/%s) at %" PRIu64 " in %" PRIu64 "ms", what, claim->uid,
           claim->pod_namespace, claim->name, instance, timeout_ms);
}

static void record_batch(struct world *w, struct devicemgr_batch batch)
{
    if (batch.number != 0)
        record(w, "place %zu of batch %" PRIu64, batch.place, batch.number);
}

static void on_driver_prepare(void *user, uint64_t instance, uint64_t call,
                              struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                              uint64_t timeout_ms)
{
    on_driver_call(user, "prepare", instance, call, claim, timeout_ms);
    record_batch(user, batch);
}

static void on_driver_unprepare(void *user, uint64_t instance, uint64_t call,
                                struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                                uint64_t timeout_ms)
{
    on_driver_call(user, "unprepare", instance, call, claim, timeout_ms);
    record_batch(user, batch);
}

static void on_driver_settle(void *user, uint64_t instance, uint64_t call,
                             const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms)
{
    on_driver_call(user, asked ? "settle asked" : "settle", instance, call, claim, timeout_ms);
}

const char *world_response(const void *response, size_t bytes)
{
    static char text[1024];
    Dra__V1__NodePrepareResourceResponse *message =
        dra__v1__node_prepare_resource_response__unpack(NULL, bytes, response);
    size_t n = 0;

    assert_non_null(message);
    text[0] = '\0';
    for (size_t i = 0; i < message->n_devices; i++) {
        const Dra__V1__Device *is = message->devices[i];
        bool plain = strcmp(is->pool_name, "p") == 0;

        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s%s", i ? " " : "",
                              plain ? "" : is->pool_name, plain ? "" : "/", is->device_name);
    }
    dra__v1__node_prepare_resource_response__free_unpacked(message, NULL);
    return text;
}

static void on_claim_look(void *user, const struct devicemgr_claim *claim)
{
    struct world *w = user;

    if (w->looks)
        record(w, "look %s (%s/%s)", claim->uid, claim->pod_namespace, claim->name);
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    if (done->code != 0)
        record(user, "claim %" PRIu64 " refused %d: %s", number, done->code, done->message);
    else
        record(user, "claim %" PRIu64 " done%s%s", number, done->response ? ": " : "",
               done->response ? world_response(done->response, done->response_bytes) : "");
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    struct world *w = user;

    (void)level;
    snprintf(w->about, sizeof w->about, "%s %s/%s %s", or_none(about->resource),
             or_none(about->pod_namespace), or_none(about->pod_name), or_none(about->container));
    if (getenv("WORLD_LOG"))
        fprintf(stderr, "<%d>%s\n", level, text);
    line_add(&w->logs, strdup(text));
}

/* ---- disk ---- */

static void row_free(struct world_row *row)
{
    for (size_t i = 0; i < 3; i++)
        free((char *)row->record.key[i]);
    free((void *)row->record.value);
    free(row);
}

static void rows_free(struct world_row **rows)
{
    while (*rows) {
        struct world_row *row = *rows;

        *rows = row->next;
        row_free(row);
    }
}

static struct world_row *row_new(const struct devicemgr_record *from)
{
    struct world_row *row = calloc(1, sizeof *row);

    row->record = *from;
    for (size_t i = 0; i < 3; i++)
        row->record.key[i] = strdup(from->key[i]);
    if (from->value) {
        row->record.value = calloc(1, from->value_bytes + 1);
        memcpy((void *)row->record.value, from->value, from->value_bytes);
    }
    return row;
}

static bool same_key(const struct devicemgr_record *a, const struct devicemgr_record *b)
{
    return a->kind == b->kind && strcmp(a->key[0], b->key[0]) == 0 &&
           strcmp(a->key[1], b->key[1]) == 0 && strcmp(a->key[2], b->key[2]) == 0;
}

/* Takes the row. */
static void disk_put(struct world *w, struct world_row *row)
{
    struct world_row **at = &w->disk;

    while (*at && !same_key(&(*at)->record, &row->record))
        at = &(*at)->next;
    if (*at) {
        struct world_row *old = *at;

        *at = old->next;
        row_free(old);
    }
    if (!row->record.value) {
        row_free(row);
        return;
    }
    row->next = w->disk;
    w->disk = row;
}

void world_store(struct world *w, enum devicemgr_record_kind kind, const char *k0, const char *k1,
                 const char *k2, const void *value, size_t bytes)
{
    struct devicemgr_record from = {kind, {k0, k1, k2}, value, bytes};

    disk_put(w, row_new(&from));
}

static const char *row_name(const struct devicemgr_record *row)
{
    static char text[1024];

    snprintf(text, sizeof text, "%s %s%s%s%s%s", KINDS[row->kind], row->key[0],
             row->key[1][0] ? " " : "", row->key[1], row->key[2][0] ? " " : "", row->key[2]);
    return text;
}

bool world_stored(const struct world *w, const char *kind_and_key)
{
    for (const struct world_row *row = w->disk; row; row = row->next) {
        if (strcmp(row_name(&row->record), kind_and_key) == 0)
            return true;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct world *w = user;
    char **names = calloc(records_len + 1, sizeof *names);
    char text[4096] = "commit";
    size_t n = strlen(text);

    assert_null(w->pending); /* one at a time */
    w->commit = commit;
    w->commits++;
    for (size_t i = 0; i < records_len; i++) {
        struct world_row *row = row_new(&records[i]);

        row->next = w->pending;
        w->pending = row;
        if (asprintf(&names[i], "%s%s", records[i].value ? "" : "-", row_name(&records[i])) < 0)
            abort();
    }
    qsort(names, records_len, sizeof *names, by_name);
    for (size_t i = 0; i < records_len; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : " ", names[i]);
        free(names[i]);
    }
    free(names);
    record(w, "%s", text);
}

void committed(struct world *w)
{
    struct world_row *row = w->pending;

    w->pending = NULL;
    while (row) {
        struct world_row *next = row->next;

        row->next = NULL;
        disk_put(w, row);
        row = next;
    }
    devicemgr_committed(w->mgr, w->now_ms, w->commit, NULL);
    devicemgr_run(w->mgr);
}

void expect_stored(struct world *w, const char *line)
{
    expect(w, line);
    committed(w);
}

void commit_failed(struct world *w, const char *error)
{
    rows_free(&w->pending);
    devicemgr_committed(w->mgr, w->now_ms, w->commit, error);
    devicemgr_run(w->mgr);
}

/* ---- world ---- */

static const struct devicemgr_ports PORTS = {
    .endpoint_open = on_open,
    .endpoint_close = on_close,
    .register_done = on_register_done,
    .allocate = on_allocate,
    .prefer = on_prefer,
    .prestart = on_prestart,
    .call_cancel = on_cancel,
    .commit = on_commit,
    .container_check = on_check,
    .runtime_list = on_runtime_list,
    .stop_container = on_stop_container,
    .stop_cancel = on_stop_cancel,
    .stop_sandbox = on_stop_sandbox,
    .evict_pod = on_evict_pod,
    .evict_cancel = on_evict_cancel,
    .verdict = on_verdict,
    .preferred = on_preferred,
    .event = on_event,
    .steered = on_steered,
    .driver_registered = on_driver_registered,
    .driver_prepare = on_driver_prepare,
    .driver_unprepare = on_driver_unprepare,
    .driver_settle = on_driver_settle,
    .claim_look = on_claim_look,
    .claim_done = on_claim_done,
    .log = on_log,
};

void world_fresh(struct world *w)
{
    devicemgr_free(w->mgr);
    rows_free(&w->disk);
    rows_free(&w->pending);
    ignore_all(w);
    forget_logs(w);
    w->mgr = devicemgr_new(&w->settings, &PORTS, w);
}

struct devicemgr_resource_settings world_settings_of(const char *resource)
{
    return (struct devicemgr_resource_settings){.name = resource,
                                                .grace_ms = GRACE_MS,
                                                .hold_ms = HOLD_MS,
                                                .allocate_timeout_ms = ALLOCATE_TIMEOUT_MS,
                                                .exclusive = true};
}

void world_fresh_listed(struct world *w)
{
    world_fresh(w);
    runtime_listed(w, "");
    forget_logs(w);
}

void world_fresh_with(struct world *w, const struct devicemgr_resource_settings *own)
{
    w->own = *own;
    w->settings.resources = &w->own;
    w->settings.resources_len = 1;
    world_fresh_listed(w);
}

void world_reborn(struct world *w)
{
    devicemgr_free(w->mgr);
    rows_free(&w->pending);
    ignore_all(w);
    w->mgr = devicemgr_new(&w->settings, &PORTS, w);
}

void world_restored(struct world *w)
{
    for (struct world_row *row = w->disk; row; row = row->next)
        assert_int_equal(devicemgr_restore(w->mgr, w->now_ms, &row->record), 0);
    devicemgr_restored(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

void world_restart(struct world *w)
{
    world_reborn(w);
    world_restored(w);
}

int world_setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->now_ms = 1000000;
    w->deadline_ms = UINT64_MAX;
    w->settings = (struct devicemgr_settings){
        .grace_ms = GRACE_MS,
        .hold_ms = HOLD_MS,
        .allocate_timeout_ms = ALLOCATE_TIMEOUT_MS,
        .prestart_timeout_ms = PRESTART_TIMEOUT_MS,
        .claim_call_ms = CLAIM_CALL_MS,
        .boot_id = "boot-1",
    };
    world_fresh_listed(w);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;

    devicemgr_free(w->mgr);
    rows_free(&w->disk);
    rows_free(&w->pending);
    ignore_all(w);
    forget_logs(w);
    free(w);
    return 0;
}

void pass(struct world *w, uint64_t ms)
{
    uint64_t end_ms = w->now_ms + ms;
    uint64_t next_ms;

    while ((next_ms = devicemgr_next_ms(w->mgr)) <= end_ms) {
        if (next_ms > w->now_ms)
            w->now_ms = next_ms;
        devicemgr_tick(w->mgr, w->now_ms);
        devicemgr_run(w->mgr);
        assert_true(devicemgr_next_ms(w->mgr) > w->now_ms); /* a due tick leaves nothing due */
    }
    w->now_ms = end_ms;
    devicemgr_tick(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

/* ---- plugins ---- */

void plugin_register(struct world *w, uint64_t registration, const char *resource,
                     const char *socket)
{
    devicemgr_register(w->mgr, w->now_ms, registration, "v1beta1", socket, w->uid, resource);
    devicemgr_run(w->mgr);
}

void plugin_options(struct world *w, uint64_t endpoint, bool pre_start, bool wants_preferred)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    options.pre_start_required = pre_start;
    options.get_preferred_allocation_available = wants_preferred;
    devicemgr_endpoint_options(w->mgr, w->now_ms, endpoint, &options);
    devicemgr_run(w->mgr);
}

static V1beta1__Device *device_new(char *word)
{
    V1beta1__Device *device = calloc(1, sizeof *device);
    char *at = strchr(word, '@'), *bang = strchr(word, '!');

    v1beta1__device__init(device);
    if (at) {
        device->topology = calloc(1, sizeof *device->topology);
        v1beta1__topology_info__init(device->topology);
        device->topology->nodes = calloc(strlen(at), sizeof *device->topology->nodes);
        for (char *node = at; node; node = strchr(node + 1, '@')) {
            V1beta1__NUMANode *one = calloc(1, sizeof *one);

            v1beta1__numanode__init(one);
            one->id = atoi(node + 1);
            device->topology->nodes[device->topology->n_nodes++] = one;
        }
        *at = '\0';
    }
    if (bang)
        *bang = '\0';
    device->id = strdup(word);
    device->health = strdup(bang ? "Unhealthy" : "Healthy");
    return device;
}

void plugin_list(struct world *w, uint64_t endpoint, const char *devices)
{
    V1beta1__ListAndWatchResponse *list = calloc(1, sizeof *list);
    char *words = strdup(devices), *rest = NULL;

    v1beta1__list_and_watch_response__init(list);
    list->devices = calloc(strlen(devices) + 1, sizeof *list->devices);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        list->devices[list->n_devices++] = device_new(word);
    devicemgr_endpoint_list(w->mgr, w->now_ms, endpoint, list);
    v1beta1__list_and_watch_response__free_unpacked(list, NULL);
    free(words);
    devicemgr_run(w->mgr);
}

void plugin_lost(struct world *w, uint64_t endpoint, const char *reason)
{
    devicemgr_endpoint_lost(w->mgr, w->now_ms, endpoint, reason);
    devicemgr_run(w->mgr);
}

void plugin_stop_stored(struct world *w, const char *resource)
{
    char line[128];

    snprintf(line, sizeof line, "commit resource %s", resource);
    pass(w, STOP_STORE_MS);
    expect(w, line);
    committed(w);
    expect_nothing(w);
}

uint64_t plugin_up(struct world *w, const char *resource, const char *socket, const char *devices,
                   bool pre_start, bool wants_preferred)
{
    plugin_register(w, 1, resource, socket);
    plugin_options(w, w->endpoint, pre_start, wants_preferred);
    plugin_list(w, w->endpoint, devices);
    if (w->pending)
        committed(w);
    ignore_all(w);
    return w->endpoint;
}

uint64_t gpus_up(struct world *w, const char *devices)
{
    return plugin_up(w, GPU, "gpu.sock", devices, false, false);
}

uint64_t nics_up(struct world *w, const char *devices)
{
    return plugin_up(w, NIC, "nic.sock", devices, false, false);
}

void plugin_back(struct world *w, const char *devices)
{
    plugin_options(w, w->endpoint, false, false);
    plugin_list(w, w->endpoint, devices);
}

static void cdi_add(V1beta1__ContainerAllocateResponse *options, const char *name)
{
    size_t n = options->n_cdi_devices++;

    options->cdi_devices = realloc(options->cdi_devices, (n + 1) * sizeof *options->cdi_devices);
    options->cdi_devices[n] = calloc(1, sizeof **options->cdi_devices);
    v1beta1__cdidevice__init(options->cdi_devices[n]);
    options->cdi_devices[n]->name = strdup(name);
}

static void option_add(V1beta1__ContainerAllocateResponse *options, char *word)
{
    char *equals = strchr(word, '=');

    if (equals)
        *equals = '\0';
    if (strncmp(word, "note:", 5) == 0) {
        options_add_annotation(options, word + 5, equals + 1);
    } else if (strncmp(word, "cdi:", 4) == 0) {
        cdi_add(options, word + 4);
    } else if (word[0] == '/') {
        options_add_device(options, word, equals ? equals + 1 : word, "rw");
    } else {
        size_t n = options->n_envs++;

        options->envs = realloc(options->envs, (n + 1) * sizeof *options->envs);
        options->envs[n] = calloc(1, sizeof **options->envs);
        v1beta1__container_allocate_response__envs_entry__init(options->envs[n]);
        options->envs[n]->key = strdup(word);
        options->envs[n]->value = strdup(equals + 1);
    }
}

void allocated(struct world *w, const char *text)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options[] = {options_new(), options_new()};
    char *words = strdup(text), *rest = NULL;

    response.n_container_responses = 1;
    response.container_responses = options;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "|") == 0)
            response.n_container_responses = 2;
        else
            option_add(options[response.n_container_responses - 1], word);
    }
    devicemgr_allocated(w->mgr, w->now_ms, w->call, 0, NULL, &response);
    options_free(options[0]);
    options_free(options[1]);
    free(words);
    devicemgr_run(w->mgr);
}

void allocated_stored(struct world *w, const char *options)
{
    allocated(w, options);
    expect(w, "commit *");
    committed(w);
}

void allocate_failed(struct world *w, int code, const char *message)
{
    devicemgr_allocated(w->mgr, w->now_ms, w->call, code, message, NULL);
    devicemgr_run(w->mgr);
}

void preferred(struct world *w, const char *ids)
{
    V1beta1__PreferredAllocationResponse response = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse one =
        V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
    V1beta1__ContainerPreferredAllocationResponse more = one, *list[] = {&one, &more};
    char *words = strdup(ids), *bar = strchr(words, '|'), *rest = NULL;

    response.container_responses = list;
    response.n_container_responses = bar ? 2 : 1;
    if (bar)
        *bar++ = '\0';
    more.deviceids = &bar;
    more.n_deviceids = bar ? 1 : 0;
    one.deviceids = calloc(strlen(ids) + 1, sizeof *one.deviceids);
    for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        one.deviceids[one.n_deviceids++] = word;
    devicemgr_preferred(w->mgr, w->now_ms, w->call, 0, NULL, &response);
    free(one.deviceids);
    free(words);
    devicemgr_run(w->mgr);
}

void prestarted(struct world *w, int code, const char *message)
{
    devicemgr_prestarted(w->mgr, w->now_ms, w->call, code, message);
    devicemgr_run(w->mgr);
}

/* ---- pods and containers ---- */

static struct devicemgr_sandbox sandbox_of(const char *uid, const char *id, uint32_t attempt)
{
    return (struct devicemgr_sandbox){.id = id,
                                      .pod_uid = uid,
                                      .pod_namespace = "ns",
                                      .pod_name = uid,
                                      .attempt = attempt,
                                      .ready = true};
}

void sandbox_ran(struct world *w, const char *uid, const char *id, uint32_t attempt)
{
    const struct devicemgr_annotation tolerations = {REQUEST_KEY_PREFIX "tolerations",
                                                     w->tolerations};
    struct devicemgr_sandbox sandbox = sandbox_of(uid, id, attempt);

    sandbox.annotations = &tolerations;
    sandbox.annotations_len = w->tolerations ? 1 : 0;
    devicemgr_sandbox_ran(w->mgr, w->now_ms, &sandbox);
    devicemgr_run(w->mgr);
}

void sandbox_stopping(struct world *w, const char *id)
{
    devicemgr_sandbox_stopping(w->mgr, w->now_ms, id);
    devicemgr_run(w->mgr);
}

void sandbox_stopped(struct world *w, const char *id)
{
    devicemgr_sandbox_stopped(w->mgr, w->now_ms, id);
    devicemgr_run(w->mgr);
}

void sandbox_removed(struct world *w, const char *id)
{
    devicemgr_sandbox_removed(w->mgr, w->now_ms, id);
    devicemgr_run(w->mgr);
}

void container_checked(struct world *w, bool running)
{
    devicemgr_container_checked(w->mgr, w->now_ms, w->check,
                                running ? DEVICEMGR_RUNS : DEVICEMGR_GONE);
    devicemgr_run(w->mgr);
}

void container_removed(struct world *w, const char *id)
{
    devicemgr_container_removed(w->mgr, w->now_ms, id);
    devicemgr_run(w->mgr);
}

/* "vendor.com/gpu:g0,g1 ..." as token annotations, for which there is to be room, to be freed by
 * tokens_free(). */
static size_t tokens_parse(const char *text, struct devicemgr_annotation *out, size_t room)
{
    char *words = strdup(text ? text : ""), *rest = NULL, *more = NULL;
    size_t len = 0;

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *colon = strchr(word, ':');
        struct ids ids = {0};

        assert_true(len < room);
        *colon = '\0';
        for (char *id = strtok_r(colon + 1, ",", &more); id; id = strtok_r(NULL, ",", &more))
            ids_add(&ids, id);
        out[len].key = request_token_key(word);
        out[len++].value = request_token_value(word, &ids);
        ids_fini(&ids);
    }
    free(words);
    return len;
}

static void tokens_free(struct devicemgr_annotation *tokens, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        free((char *)tokens[i].key);
        free((char *)tokens[i].value);
    }
}

bool create_in(struct world *w, uint64_t number, const char *sandbox, const char *uid,
               const char *container, const char *tokens, const char *text)
{
    struct devicemgr_annotation notes[8];
    struct devicemgr_annotation asked[2];
    char key[128];
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .sandbox_attempt = w->sandbox_attempt,
                                       .pod_uid = uid,
                                       .pod_namespace = w->pod_namespace ? w->pod_namespace : "ns",
                                       .pod_name = uid,
                                       .container = container,
                                       .deadline_ms = w->deadline_ms,
                                       .container_annotations = notes,
                                       .pod_annotations = asked};
    bool decided;

    snprintf(key, sizeof key, REQUEST_KEY_PREFIX "%s", container);
    request.container_annotations_len = tokens_parse(tokens, notes, sizeof notes / sizeof *notes);
    if (text)
        asked[request.pod_annotations_len++] = (struct devicemgr_annotation){key, text};
    if (w->tolerations)
        asked[request.pod_annotations_len++] =
            (struct devicemgr_annotation){REQUEST_KEY_PREFIX "tolerations", w->tolerations};
    decided = devicemgr_create(w->mgr, w->now_ms, number, &request);
    tokens_free(notes, request.container_annotations_len);
    devicemgr_run(w->mgr);
    return decided;
}

bool create_claimed(struct world *w, uint64_t number, const struct devicemgr_create *request)
{
    bool decided = devicemgr_create(w->mgr, w->now_ms, number, request);
    const struct create *create;

    w->passed = 0;
    devicemgr_run(w->mgr);
    create = creates_find(&w->mgr->creates, number);
    return decided && w->passed != number && !(create && create->state == CREATE_COMMITTING);
}

bool create(struct world *w, uint64_t number, const char *uid, const char *container,
            const char *tokens, const char *text)
{
    char sandbox[128];

    snprintf(sandbox, sizeof sandbox, "s-%s", uid);
    return create_in(w, number, sandbox, uid, container, tokens, text);
}

void create_token(struct world *w, uint64_t number, const char *uid, const char *tokens)
{
    assert_true(create(w, number, uid, "main", tokens, NULL));
}

void create_request(struct world *w, uint64_t number, const char *uid, const char *container,
                    const char *request)
{
    assert_true(create(w, number, uid, container, NULL, request));
}

void create_answered(struct world *w, uint64_t number, const char *container_id)
{
    devicemgr_create_answered(w->mgr, w->now_ms, number, container_id);
    devicemgr_run(w->mgr);
}

void create_cancelled(struct world *w, uint64_t number)
{
    devicemgr_create_cancelled(w->mgr, w->now_ms, number);
    devicemgr_run(w->mgr);
}

void container_forwarded(struct world *w, uint64_t number, const char *uid, const char *container,
                         const char *tokens)
{
    assert_true(create(w, number, uid, container, tokens, NULL));
    expect(w, "allocate *");
    allocated_stored(w, "MADE=1");
    expect(w, "verdict *");
}

static void container_answered(struct world *w, uint64_t number, const char *uid,
                               const char *container)
{
    char id[256];

    snprintf(id, sizeof id, "c-%s-%s", uid, container);
    create_answered(w, number, id);
    expect_nothing(w);
}

void container_made(struct world *w, uint64_t number, const char *uid, const char *container,
                    const char *tokens)
{
    container_forwarded(w, number, uid, container, tokens);
    container_answered(w, number, uid, container);
}

uint64_t u1_has_g0(struct world *w, const char *devices)
{
    uint64_t endpoint = gpus_up(w, devices);

    container_made(w, 11, "u1", "main", GPU ":g0");
    return endpoint;
}

void container_allocated(struct world *w, uint64_t number, const char *uid, const char *container,
                         const char *ids)
{
    char line[256];

    snprintf(line, sizeof line, "allocate %s in *", ids);
    expect(w, line);
    allocated_stored(w, "MADE=1");
    expect(w, "verdict *");
    container_answered(w, number, uid, container);
}

void container_chosen(struct world *w, uint64_t number, const char *uid, const char *container,
                      const char *request, const char *ids)
{
    create_request(w, number, uid, container, request);
    container_allocated(w, number, uid, container, ids);
}

/* ---- the kubelet ---- */

void kubelet_holds_read(struct world *w, uint64_t read_ms, const char *text)
{
    struct devicemgr_kubelet_held held[8];
    const char *ids[64];
    int64_t numbers[64];
    const int64_t *nodes[64];
    size_t nodes_len[64];
    size_t held_len = 0, ids_len = 0;
    char *words = strdup(text), *rest = NULL, *more = NULL;

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '='), *colon = strchr(word, ':');
        struct devicemgr_kubelet_held *one = &held[held_len];
        char *slash;

        assert_true(held_len < sizeof held / sizeof *held);
        held_len++;
        *equals = *colon = '\0';
        slash = strchr(word, '/');
        if (slash)
            *slash = '\0';
        *one = (struct devicemgr_kubelet_held){word,
                                               slash ? slash + 1 : "main",
                                               equals + 1,
                                               &ids[ids_len],
                                               0,
                                               &nodes[ids_len],
                                               &nodes_len[ids_len]};
        for (char *id = strtok_r(colon + 1, ",", &more); id; id = strtok_r(NULL, ",", &more)) {
            char *node = strchr(id, '@');

            assert_true(ids_len < sizeof ids / sizeof *ids);
            nodes[ids_len] = &numbers[ids_len];
            nodes_len[ids_len] = node ? 1 : 0;
            numbers[ids_len] = node ? atoi(node + 1) : 0;
            if (node)
                *node = '\0';
            ids[ids_len++] = id;
            one->ids_len++;
        }
    }
    devicemgr_kubelet_holds(w->mgr, w->now_ms, read_ms, held, held_len);
    free(words);
    devicemgr_run(w->mgr);
}

void kubelet_holds(struct world *w, const char *text)
{
    kubelet_holds_read(w, w->now_ms, text);
}

void kubelet_lists(struct world *w)
{
    devicemgr_kubelet_listed(w->mgr, w->now_ms);
    devicemgr_run(w->mgr);
}

#define LISTED_MAX 16

static const char *keep(char *words[], size_t *len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static const char *keep(char *words[], size_t *len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (vasprintf(&words[*len], format, args) < 0)
        abort();
    va_end(args);
    return words[(*len)++];
}

void runtime_listed(struct world *w, const char *list)
{
    struct devicemgr_sandbox sandboxes[LISTED_MAX];
    struct devicemgr_container containers[LISTED_MAX];
    struct devicemgr_annotation notes[LISTED_MAX];
    const struct devicemgr_annotation tolerations = {REQUEST_KEY_PREFIX "tolerations",
                                                     w->tolerations};
    size_t notes_len = 0, sandboxes_len = 0, containers_len = 0, kept_len = 0;
    char *kept[4 * LISTED_MAX], *words = strdup(list), *rest = NULL;

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *token = strchr(word, '='), *slash = strchr(word, '/'), *bang;
        struct devicemgr_container *container = &containers[containers_len];
        bool dead = word[0] == '~';

        assert_true(sandboxes_len < LISTED_MAX); /* and so are the containers */
        word += dead;
        if (token)
            *token++ = '\0';
        bang = strchr(word, '!');
        if (bang)
            *bang = '\0';
        if (slash && (!token || slash < token))
            *slash = '\0';
        sandboxes[sandboxes_len] = sandbox_of(word, keep(kept, &kept_len, "s-%s", word), 0);
        sandboxes[sandboxes_len].annotations = &tolerations;
        sandboxes[sandboxes_len].annotations_len = w->tolerations ? 1 : 0;
        sandboxes[sandboxes_len++].ready = !dead;
        if (!slash)
            continue;
        *container =
            (struct devicemgr_container){.id = keep(kept, &kept_len, "c-%s-%s", word, slash + 1),
                                         .sandbox_id = keep(kept, &kept_len, "s-%s", word),
                                         .name = slash + 1,
                                         .running = !bang,
                                         .annotations = &notes[notes_len]};
        container->annotations_len = tokens_parse(token, &notes[notes_len], LISTED_MAX - notes_len);
        notes_len += container->annotations_len;
        containers_len++;
    }
    devicemgr_runtime_listed(w->mgr, w->now_ms, sandboxes, sandboxes_len, containers,
                             containers_len);
    tokens_free(notes, notes_len);
    while (kept_len > 0)
        free(kept[--kept_len]);
    free(words);
    devicemgr_run(w->mgr);
}

/* ---- one pod that runs ---- */

int u1_runs_setup(void **state)
{
    struct world *w;

    world_setup(state);
    w = *state;
    gpus_up(w, "g0 g1");
    sandbox_ran(w, "u1", "s-u1", 0);
    container_made(w, 1, "u1", "main", GPU ":g0");
    forget_logs(w);
    return 0;
}

void restart_serving(struct world *w)
{
    world_restart(w);
    plugin_back(w, "g0 g1");
    ignore_all(w);
}
