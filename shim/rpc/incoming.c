#include "shim/rpc/incoming.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/rpc/field.h"
#include "shim/rpc/message.h"
#include "shim/rpc/status.h"

enum incoming_state {
    INCOMING_HEADERS,
    INCOMING_BODY,
    INCOMING_HANDLED,
    INCOMING_FINISHED,
};

/* One packed message on its way out. */
struct chunk {
    STAILQ_ENTRY(chunk) entry;
    uint8_t *bytes;
    size_t len;
    size_t sent;
};

/* What the request's header block says. */
struct request_block {
    bool malformed; /* a pseudo header twice */
    bool has_path;
    bool is_post;
    bool grpc_type;
    bool bad_timeout;
    bool has_timeout;
    uint64_t timeout_ms;
    const struct rpc_method *method; /* NULL: unknown */
};

struct rpc_incoming {
    struct caller *caller;
    LIST_ENTRY(rpc_incoming) entry;
    enum incoming_state state;
    int32_t stream_id;
    struct request_block block;
    size_t headers_bytes;
    struct message_reader reader;
    bool has_message; /* the request is in the reader */
    uv_timer_t deadline;
    bool deadline_set; /* the timer is to be closed */
    void (*cancelled)(void *user);
    void *cancelled_user;
    bool answered; /* the answer's headers are submitted, data follow */
    bool deferred; /* the session waits for data */
    STAILQ_HEAD(, chunk) queue;
    size_t queued;
    int code;
    char text[STATUS_ENCODED_BYTES_MAX];
};

/* ---- the end of a call ---- */

static void count_sent(struct rpc_incoming *call, size_t bytes)
{
    call->queued -= bytes;
    call->caller->queued -= bytes;
}

static void drop_chunk(struct rpc_incoming *call)
{
    struct chunk *chunk = STAILQ_FIRST(&call->queue);

    STAILQ_REMOVE_HEAD(&call->queue, entry);
    count_sent(call, chunk->len - chunk->sent);
    free(chunk->bytes);
    free(chunk);
}

static void deadline_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void incoming_free(struct rpc_incoming *call)
{
    struct link *link = &call->caller->link;

    LIST_REMOVE(call, entry);
    call->caller->idle_since_ms = uv_now(link_loop(link));
    nghttp2_session_set_stream_user_data(link->session, call->stream_id, NULL);
    message_reader_fini(&call->reader);
    while (!STAILQ_EMPTY(&call->queue))
        drop_chunk(call);
    if (call->deadline_set)
        uv_close((uv_handle_t *)&call->deadline, deadline_closed);
    else
        free(call);
}

bool incoming_any_handled(const struct caller *caller)
{
    const struct rpc_incoming *call = LIST_FIRST(&caller->calls);

    while (call && call->state != INCOMING_HANDLED)
        call = LIST_NEXT(call, entry);
    return call;
}

/* The handler's claim on the call ends; returns what it wants to be told. */
static void (*incoming_take_cancelled(struct rpc_incoming *call, void **user))(void *)
{
    void (*cancelled)(void *) = call->state == INCOMING_HANDLED ? call->cancelled : NULL;

    *user = call->cancelled_user;
    call->cancelled = NULL;
    return cancelled;
}

void incoming_cancel(struct rpc_incoming *call)
{
    void *user;
    void (*cancelled)(void *) = incoming_take_cancelled(call, &user);

    incoming_free(call);
    if (cancelled)
        cancelled(user);
}

/* ---- the answer ---- */

static size_t status_fields(const struct rpc_incoming *call, char code[static 4],
                            nghttp2_nv fields[static 2])
{
    snprintf(code, 4, "%d", call->code);
    fields[0] = field_make("grpc-status", code);
    fields[1] = field_make("grpc-message", call->text);
    return call->text[0] ? 2 : 1;
}

