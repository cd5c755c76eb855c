/* shim/bridge/endpoint.c: one resource and a kubelet that does each step when the test says so. */
#include "tests/unit/waiting.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/methods.h"
#include "shim/bridge/endpoint.h"
#include "shim/bridge/limits.h"

#define GPU "v.com/gpu"
#define LAYOUT 5

static const uint64_t PREFERRED_TIMEOUT_MS = 100;

struct fixture {
    struct world *world;
    struct endpoint_world endpoint_world;
    struct endpoint *endpoint;
    unsigned changes;
    uint64_t connected_ms;
    size_t sent;          /* on the stream */
    uint64_t sent_ms;     /* the last one */
    uint64_t shortest_ms; /* from one to the next */

    /* the kubelet */
    struct rpc_server *server;
    struct rpc_incoming *registering; /* held */
    unsigned registers;
    uint64_t registered_ms; /* the last time */
    bool hold;
    int code;
    struct rpc_channel *plugin;
    struct rpc_call *stream;
    unsigned lists;
    char list[128]; /* the last one: ids joined by ',', "!" in front of an unhealthy one */
    bool ended;
    int ended_code;
};

/* ---- the kubelet ---- */

static void register_gone(void *user)
{
    struct fixture *f = user;

    f->registering = NULL;
}

static void answer(struct fixture *f, struct rpc_incoming *call)
{
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    if (f->code == RPC_OK)
        assert_int_equal(rpc_incoming_send(call, &empty.base), 0);
    rpc_incoming_finish(call, f->code, "no, thanks");
    f->registering = NULL;
}

static void on_register(struct rpc_incoming *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__RegisterRequest *request = (const V1beta1__RegisterRequest *)message;
    struct fixture *f = user;

    assert_string_equal(request->resource_name, GPU);
    assert_string_equal(request->endpoint, "cri-device-shim/v.com_gpu.sock");
    f->registers++;
    f->registered_ms = uv_now(&f->world->loop);
    if (f->hold) {
        f->registering = call;
        rpc_incoming_on_cancel(call, register_gone, f);
    } else {
        answer(f, call);
    }
}

static const struct rpc_method METHODS[] = {
    {DEVICEPLUGIN_REGISTER, &v1beta1__register_request__descriptor, on_register},
};

static void on_list(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const V1beta1__ListAndWatchResponse *list = (const V1beta1__ListAndWatchResponse *)message;
    struct fixture *f = user;
    size_t at = 0;

    (void)call;
    f->lists++;
    f->list[0] = '\0';
    for (size_t i = 0; i < list->n_devices && at < sizeof f->list; i++)
        at += (size_t)snprintf(f->list + at, sizeof f->list - at, "%s%s%s", i ? "," : "",
                               strcmp(list->devices[i]->health, "Healthy") ? "!" : "",
                               list->devices[i]->id);
}

static void on_ended(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct fixture *f = user;

    (void)call;
    f->stream = NULL;
    f->ended = true;
    f->ended_code = status->code;
}

static const struct rpc_channel_ops CHANNEL_OPS = {0};

static char *socket_path(const struct fixture *f, char out[108])
{
    snprintf(out, 108, "%s/cri-device-shim/v.com_gpu.sock", f->world->dir);
    return out;
}

/* Calls ListAndWatch on f->plugin. */
static void watch(struct fixture *f)
{
    static const struct rpc_call_ops call_ops = {on_list, on_ended};
    V1beta1__Empty empty = V1BETA1__EMPTY__INIT;

    f->ended = false;
    f->lists = 0;
    f->stream =
        rpc_channel_call(f->plugin, DEVICEPLUGIN_LIST_AND_WATCH, &empty.base,
                         &v1beta1__list_and_watch_response__descriptor, true, 0, &call_ops, f);
    assert_non_null(f->stream);
}

/* Dials the resource's socket and calls ListAndWatch. */
static void open_stream(struct fixture *f)
{
    char path[108];

    rpc_channel_close(f->plugin);
    assert_int_equal(
        rpc_channel_open(&f->world->loop, socket_path(f, path), &CHANNEL_OPS, NULL, &f->plugin), 0);
    watch(f);
}

