/* shim/runtime/stopper.c: containers that are stopped, over a connection that comes and goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/runtime/stopper.h"
#include "tests/unit/waiting.h"

#define STOPS_MAX 4

struct fixture {
    struct world *world;
    struct rpc_server *server; /* NULL: there is no runtime */
    struct rpc_incoming *calls[STOPS_MAX];
    char ids[STOPS_MAX][16];
    int64_t timeouts[STOPS_MAX];
    size_t stops, cancelled, sandboxes_ended;
    struct stopper *stopper;
    int codes[STOPS_MAX]; /* by number; -1: it has not ended */
    char words[64];
    bool stopped;
};

static void on_cancelled(void *user)
{
    struct fixture *f = user;

    f->cancelled++;
}

static void on_stop(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__StopContainerRequest *request = (const void *)message;
    struct fixture *f = user;

    assert_true(f->stops < STOPS_MAX);
    snprintf(f->ids[f->stops], sizeof f->ids[0], "%s", request->container_id);
    f->timeouts[f->stops] = request->timeout;
    f->calls[f->stops++] = call;
    rpc_incoming_on_cancel(call, on_cancelled, f);
}

static void on_stop_sandbox(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const Runtime__V1__StopPodSandboxRequest *request = (const void *)message;
    struct fixture *f = user;

    assert_true(f->stops < STOPS_MAX);
    snprintf(f->ids[f->stops], sizeof f->ids[0], "%s", request->pod_sandbox_id);
    f->calls[f->stops++] = call;
}

static const struct rpc_method METHODS[] = {
    {CRI_STOP_CONTAINER_PATH, &runtime__v1__stop_container_request__descriptor, on_stop},
    {CRI_STOP_POD_SANDBOX_PATH, &runtime__v1__stop_pod_sandbox_request__descriptor,
     on_stop_sandbox}};

static void serve(struct fixture *f)
{
    assert_int_equal(serve_at(&f->world->loop, f->world->path, METHODS, 2, f, &f->server), 0);
}

static void on_ended(void *user, uint64_t number, int code, const char *message)
{
    struct fixture *f = user;

    assert_int_equal(f->codes[number], -1); /* once */
    f->codes[number] = code;
    snprintf(f->words, sizeof f->words, "%s", message);
}

static void on_sandbox_ended(void *user, uint64_t number, int code, const char *message)
{
    struct fixture *f = user;

    f->sandboxes_ended++;
    on_ended(user, number, code, message);
}

static const struct stopper_ops OPS = {.container_ended = on_ended,
                                       .sandbox_ended = on_sandbox_ended};

static void answer(struct fixture *f, size_t stop, int code)
{
    Runtime__V1__StopContainerResponse response = RUNTIME__V1__STOP_CONTAINER_RESPONSE__INIT;

    incoming_answer(f->calls[stop], &response.base, code, "the runtime's words");
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    for (size_t i = 0; i < STOPS_MAX; i++)
        f->codes[i] = -1;
    f->stopper = stopper_start(&f->world->loop, f->world->path, &OPS, f);
    *state = f;
    return 0;
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stopper_stop(f->stopper, on_stopped, f);
    WAIT(f->world, f->stopped);
    rpc_server_close(f->server);
    world_free(f->world);
    free(f);
    return 0;
}

static void each_ends_as_the_runtime_says(void **state)
{
    struct fixture *f = *state;

    serve(f);
    stopper_container(f->stopper, 1, "c1", 29001);
    stopper_container(f->stopper, 2, "c2", 2000);
    WAIT(f->world, f->stops == 2);
    assert_string_equal(f->ids[0], "c1");
    assert_int_equal(f->timeouts[0], 30);
    assert_int_equal(f->timeouts[1], 2);
    answer(f, 1, RPC_OK);
    WAIT(f->world, f->codes[2] == RPC_OK);
    answer(f, 0, RPC_NOT_FOUND);
    WAIT(f->world, f->codes[1] == RPC_NOT_FOUND);
    assert_string_equal(f->words, "the runtime's words");
}

static void so_does_a_sandbox(void **state)
{
    struct fixture *f = *state;
    Runtime__V1__StopPodSandboxResponse response = RUNTIME__V1__STOP_POD_SANDBOX_RESPONSE__INIT;

    serve(f);
    stopper_sandbox(f->stopper, 1, "s1");
    WAIT(f->world, f->stops == 1);
    assert_string_equal(f->ids[0], "s1");
    incoming_answer(f->calls[0], &response.base, RPC_OK, "");
    WAIT(f->world, f->codes[1] == RPC_OK);
    assert_int_equal(f->sandboxes_ended, 1);
}

static void a_runtime_that_is_away_ends_them(void **state)
{
    struct fixture *f = *state;

    stopper_container(f->stopper, 1, "c1", 1000);
    assert_int_equal(f->codes[1], -1); /* not before return */
    WAIT(f->world, f->codes[1] == RPC_UNAVAILABLE);
    serve(f);
    stopper_container(f->stopper, 2, "c1", 1000); /* on another connection */
    WAIT(f->world, f->stops == 1);
    rpc_server_close(f->server);
    f->server = NULL;
    WAIT(f->world, f->codes[2] == RPC_UNAVAILABLE);
}

static void one_that_goes_away_stops_others_on_another_connection(void **state)
{
    struct fixture *f = *state;

    serve(f);
    stopper_container(f->stopper, 1, "c1", 60000);
    WAIT(f->world, f->stops == 1);
    incoming_goes_away(f->calls[0]);
    world_settle(f->world);
    stopper_container(f->stopper, 2, "c2", 1000);
    stopper_container(f->stopper, 3, "c3", 60000);
    WAIT(f->world, f->stops == 3);
    answer(f, 1, RPC_OK);
    WAIT(f->world, f->codes[2] == RPC_OK);
    answer(f, 0, RPC_OK); /* with which the first connection ends */
    WAIT(f->world, f->codes[1] == RPC_OK);
    world_settle(f->world);
    answer(f, 2, RPC_OK);
    WAIT(f->world, f->codes[3] == RPC_OK);
}

static void one_that_is_taken_back_ends_without_a_word(void **state)
{
    struct fixture *f = *state;

    serve(f);
    stopper_container(f->stopper, 1, "c1", 60000);
    stopper_container(f->stopper, 2, "c1", 1000);
    WAIT(f->world, f->stops == 2);
    stopper_cancel(f->stopper, 1);
    stopper_cancel(f->stopper, 3); /* is none */
    WAIT(f->world, f->cancelled == 1);
    answer(f, 1, RPC_OK);
    WAIT(f->world, f->codes[2] == RPC_OK);
    assert_int_equal(f->codes[1], -1);
}

static void those_under_way_end_with_it(void **state)
{
    struct fixture *f = *state;

    serve(f);
    stopper_container(f->stopper, 1, "c1", 60000);
    WAIT(f->world, f->stops == 1);
    stopper_container(f->stopper, 2, "c2", 60000); /* not even sent */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_ends_as_the_runtime_says),
        TEST(so_does_a_sandbox),
        TEST(a_runtime_that_is_away_ends_them),
        TEST(one_that_is_taken_back_ends_without_a_word),
        TEST(one_that_goes_away_stops_others_on_another_connection),
        TEST(those_under_way_end_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
