#include "shim/bridge/kept_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/bridge/kept_connection.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/rpc/acceptor.h"
#include "shim/rpc/stored_listener.h"

struct kept_server {
    struct kept_service service;
    struct socket_file file;
    struct stored_listener stored;
    const char **paths;
    struct acceptor *acceptor; /* NULL: nobody listens */
    uv_timer_t settling;
    struct kept_connections connections;
    size_t len;
    unsigned handles; /* not closed */
    bool closing;
    bool settled;
    bool unkept;       /* kept_server_set_kept() */
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

static void on_handle_closed(struct kept_server *server)
{
    server->handles--;
    maybe_free(server);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_acceptor_closed(void *user)
{
    on_handle_closed(user);
}

/* ---- who comes ---- */

static void on_gone(void *user)
{
    struct kept_server *server = user;

    server->len--;
    if (server->closing)
        maybe_free(server);
    else
        acceptor_go_on(server->acceptor);
}

static void on_settled(uv_timer_t *timer)
{
    struct kept_server *server = timer->data;

    kept_connections_settled(&server->connections);
    server->settled = true;
}

/* Whoever forgets to close his connections must not keep the kubelet out. */
static bool has_room(void *user)
{
    struct kept_server *server = user;
    bool room = server->len < KEPT_CONNECTIONS_MAX;

    if (!room && server->settled)
        kept_connections_make_room(&server->connections);
    return room;
}

static int take_client(void *user, int fd)
{
    struct kept_server *server = user;
    int err = kept_connection_new(&server->service, fd, &server->connections);

    if (!err)
        server->len++;
    return err;
}

/* ---- listening ---- */

/* On the listening `fd`, which it takes also on failure. The one from before goes when there is a
 * new one, and not sooner: it may be the one that still works. */
static int accept_from(struct kept_server *server, int fd)
{
    const struct acceptor_owner owner = {.name = socket_file_path(&server->file),
                                         .user = server,
                                         .has_room = has_room,
                                         .take = take_client,
                                         .closed = on_acceptor_closed};
    struct acceptor *before = server->acceptor;
    int err = acceptor_open(server->service.loop, fd, &owner, &server->acceptor);

    if (err) {
        socket_file_remove(&server->file);
        return err;
    }
    server->handles++;
    acceptor_close(before);
    return 0;
}

static void store_listener(struct kept_server *server)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];

    if (!server->service.store)
        return;
    if (server->unkept) {
        stored_listener_forget(&server->stored);
        return;
    }
    socket_file_tag(&server->file, tag);
    stored_listener_put(&server->stored, acceptor_fd(server->acceptor), tag);
}

int kept_server_listen(struct kept_server *server)
{
    bool there = server->acceptor && socket_file_there(&server->file);
    int fd, err = there ? 0 : socket_file_make(&server->file, &fd);

    if (!there && !err)
        err = accept_from(server, fd);
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
    } else if (accept_from(server, fd) < 0) {
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
    LIST_INIT(&server->connections);
    stored_listener_init(&server->stored, store, place->name);
    uv_timer_init(loop, &server->settling);
    server->settling.data = server;
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
    uv_timer_start(&server->settling, on_settled, KEPT_SETTLED_MS, 0);
    kept_connections_go_on(&server->connections);
}

void kept_server_set_kept(struct kept_server *server, bool kept)
{
    server->unkept = !kept;
    if (server->acceptor)
        store_listener(server);
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
        stored_listener_end(&server->stored, acceptor_fd(server->acceptor));
        kept_server_disconnect(server);
    }
    while (!LIST_EMPTY(&server->connections))
        kept_connection_leave(LIST_FIRST(&server->connections));
    acceptor_close(server->acceptor);
    uv_close((uv_handle_t *)&server->settling, on_timer_closed);
}
