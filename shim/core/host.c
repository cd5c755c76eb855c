#include "shim/core/host_state.h"
#include "shim/core/lifted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "devicemgr/lists.h"
#include "shim/boot_clock.h"
#include "shim/core/core_settings.h"
#include "shim/core/events.h"
#include "shim/core/ports.h"
#include "shim/deaths.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/path.h"

/* ---- the core's turns ---- */

static void on_timer(uv_timer_t *timer)
{
    struct host *host = timer->data;

    devicemgr_tick(host->core, boot_now_ms());
    host_kick(host);
}

static void set_timer(struct host *host)
{
    uint64_t next_ms = devicemgr_next_ms(host->core);

    if (next_ms == UINT64_MAX) {
        uv_timer_stop(&host->timer);
        return;
    }
    uv_update_time(host->loop);
    uv_timer_start(&host->timer, on_timer, boot_left_ms(next_ms), 0);
}

void host_kick(struct host *host)
{
    if (host->running)
        return;
    host->running = true;
    devicemgr_run(host->core);
    host->running = false;
    if (host->drivers)
        drivers_send(host->drivers);
    if (registered_mark_is_set(&host->registered_mark) && host->ready &&
        !devicemgr_registrations_unstored(host->core))
        registered_mark_clear(&host->registered_mark);
    set_timer(host);
    if (host->drivers)
        drivers_look(host->drivers);
    if (host->ops->kicked)
        host->ops->kicked(host->user);
}

struct devicemgr *host_core(struct host *host)
{
    return host->core;
}

void host_settings_changed(struct host *host)
{
    struct devicemgr_settings settings;

    core_settings_init(&settings, host->config, host->boot_id);
    devicemgr_set_settings(host->core, boot_now_ms(), &settings);
    core_settings_fini(&settings);
    host_kick(host);
}

const struct host_counts *host_counts(const struct host *host)
{
    return &host->counts;
}

bool host_ready(const struct host *host)
{
    return host->ready;
}

void host_list_runtime(struct host *host)
{
    if (host->ready)
        lister_refresh(host->lister);
}

/* ---- what becomes of it ---- */

void host_look_at_runtime(const struct host *host, struct lister_state *out)
{
    *out = (struct lister_state){0};
    if (host->ready)
        lister_look(host->lister, out);
}

enum devicemgr_cdi host_runtime_cdi(const struct host *host)
{
    return host->runtime_cdi;
}

bool host_knows_cdi(const struct host *host)
{
    return host->knows_cdi;
}

bool host_knows_rows(const struct host *host)
{
    return host->ready || host->knows_no_rows;
}

static void tell_known(struct host *host)
{
    if (host->ops->known)
        host->ops->known(host->user);
}

void host_set_knows_cdi(struct host *host)
{
    bool known = host->knows_cdi;

    host->knows_cdi = true;
    if (!known)
        tell_known(host);
}

const char *host_registrar_trouble(const struct host *host, uint64_t *since_ms)
{
    return host->ready ? registrar_trouble(host->registrar, since_ms) : NULL;
}

const char *host_registry_trouble(const struct host *host, uint64_t *since_ms)
{
    return host->drivers ? drivers_trouble(host->drivers, since_ms) : NULL;
}

/* ---- start ---- */

struct lost_sockets {
    const char *dir;
    bool any;
};

/* It served when the shim ended, and its socket's name has gone. One that was away by then counts
 * as stopped for longer; one that the plugin watcher finds has a path. */
static bool look_for_socket(void *user, const struct devicemgr_plugin *plugin)
{
    struct lost_sockets *lost = user;
    struct stat status;
    char *path;

    if (plugin->stopped_ms_ago > 0 || *plugin->socket == '\0' || *plugin->socket == '/')
        return true;
    path = path_join(lost->dir, plugin->socket);
    lost->any = lstat(path, &status) < 0 && errno == ENOENT;
    free(path);
    return !lost->any;
}

/* Whether there is a plugin that cannot be dialled and may serve all the same: an instance that
 * ends after the next one has begun may take that one's socket along. It registers again only when
 * it sees a new kubelet.sock. */
static bool lacks_sockets(const struct host *host)
{
    const struct devicemgr_which all = {0};
    struct lost_sockets lost = {.dir = host->config->plugin_dir};

    devicemgr_plugins(host->core, host->restore.restored_ms, &all, look_for_socket, &lost);
    return lost.any;
}

struct sought_socket {
    const char *name;
    char *path;
    bool known;
};

static bool look_at_socket(void *user, const struct devicemgr_plugin *plugin)
{
    struct sought_socket *sought = user;

    sought->known =
        strcmp(plugin->socket, sought->name) == 0 || strcmp(plugin->socket, sought->path) == 0;
    return !sought->known;
}

/* Whether there is a row of the plugin that serves there: it is dialled. */
static bool is_known_socket(void *user, const char *name)
{
    const struct host *host = user;
    const struct devicemgr_which all = {0};
    struct sought_socket sought = {name, path_join(host->config->plugin_dir, name), false};

    devicemgr_plugins(host->core, host->restore.restored_ms, &all, look_at_socket, &sought);
    free(sought.path);
    return sought.known;
}

