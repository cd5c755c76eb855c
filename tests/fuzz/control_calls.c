/* The sockets of control_stage.h's stage. */
#include <utlist.h>

#include "shim/control/limits.h"
#include "shim/rpc/keeper.h"
#include "shim/rpc/listener.h"
#include "tests/fuzz/control_stage.h"
#include "tests/fuzz/fuzz.h"

/* The longest answer: a page, and one row more of the longest texts there may be. */
#define ANSWER_BYTES_MAX (CONTROL_PAGE_BYTES_MAX + CONTROL_REQUEST_BYTES_MAX)

/* A call as shim/control/ sees it. */
struct rpc_incoming {
    void (*cancelled)(void *user);
    void *user;
    struct rpc_incoming *prev, *next;
};

static struct {
    const struct rpc_method *methods;
    size_t methods_len;
    void *user; /* of the methods */
    struct rpc_incoming *calls;
} served;

/* ---- calls ---- */

static bool is_open(const struct rpc_incoming *call)
{
    const struct rpc_incoming *one;

    DL_FOREACH(served.calls, one) {
        if (one == call)
            return true;
    }
    return false;
}

static void end(struct rpc_incoming *call)
{
    FUZZ_CHECK(is_open(call), "a call that is over");
    DL_DELETE(served.calls, call);
    free(call);
}

void rpc_incoming_finish(struct rpc_incoming *call, int code, const char *message)
{
    FUZZ_CHECK(code == RPC_OK || (message && message[0]), "code %d without a word", code);
    end(call);
}

int rpc_incoming_send(struct rpc_incoming *call, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);

    FUZZ_CHECK(is_open(call), "a call that is over");
    FUZZ_CHECK(len <= ANSWER_BYTES_MAX, "an answer of %zu bytes", len);
    if (!bytes)
        abort();
    FUZZ_CHECK(protobuf_c_message_pack(message, bytes) == len, "%zu bytes", len);
    free(bytes);
    return 0;
}

void rpc_incoming_answer(struct rpc_incoming *call, const ProtobufCMessage *message)
{
    if (rpc_incoming_send(call, message) == 0)
        end(call);
}

size_t rpc_incoming_queued(const struct rpc_incoming *call)
{
    (void)call;
    return 0;
}

void rpc_incoming_peer(const struct rpc_incoming *call, struct ucred *out)
{
    FUZZ_CHECK(is_open(call), "a call that is over");
    *out = (struct ucred){.pid = 1};
}

void rpc_incoming_on_cancel(struct rpc_incoming *call, void (*cancelled)(void *user), void *user)
{
    FUZZ_CHECK(is_open(call), "a call that is over");
    call->cancelled = cancelled;
    call->user = user;
}

void control_stage_call(size_t method, const uint8_t *request, size_t len)
{
    const struct rpc_method *called = &served.methods[method];
    ProtobufCMessage *message = protobuf_c_message_unpack(called->request, NULL, len, request);
    struct rpc_incoming *call;

    if (!message)
        return;
    call = calloc(1, sizeof *call);
    if (!call)
        abort();
    DL_APPEND(served.calls, call);
    called->handle(call, message, served.user);
    protobuf_c_message_free_unpacked(message, NULL);
    FUZZ_CHECK(!is_open(call) || call->cancelled, "%s: kept, whatever its client does",
               called->path);
}

void control_stage_client_gone(void)
{
    struct rpc_incoming *call = served.calls;
    void (*cancelled)(void *user);
    void *user;

    if (!call)
        return;
    cancelled = call->cancelled;
    user = call->user;
    end(call);
    cancelled(user);
}

/* ---- the server ---- */

int rpc_server_new(uv_loop_t *loop, const struct socket_place *place,
                   const struct rpc_method *methods, size_t methods_len, void *user,
                   struct rpc_server **out)
{
    (void)loop;
    (void)place;
    served.methods = methods;
    served.methods_len = methods_len;
    served.user = user;
    *out = NULL;
    return 0;
}

void rpc_server_set_limits(struct rpc_server *server, const struct rpc_limits *limits)
{
    (void)server;
    (void)limits;
}

void rpc_server_set_pings(struct rpc_server *server, uint64_t every_ms)
{
    (void)server;
    (void)every_ms;
}

size_t rpc_server_queued_max(const struct rpc_server *server)
{
    (void)server;
    return 0;
}

void rpc_server_close(struct rpc_server *server)
{
    (void)server;
    while (served.calls)
        end(served.calls);
}

void listener_init(struct listener *listener, struct rpc_server *server, struct fd_store *store,
                   const char *name)
{
    (void)listener;
    (void)server;
    (void)store;
    (void)name;
}

int listener_look(struct listener *listener)
{
    (void)listener;
    return 0;
}

void listener_fini(struct listener *listener)
{
    (void)listener;
}

struct keeper *keeper_start(uv_loop_t *loop, const char *what, keeper_serve *serve, void *user)
{
    (void)loop;
    (void)what;
    (void)serve;
    (void)user;
    return NULL;
}

const char *keeper_trouble(const struct keeper *keeper, uint64_t *since_ms)
{
    (void)keeper;
    (void)since_ms;
    return NULL;
}

void keeper_stop(struct keeper *keeper)
{
    (void)keeper;
}

size_t control_stage_methods(void)
{
    return served.methods_len;
}
