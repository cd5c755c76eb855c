/* The server: a listening socket, and who has come to it (caller.h). */
#include "shim/rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/rpc/acceptor.h"
#include "shim/rpc/caller.h"
#include "shim/rpc/incoming.h"
#include "shim/rpc/socket_file.h"

/* Unless its owner says otherwise. */
static const struct rpc_limits LIMITS = {.connections = 256,
                                         .request_bytes = LINK_BUDGET_BYTES,
                                         .queue_bytes = RPC_QUEUE_BYTES_MAX,
                                         .calls = LINK_STREAMS_MAX};
/* A connection that has had no call for so long may end for another, */
#define SERVER_IDLE_MS 1000
/* and so may one whose calls all wait for the client, for the rest of a request or to take an
 * answer, for so long. */
#define SERVER_STUCK_MS 10000

struct rpc_server {
    uv_loop_t *loop;
    struct acceptor *acceptor; /* NULL: nobody listens */
    unsigned acceptors;        /* not yet freed */
    bool closing;
    struct rpc_service service;
    struct callers callers;
    size_t callers_len;
    size_t queued_max;
    struct socket_file file;
};

/* ---- clients ---- */

/* The gate: nobody listens, and the connections are gone. */
static void server_maybe_free(struct rpc_server *server)
{
    if (!server->closing || server->acceptors > 0 || !LIST_EMPTY(&server->callers))
        return;
    socket_file_fini(&server->file);
    free(server);
}

/* A client has gone. */
static void on_gone(void *user)
{
    struct rpc_server *server = user;

    server->callers_len--;
    if (server->closing)
        server_maybe_free(server);
    else
        acceptor_go_on(server->acceptor);
}

/* Whether nobody here would miss it. */
static bool is_idle(const struct caller *caller, uint64_t now_ms)
{
    uint64_t least_ms = LIST_EMPTY(&caller->calls) ? SERVER_IDLE_MS : SERVER_STUCK_MS;

    return caller->link.state == LINK_OPEN && now_ms - caller->idle_since_ms >= least_ms &&
           !incoming_any_handled(caller);
}

/* Which connection has been so for longest; NULL: none. */
static struct caller *find_idle(const struct rpc_server *server)
{
    uint64_t now_ms = uv_now(server->loop);
    struct caller *caller, *found = NULL;

    LIST_FOREACH(caller, &server->callers, entry) {
        if (is_idle(caller, now_ms) && (!found || caller->idle_since_ms < found->idle_since_ms))
            found = caller;
    }
    return found;
}

/* Whoever forgets to close his connections must not keep others out. */
static void make_room(struct rpc_server *server)
{
    struct caller *idle = find_idle(server);

    if (!idle)
        return;
    log_debug("%s: an idle connection of pid %d ends for another: there are %zu",
              socket_file_path(&server->file), idle->peer.pid, server->callers_len);
    caller_close(idle);
}

static bool has_room(void *user)
{
    struct rpc_server *server = user;
    bool room = server->callers_len < server->service.limits.connections;

    if (!room)
        make_room(server);
    return room;
}

static int take_client(void *user, int fd)
{
    struct rpc_server *server = user;
    struct caller *caller;
    int err = caller_new(server->loop, &server->service, &server->callers, &caller);

    if (err)
        return err;
    server->callers_len++;
    caller_accept(caller, fd);
    return 0;
}

/* ---- the server ---- */

static void on_acceptor_closed(void *user)
{
    struct rpc_server *server = user;

    server->acceptors--;
    server_maybe_free(server);
}

/* On the listening `fd`, which it takes also on failure. The one from before goes when there is a
 * new one, and not sooner: it may be the one that still works. */
static int accept_from(struct rpc_server *server, int fd)
{
    const struct acceptor_owner owner = {.name = socket_file_path(&server->file),
                                         .user = server,
                                         .has_room = has_room,
                                         .take = take_client,
                                         .closed = on_acceptor_closed};
    struct acceptor *before = server->acceptor;
    int err = acceptor_open(server->loop, fd, &owner, &server->acceptor);

    if (err) {
        socket_file_remove(&server->file);
        return err;
    }
    server->acceptors++;
    acceptor_close(before);
    return 0;
}

int rpc_server_new(uv_loop_t *loop, const struct socket_place *place,
                   const struct rpc_method *methods, size_t methods_len, void *user,
                   struct rpc_server **out)
{
    struct rpc_server *server = calloc(1, sizeof *server);

    if (!server)
        return -ENOMEM;
    if (socket_file_init(&server->file, place) < 0) {
        free(server);
        return -ENOMEM;
    }
    server->loop = loop;
    server->service = (struct rpc_service){.queued_max = &server->queued_max,
                                           .methods = methods,
                                           .methods_len = methods_len,
                                           .user = user,
                                           .limits = LIMITS,
                                           .name = socket_file_path(&server->file),
                                           .gone = on_gone,
                                           .gone_user = server};
    LIST_INIT(&server->callers);
    *out = server;
    return 0;
}

void rpc_server_set_pings(struct rpc_server *server, uint64_t every_ms)
{
    server->service.pings_ms = every_ms;
}

void rpc_server_set_limits(struct rpc_server *server, const struct rpc_limits *limits)
{
    server->service.limits = *limits;
}

size_t rpc_server_queued_max(const struct rpc_server *server)
{
    return server->queued_max;
}

int rpc_server_listen(struct rpc_server *server)
{
    int fd, err;

    if (server->acceptor && socket_file_there(&server->file))
        return 0;
    err = socket_file_make(&server->file, &fd);
    if (!err)
        err = accept_from(server, fd);
    return err ? err : 1;
}

int rpc_server_resume(struct rpc_server *server, int fd, const char *tag)
{
    assert(!server->acceptor);
    if (!socket_file_resume(&server->file, tag)) {
        close(fd);
        return -ESTALE;
    }
    return accept_from(server, fd);
}

int rpc_server_listener(const struct rpc_server *server, char tag[SOCKET_FILE_TAG_BYTES_MAX])
{
    if (server->acceptor)
        socket_file_tag(&server->file, tag);
    return acceptor_fd(server->acceptor);
}

void rpc_server_disconnect(struct rpc_server *server)
{
    struct caller *caller, *next;

    for (caller = LIST_FIRST(&server->callers); caller; caller = next) {
        next = LIST_NEXT(caller, entry);
        caller_close(caller);
    }
}

void rpc_server_close(struct rpc_server *server)
{
    if (!server)
        return;
    /* The name goes before the socket does: what is served there later is not ours to remove. */
    socket_file_remove(&server->file);
    acceptor_close(server->acceptor);
    rpc_server_disconnect(server);
    server->closing = true;
    server_maybe_free(server);
}