/* The same by another process, which has made the connection. */
static void open_stream_of_another(struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
    pid_t pid;

    socket_path(f, address.sun_path);
    pid = fork();
    if (pid == 0)
        _exit(connect(fd, (struct sockaddr *)&address, sizeof address) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rpc_channel_open_fd(&f->world->loop, fd, &CHANNEL_OPS, NULL, &f->plugin), 0);
    watch(f);
}

static void close_stream(struct fixture *f)
{
    rpc_channel_close(f->plugin);
    f->plugin = NULL;
    f->stream = NULL;
}

static void kubelet_start(struct fixture *f)
{
    assert_int_equal(serve_at(&f->world->loop, f->world->path, METHODS, 1, f, &f->server), 0);
    registration_socket(f->endpoint_world.registration, KUBELET_SOCKET_NEW);
}

/* Its streams end with it; returns when the bridge has seen that. */
static void kubelet_die(struct fixture *f)
{
    rpc_server_close(f->server);
    f->server = NULL;
    f->registering = NULL;
    close_stream(f);
    WAIT(f->world, !registration_connected(f->endpoint_world.registration));
}

/* ---- the bridge ---- */

static void on_connected(void *user)
{
    struct fixture *f = user;

    f->connected_ms = uv_now(&f->world->loop);
    endpoint_kubelet_came(f->endpoint);
}

static void on_lost(void *user)
{
    struct fixture *f = user;

    endpoint_kubelet_went(f->endpoint);
}

/* kubelet_start() tells of each socket file. */
static void on_look(void *user)
{
    (void)user;
}

static const struct registration_ops REGISTRATION_OPS = {on_look, on_connected, on_lost};

static bool on_watched(void *user, const Bridge__V1__WatchResponse *message, bool first)
{
    (void)user;
    (void)message;
    (void)first;
    return true;
}

static void on_feed_lost(void *user)
{
    (void)user;
}

static const Bridge__V1__ReportRequest *on_report(void *user)
{
    (void)user;
    return NULL;
}

static const struct feed_client_ops FEED_OPS = {on_watched, on_feed_lost, on_report};

static void on_changed(void *user)
{
    struct fixture *f = user;
    size_t sent = endpoint_unstored(f->endpoint);
    uint64_t now_ms = uv_now(&f->world->loop);

    f->changes++;
    if (sent > 1 && sent > f->sent && now_ms - f->sent_ms < f->shortest_ms)
        f->shortest_ms = now_ms - f->sent_ms;
    if (sent > f->sent)
        f->sent_ms = now_ms;
    f->sent = sent;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct world *world = world_new();

    f->world = world;
    f->shortest_ms = UINT64_MAX;
    f->endpoint_world = (struct endpoint_world){
        .loop = &world->loop,
        .kubelet_dir = world->dir,
        .registration = registration_new(&world->loop, world->path, &REGISTRATION_OPS, f),
        .feed = feed_client_start(&world->loop, "/nonexistent/feed", &FEED_OPS, f),
        .store = fd_store_new(),
        .preferred_timeout_ms = &PREFERRED_TIMEOUT_MS,
        .changed = on_changed,
        .user = f,
    };
    f->endpoint = endpoint_new(&f->endpoint_world, GPU);
    assert_non_null(f->endpoint);
    *state = f;
    return 0;
}

static void update(struct fixture *f, Bridge__V1__DeviceList *list, uint64_t version, bool masked)
{
    Bridge__V1__Resource message = BRIDGE__V1__RESOURCE__INIT;

    message.name = (char *)GPU;
    message.version = version;
    message.layout = LAYOUT;
    message.list = list;
    assert_true(endpoint_update(f->endpoint, &message, masked) >= 0);
}

