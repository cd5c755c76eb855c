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
#include "shim/rpc/socket_file.h"
#include "shim/rpc/stored_listener.h"

#define BACKLOG 511
/* Clients taken in a row. */
#define ACCEPTS_MAX 64
#define SOCKET_DIRECTORY_MODE 0755
/* Among the listeners in the store. */
#define STORED_NAME "cri"

/* Not a listening stream of libuv's: that one tries on and on while accept(2) fails, for want of
 * descriptors or memory, and nothing else gets its turn. */
struct listener {
    uv_poll_t poll;
    int fd;
    struct relay *relay;
    int client;  /* accepted, and waits for memory; -1: none */
    bool paused; /* until `retry` */
    bool told;   /* why */
};

struct relay {
    struct connection_world world;
    struct listener *passed;       /* the service manager's listening socket; NULL: there is none */
    struct listener *own;          /* bound by us; NULL: not yet, or not needed */
    struct stored_listener stored; /* `own`, as the service manager keeps it */
    struct socket_file file;       /* where clients connect; no path: a passed socket has none */
    uv_timer_t drain;
    uv_timer_t retry; /* of connections that could not be taken */
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

static void on_retry(uv_timer_t *timer);

/* Nobody is taken for a while. Told once, until it goes on. */
static void pause_accepting(struct listener *listener, const char *why)
{
    if (!listener->told)
        log_error("relay: a client waits: %s", why);
    listener->told = listener->paused = true;
    uv_poll_stop(&listener->poll);
    uv_timer_start(&listener->relay->retry, on_retry, RELAY_ACCEPT_RETRY_MS, 0);
}

/* Whether one more may wait. */
static bool accept_next(struct listener *listener)
{
    struct relay *relay = listener->relay;
    struct connection *c;

    if (listener->client < 0)
        listener->client = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (listener->client < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            pause_accepting(listener, strerror(errno));
        return false;
    }
    c = connection_accept(&relay->world, listener->client, relay->runtime_path);
    if (!c) {
        pause_accepting(listener, "out of memory");
        return false;
    }
    listener->client = -1;
    listener->told = false;
    link_one(relay, c, &relay->counts.accepted);
    return true;
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;

    (void)events;
    if (status < 0) /* libuv has stopped to look */
        pause_accepting(listener, uv_strerror(status));
    for (int i = 0; i < ACCEPTS_MAX && !listener->paused && accept_next(listener); i++)
        ;
}

static void go_on_accepting(struct listener *listener)
{
    if (!listener || !listener->paused)
        return;
    listener->paused = false;
    uv_poll_start(&listener->poll, UV_READABLE, on_client);
    if (listener->client >= 0)
        accept_next(listener);
}

static void on_retry(uv_timer_t *timer)
{
    struct relay *relay = timer->data;

    go_on_accepting(relay->own);
    go_on_accepting(relay->passed);
}

/* ---- listening ---- */

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct relay *relay = listener->relay;

    free(listener);
    relay->handles--;
    finish_if_empty(relay);
}

static void listener_close(struct listener *listener)
{
    if (!listener)
        return;
    uv_close((uv_handle_t *)&listener->poll, on_listener_closed);
    close(listener->fd);
    if (listener->client >= 0)
        close(listener->client);
}

/* Takes `fd`, also on failure. */
static int listener_open(struct relay *relay, int fd, struct listener **out)
{
    struct listener *listener = calloc(1, sizeof *listener);
    int err = !listener ? -ENOMEM : listen(fd, BACKLOG) < 0 ? -errno : 0;

    if (!err)
        err = uv_poll_init(relay->world.loop, &listener->poll, fd);
    if (err) {
        free(listener);
        close(fd);
        return err;
    }
    relay->handles++;
    listener->poll.data = listener;
    listener->fd = fd;
    listener->relay = relay;
    listener->client = -1;
    uv_poll_start(&listener->poll, UV_READABLE, on_client);
    *out = listener;
    return 0;
}

/* -1: there is none. */
static int own_fd(const struct relay *relay)
{
    return relay->own ? relay->own->fd : -1;
}

/* The service manager is to keep what we listen with. */
static void store_own(struct relay *relay)
{
    char tag[SOCKET_FILE_TAG_BYTES_MAX];
    int fd = own_fd(relay);

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
    } else if (listener_open(relay, fd, &relay->own) < 0) {
        stored_listener_forget(&relay->stored);
    } else {
        log_debug("%s: goes on", socket_file_path(&relay->file));
    }
}

int relay_listen(void *user)
{
    struct relay *relay = user;
    struct listener *before = relay->own;
    int fd, err;

    if ((relay->passed || relay->own) &&
        (!socket_file_path(&relay->file) || socket_file_there(&relay->file))) {
        store_own(relay);
        return 0;
    }
    err = socket_file_make(&relay->file, &fd);
    if (err)
        return err;
    err = listener_open(relay, fd, &relay->own);
    if (err) {
        socket_file_remove(&relay->file);
        return err;
    }
    listener_close(before);
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
    err = listener_open(relay, fd, &relay->passed);
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
    uv_timer_init(loop, &relay->retry);
    relay->retry.data = relay;
    relay->handles = 2;
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
    stored_listener_end(&relay->stored, own_fd(relay));
    listener_close(relay->own);
    listener_close(relay->passed);
    relay->own = relay->passed = NULL;
    uv_close((uv_handle_t *)&relay->retry, on_handle_closed);
    for (struct connection *c = relay->connections; c; c = connection_next(c)) {
        if (!leave || !connection_leave(c, until_ns))
            connection_drain(c);
    }
    calls_drain(relay->calls);
    uv_timer_start(&relay->drain, on_drained, drain_ms, 0);
    finish_if_empty(relay);
}
