/* shim/core/: core, checkpoint, plugins, built-in devices and runtime, all real, bound
 * together. */
#include "tests/unit/plugin_fixture.h"
#include "tests/unit/runtime_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cri-proto/methods.h"
#include "devicemgr/store/store.h"
#include "shim/boot_clock.h"
#include "shim/core/host.h"

#define GPU "v.com/gpu"
#define EXITED RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED
#define RUNNING RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING

struct fixture {
    struct world *world;
    struct config config;
    char state_dir[64], plugin_dir[64], registration[96], listen[96];
    char *namespaces[1];
    struct runtime runtime; /* does not serve yet */
    struct plugin plugin;   /* neither */
    struct host *host;      /* NULL while it does not run */
    bool stopped;
    bool ready;
    unsigned delayed;
    char error[STORE_ERROR_BYTES_MAX];

    unsigned verdicts;
    uint64_t create;
    int code;
    char message[1024];
    char env[64];     /* DEVICE of the options */
    char device[128]; /* "host path>container path" of their device */
};

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    const V1beta1__ContainerAllocateResponse *options = verdict->options;
    struct fixture *f = user;

    f->verdicts++;
    f->create = create;
    f->code = verdict->code;
    f->env[0] = f->device[0] = '\0';
    snprintf(f->message, sizeof f->message, "%s", verdict->message ? verdict->message : "");
    if (options && options->n_envs > 0)
        snprintf(f->env, sizeof f->env, "%s", options->envs[0]->value);
    if (options && options->n_devices > 0)
        snprintf(f->device, sizeof f->device, "%s>%s", options->devices[0]->host_path,
                 options->devices[0]->container_path);
}

static void on_ready(void *user)
{
    struct fixture *f = user;

    f->ready = true;
}

static void on_delayed(void *user)
{
    struct fixture *f = user;

    assert_false(f->ready);
    f->delayed++;
}

static const struct host_ops OPS = {
    .verdict = on_verdict, .ready = on_ready, .delayed = on_delayed};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->world->dir);
    snprintf(f->plugin_dir, sizeof f->plugin_dir, "%s/plugins", f->world->dir);
    snprintf(f->listen, sizeof f->listen, "%s/cri.sock", f->state_dir);
    snprintf(f->registration, sizeof f->registration, "%s/kubelet.sock", f->plugin_dir);
    f->namespaces[0] = (char *)"*";
    f->config = (struct config){
        .runtime_endpoint = f->world->path,
        .state_dir = f->state_dir,
        .listen = f->listen,
        .plugin_dir = f->plugin_dir,
        .grace_ms = 60000,
        .hold_ms = 15000,
        .allocate_timeout_ms = 5000,
        .prestart_timeout_ms = 5000,
        .annotations_enabled = true,
        .annotation_namespaces = f->namespaces,
        .annotation_namespaces_len = 1,
    };
    *state = f;
    return 0;
}

static void on_report(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    fail_msg("%s", text);
}

static void begin(struct fixture *f)
{
    f->ready = false;
    f->delayed = 0;
    f->host = host_start(&f->world->loop, &f->config, NULL, &OPS, f);
    assert_false(f->ready);
}

static void start(struct fixture *f)
{
    begin(f);
    WAIT(f->world, f->ready);
    assert_true(host_ready(f->host));
}

static void on_stopped(void *user)
{
    struct fixture *f = user;

    f->stopped = true;
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    host_stop(f->host, on_stopped, f);
    f->host = NULL;
    assert_false(f->stopped);
    WAIT(f->world, f->stopped);
}

static void clean(struct fixture *f)
{
    remove_dir(f->state_dir);
    remove_dir(f->plugin_dir);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    if (f->host)
        stop(f);
    plugin_stop(&f->plugin);
    runtime_stop(&f->runtime);
    clean(f);
    err = world_free(f->world);
    free(f);
    return err;
}

