/* shim/kubelet/feed.c: on a real manager, whose resources are built-in devices and a plugin's. */
#include "tests/unit/test_plugin_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/kubelet/feed.h"
#include "tests/unit/kubelet_files.h"

#define GPU "v.com/gpu"
#define NULL_DEVICE "v.com/null"
#define KUBELET 77

struct fixture {
    struct world *world;
    struct config config;
    struct config_device device;
    char state_dir[64], plugin_dir[64], kubelet_dir[64], socket[64];
    struct manager *manager;
    struct feed *feed;
    struct plugin plugin; /* does not serve yet */
    unsigned changed;
    bool stopped;
    struct rpc_channel *channel;
};

/* A call on the feed, and what came of it. */
struct question {
    struct rpc_call *call;
    unsigned messages;
    unsigned resources; /* of the last message of Watch */
    char name[64];      /* the first of them, and of it the first device */
    char id[64];
    uint64_t version;
    bool held;
    bool healthy;
    uint64_t first_ms; /* when the first message came */
    unsigned ids;      /* of Prefer */
    bool over;
    int code;
    char words[128];
};

static void on_changed(void *user)
{
    struct fixture *f = user;

    f->changed++;
}

static const struct feed_ops OPS = {.changed = on_changed};

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    (void)user;
    (void)create;
    (void)verdict;
}

static void on_preferred(void *user, uint64_t number, const char *const *ids, size_t ids_len)
{
    struct fixture *f = user;

    if (f->feed)
        feed_preferred(f->feed, number, ids, ids_len);
}

static void on_kicked(void *user)
{
    struct fixture *f = user;

    if (f->feed)
        feed_look(f->feed);
}

static void on_ready(void *user)
{
    (void)user;
}

static const struct manager_ops MANAGER_OPS = {
    .verdict = on_verdict, .preferred = on_preferred, .ready = on_ready, .kicked = on_kicked};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->world->dir);
    snprintf(f->plugin_dir, sizeof f->plugin_dir, "%s/plugins", f->world->dir);
    snprintf(f->kubelet_dir, sizeof f->kubelet_dir, "%s/kubelet", f->world->dir);
    snprintf(f->socket, sizeof f->socket, "%s/run/feed.sock", f->world->dir);
    f->device = (struct config_device){.resource = (char *)NULL_DEVICE,
                                       .path = (char *)"/dev/null",
                                       .permissions = (char *)"rw",
                                       .count = 1};
    f->config = (struct config){
        .runtime_endpoint = f->world->path,
        .state_dir = f->state_dir,
        .plugin_dir = f->plugin_dir,
        .grace_ms = 60000,
        .hold_ms = 20,
        .allocate_timeout_ms = 5000,
        .prestart_timeout_ms = 5000,
        .devices = &f->device,
        .devices_len = 1,
        .bridge = {.enabled = true,
                   .socket = f->socket,
                   .kubelet_plugin_dir = f->kubelet_dir,
                   .mask_ms = 5000,
                   .preferred_timeout_ms = 10000},
    };
    *state = f;
    return 0;
}

static void start_manager(struct fixture *f)
{
    f->manager = manager_start(&f->world->loop, &f->config, &MANAGER_OPS, f);
    WAIT(f->world, manager_ready(f->manager));
}

