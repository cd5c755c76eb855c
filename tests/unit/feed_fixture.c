#include "tests/unit/feed_fixture.h"

#include "cri-proto/methods.h"

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

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct fixture *f = user;

    if (f->feed)
        feed_claim_done(f->feed, number, done);
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

static const struct host_ops HOST_OPS = {.verdict = on_verdict,
                                         .preferred = on_preferred,
                                         .claim_done = on_claim_done,
                                         .ready = on_ready,
                                         .kicked = on_kicked};

int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->world->dir);
    snprintf(f->plugin_dir, sizeof f->plugin_dir, "%s/plugins", f->world->dir);
    snprintf(f->kubelet_dir, sizeof f->kubelet_dir, "%s/kubelet", f->world->dir);
    snprintf(f->socket, sizeof f->socket, "%s/run/feed.sock", f->world->dir);
    snprintf(f->listen, sizeof f->listen, "%s/cri.sock", f->state_dir);
    f->device = (struct config_device){.resource = (char *)NULL_DEVICE,
                                       .path = (char *)"/dev/null",
                                       .permissions = (char *)"rw",
                                       .count = 1};
    f->config = (struct config){
        .listen = f->listen,
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

void start_manager(struct fixture *f)
{
    f->host = host_start(&f->world->loop, &f->config, NULL, &HOST_OPS, f);
    WAIT(f->world, host_ready(f->host));
}

void start_feed(struct fixture *f)
{
    f->feed = feed_start(&f->world->loop, &f->config, f->host, NULL, &OPS, f);
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

void stop_feed(struct fixture *f)
{
    struct feed *feed = f->feed;

    f->feed = NULL;
    f->stopped = false;
    feed_stop(feed, on_stopped, f);
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

void stop_daemon(struct fixture *f)
{
    rpc_channel_close(f->channel);
    f->channel = NULL;
    if (f->feed)
        stop_feed(f);
    f->stopped = false;
    host_stop(f->host, on_stopped, f);
    f->host = NULL;
    WAIT(f->world, f->stopped);
}

int teardown(void **state)
{
    struct fixture *f = *state;
    char dir[64];
    int err;

    if (f->host)
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

void connect_feed(struct fixture *f)
{
    static const struct rpc_channel_ops NONE = {0};

    assert_int_equal(rpc_channel_open(&f->world->loop, f->socket, &NONE, NULL, &f->channel), 0);
}

void start(struct fixture *f)
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
        q->first_ms = boot_now_ms();
    q->resources = (unsigned)response->n_resources;
    if (q->resources == 0)
        return;
    snprintf(q->name, sizeof q->name, "%s", response->resources[0]->name);
    q->version = response->resources[0]->version;
    if (response->resources[0]->list && response->resources[0]->list->n_devices > 0) {
        const Bridge__V1__Device *device = response->resources[0]->list->devices[0];

        snprintf(q->id, sizeof q->id, "%s", device->id);
        q->held = device->held;
        q->healthy = device->healthy;
        q->nodes = (unsigned)device->n_numa_nodes;
        q->node = q->nodes > 0 ? device->numa_nodes[0] : -1;
    }
}

static const struct rpc_call_ops WATCH_OPS = {.message = on_shown, .done = on_done};

void watch(struct fixture *f, struct question *q)
{
    Bridge__V1__WatchRequest request = BRIDGE__V1__WATCH_REQUEST__INIT;

    *q = (struct question){0};
    request.bridge_version = (char *)"9";
    q->call = rpc_channel_call(f->channel, BRIDGE_WATCH, &request.base,
                               &bridge__v1__watch_response__descriptor, true, 0, &WATCH_OPS, q);
    assert_non_null(q->call);
}

void watch_first(struct fixture *f, struct question *q)
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

void report(struct fixture *f, struct question *q, Bridge__V1__ReportRequest *request)
{
    *q = (struct question){0};
    q->call = rpc_channel_call(f->channel, BRIDGE_REPORT, &request->base,
                               &bridge__v1__report_response__descriptor, false, 0, &UNARY_OPS, q);
    assert_non_null(q->call);
    WAIT(f->world, q->over);
}

void report_one(struct fixture *f, struct question *q, const char *name, uint64_t version)
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

void ask(struct fixture *f, struct question *q, const char *resource, int32_t size,
         uint64_t deadline_ms)
{
    char *ids[] = {(char *)"g0", (char *)"g1", (char *)"g2"};
    Bridge__V1__PreferRequest request = BRIDGE__V1__PREFER_REQUEST__INIT;

    *q = (struct question){0};
    request.resource = (char *)resource;
    request.available = ids;
    request.n_available = 3;
    request.size = size;
    q->call = rpc_channel_call(f->channel, BRIDGE_PREFER, &request.base,
                               &bridge__v1__prefer_response__descriptor, false, deadline_ms,
                               &UNARY_OPS, q);
    assert_non_null(q->call);
}

int ask_answered(struct fixture *f, struct question *q, const char *resource, int32_t size,
                 uint64_t deadline_ms)
{
    ask(f, q, resource, size, deadline_ms);
    WAIT(f->world, q->over);
    return q->code;
}

/* ---- what there is ---- */

void make_kubelet_file(struct fixture *f, const char *text)
{
    assert_int_equal(mkdir(f->kubelet_dir, 0755), 0);
    assert_int_equal(kubelet_file_write(f->kubelet_dir, text), 0);
}

void start_plugin(struct fixture *f, const char *ids)
{
    plugin_come_listing(&f->plugin, f->world, f->plugin_dir, "gpu.sock", GPU, ids);
}

void start_with_list(struct fixture *f, const char *ids)
{
    struct question q;

    f->config.devices_len = 0;
    start(f);
    start_plugin(f, ids);
    watch(f, &q);
    WAIT(f->world, q.resources == 1);
    rpc_call_cancel(q.call);
}

bool says(struct fixture *f, const char *words)
{
    struct taken taken;

    feed_taken(f->feed, KUBELET, &taken);
    return strcmp(taken.words, words) == 0;
}
