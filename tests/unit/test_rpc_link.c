/* shim/rpc/link.c: one connection's life; what both roles do on it has tests of its own. */
#include "tests/unit/test_rpc_fixture.h"

#include "shim/rpc/link.h"
#include "shim/rpc/listen.h"

/* A link and what its owner saw. */
struct owner {
    struct link link;
    bool connected;
    bool ended;
    bool gone;
    char reason[LINK_REASON_BYTES_MAX];
    bool close_in_connected;
    bool close_in_frame;
    bool closed;
};

static struct owner *owner_of(struct link *link)
{
    return (struct owner *)((char *)link - offsetof(struct owner, link));
}

static void owner_close(struct owner *owner)
{
    owner->closed = true;
    link_close(&owner->link);
}

static void on_connected(struct link *link)
{
    owner_of(link)->connected = true;
    if (owner_of(link)->close_in_connected)
        owner_close(owner_of(link));
}

static void on_ended(struct link *link, const char *reason)
{
    struct owner *owner = owner_of(link);

    assert_false(owner->ended || owner->closed);
    assert_false(link_usable(link));
    owner->ended = true;
    snprintf(owner->reason, sizeof owner->reason, "%s", reason);
}

static void on_gone(struct link *link)
{
    assert_false(owner_of(link)->gone);
    owner_of(link)->gone = true;
}

static int on_frame_received(struct link *link, const nghttp2_frame *frame)
{
    (void)frame;
    if (owner_of(link)->close_in_frame) {
        owner_close(owner_of(link));
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

static int on_frame_sent(struct link *link, const nghttp2_frame *frame)
{
    (void)link;
    (void)frame;
    return 0;
}

static void add_callbacks(nghttp2_session_callbacks *callbacks)
{
    (void)callbacks;
}

static const struct link_ops ops = {
    .connected = on_connected,
    .ended = on_ended,
    .gone = on_gone,
    .frame_received = on_frame_received,
    .frame_sent = on_frame_sent,
    .add_callbacks = add_callbacks,
};

static struct owner *owner_new(struct world *world)
{
    struct owner *owner = calloc(1, sizeof *owner);

    assert_int_equal(link_init(&owner->link, &world->loop, LINK_CLIENT, &ops), 0);
    return owner;
}

static void owner_free(struct owner *owner, struct world *world)
{
    if (!owner->closed)
        owner_close(owner);
    world_wait(world, &owner->gone);
    free(owner);
}

/* A link connected to a raw server that greets with `greeting`. */
static struct raw *connect_raw(struct world *world, struct owner *owner,
                               const struct bytes *greeting)
{
    struct raw *raw = calloc(1, sizeof *raw);

    raw->greeting = greeting;
    raw_listen(raw, world);
    link_connect(&owner->link, world->path);
    return raw;
}

static void raw_free(struct raw *raw, struct world *world)
{
    raw_close(raw);
    world_settle(world);
    free(raw);
}

static void closes_before_it_connects(void **state)
{
    struct owner *owner = owner_new(*state);

    assert_true(link_usable(&owner->link));
    assert_int_equal(link_fd(&owner->link), UV_ENOTCONN);
    link_wake(&owner->link);
    owner_free(owner, *state);
}

static void closes_while_it_connects(void **state)
{
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw = connect_raw(world, owner, NULL);

    owner_close(owner);
    world_wait(world, &owner->gone);
    assert_false(owner->connected || owner->ended);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

static void closes_inside_connected(void **state)
{
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw;

    owner->close_in_connected = true;
    raw = connect_raw(world, owner, NULL);
    world_wait(world, &owner->gone);
    assert_true(owner->connected);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

static void closes_inside_the_session(void **state)
{
    static struct bytes greeting;
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw;

    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    owner->close_in_frame = true;
    raw = connect_raw(world, owner, &greeting);
    world_wait(world, &owner->gone);
    assert_false(owner->ended);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

static void says_hello_with_its_settings(void **state)
{
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw = connect_raw(world, owner, NULL);

    world_wait(world, &owner->connected);
    assert_true(link_fd(&owner->link) >= 0);
    assert_ptr_equal(link_loop(&owner->link), &world->loop);
    while (raw->parsed <= NGHTTP2_CLIENT_MAGIC_LEN)
        uv_run(&world->loop, UV_RUN_ONCE);
    assert_memory_equal(raw->got.data, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    assert_int_equal(raw->got.data[NGHTTP2_CLIENT_MAGIC_LEN + 3], NGHTTP2_SETTINGS);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

static void ends_when_nobody_listens(void **state)
{
    struct world *world = *state;
    struct owner *owner = owner_new(world);

    link_connect(&owner->link, world->path);
    world_wait(world, &owner->ended);
    assert_string_equal(owner->reason, "no such file or directory");
    assert_false(owner->connected);
    owner_free(owner, world);
}

static void break_ends_it_from_the_loop(void **state)
{
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw = connect_raw(world, owner, NULL);

    world_wait(world, &owner->connected);
    link_break(&owner->link, "out of patience");
    link_break(&owner->link, "again");
    assert_false(owner->ended);
    world_wait(world, &owner->ended);
    assert_string_equal(owner->reason, "out of patience");
    link_break(&owner->link, "too late");
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

/* Sends `greeting` and gives the reason for which the link ends. */
static void assert_reason(struct world *world, const struct bytes *greeting, const char *reason)
{
    struct owner *owner = owner_new(world);
    struct raw *raw = connect_raw(world, owner, greeting);

    world_wait(world, &owner->ended);
    assert_string_equal(owner->reason, reason);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

static void says_why_it_ends(void **state)
{
    static struct bytes greeting;

    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    bytes_frame(&greeting, NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\x0b", 8);
    assert_reason(*state, &greeting, "the peer is going away: ENHANCE_YOUR_CALM");

    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    bytes_frame(&greeting, NGHTTP2_DATA, 0, 1, "x", 1);
    assert_reason(*state, &greeting, "the peer broke HTTP/2: PROTOCOL_ERROR");

    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    bytes_frame(&greeting, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, "\0\0\0\2", 4);
    assert_reason(*state, &greeting, "the peer broke HTTP/2: PROTOCOL_ERROR");
}

/* Twelve CONTINUATION frames: more than any list that is small enough would need. */
static void endless_continuations_end_it(void **state)
{
    static struct bytes greeting;
    struct world *world = *state;
    struct owner *owner = owner_new(world);
    struct raw *raw;

    greeting.len = 0;
    bytes_frame(&greeting, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
    bytes_frame(&greeting, NGHTTP2_HEADERS, 0, 2, NULL, 0);
    for (size_t i = 0; i < 12; i++)
        bytes_frame(&greeting, NGHTTP2_CONTINUATION, 0, 2, NULL, 0);
    raw = connect_raw(world, owner, &greeting);
    world_wait(world, &owner->ended);
    owner_free(owner, world);
    world_wait(world, &raw->ended);
    raw_free(raw, world);
}

#define WORLD_TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(closes_before_it_connects),    WORLD_TEST(closes_while_it_connects),
        WORLD_TEST(closes_inside_connected),      WORLD_TEST(closes_inside_the_session),
        WORLD_TEST(says_hello_with_its_settings), WORLD_TEST(ends_when_nobody_listens),
        WORLD_TEST(break_ends_it_from_the_loop),  WORLD_TEST(says_why_it_ends),
        WORLD_TEST(endless_continuations_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