/* Healthy devices of these one-letter ids; a capital letter: that one is held. */
static void show(struct fixture *f, const char *ids, uint64_t version, bool masked)
{
    Bridge__V1__Device devices[8], *pointers[8];
    Bridge__V1__DeviceList list = BRIDGE__V1__DEVICE_LIST__INIT;
    char texts[8][2] = {0};

    for (; ids[list.n_devices]; list.n_devices++) {
        size_t i = list.n_devices;

        texts[i][0] = (char)(ids[i] | 0x20);
        bridge__v1__device__init(&devices[i]);
        devices[i].id = texts[i];
        devices[i].healthy = true;
        devices[i].held = ids[i] < 'a';
        pointers[i] = &devices[i];
    }
    list.devices = pointers;
    update(f, &list, version, masked);
}

/* The same one-letter id, which is the list's at that place. */
static void change(struct fixture *f, uint32_t place, bool healthy, bool held, uint64_t version)
{
    Bridge__V1__Resource message = BRIDGE__V1__RESOURCE__INIT;
    Bridge__V1__Change one = BRIDGE__V1__CHANGE__INIT, *changes = &one;

    one.place = place;
    one.healthy = healthy;
    one.held = held;
    message.name = (char *)GPU;
    message.version = version;
    message.layout = LAYOUT;
    message.changes = &changes;
    message.n_changes = 1;
    assert_true(endpoint_update(f->endpoint, &message, false) >= 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char path[64];
    int err;

    endpoint_free(f->endpoint);
    endpoint_free(NULL);
    registration_free(f->endpoint_world.registration);
    feed_client_stop(f->endpoint_world.feed);
    fd_store_free(f->endpoint_world.store);
    rpc_channel_close(f->plugin);
    rpc_server_close(f->server);
    snprintf(path, sizeof path, "%s/cri-device-shim", f->world->dir);
    assert_int_equal(rmdir(path), 0); /* the socket is gone */
    err = world_free(f->world);
    free(f);
    return err;
}

static struct endpoint_report report(const struct fixture *f)
{
    struct endpoint_report report;

    endpoint_report(f->endpoint, &report);
    return report;
}

/* Until a list may follow the last one at once. */
static void let_next_list(struct fixture *f)
{
    poll(NULL, 0, LIST_INTERVAL_MS);
    uv_update_time(&f->world->loop);
}

/* With something to show it. */
static void start_showing(struct fixture *f)
{
    kubelet_start(f);
    show(f, "a", 1, false);
}

/* One that does not answer Register yet. */
static void start_registering(struct fixture *f)
{
    f->hold = true;
    start_showing(f);
    WAIT(f->world, f->registering);
}

static void start_refused(struct fixture *f)
{
    f->code = RPC_UNKNOWN;
    start_showing(f);
}

static void open_listed(struct fixture *f)
{
    open_stream(f);
    WAIT(f->world, f->lists == 1);
}

/* All the way to the first list. */
static void start_serving(struct fixture *f)
{
    kubelet_start(f);
    show(f, "ab", 1, false);
    WAIT(f->world, f->registers == 1);
    open_listed(f);
    assert_true(report(f).registered);
}

/* A second stream. The older one's channel, to be closed by the test. */
static struct rpc_channel *open_newer(struct fixture *f)
{
    struct rpc_channel *older = f->plugin;

    f->plugin = NULL;
    open_stream(f);
    return older;
}

/* ---- tests ---- */

static void registers_when_there_is_something_to_show(void **state)
{
    struct fixture *f = *state;

    kubelet_start(f);
    WAIT(f->world, registration_connected(f->endpoint_world.registration));
    world_settle(f->world);
    assert_int_equal(f->registers, 0);
    show(f, "ab", 5, false);
    WAIT(f->world, f->registers == 1);
    assert_false(report(f).registered);
    open_listed(f);
    assert_string_equal(f->list, "a,b");
    assert_true(report(f).registered);
    assert_int_equal(report(f).version, 5);
    assert_true(f->changes > 0);
}

static void lists_are_compared_by_what_the_kubelet_sees(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    show(f, "ab", 2, false);
    assert_int_equal(report(f).version, 2);
    update(f, NULL, 9, false); /* the same */
    assert_int_equal(report(f).version, 2);
    show(f, "aB", 3, false); /* held: nothing to the kubelet, but to the mask */
    world_settle(f->world);
    assert_int_equal(f->lists, 1);
    endpoint_set_masked(f->endpoint, true);
    WAIT(f->world, f->lists == 2);
    assert_string_equal(f->list, "!a,b");
    assert_int_equal(report(f).version, 3);
    show(f, "abc", 4, false); /* list and mask in one */
    WAIT(f->world, f->lists == 3);
    assert_string_equal(f->list, "a,b,c");
    world_settle(f->world);
    assert_int_equal(f->lists, 3);
}

static void a_change_of_who_holds_a_device_is_taken_and_not_sent(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    show(f, "ab", 2, false);
    WAIT(f->world, f->lists == 1 || strcmp(f->list, "a,b") == 0);
    let_next_list(f);
    world_settle(f->world);
    f->lists = 0;
    change(f, 1, true, true, 3);
    assert_int_equal(report(f).version, 3);
    world_settle(f->world);
    assert_int_equal(f->lists, 0);
    change(f, 0, false, false, 4);
    WAIT(f->world, f->lists == 1);
    assert_string_equal(f->list, "!a,b");
    assert_int_equal(report(f).version, 4);
    /* Back before it was sent. */
    change(f, 0, true, false, 5);
    change(f, 0, false, false, 6);
    WAIT(f->world, report(f).version == 6);
    world_settle(f->world);
    assert_int_equal(f->lists, 1);
}

static void a_daemon_that_restarts_has_other_versions(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    endpoint_forget_version(f->endpoint);
    assert_int_equal(report(f).version, 0);
    assert_int_equal(endpoint_offer(f->endpoint)->version, 0);
    assert_true(report(f).registered);
    assert_non_null(endpoint_offer(f->endpoint)->list);
    show(f, "ab", 77, false);
    assert_int_equal(report(f).version, 77);
}

static void what_is_stored_ends_with_the_next_list(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    assert_int_equal(endpoint_unstored(f->endpoint), 1);
    assert_false(report(f).stored);
    endpoint_set_stored(f->endpoint);
    assert_int_equal(endpoint_unstored(f->endpoint), 0);
    assert_true(report(f).stored);
    show(f, "ab", 2, false); /* the same to the kubelet */
    assert_true(report(f).stored);
    let_next_list(f);
    show(f, "a", 3, false);
    assert_int_equal(report(f).version, 3);
    assert_false(report(f).stored);
    show(f, "abc", 4, false);
    WAIT(f->world, f->lists >= 2);
    assert_true(endpoint_unstored(f->endpoint) > 0);
    endpoint_set_stored(f->endpoint);
    close_stream(f);
    WAIT(f->world, f->registers == 2);
    assert_false(report(f).stored);
    assert_int_equal(endpoint_unstored(f->endpoint), 0);
    /* Nothing was sent: nothing can be stored. */
    endpoint_set_stored(f->endpoint);
    assert_false(report(f).stored);
}

/* Each costs the kubelet an fsync. */
static void a_burst_of_changes_is_few_lists(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    for (uint64_t version = 2; version < 200; version++) {
        show(f, version % 2 ? "a" : "b", version, false);
        uv_run(&f->world->loop, UV_RUN_NOWAIT);
    }
    WAIT(f->world, report(f).version == 199 && f->lists == endpoint_unstored(f->endpoint));
    assert_string_equal(f->list, "a");
    assert_true(f->lists > 1);
    assert_true(f->shortest_ms >= LIST_INTERVAL_MS);
}

/* Also if one waits on the older. */
static void the_first_list_of_a_stream_does_not_wait(void **state)
{
    struct rpc_channel *older;
    struct fixture *f = *state;

    start_serving(f);
    let_next_list(f);
    show(f, "b", 2, false);
    show(f, "c", 3, false);
    assert_int_equal(report(f).version, 2);
    assert_int_equal(endpoint_unstored(f->endpoint), 2);
    older = open_newer(f);
    WAIT(f->world, endpoint_unstored(f->endpoint) < 2);
    assert_int_equal(endpoint_unstored(f->endpoint), 1); /* in the same turn */
    assert_int_equal(report(f).version, 3);
    WAIT(f->world, strcmp(f->list, "c") == 0);
    rpc_channel_close(older);
}

static void the_stream_may_open_before_register_is_answered(void **state)
{
    struct fixture *f = *state;

    start_registering(f);
    open_listed(f);
    assert_true(report(f).registered);
    answer(f, f->registering);
    world_settle(f->world);
    assert_false(f->ended);
    assert_int_equal(f->registers, 1);
}

/* Else it would wait for a stream that has been. */
static void the_stream_may_also_be_over_before_that(void **state)
{
    struct fixture *f = *state;
    uint64_t began_ms;

    start_registering(f);
    open_listed(f);
    close_stream(f);
    WAIT(f->world, !report(f).registered);
    f->hold = false;
    answer(f, f->registering);
    began_ms = uv_now(&f->world->loop);
    WAIT(f->world, f->registers == 2);
    assert_true(uv_now(&f->world->loop) - began_ms < STREAM_TIMEOUT_MS / 2);
}

/* A refusal that came late: the kubelet has what it needs. */
static void a_failed_register_does_not_matter_if_the_stream_is_there(void **state)
{
    struct fixture *f = *state;

    f->code = RPC_UNKNOWN;
    start_registering(f);
    open_listed(f);
    answer(f, f->registering);
    world_settle(f->world);
    assert_false(f->ended);
    assert_int_equal(f->registers, 1);
}

static void a_refusal_is_tried_again(void **state)
{
    struct fixture *f = *state;

    start_refused(f);
    WAIT(f->world, f->registers == 4);
    f->code = RPC_OK;
    WAIT(f->world, f->registers == 5);
}

static void a_refusal_is_reported(void **state)
{
    struct fixture *f = *state;
    unsigned changes;

    start_refused(f);
    assert_false(report(f).refused);
    changes = f->changes;
    WAIT(f->world, report(f).refused);
    assert_true(f->changes > changes);
    assert_false(report(f).registered);
    f->code = RPC_OK;
    WAIT(f->world, !report(f).refused);
    open_stream(f);
    WAIT(f->world, report(f).registered);
    assert_false(report(f).refused);
}

static void a_kubelet_that_dies_has_refused_nothing(void **state)
{
    struct fixture *f = *state;

    start_registering(f);
    kubelet_die(f);
    assert_false(report(f).refused);
    f->hold = false;
    f->code = RPC_UNKNOWN;
    kubelet_start(f);
    WAIT(f->world, report(f).refused);
    kubelet_die(f);
    assert_false(report(f).refused);
}

/* It has the stream, whatever it answered. */
static void a_stream_undoes_a_refusal(void **state)
{
    struct fixture *f = *state;

    start_refused(f);
    WAIT(f->world, report(f).refused && f->registers == 8);
    world_settle(f->world);
    open_stream(f);
    WAIT(f->world, report(f).registered);
    assert_false(report(f).refused);
}

static void a_kubelet_that_forgets_to_ask_for_the_list(void **state)
{
    struct fixture *f = *state;
    uint64_t began_ms;

    start_showing(f);
    WAIT(f->world, f->registers == 1);
    began_ms = uv_now(&f->world->loop);
    WAIT(f->world, f->registers == 2);
    assert_true(uv_now(&f->world->loop) - began_ms >= STREAM_TIMEOUT_MS - 10);
    open_listed(f);
}

static void an_ended_stream_is_registered_again(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    for (unsigned round = 2; round < 5; round++) {
        rpc_call_cancel(f->stream);
        WAIT(f->world, f->registers == round);
        assert_false(report(f).registered);
        open_listed(f);
        assert_true(report(f).registered);
    }
}

static void a_stream_opened_while_it_waits_to_register_again(void **state)
{
    struct fixture *f = *state;

    start_refused(f);
    WAIT(f->world, f->registers == 8); /* the next wait is over half a second */
    world_settle(f->world);
    open_listed(f);
    assert_true(report(f).registered);
}

/* Its wait before registering again is the first one once more. */
static void a_stream_that_settled_starts_afresh(void **state)
{
    struct fixture *f = *state;
    uint64_t began_ms;

    start_refused(f);
    WAIT(f->world, f->registers == 11); /* the next wait is over five seconds */
    f->code = RPC_OK;
    open_listed(f);
    poll(NULL, 0, STREAM_SETTLED_MS);
    uv_update_time(&f->world->loop);
    rpc_call_cancel(f->stream);
    began_ms = uv_now(&f->world->loop);
    WAIT(f->world, f->registers == 12);
    assert_true(uv_now(&f->world->loop) - began_ms < REGISTER_AGAIN_MS_MAX / 2);
}

/* Its kubelet would take that for the end of the newer one. */
static void a_newer_stream_does_not_end_the_older(void **state)
{
    struct fixture *f = *state;
    struct rpc_channel *older;

    start_serving(f);
    older = open_newer(f);
    WAIT(f->world, f->lists == 1);
    show(f, "abc", 2, false);
    WAIT(f->world, f->lists == 2);
    world_settle(f->world);
    assert_false(f->ended);
    assert_int_equal(f->lists, 2); /* of both streams */
    assert_int_equal(f->registers, 1);
    rpc_channel_close(older);
}

/* The newer may be one that the kubelet does not feed the resource from any more. */
static void the_older_stream_ends_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct rpc_channel *older;

    start_serving(f);
    older = open_newer(f);
    WAIT(f->world, f->lists == 1);
    rpc_channel_close(older);
    WAIT(f->world, f->ended);
    assert_false(report(f).registered);
    WAIT(f->world, f->registers == 2);
    open_listed(f);
    assert_true(report(f).registered);
}

