/* The server: a listening socket, its connections and their calls. */
#include "shim/rpc/rpc.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/rpc/field.h"
#include "shim/rpc/link.h"
#include "shim/rpc/listen.h"
#include "shim/rpc/message.h"
#include "shim/rpc/socket_file.h"
#include "shim/rpc/status.h"

/* Connections at once; more wait in the kernel's backlog until one ends. */
#define SERVER_CONNECTIONS_MAX 256
/* When a connection that could not be taken is tried again. */
#define SERVER_RETRY_MS 1000

struct rpc_server {
    uv_loop_t *loop;
    uv_pipe_t *listener; /* NULL: nobody listens */
    uv_timer_t retry;
    unsigned handles; /* not yet closed */
    bool closing;
    bool waiting; /* libuv holds a connection for us, and asks for the next only after that */
    const struct rpc_method *methods;
    size_t methods_len;
    void *user;
    LIST_HEAD(, connection) connections;
    size_t connections_len;
    struct socket_file file;
};

struct connection {
    struct link link;
    struct rpc_server *server;
    LIST_ENTRY(connection) entry;
    LIST_HEAD(, rpc_incoming) calls;
    size_t queued; /* bytes of answers, all calls together */
    struct ucred peer;
};

/*
 *     HEADERS ──whole──▶ BODY ──end of the request──▶ HANDLED ──finish──▶ FINISHED
 *        └─────────────────┴── refused ──────────────────────────────────────┘
 *
 * HEADERS and BODY wait for the client, HANDLED for the handler, FINISHED for the client to take
 * the answer. The stream's end frees the call in any of them.
 */
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
    struct connection *connection;
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
    call->connection->queued -= bytes;
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

/* Takes the call out of everything and frees it. */
static void incoming_free(struct rpc_incoming *call)
{
    LIST_REMOVE(call, entry);
    nghttp2_session_set_stream_user_data(call->connection->link.session, call->stream_id, NULL);
    message_reader_fini(&call->reader);
    while (!STAILQ_EMPTY(&call->queue))
        drop_chunk(call);
    if (call->deadline_set)
        uv_close((uv_handle_t *)&call->deadline, deadline_closed);
    else
        free(call);
}

/* The handler's claim on the call ends; returns what it wants to be told. */
static void (*incoming_take_cancelled(struct rpc_incoming *call, void **user))(void *)
{
    void (*cancelled)(void *) = call->state == INCOMING_HANDLED ? call->cancelled : NULL;

    *user = call->cancelled_user;
    call->cancelled = NULL;
    return cancelled;
}

/* The client has gone: the call goes, then its handler hears of it. */
static void incoming_cancel(struct rpc_incoming *call)
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

    return nghttp2_submit_trailer(call->connection->link.session, call->stream_id, fields, count);
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
    struct link *link = &call->connection->link;

    link_wake(link);
    if (!call->deferred)
        return 0;
    call->deferred = false;
    return nghttp2_session_resume_data(link->session, call->stream_id);
}