static void run_pod(struct fixture *f, const char *sandbox, const char *uid)
{
    const struct devicemgr_sandbox run = {
        .id = sandbox, .pod_uid = uid, .pod_namespace = "default", .pod_name = uid, .ready = true};

    devicemgr_sandbox_ran(host_core(f->host), boot_now_ms(), &run);
    host_kick(f->host);
}

/* A create of container "main" with one annotation, on the container if it is a token. */
static void create(struct fixture *f, uint64_t number, const char *sandbox, const char *uid,
                   const char *key, const char *value)
{
    const struct devicemgr_annotation annotation = {key, value};
    bool token = value[0] == '{';
    const struct devicemgr_create request = {
        .sandbox_id = sandbox,
        .pod_uid = uid,
        .pod_namespace = "default",
        .pod_name = uid,
        .container = "main",
        .container_annotations = &annotation,
        .container_annotations_len = token ? 1 : 0,
        .pod_annotations = &annotation,
        .pod_annotations_len = token ? 0 : 1,
        .deadline_ms = UINT64_MAX,
    };

    assert_true(devicemgr_create(host_core(f->host), boot_now_ms(), number, &request));
    host_kick(f->host);
}

static void request_gpu(struct fixture *f, uint64_t number, const char *sandbox, const char *uid)
{
    create(f, number, sandbox, uid, "devices.cri-device-shim/main", GPU "=1");
}

static void token_gpu(struct fixture *f, uint64_t number, const char *sandbox, const char *uid)
{
    create(f, number, sandbox, uid, "devices.cri-device-shim/v.com_gpu",
           "{\"resource\":\"" GPU "\",\"ids\":[\"g0\"]}");
}

static void answered(struct fixture *f, uint64_t number, const char *container)
{
    devicemgr_create_answered(host_core(f->host), boot_now_ms(), number, container);
    host_kick(f->host);
}

/* A plugin with one healthy device, known to the core. */
static void start_plugin(struct fixture *f)
{
    plugin_come_listing(&f->plugin, f->world, f->plugin_dir, "gpu.sock", GPU, "g0");
}

/* The n-th create, and its verdict. */
static void token_decided(struct fixture *f, uint64_t number, const char *sandbox, const char *uid)
{
    token_gpu(f, number, sandbox, uid);
    WAIT(f->world, f->verdicts == number);
}

/* Pod u1's container "main" has it. */
static void give_gpu(struct fixture *f)
{
    world_settle(f->world); /* the lists are known: however short hold is */
    run_pod(f, "s1", "u1");
    token_decided(f, 1, "s1", "u1");
    assert_string_equal(f->message, "");
    answered(f, 1, "c1");
}

/* Until the first list of the runtime is known. */
static void start_listed(struct fixture *f)
{
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.container_lists == 1);
}

/* A runtime that lists pod u1: before its first list the core gives nothing out. */
static void add_pod(struct fixture *f)
{
    f->runtime.pods[0].id = "s1";
    f->runtime.pods[0].uid = f->runtime.pods[0].name = "u1";
    f->runtime.pods[0].ready = true;
    f->runtime.pods_len = 1;
}

static void start_with_pod(struct fixture *f)
{
    add_pod(f);
    start_listed(f);
}

static int register_plugin(struct fixture *f, const char *resource)
{
    return plugin_register(f->world, f->registration, "gpu.sock", resource, f->message,
                           sizeof f->message);
}

