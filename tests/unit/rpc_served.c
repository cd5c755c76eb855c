#include "tests/unit/rpc_served.h"

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

static void on_cancelled(void *user)
{
    struct served *served = user;

    assert_false(served->cancelled);
    served->cancelled = true;
    served->call = NULL;
    if (served->close_in_cancelled)
        served_close(served);
}

static void take(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    struct served *served = user;

    served->called = true;
    served->calls++;
    served->call = call;
    snprintf(served->resource, sizeof served->resource, "%s", request->resource_name);
    rpc_incoming_peer(call, &served->peer);
    rpc_incoming_on_cancel(call, on_cancelled, served);
    if (served->close_in_handle)
        served_close(served);
}

static void send_empty(struct rpc_incoming *call)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
}

static void answer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    send_empty(call);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void twice(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    send_empty(call);
    send_empty(call);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void none(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static void refuse(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    take(call, message, user);
    rpc_incoming_finish(call, RPC_FAILED_PRECONDITION, SERVED_REFUSAL);
}

static const struct rpc_method METHODS[] = {
    {"/test/Answer", &v1beta1__register_request__descriptor, answer},
    {"/test/Twice", &v1beta1__register_request__descriptor, twice},
    {"/test/None", &v1beta1__register_request__descriptor, none},
    {"/test/Refuse", &v1beta1__register_request__descriptor, refuse},
    {"/test/Take", &v1beta1__register_request__descriptor, take},
};

void served_open(struct served *served, struct world *world)
{
    *served = (struct served){0};
    assert_int_equal(serve_at(&world->loop, world->path, METHODS, sizeof METHODS / sizeof *METHODS,
                              served, &served->server),
                     0);
}

void served_close(struct served *served)
{
    rpc_server_close(served->server);
    served->server = NULL;
}
