/*
 * The listening socket of an rpc_server, kept by the service manager (stored_listener.h).
 */
#ifndef SHIM_RPC_LISTENER_H
#define SHIM_RPC_LISTENER_H

#include "shim/rpc/rpc.h"
#include "shim/rpc/stored_listener.h"

struct listener {
    /* private */
    struct rpc_server *server;
    struct stored_listener stored;
};

/* `name` is the socket's among those of the process. All is borrowed until the end; `store` may be
 * NULL. Goes on with a listener that was handed over, if its file is there. */
void listener_init(struct listener *listener, struct rpc_server *server, struct fd_store *store,
                   const char *name);

/* As rpc_server_listen(), and sees to it that the manager keeps what listens. */
int listener_look(struct listener *listener) __attribute__((warn_unused_result));

/* Nobody is to go on with it; before rpc_server_close(). */
void listener_fini(struct listener *listener);

#endif
