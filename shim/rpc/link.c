#include "shim/rpc/link_inside.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a socket holds of a peer that has hung up is less. */
#define LAST_READS_MAX 16

static void link_set_state(struct link *link, enum link_state state)
{
    static const unsigned from[] = {
        [LINK_NEW] = 0,
        [LINK_CONNECTING] = 1u << LINK_NEW,
        [LINK_OPEN] = 1u << LINK_NEW | 1u << LINK_CONNECTING,
        [LINK_ENDED] = 1u << LINK_CONNECTING | 1u << LINK_OPEN,
        [LINK_CLOSED] = 1u << LINK_NEW | 1u << LINK_CONNECTING | 1u << LINK_OPEN | 1u << LINK_ENDED,
    };

    assert(from[state] & 1u << link->state);
    link->state = state;
}

/* ---- end ---- */

/* The gate: the handles are closed and the owner has let go. */
static void maybe_gone(struct link *link)
{
    if (link->handles > 0 || link->state != LINK_CLOSED)
        return;
    nghttp2_session_del(link->session);
    link->ops->gone(link);
}

static void handle_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    link->handles--;
    maybe_gone(link);
}

static void close_handles(struct link *link)
{
    uv_close((uv_handle_t *)&link->pipe, handle_closed);
    uv_close((uv_handle_t *)&link->wake, handle_closed);
    uv_close((uv_handle_t *)&link->pulse.timer, handle_closed);
}

/* The first reason stands. */
void link_set_reason(struct link *link, const char *format, ...)
{
    va_list args;

    if (link->reason[0])
        return;
    va_start(args, format);
    vsnprintf(link->reason, sizeof link->reason, format, args);
    va_end(args);
}

/* From the loop only. */
static void link_end(struct link *link, const char *reason)
{
    link_set_reason(link, "%s", reason);
    link_set_state(link, LINK_ENDED);
    close_handles(link);
    link->ops->ended(link, link->reason);
}

void link_close(struct link *link)
{
    bool ended = link->state == LINK_ENDED;

    link_set_state(link, LINK_CLOSED);
    if (!ended)
        close_handles(link);
    maybe_gone(link);
}

bool link_usable(const struct link *link)
{
    return link->state < LINK_ENDED;
}

/* ---- output ---- */

static void flush(struct link *link);

static void take_last_words(struct link *link);

static void write_done(uv_write_t *write, int status)
{
    struct link *link = write->data;

    if (status < 0)
        take_last_words(link);
    link->writing = false;
    if (!link_usable(link))
        return;
    if (status < 0) {
        link_end(link, uv_strerror(status));
        return;
    }
    flush(link);
}

/*
 * Fills `out` with frames. A frame that does not fit any more is left where it is, in *rest, which
 * the session keeps until it is asked for the next one. Returns the length of `out`, or a negative
 * nghttp2 error.
 */
static ssize_t gather(struct link *link, uv_buf_t *rest)
{
    const uint8_t *frame;
    size_t used = 0;
    ssize_t n;

    for (;;) {
        n = nghttp2_session_mem_send(link->session, &frame);
        if (n <= 0)
            return n < 0 ? n : (ssize_t)used;
        if (!link_usable(link))
            return 0;
        if ((size_t)n > sizeof link->out - used) {
            *rest = uv_buf_init((char *)frame, (unsigned)n);
            return (ssize_t)used;
        }
        memcpy(link->out + used, frame, (size_t)n);
        used += (size_t)n;
    }
}

static void start_write(struct link *link, size_t used, uv_buf_t rest)
{
    uv_buf_t bufs[2] = {uv_buf_init((char *)link->out, (unsigned)used), rest};
    unsigned first = used == 0, count = rest.len ? 2 : 1;
    int err;

    link->write.data = link;
    link->writing = true;
    err =
        uv_write(&link->write, (uv_stream_t *)&link->pipe, bufs + first, count - first, write_done);
    if (err) {
        link->writing = false;
        link_end(link, uv_strerror(err));
    }
}

static void check_over(struct link *link)
{
    if (!nghttp2_session_want_read(link->session) && !nghttp2_session_want_write(link->session))
        link_end(link, "nothing more can come");
}

/* Sends what the session has, one write at a time, and ends the link when nothing more can come.
 * From the loop only. */
static void flush(struct link *link)
{
    uv_buf_t rest = uv_buf_init(NULL, 0);
    ssize_t used;

    if (link->state != LINK_OPEN || link->writing)
        return;
    used = gather(link, &rest);
    if (!link_usable(link))
        return;
    if (used < 0)
        link_end(link, nghttp2_strerror((int)used));
    else if (used > 0 || rest.len > 0)
        start_write(link, (size_t)used, rest);
    else
        check_over(link);
}

static void woken(uv_idle_t *wake)
{
    struct link *link = wake->data;

    uv_idle_stop(wake);
    if (link->broken)
        link_end(link, "broken");
    else
        flush(link);
}