static int submit_trailers(struct rpc_incoming *call)
{
    nghttp2_nv fields[2];
    char code[4];
    size_t count = status_fields(call, code, fields);

    return nghttp2_submit_trailer(call->caller->link.session, call->stream_id, fields, count);
}

static size_t copy_queue(struct rpc_incoming *call, uint8_t *buf, size_t room)
{
    size_t used = 0;

    while (used < room && !STAILQ_EMPTY(&call->queue)) {
        struct chunk *chunk = STAILQ_FIRST(&call->queue);
        size_t n = chunk->len - chunk->sent;

        if (n > room - used)
            n = room - used;
        memcpy(buf + used, chunk->bytes + chunk->sent, n);
        chunk->sent += n;
        count_sent(call, n);
        used += n;
        if (chunk->sent == chunk->len)
            drop_chunk(call);
    }
    return used;
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct link *link = user;
    struct rpc_incoming *call;
    size_t used;

    (void)source;
    if (!link_usable(link))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    call = nghttp2_session_get_stream_user_data(session, stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    used = copy_queue(call, buf, room);
    if (STAILQ_EMPTY(&call->queue) && call->state == INCOMING_FINISHED) {
        if (submit_trailers(call))
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    } else if (used == 0) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)used;
}

/* Makes the session ask for data again. */
static int resume(struct rpc_incoming *call)
{
    link_wake(&call->caller->link);
    if (!call->deferred)
        return 0;
    call->deferred = false;
    return nghttp2_session_resume_data(call->caller->link.session, call->stream_id);
}

static int submit_answer(struct rpc_incoming *call)
{
    nghttp2_data_provider body = {.read_callback = read_answer};
    nghttp2_nv fields[2] = {
        field_make(":status", "200"),
        field_make("content-type", FIELD_CONTENT_TYPE),
    };

    if (nghttp2_submit_response(call->caller->link.session, call->stream_id, fields, 2, &body))
        return -ENOMEM;
    call->answered = true;
    return 0;
}

static int submit_trailers_only(struct rpc_incoming *call, const char *http_status)
{
    nghttp2_nv fields[5] = {
        field_make(":status", http_status),
        field_make("content-type", FIELD_CONTENT_TYPE),
        field_make("grpc-accept-encoding", FIELD_ENCODINGS),
    };
    char code[4];
    size_t count = 3 + status_fields(call, code, fields + 3);

    return nghttp2_submit_response(call->caller->link.session, call->stream_id, fields, count,
                                   NULL);
}

static void stop_receiving(struct rpc_incoming *call)
{
    message_reader_fini(&call->reader);
    if (call->deadline_set)
        uv_timer_stop(&call->deadline);
}

static void incoming_end(struct rpc_incoming *call, int code, const char *text,
                         const char *http_status)
{
    struct link *link = &call->caller->link;
    int err;

    call->caller->idle_since_ms = uv_now(link_loop(link));
    call->state = INCOMING_FINISHED;
    call->code = code;
    status_encode(text, call->text);
    stop_receiving(call);
    err = call->answered ? resume(call) : submit_trailers_only(call, http_status);
    if (err)
        link_reset(link, call->stream_id, NGHTTP2_INTERNAL_ERROR);
    link_wake(link);
}

/* Answers a call that has no handler yet. */
static void incoming_refuse(struct rpc_incoming *call, int code, const char *text)
{
    incoming_end(call, code, text, "200");
}

void rpc_incoming_finish(struct rpc_incoming *call, int code, const char *message)
{
    assert(call->state == INCOMING_HANDLED);
    call->cancelled = NULL;
    incoming_end(call, code, message ? message : "", "200");
}

void rpc_incoming_answer(struct rpc_incoming *call, const ProtobufCMessage *message)
{
    if (rpc_incoming_send(call, message) < 0)
        rpc_incoming_finish(call, RPC_RESOURCE_EXHAUSTED, "too much waits for this client already");
    else
        rpc_incoming_finish(call, RPC_OK, NULL);
}

