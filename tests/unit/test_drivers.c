/* shim/core/drivers.c: a host whose plugin watcher, DRA drivers and core are real. */
#include "tests/unit/driver_fixture.h"
#include "tests/unit/plugin_fixture.h"
#include "tests/unit/registering.h"
#include "tests/unit/runtime_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "devicemgr/dra.h"
#include "shim/boot_clock.h"
#include "shim/core/drivers.h"
#include "shim/core/host.h"
#include "shim/core/host_state.h"

#define GPU "v.com/gpu"
#define DRIVER "gpu.example.com"

struct fixture {
    struct world *world;
    struct config config;
    char state_dir[64], plugin_dir[64], registry_dir[64], listen[96];
    struct runtime runtime;
    struct host *host;
    struct driver driver, second;
    struct registering plugin, other;
    struct plugin device_plugin;
    bool ready, stopped;
    unsigned done, healths;
    uint64_t health_of, forgotten; /* instances; 0: none */
    uint64_t number;
    int code;
    char message[512];
    size_t response_bytes;
    bool kicks; /* when a claim is done */
};

static void on_verdict(void *user, uint64_t create, const struct devicemgr_verdict *verdict)
{
    (void)user;
    (void)create;
    (void)verdict;
    fail_msg("nobody has asked for a device");
}

static void on_ready(void *user)
{
    ((struct fixture *)user)->ready = true;
}

static void on_claim_done(void *user, uint64_t number, const struct devicemgr_claim_done *done)
{
    struct fixture *f = user;

    f->done++;
    f->number = number;
    f->code = done->code;
    snprintf(f->message, sizeof f->message, "%s", done->message ? done->message : "");
    f->response_bytes = done->response_bytes;
    if (f->kicks)
        host_kick(f->host);
}

static void on_health(void *user, const char *driver, uint64_t instance,
                      const DraHealth__V1alpha1__NodeWatchResourcesResponse *health)
{
    struct fixture *f = user;

    assert_string_equal(driver, DRIVER);
    if (!health) {
        f->forgotten = instance;
        return;
    }
    assert_int_equal(health->n_devices, 1);
    f->healths++;
    f->health_of = instance;
}

static const struct host_ops OPS = {.verdict = on_verdict,
                                    .ready = on_ready,
                                    .claim_done = on_claim_done,
                                    .driver_health = on_health};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->world = world_new();
    snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->world->dir);
    snprintf(f->plugin_dir, sizeof f->plugin_dir, "%s/plugins", f->world->dir);
    snprintf(f->registry_dir, sizeof f->registry_dir, "%s/registry", f->world->dir);
    snprintf(f->listen, sizeof f->listen, "%s/cri.sock", f->state_dir);
    f->config = (struct config){.runtime_endpoint = f->world->path,
                                .state_dir = f->state_dir,
                                .listen = f->listen,
                                .plugin_dir = f->plugin_dir,
                                .grace_ms = 60000,
                                .hold_ms = 15000,
                                .allocate_timeout_ms = 5000,
                                .prestart_timeout_ms = 5000,
                                .dra = {.enabled = true,
                                        .registry_dir = f->registry_dir,
                                        .kubelet_registry_dir = (char *)"",
                                        .call_timeout_ms = 5000}};
    f->plugin = (struct registering){.type = "DRAPlugin",
                                     .name = DRIVER,
                                     .endpoint = f->driver.path,
                                     .versions = {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"},
                                     .versions_len = 2};
    *state = f;
    return 0;
}

static void start(struct fixture *f)
{
    f->ready = false;
    f->host = host_start(&f->world->loop, &f->config, NULL, &OPS, f);
    WAIT(f->world, f->ready && access(f->registry_dir, F_OK) == 0);
}

static void on_stopped(void *user)
{
    ((struct fixture *)user)->stopped = true;
}

static void stop(struct fixture *f)
{
    f->stopped = false;
    host_stop(f->host, on_stopped, f);
    f->host = NULL;
    WAIT(f->world, f->stopped);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int err;

    if (f->host)
        stop(f);
    registering_close(&f->plugin);
    registering_close(&f->other);
    driver_end(&f->driver);
    driver_end(&f->second);
    plugin_stop(&f->device_plugin);
    runtime_stop(&f->runtime);
    remove_dir(f->registry_dir);
    remove_dir(f->state_dir);
    remove_dir(f->plugin_dir);
    err = world_free(f->world);
    free(f);
    return err;
}

static void serve_registration(struct fixture *f, struct registering *plugin, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", f->registry_dir, name);
    registering_serve(plugin, f->world, path);
}

static void come(struct fixture *f)
{
    driver_serve(&f->driver, f->world, "dra.sock");
    serve_registration(f, &f->plugin, "gpu-reg.sock");
    WAIT(f->world, f->plugin.registered);
}

static const struct devicemgr_batch ALONE = {0};
static const struct devicemgr_claim CLAIM = {"default", "claim", "uid-1"};

