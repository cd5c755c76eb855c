/* shim/rpc/pulse.c: peers that answer a PING, that do not, and what came while nobody looked. */
#include "tests/unit/waiting.h"

#include <time.h>

#include "shim/rpc/link.h"

#define EVERY_MS 20

struct fixture {
    struct world *world;
    struct raw raw;
    struct bytes greeting;
    struct rpc_channel *channel;
    bool connected;
    bool lost;
    char reason[LINK_REASON_BYTES_MAX];
};

static void on_connected(struct rpc_channel *channel, void *user)
{
    struct fixture *f = user;

    (void)channel;
    f->connected = true;
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct fixture *f = user;

    (void)channel;
    f->lost = true;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static const struct rpc_channel_ops OPS = {.connected = on_connected, .lost = on_lost};

static void dial(struct fixture *f)
{
    assert_int_equal(rpc_channel_open(&f->world->loop, f->world->path, &OPS, f, &f->channel), 0);
    rpc_channel_set_pings(f->channel, EVERY_MS);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    bytes_settings(&f->greeting);
    f->raw.greeting = &f->greeting;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int err;

    rpc_channel_close(f->channel);
    world_settle(f->world);
    if (f->raw.listening) {
        world_wait(f->world, &f->raw.ended);
        raw_close(&f->raw);
    }
    err = world_free(f->world);
    free(f);
    return err;
}

/* How many PINGs without ACK came. */
static unsigned pings(const struct fixture *f)
{
    const struct bytes *got = &f->raw.got;
    size_t at = NGHTTP2_CLIENT_MAGIC_LEN;
    unsigned n = 0;

    while (at + 9 <= got->len) {
        const uint8_t *frame = got->data + at;

        n += frame[3] == NGHTTP2_PING && !(frame[4] & NGHTTP2_FLAG_ACK);
        at += 9 + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
    }
    return n;
}

static void add_ack(struct bytes *bytes)
{
    static const uint8_t payload[8] = {0};

    bytes_frame(bytes, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, payload, sizeof payload);
}

static void one_that_does_not_answer_is_lost(void **state)
{
    struct fixture *f = *state;

    raw_listen(&f->raw, f->world);
    dial(f);
    world_wait(f->world, &f->lost);
    assert_in_range(pings(f), 1, 2); /* 2: its SETTINGS came after the first, on a slow machine */
    assert_string_equal(f->reason, "the peer hangs: it does not answer");
}

static void one_that_answers_is_kept(void **state)
{
    struct fixture *f = *state;
    struct bytes *ack = calloc(1, sizeof *ack);

    add_ack(ack);
    raw_listen(&f->raw, f->world);
    dial(f);
    for (unsigned n = 1; n <= 5; n++) {
        WAIT(f->world, f->lost || pings(f) == n);
        assert_false(f->lost);
        raw_write(&f->raw, ack);
    }
    world_wait(f->world, &f->lost); /* from when it answers no more */
    assert_int_equal(pings(f), 5 + 1);
    free(ack);
}

/* As after SIGCONT: all timers are over, and the answer is there, too. */
static void what_came_meanwhile_counts(void **state)
{
    static const struct timespec long_time = {.tv_nsec = 3 * EVERY_MS * 1000000l};
    struct fixture *f = *state;
    struct bytes *ack = calloc(1, sizeof *ack);

    add_ack(ack);
    raw_listen(&f->raw, f->world);
    dial(f);
    WAIT(f->world, pings(f) == 1);
    raw_write(&f->raw, ack);
    nanosleep(&long_time, NULL);
    WAIT(f->world, f->lost || pings(f) == 2);
    assert_false(f->lost);
    free(ack);
}

static void nobody_is_asked_unless_it_is_wanted(void **state)
{
    struct fixture *f = *state;

    raw_listen(&f->raw, f->world);
    dial(f);
    rpc_channel_set_pings(f->channel, 0);
    world_wait(f->world, &f->connected);
    world_settle(f->world);
    assert_int_equal(pings(f), 0);
    assert_int_equal(uv_backend_timeout(&f->world->loop) > EVERY_MS, true); /* the guard's only */
}

/* One that says nothing at all. */
static void a_server_asks_too(void **state)
{
    struct fixture *f = *state;
    struct rpc_server *server;

    assert_int_equal(serve_at(&f->world->loop, f->world->path, NULL, 0, NULL, &server), 0);
    rpc_server_set_pings(server, EVERY_MS);
    f->raw.greeting = NULL;
    raw_connect(&f->raw, f->world);
    world_wait(f->world, &f->raw.ended);
    raw_close(&f->raw);
    f->raw.listening = false;
    rpc_server_close(server);
    world_settle(f->world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_does_not_answer_is_lost),
        TEST(one_that_answers_is_kept),
        TEST(what_came_meanwhile_counts),
        TEST(nobody_is_asked_unless_it_is_wanted),
        TEST(a_server_asks_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
