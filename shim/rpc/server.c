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
    int fd;          /* listening; -1: nobody listens */
    uv_poll_t *poll; /* of it: libuv's own listening tries on and on while accept(2) fails */
    uv_timer_t retry;
    unsigned handles; /* not yet closed */
    bool closing;
    bool waiting; /* somebody, for all that is known, */
    int client;   /* and this one, for memory; -1: none */
    bool told;    /* why nobody is taken */
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

static void on_client(uv_poll_t *poll, int status, int events);

static void listen_on(struct rpc_server *server, bool on)
{
    if (on)
        uv_poll_start(server->poll, UV_READABLE, on_client);
    else
        uv_poll_stop(server->poll);
}

/* Told once, until it goes on. */
static void pause_accepting(struct rpc_server *server, int err)
{
    if (!server->told)
        log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                    uv_strerror(err));
    server->told = true;
    listen_on(server, false);
    uv_timer_start(&server->retry, retry_passed, SERVER_RETRY_MS, 0);
}

/* 0, or a negative errno: nobody waits (-EAGAIN), or he does so on. */
static int take_client(struct rpc_server *server)
{
    struct caller *caller;
    int fd, err;

    if (server->client < 0)
        server->client = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (server->client < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
    err = caller_new(server->loop, &server->service, &server->callers, &caller);
    if (err)
        return err;
    fd = server->client;
    server->client = -1;
    server->callers_len++;
    caller_accept(caller, fd);
    return 0;
}

/* Takes the connection that waits, if one does and there is room. */
static void accept_next(struct rpc_server *server)
{
    int err;

    if (!server->waiting)
        return;
    if (server->callers_len >= server->service.limits.connections) {
        listen_on(server, false);
        make_room(server);
        return;
    }
    err = take_client(server);
    if (err && err != -EAGAIN) {
        pause_accepting(server, err);
        return;
    }
    server->waiting = false;
    server->told = false;
    listen_on(server, true);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    struct rpc_server *server = poll->data;

    (void)events;
    server->waiting = true;
    if (status < 0) /* libuv has stopped to look */
        pause_accepting(server, status);
    else
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
    if (server->fd < 0)
        return;
    uv_close((uv_handle_t *)server->poll, listener_closed);
    close(server->fd);
    if (server->client >= 0)
        close(server->client);
    server->poll = NULL;
    server->fd = server->client = -1;
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
    uv_poll_t *poll = malloc(sizeof *poll);
    int err = poll ? uv_poll_init(server->loop, poll, fd) : -ENOMEM;

    if (err) {
        free(poll);
        close(fd);
        return err;
    }
    poll->data = server;
    server->poll = poll;
    server->fd = fd;
    server->handles++;
    listen_on(server, true);
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
    server->fd = server->client = -1;
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

    if (server->fd >= 0 && socket_file_there(&server->file))
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

    assert(server->fd < 0);
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
    if (server->fd >= 0)
        socket_file_tag(&server->file, tag);
    return server->fd;
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
