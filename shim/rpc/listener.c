#include "shim/rpc/listener.h"

#include "shim/log.h"

void listener_init(struct listener *listener, struct rpc_server *server, struct fd_store *store,
                   const char *name)
{
    const char *tag;
    int fd;

    listener->server = server;
    stored_listener_init(&listener->stored, store, name);
    fd = stored_listener_take(&listener->stored, &tag);
    if (fd < 0)
        return;
    if (rpc_server_resume(server, fd, tag) < 0)
        stored_listener_forget(&listener->stored);
    else
        log_debug("%s: goes on", name);
}

int listener_look(struct listener *listener)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];
    int result = rpc_server_listen(listener->server);
    int fd = result < 0 ? -1 : rpc_server_listener(listener->server, tag);

    if (fd >= 0)
        stored_listener_put(&listener->stored, fd, tag);
    return result;
}

void listener_fini(struct listener *listener)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];

    stored_listener_end(&listener->stored, rpc_server_listener(listener->server, tag));
}