static void start_feed(struct fixture *f)
{
    f->feed = feed_start(&f->world->loop, &f->config, f->manager, &OPS, f);
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void stop_feed(struct fixture *f)
{
    struct feed *feed = f->feed;

    f->feed = NULL;
    f->stopped = false;
    feed_stop(feed, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

static void stop_daemon(struct fixture *f)
{
    rpc_channel_close(f->channel);
    f->channel = NULL;
    if (f->feed)
        stop_feed(f);
    f->stopped = false;
    manager_stop(f->manager, on_stopped, f);
    f->manager = NULL;
    WAIT(f->world, f->stopped);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char dir[64];
    int err;

    if (f->manager)
        stop_daemon(f);
    plugin_stop(&f->plugin);
    remove_dir(f->state_dir);
    remove_dir(f->plugin_dir);
    remove_dir(f->kubelet_dir);
    snprintf(dir, sizeof dir, "%s/run", f->world->dir);
    remove_dir(dir);
    err = world_free(f->world);
    free(f);
    return err;
}

static void connect_feed(struct fixture *f)
{
    static const struct rpc_channel_ops NONE = {0};

    assert_int_equal(rpc_channel_open(&f->world->loop, f->socket, &NONE, NULL, &f->channel), 0);
}

static void start(struct fixture *f)
{
    start_manager(f);
    start_feed(f);
    connect_feed(f);
}

/* ---- calls ---- */

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct question *q = user;

    (void)call;
    q->call = NULL;
    q->over = true;
    q->code = status->code;
    snprintf(q->words, sizeof q->words, "%s", status->message);
}

static void on_shown(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__WatchResponse *response = (const Bridge__V1__WatchResponse *)message;
    struct question *q = user;

    (void)call;
    if (q->messages++ == 0)
        q->first_ms = manager_now_ms();
    q->resources = (unsigned)response->n_resources;
    if (q->resources == 0)
        return;
    snprintf(q->name, sizeof q->name, "%s", response->resources[0]->name);
    q->version = response->resources[0]->version;
    if (response->resources[0]->list && response->resources[0]->list->n_devices > 0) {
        snprintf(q->id, sizeof q->id, "%s", response->resources[0]->list->devices[0]->id);
        q->held = response->resources[0]->list->devices[0]->held;
        q->healthy = response->resources[0]->list->devices[0]->healthy;
    }
}

static const struct rpc_call_ops WATCH_OPS = {.message = on_shown, .done = on_done};

static void watch(struct fixture *f, struct question *q)
{
    Bridge__V1__WatchRequest request = BRIDGE__V1__WATCH_REQUEST__INIT;

    *q = (struct question){0};
    request.bridge_version = (char *)"9";
    q->call = rpc_channel_call(f->channel, BRIDGE_WATCH, &request.base,
                               &bridge__v1__watch_response__descriptor, 1, 0, &WATCH_OPS, q);
    assert_non_null(q->call);
}

/* And waits for the first message. */
static void watch_first(struct fixture *f, struct question *q)
{
    watch(f, q);
    WAIT(f->world, q->messages > 0);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct question *q = user;

    (void)call;
    q->messages++;
    if (message->descriptor == &bridge__v1__prefer_response__descriptor)
        q->ids = (unsigned)((const Bridge__V1__PreferResponse *)message)->n_ids;
}

static const struct rpc_call_ops UNARY_OPS = {.message = on_message, .done = on_done};

static void report(struct fixture *f, struct question *q, Bridge__V1__ReportRequest *request)
{
    *q = (struct question){0};
    q->call = rpc_channel_call(f->channel, BRIDGE_REPORT, &request->base,
                               &bridge__v1__report_response__descriptor, 0, 0, &UNARY_OPS, q);
    assert_non_null(q->call);
    WAIT(f->world, q->over);
}

/* All of one resource taken by KUBELET. */
static void report_one(struct fixture *f, struct question *q, const char *name, uint64_t version)
{
    Bridge__V1__ReportRequest request = BRIDGE__V1__REPORT_REQUEST__INIT;
    Bridge__V1__ResourceReport one = BRIDGE__V1__RESOURCE_REPORT__INIT, *ones[] = {&one};

    one.name = (char *)name;
    one.registered = one.stored = true;
    one.version = version;
    request.kubelet_pid = KUBELET;
    request.resources = ones;
    request.n_resources = 1;
    report(f, q, &request);
}

static void ask(struct fixture *f, struct question *q, const char *resource, int32_t size,
                uint64_t deadline_ms)
{
    char *ids[] = {(char *)"g0", (char *)"g1", (char *)"g2"};
    Bridge__V1__PreferRequest request = BRIDGE__V1__PREFER_REQUEST__INIT;

    *q = (struct question){0};
    request.resource = (char *)resource;
    request.available = ids;
    request.n_available = 3;
    request.size = size;
    q->call =
        rpc_channel_call(f->channel, BRIDGE_PREFER, &request.base,
                         &bridge__v1__prefer_response__descriptor, 0, deadline_ms, &UNARY_OPS, q);
    assert_non_null(q->call);
}

static int ask_answered(struct fixture *f, struct question *q, const char *resource, int32_t size,
                        uint64_t deadline_ms)
{
    ask(f, q, resource, size, deadline_ms);
    WAIT(f->world, q->over);
    return q->code;
}

/* ---- what there is ---- */

static void make_kubelet_file(struct fixture *f, const char *text)
{
    assert_int_equal(mkdir(f->kubelet_dir, 0755), 0);
    assert_int_equal(kubelet_file_write(f->kubelet_dir, text), 0);
}

static void start_plugin(struct fixture *f, const char *ids)
{
    plugin_come_listing(&f->plugin, f->world, f->plugin_dir, "gpu.sock", GPU, ids);
}

/* A plugin is the one thing that is shown, and has listed that. */
static void start_with_list(struct fixture *f, const char *ids)
{
    struct question q;

    f->config.devices_len = 0;
    start(f);
    start_plugin(f, ids);
    watch(f, &q);
    WAIT(f->world, q.resources == 1);
    rpc_call_cancel(q.call);
}

static bool says(struct fixture *f, const char *words)
{
    struct taken taken;

    feed_taken(f->feed, KUBELET, &taken);
    return strcmp(taken.words, words) == 0;
}

/* ---- what is shown ---- */

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

/* Before anything is shown the kubelet's file was read. */
static void what_pods_hold_is_shown_from_the_first_message_on(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->config.devices_len = 0;
    start_manager(f);
    start_plugin(f, "!gone");
    world_settle(f->world);
    make_kubelet_file(f, KUBELET_FILE_HELD);
    start_feed(f);
    connect_feed(f);
    watch(f, &q);
    WAIT(f->world, q.messages == 1);
    assert_string_equal(q.id, "gone");
    assert_true(q.held);
    assert_int_equal(kubelet_file_write(f->kubelet_dir, KUBELET_FILE_FREE), 0);
    WAIT(f->world, !q.held);
}

/* Says so on stderr. */
static void a_file_that_cannot_be_read_frees_nothing(void **state)
{
    struct question q;
    struct fixture *f = *state;
    char path[96];

    start_with_list(f, "!gone");
    watch(f, &q);
    make_kubelet_file(f, KUBELET_FILE_HELD);
    WAIT(f->world, q.held);
    snprintf(path, sizeof path, "%s/" KUBELET_CHECKPOINT_FILE, f->kubelet_dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    f->changed = 0;
    WAIT(f->world, f->changed > 0);
    world_settle(f->world);
    assert_true(q.held);
    assert_int_equal(rmdir(path), 0);
    WAIT(f->world, !q.held);
}

/* Held by the file before the shim has heard of the resource. */
static void what_pods_hold_of_a_later_resource(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->config.devices_len = 0;
    make_kubelet_file(f, KUBELET_FILE_HELD);
    start(f);
    watch(f, &q);
    WAIT(f->world, q.messages == 1);
    assert_int_equal(q.resources, 0);
    start_plugin(f, "!gone");
    WAIT(f->world, q.held);
    assert_string_equal(q.id, "gone");
}

/* ---- after a restart of the daemon ---- */

#define ATTEMPTS 20

static uint64_t restart(struct fixture *f)
{
    uint64_t start_ms;

    stop_daemon(f);
    start_manager(f);
    start_ms = manager_now_ms();
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
                    manager_now_ms() >= start_ms + FEED_SETTLE_MS);
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

static void there_is_a_most_of_watches(void **state)
{
    struct question q[FEED_STREAMS_MAX + 1];
    struct fixture *f = *state;

    start(f);
    for (size_t i = 0; i < FEED_STREAMS_MAX; i++)
        watch(f, &q[i]);
    WAIT(f->world, q[FEED_STREAMS_MAX - 1].messages > 0);
    watch(f, &q[FEED_STREAMS_MAX]);
    WAIT(f->world, q[FEED_STREAMS_MAX].over);
    assert_int_equal(q[FEED_STREAMS_MAX].code, RPC_RESOURCE_EXHAUSTED);
    rpc_call_cancel(q[0].call);
    world_settle(f->world);
    watch_first(f, &q[0]);
}

/* ---- what is reported ---- */

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
    devicemgr_builtin(manager_core(f->manager), manager_now_ms(), NULL_DEVICE, &device, 1);
    manager_kick(f->manager);
    assert_true(says(f, "what it is shown is just changing"));
    f->changed = 0;
    WAIT(f->world, f->changed > 0);
    assert_true(says(f, "no bridge has reported"));
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
    Bridge__V1__ResourceReport *ones[FEED_REPORTS_MAX + 1];
    ProtobufCMessageUnknownField later = {.tag = 100,
                                          .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                          .len = 4 + FEED_REPORT_BYTES_MAX};
    char name[FEED_NAME_BYTES_MAX + 2];
    struct question q, r;
    struct fixture *f = *state;

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i <= FEED_REPORTS_MAX; i++)
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
    name[FEED_NAME_BYTES_MAX] = '\0';
    request.n_resources = FEED_REPORTS_MAX + 1;
    report(f, &r, &request);
    assert_int_equal(r.code, RPC_INVALID_ARGUMENT);
    request.n_resources = FEED_REPORTS_MAX;
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

/* ---- what is asked ---- */

static void a_preference_is_passed_on(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    assert_int_equal(ask_answered(f, &q, GPU, 1, 0), RPC_OK);
    assert_int_equal(q.ids, 1);
    assert_int_equal(f->plugin.prefers_seen, 1);
    assert_int_equal(ask_answered(f, &q, "v.com/unknown", 1, 0), RPC_OK);
    assert_int_equal(q.ids, 0);
    assert_int_equal(ask_answered(f, &q, GPU, -1, 0), RPC_INVALID_ARGUMENT);
}

static void questions_given_up_are_over(void **state)
{
    struct question q;
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    f->plugin.hold = true;
    ask(f, &q, GPU, 1, 0);
    WAIT(f->world, f->plugin.held);
    rpc_call_cancel(q.call);
    WAIT(f->world, f->plugin.cancelled == 1);
    assert_int_equal(ask_answered(f, &q, GPU, 1, 30), RPC_DEADLINE_EXCEEDED); /* its deadline */
    WAIT(f->world, f->plugin.cancelled == 2);
}

static void there_is_a_most_of_questions(void **state)
{
    struct question q[FEED_PREFERS_MAX + 1];
    struct fixture *f = *state;

    f->plugin.prefers = true;
    start_with_list(f, "g0,g1,g2");
    f->plugin.hold = true;
    for (size_t i = 0; i <= FEED_PREFERS_MAX; i++)
        ask(f, &q[i], GPU, 1, 0);
    WAIT(f->world, q[FEED_PREFERS_MAX].over);
    assert_int_equal(q[FEED_PREFERS_MAX].code, RPC_RESOURCE_EXHAUSTED);
    assert_false(q[0].over);
    stop_feed(f); /* ends what is open */
    WAIT(f->world, q[0].over);
    assert_int_equal(q[0].code, RPC_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_roots),
        TEST(a_socket_that_is_removed_comes_back),
        TEST(a_socket_that_cannot_be_is_waited_for),
        TEST(everything_comes_first),
        TEST(what_pods_hold_is_shown_from_the_first_message_on),
        TEST(a_file_that_cannot_be_read_frees_nothing),
        TEST(what_pods_hold_of_a_later_resource),
        TEST(an_unhealthy_device_does_not_flap),
        TEST(a_plugin_that_does_not_list_is_not_waited_for_long),
        TEST(a_plugin_that_is_gone_is_not_waited_for),
        TEST(a_plugin_that_goes_is_not_waited_for),
        TEST(there_is_a_most_of_watches),
        TEST(what_is_reported_counts_while_its_bridge_is_here),
        TEST(what_is_shown_is_the_cores_newest),
        TEST(a_bridge_that_comes_again_keeps_its_report),
        TEST(reports_that_cannot_be),
        TEST(a_preference_is_passed_on),
        TEST(questions_given_up_are_over),
        TEST(there_is_a_most_of_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