static void the_clock_is_the_boots(void **state)
{
    struct timespec now;
    uint64_t before = boot_now_ms();

    (void)state;
    clock_gettime(CLOCK_BOOTTIME, &now);
    assert_in_range((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, before,
                    boot_now_ms());
}

static void gives_a_container_a_plugins_device(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "zero";
    f->plugin.pre_start = true;
    f->plugin.prefers = true;
    runtime_serve(&f->runtime, f->world);
    start(f);
    start_plugin(f);
    run_pod(f, "s1", "u1");
    request_gpu(f, 1, "s1", "u1"); /* waits for the list, if that is still under way */
    WAIT(f->world, f->verdicts == 1);
    assert_int_equal(f->create, 1);
    assert_string_equal(f->message, "");
    assert_int_equal(f->code, RPC_OK);
    assert_string_equal(f->env, "zero");
    assert_int_equal(f->plugin.allocates, 1);
    assert_int_equal(f->plugin.prestarts, 1);
    assert_string_equal(f->plugin.ids, "g0");
}

static void gives_a_container_a_built_in_device(void **state)
{
    static struct config_device device = {.resource = (char *)"v.com/null",
                                          .path = (char *)"/dev/null",
                                          .container_path = (char *)"/dev/nix",
                                          .permissions = (char *)"rw",
                                          .count = 2};
    struct fixture *f = *state;

    f->config.devices = &device;
    f->config.devices_len = 1;
    add_pod(f);
    runtime_serve(&f->runtime, f->world);
    start(f);
    wait_turn(f->world);
    run_pod(f, "s1", "u1");
    create(f, 1, "s1", "u1", "devices.cri-device-shim/main", "v.com/null=1");
    WAIT(f->world, f->verdicts == 1);
    assert_string_equal(f->message, "");
    assert_string_equal(f->device, "/dev/null>/dev/nix");
}

/* What the plugin was told once is not asked again after a restart, and its socket is dialled
 * without it having to register anew. */
static void remembers_over_a_restart(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "zero";
    start_with_pod(f);
    start_plugin(f);
    give_gpu(f);
    stop(f);
    WAIT(f->world, !f->plugin.stream);

    start(f);
    WAIT(f->world, f->plugin.stream);
    plugin_list(&f->plugin, "g0");
    token_decided(f, 2, "s1", "u1");
    assert_string_equal(f->message, "");
    assert_string_equal(f->env, "zero");
    assert_int_equal(f->plugin.allocates, 1);
}

static void refuses_while_the_plugin_is_away(void **state)
{
    struct fixture *f = *state;

    f->config.hold_ms = 20;
    f->plugin.env = "zero";
    start_with_pod(f);
    start_plugin(f);
    give_gpu(f);
    plugin_stop(&f->plugin);
    world_settle(f->world);
    token_gpu(f, 2, "s1", "u1");
    assert_int_equal(f->verdicts, 1);
    WAIT(f->world, f->verdicts == 2); /* by the timer, at the end of hold */
    assert_int_equal(f->code, RPC_UNAVAILABLE);
    assert_non_null(strstr(f->message, GPU));

    /* Back: a held create goes on at once. */
    stop(f);
    f->config.hold_ms = 15000;
    start(f);
    run_pod(f, "s1", "u1");
    token_gpu(f, 3, "s1", "u1");
    world_settle(f->world);
    assert_int_equal(f->verdicts, 2);
    start_plugin(f);
    WAIT(f->world, f->verdicts == 3);
    assert_string_equal(f->message, "");
    assert_string_equal(f->env, "zero");
}

static void follows_the_settings_of_one_resource(void **state)
{
    static struct config_resource own = {.name = (char *)GPU,
                                         .grace_ms = 60000,
                                         .hold_ms = 0,
                                         .allocate_timeout_ms = 5000,
                                         .exclusive = true};
    struct fixture *f = *state;

    f->config.resources = &own;
    f->config.resources_len = 1;
    start_with_pod(f);
    plugin_come(&f->plugin, f->world, f->plugin_dir, "gpu.sock", GPU);
    run_pod(f, "s1", "u1"); /* the plugin has not listed anything */
    token_gpu(f, 1, "s1", "u1");
    assert_int_equal(f->verdicts, 1); /* not held at all */
    assert_int_equal(f->code, RPC_UNAVAILABLE);
}

static void the_grace_ends_by_the_timer(void **state)
{
    struct fixture *f = *state;

    f->config.grace_ms = 30;
    f->config.hold_ms = 20;
    start_with_pod(f);
    start_plugin(f);
    give_gpu(f);
    plugin_stop(&f->plugin);
    world_settle(f->world);
    /* Refused for now until it is gone for good. */
    for (uint64_t number = 2; f->code != RPC_FAILED_PRECONDITION; number++)
        token_decided(f, number, "s1", "u1");
}

static void asks_the_runtime_before_it_refuses(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "zero";
    start_listed(f);
    start_plugin(f);
    run_pod(f, "s2", "u2");
    give_gpu(f);

    f->runtime.containers[0].id = "c1";
    f->runtime.containers[0].pod = "s1";
    f->runtime.containers[0].name = "main";
    f->runtime.containers[0].state = RUNNING;
    f->runtime.containers_len = 1;
    token_decided(f, 2, "s2", "u2");
    assert_int_equal(f->code, RPC_UNAVAILABLE);
    assert_string_equal(f->runtime.filter, "c1");
    f->runtime.containers[0].state = EXITED;
    token_decided(f, 3, "s2", "u2");
    assert_string_equal(f->message, ""); /* it is over: handed on */
}

static void tells_a_plugin_why_not(void **state)
{
    struct fixture *f = *state;

    f->plugin.options_code = RPC_INTERNAL;
    start(f);
    assert_int_equal(register_plugin(f, "gpu"), RPC_UNKNOWN);
    assert_string_equal(f->message, "the ResourceName \"gpu\" is invalid");
    plugin_serve_in(&f->plugin, f->world, f->plugin_dir, "gpu.sock");
    assert_int_equal(register_plugin(f, GPU), RPC_UNKNOWN);
    assert_string_equal(f->message,
                        "failed to get device plugin options: INTERNAL: the plugin says no");
}

/* GetPreferredAllocation: the fixture's plugin prefers the last one. */
static void lets_the_plugin_prefer(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "one";
    f->plugin.prefers = true;
    start_with_pod(f);
    start_plugin(f);
    give_gpu(f); /* so the first list is known */
    plugin_list(&f->plugin, "g0,g1,g2");
    world_settle(f->world);
    run_pod(f, "s2", "u2");
    request_gpu(f, 2, "s2", "u2");
    WAIT(f->world, f->verdicts == 2);
    assert_string_equal(f->message, "");
    assert_int_equal(f->plugin.prefers_seen, 1);
    assert_string_equal(f->plugin.ids, "g2");
}

static void the_newest_registration_wins(void **state)
{
    struct plugin newer = {.env = "newer"};
    struct fixture *f = *state;

    f->plugin.env = "zero";
    start_with_pod(f);
    start_plugin(f);
    run_pod(f, "s1", "u1");
    plugin_come(&newer, f->world, f->plugin_dir, "new.sock", GPU);
    WAIT(f->world, newer.stream && !f->plugin.stream);
    plugin_list(&newer, "g0");
    world_settle(f->world);
    token_decided(f, 1, "s1", "u1");
    assert_string_equal(f->message, "");
    assert_string_equal(f->env, "newer");
    stop(f);
    plugin_stop(&newer);
}

static void forgets_a_registration_whose_caller_is_gone(void **state)
{
    static const struct rpc_channel_ops channel_ops = {0};
    static const struct rpc_call_ops call_ops = {0};
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    struct rpc_channel *channel;
    struct fixture *f = *state;

    f->plugin.hold = true;
    start(f);
    plugin_serve_in(&f->plugin, f->world, f->plugin_dir, "gpu.sock");
    request.version = (char *)DEVICEPLUGIN_VERSION;
    request.endpoint = (char *)"gpu.sock";
    request.resource_name = (char *)GPU;
    assert_int_equal(
        rpc_channel_open(&f->world->loop, f->registration, &channel_ops, NULL, &channel), 0);
    assert_non_null(rpc_channel_call(channel, DEVICEPLUGIN_REGISTER, &request.base,
                                     &v1beta1__empty__descriptor, false, 0, &call_ops, NULL));
    WAIT(f->world, f->plugin.held);
    rpc_channel_close(channel);
    world_settle(f->world);
}

/* What the plugin is still busy with is given up with the create. */
static void gives_up_what_a_cancelled_create_needed(void **state)
{
    struct fixture *f = *state;

    start_with_pod(f);
    start_plugin(f);
    world_settle(f->world);
    f->plugin.hold = true;
    run_pod(f, "s1", "u1");
    token_gpu(f, 1, "s1", "u1");
    WAIT(f->world, f->plugin.held);
    devicemgr_create_cancelled(host_core(f->host), boot_now_ms(), 1);
    host_kick(f->host);
    stop(f);
    assert_int_equal(f->verdicts, 0);
}

/* Says that a record makes no sense, and that the boot is another. */
static void starts_with_a_record_that_makes_no_sense(void **state)
{
    static const enum config_refresh refreshes[] = {CONFIG_REFRESH_PLUGIN, CONFIG_REFRESH_NEVER};
    struct devicemgr_record record = {.kind = DEVICEMGR_RECORD_ALLOCATION,
                                      .key = {"u1", "main", GPU},
                                      .value = "\xff\xff",
                                      .value_bytes = 2};
    struct store_options options = {.boot_id = "another boot", .report = on_report};
    struct store *store;
    struct fixture *f = *state;

    options.dir = f->state_dir;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(store_open(&options, &store, f->error, sizeof f->error), 0);
        assert_int_equal(store_commit(store, &record, 1, f->error, sizeof f->error), 0);
        store_close(store);
        f->config.refresh_options = refreshes[i];
        start(f);
        stop(f);
    }
}

