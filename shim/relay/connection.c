#include "shim/relay/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/relay/connection_inside.h"
#include "shim/relay/limits.h"

/* Reads in a row from one end that has always more. */
#define READS_MAX 8

static struct end *other(struct connection *c, const struct end *end)
{
    return &c->ends[end == &c->ends[SESSION_CLIENT] ? SESSION_RUNTIME : SESSION_CLIENT];
}

static enum session_end index_of(const struct connection *c, const struct end *end)
{
    return end == &c->ends[SESSION_CLIENT] ? SESSION_CLIENT : SESSION_RUNTIME;
}

/* ---- closing ---- */

void connection_fini(struct connection *c)
{
    session_free(c->session);
    c->session = NULL;
    connection_uncount(c);
    kept_leave(&c->kept);
    for (int i = SESSION_CLIENT; i <= SESSION_RUNTIME; i++)
        buffer_fini(&c->ends[i].waiting);
}

void connection_handle_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;

    if (--c->handles > 0)
        return;
    connection_fini(c);
    c->world.ops->closed(c->world.user, c);
    free(c);
}

static void close_end(struct end *end)
{
    if (end->fd < 0)
        return;
    uv_close((uv_handle_t *)&end->poll, connection_handle_closed);
    close(end->fd);
    end->fd = -1;
}

void connection_close_handles(struct connection *c)
{
    c->closing = true;
    close_end(&c->ends[SESSION_CLIENT]);
    close_end(&c->ends[SESSION_RUNTIME]);
    uv_close((uv_handle_t *)&c->linger, connection_handle_closed);
    uv_close((uv_handle_t *)&c->look, connection_handle_closed);
}

void connection_close(struct connection *c)
{
    if (c->closing)
        return;
    if (c->kept.journal) { /* the service manager's duplicates are open until it has read of that */
        shutdown(c->ends[SESSION_CLIENT].fd, SHUT_RDWR);
        shutdown(c->ends[SESSION_RUNTIME].fd, SHUT_RDWR);
        kept_forget(&c->kept);
    }
    connection_close_handles(c);
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

/* All that was queued for `end` is written, and nothing more comes for it. */
static void shut_down(struct connection *c, struct end *end)
{
    if (shutdown(end->fd, SHUT_WR) < 0 || c->finishing)
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

static void on_ready(uv_poll_t *poll, int status, int events);

/* Waits for what there is to do with the socket. */
static void watch(struct connection *c, struct end *end)
{
    int events = (end->reading ? UV_READABLE : 0) | (buffer_len(&end->waiting) ? UV_WRITABLE : 0);

    if (c->closing || events == end->polled)
        return;
    end->polled = events;
    if (events == 0)
        uv_poll_stop(&end->poll);
    else if (uv_poll_start(&end->poll, events, on_ready) < 0)
        connection_close(c);
}

static void stop_reading(struct connection *c, struct end *end)
{
    end->reading = false;
    watch(c, end);
}

/* Writes what is queued for `end`, then closes both. */
static void finish(struct connection *c, struct end *end)
{
    bool was_shut = end->shut;

    if (c->finishing || c->closing)
        return;
    c->finishing = true;
    stop_reading(c, &c->ends[SESSION_CLIENT]);
    stop_reading(c, &c->ends[SESSION_RUNTIME]);
    uv_timer_start(&c->linger, on_linger, RELAY_LINGER_MS, 0);
    shut(c, end);
    if (was_shut && buffer_len(&end->waiting) == 0)
        connection_close(c);
}

/* `end` takes no more bytes. What it sent before, a GOAWAY perhaps, is still for the other. */
static void broken(struct connection *c, struct end *end)
{
    if (c->closing)
        return;
    end->shut = true;
    buffer_fini(&end->waiting);
    watch(c, end);
    if (end->ended || c->finishing || index_of(c, end) == SESSION_CLIENT)
        connection_close(c);
    else
        uv_timer_start(&c->linger, on_linger, RELAY_LINGER_MS, 0);
}

/* ---- writing ---- */

static void read_on(struct connection *c);

/* As sendmsg(2); also of how many bytes the next process knows that they went. */
static ssize_t send_to(struct connection *c, struct end *end, const struct iovec *pieces, int n)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)n};
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    ssize_t r;

    if (c->kept.journal)
        return journal_write(c->kept.journal, index_of(c, end), end->fd, pieces, n);
    r = n == 1 ? send(end->fd, pieces->iov_base, pieces->iov_len, flags) /* costs less */
               : sendmsg(end->fd, &message, flags);
    return r < 0 ? -errno : r;
}

