/*
 * A CRI runtime that is cheap: answers every call with one gRPC message and status 0, on nghttp2
 * and libuv.
 *
 *     scripted_runtime LISTEN_PATH
 *
 * The request header x-answer-bytes says how long the answer's message is (default 0), x-answers
 * how many of them there are (default 1), each in a frame of its own as far as it fits. There is
 * one sandbox, and CreateContainer always answers with its one container, which bench.py asks for.
 * The request is read and dropped. For tests/bench only.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>
#include <uv.h>

#define GRPC_HEAD_BYTES 5
#define WINDOW_BYTES (64 * 1024 * 1024)
#define OUT_BYTES (256 * 1024)
#define FRAME_BYTES_MAX (9 + 16384)

struct answer {
    const char *path;
    const char *message;
    size_t message_bytes;
};

struct call {
    const struct answer *answer; /* NULL: zeros */
    size_t message_bytes;
    size_t sent;    /* of the message on the way */
    size_t answers; /* still to be sent, with it */
};

struct peer {
    uv_pipe_t pipe;
    nghttp2_session *session;
};

struct out {
    uv_write_t request;
    size_t len;
    char bytes[];
};

static char read_buffer[65536];
static const uint8_t zeros[16384];

#define SERVICE "/runtime.v1.RuntimeService/"
#define ANSWER(method, message)                                                                    \
    {                                                                                              \
        SERVICE method, message, sizeof(message) - 1                                               \
    }

static const struct answer answers[] = {
    /* CreateContainerResponse{container_id} */
    ANSWER("CreateContainer", "\x0a\x02"
                              "c1"),
    /* ListPodSandboxResponse{items{id, metadata{name, uid, namespace}}}: ready */
    ANSWER("ListPodSandbox", "\x0a\x2c\x0a\x0d"
                             "bench-sandbox\x12\x1b\x0a\x05"
                             "bench\x12\x09"
                             "bench-uid\x1a\x07"
                             "default"),
    /* ListContainersResponse{containers{id, pod_sandbox_id, metadata{name}}}: created */
    ANSWER("ListContainers", "\x0a\x1b\x0a\x02"
                             "c1\x12\x0d"
                             "bench-sandbox\x1a\x06\x0a\x04"
                             "main"),
};

static void peer_send(struct peer *p);

static void on_closed(uv_handle_t *handle)
{
    struct peer *p = (struct peer *)handle;

    nghttp2_session_del(p->session);
    free(p);
}

static void peer_close(struct peer *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->pipe))
        uv_close((uv_handle_t *)&p->pipe, on_closed);
}

static void on_sent(uv_write_t *request, int status)
{
    struct peer *p = request->data;

    free(request);
    if (status < 0)
        peer_close(p);
    else
        peer_send(p);
}

/* One write of what the session has to say; false: nothing, or the socket takes no more now. */
static bool send_some(struct peer *p)
{
    struct out *out = malloc(sizeof *out + OUT_BYTES + FRAME_BYTES_MAX);
    const uint8_t *data;
    uv_buf_t buf;
    ssize_t n;

    if (!out)
        abort();
    out->len = 0;
    while (out->len < OUT_BYTES && (n = nghttp2_session_mem_send(p->session, &data)) > 0) {
        memcpy(out->bytes + out->len, data, (size_t)n);
        out->len += (size_t)n;
    }
    buf = uv_buf_init(out->bytes, (unsigned)out->len);
    n = out->len > 0 ? uv_try_write((uv_stream_t *)&p->pipe, &buf, 1) : 0;
    if (n == (ssize_t)out->len) {
        free(out);
        return n > 0;
    }
    n = n < 0 ? 0 : n;
    out->request.data = p;
    buf = uv_buf_init(out->bytes + n, (unsigned)(out->len - (size_t)n));
    uv_write(&out->request, (uv_stream_t *)&p->pipe, &buf, 1, on_sent);
    return false;
}