static void lists_the_runtime_on_request(void **state)
{
    struct fixture *f = *state;

    start_listed(f);
    world_settle(f->world);
    host_list_runtime(f->host);
    WAIT(f->world, f->runtime.container_lists == 2);
}

/* A create without any word of a device. */
static bool create_plain(struct fixture *f, uint64_t number)
{
    const struct devicemgr_create request = {.sandbox_id = "s1",
                                             .pod_uid = "u1",
                                             .pod_namespace = "default",
                                             .pod_name = "u1",
                                             .container = "plain",
                                             .deadline_ms = UINT64_MAX};

    return devicemgr_create(host_core(f->host), boot_now_ms(), number, &request);
}

/* What it says who holds what stands in rows that nobody has read. Says so. */
static void a_checkpoint_that_cannot_be_read_is_waited_for(void **state)
{
    struct store_options options = {.boot_id = "another boot", .report = on_report};
    char path[128], moved[128];
    struct store *other;
    struct fixture *f = *state;

    f->plugin.env = "zero";
    start_with_pod(f);
    start_plugin(f);
    give_gpu(f);
    stop(f);

    options.dir = f->state_dir;
    assert_int_equal(store_open(&options, &other, f->error, sizeof f->error), 0);
    begin(f);
    assert_false(create_plain(f, 2));
    token_gpu(f, 3, "s1", "u1"); /* before the first try is over */
    assert_int_equal(f->verdicts, 2);
    assert_int_equal(f->code, RPC_UNAVAILABLE);
    assert_non_null(strstr(f->message, "cannot be read: the checkpoint is being read"));
    WAIT(f->world, f->delayed);
    assert_false(create_plain(f, 4));
    token_gpu(f, 5, "s1", "u1");
    request_gpu(f, 6, "s1", "u1");
    assert_int_equal(f->verdicts, 4);
    assert_int_equal(f->code, RPC_UNAVAILABLE);
    assert_non_null(strstr(f->message, GPU));
    assert_non_null(strstr(f->message, "cannot be read: "));
    assert_non_null(strstr(f->message, "another process has it open"));
    assert_int_equal(access(f->registration, F_OK), -1);

    /* for another reason, which only a later try can tell */
    snprintf(path, sizeof path, "%s/" STORE_FILE, f->state_dir);
    snprintf(moved, sizeof moved, "%s/moved", f->state_dir);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    for (uint64_t number = 7; !strstr(f->message, "unable to open"); number++) {
        wait_turn(f->world);
        token_gpu(f, number, "s1", "u1");
    }
    f->verdicts = 4;
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(moved, path), 0);
    store_close(other);
    WAIT(f->world, f->ready);
    assert_int_equal(f->delayed, 1);
    WAIT(f->world, f->plugin.stream);
    plugin_list(&f->plugin, "g0");
    run_pod(f, "s1", "u1");
    token_decided(f, 5, "s1", "u1");
    assert_string_equal(f->message, "");
    assert_string_equal(f->env, "zero");
    assert_int_equal(f->plugin.allocates, 1); /* it is what was given then */
}

