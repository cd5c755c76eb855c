/*
 * One client connection and the runtime connection made for it, on libuv: moves bytes between the
 * sockets and the session, holds back the faster end, and ends both together.
 *
 * With a service manager that keeps descriptors both sockets and a journal outlive this process,
 * and the next one goes on (kept.h): neither end sees more than a pause.
 *
 * How it ends: either end's close lets what is queued for the other out first (RELAY_LINGER_MS at
 * most). A client that has only shut down its sending side still gets its answers; one that is gone
 * ends its held calls at once, or when it is looked at (RELAY_LOOK_MS).
 */
#ifndef SHIM_RELAY_CONNECTION_H
#define SHIM_RELAY_CONNECTION_H

#include <stdbool.h>
#include <sys/types.h>

#include <uv.h>

#include "shim/fd_store.h"
#include "shim/relay/kept.h"
#include "shim/relay/session.h"

struct connection;

struct connection_ops {
    /* Whether the runtime could be reached for this connection: 0 or a uv error. */
    void (*runtime)(void *user, int error);
    /* Both sockets are closed and every call has ended; the connection is freed after return. */
    void (*closed)(void *user, struct connection *connection);
};

/* Of all connections together, by whom the bytes are for (enum session_end). */
struct connection_counts {
    uint64_t bytes[2];
    uint64_t waiting_max[2]; /* bytes that one end has not taken, at their most */
};

/* What all connections of a relay have in common; borrowed until the last is closed. */
struct connection_world {
    uv_loop_t *loop;
    char *read_buffer;      /* of RELAY_READ_BYTES */
    struct fd_store *store; /* NULL: there is none */
    const struct connection_ops *ops;
    void *user;
    struct connection_counts *counts;
    struct tally_counts *tally; /* NULL: calls are not counted */
    struct session_owner owner; /* of the sessions, which begin when both ends are there */
};

/*
 * Takes the connected socket `client`, which does not block, and connects to `runtime_path`
 * (borrowed until return). ops->runtime() may run before return. The session's client is the
 * process at connect(2) (SO_PEERCRED). 0 and *out: a runtime that is away closes the client's
 * connection later. -ENOMEM, -EMFILE, -ENFILE, -EAGAIN (the runtime's backlog is full): the socket
 * is not taken, and is to be offered again.
 */
int connection_accept(const struct connection_world *world, int client, const char *runtime_path,
                      struct connection **out) __attribute__((warn_unused_result));

/* Goes on with one of a process before this one: what `kept` holds is taken, also on failure.
 * NULL: it cannot be gone on with; both ends are told by its end. */
struct connection *connection_resume(const struct connection_world *world, struct kept *kept);

/* Lets the calls under way finish: the client is asked to close when they are over. One that has
 * not begun to speak is closed. */
void connection_drain(struct connection *c);

/* Closes both sockets now; closed() follows. May be called again. */
void connection_close(struct connection *c);

/* The same, but leaves it to the next process, if that can go on with it: for the owner of its
 * session it is gone before return. False: it cannot, and nothing was done. In the middle of a
 * header block it waits for the rest, until uv_hrtime() is `until_ns`: without it another release
 * cannot go on. */
bool connection_leave(struct connection *c, uint64_t until_ns) __attribute__((warn_unused_result));

/* For the owner's list of connections. */
struct connection *connection_next(const struct connection *c);
void connection_link(struct connection *c, struct connection **head);
void connection_unlink(struct connection *c, struct connection **head);

#endif