void link_wake(struct link *link)
{
    if (link->state == LINK_OPEN)
        uv_idle_start(&link->wake, woken);
}

void link_break(struct link *link, const char *reason)
{
    if (!link_usable(link))
        return;
    link_set_reason(link, "%s", reason);
    link->broken = true;
    uv_idle_start(&link->wake, woken);
}

void link_reset(struct link *link, int32_t stream_id, uint32_t error_code)
{
    if (nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE, stream_id, error_code))
        link_break(link, "no memory to reset a stream");
    link_wake(link);
}

/* ---- input ---- */

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct link *link = handle->data;

    (void)size;
    *buf = uv_buf_init((char *)link->in, sizeof link->in);
}

/* Whether the peer lets our answers pile up. */
static bool flooded(struct link *link)
{
    return nghttp2_session_get_outbound_queue_size(link->session) > LINK_FRAMES_MAX;
}

/* What came, for the session. 0 or more, or a negative nghttp2 error. */
static ssize_t hear(struct link *link, size_t len)
{
    const uint8_t *data = link->in, *piece;
    ssize_t rc = 0;
    size_t n;

    while (rc >= 0 && link_usable(link) && (n = sieve_feed(&link->sieve, &data, &len, &piece)) > 0)
        rc = nghttp2_session_mem_recv(link->session, piece, n);
    return rc;
}

static void take(struct link *link, ssize_t n)
{
    ssize_t rc;

    link->heard = true;
    pulse_heard(&link->pulse);
    rc = hear(link, (size_t)n);
    if (!link_usable(link))
        return;
    if (rc < 0)
        link_end(link, nghttp2_strerror((int)rc));
    else if (flooded(link))
        link_end(link, "the peer does not read what it asks for");
    else
        flush(link);
}

static void bytes_came(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct link *link = stream->data;

    (void)buf; /* give_buffer()'s */
    if (n == 0 || !link_usable(link))
        return;
    if (n < 0)
        link_end(link, n == UV_EOF ? "the peer hung up" : uv_strerror((int)n));
    else
        take(link, n);
}

/* A peer that has hung up may have said why before: that lies in the socket yet, and a write that
 * fails is often noticed first. Nothing is written meanwhile. */
static void take_last_words(struct link *link)
{
    int fd = link_fd(link);
    ssize_t n = 1;

    for (int i = 0; i < LAST_READS_MAX && n > 0 && link_usable(link); i++) {
        n = recv(fd, link->in, sizeof link->in, MSG_DONTWAIT);
        if (n > 0)
            take(link, n);
    }
}

static int start_reading(struct link *link)
{
    link_set_state(link, LINK_OPEN);
    pulse_begin(&link->pulse);
    return uv_read_start((uv_stream_t *)&link->pipe, give_buffer, bytes_came);
}

/* ---- start ---- */

int link_init(struct link *link, uv_loop_t *loop, enum link_role role, size_t streams,
              const struct link_ops *ops)
{
    int err;

    link->ops = ops;
    link->role = role;
    link->state = LINK_NEW;
    link->heard = false;
    link->own_budget = (struct message_budget){.left = LINK_BUDGET_BYTES};
    link->budget = &link->own_budget;
    link->writing = false;
    link->broken = false;
    link->reason[0] = '\0';
    link->sieve = (struct sieve){0};
    err = link_session_new(link, streams);
    if (err)
        return err;
    uv_pipe_init(loop, &link->pipe, 0);
    uv_idle_init(loop, &link->wake);
    link->pipe.data = link;
    link->wake.data = link;
    pulse_init(&link->pulse, loop, link);
    link->handles = 3;
    return 0;
}

static void connect_done(uv_connect_t *connect, int status)
{
    struct link *link = connect->data;

    if (!link_usable(link))
        return;
    if (!status)
        status = start_reading(link);
    if (status) {
        link_end(link, uv_strerror(status));
        return;
    }
    if (link->ops->connected)
        link->ops->connected(link);
    if (link_usable(link))
        flush(link);
}

void link_connect(struct link *link, const char *path)
{
    link_set_state(link, LINK_CONNECTING);
    link->connect.data = link;
    uv_pipe_connect(&link->connect, &link->pipe, path, connect_done);
}

int link_adopt(struct link *link, int fd)
{
    int err = uv_pipe_open(&link->pipe, fd);

    if (err) {
        close(fd);
        return err;
    }
    err = start_reading(link);
    if (!err)
        link_wake(link);
    return err;
}

uv_loop_t *link_loop(const struct link *link)
{
    return link->pipe.loop;
}

int link_fd(const struct link *link)
{
    uv_os_fd_t fd;
    int err =
        link->state == LINK_OPEN ? uv_fileno((const uv_handle_t *)&link->pipe, &fd) : UV_ENOTCONN;

    return err ? err : fd;
}