static int submit_answer(struct rpc_incoming *call)
{
    nghttp2_data_provider body = {.read_callback = read_answer};
    nghttp2_nv fields[2] = {
        field_make(":status", "200"),
        field_make("content-type", FIELD_CONTENT_TYPE),
    };

    if (nghttp2_submit_response(call->connection->link.session, call->stream_id, fields, 2, &body))
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

    return nghttp2_submit_response(call->connection->link.session, call->stream_id, fields, count,
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
    struct link *link = &call->connection->link;
    int err;

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

int rpc_incoming_send(struct rpc_incoming *call, const ProtobufCMessage *message)
{
    struct chunk *chunk;
    int err;

    assert(call->state == INCOMING_HANDLED);
    if (call->connection->queued > RPC_QUEUE_BYTES_MAX)
        return -ENOBUFS;
    chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    err = message_pack(message, &chunk->bytes, &chunk->len);
    if (!err && !call->answered)
        err = submit_answer(call);
    if (err) {
        free(chunk->bytes);
        free(chunk);
        return err;
    }
    STAILQ_INSERT_TAIL(&call->queue, chunk, entry);
    call->queued += chunk->len;
    call->connection->queued += chunk->len;
    return resume(call) ? -ENOMEM : 0;
}

size_t rpc_incoming_queued(const struct rpc_incoming *call)
{
    return call->queued;
}

void rpc_incoming_peer(const struct rpc_incoming *call, struct ucred *out)
{
    *out = call->connection->peer;
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
    uv_timer_init(link_loop(&call->connection->link), &call->deadline);
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
        link_reset(&call->connection->link, call->stream_id, NGHTTP2_PROTOCOL_ERROR);
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
        method->handle(call, request, call->connection->server->user);
    } else {
        incoming_refuse(call, code,
                        code == RPC_INTERNAL ? "the request does not parse"
                                             : "no memory for the request");
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

static void incoming_data(struct rpc_incoming *call, const uint8_t *data, size_t len)
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

static const struct rpc_method *find_method(const struct rpc_server *server, const uint8_t *path,
                                            size_t len)
{
    for (size_t i = 0; i < server->methods_len; i++) {
        if (field_is(path, len, server->methods[i].path))
            return &server->methods[i];
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
        block->method = find_method(call->connection->server, value, len);
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

/* ---- the session's callbacks ---- */

static struct connection *connection_of(struct link *link)
{
    return (struct connection *)((char *)link - offsetof(struct connection, link));
}

static struct rpc_incoming *call_of(struct link *link, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(link->session, stream_id);
}

static int on_headers_begin(struct link *link, const nghttp2_frame *frame)
{
    struct connection *connection = connection_of(link);
    struct rpc_incoming *call;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    call = calloc(1, sizeof *call);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    call->connection = connection;
    call->stream_id = frame->hd.stream_id;
    message_reader_init(&call->reader, &link->budget);
    STAILQ_INIT(&call->queue);
    LIST_INSERT_HEAD(&connection->calls, call, entry);
    nghttp2_session_set_stream_user_data(link->session, call->stream_id, call);
    return 0;
}

static int on_header(void *stream, const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len)
{
    struct rpc_incoming *call = stream;

    call->headers_bytes += field_bytes(name_len, len);
    if (call->headers_bytes > LINK_HEADERS_BYTES_MAX)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (call->state == INCOMING_HEADERS)
        incoming_field(call, name, name_len, value, len);
    return 0;
}

static void on_data(void *stream, const uint8_t *data, size_t len)
{
    incoming_data(stream, data, len);
}

static void on_frame_received(struct link *link, const nghttp2_frame *frame)
{
    struct rpc_incoming *call;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return;
    call = call_of(link, frame->hd.stream_id);
    if (!call)
        return;
    if (call->state == INCOMING_HEADERS)
        incoming_headers(call);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        incoming_request_end(call);
}

/* Tells a client that is still sending that nobody listens to it (RFC 9113 §8.1). */
static void on_frame_sent(struct link *link, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        nghttp2_session_get_stream_remote_close(link->session, frame->hd.stream_id) == 0)
        link_reset(link, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

static void on_stream_closed(void *stream, uint32_t error_code)
{
    (void)error_code;
    incoming_cancel(stream);
}

/* ---- connections ---- */

static void accept_next(struct rpc_server *server);

/* The gate: the handles are closed and the connections are gone. */
static void server_maybe_free(struct rpc_server *server)
{
    if (server->handles > 0 || !LIST_EMPTY(&server->connections))
        return;
    socket_file_fini(&server->file);
    free(server);
}

static void on_ended(struct link *link, const char *reason)
{
    struct connection *connection = connection_of(link);

    log_debug("%s: connection of pid %d ended: %s", socket_file_path(&connection->server->file),
              connection->peer.pid, reason);
    /* Any cancelled() may close the server, which empties the list and closes the link. */
    while (!LIST_EMPTY(&connection->calls))
        incoming_cancel(LIST_FIRST(&connection->calls));
    if (link->state == LINK_ENDED)
        link_close(link);
}

static void on_gone(struct link *link)
{
    struct connection *connection = connection_of(link);
    struct rpc_server *server = connection->server;

    LIST_REMOVE(connection, entry);
    server->connections_len--;
    free(connection);
    if (server->closing)
        server_maybe_free(server);
    else
        accept_next(server);
}

static void connection_close(struct connection *connection)
{
    while (!LIST_EMPTY(&connection->calls))
        incoming_free(LIST_FIRST(&connection->calls));
    if (connection->link.state != LINK_CLOSED)
        link_close(&connection->link);
}

static int connection_new(struct rpc_server *server, struct connection **out)
{
    static const struct link_ops link_ops = {
        .ended = on_ended,
        .gone = on_gone,
        .frame_received = on_frame_received,
        .frame_sent = on_frame_sent,
        .headers_begin = on_headers_begin,
        .stream_header = on_header,
        .stream_data = on_data,
        .stream_closed = on_stream_closed,
    };
    struct connection *connection = malloc(sizeof *connection);
    int err;

    if (!connection)
        return UV_ENOMEM;
    err = link_init(&connection->link, server->loop, LINK_SERVER, &link_ops);
    if (err) {
        free(connection);
        return err;
    }
    connection->server = server;
    connection->queued = 0;
    LIST_INIT(&connection->calls);
    LIST_INSERT_HEAD(&server->connections, connection, entry);
    server->connections_len++;
    *out = connection;
    return 0;
}

static void retry_passed(uv_timer_t *timer)
{
    accept_next(timer->data);
}

/* Takes the connection that waits, if one does and there is room. */
static void accept_next(struct rpc_server *server)
{
    struct connection *connection;
    int err;

    if (!server->waiting || server->connections_len >= SERVER_CONNECTIONS_MAX)
        return;
    err = connection_new(server, &connection);
    if (err) {
        log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                    uv_strerror(err));
        uv_timer_start(&server->retry, retry_passed, SERVER_RETRY_MS, 0);
        return;
    }
    server->waiting = false;
    err = link_accept(&connection->link, server->listener);
    if (!err)
        err = unix_peer(link_fd(&connection->link), &connection->peer);
    if (err)
        link_close(&connection->link);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct rpc_server *server = listener->data;

    if (status < 0) {
        log_warning("%s: cannot take a connection: %s", socket_file_path(&server->file),
                    uv_strerror(status));
        return;
    }
    server->waiting = true;
    accept_next(server);
}

/* ---- the server ---- */

static void listener_closed(uv_handle_t *handle)
{
    struct rpc_server *server = handle->data;

    free(handle);
    server->handles--;
    server_maybe_free(server);
}

static void listener_close(struct rpc_server *server)
{
    if (!server->listener)
        return;
    uv_close((uv_handle_t *)server->listener, listener_closed);
    server->listener = NULL;
    server->waiting = false;
}

static void retry_closed(uv_handle_t *handle)
{
    struct rpc_server *server = handle->data;

    server->handles--;
    server_maybe_free(server);
}

static void close_handles(struct rpc_server *server)
{
    server->closing = true;
    listener_close(server);
    uv_close((uv_handle_t *)&server->retry, retry_closed);
}

/* Makes the listener of the listening `fd`, which it takes also on failure. */
static int listener_open(struct rpc_server *server, int fd)
{
    uv_pipe_t *pipe = malloc(sizeof *pipe);
    int err;

    if (!pipe) {
        close(fd);
        return -ENOMEM;
    }
    uv_pipe_init(server->loop, pipe, 0);
    pipe->data = server;
    server->listener = pipe;
    server->handles++;
    err = uv_pipe_open(pipe, fd);
    if (err)
        close(fd);
    else
        err = uv_listen((uv_stream_t *)pipe, SOMAXCONN, on_connection);
    if (err)
        listener_close(server);
    return err;
}

int rpc_server_new(uv_loop_t *loop, const struct socket_place *place,
                   const struct rpc_method *methods, size_t methods_len, void *user,
                   struct rpc_server **out)
{
    struct rpc_server *server = calloc(1, sizeof *server);

    if (!server)
        return -ENOMEM;
    if (socket_file_init(&server->file, place) < 0) {
        free(server);
        return -ENOMEM;
    }
    server->loop = loop;
    server->methods = methods;
    server->methods_len = methods_len;
    server->user = user;
    LIST_INIT(&server->connections);
    uv_timer_init(loop, &server->retry);
    server->retry.data = server;
    server->handles = 1;
    *out = server;
    return 0;
}

/* The listener from before goes when there is a new one, and not sooner: it may be the one that
 * still works. */
int rpc_server_listen(struct rpc_server *server)
{
    int fd, err;

    if (server->listener && socket_file_there(&server->file))
        return 0;
    err = socket_file_make(&server->file, &fd);
    if (err)
        return err;
    listener_close(server);
    err = listener_open(server, fd);
    if (err)
        socket_file_remove(&server->file);
    return err ? err : 1;
}

int rpc_server_open(uv_loop_t *loop, const char *path, const struct rpc_method *methods,
                    size_t methods_len, void *user, struct rpc_server **out)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[PATH_MAX];
    const struct socket_place place = {.dir = dir, .name = name};
    struct rpc_server *server;
    int err;

    snprintf(dir, sizeof dir, "%.*s", (int)(name - 1 - path), path);
    err = rpc_server_new(loop, &place, methods, methods_len, user, &server);
    if (err)
        return err;
    err = rpc_server_listen(server);
    if (err < 0) {
        rpc_server_close(server);
        return err;
    }
    *out = server;
    return 0;
}

void rpc_server_disconnect(struct rpc_server *server)
{
    struct connection *connection, *next;

    for (connection = LIST_FIRST(&server->connections); connection; connection = next) {
        next = LIST_NEXT(connection, entry);
        connection_close(connection);
    }
}

void rpc_server_close(struct rpc_server *server)
{
    if (!server)
        return;
    /* The name goes before the socket does: what is served there later is not ours to remove. */
    socket_file_remove(&server->file);
    close_handles(server);
    rpc_server_disconnect(server);
}
