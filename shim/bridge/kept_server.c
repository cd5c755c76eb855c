#include "shim/bridge/kept_server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/bridge/kept_connection.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/rpc/stored_listener.h"

struct kept_server {
    struct kept_service service;
    struct socket_file file;
    struct stored_listener stored;
    const char **paths;
    int fd;          /* listening; -1: none */
    uv_poll_t *poll; /* of it */
    uv_timer_t
        timer; /* settled; or, later, a connection could not be taken, or there was no room */
    struct kept_connections connections;
    size_t len;
    unsigned handles; /* not closed */
    bool closing;
    bool settled;
    uint64_t ended_ms; /* when a connection of another process' was, the loop's time; 0: never */
};

/* ---- the gate ---- */

static void maybe_free(struct kept_server *server)
{
    if (!server->closing || server->handles > 0 || server->len > 0)
        return;
    socket_file_fini(&server->file);
    free(server->paths);
    free(server);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct kept_server *server = handle->data;

    server->handles--;
    maybe_free(server);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct kept_server *server = handle->data;

    free(handle);
    server->handles--;
    maybe_free(server);
}

/* ---- who comes ---- */

static void accept_waiting(struct kept_server *server);

static void on_listener(uv_poll_t *poll, int status, int events)
{
    (void)events;
    if (status == 0)
        accept_waiting(poll->data);
}

static void listen_on(struct kept_server *server, bool on)
{
    if (!server->poll)
        return;
    if (on)
        uv_poll_start(server->poll, UV_READABLE, on_listener);
    else
        uv_poll_stop(server->poll);
}

static void on_gone(void *user)
{
    struct kept_server *server = user;

    if (server->len-- == KEPT_CONNECTIONS_MAX)
        listen_on(server, true);
    maybe_free(server);
}

static void on_timer(uv_timer_t *timer);

static void pause_accepting(struct kept_server *server)
{
    listen_on(server, false);
    if (server->settled)
        uv_timer_start(&server->timer, on_timer, KEPT_ACCEPT_AGAIN_MS, 0);
}

/* Whoever forgets to close his connections must not keep the kubelet out. */
static void make_room(struct kept_server *server)
{
    struct pollfd waiting = {.fd = server->fd, .events = POLLIN};

    if (poll(&waiting, 1, 0) <= 0 || !kept_connections_make_room(&server->connections))
        pause_accepting(server);
}

static void on_timer(uv_timer_t *timer)
{
    struct kept_server *server = timer->data;

    if (!server->settled)
        kept_connections_settled(&server->connections);
    server->settled = true;
    if (server->len < KEPT_CONNECTIONS_MAX)
        listen_on(server, true);
    else
        make_room(server);
}

static void accept_waiting(struct kept_server *server)
{
    while (server->len < KEPT_CONNECTIONS_MAX) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), err;

        if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        err = fd < 0 ? -errno : kept_connection_new(&server->service, fd, &server->connections);
        if (err) {
            log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                        strerror(-err));
            pause_accepting(server);
            return;
        }
        server->len++;
    }
    listen_on(server, false);
    make_room(server);
}

/* ---- listening ---- */

static void listener_close(struct kept_server *server)
{
    if (server->fd < 0)
        return;
    uv_close((uv_handle_t *)server->poll, on_poll_closed);
    close(server->fd);
    server->poll = NULL;
    server->fd = -1;
}

/* Takes the listening `fd`, also on failure. 0 or a negative errno. */
static int listener_open(struct kept_server *server, int fd)
{
    uv_poll_t *poll = malloc(sizeof *poll);
    int err = poll ? uv_poll_init(server->service.loop, poll, fd) : -ENOMEM;

    if (err) {
        free(poll);
        close(fd);
        return err;
    }
    poll->data = server;
    server->poll = poll;
    server->fd = fd;
    server->handles++;
    listen_on(server, server->len < KEPT_CONNECTIONS_MAX);
    return 0;
}

static void store_listener(struct kept_server *server)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];

    if (!server->service.store)
        return;
    socket_file_tag(&server->file, tag);
    stored_listener_put(&server->stored, server->fd, tag);
}

