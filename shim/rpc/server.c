/* The server: a listening socket, and who has come to it (caller.h). */
#include "shim/rpc/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/rpc/caller.h"
#include "shim/rpc/socket_file.h"

/* Unless its owner says otherwise. */
static const struct rpc_limits LIMITS = {
    .connections = 256, .request_bytes = LINK_BUDGET_BYTES, .queue_bytes = RPC_QUEUE_BYTES_MAX};
/* When a connection that could not be taken is tried again. */
#define SERVER_RETRY_MS 1000
/* A connection that has had no call for so long may end for another. */
#define SERVER_IDLE_MS 1000

struct rpc_server {
    uv_loop_t *loop;
    uv_pipe_t *listener; /* NULL: nobody listens */
    uv_timer_t retry;
    unsigned handles; /* not yet closed */
    bool closing;
    bool waiting; /* libuv holds a connection for us, and asks for the next only after that */
    struct rpc_service service;
    struct callers callers;
    size_t callers_len;
    size_t queued_max;
    struct socket_file file;
};

/* ---- clients ---- */

static void accept_next(struct rpc_server *server);

/* The gate: the handles are closed and the connections are gone. */
static void server_maybe_free(struct rpc_server *server)
{
    if (server->handles > 0 || !LIST_EMPTY(&server->callers))
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
        accept_next(server);
}

static void retry_passed(uv_timer_t *timer)
{
    accept_next(timer->data);
}

/* Which connection has been without a call for longest, and for long enough; NULL: none. */
static struct caller *find_idle(const struct rpc_server *server)
{
    uint64_t now_ms = uv_now(server->loop);
    struct caller *caller, *found = NULL;

    LIST_FOREACH(caller, &server->callers, entry)
    {
        if (caller->link.state == LINK_OPEN && LIST_EMPTY(&caller->calls) &&
            now_ms - caller->idle_since_ms >= SERVER_IDLE_MS &&
            (!found || caller->idle_since_ms < found->idle_since_ms))
            found = caller;
    }
    return found;
}

/* Whoever forgets to close his connections must not keep others out. */
static void make_room(struct rpc_server *server)
{
    struct caller *idle = find_idle(server);

    if (!idle) {
        uv_timer_start(&server->retry, retry_passed, SERVER_RETRY_MS, 0);
        return;
    }
    log_debug("%s: an idle connection of pid %d ends for another: there are %zu",
              socket_file_path(&server->file), idle->peer.pid, server->callers_len);
    caller_close(idle);
}

/* Takes the connection that waits, if one does and there is room. */
static void accept_next(struct rpc_server *server)
{
    struct caller *caller;
    int err;

    if (!server->waiting)
        return;
    if (server->callers_len >= server->service.limits.connections) {
        make_room(server);
        return;
    }
    err = caller_new(server->loop, &server->service, &server->callers, &caller);
    if (err) {
        log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                    uv_strerror(err));
        uv_timer_start(&server->retry, retry_passed, SERVER_RETRY_MS, 0);
        return;
    }
    server->callers_len++;
    server->waiting = false;
    caller_accept(caller, server->listener);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct rpc_server *server = listener->data;

    if (status < 0) {
        log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                    uv_strerror(status));
        return;
    }
    server->waiting = true;
    accept_next(server);
}

/* ---- the server ---- */

static void listener_closed(uv_handle_t *handle)
{
    struct rpc_server *server = handle->data;

    free(handle);
    server->handles--;
    server_maybe_free(server);
}

static void listener_close(struct rpc_server *server)
{
    if (!server->listener)
        return;
    uv_close((uv_handle_t *)server->listener, listener_closed);
    server->listener = NULL;
    server->waiting = false;
}

static void retry_closed(uv_handle_t *handle)
{
    struct rpc_server *server = handle->data;

    server->handles--;
    server_maybe_free(server);
}

static void close_handles(struct rpc_server *server)
{
    server->closing = true;
    listener_close(server);
    uv_close((uv_handle_t *)&server->retry, retry_closed);
}

/* Makes the listener of the listening `fd`, which it takes also on failure. */
static int listener_open(struct rpc_server *server, int fd)
{
    uv_pipe_t *pipe = malloc(sizeof *pipe);
    int err;

    if (!pipe) {
        close(fd);
        return -ENOMEM;
    }
    uv_pipe_init(server->loop, pipe, 0);
    pipe->data = server;
    server->listener = pipe;
    server->handles++;
    err = uv_pipe_open(pipe, fd);
    if (err)
        close(fd);
    else
        err = uv_listen((uv_stream_t *)pipe, SOMAXCONN, on_connection);
    if (err)
        listener_close(server);
    return err;
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
    uv_timer_init(loop, &server->retry);
    server->retry.data = server;
    server->handles = 1;
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

/* The listener from before goes when there is a new one, and not sooner: it may be the one that
 * still works. */
int rpc_server_listen(struct rpc_server *server)
{
    int fd, err;

    if (server->listener && socket_file_there(&server->file))
        return 0;
    err = socket_file_make(&server->file, &fd);
    if (err)
        return err;
    listener_close(server);
    err = listener_open(server, fd);
    if (err)
        socket_file_remove(&server->file);
    return err ? err : 1;
}

int rpc_server_resume(struct rpc_server *server, int fd, const char *tag)
{
    int err;

    assert(!server->listener);
    if (!socket_file_resume(&server->file, tag)) {
        close(fd);
        return -ESTALE;
    }
    err = listener_open(server, fd);
    if (err)
        socket_file_remove(&server->file);
    return err;
}

int rpc_server_listener(const struct rpc_server *server, char tag[SOCKET_FILE_TAG_BYTES_MAX])
{
    uv_os_fd_t fd;

    if (!server->listener || uv_fileno((uv_handle_t *)server->listener, &fd) < 0)
        return -1;
    socket_file_tag(&server->file, tag);
    return fd;
}

int rpc_server_open(uv_loop_t *loop, const char *path, const struct rpc_method *methods,
                    size_t methods_len, void *user, struct rpc_server **out)
{
    const struct socket_place place = {.name = path};
    struct rpc_server *server;
    int err = rpc_server_new(loop, &place, methods, methods_len, user, &server);
    if (err)
        return err;
    err = rpc_server_listen(server);
    if (err < 0) {
        rpc_server_close(server);
        return err;
    }
    *out = server;
    return 0;
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
    close_handles(server);
    rpc_server_disconnect(server);
}
