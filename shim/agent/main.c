/*
 * cri-device-shim-agent: wiring only.
 */
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "config/config.h"
#include "shim/agent/agent.h"
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
    struct agent *agent;
    struct signals signals;
    struct watchdog watchdog;
};

static void on_asked_to_stop(void *user, int number)
{
    struct process *p = user;

    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STOPPING}, "stopping: %s",
                    strsignal(number));
    service_manager_notify("STOPPING=1");
    agent_stop(p->agent);
    signals_close(&p->signals);
    watchdog_close(&p->watchdog);
}

/* The log's level and form; all else waits for a restart. */
static void on_asked_to_reload(void *user)
{
    struct process *p = user;
    struct settings_reloaded told;

    if (settings_reload(&p->settings, &told) == 0)
        settings_tell_ready(&p->settings);
}

/* One that is not wanted waits to be told to stop: a service that ends would be started again. */
static bool start_agent(struct process *p)
{
    const struct config_cluster *config = &p->settings.config.cluster;

    if (!config->enabled) {
        log_info("cluster.enabled is false: nothing to do");
        fd_store_drop(p->store, "");
        return true;
    }
    log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_STARTED},
                    "cri-device-shim-agent %s: %s, by %s", version_text, config->socket,
                    config->kubeconfig);
    p->agent = agent_start(&p->loop, config, p->store);
    return p->agent != NULL;
}

int main(int argc, char **argv)
{
    const char *path =
        config_argument(argc, argv, "cri-device-shim-agent",
                        "Speaks with the cluster's API server, on behalf of cri-device-shim.");
    static struct process p;

    standard_fds_open();
    signal(SIGPIPE, SIG_IGN);
    p.store = fd_store_new();
    mallopt(M_ARENA_MAX, 1); /* names are looked up in threads, which would have one each */
    if (settings_load(path, &p.settings) < 0)
        return EXIT_FAILURE;
    settings_apply_log(&p.settings.config);
    loop_init(&p.loop);
    if (!start_agent(&p))
        return EXIT_FAILURE;
    signals_start(&p.signals, &p.loop, on_asked_to_stop, on_asked_to_reload, &p);
    watchdog_start(&p.watchdog, &p.loop);
    settings_tell_ready(&p.settings);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    uv_loop_close(&p.loop);
    settings_fini(&p.settings);
    fd_store_free(p.store);
    return EXIT_SUCCESS;
}