/* The listener from before goes when there is a new one, and not sooner: it may be the one that
 * still works. */
int kept_server_listen(struct kept_server *server)
{
    bool there = server->fd >= 0 && socket_file_there(&server->file);
    int fd, err = there ? 0 : socket_file_make(&server->file, &fd);

    if (!there && !err) {
        listener_close(server);
        err = listener_open(server, fd);
        if (err)
            socket_file_remove(&server->file);
    }
    if (err)
        return err;
    store_listener(server);
    return !there;
}

static void resume_listener(struct kept_server *server)
{
    const char *tag;
    int fd = server->service.store ? stored_listener_take(&server->stored, &tag) : -1;

    if (fd < 0)
        return;
    if (!socket_file_resume(&server->file, tag)) {
        close(fd);
        stored_listener_forget(&server->stored);
    } else if (listener_open(server, fd) < 0) {
        socket_file_remove(&server->file);
        stored_listener_forget(&server->stored);
    } else {
        log_debug("%s: goes on", server->service.name);
    }
}

/* ---- life ---- */

struct kept_server *kept_server_new(uv_loop_t *loop, const struct socket_place *place,
                                    struct fd_store *store, const struct kept_method *methods,
                                    size_t methods_len, void *user)
{
    struct kept_server *server = calloc(1, sizeof *server);
    const char **paths = calloc(methods_len, sizeof *paths);

    if (!server || !paths || socket_file_init(&server->file, place) < 0) {
        free(server);
        free(paths);
        return NULL;
    }
    for (size_t i = 0; i < methods_len; i++)
        paths[i] = methods[i].path;
    server->service = (struct kept_service){.loop = loop,
                                            .store = store,
                                            .name = place->name,
                                            .methods = methods,
                                            .paths = paths,
                                            .methods_len = methods_len,
                                            .user = user,
                                            .gone = on_gone,
                                            .gone_user = server};
    server->paths = paths;
    server->fd = -1;
    LIST_INIT(&server->connections);
    stored_listener_init(&server->stored, store, place->name);
    uv_timer_init(loop, &server->timer);
    server->timer.data = server;
    server->handles = 1;
    return server;
}

void kept_server_go_on(struct kept_server *server)
{
    size_t ended;

    server->len = kept_connections_resume(&server->service, &server->connections, &ended);
    if (ended > 0) {
        uv_update_time(server->service.loop); /* the loop has not run yet */
        server->ended_ms = uv_now(server->service.loop);
    }
    resume_listener(server);
    uv_timer_start(&server->timer, on_timer, KEPT_SETTLED_MS, 0);
    kept_connections_go_on(&server->connections);
}

bool kept_server_is_connected(const struct kept_server *server)
{
    return !LIST_EMPTY(&server->connections);
}

uint64_t kept_server_disconnect(struct kept_server *server)
{
    uint64_t now_ms;

    uv_update_time(server->service.loop);
    now_ms = uv_now(server->service.loop);
    while (!LIST_EMPTY(&server->connections)) {
        if (kept_connection_is_resumed(LIST_FIRST(&server->connections)))
            server->ended_ms = now_ms;
        kept_connection_end(LIST_FIRST(&server->connections));
    }
    return server->ended_ms && now_ms - server->ended_ms < KEPT_LEAVE_MS
               ? server->ended_ms + KEPT_LEAVE_MS - now_ms
               : 0;
}

void kept_server_close(struct kept_server *server, bool leaves)
{
    if (!server)
        return;
    server->closing = true;
    if (!leaves) {
        /* The name goes before the socket does: what is served there later is not ours to
         * remove. */
        socket_file_remove(&server->file);
        stored_listener_end(&server->stored, server->fd);
        kept_server_disconnect(server);
    }
    while (!LIST_EMPTY(&server->connections))
        kept_connection_leave(LIST_FIRST(&server->connections));
    listener_close(server);
    uv_close((uv_handle_t *)&server->timer, on_timer_closed);
}
