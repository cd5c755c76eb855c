/* shim/bridge/feed_client.c: daemons that come, go, refuse and are slow, each a server of our
 * own. */
#include "tests/unit/waiting.h"

#include "cri-proto/methods.h"
#include "shim/bridge/feed_client.h"
#include "shim/bridge/limits.h"

struct fixture {
    struct world *world;
    struct feed_client *feed;
    /* the bridge's side */
    unsigned firsts, watched, lost, asked; /* asked: for the report */
    uint64_t mask_ms;                      /* of the last message */
    Bridge__V1__ReportRequest report;
    bool refuse; /* what is watched is not taken */
    bool preferred;
    int prefer_code;
    /* the daemon's side */
    struct rpc_server *daemon;
    struct rpc_incoming *stream, *reporting;
    unsigned watches, reports, prefers;
    int watch_code;  /* Watch is refused with it */
    bool hold;       /* Report is not answered */
    int report_code; /* else answered with it */
    int last_pid;    /* of the last Report */
};

/* ---- the bridge ---- */

static bool on_watched(void *user, const Bridge__V1__WatchResponse *message, bool first)
{
    struct fixture *f = user;

    f->watched++;
    f->firsts += first;
    f->mask_ms = message->mask_ms;
    assert_true(feed_client_alive(f->feed));
    return !f->refuse;
}

static void on_lost(void *user)
{
    struct fixture *f = user;

    f->lost++;
    assert_false(feed_client_alive(f->feed));
}

static const Bridge__V1__ReportRequest *on_report(void *user)
{
    struct fixture *f = user;

    bridge__v1__report_request__init(&f->report);
    f->report.kubelet_pid = (int)++f->asked;
    return &f->report;
}

static const struct feed_client_ops OPS = {on_watched, on_lost, on_report};

/* ---- the daemon ---- */

static void stream_gone(void *user)
{
    struct fixture *f = user;

    f->stream = NULL;
}

static void send_message(struct fixture *f, uint64_t mask_ms)
{
    Bridge__V1__WatchResponse message = BRIDGE__V1__WATCH_RESPONSE__INIT;

    message.mask_ms = mask_ms;
    assert_int_equal(rpc_incoming_send(f->stream, &message.base), 0);
}

static void on_watch(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct fixture *f = user;

    assert_string_equal(((const Bridge__V1__WatchRequest *)message)->bridge_version, SHIM_VERSION);
    f->watches++;
    if (f->watch_code) {
        rpc_incoming_finish(call, f->watch_code, "not now");
        return;
    }
    f->stream = call;
    rpc_incoming_on_cancel(call, stream_gone, f);
}

static void report_gone(void *user)
{
    struct fixture *f = user;

    f->reporting = NULL;
}

static void answer_report(struct fixture *f, struct rpc_incoming *call)
{
    Bridge__V1__ReportResponse answer = BRIDGE__V1__REPORT_RESPONSE__INIT;

    if (f->report_code == RPC_OK)
        assert_int_equal(rpc_incoming_send(call, &answer.base), 0);
    rpc_incoming_finish(call, f->report_code, "no report");
}

static void on_daemon_report(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    struct fixture *f = user;

    assert_null(f->reporting); /* one at a time */
    f->reports++;
    f->last_pid = ((const Bridge__V1__ReportRequest *)message)->kubelet_pid;
    if (f->hold) {
        f->reporting = call;
        rpc_incoming_on_cancel(call, report_gone, f);
    } else {
        answer_report(f, call);
    }
}

static void on_prefer(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    Bridge__V1__PreferResponse answer = BRIDGE__V1__PREFER_RESPONSE__INIT;
    struct fixture *f = user;

    (void)message;
    f->prefers++;
    assert_int_equal(rpc_incoming_send(call, &answer.base), 0);
    rpc_incoming_finish(call, RPC_OK, NULL);
}

static const struct rpc_method METHODS[] = {
    {BRIDGE_WATCH, &bridge__v1__watch_request__descriptor, on_watch},
    {BRIDGE_REPORT, &bridge__v1__report_request__descriptor, on_daemon_report},
    {BRIDGE_PREFER, &bridge__v1__prefer_request__descriptor, on_prefer},
};

static void serve(struct fixture *f)
{
    assert_int_equal(serve_at(&f->world->loop, f->world->path, METHODS,
                              sizeof METHODS / sizeof *METHODS, f, &f->daemon),
                     0);
}

