#include "shim/relay/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/must.h"
#include "shim/program.h"
#include "shim/relay/connection.h"
#include "shim/relay/limits.h"
#include "shim/rpc/acceptor.h"
#include "shim/rpc/socket_file.h"
#include "shim/rpc/stored_listener.h"

#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "cri"

struct relay {
    struct connection_world world;
    struct acceptor *passed;       /* the service manager's listening socket; NULL: there is none */
    struct acceptor *own;          /* bound by us; NULL: not yet, or not needed */
    struct stored_listener stored; /* `own`, as the service manager keeps it */
    struct socket_file file;       /* where clients connect; no path: a passed socket has none */
    uv_timer_t drain;
    const char *runtime_path;
    struct calls *calls;
    struct connection *connections;
    int handles;  /* not yet closed */
    bool drained; /* `drain` is closed, or about to be */
    struct relay_counts counts;
    void (*done)(void *user);
    void *done_user;
    char read_buffer[RELAY_READ_BYTES];
};

static void on_handle_closed(uv_handle_t *handle);

static void finish_if_empty(struct relay *relay)
{
    if (!relay->done || relay->connections)
        return;
    if (!relay->drained) {
        relay->drained = true;
        uv_close((uv_handle_t *)&relay->drain, on_handle_closed);
    }
    if (relay->handles > 0)
        return;
    relay->done(relay->done_user);
    socket_file_fini(&relay->file);
    free(relay);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct relay *relay = handle->data;

    relay->handles--;
    finish_if_empty(relay);
}

static void on_runtime(void *user, int error)
{
    struct relay *relay = user;
    bool away = error < 0;

    if (away && !relay->counts.runtime_away)
        log_write_about(
            LOG_LEVEL_ERROR, &(struct log_about){.kind = LOG_KIND_RUNTIME_AWAY},
            "relay: the runtime at %s cannot be reached: %s; connections are closed until it can",
            relay->runtime_path, uv_strerror(error));
    if (!away && relay->counts.runtime_away) {
        log_write_about(LOG_LEVEL_INFO, &(struct log_about){.kind = LOG_KIND_RUNTIME_BACK},
                        "relay: the runtime at %s is back", relay->runtime_path);
        calls_runtime_back(relay->calls);
    }
    relay->counts.runtime_away = away;
}

static void on_closed(void *user, struct connection *connection)
{
    struct relay *relay = user;

    connection_unlink(connection, &relay->connections);
    relay->counts.open--;
    finish_if_empty(relay);
}

static const struct connection_ops CONNECTION_OPS = {on_runtime, on_closed};

static void link_one(struct relay *relay, struct connection *c, uint64_t *counted)
{
    connection_link(c, &relay->connections);
    relay->counts.open++;
    ++*counted;
}

static int take_client(void *user, int fd)
{
    struct relay *relay = user;
    struct connection *c;
    int err = connection_accept(&relay->world, fd, relay->runtime_path, &c);

    if (err)
        return err;
    link_one(relay, c, &relay->counts.accepted);
    return 0;
}

/* ---- listening ---- */

static void on_acceptor_closed(void *user)
{
    struct relay *relay = user;

    relay->handles--;
    finish_if_empty(relay);
}

/* Takes `fd`, also on failure. */
static int accept_from(struct relay *relay, int fd, struct acceptor **out)
{
    const struct acceptor_owner owner = {
        .name = "relay", .user = relay, .take = take_client, .closed = on_acceptor_closed};
    int err = listen(fd, SOMAXCONN) < 0 ? -errno : 0; /* as a runtime in Go */

    if (err) {
        close(fd);
        return err;
    }
    err = acceptor_open(relay->world.loop, fd, &owner, out);
    if (!err)
        relay->handles++;
    return err;
}

/* The service manager is to keep what we listen with. */
static void store_own(struct relay *relay)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];
    int fd = acceptor_fd(relay->own);

    if (fd < 0)
        return;
    socket_file_tag(&relay->file, tag);
    stored_listener_put(&relay->stored, fd, tag);
}

/* Goes on with what the process before this one has made, if clients still come to it. */
static void resume_own(struct relay *relay)
{
    const char *tag;
    int fd = stored_listener_take(&relay->stored, &tag);

    if (fd < 0)
        return;
    if (!socket_file_path(&relay->file) || !socket_file_resume(&relay->file, tag)) {
        stored_listener_end(&relay->stored, fd);
        close(fd);
    } else if (accept_from(relay, fd, &relay->own) < 0) {
        stored_listener_forget(&relay->stored);
    } else {
        log_debug("%s: goes on", socket_file_path(&relay->file));
    }
}

