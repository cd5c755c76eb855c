#include "shim/bridge/kept_call.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "shim/bridge/kept_inside.h"
#include "shim/rpc/message.h"

/* What a message that is over may leave behind in its place: a connection's have 4 MiB together. */
#define PLACE_BYTES_LEFT ((size_t)4 * 1024 * 1024 / H2_AREAS)

_Static_assert(KEPT_NOTE_BYTES == H2_NOTE_BYTES_MAX, "a note is kept with its stream");

/* ---- their end ---- */

static size_t index_of(const struct kept_call *call)
{
    return (size_t)(call - call->connection->calls);
}

static void let_go(struct kept_call *call)
{
    call->held = false;
    call->cancelled = NULL;
}

static bool is_large(const struct h2_stream *stream)
{
    return stream->request_bytes > PLACE_BYTES_LEFT || stream->message_bytes > PLACE_BYTES_LEFT;
}

/* A stream that sends one message after the other has what it is shown, which is another's to
 * limit. */
static size_t bytes_of(const struct h2_stream *stream)
{
    if (stream->phase == H2_FINISHED)
        return stream->request_bytes + (stream->message_bytes - stream->message_put);
    return stream->phase == H2_REQUEST || stream->phase == H2_ASKED ? stream->request_bytes : 0;
}

static void note_large(struct kept_connection *connection, size_t i)
{
    connection->large[i] = connection->large[i] || is_large(&kept_state_of(connection)->streams[i]);
}

/* A large message of a call that is over is not kept for one that may come. */
size_t kept_calls_hold(struct kept_connection *connection)
{
    size_t held = 0;

    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        const struct h2_stream *stream = &kept_state_of(connection)->streams[i];

        held += bytes_of(stream);
        if (stream->phase != H2_NONE) {
            note_large(connection, i);
        } else if (connection->large[i]) {
            kept_socket_discard(connection->kept, 2 * i);
            kept_socket_discard(connection->kept, 2 * i + 1);
            connection->large[i] = false;
        }
    }
    return held;
}

bool kept_calls_any(const struct kept_connection *connection)
{
    bool any = false;

    for (size_t i = 0; i < H2_STREAMS_MAX; i++)
        any = any || kept_state_of(connection)->streams[i].phase != H2_NONE;
    return any;
}

void kept_calls_resume(struct kept_connection *connection)
{
    for (size_t i = 0; i < H2_STREAMS_MAX; i++)
        connection->large[i] = is_large(&kept_state_of(connection)->streams[i]);
}

static void cancel(struct kept_call *call)
{
    void (*cancelled)(void *user) = call->held ? call->cancelled : NULL;

    if (call->id != 0)
        kept_connection_used(call->connection);
    call->id = 0;
    call->held = false;
    call->cancelled = NULL;
    if (cancelled)
        cancelled(call->user);
}

void kept_calls_forget(struct kept_connection *connection)
{
    for (size_t i = 0; i < H2_STREAMS_MAX && !connection->ended; i++) {
        const struct h2_stream *stream = &kept_state_of(connection)->streams[i];

        if (connection->calls[i].id == 0 ||
            (stream->phase != H2_NONE && stream->id == connection->calls[i].id))
            continue;
        cancel(&connection->calls[i]);
    }
}

void kept_calls_cancel(struct kept_connection *connection)
{
    for (size_t i = 0; i < H2_STREAMS_MAX && !connection->ended; i++)
        cancel(&connection->calls[i]);
}

/* ---- asking ---- */

/* The one message of a request that has come; NULL and why not. */
static ProtobufCMessage *read_request(struct message_reader *reader, struct message_arena *arena,
                                      const struct kept_method *method, const uint8_t *bytes,
                                      size_t len, struct rpc_status *fault)
{
    enum message_event event = len > 0 ? message_reader_feed(reader, &bytes, &len) : MESSAGE_MORE;
    ProtobufCMessage *request;

    *fault = (struct rpc_status){RPC_INTERNAL, "the request is no message"};
    if (event == MESSAGE_FAILED)
        *fault = (struct rpc_status){reader->fault_code, reader->fault_text};
    if (event != MESSAGE_READY || len > 0)
        return NULL;
    request = message_unpack(method->request, reader->body, reader->body_len, arena, &fault->code);
    fault->message = "the request cannot be read";
    return request;
}