/* Also while Register is not answered yet: that stream is not the one that is waited for. */
static void the_older_stream_ends_before_register_is_answered(void **state)
{
    struct fixture *f = *state;
    struct rpc_channel *older;

    start_registering(f);
    open_listed(f);
    older = open_newer(f);
    WAIT(f->world, f->lists == 1);
    rpc_channel_close(older);
    WAIT(f->world, f->ended);
    assert_int_equal(f->ended_code, RPC_ABORTED);
    f->hold = false;
    answer(f, f->registering);
    WAIT(f->world, f->registers == 2);
    open_listed(f);
    assert_true(report(f).registered);
}

static void a_dead_kubelet_has_nothing_registered(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    kubelet_die(f);
    WAIT(f->world, !report(f).registered);
    show(f, "abc", 2, false);
    kubelet_start(f);
    WAIT(f->world, f->registers == 2);
    open_listed(f);
    assert_string_equal(f->list, "a,b,c");
}

static void the_old_stream_is_ended_before_the_new_registration(void **state)
{
    struct fixture *f = *state;
    struct rpc_server *old;

    start_serving(f);
    old = f->server;
    unlink(f->world->path);
    endpoint_kubelet_went(f->endpoint);
    assert_true(report(f).registered); /* it is the same one yet */
    f->hold = true;
    kubelet_start(f);
    assert_false(report(f).registered);
    WAIT(f->world, f->registering);
    assert_true(f->ended);
    rpc_server_close(old);
}