/* How many bytes the socket took, perhaps none; or a negative errno: it takes no more. */
static ssize_t write_to(struct connection *c, struct end *end, const struct iovec *pieces, int n)
{
    ssize_t r;

    do
        r = send_to(c, end, pieces, n);
    while (r == -EINTR);
    return r == -EAGAIN ? 0 : r;
}

/* Writes what waits for it. */
static void write_on(struct connection *c, struct end *end)
{
    struct iovec piece = {.iov_base = (void *)buffer_data(&end->waiting),
                          .iov_len = buffer_len(&end->waiting)};
    ssize_t r = piece.iov_len > 0 ? write_to(c, end, &piece, 1) : 0;

    if (r < 0) {
        broken(c, end);
        return;
    }
    buffer_consume(&end->waiting, (size_t)r);
    if (buffer_len(&end->waiting) > 0) {
        watch(c, end);
        return;
    }
    buffer_fini(&end->waiting);
    watch(c, end);
    if (end->shut)
        shut_down(c, end);
    read_on(c);
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
        return -ENOMEM;
    for (int i = 0; i < n; i++) {
        size_t gone = skip < pieces[i].iov_len ? skip : pieces[i].iov_len;

        if (buffer_put(&end->waiting, (const char *)pieces[i].iov_base + gone,
                       pieces[i].iov_len - gone) < 0)
            abort(); /* room was made above */
        skip -= gone;
    }
    return 0;
}

/* What `to` has had of it from the process before this one is not for it again. */
static void keep_again(struct connection *c, enum session_end to, const struct iovec *pieces, int n,
                       uint64_t from)
{
    uint64_t had = c->taken[to] > from ? c->taken[to] - from : 0;
    size_t bytes = total(pieces, n);

    if (had < bytes && keep(&c->ends[to], pieces, n, (size_t)had) < 0)
        c->no_memory = true;
}

static void on_session_write(void *user, enum session_end to, const struct iovec *pieces, int n)
{
    struct connection *c = user;
    struct end *end = &c->ends[to];
    size_t bytes = total(pieces, n);
    ssize_t r = 0;

    c->put_out[to] += bytes;
    if (c->replaying) {
        keep_again(c, to, pieces, n, c->put_out[to] - bytes);
        return;
    }
    if (c->closing || end->shut)
        return;
    c->world.counts->bytes[to] += bytes;
    if (buffer_len(&end->waiting) == 0)
        r = write_to(c, end, pieces, n);
    if (r < 0) {
        broken(c, end);
        return;
    }
    if ((size_t)r == bytes)
        return;
    if (keep(end, pieces, n, (size_t)r) < 0)
        connection_close(c);
    else
        watch(c, end);
    connection_count_waiting(c, to);
}

/* ---- the journal ---- */

/* There is no room for what has come: from here on it would end with this process, as without a
 * service manager. */
static void keep_no_more(struct connection *c)
{
    log_warning("relay: a connection grows too large to outlive the daemon");
    kept_forget(&c->kept);
    kept_leave(&c->kept);
}

void connection_look_at_journal(struct connection *c)
{
    if (c->closing || c->finishing)
        return;
    kept_tell(&c->kept, (const int[2]){c->ends[SESSION_CLIENT].fd, c->ends[SESSION_RUNTIME].fd});
    if (!c->kept.journal)
        return;
    if (journal_is_due(c->kept.journal, session_held(c->session) +
                                            buffer_len(&c->ends[SESSION_CLIENT].waiting) +
                                            buffer_len(&c->ends[SESSION_RUNTIME].waiting)))
        connection_put_state(c, journal_state); /* or at a later moment */
    if (journal_is_over(c->kept.journal))
        keep_no_more(c);
}

static void on_decided(void *user, uint32_t told, const struct session_decision *decision)
{
    struct connection *c = user;

    if (!c->replaying && !c->closing && c->kept.journal)
        journal_decide(c->kept.journal, told, decision);
}

/* ---- reading ---- */

/* Whether the peer closed the socket, rather than only its sending side: unix(7) sockets tell by
 * POLLHUP. */