static void prepare(struct fixture *f, uint64_t number)
{
    devicemgr_claim_prepare(host_core(f->host), boot_now_ms(), number, ALONE, DRIVER, &CLAIM);
    host_kick(f->host);
}

static void unprepare(struct fixture *f, uint64_t number)
{
    devicemgr_claim_unprepare(host_core(f->host), boot_now_ms(), number, ALONE, DRIVER, &CLAIM);
    host_kick(f->host);
}

static void a_driver_prepares_and_unprepares(void **state)
{
    struct fixture *f = *state;

    start(f);
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->done == 1);
    assert_string_equal(f->message, "");
    assert_int_equal(f->code, 0);
    assert_int_equal(f->number, 1);
    assert_int_equal(f->response_bytes, 9);
    assert_string_equal(f->driver.claim, "default/claim uid-1");
    assert_string_equal(f->driver.service, "v1");
    unprepare(f, 2);
    WAIT(f->world, f->done == 2);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->driver.unprepares, 1);
}

static void ask(struct fixture *f, uint64_t number, struct devicemgr_batch batch, const char *uid)
{
    const struct devicemgr_claim claim = {"default", "claim", uid};

    devicemgr_claim_prepare(host_core(f->host), boot_now_ms(), number, batch, DRIVER, &claim);
}

static void a_batch_goes_out_in_one(void **state)
{
    struct fixture *f = *state;

    start(f);
    f->driver.error = "no such device";
    come(f);
    ask(f, 1, (struct devicemgr_batch){1, 0}, "uid-1");
    ask(f, 2, (struct devicemgr_batch){1, 1}, "uid-2");
    host_kick(f->host);
    WAIT(f->world, f->done == 2);
    assert_int_equal(f->driver.prepares, 1);
    assert_string_equal(f->driver.claim, "default/claim uid-1, default/claim uid-2");
    f->driver.error = NULL;
    f->kicks = true; /* between the two: one without a uid is refused */
    ask(f, 3, (struct devicemgr_batch){3, 0}, "uid-1");
    ask(f, 4, ALONE, "");
    ask(f, 5, (struct devicemgr_batch){3, 1}, "uid-2");
    host_kick(f->host);
    WAIT(f->world, f->done == 5);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->driver.prepares, 2);
    assert_string_equal(f->driver.claim, "default/claim uid-1, default/claim uid-2");
}

static void what_it_says_reaches_who_asked(void **state)
{
    struct fixture *f = *state;

    start(f);
    f->driver.error = "no such device";
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->done == 1);
    assert_int_equal(f->code, RPC_UNKNOWN);
    assert_non_null(strstr(f->message, "no such device"));
}

/* A call that it was at goes out anew to the one that comes back; who waits sees no error. */
static void one_that_dies_in_a_call_is_waited_for(void **state)
{
    struct fixture *f = *state;

    start(f);
    f->driver.hold = true;
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->driver.held);
    driver_end(&f->driver);
    f->driver.hold = false;
    world_settle(f->world);
    assert_int_equal(f->done, 0);
    driver_serve(&f->driver, f->world, "dra.sock");
    WAIT(f->world, f->done == 1);
    assert_string_equal(f->message, "");
    assert_int_equal(f->driver.prepares, 2);
}

static void one_that_hangs_has_the_time_that_the_settings_say(void **state)
{
    struct fixture *f = *state;

    f->config.dra.call_timeout_ms = 50;
    start(f);
    f->driver.hold = true;
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->done == 1);
    assert_int_equal(f->code, RPC_DEADLINE_EXCEEDED);
}

static void one_whose_services_do_not_do_is_refused(void **state)
{
    struct fixture *f = *state;
    char expected[512];

    start(f);
    f->plugin.versions[0] = "v9.DRAPlugin";
    f->plugin.versions_len = 1;
    driver_serve(&f->driver, f->world, "dra.sock");
    serve_registration(f, &f->plugin, "gpu-reg.sock"); /* logs a warning */
    WAIT(f->world, f->plugin.notified == 1);
    snprintf(expected, sizeof expected,
             "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC "
             "versions of DRA driver plugin " DRIVER " at endpoint %s: none of services supported",
             f->driver.path);
    assert_memory_equal(f->plugin.error, expected, strlen(expected));
}

/* The same endpoint twice; when the first has gone the second may have it. */
static void one_that_is_there_already_is_refused(void **state)
{
    struct fixture *f = *state;
    char expected[512];

    start(f);
    come(f);
    f->other = f->plugin;
    f->other.server = NULL;
    f->other.registered = false;
    f->other.notified = 0;
    serve_registration(f, &f->other, "other-reg.sock"); /* logs a warning */
    WAIT(f->world, f->other.notified == 1);
    snprintf(expected, sizeof expected,
             "RegisterPlugin error -- plugin registration failed with err: endpoint %s already "
             "registered for DRA driver plugin " DRIVER,
             f->driver.path);
    assert_string_equal(f->other.error, expected);
    registering_close(&f->plugin);
    WAIT(f->world, f->other.registered);
}

