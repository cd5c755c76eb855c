/*
 * One connection of a client's that another process can go on with (kept_socket.h, h2_state.h):
 * kept by the service manager, if there is one, from before its first byte until its end.
 */
#ifndef SHIM_BRIDGE_KEPT_CONNECTION_H
#define SHIM_BRIDGE_KEPT_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "shim/bridge/kept_call.h"
#include "shim/fd_store.h"

/* What the names of all that is kept begin with: a connection's socket and memory have one. */
#define KEPT_CONNECTIONS "connection/"

struct kept_connection;
LIST_HEAD(kept_connections, kept_connection);

/* What all connections of a server have in common; borrowed by each until it is gone. */
struct kept_service {
    uv_loop_t *loop;
    struct fd_store *store; /* NULL: none */
    const char *name;       /* of the server's socket */
    const struct kept_method *methods;
    const char *const *paths; /* theirs */
    size_t methods_len;
    void *user;
    /* One is gone, out of the list and freed. */
    void (*gone)(void *user);
    void *gone_user;
};

/* On the connected socket `fd`, which on failure stays the caller's. 0 or a negative errno. */
int kept_connection_new(const struct kept_service *service, int fd,
                        struct kept_connections *connections) __attribute__((warn_unused_result));

/* Takes all that was handed over to the service: how many go on, and, *ended, how many cannot and
 * were ended. */
size_t kept_connections_resume(const struct kept_service *service,
                               struct kept_connections *connections, size_t *ended);
/* Whether something was handed over to the service of that name, and not taken yet. `store` may be
 * NULL. */
bool kept_connections_handed(const struct fd_store *store, const char *name);
/* Next: what came for the process before, and was not answered, is asked. */
void kept_connections_go_on(const struct kept_connections *connections);
/* This process lives: see kept_socket_settled(). */
void kept_connections_settled(const struct kept_connections *connections);

/* For one more: the connection ends that has been without a call for longest, if that is
 * KEPT_IDLE_MS at least. False: there is none. */
bool kept_connections_make_room(const struct kept_connections *connections);

/* Whether a process before this one has had it. */
bool kept_connection_is_resumed(const struct kept_connection *connection);

/* Its calls are gone, without a word; it itself is gone from the loop. */
void kept_connection_end(struct kept_connection *connection);
/* The same, but what is kept of it stays for the next process. */
void kept_connection_leave(struct kept_connection *connection);

#endif
