/* shim/dra/driver_client.c with a driver in the same process. */
#include "tests/unit/test_wait.h"

#include <unistd.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/dra/driver_client.h"

#define INSTANCE 7
#define SECOND 8

struct driver {
    struct rpc_server *server;
    char path[64];
    struct rpc_incoming *held;   /* a call that is not answered */
    struct rpc_incoming *stream; /* of health */
    unsigned prepares, unprepares, streams;
    const char *service; /* that the last call was on */
    char claim[128];     /* of the last call: "namespace/name uid" */
    bool hold, without_health;
    int code;
    const char *error; /* of the claim */
};

struct fixture {
    struct world *world;
    struct driver driver, second;
    struct driver_clients *clients;
    char events[512];
    unsigned connected, lost, answered, healths;
    int code;
    char message[256];
    uint8_t response[256];
    size_t response_bytes;
    bool stopped;
};

/* ---- the driver ---- */

static void on_cancelled(void *user)
{
    ((struct driver *)user)->held = NULL;
}

static void note_call(struct driver *d, const char *service, Dra__V1__Claim **claims, size_t len)
{
    d->service = service;
    assert_int_equal(len, 1);
    snprintf(d->claim, sizeof d->claim, "%s/%s %s", claims[0]->namespace_, claims[0]->name,
             claims[0]->uid);
}

static void answer(struct driver *d, struct rpc_incoming *call, const ProtobufCMessage *response)
{
    if (d->hold) {
        d->held = call;
        rpc_incoming_on_cancel(call, on_cancelled, d);
        return;
    }
    incoming_answer(call, response, d->code, "the driver says no");
}

static void prepare(struct driver *d, struct rpc_incoming *call, const char *service,
                    const ProtobufCMessage *message)
{
    const Dra__V1__NodePrepareResourcesRequest *request = (const void *)message;
    Dra__V1__NodePrepareResourcesResponse response = DRA__V1__NODE_PREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodePrepareResourceResponse claim = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__NodePrepareResourcesResponse__ClaimsEntry
        entry = DRA__V1__NODE_PREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT,
        *entries[] = {&entry};
    Dra__V1__Device device = DRA__V1__DEVICE__INIT, *devices[] = {&device};

    d->prepares++;
    note_call(d, service, request->claims, request->n_claims);
    device.device_name = (char *)"gpu-0";
    claim.n_devices = 1;
    claim.devices = devices;
    if (d->error)
        claim.error = (char *)d->error;
    entry.key = request->claims[0]->uid;
    entry.value = &claim;
    response.n_claims = 1;
    response.claims = entries;
    answer(d, call, &response.base);
}

static void unprepare(struct driver *d, struct rpc_incoming *call, const char *service,
                      const ProtobufCMessage *message)
{
    const Dra__V1__NodeUnprepareResourcesRequest *request = (const void *)message;
    Dra__V1__NodeUnprepareResourcesResponse response =
        DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourceResponse claim = DRA__V1__NODE_UNPREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__NodeUnprepareResourcesResponse__ClaimsEntry
        entry = DRA__V1__NODE_UNPREPARE_RESOURCES_RESPONSE__CLAIMS_ENTRY__INIT,
        *entries[] = {&entry};

    d->unprepares++;
    note_call(d, service, request->claims, request->n_claims);
    if (d->error)
        claim.error = (char *)d->error;
    entry.key = request->claims[0]->uid;
    entry.value = &claim;
    response.n_claims = 1;
    response.claims = entries;
    answer(d, call, &response.base);
}