/* Takes `chunk`, which holds a message unless there was an error. */
static int queue_chunk(struct rpc_incoming *call, struct chunk *chunk, int err)
{
    if (!err && !call->answered)
        err = submit_answer(call);
    if (err) {
        free(chunk->bytes);
        free(chunk);
        return err;
    }
    STAILQ_INSERT_TAIL(&call->queue, chunk, entry);
    call->queued += chunk->len;
    call->caller->queued += chunk->len;
    if (call->caller->queued > *call->caller->service->queued_max)
        *call->caller->service->queued_max = call->caller->queued;
    return resume(call) ? -ENOMEM : 0;
}

/* 0 with an empty one, or a negative error. */
static int chunk_new(const struct rpc_incoming *call, struct chunk **out)
{
    assert(call->state == INCOMING_HANDLED);
    if (call->caller->queued > call->caller->service->limits.queue_bytes)
        return -ENOBUFS;
    *out = calloc(1, sizeof **out);
    return *out ? 0 : -ENOMEM;
}

int rpc_incoming_send(struct rpc_incoming *call, const ProtobufCMessage *message)
{
    struct chunk *chunk;
    int err = chunk_new(call, &chunk);

    return err ? err : queue_chunk(call, chunk, message_pack(message, &chunk->bytes, &chunk->len));
}

size_t rpc_incoming_queued(const struct rpc_incoming *call)
{
    return call->queued;
}

void rpc_incoming_peer(const struct rpc_incoming *call, struct ucred *out)
{
    *out = call->caller->peer;
}

void rpc_incoming_on_cancel(struct rpc_incoming *call, void (*cancelled)(void *user), void *user)
{
    assert(call->state == INCOMING_HANDLED);
    call->cancelled = cancelled;
    call->cancelled_user = user;
}

/* ---- the request ---- */

static void deadline_passed(uv_timer_t *timer)
{
    struct rpc_incoming *call = timer->data;
    void *user;
    void (*cancelled)(void *) = incoming_take_cancelled(call, &user);

    incoming_refuse(call, RPC_DEADLINE_EXCEEDED, "the call's deadline has passed");
    if (cancelled)
        cancelled(user);
}

static void start_deadline(struct rpc_incoming *call)
{
    uv_timer_init(link_loop(&call->caller->link), &call->deadline);
    call->deadline.data = call;
    call->deadline_set = true;
    uv_timer_start(&call->deadline, deadline_passed, call->block.timeout_ms, 0);
}

/* The request's header block is whole. */
static void incoming_headers(struct rpc_incoming *call)
{
    const struct request_block *block = &call->block;

    if (block->malformed || !block->has_path) {
        call->state = INCOMING_FINISHED;
        link_reset(&call->caller->link, call->stream_id, NGHTTP2_PROTOCOL_ERROR);
    } else if (call->caller->denied) {
        incoming_refuse(call, RPC_PERMISSION_DENIED, "only for root and the user of this process");
    } else if (!block->is_post) {
        incoming_end(call, RPC_INTERNAL, "the method is not POST", "405");
    } else if (!block->grpc_type) {
        incoming_end(call, RPC_INTERNAL, "the content-type is not gRPC's", "415");
    } else if (block->bad_timeout) {
        incoming_refuse(call, RPC_INTERNAL, "malformed grpc-timeout");
    } else if (!block->method) {
        incoming_refuse(call, RPC_UNIMPLEMENTED, "unknown method");
    } else if (call->reader.encoding == MESSAGE_ENCODING_UNKNOWN) {
        incoming_refuse(call, RPC_UNIMPLEMENTED, "unknown grpc-encoding");
    } else {
        call->state = INCOMING_BODY;
        if (block->has_timeout)
            start_deadline(call);
    }
}

