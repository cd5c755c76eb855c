/*
 * The listening socket of one endpoint, kept by the service manager: after a kill -9 the next
 * process goes on with it, so that its name never leads nowhere, and who connects meanwhile waits
 * instead of being refused.
 *
 * What the manager keeps is named after the socket and its file, so that a socket whose file was
 * removed or replaced while nobody looked is told from one that is still reached.
 */
#ifndef SHIM_BRIDGE_LISTENER_H
#define SHIM_BRIDGE_LISTENER_H

#include "shim/fd_store.h"
#include "shim/rpc/rpc.h"

/* What all names in the store begin with. */
#define LISTENER_STORED "endpoint/"

struct listener {
    /* private */
    struct rpc_server *server;
    struct fd_store *store;
    const char *name;
    char stored[FD_STORE_NAME_BYTES_MAX + 1]; /* as the manager keeps it; empty: it does not */
};

/* `name` is the socket's, within its directory. All is borrowed until the end. Goes on with a
 * listener that was handed over, if its file is there. */
void listener_init(struct listener *listener, struct rpc_server *server, struct fd_store *store,
                   const char *name);

/* As rpc_server_listen(), and sees to it that the manager keeps what listens. */
int listener_look(struct listener *listener) __attribute__((warn_unused_result));

/* Nobody is to go on with it; before rpc_server_close(). */
void listener_fini(struct listener *listener);

#endif
