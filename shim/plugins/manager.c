#include "shim/plugins/manager.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "devicemgr/store.h"
#include "shim/boot.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/plugins/builtins.h"
#include "shim/plugins/plugin_client.h"
#include "shim/plugins/registrar.h"
#include "shim/plugins/store_worker.h"
#include "shim/rpc/rpc.h"
#include "shim/runtime/lister.h"

/* Before an unreadable checkpoint is tried again. */
#define READ_AGAIN_MS_MIN 250
#define READ_AGAIN_MS_MAX 10000

struct manager {
    uv_loop_t *loop;
    const struct config *config;
    const struct manager_ops *ops;
    void *user;
    struct devicemgr *core;
    char boot_id[BOOT_ID_BYTES_MAX];
    struct registrar *registrar;
    struct plugin_clients *clients;
    struct builtins *builtins;
    struct lister *lister;
    struct store_worker *worker;
    uv_timer_t timer;
    uv_timer_t read_timer;              /* while the checkpoint is not read */
    bool reading;                       /* in the worker */
    bool ready;                         /* it is read, and all parts are there */
    char unread[STORE_ERROR_BYTES_MAX]; /* why it is not, as it was said last */
    uint64_t read_pause_ms;             /* before it is tried again */
    bool delayed;                       /* the owner was told */
    unsigned parts;                     /* still to be stopped */
    void (*done)(void *user);
    void *done_user;
};

uint64_t manager_now_ms(void)
{
    return boot_now_ms();
}

/* ---- the core's turns ---- */

static void on_timer(uv_timer_t *timer)
{
    struct manager *manager = timer->data;

    devicemgr_tick(manager->core, manager_now_ms());
    manager_kick(manager);
}

static void set_timer(struct manager *manager)
{
    uint64_t next_ms = devicemgr_next_ms(manager->core), now_ms;

    if (next_ms == UINT64_MAX) {
        uv_timer_stop(&manager->timer);
        return;
    }
    now_ms = manager_now_ms();
    uv_update_time(manager->timer.loop);
    uv_timer_start(&manager->timer, on_timer, next_ms > now_ms ? next_ms - now_ms : 0, 0);
}

void manager_kick(struct manager *manager)
{
    devicemgr_run(manager->core);
    set_timer(manager);
    if (manager->ops->kicked)
        manager->ops->kicked(manager->user);
}

struct devicemgr *manager_core(struct manager *manager)
{
    return manager->core;
}

bool manager_ready(const struct manager *manager)
{
    return manager->ready;
}

void manager_list_runtime(struct manager *manager)
{
    if (manager->ready)
        lister_refresh(manager->lister);
}

/* ---- events of the world ---- */

static void on_registered(void *user, uint64_t registration, const char *version,
                          const char *socket_name, const char *resource)
{
    struct manager *manager = user;

    devicemgr_register(manager->core, manager_now_ms(), registration, version, socket_name,
                       resource);
    manager_kick(manager);
}

static void on_register_cancelled(void *user, uint64_t registration)
{
    struct manager *manager = user;

    devicemgr_register_cancelled(manager->core, registration);
    manager_kick(manager);
}

static const struct registrar_ops REGISTRAR_OPS = {.registered = on_registered,
                                                   .cancelled = on_register_cancelled};

static void on_options(void *user, uint64_t endpoint, const V1beta1__DevicePluginOptions *options)
{
    struct manager *manager = user;

    devicemgr_endpoint_options(manager->core, manager_now_ms(), endpoint, options);
    manager_kick(manager);
}

static void on_list(void *user, uint64_t endpoint, const V1beta1__ListAndWatchResponse *list)
{
    struct manager *manager = user;

    devicemgr_endpoint_list(manager->core, manager_now_ms(), endpoint, list);
    manager_kick(manager);
}

static void on_lost(void *user, uint64_t endpoint, const char *reason)
{
    struct manager *manager = user;

    devicemgr_endpoint_lost(manager->core, manager_now_ms(), endpoint, reason);
    manager_kick(manager);
}

static void on_allocated(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__AllocateResponse *response)
{
    struct manager *manager = user;

    devicemgr_allocated(manager->core, manager_now_ms(), call, code, message, response);
    manager_kick(manager);
}

static void on_preferred(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__PreferredAllocationResponse *response)
{
    struct manager *manager = user;

    devicemgr_preferred(manager->core, manager_now_ms(), call, code, message, response);
    manager_kick(manager);
}

