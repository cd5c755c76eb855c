/*
 * One client connection and the runtime connection made for it, on libuv: moves bytes between the
 * pipes and the session, holds back the faster end, and ends both together.
 *
 * How it ends: either end's close lets what is queued for the other out first (RELAY_LINGER_MS at
 * most). A client that has only shut down its sending side still gets its answers; one that is gone
 * ends its held calls at once.
 */
#ifndef SHIM_RELAY_CONNECTION_H
#define SHIM_RELAY_CONNECTION_H

#include <sys/types.h>

#include <uv.h>

#include "shim/relay/session.h"

struct connection;

/* `user` is that of connection_accept(). */
struct connection_ops {
    /* Whether the runtime could be reached for this connection: 0 or a uv error. */
    void (*runtime)(void *user, int error);
    /* Both pipes are closed and every call has ended; the connection is freed after return. */
    void (*closed)(void *user, struct connection *connection);
};

/*
 * Takes the connection that waits on `listener` and connects to `runtime_path`. `read_buffer` of
 * RELAY_READ_BYTES is shared with every connection of the loop. `owner` is the session's, which
 * begins when both ends are there; its client's process is the one at connect(2) (SO_PEERCRED). All
 * pointers are borrowed until closed(). NULL when there is no memory or nothing to accept; a runtime
 * that is away closes the client's connection later.
 */
struct connection *connection_accept(uv_stream_t *listener, const char *runtime_path,
                                     char *read_buffer, const struct connection_ops *ops,
                                     void *user, struct session_owner owner);

/* Lets the calls under way finish: the client is asked to close when they are over. One that has
 * not begun to speak is closed. */
void connection_drain(struct connection *c);

/* Closes both pipes now; closed() follows. May be called again. */
void connection_close(struct connection *c);

/* For the owner's list of connections. */
struct connection *connection_next(const struct connection *c);
void connection_link(struct connection *c, struct connection **head);
void connection_unlink(struct connection *c, struct connection **head);

#endif
