/* shim/dra/driver_client.c with a driver in the same process. */
#include "tests/unit/waiting.h"

#include <unistd.h>

#include "shim/dra/driver_client.h"
#include "shim/dra/limits.h"
#include "tests/unit/driver_fixture.h"

#define INSTANCE 7
#define SECOND 8

struct fixture {
    struct world *world;
    struct driver driver, second;
    struct driver_clients *clients;
    char events[512];
    unsigned connected, lost, answered, healths, ended;
    int code;
    int codes[128];   /* by call */
    uint64_t cancels; /* at the first answer; 0: none */
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
    f->codes[call] = code;
    snprintf(f->message, sizeof f->message, "%s", message ? message : "");
    assert_true(response_bytes <= sizeof f->response);
    memcpy(f->response, response ? response : "", response_bytes);
    f->response_bytes = response_bytes;
    snprintf(text, sizeof text, "%u", (unsigned)call);
    strcat(f->events, text);
    if (f->cancels && f->answered == 1)
        driver_clients_cancel(f->clients, f->cancels);
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

/* One by itself. */
#define CALL(call, ms)                                                                             \
    ((struct claim_call){.number = (call), .timeout_ms = (ms), .claim = {"default", "gpu", "u-1"}})

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

/* Of batch 5: `call` is of the claim "u-PLACE". */
static void add(struct fixture *f, bool prepares, uint64_t instance, uint64_t call, size_t place)
{
    char uid[16];
    const struct claim_call is = {.number = call,
                                  .batch = 5,
                                  .place = place,
                                  .timeout_ms = 5000,
                                  .claim = {"default", "gpu", uid}};

    snprintf(uid, sizeof uid, "u-%zu", place);
    if (prepares)
        driver_clients_prepare(f->clients, instance, &is);
    else
        driver_clients_unprepare(f->clients, instance, &is);
}

/* Three claims, as calls 1 to 3. */
static void send_batch(struct fixture *f, bool prepares)
{
    for (unsigned i = 1; i <= 3; i++)
        add(f, prepares, INSTANCE, i, i);
    driver_clients_send(f->clients);
}

/* The first call is 1, and so on. */
static void prepare(struct fixture *f, uint64_t instance)
{
    unsigned call = f->answered + 1;

    driver_clients_prepare(f->clients, instance, &CALL(call, 5000));
    WAIT(f->world, f->answered == call);
}

static void unprepare(struct fixture *f)
{
    unsigned call = f->answered + 1;

    driver_clients_unprepare(f->clients, INSTANCE, &CALL(call, 5000));
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
    driver_clients_prepare(f.clients, INSTANCE, &CALL(1, 50));
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
    driver_clients_prepare(f.clients, INSTANCE, &CALL(1, 5000));
    driver_clients_unprepare(f.clients, INSTANCE, &CALL(2, 5000));
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
    driver_clients_prepare(f.clients, INSTANCE, &CALL(1, 5000));
    driver_clients_prepare(f.clients, SECOND, &CALL(2, 5000)); /* which was never opened */
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
    driver_clients_prepare(f.clients, INSTANCE, &CALL(1, 5000));
    WAIT(f.world, raw->request_whole);
    raw_write(raw, goaway);
    assert_int_equal(unlink(f.world->path), 0);
    driver_serve(&f.driver, f.world, strrchr(f.world->path, '/') + 1);
    driver_clients_prepare(f.clients, INSTANCE, &CALL(2, 5000));
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
    driver_clients_prepare(f.clients, INSTANCE, &CALL(1, 5000));
    WAIT(f.world, f.driver.held);
    driver_clients_cancel(f.clients, 1);
    WAIT(f.world, !f.driver.held);
    driver_clients_prepare(f.clients, SECOND, &CALL(2, 5000));
    world_settle(f.world);
    driver_clients_cancel(f.clients, 2);
    driver_clients_cancel(f.clients, 3);
    driver_clients_prepare(f.clients, INSTANCE, &CALL(4, 5000));
    WAIT(f.world, f.driver.held);
    driver_clients_close(f.clients, INSTANCE);
    driver_clients_close(f.clients, INSTANCE);
    WAIT(f.world, !f.driver.held);
    world_settle(f.world);
    assert_int_equal(f.lost, 0);
    stop(&f);
}

/* ---- batches ---- */

static void a_batch_is_one_call_in_its_order(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    add(&f, true, INSTANCE, 1, 3);
    add(&f, true, INSTANCE, 2, 1);
    add(&f, true, INSTANCE, 3, 2);
    world_settle(f.world);
    assert_int_equal(f.driver.prepares, 0);
    driver_clients_send(f.clients);
    WAIT(f.world, f.answered == 3);
    assert_int_equal(f.driver.prepares, 1);
    assert_string_equal(f.driver.claim, "default/gpu u-1, default/gpu u-2, default/gpu u-3");
    assert_int_equal(f.codes[1] | f.codes[2] | f.codes[3], RPC_OK);
    assert_int_equal(f.response_bytes, 9);
    assert_string_equal(f.events, "+231");
    driver_clients_send(f.clients);
    world_settle(f.world);
    assert_int_equal(f.driver.prepares, 1);
    stop(&f);

    begin_served(&f, state);
    send_batch(&f, false);
    WAIT(f.world, f.answered == 3);
    assert_int_equal(f.driver.unprepares, 1);
    assert_string_equal(f.driver.claim, "default/gpu u-1, default/gpu u-2, default/gpu u-3");
    stop(&f);
}

/* Of another batch, instance or method, with another time, or of none. */
static void only_what_belongs_together_is_joined(void **state)
{
    struct claim_call other = CALL(4, 5000);
    struct fixture f;

    begin(&f, state);
    driver_serve(&f.driver, f.world, "dra-1.sock");
    driver_serve(&f.second, f.world, "dra-2.sock");
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    open_instance(&f, &f.second, SECOND, DRIVER_V1);
    WAIT(f.world, f.connected == 2);
    add(&f, true, INSTANCE, 1, 1);
    add(&f, true, SECOND, 2, 2);
    add(&f, false, INSTANCE, 3, 3);
    driver_clients_prepare(f.clients, INSTANCE, &other);
    other.number = 5;
    other.batch = 6;
    driver_clients_prepare(f.clients, INSTANCE, &other);
    other.number = 6;
    other.timeout_ms = 4000;
    driver_clients_prepare(f.clients, INSTANCE, &other);
    add(&f, true, INSTANCE, 7, 7);
    driver_clients_send(f.clients);
    WAIT(f.world, f.answered == 7);
    assert_int_equal(f.driver.prepares, 4); /* 1 and 7, 4, 5, 6 */
    assert_int_equal(f.driver.unprepares, 1);
    assert_int_equal(f.second.prepares, 1);
    stop(&f);
}

/* So that the largest answers to one call fit into what a driver may send. */
static void a_batch_of_very_many_is_several_calls(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    for (unsigned i = 1; i <= DRIVER_CALL_CLAIMS_MAX + 1; i++)
        add(&f, true, INSTANCE, i, i);
    driver_clients_send(f.clients);
    WAIT(f.world, f.answered == DRIVER_CALL_CLAIMS_MAX + 1);
    assert_int_equal(f.driver.prepares, 2);
    assert_int_equal(f.driver.claims, 1);
    stop(&f);
}

static void of_a_batch_each_has_its_own_answer(void **state)
{
    for (int prepares = 0; prepares <= 1; prepares++) {
        struct fixture f;

        begin_served(&f, state);
        f.driver.error = "no such device";
        f.driver.error_of = "u-1";
        f.driver.skipped = "u-2";
        send_batch(&f, prepares);
        WAIT(f.world, f.answered == 3);
        assert_int_equal(f.codes[1], RPC_UNKNOWN);
        assert_int_equal(f.codes[2], RPC_INTERNAL);
        assert_int_equal(f.codes[3], RPC_OK);
        stop(&f);
    }
}

static void what_is_wrong_about_a_batch_is_so_for_each(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    f.driver.besides = "x";
    send_batch(&f, true);
    WAIT(f.world, f.answered == 3);
    assert_true(f.codes[1] == RPC_INTERNAL && f.codes[2] == RPC_INTERNAL);
    assert_string_equal(f.message, "NodePrepareResources returned result for unknown claim UID x");
    stop(&f);

    begin_served(&f, state);
    f.driver.code = RPC_ABORTED;
    send_batch(&f, true);
    WAIT(f.world, f.answered == 3);
    assert_true(f.codes[1] == RPC_ABORTED && f.codes[2] == RPC_ABORTED);
    assert_int_equal(f.code, RPC_ABORTED);
    assert_string_equal(f.message, "the driver says no");
    stop(&f);

    begin_served(&f, state);
    f.driver.hold = true;
    send_batch(&f, true);
    WAIT(f.world, f.driver.held);
    driver_end(&f.driver);
    WAIT(f.world, f.answered == 3);
    assert_true(f.codes[1] == RPC_UNAVAILABLE && f.codes[2] == RPC_UNAVAILABLE);
    assert_string_equal(f.events, "+-123");
    stop(&f);

    begin(&f, state);
    send_batch(&f, true); /* of one that was never opened */
    WAIT(f.world, f.answered == 3);
    assert_true(f.codes[1] == RPC_UNAVAILABLE && f.codes[2] == RPC_UNAVAILABLE);
    assert_string_equal(f.message, "the driver is not connected");
    stop(&f);
}

static void the_last_of_a_batch_that_is_cancelled_ends_its_call(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    f.driver.hold = true;
    send_batch(&f, true);
    WAIT(f.world, f.driver.held);
    driver_clients_cancel(f.clients, 1);
    driver_clients_cancel(f.clients, 1);
    driver_clients_cancel(f.clients, 3);
    world_settle(f.world);
    assert_non_null(f.driver.held);
    driver_clients_cancel(f.clients, 2);
    WAIT(f.world, !f.driver.held);
    world_settle(f.world);
    assert_int_equal(f.answered, 0);
    stop(&f);
}

/* It was asked for all the same, and may be answered. */
static void of_a_batch_who_is_not_cancelled_is_answered(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    send_batch(&f, true);
    driver_clients_cancel(f.clients, 2);
    WAIT(f.world, f.answered == 2);
    assert_int_equal(f.driver.claims, 3);
    assert_int_equal(f.codes[1] | f.codes[3], RPC_OK);
    assert_string_equal(f.events, "+13");
    stop(&f);

    for (unsigned cancels = 1; cancels <= 3; cancels++) { /* by who hears of the first */
        begin_served(&f, state);
        f.cancels = cancels;
        send_batch(&f, true);
        WAIT(f.world, f.answered == (cancels == 1 ? 3 : 2));
        world_settle(f.world);
        assert_string_equal(f.events, cancels == 1 ? "+123" : cancels == 2 ? "+13" : "+12");
        stop(&f);
    }
}

static void what_waits_and_is_cancelled_or_closed_is_never_asked_for(void **state)
{
    struct fixture f;

    begin_served(&f, state);
    for (unsigned i = 1; i <= 3; i++)
        add(&f, true, INSTANCE, i, i);
    driver_clients_cancel(f.clients, 2);
    driver_clients_send(f.clients);
    WAIT(f.world, f.answered == 2);
    assert_string_equal(f.driver.claim, "default/gpu u-1, default/gpu u-3");
    add(&f, true, INSTANCE, 4, 4);
    driver_clients_cancel(f.clients, 4);
    driver_clients_send(f.clients);
    add(&f, true, INSTANCE, 5, 5);
    driver_clients_close(f.clients, INSTANCE);
    driver_clients_send(f.clients);
    world_settle(f.world);
    assert_int_equal(f.driver.prepares, 1);
    assert_int_equal(f.answered, 2);
    stop(&f);

    begin_served(&f, state);
    f.driver.hold = true;
    send_batch(&f, true);
    WAIT(f.world, f.driver.held);
    add(&f, true, INSTANCE, 4, 4);
    stop(&f); /* with some sent, and one that waits */
    assert_int_equal(f.answered, 0);
}

static unsigned times_got(const struct raw *raw, const char *text)
{
    const uint8_t *at = raw->got.data, *end = at + raw->got.len;
    unsigned times = 0;

    for (; (at = memmem(at, (size_t)(end - at), text, strlen(text))); at++)
        times++;
    return times;
}

/* REFUSED_STREAM: it was not looked at, and is asked for once more, as it was. */
static void a_batch_that_is_refused_is_sent_once_more(void **state)
{
    struct bytes *greeting = calloc(3, sizeof *greeting), *first = greeting + 1,
                 *second = greeting + 2;
    struct raw *raw = calloc(1, sizeof *raw);
    struct fixture f;

    begin(&f, state);
    bytes_settings(greeting);
    bytes_frame(first, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x07", 4);
    bytes_frame(second, NGHTTP2_RST_STREAM, 0, 3, "\0\0\0\x07", 4);
    raw->greeting = greeting;
    raw->answer = first;
    raw_listen(raw, f.world);
    snprintf(f.driver.path, sizeof f.driver.path, "%s", f.world->path);
    open_instance(&f, &f.driver, INSTANCE, DRIVER_V1);
    WAIT(f.world, f.connected == 1);
    send_batch(&f, true);
    WAIT(f.world, times_got(raw, "u-3") == 2);
    assert_int_equal(times_got(raw, "u-1"), 2);
    assert_int_equal(f.answered, 0);
    raw_write(raw, second);
    WAIT(f.world, f.answered == 3);
    assert_true(f.codes[1] == RPC_UNAVAILABLE && f.codes[2] == RPC_UNAVAILABLE);
    driver_clients_close(f.clients, INSTANCE);
    raw_close(raw); /* with the socket's file */
    stop(&f);
    world_settle(f.world);
    free(raw);
    free(greeting);
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
        TEST(a_batch_is_one_call_in_its_order),
        TEST(only_what_belongs_together_is_joined),
        TEST(a_batch_of_very_many_is_several_calls),
        TEST(of_a_batch_each_has_its_own_answer),
        TEST(what_is_wrong_about_a_batch_is_so_for_each),
        TEST(the_last_of_a_batch_that_is_cancelled_ends_its_call),
        TEST(of_a_batch_who_is_not_cancelled_is_answered),
        TEST(what_waits_and_is_cancelled_or_closed_is_never_asked_for),
        TEST(a_batch_that_is_refused_is_sent_once_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
