#include "shim/rpc/link.h"

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
static void __attribute__((format(printf, 2, 3)))
set_reason(struct link *link, const char *format, ...)
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
    set_reason(link, "%s", reason);
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
    set_reason(link, "%s", reason);
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

static void take(struct link *link, ssize_t n)
{
    ssize_t rc;

    pulse_heard(&link->pulse);
    rc = nghttp2_session_mem_recv(link->session, link->in, (size_t)n);
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

/* ---- the session's callbacks ---- */

static int go_on(const struct link *link)
{
    return link_usable(link) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct link *link = user;

    (void)session;
    if (!link_usable(link))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        set_reason(link, "the peer is going away: %s",
                   nghttp2_http2_strerror(frame->goaway.error_code));
    link->ops->frame_received(link, frame);
    return go_on(link);
}

static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct link *link = user;

    (void)session;
    if (!link_usable(link))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
        set_reason(link, "the peer broke HTTP/2: %s",
                   nghttp2_http2_strerror(frame->goaway.error_code));
    link->ops->frame_sent(link, frame);
    return go_on(link);
}

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct link *link = user;

    (void)session;
    return link_usable(link) ? link->ops->headers_begin(link, frame) : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* The user data of a stream of a usable link, or NULL. */
static void *stream_of(struct link *link, int32_t stream_id)
{
    return link_usable(link) ? nghttp2_session_get_stream_user_data(link->session, stream_id)
                             : NULL;
}

static int header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                  size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *user)
{
    struct link *link = user;
    void *stream = stream_of(link, frame->hd.stream_id);
    int rc = stream ? link->ops->stream_header(stream, name, name_len, value, len) : 0;

    (void)session;
    (void)flags;
    return rc ? rc : go_on(link);
}

static int data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                      const uint8_t *data, size_t len, void *user)
{
    struct link *link = user;
    void *stream = stream_of(link, stream_id);

    (void)session;
    (void)flags;
    if (stream)
        link->ops->stream_data(stream, data, len);
    return go_on(link);
}

static int stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                        void *user)
{
    struct link *link = user;
    void *stream = stream_of(link, stream_id);

    (void)session;
    if (stream)
        link->ops->stream_closed(stream, error_code);
    return 0; /* see link.h */
}

/* ---- start ---- */

static int submit_settings(struct link *link)
{
    nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LINK_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LINK_HEADERS_BYTES_MAX},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LINK_STREAMS_MAX},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    /* A server may not send ENABLE_PUSH other than 0 and need not send it at all. */
    size_t count = link->role == LINK_CLIENT ? 4 : 3;

    if (nghttp2_submit_settings(link->session, NGHTTP2_FLAG_NONE, entries, count))
        return UV_ENOMEM;
    if (nghttp2_session_set_local_window_size(link->session, NGHTTP2_FLAG_NONE, 0,
                                              LINK_WINDOW_BYTES))
        return UV_ENOMEM;
    return 0;
}

static int new_session(struct link *link, nghttp2_session_callbacks *callbacks,
                       nghttp2_option *option)
{
    int rc;

    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_close);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_reserved_remote_streams(option, 0);
    if (link->role == LINK_CLIENT) {
        rc = nghttp2_session_client_new2(&link->session, callbacks, link, option);
    } else {
        /* Go clients send a socket's path as :authority, which nghttp2 would refuse. */
        nghttp2_option_set_no_http_messaging(option, 1);
        rc = nghttp2_session_server_new2(&link->session, callbacks, link, option);
    }
    return rc ? UV_ENOMEM : 0;
}

static int init_session(struct link *link)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    int err = UV_ENOMEM;

    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0)
        err = new_session(link, callbacks, option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    if (err)
        return err;
    err = submit_settings(link);
    if (err)
        nghttp2_session_del(link->session);
    return err;
}

int link_init(struct link *link, uv_loop_t *loop, enum link_role role, const struct link_ops *ops)
{
    int err;

    link->ops = ops;
    link->role = role;
    link->state = LINK_NEW;
    link->own_budget = (struct message_budget){.left = LINK_BUDGET_BYTES};
    link->budget = &link->own_budget;
    link->writing = false;
    link->broken = false;
    link->reason[0] = '\0';
    err = init_session(link);
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

int link_accept(struct link *link, uv_pipe_t *listener)
{
    int err = uv_accept((uv_stream_t *)listener, (uv_stream_t *)&link->pipe);

    if (!err)
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