static void the_same_kubelet_after_a_lost_connection_keeps_its_stream(void **state)
{
    struct fixture *f = *state;

    start_serving(f);
    rpc_server_disconnect(f->server);
    WAIT(f->world, !report(f).registered);
    WAIT(f->world, report(f).registered);
    world_settle(f->world);
    assert_int_equal(f->registers, 1);
    assert_false(f->ended);
}

/* It may have dialled back for the Register that was cut: that has ended, and the kubelet has had
 * its time to see it, before the next. */
static void the_same_kubelet_is_not_asked_again_at_once(void **state)
{
    struct fixture *f = *state;

    start_registering(f);
    open_stream(f);
    WAIT(f->world, f->lists == 1);
    close_stream(f);
    rpc_server_disconnect(f->server);
    f->registering = NULL;
    WAIT(f->world, f->registers == 2);
    assert_true(f->registered_ms - f->connected_ms >= REGISTER_AGAIN_MS_MIN);
}

/* The kubelet before had been registered with as well, and comes late: the one at hand has not
 * opened its stream yet. */
static void a_late_stream_of_the_kubelet_before(void **state)
{
    struct fixture *f = *state;

    start_registering(f);
    open_stream_of_another(f);
    WAIT(f->world, f->lists == 1);
    assert_false(report(f).registered);
    answer(f, f->registering);
    f->hold = false;
    world_settle(f->world);
    poll(NULL, 0, 2 * REGISTER_AGAIN_MS_MIN); /* as long as one that has ended is waited for */
    world_settle(f->world);
    assert_int_equal(f->registers, 1);
    open_listed(f);
    assert_true(report(f).registered);
    assert_int_equal(f->registers, 1);
}