/* Says so. */
static void stops_with_a_checkpoint_that_cannot_be_read(void **state)
{
    struct store_options options = {.boot_id = "another boot", .report = on_report};
    struct store *other;
    struct fixture *f = *state;

    options.dir = f->state_dir;
    assert_int_equal(store_open(&options, &other, f->error, sizeof f->error), 0);
    begin(f);
    WAIT(f->world, f->delayed);
    host_list_runtime(f->host); /* the relay found the runtime back */
    stop(f);
    store_close(other);
    assert_false(f->ready);
}

/* Says errors about the checkpoint. */
static void starts_with_a_damaged_checkpoint(void **state)
{
    struct fixture *f = *state;
    char path[128];
    FILE *file;

    assert_int_equal(mkdir(f->state_dir, 0700), 0);
    snprintf(path, sizeof path, "%s/" STORE_FILE, f->state_dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is no database, and it never was one", file);
    fclose(file);
    runtime_serve(&f->runtime, f->world);
    start(f);
    WAIT(f->world, f->runtime.container_lists == 2); /* what is lost may be in the making */
    assert_non_null(f->runtime.events);              /* it is no poll */
}

static void stops_with_everything_under_way(void **state)
{
    struct fixture *f = *state;

    f->plugin.env = "zero";
    start_with_pod(f);
    world_settle(f->world);
    f->runtime.hold = true;
    host_list_runtime(f->host);
    WAIT(f->world, f->runtime.held);
    start_plugin(f); /* its commit is under way */
    f->plugin.hold = true;
    run_pod(f, "s1", "u1");
    token_gpu(f, 1, "s1", "u1");
    WAIT(f->world, f->plugin.held);
    stop(f);
    assert_int_equal(f->verdicts, 0);
    plugin_stop(&f->plugin);
    runtime_stop(&f->runtime);
    clean(f);

    begin(f); /* before the first turn */
    stop(f);
    start(f);
    stop(f);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_is_the_boots),
        TEST(gives_a_container_a_plugins_device),
        TEST(gives_a_container_a_built_in_device),
        TEST(remembers_over_a_restart),
        TEST(refuses_while_the_plugin_is_away),
        TEST(follows_the_settings_of_one_resource),
        TEST(the_grace_ends_by_the_timer),
        TEST(asks_the_runtime_before_it_refuses),
        TEST(tells_a_plugin_why_not),
        TEST(lets_the_plugin_prefer),
        TEST(the_newest_registration_wins),
        TEST(forgets_a_registration_whose_caller_is_gone),
        TEST(gives_up_what_a_cancelled_create_needed),
        TEST(starts_with_a_record_that_makes_no_sense),
        TEST(lists_the_runtime_on_request),
        TEST(a_checkpoint_that_cannot_be_read_is_waited_for),
        TEST(stops_with_a_checkpoint_that_cannot_be_read),
        TEST(starts_with_a_damaged_checkpoint),
        TEST(stops_with_everything_under_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
