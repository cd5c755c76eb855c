#include "shim/bridge/kept_connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/bridge/kept_inside.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/rpc/unix_socket.h"

/* Of the process, whichever servers they are of. */
static LIST_HEAD(, kept_connection) all = LIST_HEAD_INITIALIZER(all);
static size_t all_held_bytes;

static void set_held(struct kept_connection *connection, size_t bytes)
{
    all_held_bytes += bytes - connection->held_bytes;
    connection->held_bytes = bytes;
}

/* ---- the manager's ---- */

/* None begins another's: a cookie has '/' behind it. */
static void name_of(const struct kept_connection *connection,
                    char name[FD_STORE_NAME_BYTES_MAX + 1])
{
    snprintf(name, FD_STORE_NAME_BYTES_MAX + 1, KEPT_CONNECTIONS "%s/%" PRIx64 "/",
             connection->service->name, kept_socket_cookie(connection->kept));
}

/* One that does not read is told with the next bytes that come. */
static void store(struct kept_connection *connection)
{
    struct fd_store *store = connection->service->store;
    char name[FD_STORE_NAME_BYTES_MAX + 1];
    int fds[KEPT_DESCRIPTORS], err;

    if (connection->told || !store || !fd_store_usable(store))
        return;
    for (int i = 0; i < KEPT_DESCRIPTORS; i++)
        fds[i] = kept_socket_fd(connection->kept, (enum kept_descriptor)i);
    name_of(connection, name);
    err = fd_store_put_all(store, name, fds, KEPT_DESCRIPTORS);
    connection->told = err != -EAGAIN;
    if (err == 0)
        connection->reader.kept = fd_store_promised(store) > 0;
    else if (connection->told)
        log_debug("%s: a connection is not kept", connection->service->name);
}

static void unstore(const struct kept_connection *connection)
{
    struct fd_store *store = connection->service->store;
    char name[FD_STORE_NAME_BYTES_MAX + 1];

    if (!connection->told || !store || !fd_store_usable(store))
        return;
    name_of(connection, name);
    (void)!fd_store_remove(store, name);
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct kept_connection *connection = handle->data;
    const struct kept_service *service = connection->service;

    free(connection);
    service->gone(service->gone_user);
}

void kept_connection_leave(struct kept_connection *connection)
{
    if (connection->ended)
        return;
    connection->ended = true;
    LIST_REMOVE(connection, entry);
    LIST_REMOVE(connection, of_all);
    set_held(connection, 0);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
    h2_reader_fini(&connection->reader);
    kept_socket_free(connection->kept);
    connection->kept = NULL;
}

/* The manager has a duplicate, which closing does not end. */
void kept_connection_end(struct kept_connection *connection)
{
    if (connection->ended)
        return;
    shutdown(kept_socket_fd(connection->kept, KEPT_SOCKET), SHUT_RDWR);
    unstore(connection);
    kept_connection_leave(connection);
}

/* The client's doing: who answers is told. */
static void lose(struct kept_connection *connection, const char *reason)
{
    log_debug("%s: connection of pid %d ended: %s", connection->service->name,
              (int)connection->peer.pid, reason);
    kept_calls_cancel(connection);
    kept_connection_end(connection);
}

/* There is one that holds something. */
static struct kept_connection *largest(void)
{
    struct kept_connection *connection, *found = LIST_FIRST(&all);

    LIST_FOREACH(connection, &all, of_all) {
        if (connection->held_bytes > found->held_bytes)
            found = connection;
    }
    return found;
}

/* What it holds is another amount, perhaps; it, or another, may end for that. */
static void hold(struct kept_connection *connection)
{
    set_held(connection, kept_calls_hold(connection));
    while (all_held_bytes > KEPT_HELD_BYTES_MAX) {
        struct kept_connection *most = largest();

        log_warning(
            "%s: a connection of pid %d ends: it holds %zu bytes in calls, and all together "
            "may hold %zu",
            most->service->name, (int)most->peer.pid, most->held_bytes, KEPT_HELD_BYTES_MAX);
        lose(most, "it holds too much");
    }
}