static void incoming_handle(struct rpc_incoming *call)
{
    const struct rpc_method *method = call->block.method;
    struct message_arena arena = {0};
    ProtobufCMessage *request;
    int code;

    request =
        message_unpack(method->request, call->reader.body, call->reader.body_len, &arena, &code);
    if (request) {
        call->state = INCOMING_HANDLED;
        message_reader_fini(&call->reader);
        method->handle(call, request, call->caller->service->user);
    } else {
        incoming_refuse(call, code,
                        code == RPC_INTERNAL ? "the request does not parse"
                                             : "the request " MESSAGE_OVER_ARENA);
    }
    message_arena_fini(&arena);
}

/* The client has said all. */
static void incoming_request_end(struct rpc_incoming *call)
{
    if (call->state != INCOMING_BODY)
        return;
    if (!call->has_message)
        incoming_refuse(call, RPC_INTERNAL,
                        message_reader_partial(&call->reader) ? "the request ends inside a message"
                                                              : "the request has no message");
    else
        incoming_handle(call);
}

void incoming_data(struct rpc_incoming *call, const uint8_t *data, size_t len)
{
    while (call->state == INCOMING_BODY && len > 0) {
        if (call->has_message) {
            incoming_refuse(call, RPC_INTERNAL, "more than one message in a unary request");
            return;
        }
        switch (message_reader_feed(&call->reader, &data, &len)) {
        case MESSAGE_MORE:
            return;
        case MESSAGE_READY:
            call->has_message = true;
            break;
        case MESSAGE_FAILED:
            incoming_refuse(call, call->reader.fault_code, call->reader.fault_text);
            break;
        }
    }
}

static const struct rpc_method *find_method(const struct rpc_service *service, const uint8_t *path,
                                            size_t len)
{
    for (size_t i = 0; i < service->methods_len; i++) {
        if (field_is(path, len, service->methods[i].path))
            return &service->methods[i];
    }
    return NULL;
}

static void incoming_field(struct rpc_incoming *call, const uint8_t *name, size_t name_len,
                           const uint8_t *value, size_t len)
{
    struct request_block *block = &call->block;

    if (field_is(name, name_len, ":path")) {
        block->malformed |= block->has_path;
        block->has_path = true;
        block->method = find_method(call->caller->service, value, len);
    } else if (field_is(name, name_len, ":method")) {
        block->is_post = field_is(value, len, "POST");
    } else if (field_is(name, name_len, "content-type")) {
        block->grpc_type = field_is_grpc_type(value, len);
    } else if (field_is(name, name_len, "grpc-encoding")) {
        call->reader.encoding = message_encoding_parse(value, len);
    } else if (field_is(name, name_len, "grpc-timeout")) {
        block->has_timeout = true;
        block->bad_timeout = !status_timeout_parse(value, len, &block->timeout_ms);
    }
}

/* ---- from the session ---- */

bool incoming_begin(struct caller *caller, int32_t stream_id)
{
    struct rpc_incoming *call = calloc(1, sizeof *call);

    if (!call)
        return false;
    call->caller = caller;
    call->stream_id = stream_id;
    message_reader_init(&call->reader, caller->link.budget);
    STAILQ_INIT(&call->queue);
    if (LIST_EMPTY(&caller->calls))
        caller->idle_since_ms = uv_now(link_loop(&caller->link));
    LIST_INSERT_HEAD(&caller->calls, call, entry);
    nghttp2_session_set_stream_user_data(caller->link.session, stream_id, call);
    return true;
}

bool incoming_header(struct rpc_incoming *call, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t len)
{
    call->headers_bytes += field_bytes(name_len, len);
    if (call->headers_bytes > LINK_HEADERS_BYTES_MAX)
        return false;
    if (call->state == INCOMING_HEADERS)
        incoming_field(call, name, name_len, value, len);
    return true;
}

void incoming_frame(struct rpc_incoming *call, bool end)
{
    if (call->state == INCOMING_HEADERS)
        incoming_headers(call);
    if (end)
        incoming_request_end(call);
}
