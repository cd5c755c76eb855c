/* shim/plugins/plugin_client.c, and shim/rpc/numbered.c: the shim as a plugin's client,
 * against a real gRPC server. */
#include "tests/unit/plugin_fixture.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/plugins/plugin_client.h"
#include "shim/service_manager.h"
#include "tests/unit/alloc_fail.h"
#include "tests/unit/notify_socket.h"

#define ENDPOINT 7
#define CALL 70

struct fixture {
    struct world *world;
    struct plugin plugin;           /* does not serve yet */
    struct plugin_clients *clients; /* NULL once stopped */
    bool stopped;
    unsigned options, lists, losts, ends;
    bool pre_start;
    size_t devices;
    char reason[1024];
    uint64_t call;
    int code;
    char message[256];
    char answer[64]; /* of the call: the env, or the preferred ids */
    bool close_in_options;
    bool close_in_lost;
    bool cancel_other; /* from the end of a call */
};

static void on_options(void *user, uint64_t endpoint, const V1beta1__DevicePluginOptions *options)
{
    struct fixture *f = user;

    assert_int_equal(endpoint, ENDPOINT);
    f->options++;
    f->pre_start = options->pre_start_required;
    if (f->close_in_options)
        plugin_clients_close(f->clients, endpoint);
}

static void on_list(void *user, uint64_t endpoint, const V1beta1__ListAndWatchResponse *list)
{
    struct fixture *f = user;

    assert_int_equal(endpoint, ENDPOINT);
    f->lists++;
    f->devices = list->n_devices;
}

static void on_lost(void *user, uint64_t endpoint, const char *reason)
{
    struct fixture *f = user;

    assert_int_equal(endpoint, ENDPOINT);
    f->losts++;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
    if (f->close_in_lost)
        plugin_clients_close(f->clients, endpoint);
}

static void note_end(struct fixture *f, uint64_t call, int code, const char *message)
{
    f->ends++;
    f->call = call;
    f->code = code;
    snprintf(f->message, sizeof f->message, "%s", message);
    if (f->cancel_other)
        plugin_clients_cancel(f->clients, call == CALL ? CALL + 1 : CALL);
}

static void on_allocated(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__AllocateResponse *response)
{
    struct fixture *f = user;

    note_end(f, call, code, message);
    assert_true((code == RPC_OK) == (response != NULL));
    if (response)
        snprintf(f->answer, sizeof f->answer, "%s",
                 response->container_responses[0]->envs[0]->value);
}

static void on_preferred(void *user, uint64_t call, int code, const char *message,
                         const V1beta1__PreferredAllocationResponse *response)
{
    struct fixture *f = user;

    note_end(f, call, code, message);
    assert_true((code == RPC_OK) == (response != NULL));
    if (response)
        snprintf(f->answer, sizeof f->answer, "%s", response->container_responses[0]->deviceids[0]);
}

static void on_prestarted(void *user, uint64_t call, int code, const char *message)
{
    note_end(user, call, code, message);
}

