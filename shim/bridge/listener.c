#include "shim/bridge/listener.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "shim/log.h"

/* The name under which the manager is to keep it begins so. */
static void put_prefix(const struct listener *listener, char prefix[FD_STORE_NAME_BYTES_MAX + 1])
{
    snprintf(prefix, FD_STORE_NAME_BYTES_MAX + 1, LISTENER_STORED "%s/", listener->name);
}

/* Ends the manager's own duplicate as well. */
static void unstore(struct listener *listener)
{
    if (listener->stored[0])
        fd_store_remove(listener->store, listener->stored);
    listener->stored[0] = '\0';
}

void listener_init(struct listener *listener, struct rpc_server *server, struct fd_store *store,
                   const char *name)
{
    char prefix[FD_STORE_NAME_BYTES_MAX + 1];
    const char *stored;
    int fd;

    *listener = (struct listener){.server = server, .store = store, .name = name};
    put_prefix(listener, prefix);
    fd = fd_store_take(store, prefix, &stored);
    if (fd < 0)
        return;
    snprintf(listener->stored, sizeof listener->stored, "%s", stored);
    if (rpc_server_resume(server, fd, stored + strlen(prefix)) < 0)
        unstore(listener);
    else
        log_debug("%s: goes on", name);
    fd_store_drop(store, prefix); /* what else there may be is of before */
}

/* One that cannot be kept now is tried again with the next look. */
static void store(struct listener *listener)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX], name[FD_STORE_NAME_BYTES_MAX + 1];
    int fd = rpc_server_listener(listener->server, tag);
    size_t len;

    if (fd < 0 || !fd_store_usable(listener->store))
        return;
    put_prefix(listener, name);
    len = strlen(name);
    snprintf(name + len, sizeof name - len, "%s", tag);
    if (strcmp(name, listener->stored) == 0)
        return;
    unstore(listener);
    if (fd_store_put(listener->store, name, fd) == 0)
        memcpy(listener->stored, name, sizeof name);
}

int listener_look(struct listener *listener)
{
    int result = rpc_server_listen(listener->server);

    if (result >= 0)
        store(listener);
    return result;
}

void listener_fini(struct listener *listener)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];
    int fd = rpc_server_listener(listener->server, tag);

    if (fd >= 0)
        shutdown(fd, SHUT_RDWR); /* the manager's duplicate is open until it has read of that */
    unstore(listener);
}