static void ask(struct kept_connection *connection, size_t i)
{
    const struct h2_stream *stream = &kept_state_of(connection)->streams[i];
    const struct kept_method *method = &connection->service->methods[stream->method];
    struct kept_call *call = &connection->calls[i];
    struct message_reader reader;
    struct message_arena arena = {0};
    struct message_budget budget = {.left = 2 * (size_t)RPC_MESSAGE_BYTES_MAX};
    const uint8_t *bytes = kept_socket_area(connection->kept, 2 * i);
    ProtobufCMessage *request = NULL;
    struct rpc_status fault = {RPC_RESOURCE_EXHAUSTED, "no memory for the request"};

    *call = (struct kept_call){.connection = connection, .id = stream->id, .held = true};
    if (stream->phase == H2_ANSWERING) {
        method->handle(call, NULL, connection->service->user);
        return;
    }
    message_reader_init(&reader, &budget);
    reader.encoding = stream->encoding;
    errno = 0; /* which memory that is not there sets, but none that is over a bound */
    if (bytes)
        request = read_request(&reader, &arena, method, bytes, stream->request_bytes, &fault);
    if (!bytes || (!request && errno == ENOMEM))
        kept_call_without_memory(call);
    if (request)
        method->handle(call, request, connection->service->user);
    else
        kept_call_finish(call, fault.code, fault.message);
    message_arena_fini(&arena);
    message_reader_fini(&reader);
}

void kept_calls_ask(struct kept_connection *connection)
{
    for (size_t i = 0; i < H2_STREAMS_MAX && !connection->ended; i++) {
        const struct h2_stream *stream = &kept_state_of(connection)->streams[i];

        if ((stream->phase == H2_ASKED || stream->phase == H2_ANSWERING) &&
            stream->id != connection->calls[i].id)
            ask(connection, i);
    }
}

/* ---- what the answerer calls ---- */

void kept_call_on_cancel(struct kept_call *call, void (*cancelled)(void *user), void *user)
{
    assert(call->held);
    call->cancelled = cancelled;
    call->user = user;
}

void kept_call_peer(const struct kept_call *call, struct ucred *out)
{
    *out = call->connection->peer;
}

void kept_call_without_memory(const struct kept_call *call)
{
    h2_reader_without_memory(&call->connection->reader);
}

static const struct h2_stream *stream_of(const struct kept_call *call)
{
    return &kept_state_of(call->connection)->streams[index_of(call)];
}

/* It may all go now, so that nobody sees the stream before it is over. */
static void put(const struct kept_call *call)
{
    note_large(call->connection, index_of(call));
    kept_connection_answered(call->connection);
}

/* Where the next message goes, behind its head; NULL: it does not go. */
static uint8_t *place_for(struct kept_call *call, size_t len)
{
    uint8_t *place =
        len <= RPC_MESSAGE_BYTES_MAX ? h2_place(call->connection->kept, index_of(call)) : NULL;

    if (!place)
        return NULL;
    message_put_head(place, len);
    return place + MESSAGE_HEAD_BYTES;
}

void kept_call_answer(struct kept_call *call, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *place = place_for(call, len);

    assert(call->held);
    if (!place && len <= RPC_MESSAGE_BYTES_MAX)
        kept_call_without_memory(call);
    if (!place) {
        kept_call_finish(call, RPC_RESOURCE_EXHAUSTED, "the answer is too large");
        return;
    }
    protobuf_c_message_pack(message, place);
    h2_answer(call->connection->kept, index_of(call), MESSAGE_HEAD_BYTES + len, true);
    let_go(call);
    put(call);
}

void kept_call_finish(struct kept_call *call, int code, const char *text)
{
    assert(call->held);
    h2_finish(call->connection->kept, index_of(call), code, text ? text : "");
    let_go(call);
    put(call);
}

int kept_call_send(struct kept_call *call, const uint8_t *message, size_t len)
{
    uint8_t *place;

    assert(call->held);
    if (kept_call_is_busy(call))
        return -EAGAIN;
    place = place_for(call, len);
    if (!place)
        return len > RPC_MESSAGE_BYTES_MAX ? -EMSGSIZE : -ENOMEM;
    memcpy(place, message, len);
    h2_answer(call->connection->kept, index_of(call), MESSAGE_HEAD_BYTES + len, false);
    put(call);
    return 0;
}

bool kept_call_is_busy(const struct kept_call *call)
{
    return stream_of(call)->message_put < stream_of(call)->message_bytes;
}

bool kept_call_sent(const struct kept_call *call, const uint8_t *message, size_t len)
{
    const struct h2_stream *stream = stream_of(call);
    const uint8_t *sent =
        kept_socket_area(call->connection->kept, 2 * index_of(call) + stream->place);

    return stream->phase == H2_ANSWERING && sent &&
           stream->message_bytes == MESSAGE_HEAD_BYTES + len &&
           memcmp(sent + MESSAGE_HEAD_BYTES, message, len) == 0;
}

const void *kept_call_note(const struct kept_call *call)
{
    return kept_state_of(call->connection)->words[index_of(call)].note;
}

void kept_call_set_note(struct kept_call *call, const void *note)
{
    h2_note(call->connection->kept, index_of(call), note);
}