static bool is_gone(const struct end *end)
{
    struct pollfd p = {.fd = end->fd};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* The client shut down its sending side. So do we, once no call needs ours any more. */
static void pass_half_close(struct connection *c)
{
    if (c->ends[SESSION_CLIENT].ended && !session_needs_runtime(c->session))
        shut(c, &c->ends[SESSION_RUNTIME]);
}

/* Nothing is read from a client that has shut down its sending side, nor while the runtime takes
 * nothing, so that nothing else tells that it is gone. */
static void on_look(uv_timer_t *timer)
{
    struct connection *c = timer->data;

    if (c->ends[SESSION_CLIENT].reading)
        uv_timer_stop(timer);
    else if (is_gone(&c->ends[SESSION_CLIENT]))
        finish(c, &c->ends[SESSION_RUNTIME]);
}

static void look_at_client(struct connection *c)
{
    if (!c->closing && !uv_is_active((uv_handle_t *)&c->look))
        uv_timer_start(&c->look, on_look, RELAY_LOOK_MS, RELAY_LOOK_MS);
}

static void on_end_of(struct connection *c, struct end *end)
{
    end->ended = true;
    stop_reading(c, end);
    if (index_of(c, end) == SESSION_RUNTIME || is_gone(end)) {
        finish(c, other(c, end));
        return;
    }
    pass_half_close(c);
    look_at_client(c);
}

/*
 * Whether the bytes from `end` are to wait: while the other end has not taken the last ones. What
 * the client sends may also be answered by the session itself, so that it must read as well. The
 * runtime need not: it may be one that reads on only when it is read from.
 */
static bool is_ahead(struct connection *c, const struct end *end)
{
    return buffer_len(&other(c, end)->waiting) > 0 ||
           (index_of(c, end) == SESSION_CLIENT &&
            buffer_len(&end->waiting) + session_waiting(c->session, SESSION_CLIENT) >
                RELAY_ANSWER_QUEUE_BYTES_MAX);
}

/* As recv(2). */
static ssize_t receive(struct connection *c, struct end *end, const uint8_t **bytes)
{
    ssize_t n;

    if (c->kept.journal) {
        n = journal_read(c->kept.journal, index_of(c, end), end->fd, bytes);
        if (n != -ENOBUFS)
            return n;
        keep_no_more(c);
    }
    *bytes = (const uint8_t *)c->world.read_buffer;
    n = recv(end->fd, c->world.read_buffer, RELAY_READ_BYTES, MSG_DONTWAIT);
    return n < 0 ? -errno : n;
}

bool connection_read(struct connection *c, struct end *end)
{
    const uint8_t *bytes;
    struct session_passed passed;
    ssize_t n = receive(c, end, &bytes);

    if (n == -EAGAIN || n == -EINTR)
        return false;
    if (n == 0)
        on_end_of(c, end);
    else if (n < 0)
        finish(c, other(c, end));
    if (n <= 0)
        return false;
    if (session_feed(c->session, index_of(c, end), bytes, (size_t)n) < 0) {
        log_warning("relay: connection closed: %s", session_error(c->session));
        finish(c, &c->ends[SESSION_CLIENT]);
        return false;
    }
    if (c->kept.journal)
        journal_done(c->kept.journal, c->put_out,
                     session_passed(c->session, index_of(c, end), &passed) ? &passed : NULL);
    connection_look_at_journal(c);
    if (c->closing)
        return false;
    if (is_ahead(c, end))
        stop_reading(c, end);
    read_on(c); /* the other end's frame may be over, and what waited for that written */
    pass_half_close(c);
    return n == RELAY_READ_BYTES && !c->closing && end->reading;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct end *end = (struct end *)poll;
    struct connection *c = poll->data;

    if (status < 0) { /* libuv has stopped to look: read(2) and write(2) say why */
        end->polled = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (events & UV_WRITABLE && buffer_len(&end->waiting) > 0)
        write_on(c, end);
    for (int i = 0; events & UV_READABLE && end->reading && !c->closing && i < READS_MAX; i++) {
        if (!connection_read(c, end))
            break;
    }
    watch(c, end);
}

static void read_from(struct connection *c, struct end *end)
{
    if (end->reading || end->ended)
        return;
    if (!is_ahead(c, end)) {
        end->reading = true;
        watch(c, end);
    } else if (index_of(c, end) == SESSION_CLIENT) {
        look_at_client(c);
    }
}

static void read_on(struct connection *c)
{
    if (c->closing || c->finishing)
        return;
    read_from(c, &c->ends[SESSION_CLIENT]);
    read_from(c, &c->ends[SESSION_RUNTIME]);
}

void connection_look(struct connection *c)
{
    read_on(c);
    watch(c, &c->ends[SESSION_CLIENT]);
    watch(c, &c->ends[SESSION_RUNTIME]);
}

/* ---- for others ---- */

static void on_failed(void *user)
{
    struct connection *c = user;

    if (c->replaying)
        return; /* replay() says so */
    log_warning("relay: connection closed: %s", session_error(c->session));
    connection_close(c);
}

const struct session_ops connection_session_ops = {
    .write = on_session_write, .failed = on_failed, .decided = on_decided};
