/* shim/kubelet/watchers.c: bridges that watch and report, at a real feed. */
#include "shim/kubelet/watchers.h"
#include "tests/unit/feed_fixture.h"

static void there_is_a_most_of_watches(void **state)
{
    struct question q[WATCHERS_STREAMS_MAX + 1];
    struct fixture *f = *state;

    start(f);
    for (size_t i = 0; i < WATCHERS_STREAMS_MAX; i++)
        watch(f, &q[i]);
    WAIT(f->world, q[WATCHERS_STREAMS_MAX - 1].messages > 0);
    watch(f, &q[WATCHERS_STREAMS_MAX]);
    WAIT(f->world, q[WATCHERS_STREAMS_MAX].over);
    assert_int_equal(q[WATCHERS_STREAMS_MAX].code, RPC_RESOURCE_EXHAUSTED);
    rpc_call_cancel(q[0].call);
    world_settle(f->world);
    watch_first(f, &q[0]);
}

static void the_bridge_that_came_last_is_told_of(void **state)
{
    struct question q, r;
    struct watchers_bridge bridge;
    struct fixture *f = *state;
    uint64_t since_ms;

    start(f);
    feed_look_at_bridge(f->feed, &bridge);
    assert_false(bridge.connected);
    assert_int_equal(bridge.pid, 0);
    since_ms = bridge.since_ms;
    assert_in_range(boot_now_ms() - since_ms, 0, 60000);
    watch_first(f, &q);
    report_one(f, &r, NULL_DEVICE, q.version);
    feed_look_at_bridge(f->feed, &bridge);
    assert_true(bridge.connected);
    assert_int_equal(bridge.pid, getpid());
    assert_int_equal(bridge.kubelet_pid, KUBELET);
    assert_string_equal(bridge.version, "9");
    assert_true(bridge.since_ms >= since_ms);
    rpc_call_cancel(q.call);
    WAIT(f->world, says(f, "no bridge has reported"));
    feed_look_at_bridge(f->feed, &bridge);
    assert_false(bridge.connected);
    assert_string_equal(bridge.version, "");
}

static void what_is_reported_counts_while_its_bridge_is_here(void **state)
{
    struct question q, r;
    struct taken taken;
    struct fixture *f = *state;
    unsigned changed;

    start(f);
    feed_taken(f->feed, KUBELET, &taken);
    assert_false(taken.all);
    assert_string_equal(taken.words, "the kubelet's checkpoint is being read");
    assert_false(taken.bridge);
    watch(f, &q);
    WAIT(f->world, q.resources == 1);
    feed_taken(f->feed, KUBELET, &taken);
    assert_string_equal(taken.words, "no bridge has reported");
    assert_true(taken.bridge);
    assert_false(taken.reached);

    changed = f->changed;
    report_one(f, &r, NULL_DEVICE, q.version);
    assert_int_equal(r.code, RPC_OK);
    assert_true(f->changed > changed);
    /* `stored` tells of a file that is to be read before it counts; there is none. */
    WAIT(f->world, says(f, NULL_DEVICE ": there is no kubelet's checkpoint"));
    make_kubelet_file(f, "{"); /* no known format */
    WAIT(f->world, says(f, "all resources (1) are registered and stored"));
    feed_taken(f->feed, KUBELET + 1, &taken);
    assert_false(taken.all);
    assert_false(taken.reached);
    feed_taken(f->feed, KUBELET, &taken);
    assert_true(taken.reached);

    rpc_call_cancel(q.call);
    WAIT(f->world, says(f, "no bridge has reported"));
    feed_taken(f->feed, KUBELET, &taken);
    assert_false(taken.bridge || taken.reached);
}

/* A second stream of the same bridge, as after a lost connection: the report stays. */
static void a_bridge_that_comes_again_keeps_its_report(void **state)
{
    struct question first, second, r;
    struct fixture *f = *state;

    start(f);
    watch(f, &first);
    WAIT(f->world, first.resources == 1);
    report_one(f, &r, NULL_DEVICE, first.version + 1);
    watch(f, &second);
    WAIT(f->world, second.messages == 1);
    rpc_call_cancel(first.call);
    world_settle(f->world);
    assert_true(says(f, NULL_DEVICE ": its list was not sent"));
}

static void reports_that_cannot_be(void **state)
{
    Bridge__V1__ReportRequest request = BRIDGE__V1__REPORT_REQUEST__INIT;
    Bridge__V1__ResourceReport one = BRIDGE__V1__RESOURCE_REPORT__INIT;
    Bridge__V1__ResourceReport *ones[WATCHERS_REPORTS_MAX + 1];
    ProtobufCMessageUnknownField later = {.tag = 100,
                                          .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                          .len = 4 + WATCHERS_REPORT_BYTES_MAX};
    char name[WATCHERS_NAME_BYTES_MAX + 2];
    struct question q, r;
    struct fixture *f = *state;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i <= WATCHERS_REPORTS_MAX; i++)
        ones[i] = &one;
    request.resources = ones;
    start(f);
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_FAILED_PRECONDITION); /* no Watch */
    watch_first(f, &q);
    one.name = name;
    request.n_resources = 1;
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_INVALID_ARGUMENT);
    name[WATCHERS_NAME_BYTES_MAX] = '\0';
    request.n_resources = WATCHERS_REPORTS_MAX + 1;
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_INVALID_ARGUMENT);
    request.n_resources = WATCHERS_REPORTS_MAX;
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_OK);
    /* What nobody knows is kept, too. */
    later.data = calloc(1, later.len);
    memcpy(later.data, "\x80\x80\xc0\x00", 4); /* the length of the rest, a varint */
    request.base.unknown_fields = &later;
    request.base.n_unknown_fields = 1;
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_INVALID_ARGUMENT);
    free(later.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_a_most_of_watches),
        TEST(the_bridge_that_came_last_is_told_of),
        TEST(what_is_reported_counts_while_its_bridge_is_here),
        TEST(a_bridge_that_comes_again_keeps_its_report),
        TEST(reports_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
