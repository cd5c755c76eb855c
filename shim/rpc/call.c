#include "shim/rpc/call.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/rpc/field.h"
#include "shim/rpc/message.h"
#include "shim/rpc/status.h"

/* What the header block now being read says. */
struct answer_block {
    int http_status; /* 0: none */
    bool grpc_type;
    bool has_status;
    int status;
    char text[STATUS_TEXT_BYTES_MAX];
};

enum call_state {
    CALL_WAITING,
    CALL_ANSWERED,
    CALL_OVER,
};

struct rpc_call {
    struct rpc_channel *channel;
    LIST_ENTRY(rpc_call) entry;
    enum call_state state;
    const struct rpc_call_ops *ops;
    void *user;
    const char *path;
    const ProtobufCMessageDescriptor *response;
    bool stream;
    bool repeated;     /* it has been sent before */
    int32_t stream_id; /* -1: was never submitted */
    bool headers_sent;
    uint8_t *request;
    size_t request_len;
    size_t request_sent;
    uv_timer_t timer;     /* the deadline, or the end of a call that could not start */
    uint64_t deadline_ms; /* as asked for; 0: none */
    uint64_t expires_ms;  /* the loop's time */
    int refused_code;     /* why it could not start; RPC_OK: it did */
    const char *refused_text;
    struct answer_block block;
    size_t headers_bytes;
    struct message_reader reader;
    size_t messages;
};

/* ---- the end of a call ---- */

static void call_free(uv_handle_t *timer)
{
    free(timer->data);
}

void call_detach(struct rpc_call *call)
{
    struct rpc_channel *channel = call->channel;

    call->state = CALL_OVER;
    LIST_REMOVE(call, entry);
    channel->calls_len--;
    if (call->stream_id >= 0)
        nghttp2_session_set_stream_user_data(channel->link.session, call->stream_id, NULL);
    message_reader_fini(&call->reader);
    free(call->request);
    call->request = NULL;
    uv_close((uv_handle_t *)&call->timer, call_free);
}

void call_end(struct rpc_call *call, int code, const char *text)
{
    struct rpc_status status = {code, text};

    call_detach(call);
    call->ops->done(call, &status, call->user);
}

static void call_reset(struct rpc_call *call)
{
    if (call->stream_id >= 0 && link_usable(&call->channel->link))
        link_reset(&call->channel->link, call->stream_id, NGHTTP2_CANCEL);
}

/* Ends a call that the server still works on. */
static void call_abort(struct rpc_call *call, int code, const char *text)
{
    call_reset(call);
    call_end(call, code, text);
}

int rpc_call_stream(const struct rpc_call *call, int32_t *stream_id)
{
    *stream_id = call->stream_id;
    return call->headers_sent ? link_fd(&call->channel->link) : UV_ENOTCONN;
}

void rpc_call_cancel(struct rpc_call *call)
{
    if (!call || call->state == CALL_OVER)
        return;
    call_reset(call);
    call_detach(call);
}