static const struct plugin_clients_ops OPS = {
    .options = on_options,
    .list = on_list,
    .lost = on_lost,
    .allocated = on_allocated,
    .preferred = on_preferred,
    .prestarted = on_prestarted,
};

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void stop(struct fixture *f)
{
    plugin_clients_stop(f->clients, on_stopped, f);
    f->clients = NULL;
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    f->clients = plugin_clients_new(&f->world->loop, f->world->dir, NULL, &OPS, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    if (f->clients)
        stop(f);
    plugin_stop(&f->plugin);
    err = world_free(f->world);
    free(f);
    return err;
}

static void serve(struct fixture *f)
{
    plugin_serve(&f->plugin, f->world, "gpu.sock");
}

static void dial(struct fixture *f, enum plugin_dial how)
{
    plugin_clients_open(f->clients, ENDPOINT, "gpu.sock", getuid(), how);
}

/* With a stream. */
static void connect_plugin(struct fixture *f)
{
    unsigned options = f->options;

    dial(f, PLUGIN_DIAL_ONCE);
    assert_int_equal(f->options, options);
    WAIT(f->world, f->options == options + 1 && f->plugin.stream);
}

static void serve_connected(struct fixture *f)
{
    serve(f);
    connect_plugin(f);
}

static void allocate(struct fixture *f, uint64_t call, uint64_t timeout_ms)
{
    plugin_clients_allocate(f->clients, ENDPOINT, call, (const char *const[]){"a", "b"}, 2,
                            timeout_ms);
}

/* The plugin has registered, and its first stream is listened to beside the new one. */
static void register_once_dialled(struct fixture *f)
{
    plugin_clients_close(f->clients, ENDPOINT);
    dial(f, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->options == 2 && f->plugin.streams == 2);
}

/* CALL, which the plugin does not answer. */
static void allocate_held(struct fixture *f)
{
    f->plugin.hold = true;
    allocate(f, CALL, 5000);
    WAIT(f->world, f->plugin.held);
}

static void tells_options_and_each_list(void **state)
{
    struct fixture *f = *state;

    f->plugin.pre_start = true;
    serve_connected(f);
    assert_true(f->pre_start);
    plugin_list(&f->plugin, "a,b,!c");
    WAIT(f->world, f->lists == 1);
    assert_int_equal(f->devices, 3);
    plugin_list(&f->plugin, "a");
    WAIT(f->world, f->lists == 2);
    assert_int_equal(f->devices, 1);
    assert_int_equal(f->losts, 0);
}

static void takes_a_plugin_without_options(void **state)
{
    struct fixture *f = *state;

    f->plugin.without_options = true;
    f->plugin.pre_start = true;
    serve_connected(f);
    assert_false(f->pre_start);
}

static void loses_a_plugin_whose_options_fail(void **state)
{
    struct fixture *f = *state;

    f->plugin.options_code = RPC_INTERNAL;
    serve(f);
    dial(f, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->losts == 1);
    assert_string_equal(f->reason,
                        "failed to get device plugin options: INTERNAL: the plugin says no");
    assert_int_equal(f->options, 0);
}

/* It has registered with a process before this one, does not do so again by itself, and hangs for a
 * moment, as with its node. */
static void who_does_not_register_is_asked_for_his_options_again(void **state)
{
    struct fixture *f = *state;

    f->plugin.hold = true;
    serve(f);
    dial(f, PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->plugin.held);
    f->plugin.hold = false;
    WAIT(f->world, f->options == 1 || f->losts == 1); /* PLUGIN_OPTIONS_MS_MAX */
    assert_int_equal(f->losts, 0);
}

/* A plugin that dies before it has answered is lost once, not once for each of its calls. */
static void loses_a_plugin_that_dies_at_its_options(void **state)
{
    struct fixture *f = *state;

    f->plugin.hold = true;
    serve(f);
    dial(f, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->plugin.held);
    plugin_stop(&f->plugin);
    WAIT(f->world, f->losts == 1);
    world_settle(f->world);
    assert_int_equal(f->losts, 1);
}

static void waits_for_a_plugin_that_registers_before_it_listens(void **state)
{
    struct fixture *f = *state;

    dial(f, PLUGIN_DIAL_REGISTERING);
    world_settle(f->world);
    assert_int_equal(f->losts, 0);
    serve(f);
    WAIT(f->world, f->options == 1);
    assert_int_equal(f->losts, 0);
}

/* One that has registered by a socket of its own, which it may leave as it is. */
static void waits_for_a_plugin_that_need_not_register_again(void **state)
{
    struct fixture *f = *state;

    dial(f, PLUGIN_DIAL_PATIENTLY);
    world_settle(f->world);
    assert_int_equal(f->losts, 0);
    serve(f);
    WAIT(f->world, f->options == 1);
}

/* It has told the manager `state`, and more perhaps. */
static bool is_told(int manager, const char *state)
{
    char text[512] = "";

    return recv(manager, text, sizeof text - 1, MSG_DONTWAIT) > 0 &&
           strncmp(text, state, strlen(state)) == 0;
}

/* Of the service manager that is to keep streams. */
struct manager {
    int socket;
    struct fd_store *store;
    int sent;
};

/* Its queue is full, and the plugin is listened to. */
static struct manager serve_before_a_busy_manager(struct fixture *f)
{
    struct manager manager = {.socket = manager_start(), .store = fd_store_new()};

    stop(f);
    f->stopped = false;
    f->clients = plugin_clients_new(&f->world->loop, f->world->dir, manager.store, &OPS, f);
    while (fd_store_put(manager.store, "a", manager.socket) == 0)
        manager.sent++;
    serve_connected(f);
    return manager;
}

/* It reads what came, and is told of a stream. */
static void hear_of_a_stream(struct fixture *f, struct manager *manager)
{
    for (; manager->sent > 0; manager->sent--)
        assert_true(is_told(manager->socket, "FDSTORE=1\nFDNAME=a"));
    WAIT(f->world, is_told(manager->socket, "FDSTORE=1\nFDNAME=plugin/"));
}

static void stop_before_a_manager(struct fixture *f, const struct manager *manager)
{
    stop(f);
    fd_store_free(manager->store);
    manager_stop(manager->socket);
}

/* When the first list comes it is, and there is no other list. */
static void a_manager_that_is_busy_is_told_of_the_stream_later(void **state)
{
    struct fixture *f = *state;
    struct manager manager = serve_before_a_busy_manager(f);

    plugin_list(&f->plugin, "a");
    WAIT(f->world, f->lists == 1);
    hear_of_a_stream(f, &manager);
    stop_before_a_manager(f, &manager);
}

/* The same of one that is only listened to by then: until nobody is at its socket any more, since
 * what comes there would be lost, however often. */
static void a_manager_that_is_busy_is_told_of_who_has_registered(void **state)
{
    struct fixture *f = *state;
    struct manager manager = serve_before_a_busy_manager(f);

    plugin_list(&f->plugin, "a");
    WAIT(f->world, f->lists == 1);
    register_once_dialled(f);
    hear_of_a_stream(f, &manager);
    plugin_clients_close(f->clients, ENDPOINT);
    WAIT(f->world, f->plugin.streams_over == 2);
    stop_before_a_manager(f, &manager);
}

/* The name is there, but nobody listens: bind(2) without listen(2). */
static int bind_only(struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/gpu.sock", f->world->dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void waits_for_a_plugin_between_bind_and_listen(void **state)
{
    struct fixture *f = *state;
    int fd = bind_only(f);

    dial(f, PLUGIN_DIAL_REGISTERING);
    world_settle(f->world);
    assert_int_equal(f->losts, 0);
    assert_int_equal(listen(fd, 1), 0);
    close(fd);
    serve(f);
    WAIT(f->world, f->options == 1);
}

static void dials_once_if_not_told_to_be_patient(void **state)
{
    struct fixture *f = *state;
    char expected[128];
    int fd;

    dial(f, PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->losts == 1);
    snprintf(expected, sizeof expected, "cannot connect to %s/gpu.sock: No such file or directory",
             f->world->dir);
    assert_string_equal(f->reason, expected);
    fd = bind_only(f);
    dial(f, PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->losts == 2);
    assert_non_null(strstr(f->reason, "Connection refused"));
    close(fd);
    serve(f); /* replaces the file */
}

/* A socket can be made under a short name and moved: its file is opened, whatever its name. */
static void takes_a_name_too_long_for_an_address(void **state)
{
    struct fixture *f = *state;
    char name[128], path[256];

    serve(f);
    snprintf(name, sizeof name, "%0100d", 0);
    snprintf(path, sizeof path, "%s/%s", f->world->dir, name);
    assert_int_equal(rename(f->plugin.path, path), 0);
    plugin_clients_open(f->clients, ENDPOINT, name, getuid(), PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->options == 1);
    stop(f);
    assert_int_equal(unlink(path), 0);
}

static void refuses_what_is_no_socket(void **state)
{
    struct fixture *f = *state;
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/file", f->world->dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    plugin_clients_open(f->clients, ENDPOINT, "file", getuid(), PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->losts == 1);
    assert_non_null(strstr(f->reason, "it is no socket"));
    assert_int_equal(unlink(path), 0);

    serve(f);
    snprintf(path, sizeof path, "%s/link", f->world->dir);
    assert_int_equal(symlink("gpu.sock", path), 0);
    plugin_clients_open(f->clients, ENDPOINT, "link", getuid(), PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->losts == 2);
    assert_non_null(strstr(f->reason, "it is a symlink; expected a socket"));
    assert_int_equal(unlink(path), 0);
}

static void refuses_a_strangers_socket(void **state)
{
    struct fixture *f = *state;

    if (getuid() != 0)
        skip();
    serve(f);
    assert_int_equal(chown(f->plugin.path, 1234, 1234), 0);
    plugin_clients_open(f->clients, ENDPOINT, "gpu.sock", 0, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->losts == 1);
    assert_non_null(strstr(f->reason, "it belongs to neither root nor the user who registered"));
    /* The user who registered may own it; it is served by root here, who may as well. */
    plugin_clients_open(f->clients, ENDPOINT, "gpu.sock", 1234, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->options == 1);
}

static void tells_how_the_stream_ended(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    plugin_end_stream(&f->plugin, RPC_OK, NULL);
    WAIT(f->world, f->losts == 1);
    assert_string_equal(f->reason, "the plugin ended ListAndWatch");
    connect_plugin(f);
    plugin_end_stream(&f->plugin, RPC_RESOURCE_EXHAUSTED, "too much");
    WAIT(f->world, f->losts == 2);
    assert_string_equal(f->reason, "ListAndWatch ended RESOURCE_EXHAUSTED: too much");
    connect_plugin(f);
    plugin_stop(&f->plugin);
    WAIT(f->world, f->losts == 3);
    world_settle(f->world);
    assert_int_equal(f->losts, 3);
}

/* Neither its options nor its answers, which are as large as it makes them, cost more than the
 * connection. */
static void any_allocation_for_a_plugin_may_fail(void **state)
{
    struct fixture *f = *state;
    unsigned n = 0;

    f->plugin.env = "zero";
    serve(f);
    do {
        f->options = f->losts = f->ends = 0;
        dial(f, PLUGIN_DIAL_ONCE);
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        WAIT(f->world, f->options > 0 || f->losts > 0);
        alloc_fail_enable(false);
        plugin_clients_close(f->clients, ENDPOINT);
        world_settle(f->world);
    } while (alloc_failed());
    assert_true(n > 10);
    n = 0;
    do {
        connect_plugin(f);
        f->losts = f->ends = 0;
        allocate(f, CALL, 5000);
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        WAIT(f->world, f->ends > 0 || f->losts > 0);
        alloc_fail_enable(false);
        assert_true(alloc_failed() || f->code == RPC_OK);
        plugin_clients_close(f->clients, ENDPOINT);
        plugin_clients_cancel(f->clients, CALL);
        world_settle(f->world);
    } while (alloc_failed());
    assert_true(n > 5);
}

static void calls_the_plugin(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "zero";
    serve_connected(f);
    allocate(f, CALL, 5000);
    assert_int_equal(f->ends, 0);
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->call, CALL);
    assert_int_equal(f->code, RPC_OK);
    assert_string_equal(f->answer, "zero");
    assert_string_equal(f->plugin.ids, "a,b");

    plugin_clients_prefer(f->clients, ENDPOINT, CALL + 1, (const char *const[]){"a", "b", "c"}, 3,
                          (const char *const[]){"a"}, 1, 1, 500);
    WAIT(f->world, f->ends == 2);
    assert_int_equal(f->call, CALL + 1);
    assert_string_equal(f->answer, "c");
    assert_string_equal(f->plugin.ids, "a");

    plugin_clients_prestart(f->clients, ENDPOINT, CALL + 2, (const char *const[]){"c"}, 1, 500);
    WAIT(f->world, f->ends == 3);
    assert_int_equal(f->call, CALL + 2);
    assert_int_equal(f->code, RPC_OK);
    assert_string_equal(f->plugin.ids, "c");
}

static void tells_the_plugins_refusal(void **state)
{
    struct fixture *f = *state;

    f->plugin.code = RPC_FAILED_PRECONDITION;
    serve_connected(f);
    allocate(f, CALL, 5000);
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->code, RPC_FAILED_PRECONDITION);
    assert_string_equal(f->message, "the plugin says no");
    plugin_clients_prefer(f->clients, ENDPOINT, CALL, (const char *const[]){"a"}, 1, NULL, 0, 1, 9);
    WAIT(f->world, f->ends == 2);
    assert_int_equal(f->code, RPC_FAILED_PRECONDITION);
    plugin_clients_prestart(f->clients, ENDPOINT, CALL, NULL, 0, 500);
    WAIT(f->world, f->ends == 3);
    assert_int_equal(f->code, RPC_FAILED_PRECONDITION);
    assert_int_equal(f->losts, 0);
}

