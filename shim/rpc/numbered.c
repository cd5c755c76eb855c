#include "shim/rpc/numbered.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) abort()
#include <uthash.h>

#include "shim/must.h"

struct numbered_call {
    struct numbered_calls *set;
    UT_hash_handle hh;
    uint64_t number;
    const struct numbered_method *method;
    char *note;
    const struct rpc_channel *channel;
    struct rpc_call *rpc; /* NULL: could not be made, waits to be told so */
    uint8_t *response;    /* its wire form: one that waits for its end may do so for long */
    size_t response_bytes;
};

static void drop_response(struct numbered_call *call)
{
    call->set->kept_bytes -= call->response_bytes;
    free(call->response);
    call->response = NULL;
    call->response_bytes = 0;
}

static void call_free(struct numbered_call *call)
{
    drop_response(call);
    free(call->note);
    free(call);
}

/* NULL: there is none, or no memory. */
static ProtobufCMessage *take_response(struct numbered_call *call)
{
    ProtobufCMessage *message = NULL;

    if (call->response)
        message = protobuf_c_message_unpack(call->method->response, NULL, call->response_bytes,
                                            call->response);
    drop_response(call);
    return message;
}

/* Leaves the table before it is told, since its owner may do anything. */
static void call_end(struct numbered_call *call, int code, const char *message,
                     const ProtobufCMessage *response)
{
    struct numbered_calls *set = call->set;
    const struct numbered_end end = {.method = call->method,
                                     .number = call->number,
                                     .note = call->note,
                                     .code = code,
                                     .message = message,
                                     .response = response};

    HASH_DELETE(hh, set->open, call);
    set->ended(set->user, &end);
    call_free(call);
}

static void on_message(struct rpc_call *rpc, const ProtobufCMessage *message, void *user)
{
    struct numbered_call *call = user;
    size_t bytes = protobuf_c_message_get_packed_size(message);

    (void)rpc;
    drop_response(call);
    if (bytes > NUMBERED_BYTES_MAX - call->set->kept_bytes)
        return;
    call->response = malloc(bytes + 1);
    if (!call->response)
        return;
    call->response_bytes = protobuf_c_message_pack(message, call->response);
    call->set->kept_bytes += bytes;
}

static void on_done(struct rpc_call *rpc, const struct rpc_status *status, void *user)
{
    struct numbered_call *call = user;
    ProtobufCMessage *response = status->code == RPC_OK ? take_response(call) : NULL;

    (void)rpc;
    /* One that is OK has had its message. */
    if (status->code == RPC_OK && !response)
        call_end(call, RPC_RESOURCE_EXHAUSTED, "no memory for the answer", NULL);
    else
        call_end(call, status->code, status->message, response);
    if (response)
        protobuf_c_message_free_unpacked(response, NULL);
}

static const struct rpc_call_ops CALL_OPS = {.message = on_message, .done = on_done};

static void on_unmade(uv_timer_t *timer)
{
    struct numbered_calls *set = timer->data;
    struct numbered_call *call, *next;

    /* One at a time: the callback may add and take away others. */
    HASH_ITER(hh, set->open, call, next) {
        if (call->rpc)
            continue;
        uv_timer_start(&set->unmade, on_unmade, 0, 0);
        call_end(call, RPC_UNAVAILABLE, set->gone, NULL);
        return;
    }
}

void numbered_calls_init(struct numbered_calls *calls, uv_loop_t *loop,
                         void (*ended)(void *user, const struct numbered_end *end), void *user,
                         const char *gone)
{
    *calls = (struct numbered_calls){.ended = ended, .user = user, .gone = gone};
    uv_timer_init(loop, &calls->unmade);
    calls->unmade.data = calls;
}

size_t numbered_calls_len(const struct numbered_calls *calls)
{
    return HASH_COUNT(calls->open);
}

void numbered_calls_start(struct numbered_calls *calls, struct rpc_channel *channel,
                          const struct numbered_method *method, uint64_t number, const char *note,
                          const ProtobufCMessage *request, uint64_t timeout_ms)
{
    struct numbered_call *call = must(calloc(1, sizeof *call));

    call->set = calls;
    call->number = number;
    call->method = method;
    call->note = note ? must(strdup(note)) : NULL;
    call->channel = channel;
    HASH_ADD(hh, calls->open, number, sizeof call->number, call);
    if (channel)
        call->rpc = rpc_channel_call(channel, method->path, request, method->response, false,
                                     timeout_ms ? timeout_ms : 1, &CALL_OPS, call);
    if (!call->rpc)
        uv_timer_start(&calls->unmade, on_unmade, 0, 0);
}

static void call_drop(struct numbered_call *call)
{
    HASH_DELETE(hh, call->set->open, call);
    call_free(call);
}

static void call_take_back(struct numbered_call *call)
{
    rpc_call_cancel(call->rpc);
    call_drop(call);
}

void numbered_calls_cancel(struct numbered_calls *calls, uint64_t number)
{
    struct numbered_call *call;

    HASH_FIND(hh, calls->open, &number, sizeof number, call);
    if (call)
        call_take_back(call);
}

void numbered_calls_cancel_all(struct numbered_calls *calls, const struct rpc_channel *channel)
{
    struct numbered_call *call, *next;

    HASH_ITER(hh, calls->open, call, next) {
        if (call->rpc && call->channel == channel)
            call_take_back(call);
    }
}

void numbered_calls_move(struct numbered_calls *calls, const struct rpc_channel *channel,
                         const struct rpc_channel *to)
{
    struct numbered_call *call, *next;

    HASH_ITER(hh, calls->open, call, next) {
        if (call->channel == channel)
            call->channel = to;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct numbered_calls *calls = handle->data;

    calls->done(calls->done_user);
}

void numbered_calls_stop(struct numbered_calls *calls, void (*done)(void *user), void *user)
{
    struct numbered_call *call, *next;

    calls->done = done;
    calls->done_user = user;
    HASH_ITER(hh, calls->open, call, next) {
        call_drop(call);
    }
    uv_close((uv_handle_t *)&calls->unmade, on_closed);
}