/* ---- bytes ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void wait_for(struct kept_connection *connection, bool writable)
{
    int events = writable ? UV_WRITABLE : 0;

    if (h2_has_room(connection->kept))
        events |= UV_READABLE;
    uv_poll_start(&connection->poll, events, on_poll);
}

/* As much of the answers as goes. -EAGAIN: the rest later; 0; or another negative errno. */
static int flush(struct kept_connection *connection)
{
    int err;

    do
        err = kept_socket_write(connection->kept);
    while (!err && h2_pump(connection->kept));
    return err;
}

/* Why it is over; NULL: it is not. What is left to be read then is the loop's next turn's: others
 * have theirs between. */
static const char *work(struct kept_connection *connection)
{
    unsigned reads = 0;
    int written = 0, read;

    do {
        read = h2_has_room(connection->kept)
                   ? kept_socket_read(connection->kept, h2_eat, &connection->reader)
                   : -EAGAIN;
        if (read == 0)
            return "its end";
        if (read < 0 && read != -EAGAIN)
            return strerror(-read);
        kept_calls_forget(connection);
        if (!connection->ended)
            kept_calls_ask(connection);
        if (connection->ended)
            return NULL;
        written = flush(connection);
        if (written < 0 && written != -EAGAIN)
            return strerror(-written);
        kept_calls_forget(connection);
        if (!connection->ended)
            hold(connection);
        if (connection->ended)
            return NULL;
        if (kept_state_of(connection)->over)
            return "what came is no HTTP/2";
    } while (read > 0 && ++reads < KEPT_READS_IN_A_ROW_MAX);
    wait_for(connection, written < 0);
    return NULL;
}

static void go_on(struct kept_connection *connection)
{
    const char *reason = connection->ended ? NULL : work(connection);

    if (reason && !connection->ended)
        lose(connection, reason);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct kept_connection *connection = poll->data;

    (void)events;
    store(connection);
    if (status < 0)
        lose(connection, uv_strerror(status));
    else
        go_on(connection);
}

/* What fails is found out from the loop: by the next read, or, while there is no room for one, by
 * the next write. */
void kept_connection_answered(struct kept_connection *connection)
{
    kept_connection_used(connection);
    wait_for(connection, flush(connection) < 0);
}

void kept_connection_used(struct kept_connection *connection)
{
    connection->idle_since_ms = uv_now(connection->service->loop);
}

/* ---- life ---- */

/* Takes `kept`, on success only. 0 or a negative errno. */
static int begin(const struct kept_service *service, struct kept_socket *kept, bool resumed,
                 struct kept_connections *connections)
{
    struct kept_connection *connection = calloc(1, sizeof *connection);
    int err = -ENOMEM;

    if (connection) {
        *connection = (struct kept_connection){.service = service,
                                               .kept = kept,
                                               .resumed = resumed,
                                               .told = resumed,
                                               .poll.data = connection};
        err = h2_reader_init(&connection->reader, service->paths, service->methods_len);
    }
    if (!err)
        err = unix_peer(kept_socket_fd(kept, KEPT_SOCKET), &connection->peer);
    if (!err)
        err = uv_poll_init(service->loop, &connection->poll, kept_socket_fd(kept, KEPT_SOCKET));
    if (err) {
        if (connection)
            h2_reader_fini(&connection->reader);
        free(connection);
        return err;
    }
    if (resumed)
        h2_reader_fini(&connection->reader); /* what that is for was acknowledged */
    connection->reader.kept = resumed;
    kept_connection_used(connection);
    if (resumed)
        kept_calls_resume(connection);
    LIST_INSERT_HEAD(connections, connection, entry);
    LIST_INSERT_HEAD(&all, connection, of_all);
    wait_for(connection, true); /* to begin from the loop */
    return 0;
}

int kept_connection_new(const struct kept_service *service, int fd,
                        struct kept_connections *connections)
{
    struct kept_socket *kept;
    int err = kept_socket_new(fd, &H2_KEPT, &kept);

    if (err)
        return err;
    h2_begin(kept);
    err = begin(service, kept, false, connections);
    if (err)
        kept_socket_give_back(kept);
    else
        store(LIST_FIRST(connections));
    return err;
}

static void prefix_of(const char *name, char prefix[FD_STORE_NAME_BYTES_MAX + 1])
{
    snprintf(prefix, FD_STORE_NAME_BYTES_MAX + 1, KEPT_CONNECTIONS "%s/", name);
}