/* A rolling update, both ways: the newest that is there is called, then the one that is left. */
static void two_instances(void **state)
{
    struct fixture *f = *state;

    start(f);
    come(f);
    driver_serve(&f->second, f->world, "dra-2.sock");
    f->other = f->plugin;
    f->other.server = NULL;
    f->other.registered = false;
    f->other.endpoint = f->second.path;
    serve_registration(f, &f->other, "gpu-2-reg.sock");
    WAIT(f->world, f->other.registered);
    prepare(f, 1);
    WAIT(f->world, f->done == 1);
    assert_int_equal(f->driver.prepares + f->second.prepares, 1);
    registering_close(&f->other);
    driver_end(&f->second);
    world_settle(f->world);
    unprepare(f, 2);
    WAIT(f->world, f->done == 2);
    assert_string_equal(f->message, "");
    assert_int_equal(f->driver.unprepares, 1);
}

static void its_health_is_told(void **state)
{
    struct fixture *f = *state;

    start(f);
    come(f);
    WAIT(f->world, f->healths == 1);
    assert_int_equal(f->forgotten, 0);
    registering_close(&f->plugin);
    WAIT(f->world, f->forgotten != 0);
    assert_int_equal(f->forgotten, f->health_of);
}

static void one_whose_socket_goes_is_not_called_any_more(void **state)
{
    struct fixture *f = *state;

    start(f);
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->done == 1);
    WAIT(f->world, f->driver.stream);
    registering_close(&f->plugin);
    WAIT(f->world, !f->driver.stream); /* its connection has ended */
    unprepare(f, 2);
    world_settle(f->world);
    assert_int_equal(f->driver.unprepares, 0);
    devicemgr_claim_cancelled(host_core(f->host), boot_now_ms(), 2);
    host_kick(f->host);
}

static void a_device_plugin_is_registered_as_by_register(void **state)
{
    struct fixture *f = *state;
    char path[128];

    start(f);
    plugin_serve(&f->device_plugin, f->world, "gpu.sock");
    snprintf(path, sizeof path, "%s", f->device_plugin.path);
    f->plugin = (struct registering){.type = "DevicePlugin",
                                     .name = GPU,
                                     .endpoint = path,
                                     .versions = {"v1beta1"},
                                     .versions_len = 1};
    serve_registration(f, &f->plugin, "gpu-reg.sock");
    WAIT(f->world, f->plugin.registered && f->device_plugin.stream);
    /* It is there as long as its list, whatever becomes of the socket by which it came. */
    registering_close(&f->plugin);
    world_settle(f->world);
    assert_non_null(f->device_plugin.stream);
}

static void a_device_plugin_that_is_not_there_is_told_so(void **state)
{
    static const char words[] =
        "RegisterPlugin error -- plugin registration failed with err: failed to dial device plugin";
    struct fixture *f = *state;

    start(f);
    f->plugin = (struct registering){.type = "DevicePlugin",
                                     .name = GPU,
                                     .endpoint = "/dev/null",
                                     .versions = {"v1beta1"},
                                     .versions_len = 1};
    serve_registration(f, &f->plugin, "gpu-reg.sock"); /* logs warnings */
    WAIT(f->world, f->plugin.notified == 1);
    assert_memory_equal(f->plugin.error, words, sizeof words - 1);
}

static void stops_with_everything_under_way(void **state)
{
    struct fixture *f = *state;

    start(f);
    f->driver.hold = true;
    come(f);
    prepare(f, 1);
    WAIT(f->world, f->driver.held);
    f->other.mute = true;
    serve_registration(f, &f->other, "mute-reg.sock");
    WAIT(f->world, f->other.asked == 1);
    stop(f);
    assert_int_equal(f->done, 0);
}

/* As behind a checkpoint that takes long to take up. */
static void its_first_second_begins_when_it_does(void **state)
{
    struct fixture *f = *state;
    uv_loop_t *loop = &f->world->loop;
    struct host host = {.loop = loop, .config = &f->config};
    uint64_t looked_ms = uv_now(loop), began_ms;
    struct drivers *drivers;

    while (uv_hrtime() / 1000000 < looked_ms + 50)
        usleep(1000);
    began_ms = uv_hrtime() / 1000000;
    drivers = drivers_start(&host);
    assert_true(uv_now(loop) >= began_ms);
    drivers_stop(drivers, on_stopped, f);
    WAIT(f->world, f->stopped);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_driver_prepares_and_unprepares),
        TEST(a_batch_goes_out_in_one),
        TEST(what_it_says_reaches_who_asked),
        TEST(one_that_dies_in_a_call_is_waited_for),
        TEST(one_that_hangs_has_the_time_that_the_settings_say),
        TEST(one_whose_services_do_not_do_is_refused),
        TEST(one_that_is_there_already_is_refused),
        TEST(two_instances),
        TEST(its_health_is_told),
        TEST(one_whose_socket_goes_is_not_called_any_more),
        TEST(a_device_plugin_is_registered_as_by_register),
        TEST(a_device_plugin_that_is_not_there_is_told_so),
        TEST(stops_with_everything_under_way),
        TEST(its_first_second_begins_when_it_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
