/*
 * The shim of the world of replaced devices: the core, its ports, and the rows that are durable;
 * and the plugin that it calls.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/answer_options.h"
#include "tests/sim/replace_world.h"
#include "tests/sim/world.h"

#define CALL_MS 60000
#define HOLD_MS 5000
#define GRACE_MS 3600000

/* ---- the store ---- */

bool replace_shim_has_row(const struct replace_world *r, const struct rw_pod *pod, size_t container)
{
    char uid[16], name[8];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    replace_container_name(container, name);
    for (const struct row *row = r->rows; row; row = row->next) {
        if (row->kind == DEVICEMGR_RECORD_ALLOCATION && strcmp(row->key[0], uid) == 0 &&
            strcmp(row->key[1], name) == 0)
            return true;
    }
    return false;
}

static void on_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                      size_t records_len)
{
    struct replace_world *r = user;

    r->commit = commit;
    rows_free(&r->pending);
    for (size_t i = 0; i < records_len; i++) {
        replace_note(r, "commit has %d %s %s%s", (int)records[i].kind, records[i].key[0],
                     records[i].key[1], records[i].value ? "" : ", deleted");
        rows_add(&r->pending, &records[i]);
    }
}

static void end_commit(struct replace_world *r, bool fails)
{
    r->commit = 0;
    if (fails)
        rows_free(&r->pending);
    else
        rows_store(&r->rows, &r->pending);
}

void replace_shim_commit_ends(struct replace_world *r, bool fails)
{
    uint64_t commit = r->commit;

    if (!commit)
        return;
    replace_note(r, "commit ends%s", fails ? ", fails" : "");
    end_commit(r, fails);
    devicemgr_committed(r->core, r->now_ms, commit, fails ? "the disk is full" : NULL);
    replace_shim_run(r);
}

/* ---- the plugin ---- */

const char *replace_id(size_t device)
{
    static const char *const IDS[RW_DEVICES] = {"d0", "d1", "d2", "d3", "d4", "d5"};

    return IDS[device];
}

unsigned replace_named(const char *text)
{
    unsigned set = 0;
    char quoted[8];

    for (size_t i = 0; i < RW_DEVICES; i++) {
        snprintf(quoted, sizeof quoted, "\"%s\"", replace_id(i));
        if (strstr(text, quoted))
            set |= 1u << i;
    }
    return set;
}

bool replace_plugin_serves(const struct replace_world *r)
{
    return r->endpoint && r->has_listed;
}

void replace_plugin_lists(struct replace_world *r)
{
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device devices[RW_DEVICES], *v[RW_DEVICES];

    if (!r->endpoint)
        return;
    for (size_t i = 0; i < RW_DEVICES; i++) {
        V1beta1__Device *to = &devices[message.n_devices];

        if (!(r->listed >> i & 1))
            continue;
        v1beta1__device__init(to);
        to->id = (char *)replace_id(i);
        to->health = (char *)(r->healthy >> i & 1 ? "Healthy" : "Unhealthy");
        v[message.n_devices++] = to;
    }
    message.devices = v;
    r->said = r->listed;
    r->said_healthy = r->listed & r->healthy;
    r->has_listed = true;
    replace_note(r, "the plugin lists %02x, healthy %02x", r->said, r->said_healthy);
    devicemgr_endpoint_list(r->core, r->now_ms, r->endpoint, &message);
    replace_shim_run(r);
}

static void forget_connection(struct replace_world *r)
{
    r->endpoint = 0;
    r->has_listed = false;
    memset(r->calls, 0, sizeof r->calls);
}

void replace_plugin_turns(struct replace_world *r)
{
    uint64_t endpoint = r->endpoint;

    r->up = !r->up;
    replace_note(r, "the plugin %s", r->up ? "is back" : "is lost");
    if (r->up) {
        devicemgr_register(r->core, r->now_ms, ++r->number, "v1beta1", "gpu.sock", 0, RW_RESOURCE);
        replace_shim_run(r);
        return;
    }
    if (!endpoint)
        return;
    forget_connection(r);
    devicemgr_endpoint_lost(r->core, r->now_ms, endpoint, "it has gone");
    replace_shim_run(r);
}

static void connect_plugin(struct replace_world *r)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    uint64_t endpoint = r->dialled;

    r->dialled = 0;
    if (!r->up) {
        devicemgr_endpoint_lost(r->core, r->now_ms, endpoint, "nobody is there");
        replace_shim_run(r);
        return;
    }
    r->endpoint = endpoint;
    devicemgr_endpoint_options(r->core, r->now_ms, endpoint, &options);
    replace_plugin_lists(r);
}

