/* shim/rpc/link.c: one connection's life; what both roles do on it has tests of
 * its own. */
#include "tests/unit/rpc_fixture.h"

#include "shim/rpc/link.h"

/* A link and what its owner saw. */
struct owner {
    struct link link;
    bool connected;
    bool ended;
    bool gone;
    char reason[LINK_REASON_BYTES_MAX];
    bool close_in_connected; /* set by the test */
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

static void on_frame_received(struct link *link, const nghttp2_frame *frame)
{
    (void)frame;
    if (owner_of(link)->close_in_frame)
        owner_close(owner_of(link));
}

static void on_frame_sent(struct link *link, const nghttp2_frame *frame)
{
    (void)link;
    (void)frame;
}

static int on_headers_begin(struct link *link, const nghttp2_frame *frame)
{
    (void)link;
    (void)frame;
    return 0;
}

static const struct link_ops ops = {
    .connected = on_connected,
    .ended = on_ended,
    .gone = on_gone,
    .frame_received = on_frame_received,
    .frame_sent = on_frame_sent,
    .headers_begin = on_headers_begin,
};

static void owner_init(struct owner *owner, struct world *world)
{
    assert_int_equal(link_init(&owner->link, &world->loop, LINK_CLIENT, LINK_STREAMS_MAX, &ops), 0);
}

static void owner_end(struct owner *owner, struct world *world)
{
    if (!owner->closed)
        owner_close(owner);
    world_wait(world, &owner->gone);
}

/* ---- without a server ---- */

static void closes_before_it_connects(void **state)
{
    struct owner owner = {0};

    owner_init(&owner, *state);
    assert_true(link_usable(&owner.link));
    assert_int_equal(link_fd(&owner.link), UV_ENOTCONN);
    link_wake(&owner.link);
    owner_end(&owner, *state);
}

static void ends_when_nobody_listens(void **state)
{
    struct world *world = *state;
    struct owner owner = {0};

    owner_init(&owner, world);
    link_connect(&owner.link, world->path);
    world_wait(world, &owner.ended);
    assert_string_equal(owner.reason, "no such file or directory");
    assert_false(owner.connected);
    owner_end(&owner, world);
}

/* ---- with a raw server ---- */

struct fixture {
    struct world *world;
    struct owner owner;
    struct raw raw;
    struct bytes greeting; /* the server's, if the test chooses one */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    *state = f;
    return 0;
}

/* Makes the server and the link, and connects them. */
static void dial(struct fixture *f)
{
    if (f->greeting.len > 0)
        f->raw.greeting = &f->greeting;
    raw_listen(&f->raw, f->world);
    owner_init(&f->owner, f->world);
    link_connect(&f->owner.link, f->world->path);
}

static void end(struct fixture *f)
{
    owner_end(&f->owner, f->world);
    world_wait(f->world, &f->raw.ended);
    raw_close(&f->raw);
    world_settle(f->world);
    memset(&f->owner, 0, sizeof f->owner);
    memset(&f->raw, 0, sizeof f->raw);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    end(f);
    err = world_free(f->world);
    free(f);
    return err;
}

static void closes_while_it_connects(void **state)
{
    struct fixture *f = *state;

    dial(f);
    owner_close(&f->owner);
    world_wait(f->world, &f->owner.gone);
    assert_false(f->owner.connected || f->owner.ended);
}

static void closes_inside_connected(void **state)
{
    struct fixture *f = *state;

    f->owner.close_in_connected = true;
    dial(f);
    world_wait(f->world, &f->owner.gone);
    assert_true(f->owner.connected);
}

static void closes_inside_the_session(void **state)
{
    struct fixture *f = *state;

    bytes_settings(&f->greeting);
    f->owner.close_in_frame = true;
    dial(f);
    world_wait(f->world, &f->owner.gone);
    assert_false(f->owner.ended);
}

static void says_hello_with_its_settings(void **state)
{
    struct fixture *f = *state;

    dial(f);
    world_wait(f->world, &f->owner.connected);
    assert_true(link_fd(&f->owner.link) >= 0);
    assert_ptr_equal(link_loop(&f->owner.link), &f->world->loop);
    while (f->raw.parsed <= NGHTTP2_CLIENT_MAGIC_LEN)
        uv_run(&f->world->loop, UV_RUN_ONCE);
    assert_memory_equal(f->raw.got.data, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    assert_int_equal(f->raw.got.data[NGHTTP2_CLIENT_MAGIC_LEN + 3], NGHTTP2_SETTINGS);
}

static void break_ends_it_from_the_loop(void **state)
{
    struct fixture *f = *state;

    dial(f);
    world_wait(f->world, &f->owner.connected);
    link_break(&f->owner.link, "out of patience");
    link_break(&f->owner.link, "again");
    assert_false(f->owner.ended);
    world_wait(f->world, &f->owner.ended);
    assert_string_equal(f->owner.reason, "out of patience");
    link_break(&f->owner.link, "too late");
}

static void says_why_it_ends(void **state)
{
    static const struct {
        uint8_t type, flags;
        uint32_t stream_id;
        const char *payload;
        size_t len;
        const char *reason;
    } cases[] = {
        {NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\x0b", 8,
         "the peer is going away: ENHANCE_YOUR_CALM"},
        {NGHTTP2_DATA, 0, 1, "x", 1, "the peer broke HTTP/2: PROTOCOL_ERROR"},
        {NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, "\0\0\0\2", 4,
         "the peer broke HTTP/2: PROTOCOL_ERROR"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (i > 0)
            end(f);
        bytes_settings(&f->greeting);
        bytes_frame(&f->greeting, cases[i].type, cases[i].flags, cases[i].stream_id,
                    cases[i].payload, cases[i].len);
        dial(f);
        world_wait(f->world, &f->owner.ended);
        assert_string_equal(f->owner.reason, cases[i].reason);
    }
}

/* Twelve CONTINUATION frames: more than any list that is small enough would
 * need. */
static void endless_continuations_end_it(void **state)
{
    struct fixture *f = *state;

    bytes_settings(&f->greeting);
    bytes_frame(&f->greeting, NGHTTP2_HEADERS, 0, 2, NULL, 0);
    for (size_t i = 0; i < 12; i++)
        bytes_frame(&f->greeting, NGHTTP2_CONTINUATION, 0, 2, NULL, 0);
    dial(f);
    world_wait(f->world, &f->owner.ended);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(closes_before_it_connects), WORLD_TEST(ends_when_nobody_listens),
        TEST(closes_while_it_connects),        TEST(closes_inside_connected),
        TEST(closes_inside_the_session),       TEST(says_hello_with_its_settings),
        TEST(break_ends_it_from_the_loop),     TEST(says_why_it_ends),
        TEST(endless_continuations_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