/* It has answered, whatever it says. */
static void loses_a_plugin_that_says_at_once_that_its_time_is_over(void **state)
{
    struct fixture *f = *state;

    f->plugin.options_code = RPC_DEADLINE_EXCEEDED;
    serve(f);
    dial(f, PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->losts == 1);
    assert_string_equal(
        f->reason, "failed to get device plugin options: DEADLINE_EXCEEDED: the plugin says no");
}

static void ends_a_call_at_its_timeout(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    f->plugin.hold = true;
    allocate(f, CALL, 20);
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->code, RPC_DEADLINE_EXCEEDED);
    WAIT(f->world, f->plugin.cancelled == 1);
    allocate(f, CALL, 0); /* not for ever */
    WAIT(f->world, f->ends == 2);
    assert_int_equal(f->code, RPC_DEADLINE_EXCEEDED);
    assert_int_equal(f->losts, 0);
}

static void cancels_a_call(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    allocate_held(f);
    plugin_clients_cancel(f->clients, CALL);
    plugin_clients_cancel(f->clients, CALL);
    WAIT(f->world, f->plugin.cancelled == 1);
    assert_int_equal(f->ends, 0);
}

/* Whoever lost the endpoint knows that its calls are over. */
static void calls_end_with_the_stream(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    f->plugin.hold = true;
    allocate(f, CALL, 5000);
    allocate(f, CALL + 1, 5000);
    WAIT(f->world, f->plugin.allocates == 2);
    plugin_end_stream(&f->plugin, RPC_OK, NULL);
    WAIT(f->world, f->losts == 1 && f->plugin.cancelled == 2);
    assert_int_equal(f->ends, 0);
}

