/*
 * cri-device-shim-bridge: wiring only.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <uv.h>

#include "config/config.h"
#include "shim/bridge/bridge.h"
#include "shim/config_argument.h"
#include "shim/fd_store.h"
#include "shim/log.h"
#include "shim/loop.h"
#include "shim/service_manager.h"
#include "shim/settings.h"
#include "shim/signals.h"
#include "shim/standard_fds.h"
#include "shim/version.h"
#include "shim/watchdog.h"

struct process {
    uv_loop_t loop;
    struct settings settings;
    struct fd_store *store;
    struct bridge *bridge;
    struct signals signals;
    struct watchdog watchdog;
};

static void on_asked_to_stop(void *user, int number)
{
    struct process *p = user;

    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STOPPING}, "stopping: %s",
                    strsignal(number));
    service_manager_notify("STOPPING=1");
    if (p->bridge)
        bridge_stop(p->bridge);
    signals_close(&p->signals);
    watchdog_close(&p->watchdog);
}

/* The log's level and form; all else that may change is the daemon's, and comes by the feed, as
 * these do when the daemon reads the file again. */
static void on_asked_to_reload(void *user)
{
    struct process *p = user;
    struct settings_reloaded told;

    if (settings_reload(&p->settings, &told) < 0)
        return;
    settings_tell_ready(&p->settings);
    if (p->bridge)
        bridge_settings_read(p->bridge);
}

/* Each resource takes two descriptors; what a service starts with does not do for 1024 of them. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* One that is not wanted waits to be told to stop: a service that ends would be started again. */
static void start_bridge(struct process *p)
{
    const struct config_bridge *config = &p->settings.config.bridge;

    if (!config->enabled) {
        log_info("bridge.enabled is false: nothing to do");
        fd_store_drop(p->store, "");
        return;
    }
    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STARTED},
                    "cri-device-shim-bridge %s: %s -> %s", version_text, config->socket,
                    config->kubelet_plugin_dir);
    p->bridge = bridge_start(&p->loop, &p->settings, p->store);
}

int main(int argc, char **argv)
{
    const char *path = config_argument(
        argc, argv, "cri-device-shim-bridge",
        "Stands in for the device plugins at the kubelet, on behalf of cri-device-shim.");
    static struct process p;

    standard_fds_open();
    signal(SIGPIPE, SIG_IGN);
    p.store = fd_store_new();
    if (settings_load(path, &p.settings) < 0)
        return EXIT_FAILURE;
    settings_apply_log(&p.settings.config);
    umask(022); /* the modes of what is made are its maker's matter */
    raise_file_limit();
    loop_init(&p.loop);
    signals_start(&p.signals, &p.loop, on_asked_to_stop, on_asked_to_reload, &p);
    watchdog_start(&p.watchdog, &p.loop);
    start_bridge(&p);
    settings_tell_ready(&p.settings);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    uv_loop_close(&p.loop);
    settings_fini(&p.settings);
    fd_store_free(p.store);
    return EXIT_SUCCESS;
}