static void call_timer(uv_timer_t *timer)
{
    struct rpc_call *call = timer->data;
    unsigned long long deadline_ms = call->deadline_ms;
    uint32_t at_once = nghttp2_session_get_remote_settings(call->channel->link.session,
                                                           NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    char text[128];

    if (call->refused_code) {
        call_end(call, call->refused_code, call->refused_text);
        return;
    }
    if (!call->headers_sent && call->channel->calls_len > at_once)
        snprintf(text, sizeof text,
                 "not asked within %llu ms: the server takes no more than %u at once, its streams "
                 "included",
                 deadline_ms, at_once);
    else
        snprintf(text, sizeof text, "no answer within %llu ms", deadline_ms);
    call_abort(call, RPC_DEADLINE_EXCEEDED, text);
}

/* ---- the answer ---- */

static struct rpc_call *call_of(struct link *link, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(link->session, stream_id);
}

/* The code of an answer whose trailers say OK. */
static int check_complete(const struct rpc_call *call, const char **text)
{
    if (message_reader_partial(&call->reader))
        *text = "the answer ends inside a message";
    else if (!call->stream && call->messages != 1)
        *text = "the answer has no message";
    else
        return RPC_OK;
    return RPC_INTERNAL;
}

/* The server has ended its side with the block just read. */
static void call_trailers(struct rpc_call *call)
{
    const char *text = call->block.text;
    int code = call->block.status;

    if (!call->block.has_status) {
        code = RPC_UNKNOWN;
        text = "the answer has no grpc-status";
    } else if (code == RPC_OK) {
        code = check_complete(call, &text);
    }
    /* A server may answer before it has taken the whole request. */
    if (!nghttp2_session_get_stream_local_close(call->channel->link.session, call->stream_id))
        call_reset(call);
    call_end(call, code, text);
}

static void call_refuse_http(struct rpc_call *call)
{
    const struct answer_block *block = &call->block;
    char text[64];

    if (block->has_status) {
        call_abort(call, block->status ? block->status : RPC_UNKNOWN, block->text);
        return;
    }
    snprintf(text, sizeof text, "the server answers with HTTP status %d", block->http_status);
    call_abort(call, status_from_http(block->http_status), text);
}

/* A header block is whole. */
static void call_headers(struct rpc_call *call, bool end)
{
    if (call->state == CALL_WAITING) {
        if (call->block.http_status / 100 == 1)
            return; /* an interim answer; another follows */
        if (call->block.http_status != 200) {
            call_refuse_http(call);
            return;
        }
        if (!call->block.grpc_type) {
            call_abort(call, RPC_UNKNOWN, "the answer's content-type is not gRPC's");
            return;
        }
        call->state = CALL_ANSWERED;
    }
    if (end)
        call_trailers(call);
}

void call_frame_received(struct link *link, const nghttp2_frame *frame)
{
    bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    struct rpc_call *call;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return;
    call = call_of(link, frame->hd.stream_id);
    if (!call)
        return;
    if (frame->hd.type == NGHTTP2_HEADERS)
        call_headers(call, end);
    else if (end)
        call_abort(call, RPC_INTERNAL, "the answer ends without trailers");
}

int call_headers_begin(struct link *link, const nghttp2_frame *frame)
{
    struct rpc_call *call = call_of(link, frame->hd.stream_id);

    if (call)
        call->block = (struct answer_block){0};
    return 0;
}

static void call_field(struct rpc_call *call, const uint8_t *name, size_t name_len,
                       const uint8_t *value, size_t len)
{
    struct answer_block *block = &call->block;

    if (field_is(name, name_len, ":status")) {
        block->http_status = status_http_parse(value, len);
    } else if (field_is(name, name_len, "content-type")) {
        block->grpc_type = field_is_grpc_type(value, len);
    } else if (field_is(name, name_len, "grpc-encoding")) {
        call->reader.encoding = message_encoding_parse(value, len);
    } else if (field_is(name, name_len, "grpc-status")) {
        block->has_status = true;
        block->status = status_code_parse(value, len);
    } else if (field_is(name, name_len, "grpc-message")) {
        status_decode(value, len, block->text);
    }
}

int call_header(void *stream, const uint8_t *name, size_t name_len, const uint8_t *value,
                size_t len)
{
    struct rpc_call *call = stream;

    call->headers_bytes += field_bytes(name_len, len);
    if (call->headers_bytes > LINK_HEADERS_BYTES_MAX)
        call_abort(call, RPC_RESOURCE_EXHAUSTED, "the answer's headers are larger than 64 KiB");
    else
        call_field(call, name, name_len, value, len);
    return 0;
}

/* One whole message; the call may be over afterwards. */
static void call_message(struct rpc_call *call)
{
    struct message_arena arena = {0};
    ProtobufCMessage *message;
    int code;

    if (!call->stream && call->messages > 0) {
        call_abort(call, RPC_INTERNAL, "more than one message in a unary answer");
        return;
    }
    call->messages++;
    message =
        message_unpack(call->response, call->reader.body, call->reader.body_len, &arena, &code);
    if (message)
        call->ops->message(call, message, call->user);
    else
        call_abort(call, code,
                   code == RPC_INTERNAL ? "the answer's message does not parse"
                                        : "the answer " MESSAGE_OVER_ARENA);
    message_arena_fini(&arena);
}

void call_data(void *stream, const uint8_t *data, size_t len)
{
    struct rpc_call *call = stream;

    while (call->state == CALL_ANSWERED) {
        switch (message_reader_feed(&call->reader, &data, &len)) {
        case MESSAGE_MORE:
            return;
        case MESSAGE_READY:
            call_message(call);
            break;
        case MESSAGE_FAILED:
            call_abort(call, call->reader.fault_code, call->reader.fault_text);
            break;
        }
    }
}

/* ---- the request ---- */

void call_frame_sent(struct link *link, const nghttp2_frame *frame)
{
    struct rpc_call *call;

    if (frame->hd.type != NGHTTP2_HEADERS)
        return;
    call = call_of(link, frame->hd.stream_id);
    if (call)
        call->headers_sent = true;
}

static ssize_t read_request(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct link *link = user;
    struct rpc_call *call;
    size_t n;

    (void)session;
    (void)source;
    if (!link_usable(link))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    call = call_of(link, stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = call->request_len - call->request_sent;
    if (n > room)
        n = room;
    memcpy(buf, call->request + call->request_sent, n);
    call->request_sent += n;
    if (call->request_sent == call->request_len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* `deadline_ms`: what is left of it, or 0. */
static int32_t call_submit(struct rpc_call *call, uint64_t deadline_ms)
{
    char timeout[STATUS_TIMEOUT_BYTES_MAX];
    nghttp2_data_provider body = {.read_callback = read_request};
    nghttp2_nv fields[9] = {
        field_make(":method", "POST"),
        field_make(":scheme", "http"),
        field_make(":path", call->path),
        field_make(":authority", "localhost"),
        field_make("te", "trailers"),
        field_make("content-type", FIELD_CONTENT_TYPE),
        field_make("user-agent", "cri-device-shim/" SHIM_VERSION),
        field_make("grpc-accept-encoding", FIELD_ENCODINGS),
    };
    size_t count = 8;

    if (deadline_ms) {
        status_timeout_format(deadline_ms, timeout);
        fields[count++] = field_make("grpc-timeout", timeout);
    }
    return nghttp2_submit_request(call->channel->link.session, NULL, fields, count, &body, call);
}

/* Where a call goes that this connection does not take. NULL: nowhere. */
static struct rpc_channel *channel_instead(struct rpc_channel *channel)
{
    return channel->ops->instead ? channel->ops->instead(channel, channel->user) : NULL;
}

/* A server has not looked at what it refuses so, nor at what comes behind its GOAWAY's last stream
 * (RFC 9113 §8.7): that is asked once more, on another connection if this one takes no calls. */
static bool call_repeat(struct rpc_call *call, uint32_t error_code)
{
    struct rpc_channel *channel = call->channel;
    uint64_t now_ms = uv_now(link_loop(&channel->link));

    if (call->state != CALL_WAITING ||
        (call->headers_sent && (call->repeated || error_code != NGHTTP2_REFUSED_STREAM)) ||
        (call->deadline_ms && now_ms >= call->expires_ms))
        return false;
    if (!nghttp2_session_check_request_allowed(channel->link.session))
        channel = channel_instead(channel);
    if (!channel)
        return false;
    LIST_REMOVE(call, entry);
    call->channel->calls_len--;
    LIST_INSERT_HEAD(&channel->calls, call, entry);
    channel->calls_len++;
    call->channel = channel;
    call->repeated |= call->headers_sent;
    call->headers_sent = false;
    call->headers_bytes = 0;
    call->request_sent = 0;
    message_reader_fini(&call->reader);
    message_reader_init(&call->reader, channel->link.budget);
    call->stream_id = call_submit(call, call->deadline_ms ? call->expires_ms - now_ms : 0);
    link_wake(&channel->link);
    return call->stream_id >= 0;
}

void call_stream_closed(void *stream, uint32_t error_code)
{
    struct rpc_call *call = stream;
    char text[96];
    int code = status_from_h2(error_code);

    if (call_repeat(call, error_code))
        return;
    if (!call->headers_sent) {
        call_end(call, RPC_UNAVAILABLE, "the server is going away and takes no more calls");
        return;
    }
    /* The server's clock may be the faster one. */
    if (error_code == NGHTTP2_CANCEL && call->deadline_ms &&
        uv_now(link_loop(&call->channel->link)) >= call->expires_ms)
        code = RPC_DEADLINE_EXCEEDED;
    snprintf(text, sizeof text, "the call was reset: %s", nghttp2_http2_strerror(error_code));
    call_end(call, code, text);
}

static struct rpc_call *call_new(struct rpc_channel *channel, uint64_t deadline_ms)
{
    struct rpc_call *call = calloc(1, sizeof *call);
    uv_loop_t *loop = link_loop(&channel->link);

    if (!call)
        return NULL;
    call->channel = channel;
    call->stream_id = -1;
    call->deadline_ms = deadline_ms;
    message_reader_init(&call->reader, channel->link.budget);
    uv_timer_init(loop, &call->timer);
    call->timer.data = call;
    LIST_INSERT_HEAD(&channel->calls, call, entry);
    channel->calls_len++;
    if (deadline_ms) {
        /* The loop's clock stands still while a callback runs. */
        uv_update_time(loop);
        if (deadline_ms > STATUS_TIMEOUT_MS_MAX)
            deadline_ms = STATUS_TIMEOUT_MS_MAX;
        call->expires_ms = uv_now(loop) + deadline_ms;
        uv_timer_start(&call->timer, call_timer, deadline_ms, 0);
    }
    return call;
}

/* Ends the call from the loop. */
static void call_refuse(struct rpc_call *call, const char *text)
{
    call->refused_code = RPC_RESOURCE_EXHAUSTED;
    call->refused_text = text;
    uv_timer_start(&call->timer, call_timer, 0, 0);
}

/* 0, or -ENOMEM. */
static int call_start(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct rpc_channel *channel = call->channel;
    int err;

    if (channel->calls_len > RPC_CALLS_MAX) {
        call_refuse(call, "too many calls at once on one connection");
        return 0;
    }
    err = message_pack(request, &call->request, &call->request_len);
    if (err == -EMSGSIZE) {
        call_refuse(call, "the request is larger than 16 MiB");
        return 0;
    }
    if (err)
        return err;
    call->stream_id = call_submit(call, call->deadline_ms);
    if (call->stream_id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
        link_break(&channel->link, "the connection has used up its stream ids");
    if (call->stream_id < 0)
        return -ENOMEM;
    link_wake(&channel->link);
    return 0;
}

struct rpc_call *rpc_channel_call(struct rpc_channel *channel, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, bool stream,
                                  uint64_t deadline_ms, const struct rpc_call_ops *ops, void *user)
{
    struct rpc_call *call;

    if (!link_usable(&channel->link))
        return NULL;
    call = call_new(channel, deadline_ms);
    if (!call)
        return NULL;
    call->ops = ops;
    call->user = user;
    call->path = path;
    call->response = response;
    call->stream = stream;
    if (call_start(call, request)) {
        call->stream_id = -1;
        call_detach(call);
        return NULL;
    }
    return call;
}