static void die(struct fixture *f)
{
    rpc_server_close(f->daemon);
    f->daemon = NULL;
    f->stream = f->reporting = NULL;
}

static void start(struct fixture *f, struct world *world)
{
    memset(f, 0, sizeof *f);
    f->world = world;
    f->feed = feed_client_start(&world->loop, world->path, &OPS, f);
    assert_false(feed_client_alive(f->feed));
}

static void end(struct fixture *f)
{
    feed_client_stop(f->feed);
    feed_client_stop(NULL);
    rpc_server_close(f->daemon);
}

static void start_alive(struct fixture *f, struct world *world)
{
    start(f, world);
    serve(f);
    WAIT(world, f->stream);
    send_message(f, 7);
    WAIT(world, f->reports == 1);
}

static void watches_and_reports(void **state)
{
    struct fixture f;

    start(&f, *state);
    feed_client_report(f.feed); /* to nobody */
    serve(&f);
    WAIT(f.world, f.stream);
    world_settle(f.world);
    assert_int_equal(f.reports, 0); /* not before the first message */
    send_message(&f, 7);
    WAIT(f.world, f.reports == 1);
    assert_int_equal(f.firsts, 1);
    assert_int_equal(f.mask_ms, 7);
    send_message(&f, 8);
    WAIT(f.world, f.watched == 2);
    assert_int_equal(f.firsts, 1);
    end(&f);
}

/* As when there is no memory for a list: all of it comes again, and not at once. */
static void what_could_not_be_taken_is_asked_for_again(void **state)
{
    struct fixture f;
    uint64_t began_ms;

    start_alive(&f, *state);
    f.refuse = true;
    began_ms = uv_now(&f.world->loop);
    send_message(&f, 8);
    WAIT(f.world, f.lost == 1);
    assert_false(feed_client_alive(f.feed));
    f.refuse = false;
    WAIT(f.world, f.watches == 2 && f.stream);
    assert_true(uv_now(&f.world->loop) - began_ms >= FEED_AGAIN_MS_MAX - 1);
    assert_int_equal(f.firsts, 1);
    send_message(&f, 9);
    WAIT(f.world, f.firsts == 2);
    assert_int_equal(f.mask_ms, 9);
    assert_int_equal(f.lost, 1);
    end(&f);
}

static void starts_before_the_daemon(void **state)
{
    struct fixture f;

    start(&f, *state);
    for (int i = 0; i < 5; i++)
        wait_turn(f.world);
    serve(&f);
    WAIT(f.world, f.stream);
    assert_int_equal(f.lost, 0); /* there was nothing to lose */
    end(&f);
}

static void watches_again_when_it_is_lost(void **state)
{
    struct fixture f;

    start_alive(&f, *state);
    for (unsigned round = 1; round <= 3; round++) {
        die(&f);
        WAIT(f.world, f.lost == round);
        serve(&f);
        WAIT(f.world, f.stream);
        assert_false(feed_client_alive(f.feed));
        send_message(&f, round);
        WAIT(f.world, f.firsts == round + 1 && f.reports == round + 1);
    }
    end(&f);
}

static void watches_again_when_the_stream_ends(void **state)
{
    struct fixture f;

    start_alive(&f, *state);
    rpc_incoming_finish(f.stream, RPC_OK, NULL);
    f.stream = NULL;
    WAIT(f.world, f.lost == 1);
    WAIT(f.world, f.stream);
    assert_int_equal(f.watches, 2);
    end(&f);
}

static void a_refused_watch_is_tried_again(void **state)
{
    struct fixture f;

    start(&f, *state);
    f.watch_code = RPC_UNAVAILABLE;
    serve(&f);
    WAIT(f.world, f.watches == 3);
    f.watch_code = 0;
    WAIT(f.world, f.stream);
    assert_int_equal(f.lost, 0);
    end(&f);
}

/* It waits long for a daemon of another version, but not for that one's end. */
static void a_daemon_without_the_feed_may_be_replaced(void **state)
{
    struct fixture f;
    uint64_t began_ms;

    start(&f, *state);
    f.watch_code = RPC_UNIMPLEMENTED;
    serve(&f);
    WAIT(f.world, f.watches == 1);
    world_settle(f.world);
    assert_int_equal(f.watches, 1);
    began_ms = uv_now(&f.world->loop);
    die(&f);
    f.watch_code = 0;
    serve(&f);
    WAIT(f.world, f.stream);
    assert_true(uv_now(&f.world->loop) - began_ms < FEED_UNKNOWN_AGAIN_MS);
    end(&f);
}