#define HANDLERS(service)                                                                          \
    static void on_##service##_prepare(struct rpc_incoming *call, const ProtobufCMessage *message, \
                                       void *user)                                                 \
    {                                                                                              \
        prepare(user, call, #service, message);                                                    \
    }                                                                                              \
    static void on_##service##_unprepare(struct rpc_incoming *call,                                \
                                         const ProtobufCMessage *message, void *user)              \
    {                                                                                              \
        unprepare(user, call, #service, message);                                                  \
    }
HANDLERS(v1)
HANDLERS(v1beta1)
HANDLERS(alpha)

static void on_stream_cancelled(void *user)
{
    ((struct driver *)user)->stream = NULL;
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    DraHealth__V1alpha1__NodeWatchResourcesResponse response =
        DRA_HEALTH__V1ALPHA1__NODE_WATCH_RESOURCES_RESPONSE__INIT;
    DraHealth__V1alpha1__DeviceHealth health = DRA_HEALTH__V1ALPHA1__DEVICE_HEALTH__INIT,
                                      *healths[] = {&health};
    struct driver *d = user;

    (void)message;
    d->streams++;
    health.health = DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__UNHEALTHY;
    response.n_devices = 1;
    response.devices = healths;
    assert_int_equal(rpc_incoming_send(call, &response.base), 0);
    d->stream = call;
    rpc_incoming_on_cancel(call, on_stream_cancelled, d);
}

static const struct rpc_method METHODS[] = {
    {DRA_V1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_v1_prepare},
    {DRA_V1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor, on_v1_unprepare},
    {DRA_V1BETA1_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_v1beta1_prepare},
    {DRA_V1BETA1_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor,
     on_v1beta1_unprepare},
    {DRA_ALPHA_PREPARE, &dra__v1__node_prepare_resources_request__descriptor, on_alpha_prepare},
    {DRA_ALPHA_UNPREPARE, &dra__v1__node_unprepare_resources_request__descriptor,
     on_alpha_unprepare},
    {DRA_HEALTH_V1ALPHA1_WATCH, &dra_health__v1alpha1__node_watch_resources_request__descriptor,
     on_watch}, /* the last */
};

static void serve(struct fixture *f, struct driver *d, const char *name)
{
    size_t len = sizeof METHODS / sizeof *METHODS - d->without_health;

    snprintf(d->path, sizeof d->path, "%s/%s", f->world->dir, name);
    assert_int_equal(rpc_server_open(&f->world->loop, d->path, METHODS, len, d, &d->server), 0);
}

static void end(struct driver *d)
{
    rpc_server_close(d->server);
    d->server = NULL;
    d->held = d->stream = NULL;
}

/* ---- the client ---- */

static void on_connected(void *user, uint64_t instance)
{
    struct fixture *f = user;

    f->connected++;
    strcat(f->events, instance == INSTANCE ? "+" : "(+)");
}

static void on_lost(void *user, uint64_t instance, const char *reason)
{
    struct fixture *f = user;

    f->lost++;
    snprintf(f->message, sizeof f->message, "%s", reason);
    strcat(f->events, instance == INSTANCE ? "-" : "(-)");
}

static void on_answered(void *user, uint64_t call, int code, const char *message,
                        const void *response, size_t response_bytes)
{
    struct fixture *f = user;
    char text[32];

    f->answered++;
    f->code = code;
    snprintf(f->message, sizeof f->message, "%s", message ? message : "");
    assert_true(response_bytes <= sizeof f->response);
    memcpy(f->response, response ? response : "", response_bytes);
    f->response_bytes = response_bytes;
    snprintf(text, sizeof text, "%u", (unsigned)call);
    strcat(f->events, text);
}

static void on_health(void *user, uint64_t instance,
                      const DraHealth__V1alpha1__NodeWatchResourcesResponse *response)
{
    struct fixture *f = user;

    assert_int_equal(instance, INSTANCE);
    assert_int_equal(response->n_devices, 1);
    assert_int_equal(response->devices[0]->health, DRA_HEALTH__V1ALPHA1__HEALTH_STATUS__UNHEALTHY);
    f->healths++;
}

static const struct driver_clients_ops OPS = {
    .connected = on_connected, .lost = on_lost, .answered = on_answered, .health = on_health};

static const struct driver_claim CLAIM = {.pod_namespace = "default", .name = "gpu", .uid = "u-1"};

static void begin(struct fixture *f, void **state)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    f->clients = driver_clients_new(&f->world->loop, &OPS, f);
}

static void open_instance(struct fixture *f, const struct driver *d, uint64_t instance,
                          enum driver_service service)
{
    driver_clients_open(
        f->clients, instance,
        &(struct driver_instance){.endpoint = d->path, .uid = getuid(), .service = service});
}

