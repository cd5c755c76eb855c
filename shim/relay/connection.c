#include "shim/relay/connection.h"

#include <assert.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <utlist.h>

#include "shim/log.h"
#include "shim/relay/buffer.h"
#include "shim/relay/limits.h"
#include "shim/rpc/listen.h"

struct end {
    uv_pipe_t pipe;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct buffer going;   /* bytes that the socket did not take at once: libuv writes them */
    struct buffer waiting; /* and those behind them */
    bool writing;          /* libuv has `write`, until on_written() */
    bool shut;             /* takes no more bytes: our sending side is shut down, or broken */
    bool reading;
    bool ended; /* nothing more comes from it */
};

struct connection {
    const struct connection_ops *ops;
    void *user;
    struct session *session;
    struct end ends[2];
    uv_connect_t connect;
    uv_timer_t linger;
    uv_timer_t look; /* of a client that has shut down its sending side */
    char *read_buffer;
    bool closing;
    bool finishing; /* closes when what is queued has been written */
    int handles;    /* not yet closed */
    struct connection *prev, *next;
};

static struct end *other(struct connection *c, const struct end *end)
{
    return &c->ends[end == &c->ends[SESSION_CLIENT] ? SESSION_RUNTIME : SESSION_CLIENT];
}

static enum session_end index_of(const struct connection *c, const struct end *end)
{
    return end == &c->ends[SESSION_CLIENT] ? SESSION_CLIENT : SESSION_RUNTIME;
}

/* ---- closing ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;

    if (--c->handles > 0)
        return;
    session_free(c->session);
    c->session = NULL;
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++) {
        buffer_fini(&c->ends[i].going);
        buffer_fini(&c->ends[i].waiting);
    }
    c->ops->closed(c->user, c);
    free(c);
}

void connection_close(struct connection *c)
{
    if (c->closing)
        return;
    c->closing = true;
    uv_close((uv_handle_t *)&c->ends[SESSION_CLIENT].pipe, on_handle_closed);
    uv_close((uv_handle_t *)&c->ends[SESSION_RUNTIME].pipe, on_handle_closed);
    uv_close((uv_handle_t *)&c->linger, on_handle_closed);
    uv_close((uv_handle_t *)&c->look, on_handle_closed);
}

void connection_drain(struct connection *c)
{
    if (!c->closing && !c->finishing && !session_drain(c->session))
        connection_close(c);
}

static void on_linger(uv_timer_t *timer)
{
    connection_close(timer->data);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *c = request->data;

    (void)status;
    if (c->finishing)
        connection_close(c);
}

static void shut_down(struct connection *c, struct end *end)
{
    end->shutdown.data = c;
    if (uv_shutdown(&end->shutdown, (uv_stream_t *)&end->pipe, on_shutdown) < 0)
        connection_close(c);
}

/* Shuts down our sending side of `end` once what is queued is written. */
static void shut(struct connection *c, struct end *end)
{
    if (end->shut || c->closing)
        return;
    end->shut = true;
    if (buffer_len(&end->waiting) == 0)
        shut_down(c, end);
}

static void stop_reading(struct end *end)
{
    uv_read_stop((uv_stream_t *)&end->pipe);
    end->reading = false;
}

static size_t queued_for(const struct end *end)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&end->pipe) +
           buffer_len(&end->waiting);
}

/* Writes what is queued for `end`, then closes both. */
static void finish(struct connection *c, struct end *end)
{
    bool was_shut = end->shut;

    if (c->finishing || c->closing)
        return;
    c->finishing = true;
    stop_reading(&c->ends[SESSION_CLIENT]);
    stop_reading(&c->ends[SESSION_RUNTIME]);
    uv_timer_start(&c->linger, on_linger, RELAY_LINGER_MS, 0);
    shut(c, end);
    if (was_shut && queued_for(end) == 0)
        connection_close(c);
}

/* `end` takes no more bytes. What it sent before, a GOAWAY perhaps, is still for the other. */
static void broken(struct connection *c, struct end *end)
{
    if (c->closing)
        return;
    end->shut = true;
    buffer_fini(&end->waiting);
    if (end->ended || c->finishing || index_of(c, end) == SESSION_CLIENT)
        connection_close(c);
    else
        uv_timer_start(&c->linger, on_linger, RELAY_LINGER_MS, 0);
}