static void a_call_does_not_outlive_the_plugin(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    allocate_held(f);
    plugin_stop(&f->plugin);
    WAIT(f->world, f->losts == 1);
    if (f->ends == 1)
        assert_int_equal(f->code, RPC_UNAVAILABLE);
    world_settle(f->world);
    assert_in_range(f->ends, 0, 1);
}

static void a_call_on_a_lost_endpoint_is_unavailable(void **state)
{
    struct fixture *f = *state;

    allocate(f, CALL, 5000);
    plugin_clients_prefer(f->clients, ENDPOINT, CALL + 1, (const char *const[]){"a"}, 1, NULL, 0, 1,
                          9);
    plugin_clients_prestart(f->clients, ENDPOINT, CALL + 2, NULL, 0, 500);
    allocate(f, CALL + 3, 5000);
    plugin_clients_cancel(f->clients, CALL + 3);
    assert_int_equal(f->ends, 0);
    WAIT(f->world, f->ends == 3);
    assert_int_equal(f->code, RPC_UNAVAILABLE);
    assert_string_equal(f->message, "the plugin's connection is gone");
    allocate(f, CALL, 5000); /* still waiting when the set stops */
    stop(f);
    assert_int_equal(f->ends, 3);
}

static void the_end_of_a_call_may_cancel_another(void **state)
{
    struct fixture *f = *state;

    f->cancel_other = true;
    allocate(f, CALL, 5000);
    allocate(f, CALL + 1, 5000);
    WAIT(f->world, f->ends == 1);
    world_settle(f->world);
    assert_int_equal(f->ends, 1);
}