static void on_stopped(void *user)
{
    ((struct fixture *)user)->stopped = true;
}

static void stop(struct fixture *f)
{
    driver_clients_stop(f->clients, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
    end(&f->driver);
    end(&f->second);
}

/* ---- tests ---- */

static void calls_one_claim_by_the_chosen_service(void **state)
{
    static const char *const names[] = {
        [DRIVER_V1] = "v1", [DRIVER_V1BETA1] = "v1beta1", [DRIVER_ALPHA] = "alpha"};

    for (int service = DRIVER_V1; service <= DRIVER_ALPHA; service++) {
        struct fixture f;

        begin(&f, state);
        serve(&f, &f.driver, "dra.sock");
        open_instance(&f, &f.driver, INSTANCE, (enum driver_service)service);
        WAIT(f.world, f.connected == 1);
        driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
        WAIT(f.world, f.answered == 1);
        assert_int_equal(f.code, RPC_OK);
        assert_string_equal(f.driver.claim, "default/gpu u-1");
        assert_string_equal(f.driver.service, names[service]);
        assert_int_equal(f.response_bytes, 9);
        assert_memory_equal(f.response, "\x0a\x07\x1a\x05gpu-0", 9);
        driver_clients_unprepare(f.clients, INSTANCE, 2, &CLAIM, 5000);
        WAIT(f.world, f.answered == 2);
        assert_int_equal(f.code, RPC_OK);
        assert_int_equal(f.driver.unprepares, 1);
        assert_string_equal(f.driver.service, names[service]);
        assert_string_equal(f.events, "+12");
        stop(&f);
    }
}

static void what_the_driver_says_is_told(void **state)
{
    struct fixture f;

    begin(&f, state);
    serve(&f, &f.driver, "dra.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    f.driver.error = "no such device";
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_UNKNOWN);
    assert_string_equal(f.message, "no such device");
    driver_clients_unprepare(f.clients, INSTANCE, 2, &CLAIM, 5000);
    WAIT(f.world, f.answered == 2);
    assert_int_equal(f.code, RPC_UNKNOWN);
    f.driver.code = RPC_UNAVAILABLE; /* its own word */
    driver_clients_prepare(f.clients, INSTANCE, 3, &CLAIM, 5000);
    WAIT(f.world, f.answered == 3);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_string_equal(f.message, "the driver says no");
    assert_int_equal(f.lost, 0);
    stop(&f);
}

static void one_that_hangs_is_given_up(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.driver.hold = true;
    serve(&f, &f.driver, "dra.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 50);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_DEADLINE_EXCEEDED);
    WAIT(f.world, !f.driver.held);
    stop(&f);
}

/* So that nobody takes the call's end for the driver's word. */
static void that_it_is_lost_is_told_before_its_calls_end(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.driver.hold = true;
    serve(&f, &f.driver, "dra.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    driver_clients_unprepare(f.clients, INSTANCE, 2, &CLAIM, 5000);
    WAIT(f.world, f.driver.prepares + f.driver.unprepares == 2);
    end(&f.driver);
    WAIT(f.world, f.answered == 2);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_memory_equal(f.events, "+-", 2);
    stop(&f);
}

static void is_dialled_until_it_is_there_and_again(void **state)
{
    struct fixture f;

    begin(&f, state);
    snprintf(f.driver.path, sizeof f.driver.path, "%s/dra.sock", f.world->dir);
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.lost == 1);
    assert_non_null(strstr(f.message, "dra.sock: No such file or directory"));
    serve(&f, &f.driver, "dra.sock");
    WAIT(f.world, f.connected == 1);
    for (unsigned i = 2; i < 5; i++) {
        end(&f.driver);
        WAIT(f.world, f.lost == i);
        assert_non_null(strstr(f.message, "the connection to "));
        serve(&f, &f.driver, "dra.sock");
        WAIT(f.world, f.connected == i);
    }
    assert_string_equal(f.events, "-+-+-+-+");
    stop(&f);
}

static void without_a_connection_a_call_ends_at_once(void **state)
{
    struct fixture f;

    begin(&f, state);
    snprintf(f.driver.path, sizeof f.driver.path, "%s/dra.sock", f.world->dir);
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    driver_clients_prepare(f.clients, SECOND, 2, &CLAIM, 5000); /* which was never opened */
    assert_int_equal(f.answered, 0);
    WAIT(f.world, f.answered == 2);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_string_equal(f.message, "the driver is not connected");
    stop(&f);
}

static void two_instances_are_two_connections(void **state)
{
    struct fixture f;

    begin(&f, state);
    serve(&f, &f.driver, "dra-1.sock");
    serve(&f, &f.second, "dra-2.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    open_instance(&f, &f.second, SECOND, DRIVER_V1BETA1);
    WAIT(f.world, f.connected == 2);
    driver_clients_prepare(f.clients, SECOND, 1, &CLAIM, 5000);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.second.prepares, 1);
    assert_int_equal(f.driver.prepares, 0);
    end(&f.driver);
    WAIT(f.world, f.lost == 1);
    driver_clients_prepare(f.clients, SECOND, 2, &CLAIM, 5000);
    WAIT(f.world, f.answered == 2);
    assert_int_equal(f.code, RPC_OK);
    stop(&f);
}

static void health_is_watched_where_it_is_announced(void **state)
{
    struct fixture f;

    begin(&f, state);
    serve(&f, &f.driver, "dra.sock");
    driver_clients_open(
        f.clients, INSTANCE,
        &(struct driver_instance){.endpoint = f.driver.path, .uid = getuid(), .health = true});
    WAIT(f.world, f.healths == 1);
    end(&f.driver);
    WAIT(f.world, f.lost == 1);
    serve(&f, &f.driver, "dra.sock");
    WAIT(f.world, f.healths == 2);
    stop(&f);

    begin(&f, state);
    f.driver.without_health = true;
    serve(&f, &f.driver, "dra.sock");
    driver_clients_open(
        f.clients, INSTANCE,
        &(struct driver_instance){.endpoint = f.driver.path, .uid = getuid(), .health = true});
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_OK);
    stop(&f);

    begin(&f, state);
    serve(&f, &f.driver, "dra.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.driver.streams, 0);
    stop(&f);
}

static void another_users_socket_is_not_connected_to(void **state)
{
    struct fixture f;

    if (getuid() != 0)
        skip(); /* a socket of another user's cannot be made */
    begin(&f, state);
    serve(&f, &f.driver, "dra.sock");
    assert_int_equal(chown(f.driver.path, 12345, 12345), 0);
    driver_clients_open(f.clients, INSTANCE,
                        &(struct driver_instance){.endpoint = f.driver.path, .uid = 54321});
    WAIT(f.world, f.lost == 1);
    assert_non_null(strstr(f.message, "neither root nor the user"));
    assert_int_equal(f.connected, 0);
    stop(&f);
}

static void what_is_cancelled_or_closed_is_not_told(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.driver.hold = true;
    serve(&f, &f.driver, "dra.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    WAIT(f.world, f.driver.held);
    driver_clients_cancel(f.clients, 1);
    WAIT(f.world, !f.driver.held);
    driver_clients_prepare(f.clients, SECOND, 2, &CLAIM, 5000);
    world_settle(f.world);
    driver_clients_cancel(f.clients, 2);
    driver_clients_cancel(f.clients, 3);
    driver_clients_prepare(f.clients, INSTANCE, 4, &CLAIM, 5000);
    WAIT(f.world, f.driver.held);
    driver_clients_close(f.clients, INSTANCE);
    driver_clients_close(f.clients, INSTANCE);
    WAIT(f.world, !f.driver.held);
    world_settle(f.world);
    assert_int_equal(f.lost, 0);
    stop(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(calls_one_claim_by_the_chosen_service),
        TEST(what_the_driver_says_is_told),
        TEST(one_that_hangs_is_given_up),
        TEST(that_it_is_lost_is_told_before_its_calls_end),
        TEST(is_dialled_until_it_is_there_and_again),
        TEST(without_a_connection_a_call_ends_at_once),
        TEST(two_instances_are_two_connections),
        TEST(health_is_watched_where_it_is_announced),
        TEST(another_users_socket_is_not_connected_to),
        TEST(what_is_cancelled_or_closed_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
