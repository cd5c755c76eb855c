#include "shim/rpc/link_inside.h"

/* Of a window: with each such part that came it is given back. */
#define GIVEN_BACK_PARTS 16

/* ---- its callbacks ---- */

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
        link_set_reason(link, "the peer is going away: %s",
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
        link_set_reason(link, "the peer broke HTTP/2: %s",
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

static void give_back_of(struct link *link, int32_t stream_id, int32_t bytes)
{
    if (nghttp2_submit_window_update(link->session, NGHTTP2_FLAG_NONE, stream_id, bytes))
        link_break(link, "no memory to give a window back");
}

/* nghttp2 gives back from half of a window on. What a process has not given back of a stream's when
 * it ends is missing there for ever, with whoever goes on with that (resume.c). */
static void give_back(struct link *link, int32_t stream_id)
{
    int32_t of_stream =
        nghttp2_session_get_stream_effective_recv_data_length(link->session, stream_id);
    int32_t of_all = nghttp2_session_get_effective_recv_data_length(link->session);

    if (of_stream >= LINK_STREAM_WINDOW_BYTES / GIVEN_BACK_PARTS)
        give_back_of(link, stream_id, of_stream);
    if (of_all >= LINK_WINDOW_BYTES / GIVEN_BACK_PARTS)
        give_back_of(link, 0, of_all);
}

static int data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                      const uint8_t *data, size_t len, void *user)
{
    struct link *link = user;
    void *stream = stream_of(link, stream_id);

    (void)session;
    (void)flags;
    give_back(link, stream_id);
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

/* ---- making it ---- */

static int submit_settings(struct link *link, size_t streams)
{
    nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LINK_STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LINK_HEADERS_BYTES_MAX},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)streams},
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

int link_session_new(struct link *link, size_t streams)
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
    err = submit_settings(link, streams);
    if (err)
        nghttp2_session_del(link->session);
    return err;
}
