/* shim/rpc/resume.c: a stream whose caller is gone, on a connection that was kept open since. */
#include "tests/unit/rpc_calling.h"

#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

#define TAKE "/test/Take"

static void send_devices(struct rpc_incoming *call, size_t len)
{
    V1beta1__ListAndWatchResponse list = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device device = V1BETA1__DEVICE__INIT, *devices[2000];

    for (size_t i = 0; i < len; i++)
        devices[i] = &device;
    device.id = (char *)"a device of some length";
    list.devices = devices;
    list.n_devices = len;
    assert_int_equal(rpc_incoming_send(call, &list.base), 0);
}

/* A stream of which a message came, behind another call; how its caller dies: its connection
 * stays. */
struct left {
    struct pair *p;
    struct rpc_call *call;
    struct rpc_incoming *serving;
    struct result result;
    int fd;
    int32_t stream_id;
};

static void begin(struct left *left, struct pair *p)
{
    *left = (struct left){.p = p};
    assert_int_equal(call(p, "/test/Answer", &(struct result){0}), RPC_OK);
    p->served.called = false;
    left->call = start(p->channel, TAKE, STREAM, 0, &left->result);
    world_wait(p->world, &p->served.called);
    left->serving = p->served.call;
    send_devices(left->serving, 1);
    world_wait(p->world, &left->result.got);
}

static void die(struct left *left)
{
    left->fd = dup(rpc_call_stream(left->call, &left->stream_id));
    assert_true(left->fd >= 0);
    close_channel(left->p);
    world_settle(left->p->world);
    assert_false(left->p->served.cancelled);
}

static struct rpc_call *resume(struct left *left)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;
    struct pair *p = left->p;

    left->result = (struct result){0};
    assert_int_equal(
        rpc_channel_open_fd(&p->world->loop, left->fd, &channel_ops, &p->events, &p->channel), 0);
    left->result.channel = p->channel;
    return rpc_channel_resume(p->channel, left->stream_id, TAKE, &empty.base,
                              &v1beta1__list_and_watch_response__descriptor, &call_ops,
                              &left->result);
}

/* Also what was sent while nobody was there, and more than a window together. */
static void goes_on_with_a_stream(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    die(&left);
    send_devices(left.serving, 2);
    assert_non_null(resume(&left));
    world_wait(p->world, &left.result.got);
    assert_int_equal(left.result.devices, 2);
    for (unsigned i = 0; i < 600; i++) { /* 30 MB */
        left.result.got = false;
        send_devices(left.serving, 2000);
        world_wait(p->world, &left.result.got);
    }
    assert_int_equal(left.result.messages, 601);
    assert_int_equal(left.result.devices, 2000);
    assert_false(left.result.over || p->events.lost || p->served.cancelled);
}

/* However often: what is left goes by the same stream. */
static void goes_on_once_more(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    for (size_t i = 2; i < 6; i++) {
        die(&left);
        left.call = resume(&left);
        assert_non_null(left.call);
        send_devices(left.serving, i);
        world_wait(p->world, &left.result.got);
        assert_int_equal(left.result.devices, i);
    }
}

/* What each of them had not given back of the window, half of which nghttp2 waits for, does not add
 * up. */
static void deaths_do_not_use_the_window_up(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    for (unsigned deaths = 0; deaths < 4; deaths++) {
        for (unsigned i = 0; i < 36; i++) { /* 1.9 MB */
            left.result.got = false;
            send_devices(left.serving, 2000);
            world_wait(p->world, &left.result.got);
        }
        die(&left);
        left.call = resume(&left);
        assert_non_null(left.call);
    }
    assert_false(left.result.over || p->events.lost || p->served.cancelled);
}

static void what_ends_is_over(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    die(&left);
    assert_non_null(resume(&left));
    served_close(&p->served);
    world_wait(p->world, &left.result.over);
    assert_int_equal(left.result.code, RPC_UNAVAILABLE);
    world_wait(p->world, &p->events.lost);
}

static void one_that_is_cancelled_is_for_the_server_too(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    die(&left);
    rpc_call_cancel(resume(&left));
    world_wait(p->world, &p->served.cancelled);
}

/* What was asked for beside it and is answered now is nobody's: what stands before and behind its
 * message could be read only with what is not known any more. */
static void another_answer_there_harms_nobody(void **state)
{
    struct result other = {0};
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    p->served.called = false;
    start(p->channel, TAKE, UNARY, 0, &other);
    world_wait(p->world, &p->served.called);
    die(&left);
    assert_non_null(resume(&left));
    incoming_answer(p->served.call, &(V1beta1__Empty)V1BETA1__EMPTY__INIT.base, RPC_OK, NULL);
    p->served.call = NULL;
    world_settle(p->world);
    send_devices(left.serving, 2);
    world_wait(p->world, &left.result.got);
    assert_int_equal(left.result.devices, 2);
    assert_int_equal(left.result.messages, 1);
    assert_false(left.result.over || p->events.lost || p->served.cancelled);
}

static void what_cannot_be_a_stream_is_refused(void **state)
{
    struct pair *p = *state;
    struct left left;

    begin(&left, p);
    die(&left);
    left.stream_id = 0;
    assert_null(resume(&left));
    close_channel(p);
    world_settle(p->world);
    assert_false(left.result.over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(goes_on_with_a_stream),
        PAIR_TEST(goes_on_once_more),
        PAIR_TEST(deaths_do_not_use_the_window_up),
        PAIR_TEST(what_ends_is_over),
        PAIR_TEST(one_that_is_cancelled_is_for_the_server_too),
        PAIR_TEST(another_answer_there_harms_nobody),
        PAIR_TEST(what_cannot_be_a_stream_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