static void reports_are_sent_one_at_a_time(void **state)
{
    struct fixture f;

    start_alive(&f, *state);
    f.hold = true;
    feed_client_report(f.feed);
    feed_client_report(f.feed);
    WAIT(f.world, f.reporting);
    for (int i = 0; i < 10; i++)
        feed_client_report(f.feed);
    world_settle(f.world);
    assert_int_equal(f.reports, 2);
    f.hold = false;
    answer_report(&f, f.reporting);
    f.reporting = NULL;
    WAIT(f.world, f.reports == 3);
    world_settle(f.world);
    assert_int_equal(f.reports, 3);  /* all ten in one */
    assert_int_equal(f.last_pid, 3); /* and the newest state */
    assert_int_equal(f.asked, 3);
    end(&f);
}

static void a_failed_report_is_sent_again(void **state)
{
    struct fixture f;

    start_alive(&f, *state);
    f.report_code = RPC_INTERNAL;
    feed_client_report(f.feed);
    WAIT(f.world, f.reports == 2);
    f.report_code = RPC_OK;
    WAIT(f.world, f.reports == 3);
    end(&f);
}

static void a_report_under_way_when_the_daemon_dies(void **state)
{
    struct fixture f;

    start_alive(&f, *state);
    f.hold = true;
    feed_client_report(f.feed);
    WAIT(f.world, f.reporting);
    die(&f);
    WAIT(f.world, f.lost == 1);
    f.hold = false;
    serve(&f);
    WAIT(f.world, f.stream);
    world_settle(f.world);
    assert_int_equal(f.reports, 2);
    send_message(&f, 1);
    WAIT(f.world, f.reports == 3);
    end(&f);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct fixture *f = user;

    (void)call;
    f->preferred = true;
    f->prefer_code = status->code;
}

static struct rpc_call *prefer(struct fixture *f, const Bridge__V1__PreferRequest *request,
                               const struct rpc_call_ops *ops)
{
    return feed_client_call(f->feed, BRIDGE_PREFER, &request->base,
                            &bridge__v1__prefer_response__descriptor, false, 1000, ops, f);
}

static void asks_for_a_preference(void **state)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    Bridge__V1__PreferRequest request = BRIDGE__V1__PREFER_REQUEST__INIT;
    struct fixture f;

    start(&f, *state);
    assert_non_null(prefer(&f, &request, &ops));
    WAIT(f.world, f.preferred);
    assert_int_equal(f.prefer_code, RPC_UNAVAILABLE);
    WAIT(f.world, !prefer(&f, &request, &ops)); /* nobody is called between two dials */
    end(&f);
    start_alive(&f, *state);
    assert_non_null(prefer(&f, &request, &ops));
    WAIT(f.world, f.preferred);
    assert_int_equal(f.prefer_code, RPC_OK);
    assert_int_equal(f.prefers, 1);
    end(&f);
}

/* As by a bridge that goes on with a call of the kubelet's, and has just called the daemon. */
static void a_preference_waits_for_a_daemon_that_starts(void **state)
{
    static const struct rpc_call_ops ops = {on_message, on_done};
    Bridge__V1__PreferRequest request = BRIDGE__V1__PREFER_REQUEST__INIT;
    struct fixture f;

    memset(&f, 0, sizeof f);
    f.world = *state;
    serve(&f);
    f.feed = feed_client_start(&f.world->loop, f.world->path, &OPS, &f);
    assert_non_null(prefer(&f, &request, &ops));
    WAIT(f.world, f.preferred);
    assert_int_equal(f.prefer_code, RPC_OK);
    assert_int_equal(f.firsts, 0); /* nothing is watched yet */
    end(&f);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(watches_and_reports),
        WORLD_TEST(what_could_not_be_taken_is_asked_for_again),
        WORLD_TEST(starts_before_the_daemon),
        WORLD_TEST(watches_again_when_it_is_lost),
        WORLD_TEST(watches_again_when_the_stream_ends),
        WORLD_TEST(a_refused_watch_is_tried_again),
        WORLD_TEST(a_daemon_without_the_feed_may_be_replaced),
        WORLD_TEST(reports_are_sent_one_at_a_time),
        WORLD_TEST(a_failed_report_is_sent_again),
        WORLD_TEST(a_report_under_way_when_the_daemon_dies),
        WORLD_TEST(asks_for_a_preference),
        WORLD_TEST(a_preference_waits_for_a_daemon_that_starts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
