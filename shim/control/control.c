#include "shim/control/control.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cri-proto/control_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/control/asked.h"
#include "shim/control/checkpointing.h"
#include "shim/control/ending.h"
#include "shim/control/follow.h"
#include "shim/control/limits.h"
#include "shim/control/list.h"
#include "shim/control/log_levels.h"
#include "shim/control/releasing.h"
#include "shim/control/status.h"
#include "shim/control/steering.h"
#include "shim/control/why.h"
#include "shim/must.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "shim/rpc/rpc.h"

#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "control"

struct control {
    const struct settings *settings;
    struct host *host;
    struct followers *followers;
    struct asked_book asked; /* by these two: */
    struct steering *steering;
    struct releasing *releasing;
    struct checkpointing *checkpointing;
    struct log_levels *log_levels;
    const struct control_ops *ops;
    void *user;
    struct rpc_server *server;
    struct listener listener; /* the server's */
    struct keeper *keeper;    /* of its socket */
};

/* ---- calls ---- */

static struct list_from from_of(struct control *control)
{
    struct list_from from = {.core = host_core(control->host)};

    control->ops->look(control->user, &from);
    return from;
}

static void on_status(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;
    struct list_from from = from_of(control);
    struct status status;
    struct report report = {0};

    (void)message;
    control->ops->report(control->user, &report);
    status_init(&status, control->settings, &from, &report);
    rpc_incoming_answer(call, &status.response.base);
    status_fini(&status);
}

static void on_why(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Control__V1__WhyRequest *request = (const void *)message;
    struct control *control = user;
    struct list_from from = from_of(control);
    struct why why;

    why_init(&why, &from, request);
    if (why.response.n_containers + why.response.n_claims + why.response.n_endings > 0 ||
        request->pod[0] == '\0')
        rpc_incoming_answer(call, &why.response.base);
    else
        rpc_incoming_finish(
            call, RPC_NOT_FOUND,
            "no container of such a pod waits for devices, was refused or has any, and no "
            "claim is known by that");
    why_fini(&why);
}

static void on_events(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    followers_add(control->followers, call, (const void *)message);
}

static void on_reload(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;
    struct settings_reloaded told = {0};
    Control__V1__ReloadResponse response = CONTROL__V1__RELOAD_RESPONSE__INIT;
    char words[sizeof told.wrong + 64];

    (void)message;
    if (control->ops->reload(control->user, &told) < 0) {
        snprintf(words, sizeof words, "nothing has changed: %s", told.wrong);
        rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, words);
        return;
    }
    response.changed = told.changed;
    response.needs_restart = told.needs_restart;
    rpc_incoming_answer(call, &response.base);
}

static void on_log_level(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    log_levels_call(control->log_levels, call, (const void *)message);
}

static void on_steer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    steering_call(control->steering, call, (const void *)message);
}

static void on_verify(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    (void)message;
    checkpointing_verify(control->checkpointing, call);
}

static void on_export(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    (void)message;
    checkpointing_export(control->checkpointing, call);
}

static void on_release(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    releasing_call(control->releasing, call, (const void *)message);
}

static void on_end(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct control *control = user;

    ending_call(control->host, &control->asked, call, (const void *)message);
}

static void on_list(struct rpc_incoming *call, const ProtobufCMessage *message,
                    struct control *control, list_make *make)
{
    struct list_from from = from_of(control);
    struct list list;

    if (make(&list, &from, (const void *)message))
        rpc_incoming_answer(call, list.response);
    else
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT,
                            "after: no place in this list, or not any more: begin anew");
    list_fini(&list);
}

static void on_resources(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_resources);
}

static void on_plugins(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_plugins);
}

static void on_devices(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_devices);
}

static void on_allocations(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_allocations);
}

static void on_pods(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_pods);
}

static void on_orders(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_orders);
}

static void on_drivers(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_drivers);
}

static void on_claims(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_claims);
}

static void on_taints(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_taints);
}

static void on_endings(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    on_list(call, message, user, list_endings);
}

static void on_driver_devices(struct rpc_incoming *call, const ProtobufCMessage *message,
                              void *user)
{
    on_list(call, message, user, list_driver_devices);
}