/* ---- writing ---- */

static void read_on(struct connection *c);

static void write_on(struct connection *c, struct end *end);

static void on_written(uv_write_t *request, int status)
{
    struct end *end = request->data;
    struct connection *c = end->pipe.data;

    end->writing = false;
    buffer_fini(&end->going);
    if (status < 0)
        broken(c, end);
    else
        write_on(c, end);
}

/* Gives to libuv what waits for it, once it is done with what it has: its queue is empty a while
 * before it says so. */
static void write_on(struct connection *c, struct end *end)
{
    uv_buf_t buf;
    int r;

    if (c->closing || end->writing)
        return;
    if (buffer_len(&end->waiting) == 0) {
        read_on(c);
        return;
    }
    end->going = end->waiting;
    end->waiting = (struct buffer){0};
    end->write.data = end;
    buf = uv_buf_init((char *)buffer_data(&end->going), (unsigned)buffer_len(&end->going));
    r = uv_write(&end->write, (uv_stream_t *)&end->pipe, &buf, 1, on_written);
    end->writing = r == 0;
    if (r < 0)
        broken(c, end);
    else if (end->shut)
        shut_down(c, end);
}

static size_t total(const struct iovec *pieces, int n)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += pieces[i].iov_len;
    return sum;
}

/* Keeps a copy of what lies behind the first `skip` bytes. */
static int keep(struct end *end, const struct iovec *pieces, int n, size_t skip)
{
    if (buffer_reserve(&end->waiting, total(pieces, n) - skip) < 0)
        return UV_ENOMEM;
    for (int i = 0; i < n; i++) {
        size_t gone = skip < pieces[i].iov_len ? skip : pieces[i].iov_len;

        if (buffer_put(&end->waiting, (const char *)pieces[i].iov_base + gone,
                       pieces[i].iov_len - gone) < 0)
            abort(); /* room was made above */
        skip -= gone;
    }
    return 0;
}

static void on_session_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct connection *c = user;
    struct end *end = &c->ends[to];
    bool began = false;
    int r = 0;

    if (c->closing || end->shut)
        return;
    if (queued_for(end) == 0) {
        /* struct iovec and uv_buf_t are the same on POSIX (libuv documents it) */
        r = uv_try_write((uv_stream_t *)&end->pipe, (const uv_buf_t *)pieces, (unsigned)n);
        if (r == UV_EAGAIN)
            r = 0;
        if (r < 0) {
            broken(c, end);
            return;
        }
        if ((size_t)r == total(pieces, n))
            return;
        began = true;
    }
    if (keep(end, pieces, n, (size_t)r) < 0)
        connection_close(c);
    else if (began)
        write_on(c, end);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct connection *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init(c->read_buffer, RELAY_READ_BYTES);
}

/* Whether the peer closed the socket, rather than only its sending side: unix(7) sockets tell by
 * POLLHUP. */
static bool is_gone(const struct end *end)
{
    struct pollfd p = {.events = 0};
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)&end->pipe, &fd) < 0)
        return true;
    p.fd = fd;
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* The client shut down its sending side. So do we, once no call needs ours any more. */
static void pass_half_close(struct connection *c)
{
    if (c->ends[SESSION_CLIENT].ended && !session_needs_runtime(c->session))
        shut(c, &c->ends[SESSION_RUNTIME]);
}

/* Nothing is read from a client that has shut down its sending side, so that nothing else tells
 * that it is gone. */
static void on_look(uv_timer_t *timer)
{
    struct connection *c = timer->data;

    if (is_gone(&c->ends[SESSION_CLIENT]))
        finish(c, &c->ends[SESSION_RUNTIME]);
}

static void on_end_of(struct connection *c, struct end *end)
{
    end->ended = true;
    stop_reading(end);
    if (index_of(c, end) == SESSION_RUNTIME || is_gone(end)) {
        finish(c, other(c, end));
        return;
    }
    pass_half_close(c);
    if (!c->closing)
        uv_timer_start(&c->look, on_look, RELAY_LOOK_MS, RELAY_LOOK_MS);
}