static void start_parts(struct host *host)
{
    const struct config *config = host->config;
    uv_loop_t *loop = host->loop;
    /* Plugins that serve may not be known any more. */
    bool forgets = host->restore.lost || registered_mark_is_set(&host->registered_mark);

    if (forgets || lacks_sockets(host))
        registrar_begin_anew(host->store);
    if (forgets)
        registrar_remove_sockets(config->plugin_dir, is_known_socket, host);
    host->registrar =
        registrar_start(loop, config->plugin_dir, host->store, &EVENTS_OF_REGISTRAR, host);
    host->clients =
        plugin_clients_new(loop, config->plugin_dir, host->store, &EVENTS_OF_PLUGINS, host);
    if (config->dra.enabled)
        host->drivers = drivers_start(host);
    host->builtins =
        builtins_start(loop, config->devices, config->devices_len, &EVENTS_OF_BUILTINS, host);
    host->lister =
        lister_start(loop, config->runtime_endpoint, &LISTER_PACE, &EVENTS_OF_RUNTIME, host);
    host->stopper = stopper_start(loop, config->runtime_endpoint, &EVENTS_OF_STOPPER, host);
    builtins_look(host->builtins); /* no row says which there are, and creates are decided next */
    host->ready = true;
}

static void on_restored(void *user)
{
    struct host *host = user;

    start_parts(host);
    host->ops->ready(host->user);
    lifted_start(host);
    tell_known(host);
    host_kick(host);
}

static void on_delayed(void *user)
{
    struct host *host = user;

    if (host->ops->delayed)
        host->ops->delayed(host->user);
}

static void on_given_up(void *user)
{
    struct host *host = user;

    host->knows_no_rows = true;
    host->knows_cdi = true;
    tell_known(host);
}

static const struct restore_ops RESTORE_OPS = {
    .restored = on_restored, .delayed = on_delayed, .given_up = on_given_up};

static void on_sized(void *user, uint64_t bytes)
{
    struct host *host = user;

    restore_sized(&host->restore, bytes);
}

static void on_rows(void *user, const struct store_worker_rows *rows)
{
    struct host *host = user;

    restore_rows(&host->restore, rows);
}

static void on_unreadable(void *user, const char *error)
{
    struct host *host = user;

    restore_unreadable(&host->restore, error);
}

static const struct store_worker_ops WORKER_OPS = {.sized = on_sized,
                                                   .read = on_rows,
                                                   .unreadable = on_unreadable,
                                                   .committed = events_committed,
                                                   .reset = events_store_reset};

static void on_store_report(void *user, int level, const char *text)
{
    (void)user;
    log_write((enum log_level)level, "%s", text);
}

static struct devicemgr *core_new(struct host *host)
{
    struct devicemgr_settings settings;
    struct devicemgr *core;

    core_settings_init(&settings, host->config, host->boot_id);
    core = devicemgr_new(&settings, &PORTS, host);
    core_settings_fini(&settings);
    devicemgr_runtime_cdi(core, boot_now_ms(), DEVICEMGR_CDI_UNHEARD);
    return core;
}

/* Twice is enough: it is rebuilt from what runs. */
static bool checkpoint_kills(void)
{
    bool kills = deaths_of(DEATHS_CHECKPOINT, 2);

    if (kills)
        deaths_forget();
    return kills;
}

struct host *host_start(uv_loop_t *loop, const struct config *config, struct fd_store *store,
                        const struct host_ops *ops, void *user)
{
    struct host *host = must(calloc(1, sizeof *host));
    const struct store_options options = {.dir = config->state_dir,
                                          .boot_id = host->boot_id,
                                          .discard = checkpoint_kills(),
                                          .report = on_store_report};

    host->loop = loop;
    host->config = config;
    host->store = store;
    host->ops = ops;
    host->user = user;
    boot_id_read(host->boot_id);
    registered_mark_init(&host->registered_mark, config->listen);
    host->core = core_new(host);
    uv_timer_init(loop, &host->timer);
    host->timer.data = host;
    host->worker = store_worker_new(loop, &options, &WORKER_OPS, host);
    restore_start(&host->restore, loop, host->core, host->worker, &RESTORE_OPS, host);
    return host;
}

uint64_t host_commit_since_ms(const struct host *host)
{
    return store_worker_commit_since_ms(host->worker);
}

/* ---- a look ---- */

bool host_look_at_checkpoint(struct host *host,
                             void (*done)(void *user, const struct store_worker_look *look),
                             void *user)
{
    struct devicemgr *scratch;

    if (!host->ready)
        return false;
    scratch = core_new(host);
    if (store_worker_look(host->worker, scratch, done, user))
        return true;
    devicemgr_free(scratch);
    return false;
}

void host_forget_look(struct host *host)
{
    store_worker_forget_look(host->worker);
}

/* ---- stop ---- */

static void host_free(void *thing)
{
    struct host *host = thing;

    devicemgr_free(host->core);
    registered_mark_fini(&host->registered_mark);
    free(host);
}

static void stop_parts(struct host *host)
{
    host->stopping.parts += 4;
    registrar_stop(host->registrar);
    if (host->drivers) {
        host->stopping.parts++;
        drivers_stop(host->drivers, stopping_part, &host->stopping);
    }
    plugin_clients_stop(host->clients, stopping_part, &host->stopping);
    builtins_stop(host->builtins, stopping_part, &host->stopping);
    lister_stop(host->lister, stopping_part, &host->stopping);
    stopper_stop(host->stopper, stopping_part, &host->stopping);
}

void host_stop(struct host *host, void (*done)(void *user), void *user)
{
    host->stopping = (struct stopping){3, host_free, host, done, user};
    if (host->ready)
        stop_parts(host);
    stopping_close(&host->stopping, (uv_handle_t *)&host->timer);
    restore_stop(&host->restore, stopping_part, &host->stopping);
    store_worker_stop(host->worker, stopping_part, &host->stopping);
}
