/* shim/rpc: every allocation of ours fails once, and nothing hangs, leaks or crashes. */
#include "tests/unit/rpc_fixture.h"

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/rpc/rpc.h"
#include "tests/unit/alloc_fail.h"

struct run {
    bool over;
    int code;
    unsigned messages;
};

static void handle(struct rpc_incoming *call, const ProtobufCMessage *request, void *user)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    int err;

    (void)request;
    (void)user;
    err = rpc_incoming_send(call, &empty.base);
    rpc_incoming_finish(call, err ? RPC_RESOURCE_EXHAUSTED : RPC_OK, err ? "no memory" : NULL);
}

static const struct rpc_method methods[] = {
    {"/test/Call", &v1beta1__register_request__descriptor, handle},
};

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct run *run = user;

    (void)call;
    (void)message;
    run->messages++;
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct run *run = user;

    (void)call;
    assert_false(run->over);
    run->over = true;
    run->code = status->code;
}

static const struct rpc_call_ops call_ops = {.message = on_message, .done = on_done};
static const struct rpc_channel_ops channel_ops = {0};

static void call_once(struct world *world, struct rpc_channel *channel, struct run *run)
{
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;

    request.resource_name = (char *)"example.com/widget";
    if (rpc_channel_call(channel, "/test/Call", &request.base, &v1beta1__empty__descriptor, false,
                         5000, &call_ops, run))
        world_wait(world, &run->over);
    else
        assert_false(run->over);
}

/* Whether all went well. */
static bool run_once(struct world *world)
{
    struct run run = {.code = RPC_UNKNOWN};
    struct rpc_channel *channel = NULL;
    struct rpc_server *server = NULL;

    if (serve_at(&world->loop, world->path, methods, 1, NULL, &server) == 0 &&
        rpc_channel_open(&world->loop, world->path, &channel_ops, NULL, &channel) == 0)
        call_once(world, channel, &run);
    alloc_fail_enable(false);
    rpc_channel_close(channel);
    rpc_server_close(server);
    world_settle(world);
    return run.code == RPC_OK && run.messages == 1;
}

/* Provokes warnings of connections that cannot be taken. */
static void any_allocation_may_fail(void **state)
{
    unsigned n = 0;
    bool well;

    do {
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        well = run_once(*state);
        assert_true(well || alloc_failed());
    } while (alloc_failed());
    assert_true(well);
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
