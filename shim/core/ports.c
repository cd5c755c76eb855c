#include "shim/core/ports.h"

#include <stdio.h>

#include "shim/core/host_state.h"
#include "shim/core/lifted.h"
#include "shim/log.h"
#include "shim/registry/registry.h"

static enum plugin_dial dial_of(const struct host *host, const char *socket_name)
{
    if (registrar_waits(host->registrar, socket_name) ||
        (host->drivers && drivers_plugin_waits(host->drivers, socket_name)))
        return PLUGIN_DIAL_REGISTERING;
    return host->drivers && drivers_plugin_has(host->drivers, socket_name) ? PLUGIN_DIAL_PATIENTLY
                                                                           : PLUGIN_DIAL_ONCE;
}

static void port_endpoint_open(void *user, uint64_t endpoint, const char *resource,
                               const char *socket_name, uint32_t uid)
{
    struct host *host = user;

    (void)resource;
    plugin_clients_open(host->clients, endpoint, socket_name, uid, dial_of(host, socket_name));
}

static void port_endpoint_close(void *user, uint64_t endpoint)
{
    struct host *host = user;

    plugin_clients_close(host->clients, endpoint);
}

static void port_register_done(void *user, uint64_t registration, int code, const char *message)
{
    struct host *host = user;

    host_counts_registration(&host->counts, code);
    if (code == 0)
        registered_mark_set(&host->registered_mark);
    if (registration & REGISTRY_NUMBER_BIT)
        drivers_plugin_registered(host->drivers, registration, code, message);
    else
        registrar_answer(host->registrar, registration, code, message);
}

static void port_allocate(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                          size_t ids_len, uint64_t timeout_ms)
{
    struct host *host = user;

    host_counts_allocate(&host->counts, call);
    plugin_clients_allocate(host->clients, endpoint, call, ids, ids_len, timeout_ms);
}

static void port_prefer(void *user, uint64_t endpoint, uint64_t call, const char *const *available,
                        size_t available_len, const char *const *must_include,
                        size_t must_include_len, size_t size, uint64_t timeout_ms)
{
    struct host *host = user;

    plugin_clients_prefer(host->clients, endpoint, call, available, available_len, must_include,
                          must_include_len, size, timeout_ms);
}

static void port_prestart(void *user, uint64_t endpoint, uint64_t call, const char *const *ids,
                          size_t ids_len, uint64_t timeout_ms)
{
    struct host *host = user;

    plugin_clients_prestart(host->clients, endpoint, call, ids, ids_len, timeout_ms);
}

static void port_call_cancel(void *user, uint64_t call)
{
    struct host *host = user;

    host_counts_cancel(&host->counts, call);
    plugin_clients_cancel(host->clients, call);
    if (host->drivers)
        drivers_call_cancel(host->drivers, call);
    if (host->ops->lift_cancel)
        host->ops->lift_cancel(host->user, call);
}

static void port_driver_registered(void *user, uint64_t instance, int code, const char *message)
{
    struct host *host = user;

    if (instance != LIFTED_INSTANCE)
        drivers_registered(host->drivers, instance, code, message);
}

static void port_driver_prepare(void *user, uint64_t instance, uint64_t call,
                                struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                                uint64_t timeout_ms)
{
    struct host *host = user;

    if (instance == LIFTED_INSTANCE)
        host->ops->lift_prepare(host->user, call, claim, timeout_ms);
    else
        drivers_prepare(host->drivers, instance, call, batch, claim, timeout_ms);
}

static void port_driver_unprepare(void *user, uint64_t instance, uint64_t call,
                                  struct devicemgr_batch batch, const struct devicemgr_claim *claim,
                                  uint64_t timeout_ms)
{
    struct host *host = user;

    if (instance == LIFTED_INSTANCE)
        lifted_unprepare(host, call);
    else
        drivers_unprepare(host->drivers, instance, call, batch, claim, timeout_ms);
}

static void port_driver_settle(void *user, uint64_t instance, uint64_t call,
                               const struct devicemgr_claim *claim, bool asked, uint64_t timeout_ms)
{
    struct host *host = user;

    drivers_settle(host->drivers, instance, call, claim, asked, timeout_ms);
}

static void port_claim_look(void *user, const struct devicemgr_claim *claim)
{
    struct host *host = user;

    if (host->ops->claim_look)
        host->ops->claim_look(host->user, claim);
}

static void port_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct host *host = user;

    if (host->ops->claim_done)
        host->ops->claim_done(host->user, number, done);
}

static void port_commit(void *user, uint64_t commit, const struct devicemgr_record *records,
                        size_t records_len)
{
    struct host *host = user;

    host_counts_commit(&host->counts);
    store_worker_commit(host->worker, commit, records, records_len);
}

static void port_container_check(void *user, uint64_t check, const char *container_id)
{
    struct host *host = user;

    lister_check(host->lister, check, container_id);
}

static void port_runtime_list(void *user)
{
    host_list_runtime(user);
}

static void port_stop_container(void *user, uint64_t op, const char *container_id,
                                uint64_t grace_ms)
{
    struct host *host = user;

    stopper_container(host->stopper, op, container_id, grace_ms);
}