static void close_ends_everything_without_a_word(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    allocate_held(f);
    plugin_clients_close(f->clients, ENDPOINT);
    plugin_clients_close(f->clients, ENDPOINT);
    WAIT(f->world, f->plugin.cancelled == 1 && !f->plugin.stream);
    assert_int_equal(f->ends, 0);
    assert_int_equal(f->losts, 0);
}

static void close_may_come_at_any_step(void **state)
{
    struct fixture *f = *state;

    serve(f);
    dial(f, PLUGIN_DIAL_REGISTERING);
    plugin_clients_close(f->clients, ENDPOINT); /* waiting */
    dial(f, PLUGIN_DIAL_REGISTERING);
    uv_run(&f->world->loop, UV_RUN_NOWAIT);
    plugin_clients_close(f->clients, ENDPOINT); /* dialling */
    f->plugin.hold = true;
    dial(f, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->plugin.held);
    plugin_clients_close(f->clients, ENDPOINT); /* asking */
    WAIT(f->world, !f->plugin.held);
    f->plugin.hold = false;
    f->close_in_options = true;
    dial(f, PLUGIN_DIAL_REGISTERING);
    WAIT(f->world, f->options == 1);
    f->close_in_lost = true;
    plugin_clients_open(f->clients, ENDPOINT, "nowhere.sock", getuid(), PLUGIN_DIAL_ONCE);
    WAIT(f->world, f->losts == 1);
    stop(f);
    assert_int_equal(f->options, 1);
    assert_int_equal(f->losts, 1);
}

