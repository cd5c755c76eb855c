/* shim/dra/driver_client.c with a driver in the same process. */
#include "tests/unit/test_wait.h"

#include <unistd.h>

#include "shim/dra/driver_client.h"
#include "tests/unit/test_driver_fixture.h"

#define INSTANCE 7
#define SECOND 8

struct fixture {
    struct world *world;
    struct driver driver, second;
    struct driver_clients *clients;
    char events[512];
    unsigned connected, lost, answered, healths, ended;
    int code;
    char message[256];
    uint8_t response[256];
    size_t response_bytes;
    bool stopped;
};

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
    if (!response) {
        f->ended++;
        return;
    }
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

/* Connected to `driver` as INSTANCE. */
static void begin_served(struct fixture *f, void **state)
{
    begin(f, state);
    driver_serve(&f->driver, f->world, "dra.sock");
    open_instance(f, &f->driver, INSTANCE, DRIVER_V1);
    WAIT(f->world, f->connected == 1);
}

/* The first call is 1, and so on. */
static void prepare(struct fixture *f, uint64_t instance)
{
    unsigned call = f->answered + 1;

    driver_clients_prepare(f->clients, instance, call, &CLAIM, 5000);
    WAIT(f->world, f->answered == call);
}

static void unprepare(struct fixture *f)
{
    unsigned call = f->answered + 1;

    driver_clients_unprepare(f->clients, INSTANCE, call, &CLAIM, 5000);
    WAIT(f->world, f->answered == call);
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
    driver_end(&f->driver);
    driver_end(&f->second);
}

/* ---- tests ---- */