static void port_stop_cancel(void *user, uint64_t op)
{
    struct host *host = user;

    stopper_cancel(host->stopper, op);
}

static void port_stop_sandbox(void *user, uint64_t op, const char *sandbox_id)
{
    struct host *host = user;

    stopper_sandbox(host->stopper, op, sandbox_id);
}

static void port_evict_pod(void *user, uint64_t order, const struct devicemgr_eviction *eviction)
{
    struct host *host = user;

    host->ops->evict_pod(host->user, order, eviction);
}

static void port_evict_cancel(void *user, uint64_t order)
{
    struct host *host = user;

    host->ops->evict_cancel(host->user, order);
}

static void port_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    struct host *host = user;

    host->ops->verdict(host->user, create, verdict);
}

static void port_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct host *host = user;

    if (host->ops->preferred)
        host->ops->preferred(host->user, number, ids, ids_len);
}

static void port_event(void *user, const struct devicemgr_event *event)
{
    struct host *host = user;

    if (host->ops->event)
        host->ops->event(host->user, event);
}

static void port_steered(void *user, uint64_t number, const struct devicemgr_steered *steered)
{
    struct host *host = user;

    if (host->ops->steered)
        host->ops->steered(host->user, number, steered);
}

/* Beyond it a name is cut, as it would be in the line (log_line.h). */
#define POD_BYTES_MAX 512

static void port_log(void *user, int level, const struct devicemgr_about *about, const char *text)
{
    static const enum log_kind KINDS[DEVICEMGR_LINES] = {
        [DEVICEMGR_LINE_REGISTERED] = LOG_KIND_REGISTERED,
        [DEVICEMGR_LINE_LISTED] = LOG_KIND_LISTED,
        [DEVICEMGR_LINE_AWAY] = LOG_KIND_PLUGIN_AWAY,
        [DEVICEMGR_LINE_REMOVED] = LOG_KIND_REMOVED,
        [DEVICEMGR_LINE_ALLOCATED] = LOG_KIND_ALLOCATED,
        [DEVICEMGR_LINE_FREED] = LOG_KIND_FREED,
        [DEVICEMGR_LINE_REPLACED] = LOG_KIND_REPLACED,
        [DEVICEMGR_LINE_ADOPTED] = LOG_KIND_ADOPTED,
        [DEVICEMGR_LINE_STRANGE_TOKEN] = LOG_KIND_STRANGE_TOKEN,
        [DEVICEMGR_LINE_ORDERED] = LOG_KIND_ORDERED,
        [DEVICEMGR_LINE_UNSTORED] = LOG_KIND_UNSTORED,
        [DEVICEMGR_LINE_STORED] = LOG_KIND_STORED,
        [DEVICEMGR_LINE_RUNTIME_LISTED] = LOG_KIND_RUNTIME_LISTED,
        [DEVICEMGR_LINE_DRIVER_CAME] = LOG_KIND_DRIVER_CAME,
        [DEVICEMGR_LINE_DRIVER_WENT] = LOG_KIND_DRIVER_WENT,
        [DEVICEMGR_LINE_DRIVER_MOVED] = LOG_KIND_DRIVER_MOVED,
        [DEVICEMGR_LINE_SLICES_WIPED] = LOG_KIND_SLICES_WIPED,
        [DEVICEMGR_LINE_CLAIM_PREPARED] = LOG_KIND_CLAIM_PREPARED,
        [DEVICEMGR_LINE_CLAIM_OWED] = LOG_KIND_CLAIM_OWED,
        [DEVICEMGR_LINE_CLAIM_UNPREPARED] = LOG_KIND_CLAIM_UNPREPARED,
        [DEVICEMGR_LINE_ENDING] = LOG_KIND_ENDING,
        [DEVICEMGR_LINE_SHUTDOWN] = LOG_KIND_SHUTDOWN,
    };
    struct log_about line = {
        .kind = KINDS[about->line], .resource = about->resource, .container = about->container};
    char pod[POD_BYTES_MAX];

    (void)user;
    if (about->pod_name) {
        snprintf(pod, sizeof pod, "%s/%s", about->pod_namespace, about->pod_name);
        line.pod = pod;
    }
    log_write_about((enum log_level)level, &line, "%s", text);
}

const struct devicemgr_ports PORTS = {
    .endpoint_open = port_endpoint_open,
    .endpoint_close = port_endpoint_close,
    .register_done = port_register_done,
    .allocate = port_allocate,
    .prefer = port_prefer,
    .prestart = port_prestart,
    .call_cancel = port_call_cancel,
    .driver_registered = port_driver_registered,
    .driver_prepare = port_driver_prepare,
    .driver_unprepare = port_driver_unprepare,
    .driver_settle = port_driver_settle,
    .claim_look = port_claim_look,
    .claim_done = port_claim_done,
    .commit = port_commit,
    .container_check = port_container_check,
    .runtime_list = port_runtime_list,
    .stop_container = port_stop_container,
    .stop_cancel = port_stop_cancel,
    .stop_sandbox = port_stop_sandbox,
    .evict_pod = port_evict_pod,
    .evict_cancel = port_evict_cancel,
    .verdict = port_verdict,
    .preferred = port_preferred,
    .event = port_event,
    .steered = port_steered,
    .log = port_log,
};