static void on_prestarted(void *user, uint64_t call, int code, const char *message)
{
    struct manager *manager = user;

    devicemgr_prestarted(manager->core, manager_now_ms(), call, code, message);
    manager_kick(manager);
}

static const struct plugin_clients_ops CLIENTS_OPS = {
    .options = on_options,
    .list = on_list,
    .lost = on_lost,
    .allocated = on_allocated,
    .preferred = on_preferred,
    .prestarted = on_prestarted,
};

static void on_builtins(void *user, const char *resource,
                        const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    struct manager *manager = user;

    devicemgr_builtin(manager->core, manager_now_ms(), resource, devices, devices_len);
    manager_kick(manager);
}

static const struct builtins_ops BUILTINS_OPS = {.changed = on_builtins};

static void on_committed(void *user, uint64_t commit, const char *error)
{
    struct manager *manager = user;

    devicemgr_committed(manager->core, manager_now_ms(), commit, error);
    manager_kick(manager);
}

static void on_store_reset(void *user)
{
    struct manager *manager = user;

    devicemgr_store_reset(manager->core, manager_now_ms());
}

static void on_listing(void *user)
{
    struct manager *manager = user;

    devicemgr_runtime_listing(manager->core);
}

static void on_listed(void *user, const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                      const struct devicemgr_container *containers, size_t containers_len)
{
    struct manager *manager = user;

    devicemgr_runtime_listed(manager->core, manager_now_ms(), sandboxes, sandboxes_len, containers,
                             containers_len);
    manager_kick(manager);
}

static void on_ended(void *user, const char *container_id)
{
    struct manager *manager = user;

    devicemgr_container_removed(manager->core, manager_now_ms(), container_id);
    manager_kick(manager);
}

/* A runtime that does not answer may still run it: no device is taken from a container unseen. */
static void on_checked(void *user, uint64_t check, enum lister_finding finding)
{
    struct manager *manager = user;
    bool known = finding != LISTER_GONE;
    bool running = finding == LISTER_RUNNING || finding == LISTER_UNKNOWN;

    devicemgr_container_checked(manager->core, manager_now_ms(), check, known, running);
    manager_kick(manager);
}

static const struct lister_ops LISTER_OPS = {
    .begins = on_listing, .listed = on_listed, .ended = on_ended, .checked = on_checked};

/* ---- the core's ports ---- */

static void port_endpoint_open(void *user, uint64_t endpoint, const char *resource,
                               const char *socket_name)
{
    struct manager *manager = user;
    uid_t uid = 0;
    bool registering = registrar_peer(manager->registrar, socket_name, &uid);

    (void)resource;
    plugin_clients_open(manager->clients, endpoint, socket_name, uid, registering);
}

static void port_endpoint_close(void *user, uint64_t endpoint)
{
    struct manager *manager = user;

    plugin_clients_close(manager->clients, endpoint);
}

static void port_register_done(void *user, uint64_t registration, int code, const char *message)
{
    struct manager *manager = user;

    registrar_answer(manager->registrar, registration, code, message);
}

static void port_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                          size_t ids_len, uint64_t timeout_ms)
{
    struct manager *manager = user;

    plugin_clients_allocate(manager->clients, endpoint, call, ids, ids_len, timeout_ms);
}

static void port_prefer(void *user, uint64_t endpoint, uint64_t call, const char *const *available,
                        size_t available_len, const char *const *must_include,
                        size_t must_include_len, size_t size, uint64_t timeout_ms)
{
    struct manager *manager = user;

    plugin_clients_prefer(manager->clients, endpoint, call, available, available_len, must_include,
                          must_include_len, size, timeout_ms);
}

static void port_prestart(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                          size_t ids_len, uint64_t timeout_ms)
{
    struct manager *manager = user;

    plugin_clients_prestart(manager->clients, endpoint, call, ids, ids_len, timeout_ms);
}

static void port_call_cancel(void *user, uint64_t call)
{
    struct manager *manager = user;

    plugin_clients_cancel(manager->clients, call);
}

static void port_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                        size_t records_len)
{
    struct manager *manager = user;

    store_worker_commit(manager->worker, commit, records, records_len);
}

static void port_container_check(void *user, uint64_t check, const char *container_id)
{
    struct manager *manager = user;

    lister_check(manager->lister, check, container_id);
}