static void peer_send(struct peer *p)
{
    while (!uv_is_closing((uv_handle_t *)&p->pipe) &&
           uv_stream_get_write_queue_size((uv_stream_t *)&p->pipe) == 0 && send_some(p))
        ;
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    static const nghttp2_nv trailer = {(uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, 0};
    struct call *call = source->ptr;
    size_t total = GRPC_HEAD_BYTES + call->message_bytes;
    size_t at = 0;

    (void)user;
    if (call->sent == 0) {
        uint8_t head[GRPC_HEAD_BYTES] = {
            0, (uint8_t)(call->message_bytes >> 24), (uint8_t)(call->message_bytes >> 16),
            (uint8_t)(call->message_bytes >> 8), (uint8_t)call->message_bytes};

        memcpy(buf, head, sizeof head); /* nghttp2 never offers less */
        at = sizeof head;
    }
    while (at < length && call->sent + at < total) {
        size_t n = length - at < total - call->sent - at ? length - at : total - call->sent - at;

        n = n < sizeof zeros ? n : sizeof zeros;
        memcpy(buf + at, call->answer ? call->answer->message : (const char *)zeros,
               n); /* the former fits at once */
        at += n;
    }
    call->sent += at;
    if (call->sent == total && call->answers > 1) {
        call->answers--;
        call->sent = 0;
    } else if (call->sent == total) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, stream_id, &trailer, 1);
    }
    return (ssize_t)at;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)user;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                             calloc(1, sizeof(struct call)));
    return 0;
}

static const struct answer *find_answer(const uint8_t *path, size_t len)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (len == strlen(answers[i].path) && memcmp(path, answers[i].path, len) == 0)
            return &answers[i];
    }
    return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags;
    (void)user;
    if (!call)
        return 0;
    if (name_len == 14 && memcmp(name, "x-answer-bytes", 14) == 0)
        call->message_bytes = strtoul((const char *)value, NULL, 10);
    if (name_len == 9 && memcmp(name, "x-answers", 9) == 0)
        call->answers = strtoul((const char *)value, NULL, 10);
    if (name_len == 5 && memcmp(name, ":path", 5) == 0) {
        call->answer = find_answer(value, value_len);
        if (call->answer)
            call->message_bytes = call->answer->message_bytes;
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    static const nghttp2_nv fields[] = {
        {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
        {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0},
    };
    nghttp2_data_provider provider = {.read_callback = read_answer};

    (void)user;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS))
        return 0;
    provider.source.ptr = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (provider.source.ptr)
        nghttp2_submit_response(session, frame->hd.stream_id, fields, 2, &provider);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user)
{
    (void)code;
    (void)user;
    free(nghttp2_session_get_stream_user_data(session, stream_id));
    return 0;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(read_buffer, sizeof read_buffer);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct peer *p = (struct peer *)stream;

    if (n < 0 || nghttp2_session_mem_recv(p->session, (const uint8_t *)buf->base, (size_t)n) < 0)
        peer_close(p);
    else
        peer_send(p);
}

static void on_connection(uv_stream_t *listener, int status)
{
    static nghttp2_session_callbacks *callbacks;
    static nghttp2_option *option;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
                                               {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 10000}};
    struct peer *p = calloc(1, sizeof *p);

    if (status < 0 || !p)
        abort();
    if (!callbacks) {
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_option_new(&option);
        nghttp2_option_set_no_http_messaging(option, 1);
    }
    uv_pipe_init(listener->loop, &p->pipe, 0);
    uv_accept(listener, (uv_stream_t *)&p->pipe);
    nghttp2_session_server_new2(&p->session, callbacks, p, option);
    nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, settings, 2);
    nghttp2_session_set_local_window_size(p->session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES);
    uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
    peer_send(p);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    uv_pipe_t listener;

    if (argc != 2) {
        fprintf(stderr, "usage: %s LISTEN_PATH\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    unlink(argv[1]);
    uv_pipe_init(loop, &listener, 0);
    if (uv_pipe_bind(&listener, argv[1]) < 0 ||
        uv_listen((uv_stream_t *)&listener, 511, on_connection) < 0) {
        fprintf(stderr, "%s: cannot listen\n", argv[1]);
        return 1;
    }
    return uv_run(loop, UV_RUN_DEFAULT);
}