/* A new registration of the same socket is a new connection beside the old one. */
static void endpoints_of_one_socket_are_separate(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    register_once_dialled(f);
    assert_int_equal(f->losts, 0);
}

/* Its first stream goes on, and what it was asked beside that does not: nobody waits for it
 * there. */
static void who_registers_once_dialled_has_his_calls_taken_back(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    allocate_held(f);
    f->plugin.hold = false;
    register_once_dialled(f);
    assert_int_equal(f->plugin.cancelled, 1);
    assert_int_equal(f->ends, 0);
    assert_int_equal(f->losts, 0);
}

/* Nobody is at the socket of then: what comes on its stream would be lost, however often, and is
 * told by the plugin on another one if this one ends. */
static void who_registers_elsewhere_has_his_first_stream_ended(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    plugin_clients_close(f->clients, ENDPOINT);
    plugin_list(&f->plugin, "a");
    WAIT(f->world, f->plugin.streams_over == 1);
    assert_int_equal(f->lists, 0);
}

/* He was waited for, and heard, before his registration was. */
static void who_registers_once_waited_for_is_heard_on_his_first_stream(void **state)
{
    struct fixture *f = *state;

    serve(f);
    dial(f, PLUGIN_DIAL_PATIENTLY);
    WAIT(f->world, f->options == 1 && f->plugin.stream);
    register_once_dialled(f);
    world_settle(f->world);
    assert_int_equal(f->plugin.streams_over, 0);
}

/* It is slow, and has threads for other calls: the streams that it has are in nobody's way. */
static void who_answers_beside_a_slow_call_keeps_his_first_stream(void **state)
{
    struct fixture *f = *state;

    serve_connected(f);
    register_once_dialled(f);
    f->plugin.hold = true;
    allocate(f, CALL, 100);
    WAIT(f->world, f->plugin.allocates == 1); /* and may be over by then */
    f->plugin.hold = false;
    WAIT(f->world, f->ends == 1 && f->plugin.cancelled == 1);
    assert_int_equal(f->code, RPC_DEADLINE_EXCEEDED);
    world_settle(f->world);
    assert_int_equal(f->plugin.streams_over, 0);
}

