#include "shim/core/events.h"

#include "shim/boot_clock.h"
#include "shim/core/host_state.h"
#include "shim/log.h"

static void on_registered(void *user, uint64_t registration, const char *version,
                          const char *socket_name, uid_t uid, const char *resource)
{
    struct host *host = user;

    devicemgr_register(host_core(host), boot_now_ms(), registration, version, socket_name, uid,
                       resource);
    host_kick(host);
}

static void on_register_cancelled(void *user, uint64_t registration)
{
    struct host *host = user;

    devicemgr_register_cancelled(host_core(host), registration);
    host_kick(host);
}

const struct registrar_ops EVENTS_OF_REGISTRAR = {.registered = on_registered,
                                                  .cancelled = on_register_cancelled};

static void on_options(void *user, uint64_t endpoint, const V1beta1__DevicePluginOptions *options)
{
    struct host *host = user;

    devicemgr_endpoint_options(host_core(host), boot_now_ms(), endpoint, options);
    host_kick(host);
}

static void on_list(void *user, uint64_t endpoint, const V1beta1__ListAndWatchResponse *list)
{
    struct host *host = user;

    devicemgr_endpoint_list(host_core(host), boot_now_ms(), endpoint, list);
    host_kick(host);
}

static void on_lost(void *user, uint64_t endpoint, const char *reason)
{
    struct host *host = user;

    devicemgr_endpoint_lost(host_core(host), boot_now_ms(), endpoint, reason);
    host_kick(host);
}

static void on_allocated(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__AllocateResponse *response)
{
    struct host *host = user;

    host_counts_allocated(&host->counts, call, code);
    devicemgr_allocated(host_core(host), boot_now_ms(), call, code, message, response);
    host_kick(host);
}

static void on_preferred(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__PreferredAllocationResponse *response)
{
    struct host *host = user;

    devicemgr_preferred(host_core(host), boot_now_ms(), call, code, message, response);
    host_kick(host);
}

static void on_prestarted(void *user, uint64_t call, int code, const char *message)
{
    struct host *host = user;

    devicemgr_prestarted(host_core(host), boot_now_ms(), call, code, message);
    host_kick(host);
}

const struct plugin_clients_ops EVENTS_OF_PLUGINS = {
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
    struct host *host = user;

    devicemgr_builtin(host_core(host), boot_now_ms(), resource, devices, devices_len);
    if (host->ready) /* else who is told what comes of it is not there yet */
        host_kick(host);
}

const struct builtins_ops EVENTS_OF_BUILTINS = {.changed = on_builtins};

void events_committed(void *user, uint64_t commit, const char *error)
{
    struct host *host = user;

    host_counts_committed(&host->counts, error != NULL);
    devicemgr_committed(host_core(host), boot_now_ms(), commit, error);
    host_kick(host);
}

void events_store_reset(void *user)
{
    struct host *host = user;

    devicemgr_store_reset(host_core(host), boot_now_ms());
}

static void on_listing(void *user)
{
    struct host *host = user;

    devicemgr_runtime_listing(host_core(host));
}

static void on_listed(void *user, const struct devicemgr_sandbox *sandboxes, size_t sandboxes_len,
                      const struct devicemgr_container *containers, size_t containers_len)
{
    struct host *host = user;

    devicemgr_runtime_listed(host_core(host), boot_now_ms(), sandboxes, sandboxes_len, containers,
                             containers_len);
    host_kick(host);
}

static void on_ended(void *user, const char *container_id)
{
    struct host *host = user;

    devicemgr_container_removed(host_core(host), boot_now_ms(), container_id);
    host_kick(host);
}

static void on_checked(void *user, uint64_t check, enum lister_finding finding)
{
    static const enum devicemgr_checked ANSWERS[] = {
        [LISTER_UNKNOWN] = DEVICEMGR_NOT_ANSWERED,
        [LISTER_GONE] = DEVICEMGR_GONE,
        [LISTER_STOPPED] = DEVICEMGR_GONE,
        [LISTER_RUNNING] = DEVICEMGR_RUNS,
    };
    struct host *host = user;

    devicemgr_container_checked(host_core(host), boot_now_ms(), check, ANSWERS[finding]);
    host_kick(host);
}

static void on_container_stopped(void *user, uint64_t op, int code, const char *message)
{
    struct host *host = user;

    devicemgr_container_stopped(host_core(host), boot_now_ms(), op, code, message);
    host_kick(host);
}

static void on_sandbox_stopped(void *user, uint64_t op, int code, const char *message)
{
    struct host *host = user;

    devicemgr_sandbox_stop_ended(host_core(host), boot_now_ms(), op, code, message);
    host_kick(host);
}

const struct stopper_ops EVENTS_OF_STOPPER = {.container_ended = on_container_stopped,
                                              .sandbox_ended = on_sandbox_stopped};

static void on_cdi(void *user, enum devicemgr_cdi cdi)
{
    static const char *const WORDS[] = {
        [DEVICEMGR_CDI_UNKNOWN] = "not known whether they are supported",
        [DEVICEMGR_CDI_NONE] = "not supported, or switched off",
        [DEVICEMGR_CDI_ANNOTATED] = "by annotation only",
        [DEVICEMGR_CDI_READ] = "supported",
    };
    struct host *host = user;

    if (cdi != host->runtime_cdi)
        log_info("runtime: CDI devices in its containers: %s", WORDS[cdi]);
    host->runtime_cdi = cdi;
    devicemgr_runtime_cdi(host_core(host), boot_now_ms(), cdi);
    host_set_knows_cdi(host);
    host_kick(host);
}

/* The next one may be another. */
static void on_runtime_lost(void *user)
{
    struct host *host = user;

    host->knows_cdi = false;
    devicemgr_runtime_cdi(host_core(host), boot_now_ms(), DEVICEMGR_CDI_UNHEARD);
}

const struct lister_ops EVENTS_OF_RUNTIME = {.begins = on_listing,
                                             .listed = on_listed,
                                             .ended = on_ended,
                                             .cdi = on_cdi,
                                             .lost = on_runtime_lost,
                                             .checked = on_checked};