/*
 * Whether the bytes from `end` are to wait: while the other end has not taken the last ones. What
 * the client sends may also be answered by the session itself, so that it must read as well. The
 * runtime need not: it may be one that reads on only when it is read from.
 */
static bool is_ahead(struct connection *c, const struct end *end)
{
    return queued_for(other(c, end)) > 0 ||
           (index_of(c, end) == SESSION_CLIENT &&
            queued_for(end) + session_waiting(c->session, SESSION_CLIENT) >
                RELAY_ANSWER_QUEUE_BYTES_MAX);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    struct end *end = (struct end *)stream;

    if (n < 0) {
        if (n == UV_EOF)
            on_end_of(c, end);
        else
            finish(c, other(c, end));
        return;
    }
    if (n > 0 &&
        session_feed(c->session, index_of(c, end), (const uint8_t *)buf->base, (size_t)n) < 0) {
        log_warning("relay: connection closed: %s", session_error(c->session));
        finish(c, &c->ends[SESSION_CLIENT]);
        return;
    }
    if (c->closing)
        return;
    if (is_ahead(c, end))
        stop_reading(end);
    read_on(c); /* the other end's frame may be over, and what waited for that written */
    pass_half_close(c);
}

static void read_from(struct connection *c, struct end *end)
{
    if (end->reading || end->ended || is_ahead(c, end))
        return;
    end->reading = uv_read_start((uv_stream_t *)&end->pipe, on_alloc, on_read) == 0;
}

static void read_on(struct connection *c)
{
    if (c->closing || c->finishing)
        return;
    read_from(c, &c->ends[SESSION_CLIENT]);
    read_from(c, &c->ends[SESSION_RUNTIME]);
}

/* ---- making ---- */

/* Only a matter of speed, so that an error is none. */
static void widen(struct end *end)
{
    int bytes = RELAY_SOCKET_BYTES;
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)&end->pipe, &fd) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0) /* not root */
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static pid_t peer_pid(const struct end *end)
{
    struct ucred peer;
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)&end->pipe, &fd) < 0 || unix_peer(fd, &peer) < 0)
        return 0;
    return peer.pid;
}

static void on_connected(uv_connect_t *request, int status)
{
    struct connection *c = request->data;

    if (status == UV_ECANCELED)
        return;
    c->ops->runtime(c->user, status);
    if (status < 0) {
        connection_close(c);
        return;
    }
    widen(&c->ends[SESSION_CLIENT]);
    widen(&c->ends[SESSION_RUNTIME]);
    session_begin(c->session, peer_pid(&c->ends[SESSION_CLIENT]));
    read_on(c);
}

static void on_failed(void *user)
{
    struct connection *c = user;

    log_warning("relay: connection closed: %s", session_error(c->session));
    connection_close(c);
}

static const struct session_ops SESSION_OPS = {on_session_write, on_failed};

static void init_handles(struct connection *c, uv_loop_t *loop)
{
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++) {
        uv_pipe_init(loop, &c->ends[i].pipe, 0);
        c->ends[i].pipe.data = c;
    }
    uv_timer_init(loop, &c->linger);
    c->linger.data = c;
    uv_timer_init(loop, &c->look);
    c->look.data = c;
    c->handles = 4;
}

struct connection *connection_accept(uv_stream_t *listener, const char *runtime_path,
                                     char *read_buffer, const struct connection_ops *ops,
                                     void *user, struct session_owner owner)
{
    struct connection *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->session = session_new(&SESSION_OPS, c, owner);
    if (!c->session) {
        free(c);
        return NULL;
    }
    c->ops = ops;
    c->user = user;
    c->read_buffer = read_buffer;
    init_handles(c, listener->loop);
    c->connect.data = c;
    if (uv_accept(listener, (uv_stream_t *)&c->ends[SESSION_CLIENT].pipe) < 0)
        connection_close(c);
    else
        uv_pipe_connect(&c->connect, &c->ends[SESSION_RUNTIME].pipe, runtime_path, on_connected);
    return c;
}

struct connection *connection_next(const struct connection *c)
{
    return c->next;
}

void connection_link(struct connection *c, struct connection **head)
{
    DL_APPEND(*head, c);
}

void connection_unlink(struct connection *c, struct connection **head)
{
    DL_DELETE(*head, c);
}