static const struct rpc_method METHODS[] = {
    {CONTROL_RESOURCES, &control__v1__list_request__descriptor, on_resources},
    {CONTROL_PLUGINS, &control__v1__list_request__descriptor, on_plugins},
    {CONTROL_DEVICES, &control__v1__list_request__descriptor, on_devices},
    {CONTROL_ALLOCATIONS, &control__v1__list_request__descriptor, on_allocations},
    {CONTROL_PODS, &control__v1__list_request__descriptor, on_pods},
    {CONTROL_DRIVERS, &control__v1__list_request__descriptor, on_drivers},
    {CONTROL_CLAIMS, &control__v1__list_request__descriptor, on_claims},
    {CONTROL_TAINTS, &control__v1__list_request__descriptor, on_taints},
    {CONTROL_ENDINGS, &control__v1__list_request__descriptor, on_endings},
    {CONTROL_DRIVER_DEVICES, &control__v1__list_request__descriptor, on_driver_devices},
    {CONTROL_STEER, &control__v1__steer_request__descriptor, on_steer},
    {CONTROL_CHECKPOINT_VERIFY, &control__v1__checkpoint_verify_request__descriptor, on_verify},
    {CONTROL_CHECKPOINT_EXPORT, &control__v1__checkpoint_export_request__descriptor, on_export},
    {CONTROL_RELEASE, &control__v1__release_request__descriptor, on_release},
    {CONTROL_END, &control__v1__end_request__descriptor, on_end},
    {CONTROL_ORDERS, &control__v1__list_request__descriptor, on_orders},
    {CONTROL_RELOAD, &control__v1__reload_request__descriptor, on_reload},
    {CONTROL_LOG_LEVEL, &control__v1__log_level_request__descriptor, on_log_level},
    {CONTROL_EVENTS, &control__v1__events_request__descriptor, on_events},
    {CONTROL_WHY, &control__v1__why_request__descriptor, on_why},
    {CONTROL_STATUS, &control__v1__status_request__descriptor, on_status},
};

/* ---- life ---- */

static const struct rpc_limits LIMITS = {.connections = CONTROL_CONNECTIONS_MAX,
                                         .request_bytes = CONTROL_REQUEST_BYTES_MAX,
                                         .queue_bytes = CONTROL_QUEUE_BYTES_MAX,
                                         .calls = CONTROL_CALLS_MAX,
                                         .private = true};

static int serve(void *user)
{
    struct control *control = user;

    return listener_look(&control->listener);
}

struct control *control_start(uv_loop_t *loop, const struct settings *settings, struct host *host,
                              struct events *events, struct fd_store *store,
                              const struct control_ops *ops, void *user)
{
    const struct socket_place place = {.dir_mode = SOCKET_DIRECTORY_MODE,
                                       .name = settings->config.control_socket};
    struct control *control = must(calloc(1, sizeof *control));
    char what[PATH_MAX + 64];

    control->settings = settings;
    control->host = host;
    control->followers = followers_new(loop, events);
    control->log_levels = log_levels_new(loop, settings, ops->set_level, user);
    control->steering = steering_new(host, events, &control->asked);
    control->releasing = releasing_new(host, &control->asked);
    control->checkpointing = checkpointing_new(loop, host, settings->config.state_dir);
    control->ops = ops;
    control->user = user;
    if (rpc_server_new(loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, control,
                       &control->server) < 0)
        abort(); /* out of memory */
    rpc_server_set_limits(control->server, &LIMITS);
    rpc_server_set_pings(control->server, CONTROL_PINGS_MS);
    listener_init(&control->listener, control->server, store, STORED_NAME);
    snprintf(what, sizeof what, "control.socket = \"%s\"", settings->config.control_socket);
    control->keeper = keeper_start(loop, what, serve, control);
    return control;
}

size_t control_queued_max(const struct control *control)
{
    return rpc_server_queued_max(control->server);
}

const char *control_trouble(const struct control *control, uint64_t *since_ms)
{
    return keeper_trouble(control->keeper, since_ms);
}

void control_steered(struct control *control, uint64_t number,
                     const struct devicemgr_steered *steered)
{
    asked_done(&control->asked, number, steered);
}

void control_stop(struct control *control)
{
    if (!control)
        return;
    keeper_stop(control->keeper);
    listener_fini(&control->listener);
    rpc_server_close(control->server);
    followers_free(control->followers);
    asked_fini(&control->asked);
    steering_free(control->steering);
    releasing_free(control->releasing);
    checkpointing_free(control->checkpointing);
    log_levels_free(control->log_levels);
    free(control);
}
