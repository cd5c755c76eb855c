/* shim/kubelet/feed.c: what it shows, and when, on a real core. */
#include "cri-proto/methods.h"
#include "devicemgr/things/limits.h"
#include "tests/unit/feed_fixture.h"

static void the_socket_is_roots(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    start(f);
    assert_int_equal(stat(f->socket, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    stop_daemon(f);
    assert_int_equal(access(f->socket, F_OK), -1);
}

/* Says so. */
static void a_socket_that_is_removed_comes_back(void **state)
{
    struct question q;
    struct fixture *f = *state;

    start(f);
    assert_int_equal(unlink(f->socket), 0);
    WAIT(f->world, access(f->socket, F_OK) == 0);
    rpc_channel_close(f->channel);
    connect_feed(f);
    watch_first(f, &q);
}

/* Says so. */
static void a_socket_that_cannot_be_is_waited_for(void **state)
{
    struct fixture *f = *state;
    char dir[128], inner[128];

    snprintf(dir, sizeof dir, "%s/run", f->world->dir);
    snprintf(inner, sizeof inner, "%s/x", f->socket);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mkdir(f->socket, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    start(f);
    assert_int_equal(rmdir(inner), 0);
    WAIT(f->world, access(f->socket, F_OK) == 0 && rmdir(f->socket) < 0);
}

static void everything_comes_first(void **state)
{
    struct question q, late;
    struct fixture *f = *state;

    start(f);
    watch(f, &q);
    WAIT(f->world, q.messages > 0 && q.resources == 1);
    assert_string_equal(q.name, NULL_DEVICE);
    assert_string_equal(q.id, "null");
    assert_false(q.held);
    watch(f, &late);
    WAIT(f->world, late.messages == 1);
    assert_string_equal(late.id, "null");
    assert_int_equal(late.version, q.version);
    world_settle(f->world);
    assert_int_equal(late.messages, 1);
}

/* ---- after a restart of the daemon ---- */

#define ATTEMPTS 20

static uint64_t restart(struct fixture *f)
{
    uint64_t start_ms;

    stop_daemon(f);
    start_manager(f);
    start_ms = boot_now_ms();
    start_feed(f);
    connect_feed(f);
    return start_ms;
}

/* In the three tests a machine so slow that the time was over first proves nothing: once more. */
static void an_unhealthy_device_does_not_flap(void **state)
{
    struct question q;
    struct fixture *f = *state;
    uint64_t start_ms;
    int attempt = 0;

    start_with_list(f, "!g0");
    do {
        unsigned streams = f->plugin.streams;

        assert_true(attempt++ < ATTEMPTS);
        start_ms = restart(f);
        watch(f, &q);
        WAIT(f->world, f->plugin.streams > streams && f->plugin.stream);
        world_settle(f->world);
        assert_true(q.messages == 0 || q.first_ms >= start_ms + FEED_SETTLE_MS);
        plugin_list(&f->plugin, "!g0");
        WAIT(f->world, q.messages > 0);
    } while (q.first_ms >= start_ms + FEED_SETTLE_MS);
    assert_string_equal(q.id, "g0");
    assert_false(q.healthy);
}

static void a_plugin_that_does_not_list_is_not_waited_for_long(void **state)
{
    struct question q, late;
    struct taken taken;
    struct fixture *f = *state;
    uint64_t start_ms;

    start_with_list(f, "!g0");
    start_ms = restart(f);
    watch(f, &q);
    do {
        uv_run(&f->world->loop, UV_RUN_ONCE);
        feed_taken(f->feed, KUBELET, &taken);
        assert_false(taken.all);
        assert_true(q.messages > 0 || strcmp(taken.words, "no bridge has reported") != 0 ||
                    boot_now_ms() >= start_ms + FEED_SETTLE_MS);
    } while (q.messages == 0);
    assert_true(q.first_ms >= start_ms + FEED_SETTLE_MS);
    assert_string_equal(q.id, "g0");
    assert_true(q.healthy);
    watch_first(f, &late); /* that was the only wait */
}

static void a_plugin_that_is_gone_is_not_waited_for(void **state)
{
    struct question q;
    struct fixture *f = *state;
    uint64_t start_ms;
    int attempt = 0;

    start_with_list(f, "!g0");
    plugin_stop(&f->plugin);
    do {
        assert_true(attempt++ < ATTEMPTS);
        start_ms = restart(f);
        watch_first(f, &q);
        assert_string_equal(q.id, "g0");
    } while (q.first_ms >= start_ms + FEED_SETTLE_MS);
}

/* While its list is expected. */
static void a_plugin_that_goes_is_not_waited_for(void **state)
{
    struct question q;
    struct fixture *f = *state;
    uint64_t start_ms;
    int attempt = 0;

    start_with_list(f, "!g0");
    do {
        assert_true(attempt++ < ATTEMPTS);
        if (!f->plugin.server)
            plugin_serve_in(&f->plugin, f->world, f->plugin_dir, "gpu.sock");
        start_ms = restart(f);
        watch(f, &q);
        WAIT(f->world,
             says(f, "a plugin that was there before is about to list") || q.messages > 0);
        WAIT(f->world, f->plugin.stream || q.messages > 0);
        plugin_stop(&f->plugin);
        WAIT(f->world, q.messages > 0);
    } while (q.first_ms >= start_ms + FEED_SETTLE_MS);
    assert_string_equal(q.id, "g0");
}

/* Nobody is let go on what was shown a moment ago. */
static void what_is_shown_is_the_cores_newest(void **state)
{
    const struct devicemgr_builtin_device device = {.id = "new",
                                                    .healthy = true,
                                                    .host_path = "/dev/null",
                                                    .container_path = "/dev/null",
                                                    .permissions = "rw"};
    struct fixture *f = *state;

    f->config.devices_len = 0;
    start(f);
    WAIT(f->world, says(f, "there is nothing to show it"));
    devicemgr_builtin(host_core(f->host), boot_now_ms(), NULL_DEVICE, &device, 1);
    host_kick(f->host);
    assert_true(says(f, "what it is shown is just changing"));
    f->changed = 0;
    WAIT(f->world, f->changed > 0);
    assert_true(says(f, "no bridge has reported"));
}

/* What its checkpoint names the kubelet publishes by itself; as long as nobody has read that, it
 * may be anything. */
static void the_kubelet_has_what_its_checkpoint_names(void **state)
{
    struct fixture *f = *state;

    start(f);
    assert_true(feed_kubelet_has(f->feed, NULL_DEVICE));
    WAIT(f->world, !feed_kubelet_has(f->feed, NULL_DEVICE));
    assert_false(feed_kubelet_has(f->feed, GPU));
    make_kubelet_file(f, KUBELET_FILE_FREE);
    WAIT(f->world, feed_kubelet_has(f->feed, GPU));
    assert_false(feed_kubelet_has(f->feed, NULL_DEVICE));
}

/* ---- claims ---- */

struct claims_question {
    bool over;
    int code; /* of the call */
    size_t answers;
    char refusal[256]; /* of the first claim */
};

static void on_answers(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__ClaimsResponse *response = (const Bridge__V1__ClaimsResponse *)message;
    struct claims_question *q = user;

    (void)call;
    q->answers = response->n_answers;
    if (q->answers > 0)
        snprintf(q->refusal, sizeof q->refusal, "%s", response->answers[0]->message);
}

static void on_answered(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct claims_question *q = user;

    (void)call;
    q->over = true;
    q->code = status->code;
}

#define CLAIMS_OF_A_CALL 256 /* a bridge's most */

/* Of a driver that is away. */
static void prepare_many(struct fixture *f, struct claims_question *q, unsigned from)
{
    static const struct rpc_call_ops OPS = {.message = on_answers, .done = on_answered};
    static Bridge__V1__Claim claims[CLAIMS_OF_A_CALL], *pointers[CLAIMS_OF_A_CALL];
    static char uids[CLAIMS_OF_A_CALL][16];
    Bridge__V1__ClaimsRequest request = BRIDGE__V1__CLAIMS_REQUEST__INIT;

    *q = (struct claims_question){0};
    for (unsigned i = 0; i < CLAIMS_OF_A_CALL; i++) {
        snprintf(uids[i], sizeof uids[i], "uid-%u", from + i);
        bridge__v1__claim__init(&claims[i]);
        claims[i].namespace_ = (char *)"default";
        claims[i].name = claims[i].uid = uids[i];
        pointers[i] = &claims[i];
    }
    request.driver = (char *)"d.com";
    request.claims = pointers;
    request.n_claims = CLAIMS_OF_A_CALL;
    assert_non_null(rpc_channel_call(f->channel, BRIDGE_PREPARE_CLAIMS, &request.base,
                                     &bridge__v1__claims_response__descriptor, false, 0, &OPS, q));
}

static const struct claims_question *over_of(const struct claims_question *questions, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (questions[i].over)
            return &questions[i];
    }
    return NULL;
}

/* Who asks why is told of these, too. */
static void claims_beyond_the_core_s_most_are_refused_by_the_core(void **state)
{
    enum { CALLS = CLAIM_REQUESTS_MAX / CLAIMS_OF_A_CALL + 1 };
    struct claims_question questions[CALLS];
    const struct claims_question *beyond;
    struct fixture *f = *state;

    start(f);
    for (unsigned i = 0; i < CALLS; i++)
        prepare_many(f, &questions[i], i * CLAIMS_OF_A_CALL);
    WAIT(f->world, over_of(questions, CALLS)); /* whichever came last */
    beyond = over_of(questions, CALLS);
    assert_int_equal(beyond->code, RPC_OK);
    assert_int_equal(beyond->answers, CLAIMS_OF_A_CALL);
    assert_non_null(strstr(beyond->refusal, "waited for on this node already"));
    stop_daemon(f); /* the others wait until then */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_roots),
        TEST(a_socket_that_is_removed_comes_back),
        TEST(a_socket_that_cannot_be_is_waited_for),
        TEST(everything_comes_first),
        TEST(an_unhealthy_device_does_not_flap),
        TEST(a_plugin_that_does_not_list_is_not_waited_for_long),
        TEST(a_plugin_that_is_gone_is_not_waited_for),
        TEST(a_plugin_that_goes_is_not_waited_for),
        TEST(what_is_shown_is_the_cores_newest),
        TEST(the_kubelet_has_what_its_checkpoint_names),
        TEST(claims_beyond_the_core_s_most_are_refused_by_the_core),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
