/*
 * A server whose clients do not notice that its process was killed: its listening socket
 * (shim/rpc/stored_listener.h) and its connections (kept_connection.h) are kept by the service
 * manager, and the next process goes on with them. Without one it is a server like others.
 */
#ifndef SHIM_BRIDGE_KEPT_SERVER_H
#define SHIM_BRIDGE_KEPT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "shim/bridge/kept_call.h"
#include "shim/fd_store.h"
#include "shim/rpc/socket_file.h"

struct kept_server;

/*
 * At `place` (copied), whose name within its directory is the server's among those of the process.
 * That name, `store` (NULL: none) and `methods` are borrowed until it is closed. Goes on with what
 * was handed over, with kept_server_go_on(). NULL: out of memory.
 */
struct kept_server *kept_server_new(uv_loop_t *loop, const struct socket_place *place,
                                    struct fd_store *store, const struct kept_method *methods,
                                    size_t methods_len, void *user);

/* Once, when its handlers can be called: takes up what the process before has left. */
void kept_server_go_on(struct kept_server *server);

/* As rpc_server_listen(). */
int kept_server_listen(struct kept_server *server) __attribute__((warn_unused_result));

/* Whether the next process goes on with its listener, from the next kept_server_listen() on; at
 * first it does. */
void kept_server_set_kept(struct kept_server *server, bool kept);

/* Whether a client has a connection. */
bool kept_server_is_connected(const struct kept_server *server);

/* Ends the connections, their calls are gone without a word. For how long, in ms, the client should
 * be left alone then: KEPT_LEAVE_MS from the end of one that it had with another process. */
uint64_t kept_server_disconnect(struct kept_server *server);

/* Ends connections and listener, removes the socket file if it is its own; or, `leaves`, what the
 * manager keeps is left to the next process, with the file. Frees. Accepts NULL. */
void kept_server_close(struct kept_server *server, bool leaves);

#endif
