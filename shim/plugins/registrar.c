#include "shim/plugins/registrar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/plugins/limits.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "shim/rpc/rpc.h"

#define PLUGIN_DIR_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "plugins"

static const struct rpc_limits LIMITS = {.connections = REGISTRAR_CONNECTIONS_MAX,
                                         .request_bytes = REGISTRAR_REQUEST_BYTES_MAX,
                                         .queue_bytes = RPC_QUEUE_BYTES_MAX,
                                         .calls = REGISTRAR_CALLS_MAX};

struct pending {
    LIST_ENTRY(pending) entry;
    struct registrar *registrar;
    struct rpc_incoming *call;
    uint64_t number;
    char *socket_name;
};

struct registrar {
    struct rpc_server *server;
    struct listener listener; /* the server's */
    struct keeper *keeper;
    const struct registrar_ops *ops;
    void *user;
    LIST_HEAD(, pending) pending;
    unsigned pending_len;
    uint64_t last_number;
};

static void pending_free(struct pending *pending)
{
    free(pending->socket_name);
    free(pending);
}

static void pending_remove(struct pending *pending)
{
    LIST_REMOVE(pending, entry);
    pending->registrar->pending_len--;
    pending_free(pending);
}

static void on_cancelled(void *user)
{
    struct pending *pending = user;
    struct registrar *registrar = pending->registrar;
    uint64_t number = pending->number;

    pending_remove(pending);
    registrar->ops->cancelled(registrar->user, number);
}

static struct pending *pending_add(struct registrar *registrar, struct rpc_incoming *call,
                                   const char *socket_name)
{
    struct pending *pending = must(calloc(1, sizeof *pending));

    pending->registrar = registrar;
    pending->call = call;
    pending->number = ++registrar->last_number;
    pending->socket_name = must(strdup(socket_name));
    LIST_INSERT_HEAD(&registrar->pending, pending, entry);
    registrar->pending_len++;
    return pending;
}

static void on_register(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    struct registrar *registrar = user;
    struct pending *pending;
    struct ucred peer;

    if (registrar->pending_len >= REGISTRAR_PENDING_MAX) {
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too many registrations at once");
        return;
    }
    pending = pending_add(registrar, call, request->endpoint);
    rpc_incoming_on_cancel(call, on_cancelled, pending);
    rpc_incoming_peer(call, &peer);
    registrar->ops->registered(registrar->user, pending->number, request->version,
                               request->endpoint, peer.uid, request->resource_name);
}

static const struct rpc_method METHODS[] = {
    {DEVICEPLUGIN_REGISTER, &v1beta1__register_request__descriptor, on_register},
};

static int serve(void *user)
{
    struct registrar *registrar = user;

    return listener_look(&registrar->listener);
}

void registrar_begin_anew(struct fd_store *store)
{
    fd_store_drop(store, STORED_LISTENERS STORED_NAME "/");
}

static bool is_plugins_socket(int directory, const struct dirent *entry)
{
    struct stat st;

    if (strcmp(entry->d_name, REGISTRAR_SOCKET_NAME) == 0)
        return false;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_SOCK;
    return fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

static void remove_socket(int directory, const char *plugin_dir, const char *name)
{
    if (unlinkat(directory, name, 0) == 0)
        log_info("%s/%s: removed, for its plugin to register anew", plugin_dir, name);
    else if (errno != ENOENT)
        log_warning(
            "%s/%s cannot be removed (%s): a plugin that looks at it only does not register",
            plugin_dir, name, strerror(errno));
}

void registrar_remove_sockets(const char *plugin_dir, bool (*known)(void *user, const char *name),
                              void *user)
{
    DIR *names = opendir(plugin_dir);

    if (!names && errno != ENOENT)
        log_warning("%s: %s", plugin_dir, strerror(errno));
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        if (is_plugins_socket(dirfd(names), entry) && !known(user, entry->d_name))
            remove_socket(dirfd(names), plugin_dir, entry->d_name);
    }
    if (names)
        closedir(names);
}

struct registrar *registrar_start(uv_loop_t *loop, const char *plugin_dir, struct fd_store *store,
                                  const struct registrar_ops *ops, void *user)
{
    const struct socket_place place = {
        .dir = plugin_dir, .dir_mode = PLUGIN_DIR_MODE, .name = REGISTRAR_SOCKET_NAME};
    struct registrar *registrar = must(calloc(1, sizeof *registrar));
    char what[PATH_MAX + 64];

    registrar->ops = ops;
    registrar->user = user;
    if (rpc_server_new(loop, &place, METHODS, sizeof METHODS / sizeof *METHODS, registrar,
                       &registrar->server) < 0)
        abort(); /* out of memory */
    rpc_server_set_limits(registrar->server, &LIMITS);
    listener_init(&registrar->listener, registrar->server, store, STORED_NAME);
    snprintf(what, sizeof what, "plugin_dir = \"%s\": " REGISTRAR_SOCKET_NAME, plugin_dir);
    registrar->keeper = keeper_start(loop, what, serve, registrar);
    return registrar;
}

void registrar_answer(struct registrar *registrar, uint64_t registration, int code,
                      const char *message)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    struct pending *pending;

    LIST_FOREACH(pending, &registrar->pending, entry) {
        if (pending->number == registration)
            break;
    }
    if (!pending)
        return;
    if (code == RPC_OK && rpc_incoming_send(pending->call, &empty.base) < 0) {
        code = RPC_RESOURCE_EXHAUSTED;
        message = "out of memory";
    }
    rpc_incoming_finish(pending->call, code, message);
    pending_remove(pending);
}

bool registrar_waits(const struct registrar *registrar, const char *socket_name)
{
    const struct pending *p;

    LIST_FOREACH(p, &registrar->pending, entry) {
        if (strcmp(p->socket_name, socket_name) == 0)
            return true;
    }
    return false;
}

const char *registrar_trouble(const struct registrar *registrar, uint64_t *since_ms)
{
    return keeper_trouble(registrar->keeper, since_ms);
}

void registrar_stop(struct registrar *registrar)
{
    if (!registrar)
        return;
    keeper_stop(registrar->keeper);
    listener_fini(&registrar->listener);
    rpc_server_close(registrar->server);
    while (!LIST_EMPTY(&registrar->pending))
        pending_remove(LIST_FIRST(&registrar->pending));
    free(registrar);
}