static void port_runtime_list(void *user)
{
    manager_list_runtime(user);
}

static void port_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct manager *manager = user;

    manager->ops->verdict(manager->user, create, verdict);
}

static void port_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct manager *manager = user;

    if (manager->ops->preferred)
        manager->ops->preferred(manager->user, number, ids, ids_len);
}

static void port_log(void *user, int level, const char *text)
{
    (void)user;
    log_write((enum log_level)level, "%s", text);
}

static const struct devicemgr_ports PORTS = {
    .endpoint_open = port_endpoint_open,
    .endpoint_close = port_endpoint_close,
    .register_done = port_register_done,
    .allocate = port_allocate,
    .prefer = port_prefer,
    .prestart = port_prestart,
    .call_cancel = port_call_cancel,
    .commit = port_commit,
    .container_check = port_container_check,
    .runtime_list = port_runtime_list,
    .verdict = port_verdict,
    .preferred = port_preferred,
    .log = port_log,
};

/* ---- start ---- */

static void on_store_report(void *user, int level, const char *text)
{
    (void)user;
    log_write((enum log_level)level, "%s", text);
}

static enum devicemgr_refresh refresh_of(enum config_refresh refresh)
{
    switch (refresh) {
    case CONFIG_REFRESH_PLUGIN:
        return DEVICEMGR_REFRESH_PLUGIN;
    case CONFIG_REFRESH_NEVER:
        return DEVICEMGR_REFRESH_NEVER;
    default:
        return DEVICEMGR_REFRESH_REBOOT;
    }
}

/* The caller frees the array; its texts are the config's. */
static struct devicemgr_resource_settings *resources_of(const struct config *config)
{
    struct devicemgr_resource_settings *resources =
        must(calloc(config->resources_len + 1, sizeof *resources));

    for (size_t i = 0; i < config->resources_len; i++) {
        const struct config_resource *from = &config->resources[i];

        resources[i] = (struct devicemgr_resource_settings){
            .name = from->name,
            .grace_ms = from->grace_ms,
            .hold_ms = from->hold_ms,
            .allocate_timeout_ms = from->allocate_timeout_ms,
            .refresh = refresh_of(from->refresh_options),
            .exclusive = from->exclusive,
        };
    }
    return resources;
}

static struct devicemgr *core_new(struct manager *manager, const struct config *config)
{
    struct devicemgr_resource_settings *resources = resources_of(config);
    const struct devicemgr_settings settings = {
        .grace_ms = config->grace_ms,
        .hold_ms = config->hold_ms,
        .allocate_timeout_ms = config->allocate_timeout_ms,
        .prestart_timeout_ms = config->prestart_timeout_ms,
        .mask_ms = config->bridge.mask_ms,
        .kubelet_wait_ms = config->kubelet_wait_ms,
        .refresh = refresh_of(config->refresh_options),
        .hide_other_namespaces = config->hide_other_namespaces,
        .annotations = config->annotations_enabled,
        .start_without = config->start_without,
        .namespaces = (const char *const *)config->annotation_namespaces,
        .namespaces_len = config->annotation_namespaces_len,
        .boot_id = manager->boot_id,
        .resources = resources,
        .resources_len = config->resources_len,
    };
    struct devicemgr *core = devicemgr_new(&settings, &PORTS, manager);

    free(resources);
    return core;
}

/* ---- the checkpoint's rows ---- */

static void restore(struct manager *manager, const struct store_worker_rows *rows)
{
    for (size_t i = 0; i < rows->len; i++) {
        const struct devicemgr_record *record = &rows->v[i];

        if (devicemgr_restore(manager->core, manager_now_ms(), record) < 0)
            log_error("checkpoint: a record (%s %s %s) makes no sense; it is left out",
                      record->key[0], record->key[1], record->key[2]);
    }
    if (rows->lost)
        devicemgr_rows_lost(manager->core);
    devicemgr_restored(manager->core, manager_now_ms());
}

static void start_parts(struct manager *manager)
{
    const struct config *config = manager->config;
    uv_loop_t *loop = manager->loop;

    manager->registrar = registrar_start(loop, config->plugin_dir, &REGISTRAR_OPS, manager);
    manager->clients = plugin_clients_new(loop, config->plugin_dir, &CLIENTS_OPS, manager);
    manager->builtins =
        builtins_start(loop, config->devices, config->devices_len, &BUILTINS_OPS, manager);
    manager->lister =
        lister_start(loop, config->runtime_endpoint, &LISTER_PACE, &LISTER_OPS, manager);
    manager->ready = true;
}