static void sockets_are_made_anew(void **state)
{
    char path[128], dir[64], inner[136];
    struct fixture *f = *state;

    start_serving(f);
    snprintf(dir, sizeof dir, "%s/cri-device-shim", f->world->dir);
    snprintf(path, sizeof path, "%s/v.com_gpu.sock", dir);
    endpoint_listen(f->endpoint);
    unlink(path);
    rmdir(dir);
    endpoint_listen(f->endpoint);
    assert_int_equal(access(path, F_OK), 0);
    /* Something in the way: no registration while nobody could dial back. */
    unlink(path);
    snprintf(inner, sizeof inner, "%s/x", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    endpoint_listen(f->endpoint);
    endpoint_listen(f->endpoint);
    close_stream(f);
    WAIT(f->world, !report(f).registered);
    kubelet_die(f);
    kubelet_start(f);
    WAIT(f->world, registration_connected(f->endpoint_world.registration));
    world_settle(f->world);
    assert_int_equal(f->registers, 1);
    rmdir(inner);
    rmdir(path);
    endpoint_listen(f->endpoint);
    WAIT(f->world, f->registers == 2);
}

/* A plugin's container, root, mounts the kubelet's directory, and may lead us elsewhere. */
static void no_directory_is_followed_elsewhere(void **state)
{
    char path[128], dir[64], elsewhere[64];
    struct fixture *f = *state;

    start_serving(f);
    snprintf(dir, sizeof dir, "%s/cri-device-shim", f->world->dir);
    snprintf(path, sizeof path, "%s/v.com_gpu.sock", dir);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", f->world->dir);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    unlink(path);
    rmdir(dir);
    assert_int_equal(symlink(elsewhere, dir), 0);
    endpoint_listen(f->endpoint);
    assert_int_equal(rmdir(elsewhere), 0); /* nothing was made in it */
    assert_int_equal(unlink(dir), 0);
    endpoint_listen(f->endpoint);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_list_too_large_leaves_the_last_one(void **state)
{
    Bridge__V1__Device device = BRIDGE__V1__DEVICE__INIT, *pointer = &device;
    Bridge__V1__DeviceList list = BRIDGE__V1__DEVICE_LIST__INIT;
    struct fixture *f = *state;

    start_serving(f);
    device.id = malloc(RPC_MESSAGE_BYTES_MAX + 1);
    memset(device.id, 'a', RPC_MESSAGE_BYTES_MAX);
    device.id[RPC_MESSAGE_BYTES_MAX] = '\0';
    list.devices = &pointer;
    list.n_devices = 1;
    let_next_list(f);
    update(f, &list, 2, false);
    world_settle(f->world);
    assert_int_equal(f->lists, 1);
    assert_int_equal(report(f).version, 1);
    free(device.id);
    show(f, "x", 3, false);
    WAIT(f->world, f->lists == 2);
    assert_int_equal(report(f).version, 3);
}

/* Adds SETTINGS with this INITIAL_WINDOW_SIZE. */
static void add_window(struct bytes *bytes, uint8_t window)
{
    const uint8_t payload[6] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 0, window};

    bytes_frame(bytes, NGHTTP2_SETTINGS, 0, 0, payload, sizeof payload);
}

/* The lists' messages that came: how many, and the first id of the last. */
static unsigned messages(const struct raw *raw, char *last)
{
    unsigned found = 0;

    for (size_t at = 0; at + 9 <= raw->got.len;) {
        const uint8_t *head = raw->got.data + at;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

        if (at + 9 + len > raw->got.len)
            break;
        if (head[3] == NGHTTP2_DATA && len > 5 + 4) {
            found++;
            *last = (char)head[9 + 5 + 4]; /* list{device{id "x"}}: 0a LL 0a 01 x */
        }
        at += 9 + len;
    }
    return found;
}

static void a_kubelet_that_does_not_read_gets_the_newest(void **state)
{
    static const char *const fields[] = {":method",
                                         "POST",
                                         ":scheme",
                                         "http",
                                         ":path",
                                         DEVICEPLUGIN_LIST_AND_WATCH,
                                         ":authority",
                                         "localhost",
                                         "content-type",
                                         "application/grpc",
                                         NULL};
    static struct bytes greeting, window;
    static struct raw raw;
    struct fixture *f = *state;
    char last = 0;

    start_showing(f);
    WAIT(f->world, f->registers == 1);
    bytes_preface(&greeting);
    add_window(&greeting, 0);
    bytes_headers(&greeting, 0, 1, fields);
    bytes_message(&greeting, NGHTTP2_FLAG_END_STREAM, 1, 0, "", 0);
    raw.greeting = &greeting;
    snprintf(f->world->path, sizeof f->world->path, "%s/cri-device-shim/v.com_gpu.sock",
             f->world->dir);
    raw_connect(&raw, f->world);
    WAIT(f->world, report(f).registered);
    show(f, "b", 2, false);
    show(f, "c", 3, false);
    world_settle(f->world);
    assert_int_equal(messages(&raw, &last), 0);
    assert_int_equal(report(f).version, 1);
    add_window(&window, 100);
    raw_write(&raw, &window);
    WAIT(f->world, messages(&raw, &last) == 2);
    assert_int_equal(last, 'c');
    assert_int_equal(report(f).version, 3);
    raw_close(&raw);
}

static void a_name_that_is_none(void **state)
{
    struct fixture *f = *state;

    assert_null(endpoint_new(&f->endpoint_world, "nonsense"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(registers_when_there_is_something_to_show),
        TEST(lists_are_compared_by_what_the_kubelet_sees),
        TEST(a_change_of_who_holds_a_device_is_taken_and_not_sent),
        TEST(a_daemon_that_restarts_has_other_versions),
        TEST(what_is_stored_ends_with_the_next_list),
        TEST(a_burst_of_changes_is_few_lists),
        TEST(the_first_list_of_a_stream_does_not_wait),
        TEST(the_stream_may_open_before_register_is_answered),
        TEST(the_stream_may_also_be_over_before_that),
        TEST(a_failed_register_does_not_matter_if_the_stream_is_there),
        TEST(a_refusal_is_tried_again),
        TEST(a_refusal_is_reported),
        TEST(a_kubelet_that_dies_has_refused_nothing),
        TEST(a_stream_undoes_a_refusal),
        TEST(a_kubelet_that_forgets_to_ask_for_the_list),
        TEST(an_ended_stream_is_registered_again),
        TEST(a_stream_opened_while_it_waits_to_register_again),
        TEST(a_stream_that_settled_starts_afresh),
        TEST(a_newer_stream_does_not_end_the_older),
        TEST(the_older_stream_ends_all_the_same),
        TEST(the_older_stream_ends_before_register_is_answered),
        TEST(a_dead_kubelet_has_nothing_registered),
        TEST(the_old_stream_is_ended_before_the_new_registration),
        TEST(the_same_kubelet_after_a_lost_connection_keeps_its_stream),
        TEST(the_same_kubelet_is_not_asked_again_at_once),
        TEST(a_late_stream_of_the_kubelet_before),
        TEST(sockets_are_made_anew),
        TEST(no_directory_is_followed_elsewhere),
        TEST(a_list_too_large_leaves_the_last_one),
        TEST(a_kubelet_that_does_not_read_gets_the_newest),
        TEST(a_name_that_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