/* A server that takes no call on its first connection: all go over another, also once the first is
 * lost. */
static void goes_on_elsewhere_when_the_first_connection_is_lost(void **state)
{
    static const uint8_t last_stream_is_0[8] = {0};
    struct bytes *greeting = calloc(2, sizeof *greeting), *goaway = greeting + 1;
    struct raw *raw = calloc(1, sizeof *raw);
    struct fixture *f = *state;
    const char *name = strrchr(f->world->path, '/') + 1;

    bytes_settings(greeting);
    bytes_frame(goaway, NGHTTP2_GOAWAY, 0, 0, last_stream_is_0, sizeof last_stream_is_0);
    raw->greeting = greeting;
    raw_listen(raw, f->world);
    plugin_clients_open(f->clients, ENDPOINT, name, getuid(), PLUGIN_DIAL_ONCE);
    WAIT(f->world, raw->request_whole);
    assert_int_equal(unlink(f->world->path), 0);
    plugin_serve(&f->plugin, f->world, name);
    raw_write(raw, goaway);
    WAIT(f->world, f->options == 1 && f->plugin.stream);
    allocate_held(f);

    world_settle(f->world);
    assert_true(raw->ended); /* nothing more can come there */
    f->plugin.hold = false;
    allocate(f, CALL + 1, 5000);
    WAIT(f->world, f->ends == 1);
    assert_int_equal(f->code, RPC_OK);
    assert_int_equal(f->losts, 0);

    plugin_end_stream(&f->plugin, RPC_OK, NULL);
    WAIT(f->world, f->losts == 1 && f->plugin.cancelled == 1);
    assert_int_equal(f->ends, 1);
    raw_close(raw); /* with the socket's file */
    world_settle(f->world);
    free(raw);
    free(greeting);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_options_and_each_list),
        TEST(takes_a_plugin_without_options),
        TEST(loses_a_plugin_whose_options_fail),
        TEST(loses_a_plugin_that_says_at_once_that_its_time_is_over),
        TEST(who_does_not_register_is_asked_for_his_options_again),
        TEST(loses_a_plugin_that_dies_at_its_options),
        TEST(waits_for_a_plugin_that_registers_before_it_listens),
        TEST(waits_for_a_plugin_that_need_not_register_again),
        TEST(a_manager_that_is_busy_is_told_of_the_stream_later),
        TEST(a_manager_that_is_busy_is_told_of_who_has_registered),
        TEST(waits_for_a_plugin_between_bind_and_listen),
        TEST(dials_once_if_not_told_to_be_patient),
        TEST(takes_a_name_too_long_for_an_address),
        TEST(refuses_what_is_no_socket),
        TEST(refuses_a_strangers_socket),
        TEST(tells_how_the_stream_ended),
        TEST(any_allocation_for_a_plugin_may_fail),
        TEST(calls_the_plugin),
        TEST(tells_the_plugins_refusal),
        TEST(ends_a_call_at_its_timeout),
        TEST(cancels_a_call),
        TEST(calls_end_with_the_stream),
        TEST(a_call_does_not_outlive_the_plugin),
        TEST(a_call_on_a_lost_endpoint_is_unavailable),
        TEST(the_end_of_a_call_may_cancel_another),
        TEST(close_ends_everything_without_a_word),
        TEST(close_may_come_at_any_step),
        TEST(endpoints_of_one_socket_are_separate),
        TEST(who_registers_once_dialled_has_his_calls_taken_back),
        TEST(who_registers_elsewhere_has_his_first_stream_ended),
        TEST(who_registers_once_waited_for_is_heard_on_his_first_stream),
        TEST(who_answers_beside_a_slow_call_keeps_his_first_stream),
        TEST(goes_on_elsewhere_when_the_first_connection_is_lost),
    };

    setenv("NOTIFY_SOCKET", "/nobody", 1); /* the first one to be told takes a descriptor, kept */
    assert_true(service_manager_notify("READY=1") < 0);
    unsetenv("NOTIFY_SOCKET");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