static void on_rows(void *user, const struct store_worker_rows *rows)
{
    struct manager *manager = user;

    manager->reading = false;
    uv_timer_stop(&manager->read_timer);
    if (*manager->unread)
        log_info("the checkpoint can be read now");
    if (rows->rebooted)
        log_info("first start after a reboot");
    restore(manager, rows);
    start_parts(manager);
    manager->ops->ready(manager->user);
    manager_kick(manager);
}

static void tell_delayed(struct manager *manager)
{
    if (!manager->delayed && manager->ops->delayed)
        manager->ops->delayed(manager->user);
    manager->delayed = true;
}

static void on_read_timer(uv_timer_t *timer);

static void on_unreadable(void *user, const char *error)
{
    struct manager *manager = user;
    uint64_t pause_ms = 2 * manager->read_pause_ms;

    manager->reading = false;
    if (strcmp(manager->unread, error) != 0)
        log_error("%s; containers with devices are refused until it can be read", error);
    snprintf(manager->unread, sizeof manager->unread, "%s", error);
    devicemgr_rows_unread(manager->core, error);
    if (pause_ms < READ_AGAIN_MS_MIN)
        pause_ms = READ_AGAIN_MS_MIN;
    manager->read_pause_ms = pause_ms < READ_AGAIN_MS_MAX ? pause_ms : READ_AGAIN_MS_MAX;
    uv_timer_start(&manager->read_timer, on_read_timer, manager->read_pause_ms, 0);
    tell_delayed(manager);
}

static const struct store_worker_ops WORKER_OPS = {.read = on_rows,
                                                   .unreadable = on_unreadable,
                                                   .committed = on_committed,
                                                   .reset = on_store_reset};

/* The time for the first attempt is over, or for the next one has come. */
static void on_read_timer(uv_timer_t *timer)
{
    struct manager *manager = timer->data;

    if (manager->reading) {
        tell_delayed(manager);
        return;
    }
    manager->reading = true;
    store_worker_read(manager->worker);
}

struct manager *manager_start(uv_loop_t *loop, const struct config *config,
                              const struct manager_ops *ops, void *user)
{
    struct manager *manager = must(calloc(1, sizeof *manager));
    const struct store_options options = {
        .dir = config->state_dir, .boot_id = manager->boot_id, .report = on_store_report};

    manager->loop = loop;
    manager->config = config;
    manager->ops = ops;
    manager->user = user;
    boot_id_read(manager->boot_id);
    manager->core = core_new(manager, config);
    devicemgr_rows_unread(manager->core, "the checkpoint is being read");
    uv_timer_init(loop, &manager->timer);
    uv_timer_init(loop, &manager->read_timer);
    manager->timer.data = manager->read_timer.data = manager;
    manager->worker = store_worker_new(loop, &options, &WORKER_OPS, manager);
    manager->reading = true;
    store_worker_read(manager->worker);
    uv_timer_start(&manager->read_timer, on_read_timer, MANAGER_READ_MS, 0);
    return manager;
}

/* ---- stop ---- */

static void on_part_stopped(void *user)
{
    struct manager *manager = user;
    void (*done)(void *user) = manager->done;
    void *done_user = manager->done_user;

    if (--manager->parts > 0)
        return;
    devicemgr_free(manager->core);
    free(manager);
    done(done_user);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_stopped(handle->data);
}

static void stop_parts(struct manager *manager)
{
    manager->parts += 3;
    registrar_stop(manager->registrar);
    plugin_clients_stop(manager->clients, on_part_stopped, manager);
    builtins_stop(manager->builtins, on_part_stopped, manager);
    lister_stop(manager->lister, on_part_stopped, manager);
}

void manager_stop(struct manager *manager, void (*done)(void *user), void *user)
{
    manager->done = done;
    manager->done_user = user;
    manager->parts = 3;
    if (manager->ready)
        stop_parts(manager);
    uv_close((uv_handle_t *)&manager->timer, on_timer_closed);
    uv_close((uv_handle_t *)&manager->read_timer, on_timer_closed);
    store_worker_stop(manager->worker, on_part_stopped, manager);
}
