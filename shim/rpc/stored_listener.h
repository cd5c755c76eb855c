/*
 * A listening socket that the service manager keeps: after a kill -9 the next process goes on with
 * it, so that its name never leads nowhere, and who connects meanwhile waits instead of being
 * refused.
 *
 * What the manager keeps is named after the socket and its file, so that a socket whose file was
 * removed or replaced while nobody looked is told from one that is still reached.
 */
#ifndef SHIM_RPC_STORED_LISTENER_H
#define SHIM_RPC_STORED_LISTENER_H

#include <stdbool.h>

#include "shim/fd_store.h"
#include "shim/rpc/socket_file.h"

/* What all such names in the store begin with. */
#define STORED_LISTENERS "endpoint/"

struct stored_listener {
    /* private */
    struct fd_store *store;
    const char *name;
    char stored[FD_STORE_NAME_BYTES_MAX + 1]; /* as the manager keeps it; empty: it does not */
};

/* `name` is the socket's among those of the process. `store` (NULL: there is none) and it are
 * borrowed until the end. */
void stored_listener_init(struct stored_listener *listener, struct fd_store *store,
                          const char *name);

/* Whether one of that name was handed over, and not taken yet. `store` may be NULL. */
bool stored_listener_handed(const struct fd_store *store, const char *name);

/* One that was handed over, the caller's from now on, and the tag (socket_file_tag()) of the file
 * that it had; -1: none. The tag is borrowed until the next call. If it is not to be gone on with:
 * stored_listener_forget(). What else there may be under the name is dropped. */
int stored_listener_take(struct stored_listener *listener, const char **tag)
    __attribute__((warn_unused_result));

/* Sees to it that the manager keeps `fd`, and nothing else under the name. What it does not take
 * now is tried again with the next call. */
void stored_listener_put(struct stored_listener *listener, int fd, const char *tag);

/* The manager is to let go of it. */
void stored_listener_forget(struct stored_listener *listener);

/* The same of one that nobody is to go on with, `fd`, before it is closed here; -1: none
 * listens. */
void stored_listener_end(struct stored_listener *listener, int fd);

#endif