static void calls_one_claim_by_the_chosen_service(void **state)
{
    static const char *const names[] = {
        [DRIVER_V1] = "v1", [DRIVER_V1BETA1] = "v1beta1", [DRIVER_ALPHA] = "alpha"};

    for (int service = DRIVER_V1; service <= DRIVER_ALPHA; service++) {
        struct fixture f;

        begin(&f, state);
        driver_serve(&f.driver, f.world, "dra.sock");
        open_instance(&f, &f.driver, INSTANCE, (enum driver_service)service);
        WAIT(f.world, f.connected == 1);
        prepare(&f, INSTANCE);
        assert_int_equal(f.code, RPC_OK);
        assert_string_equal(f.driver.claim, "default/gpu u-1");
        assert_string_equal(f.driver.service, names[service]);
        assert_int_equal(f.response_bytes, 9);
        assert_memory_equal(f.response, "\x0a\x07\x1a\x05gpu-0", 9);
        unprepare(&f);
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

    begin_served(&f, state);
    f.driver.error = "no such device";
    prepare(&f, INSTANCE);
    assert_int_equal(f.code, RPC_UNKNOWN);
    assert_string_equal(f.message, "no such device");
    unprepare(&f);
    assert_int_equal(f.code, RPC_UNKNOWN);
    f.driver.code = RPC_UNAVAILABLE; /* its own word */
    prepare(&f, INSTANCE);
    assert_int_equal(f.code, RPC_UNAVAILABLE);
    assert_string_equal(f.message, "the driver says no");
    assert_int_equal(f.lost, 0);
    stop(&f);
}

static void one_that_hangs_is_given_up(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    f.driver.hold = true;
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

    begin_served(&f, state);
    f.driver.hold = true;
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    driver_clients_unprepare(f.clients, INSTANCE, 2, &CLAIM, 5000);
    WAIT(f.world, f.driver.prepares + f.driver.unprepares == 2);
    driver_end(&f.driver);
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
    assert_non_null(strstr(f.message, "cannot connect: No such file or directory"));
    driver_serve(&f.driver, f.world, "dra.sock");
    WAIT(f.world, f.connected == 1);
    for (unsigned i = 2; i < 5; i++) {
        driver_end(&f.driver);
        WAIT(f.world, f.lost == i);
        assert_non_null(strstr(f.message, "peer")); /* it hung up, or its connection is reset */
        driver_serve(&f.driver, f.world, "dra.sock");
        WAIT(f.world, f.connected == i);
    }
    assert_string_equal(f.events, "-+-+-+-+");
    stop(&f);
}

/* Who takes each connection and ends it: it is told each time, so the times are far apart. */
static void one_that_hangs_up_is_left_alone_for_longer(void **state)
{
    struct fixture f;
    uint64_t lost_ms, gap_ms = 0;

    begin_served(&f, state);
    while (gap_ms < 2 * DRIVER_REDIAL_MS_MAX) {
        unsigned connected = f.connected;

        WAIT(f.world, (rpc_server_disconnect(f.driver.server), f.lost == connected));
        lost_ms = uv_now(&f.world->loop);
        WAIT(f.world, f.connected == connected + 1);
        gap_ms = uv_now(&f.world->loop) - lost_ms;
        assert_in_range(f.connected, 2, 11); /* 5 ms, doubled nine times */
    }
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
    driver_serve(&f.driver, f.world, "dra-1.sock");
    driver_serve(&f.second, f.world, "dra-2.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    open_instance(&f, &f.second, SECOND, DRIVER_V1BETA1);
    WAIT(f.world, f.connected == 2);
    prepare(&f, SECOND);
    assert_int_equal(f.second.prepares, 1);
    assert_int_equal(f.driver.prepares, 0);
    driver_end(&f.driver);
    WAIT(f.world, f.lost == 1);
    prepare(&f, SECOND);
    assert_int_equal(f.code, RPC_OK);
    stop(&f);
}

/* A server that limits how long a connection is used: calls that it takes no more go over
 * another. */
static void calls_go_on_elsewhere_while_it_goes_away(void **state)
{
    static const uint8_t last_stream_is_1[8] = {0, 0, 0, 1};
    struct bytes *greeting = calloc(2, sizeof *greeting), *goaway = greeting + 1;
    struct raw *raw = calloc(1, sizeof *raw);
    struct fixture f;

    begin(&f, state);
    bytes_settings(greeting);
    bytes_frame(goaway, NGHTTP2_GOAWAY, 0, 0, last_stream_is_1, sizeof last_stream_is_1);
    raw->greeting = greeting;
    raw_listen(raw, f.world);
    snprintf(f.driver.path, sizeof f.driver.path, "%s", f.world->path);
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    driver_clients_prepare(f.clients, INSTANCE, 1, &CLAIM, 5000);
    WAIT(f.world, raw->request_whole);
    raw_write(raw, goaway);
    assert_int_equal(unlink(f.world->path), 0);
    driver_serve(&f.driver, f.world, strrchr(f.world->path, '/') + 1);
    driver_clients_prepare(f.clients, INSTANCE, 2, &CLAIM, 5000);
    WAIT(f.world, f.answered == 1);
    assert_int_equal(f.code, RPC_OK);
    assert_int_equal(f.driver.prepares, 1);
    assert_string_equal(f.events, "+2");
    raw_hang_up(raw);
    WAIT(f.world, f.connected == 2);
    assert_memory_equal(f.events, "+2-", 3);
    raw_close(raw); /* with the socket's file */
    stop(&f);
    world_settle(f.world);
    free(raw);
    free(greeting);
}

static void health_is_watched_where_it_is_announced(void **state)
{
    struct fixture f;

    begin(&f, state);
    driver_serve(&f.driver, f.world, "dra.sock");
    driver_clients_open(
        f.clients, INSTANCE,
        &(struct driver_instance){.endpoint = f.driver.path, .uid = getuid(), .health = true});
    WAIT(f.world, f.healths == 1);
    assert_int_equal(f.ended, 0);
    driver_end(&f.driver);
    WAIT(f.world, f.lost == 1);
    assert_int_equal(f.ended, 1);
    driver_serve(&f.driver, f.world, "dra.sock");
    WAIT(f.world, f.healths == 2);
    stop(&f);

    begin(&f, state);
    f.driver.without_health = true;
    driver_serve(&f.driver, f.world, "dra.sock");
    driver_clients_open(
        f.clients, INSTANCE,
        &(struct driver_instance){.endpoint = f.driver.path, .uid = getuid(), .health = true});
    WAIT(f.world, f.connected == 1);
    prepare(&f, INSTANCE);
    assert_int_equal(f.code, RPC_OK);
    stop(&f);

    begin_served(&f, state);
    prepare(&f, INSTANCE);
    assert_int_equal(f.driver.streams, 0);
    stop(&f);
}

static void another_users_socket_is_not_connected_to(void **state)
{
    struct fixture f;

    if (getuid() != 0)
        skip(); /* a socket of another user's cannot be made */
    begin(&f, state);
    driver_serve(&f.driver, f.world, "dra.sock");
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

    begin_served(&f, state);
    f.driver.hold = true;
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
        TEST(one_that_hangs_up_is_left_alone_for_longer),
        TEST(without_a_connection_a_call_ends_at_once),
        TEST(two_instances_are_two_connections),
        TEST(calls_go_on_elsewhere_while_it_goes_away),
        TEST(health_is_watched_where_it_is_announced),
        TEST(another_users_socket_is_not_connected_to),
        TEST(what_is_cancelled_or_closed_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
