/* shim/rpc/channel.c: the client's connection, from its begin to its end. */
#include "tests/unit/rpc_calling.h"

#include <sys/un.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

static void bad_paths_are_errors_at_once(void **state)
{
    struct world *world = *state;
    struct rpc_channel *channel;
    char name[200];

    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(rpc_channel_open(&world->loop, name, &channel_ops, NULL, &channel),
                     UV_ENAMETOOLONG);
    assert_int_equal(rpc_channel_open(&world->loop, "", &channel_ops, NULL, &channel), UV_EINVAL);
    rpc_channel_close(NULL);
}

static void works_on_a_descriptor_that_is_connected(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct result result = {0};
    struct pair *p = *state;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    close_channel(p);
    strcpy(address.sun_path, p->world->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(
        rpc_channel_open_fd(&p->world->loop, fd, &channel_ops, &p->events, &p->channel), 0);
    assert_int_equal(call(p, "/test/Answer", &result), RPC_OK);
    assert_false(p->events.connected);
    served_close(&p->served);
    world_wait(p->world, &p->events.lost);
}

static void a_bad_descriptor_is_an_error_at_once(void **state)
{
    struct world *world = *state;
    struct rpc_channel *channel;

    assert_int_equal(rpc_channel_open_fd(&world->loop, -1, &channel_ops, NULL, &channel), UV_EBADF);
    world_settle(world);
}

static void close_before_anything_happened(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel = open_channel(world, &events);

    start(channel, "/test/Take", UNARY, 1000, &result);
    rpc_channel_close(channel);
    world_settle(world);
    assert_false(result.over || events.lost || events.connected);
}

static void close_inside_the_message_callback(void **state)
{
    struct result result = {.close_in_message = true}, other = {0};
    struct pair *p = *state;

    start(p->channel, "/test/Answer", UNARY, 0, &result);
    start(p->channel, "/test/Take", UNARY, 1000, &other);
    world_wait(p->world, &result.got);
    p->channel = NULL;
    world_settle(p->world);
    assert_false(result.over);
    assert_false(other.over);
    assert_false(p->events.lost);
}

static void close_inside_the_done_callback(void **state)
{
    struct result result = {.close_in_done = true}, other = {0};
    struct pair *p = *state;

    start(p->channel, "/test/Answer", UNARY, 0, &result);
    start(p->channel, "/test/Take", UNARY, 0, &other);
    world_wait(p->world, &result.over);
    p->channel = NULL;
    world_settle(p->world);
    assert_false(other.over);
    assert_false(p->events.lost);
}

static void close_inside_done_when_the_connection_is_lost(void **state)
{
    struct result result = {.close_in_done = true}, other = {.close_in_done = true};
    struct pair *p = *state;

    start(p->channel, "/test/Take", UNARY, 0, &result);
    start(p->channel, "/test/Take", UNARY, 0, &other);
    world_wait(p->world, &p->served.called);
    served_close(&p->served);
    while (!result.over && !other.over)
        uv_run(&p->world->loop, UV_RUN_ONCE);
    p->channel = NULL;
    world_settle(p->world);
    assert_true(result.over != other.over);
    assert_false(p->events.lost);
}

static void a_lost_connection_ends_its_calls(void **state)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    struct result result = {0}, second = {0};
    struct pair *p = *state;

    start(p->channel, "/test/Take", UNARY, 0, &result);
    start(p->channel, "/test/Take", STREAM, 0, &second);
    world_wait(p->world, &p->served.called);
    served_close(&p->served);
    world_wait(p->world, &p->events.lost);
    assert_true(result.over && second.over);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
    assert_int_equal(second.code, RPC_UNAVAILABLE);
    assert_string_equal(p->events.reason, "the peer hung up");
    assert_null(rpc_channel_call(p->channel, "/test/Answer", &empty.base,
                                 &v1beta1__empty__descriptor, false, 0, &call_ops, &result));
    world_settle(p->world);
    close_channel(p); /* long after the handles are closed */
    assert_false(p->served.cancelled);
}

static void a_refused_connection_is_told_later(void **state)
{
    struct world *world = *state;
    struct link_events events;
    struct result result = {0};
    struct rpc_channel *channel = open_channel(world, &events);

    events.close_in_lost = true;
    start(channel, "/test/Take", UNARY, 1000, &result);
    assert_false(events.lost);
    world_wait(world, &events.lost);
    assert_false(events.connected);
    assert_int_equal(result.code, RPC_UNAVAILABLE);
    assert_string_equal(result.text, "connection lost: no such file or directory");
}

static void hanging_up_mid_answer_is_unavailable(void **state)
{
    struct raw_pair *p = *state;

    bytes_headers(&p->answer, 0, 1, headers_ok);
    bytes_add(&p->answer, "\0\0\7\0\0\0\0\0\1\0", 10);
    open_raw(p);
    p->raw.hang_up = true;
    assert_int_equal(run_opened(p, UNARY), RPC_UNAVAILABLE);
}

static struct result another;

/* Says the rest, hangs up, and has the client write: that fails, before it has read the rest. */
static void hang_up_at_the_end(struct result *result)
{
    struct raw_pair *p = (struct raw_pair *)((char *)result - offsetof(struct raw_pair, result));

    result->in_message = NULL;
    raw_write(&p->raw, &p->greeting);
    raw_hang_up(&p->raw);
    start(p->channel, "/test/Raw", UNARY, 0, &another);
}