static void answer(struct replace_world *r, size_t slot)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    V1beta1__ContainerAllocateResponse *options = answer_options_new();
    bool fails = !r->calm && rng_percent(&r->rng, 8);
    uint64_t call = r->calls[slot];
    char value[64] = "";

    r->calls[slot] = 0;
    for (size_t i = 0; i < RW_DEVICES; i++) {
        if (r->call_ids[slot] >> i & 1)
            snprintf(value + strlen(value), sizeof value - strlen(value), "\"%s\"", replace_id(i));
    }
    replace_cdi_gives(r, options, value);
    response.container_responses = &options;
    response.n_container_responses = 1;
    replace_note(r, "the plugin gives %s%s", value, fails ? ": it fails" : "");
    devicemgr_allocated(r->core, r->now_ms, call, fails ? 2 : 0, fails ? "it failed" : NULL,
                        fails ? NULL : &response);
    answer_options_free(options);
    replace_shim_run(r);
}

void replace_plugin_proceeds(struct replace_world *r)
{
    if (r->dialled)
        connect_plugin(r);
    else if (r->calm && (!r->up || !r->endpoint)) {
        r->up = false;
        replace_plugin_turns(r);
    }
    for (size_t i = 0; i < RW_CALLS && !*r->w->broken; i++) {
        if (r->calls[i])
            answer(r, i);
    }
}

/* ---- ports ---- */

static void on_endpoint_open(void *user, uint64_t endpoint, const char *resource,
                             const char *socket_name, uint32_t uid)
{
    struct replace_world *r = user;

    (void)resource;
    (void)socket_name;
    (void)uid;
    r->dialled = endpoint;
}

static void on_endpoint_close(void *user, uint64_t endpoint)
{
    struct replace_world *r = user;

    if (r->dialled == endpoint)
        r->dialled = 0;
    if (r->endpoint == endpoint)
        forget_connection(r);
}

static void on_register_done(void *user, uint64_t registration, int code, const char *message)
{
    (void)user;
    (void)registration;
    (void)code;
    (void)message;
}

static void on_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                        size_t ids_len, uint64_t timeout_ms)
{
    struct replace_world *r = user;
    size_t slot = 0;

    (void)timeout_ms;
    check_that(r->w, endpoint == r->endpoint, "only a plugin that is there is called for a device");
    while (slot < RW_CALLS && r->calls[slot])
        slot++;
    if (slot == RW_CALLS)
        abort();
    r->calls[slot] = call;
    r->call_ids[slot] = 0;
    for (size_t i = 0; i < ids_len; i++) {
        char quoted[16];

        snprintf(quoted, sizeof quoted, "\"%s\"", ids[i]);
        r->call_ids[slot] |= replace_named(quoted);
    }
    check_that(r->w, (r->call_ids[slot] & ~r->said_healthy) == 0,
               "a plugin is asked for devices that are there, and well: %02x of %02x",
               r->call_ids[slot], r->said_healthy);
    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; k < RW_CONTAINERS; k++)
            r->pods[i].containers[k].called = true;
    }
}

static void on_call_cancel(void *user, uint64_t call)
{
    struct replace_world *r = user;

    for (size_t i = 0; i < RW_CALLS; i++)
        r->calls[i] = r->calls[i] == call ? 0 : r->calls[i];
}

static void on_check(void *user, uint64_t check, const char *container_id)
{
    replace_check(user, check, container_id);
}

static void on_list(void *user)
{
    struct replace_world *r = user;

    r->list_wanted = true;
}

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    replace_verdict(user, create, verdict);
}

static void on_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    (void)level;
    (void)about;
    replace_note(user, "log: %s", text);
}

static const struct devicemgr_ports PORTS = {.endpoint_open = on_endpoint_open,
                                             .endpoint_close = on_endpoint_close,
                                             .register_done = on_register_done,
                                             .allocate = on_allocate,
                                             .call_cancel = on_call_cancel,
                                             .commit = on_commit,
                                             .container_check = on_check,
                                             .runtime_list = on_list,
                                             .verdict = on_verdict,
                                             .log = on_log};

/* ---- its life ---- */