bool kept_connections_handed(const struct fd_store *store, const char *name)
{
    char prefix[FD_STORE_NAME_BYTES_MAX + 1];

    prefix_of(name, prefix);
    return fd_store_has(store, prefix);
}

/* The next one's that was handed over, of which the manager may have lost some; -1 stands for
 * those. Its name is borrowed; NULL: there is none. */
static const char *take(const struct kept_service *service, int fds[KEPT_DESCRIPTORS])
{
    char prefix[FD_STORE_NAME_BYTES_MAX + 1];
    const char *name;
    int first, second;

    prefix_of(service->name, prefix);
    first = fd_store_take(service->store, prefix, &name);
    if (first < 0)
        return NULL;
    second = fd_store_take(service->store, name, NULL);
    fds[KEPT_SOCKET] = fd_store_is_socket(first) ? first : second;
    fds[KEPT_MEMORY] = fd_store_is_socket(first) ? second : first;
    return name;
}

/* 0, or why it cannot be gone on with; `fds` are taken either way. */
static int resume(const struct kept_service *service, const int fds[KEPT_DESCRIPTORS],
                  struct kept_connections *connections)
{
    bool whole = fds[KEPT_SOCKET] >= 0 && fds[KEPT_MEMORY] >= 0;
    struct kept_socket *kept;
    int err = whole ? kept_socket_resume(fds, &H2_KEPT, &kept) : -ENOENT;

    if (!err) {
        err = h2_can_go_on(kept, service->methods_len) ? begin(service, kept, true, connections)
                                                       : -EPROTO;
        if (err) {
            shutdown(fds[KEPT_SOCKET], SHUT_RDWR);
            kept_socket_free(kept);
        }
        return err;
    }
    if (fds[KEPT_SOCKET] >= 0)
        shutdown(fds[KEPT_SOCKET], SHUT_RDWR);
    for (int i = 0; i < KEPT_DESCRIPTORS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return err;
}

static const char *why_not(int err)
{
    switch (err) {
    case -ENOENT:
        return "nothing is kept of it";
    case -ESTALE:
        return "it is another release's";
    case -ELOOP:
        return "processes that did died at once";
    case -EPROTO:
        return "it had not begun";
    case -EUCLEAN:
        return "what is kept of it makes no sense";
    default:
        return strerror(-err);
    }
}

size_t kept_connections_resume(const struct kept_service *service,
                               struct kept_connections *connections, size_t *ended)
{
    int fds[KEPT_DESCRIPTORS], err;
    size_t resumed = 0;
    const char *name;

    *ended = 0;
    while (service->store && (name = take(service, fds))) {
        err = resume(service, fds, connections);
        if (err)
            log_info("%s: a connection ends, as it cannot be gone on with: %s", service->name,
                     why_not(err));
        else
            log_debug("%s: a connection goes on", service->name);
        resumed += !err;
        if (!err)
            continue;
        (void)!fd_store_remove(service->store, name);
        *ended += 1;
    }
    return resumed;
}

/* A handler may end them: they are freed later, from the loop. */
void kept_connections_go_on(const struct kept_connections *connections)
{
    struct kept_connection *connection, *next;

    for (connection = LIST_FIRST(connections); connection; connection = next) {
        next = LIST_NEXT(connection, entry);
        go_on(connection);
    }
}

void kept_connections_settled(const struct kept_connections *connections)
{
    struct kept_connection *connection;

    LIST_FOREACH(connection, connections, entry)
        kept_socket_settled(connection->kept);
}

/* Which has been without a call for longest; NULL: none is. */
static struct kept_connection *find_idle(const struct kept_connections *connections)
{
    struct kept_connection *connection, *found = NULL;

    LIST_FOREACH(connection, connections, entry) {
        if (!kept_calls_any(connection) &&
            (!found || connection->idle_since_ms < found->idle_since_ms))
            found = connection;
    }
    return found;
}

bool kept_connections_make_room(const struct kept_connections *connections)
{
    struct kept_connection *idle = find_idle(connections);

    if (!idle || uv_now(idle->service->loop) - idle->idle_since_ms < KEPT_IDLE_MS)
        return false;
    log_debug("%s: an idle connection of pid %d ends for another", idle->service->name,
              (int)idle->peer.pid);
    kept_connection_end(idle);
    return true;
}

bool kept_connection_is_resumed(const struct kept_connection *connection)
{
    return connection->resumed;
}