static void what_was_said_before_hanging_up_counts(void **state)
{
    struct raw_pair *p = *state;

    bytes_headers(&p->answer, 0, 1, headers_ok);
    bytes_message(&p->answer, 0, 1, 0, "", 0);
    open_raw(p);
    p->result.in_message = hang_up_at_the_end;
    another = (struct result){0};
    p->raw.answer = &p->answer;
    start(p->channel, "/test/Raw", STREAM, 0, &p->result);
    world_wait(p->world, &p->raw.request_whole);
    p->greeting.len = 0;
    bytes_headers(&p->greeting, END, 1, trailers_ok);
    world_wait(p->world, &p->events.lost);
    assert_int_equal(p->result.code, RPC_OK);
    assert_int_equal(another.code, RPC_UNAVAILABLE);
    assert_string_equal(p->events.reason, "broken pipe");
    close_raw(p);
}

static void garbage_instead_of_http2_is_unavailable(void **state)
{
    struct raw_pair *p = *state;

    bytes_add(&p->answer, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 47);
    assert_int_equal(run(p, UNARY), RPC_UNAVAILABLE);
}

static void a_going_away_server_ends_what_it_does_not_serve(void **state)
{
    static const uint8_t payload[8] = {0}; /* last stream 0, NO_ERROR */
    struct raw_pair *p = *state;

    bytes_frame(&p->answer, NGHTTP2_GOAWAY, 0, 0, payload, sizeof payload);
    assert_int_equal(run(p, UNARY), RPC_UNAVAILABLE);
}

/* One stream at a time, and none after the first: the second call is never
 * sent. */
static void run_never_sent(struct raw_pair *p, struct result *second)
{
    static const uint8_t one_stream[6] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, 1};
    static const uint8_t goaway[8] = {0, 0, 0, 1};

    p->greeting.len = 0;
    bytes_frame(&p->greeting, NGHTTP2_SETTINGS, 0, 0, one_stream, sizeof one_stream);
    bytes_frame(&p->answer, NGHTTP2_GOAWAY, 0, 0, goaway, sizeof goaway);
    bytes_headers(&p->answer, 0, 1, headers_ok);
    bytes_message(&p->answer, 0, 1, 0, "", 0);
    bytes_headers(&p->answer, END, 1, trailers_ok);
    open_raw(p);
    world_wait(p->world, &p->events.connected);
    world_settle(p->world); /* its SETTINGS have come */
    start(p->channel, "/test/Raw", UNARY, 0, &p->result);
    start(p->channel, "/test/Raw", UNARY, 0, second);
    world_wait(p->world, &p->raw.request_whole);
    raw_write(&p->raw, &p->answer);
    world_wait(p->world, &p->result.over);
    assert_int_equal(p->result.code, RPC_OK);
    world_wait(p->world, &second->over);
    assert_int_equal(second->code, RPC_UNAVAILABLE);
}

static void a_going_away_server_ends_what_was_never_sent(void **state)
{
    struct result second = {0};
    struct raw_pair *p = *state;

    run_never_sent(p, &second);
    world_wait(p->world, &p->events.lost);
    assert_string_equal(p->events.reason, "the peer is going away: NO_ERROR");
    close_raw(p);
}

/* The leak sanitizer would tell of the request. */
static void what_was_never_sent_may_close_the_channel(void **state)
{
    struct result second = {.close_in_done = true};
    struct raw_pair *p = *state;

    run_never_sent(p, &second);
    p->channel = NULL;
    close_raw(p);
}

/* A stream has the one that the server allows for as long as it likes. */
static void what_was_not_sent_in_time_is_not_the_servers_silence(void **state)
{
    static const uint8_t one_stream[6] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, 1};
    struct result second = {0};
    struct raw_pair *p = *state;

    p->greeting.len = 0;
    bytes_frame(&p->greeting, NGHTTP2_SETTINGS, 0, 0, one_stream, sizeof one_stream);
    bytes_headers(&p->answer, 0, 1, headers_ok);
    open_raw(p);
    world_wait(p->world, &p->events.connected);
    world_settle(p->world); /* its SETTINGS have come */
    start(p->channel, "/test/Raw", STREAM, 0, &p->result);
    start(p->channel, "/test/Raw", UNARY, 10, &second);
    world_wait(p->world, &second.over);
    assert_int_equal(second.code, RPC_DEADLINE_EXCEEDED);
    assert_string_equal(
        second.text,
        "not asked within 10 ms: the server takes no more than 1 at once, its streams included");
    assert_false(p->result.over);
    close_raw(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(bad_paths_are_errors_at_once),
        PAIR_TEST(works_on_a_descriptor_that_is_connected),
        WORLD_TEST(a_bad_descriptor_is_an_error_at_once),
        WORLD_TEST(close_before_anything_happened),
        PAIR_TEST(close_inside_the_message_callback),
        PAIR_TEST(close_inside_the_done_callback),
        PAIR_TEST(close_inside_done_when_the_connection_is_lost),
        PAIR_TEST(a_lost_connection_ends_its_calls),
        WORLD_TEST(a_refused_connection_is_told_later),
        RAW_TEST(hanging_up_mid_answer_is_unavailable),
        RAW_TEST(what_was_said_before_hanging_up_counts),
        RAW_TEST(garbage_instead_of_http2_is_unavailable),
        RAW_TEST(a_going_away_server_ends_what_it_does_not_serve),
        RAW_TEST(a_going_away_server_ends_what_was_never_sent),
        RAW_TEST(what_was_never_sent_may_close_the_channel),
        RAW_TEST(what_was_not_sent_in_time_is_not_the_servers_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