int relay_listen(void *user)
{
    struct relay *relay = user;
    struct acceptor *before = relay->own;
    int fd, err;

    if ((relay->passed || relay->own) &&
        (!socket_file_path(&relay->file) || socket_file_there(&relay->file))) {
        store_own(relay);
        return 0;
    }
    err = socket_file_make(&relay->file, &fd);
    if (err)
        return err;
    err = accept_from(relay, fd, &relay->own);
    if (err) {
        socket_file_remove(&relay->file);
        return err;
    }
    acceptor_close(before);
    store_own(relay);
    return 1;
}

/* The path that a listening socket was bound to; false: to none. */
static bool bound_path(int fd, char *path, size_t size)
{
    struct sockaddr_un address = {0};
    socklen_t len = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 || address.sun_path[0] != '/')
        return false;
    snprintf(path, size, "%.*s", (int)sizeof address.sun_path, address.sun_path);
    return true;
}

static int file_init(struct relay *relay, const char *path)
{
    const struct socket_place place = {.dir_mode = SOCKET_DIRECTORY_MODE, .name = path};

    return socket_file_init(&relay->file, &place);
}

/* Goes by the path the socket has, which its unit says, whatever "listen" says. */
static int take_passed(struct relay *relay, int fd)
{
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    bool bound = bound_path(fd, path, sizeof path);
    int err = bound ? file_init(relay, path) : 0;

    if (err) {
        close(fd);
        return err;
    }
    err = accept_from(relay, fd, &relay->passed);
    if (!err && bound)
        socket_file_adopt(&relay->file, fd);
    return err;
}

/* Those of the process before this one go on. */
static void resume_connections(struct relay *relay)
{
    struct connection *c;
    struct kept kept;

    while (kept_take(&kept, relay->world.store)) {
        c = connection_resume(&relay->world, &kept);
        if (c)
            link_one(relay, c, &relay->counts.resumed);
        else
            relay->counts.lost++;
    }
    if (relay->counts.resumed > 0)
        log_info("relay: %" PRIu64 " connections of the daemon before this one go on",
                 relay->counts.resumed);
}

struct relay *relay_start(uv_loop_t *loop, const char *listen_path, int fd, struct fd_store *store,
                          const char *runtime_path, struct calls *calls, bool tally)
{
    struct relay *relay = must(calloc(1, sizeof *relay));
    int err;

    /* Naming the bound keeps it: else it rises to 32 MiB with the first large message, and the next
     * ones leave holes in the heap that stay. */
    mallopt(M_MMAP_THRESHOLD, RELAY_MAPPED_BYTES);
    relay->world = (struct connection_world){.loop = loop,
                                             .read_buffer = relay->read_buffer,
                                             .store = store,
                                             .ops = &CONNECTION_OPS,
                                             .counts = &relay->counts.passed,
                                             .tally = tally ? &relay->counts.tally : NULL,
                                             .user = relay,
                                             .owner = calls_owner(calls)};
    relay->runtime_path = runtime_path;
    relay->calls = calls;
    uv_timer_init(loop, &relay->drain);
    relay->drain.data = relay;
    relay->handles = 1;
    stored_listener_init(&relay->stored, store, STORED_NAME);
    err = fd < 0 ? file_init(relay, listen_path) : take_passed(relay, fd);
    if (err) {
        log_error("relay: %s", strerror(-err));
        abort(); /* out of memory */
    }
    resume_own(relay);
    resume_connections(relay);
    return relay;
}

const struct relay_counts *relay_counts(const struct relay *relay)
{
    return &relay->counts;
}

void relay_stop_now(struct relay *relay)
{
    for (struct connection *c = relay->connections; c; c = connection_next(c))
        connection_close(c);
}

static void on_drained(uv_timer_t *timer)
{
    relay_stop_now(timer->data);
}

/* Whether the next process can go on with the connections. One of another release may not: then
 * their calls are to end first. */
static bool may_leave(const struct relay *relay)
{
    if (!relay->connections || program_has(KEPT_READER))
        return true;
    log_info("relay: the program was replaced by one that cannot go on with connections; calls "
             "under way end first");
    return false;
}

void relay_stop(struct relay *relay, uint64_t drain_ms, void (*done)(void *user), void *user)
{
    bool leave = may_leave(relay);
    uint64_t until_ns = uv_hrtime() + (uint64_t)RELAY_BLOCK_MS * 1000000;

    relay->done = done;
    relay->done_user = user;
    socket_file_remove(&relay->file);
    stored_listener_end(&relay->stored, acceptor_fd(relay->own));
    acceptor_close(relay->own);
    acceptor_close(relay->passed);
    relay->own = relay->passed = NULL;
    for (struct connection *c = relay->connections; c; c = connection_next(c)) {
        if (!leave || !connection_leave(c, until_ns))
            connection_drain(c);
    }
    calls_drain(relay->calls);
    uv_timer_start(&relay->drain, on_drained, drain_ms, 0);
    finish_if_empty(relay);
}