static struct devicemgr *new_core(struct replace_world *r)
{
    static const char *const namespaces[] = {"*"};
    static const struct devicemgr_resource_settings resource = {.name = RW_RESOURCE,
                                                                .grace_ms = GRACE_MS,
                                                                .hold_ms = HOLD_MS,
                                                                .allocate_timeout_ms = CALL_MS,
                                                                .exclusive = true,
                                                                .replace = true,
                                                                .replace_after_ms = RW_AFTER_MS};
    static const struct devicemgr_settings settings = {.grace_ms = GRACE_MS,
                                                       .hold_ms = HOLD_MS,
                                                       .allocate_timeout_ms = CALL_MS,
                                                       .prestart_timeout_ms = CALL_MS,
                                                       .mask_ms = RW_MASK_MS,
                                                       .kubelet_wait_ms = 10000,
                                                       .annotations = true,
                                                       .namespaces = namespaces,
                                                       .namespaces_len = 1,
                                                       .boot_id = "boot",
                                                       .resources = &resource,
                                                       .resources_len = 1,
                                                       .checked = true};

    return devicemgr_new(&settings, &PORTS, r);
}

void replace_shim_start(struct replace_world *r)
{
    r->listing = false;
    r->started_ms = r->now_ms;
    r->runtime_listed = false;
    r->core = new_core(r);
    replace_cdi_tells(r);
    for (const struct row *row = r->rows; row; row = row->next) {
        const struct devicemgr_record record = row_record(row);

        check_that(r->w, devicemgr_restore(r->core, r->now_ms, &record) == 0,
                   "what was stored of replaced devices is restored");
    }
    if (r->unlisted)
        devicemgr_rows_lost(r->core);
    r->dialled = 0;
    forget_connection(r);
    memset(r->checks, 0, sizeof r->checks);
    replace_pods_shim_started(r);
    devicemgr_restored(r->core, r->now_ms);
    devicemgr_kubelet_listed(r->core, r->now_ms);
    r->list_wanted = true;        /* as a lister that has connected */
    if (rng_percent(&r->rng, 60)) /* else that takes longer */
        replace_kubelet_is_read(r);
    else
        replace_shim_run(r);
    if (r->up && !r->dialled && !r->endpoint) { /* it sees that the socket is another */
        devicemgr_register(r->core, r->now_ms, ++r->number, "v1beta1", "gpu.sock", 0, RW_RESOURCE);
        replace_shim_run(r);
    }
}

/* A commit that was under way was stored, or not. */
void replace_shim_kill(struct replace_world *r, bool lost)
{
    count_add(COUNT_REPLACE_KILLED);
    if (devicemgr_replacing(r->core, RW_RESOURCE))
        count_add(COUNT_REPLACE_KILLED_BETWEEN);
    replace_note(r, "the shim is killed%s", lost ? ", and its checkpoint is lost" : "");
    devicemgr_free(r->core);
    r->core = NULL;
    if (r->commit)
        end_commit(r, rng_percent(&r->rng, 50));
    if (lost) {
        count_add(COUNT_REPLACE_LOST);
        rows_free(&r->rows);
        r->unlisted = true;
        for (size_t i = 0; i < RW_PODS; i++) {
            for (size_t k = 0; k < RW_CONTAINERS; k++)
                r->pods[i].containers[k].lost = true;
        }
    }
    replace_pods_shim_ended(r);
    replace_shim_start(r);
}

void replace_shim_end(struct replace_world *r)
{
    devicemgr_free(r->core);
    rows_free(&r->rows);
    rows_free(&r->pending);
}

void replace_shim_run(struct replace_world *r)
{
    replace_judge_disturbed(r);
    devicemgr_run(r->core);
    replace_judge_disturbed(r);
    replace_kubelet_looks(r);
    if (!*r->w->broken)
        replace_judge(r);
}

void replace_shim_pass(struct replace_world *r, uint64_t ms)
{
    uint64_t end_ms = r->now_ms + ms;

    while (r->now_ms < end_ms && !*r->w->broken) {
        uint64_t next_ms = devicemgr_next_ms(r->core), comes_ms = replace_pods_next_ms(r);

        next_ms = comes_ms < next_ms ? comes_ms : next_ms;
        next_ms = end_ms < next_ms ? end_ms : next_ms;
        r->now_ms = next_ms > r->now_ms ? next_ms : r->now_ms + 1;
        replace_pods_due(r);
        if (devicemgr_next_ms(r->core) <= r->now_ms) {
            devicemgr_tick(r->core, r->now_ms);
            replace_shim_run(r);
        }
    }
}
