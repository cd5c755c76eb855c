/* shim/registry/registry.c: plugins that register by a socket in its directory. */
#include "tests/unit/registering.h"
#include "tests/unit/waiting.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/registry/registry.h"

struct fixture {
    struct world *world;
    char directory[64], kubelet[64];
    struct registry *registry;
    struct registering plugin;
    char events[512]; /* "driver NAME ENDPOINT SERVICES;" "plugin ..." "gone;" */
    uint64_t number, gone;
    uid_t uid;
    bool later; /* answered by the test */
    const char *refusal;
    bool stopped;
};

static void note(struct fixture *f, const char *text)
{
    strncat(f->events, text, sizeof f->events - strlen(f->events) - 1);
}

static void take(struct fixture *f, uint64_t registration, const char *what, const char *name,
                 const char *endpoint)
{
    f->number = registration;
    note(f, what);
    note(f, name);
    note(f, " ");
    note(f, endpoint);
}

static void on_driver(void *user, uint64_t registration, const char *name, const char *endpoint,
                      const char *const *services, size_t services_len)
{
    struct fixture *f = user;

    take(f, registration, "driver ", name, endpoint);
    for (size_t i = 0; i < services_len; i++) {
        note(f, " ");
        note(f, services[i]);
    }
    note(f, ";");
    if (!f->later)
        registry_answer(f->registry, registration, f->refusal);
}

static void on_plugin(void *user, uint64_t registration, const char *resource, const char *endpoint,
                      uid_t uid)
{
    struct fixture *f = user;

    f->uid = uid;
    take(f, registration, "plugin ", resource, endpoint);
    note(f, ";");
    if (!f->later)
        registry_answer(f->registry, registration, f->refusal);
}

static void on_gone(void *user, uint64_t registration)
{
    struct fixture *f = user;

    f->gone = registration;
    note(f, "gone;");
}

static const struct registry_ops OPS = {.driver = on_driver, .plugin = on_plugin, .gone = on_gone};

static void begin_with(struct fixture *f, void **state, bool kubelet)
{
    memset(f, 0, sizeof *f);
    f->world = *state;
    snprintf(f->directory, sizeof f->directory, "%s/registry", f->world->dir);
    if (kubelet)
        snprintf(f->kubelet, sizeof f->kubelet, "%s/kubelet", f->world->dir);
    f->plugin = (struct registering){.type = "DRAPlugin",
                                     .name = "gpu.example.com",
                                     .endpoint = "/run/dra.sock",
                                     .versions = {"v1.DRAPlugin"},
                                     .versions_len = 1};
    f->registry = registry_start(&f->world->loop, f->directory, f->kubelet, &OPS, f);
    WAIT(f->world, access(f->directory, F_OK) == 0);
}

static void begin(struct fixture *f, void **state)
{
    begin_with(f, state, true);
}

static void serve(struct fixture *f)
{
    char path[128];

    snprintf(path, sizeof path, "%s/gpu-reg.sock", f->directory);
    registering_serve(&f->plugin, f->world, path);
}

static void on_stopped(void *user)
{
    *(bool *)user = true;
}

static void stop(struct fixture *f)
{
    registry_stop(f->registry, on_stopped, &f->stopped);
    WAIT(f->world, f->stopped);
    registering_close(&f->plugin);
    rmdir(f->directory);
    if (*f->kubelet)
        rmdir(f->kubelet);
}

static void a_driver(void **state)
{
    struct fixture f;
    uid_t uid = (uid_t)-1;

    begin(&f, state);
    serve(&f);
    WAIT(f.world, f.plugin.registered);
    assert_string_equal(f.events, "driver gpu.example.com /run/dra.sock v1.DRAPlugin;");
    assert_true(f.number & REGISTRY_NUMBER_BIT);
    assert_true(registry_has_endpoint(f.registry, "/run/dra.sock"));
    assert_false(registry_has_endpoint(f.registry, "/run/other.sock"));
    assert_false(registry_waits_at(f.registry, "/run/dra.sock"));
    assert_true(registry_peer(f.registry, f.number, &uid));
    assert_int_equal(uid, getuid());
    assert_false(registry_peer(f.registry, f.number + 1, &uid));
    registering_close(&f.plugin);
    WAIT(f.world, f.gone == f.number);
    assert_false(registry_has_endpoint(f.registry, "/run/dra.sock"));
    assert_false(registry_peer(f.registry, f.number, &uid));
    stop(&f);
}

static void a_device_plugin_whose_endpoint_is_its_socket(void **state)
{
    struct fixture f;
    char expected[256];

    begin(&f, state);
    f.plugin.type = "DevicePlugin";
    f.plugin.name = "vendor.com/gpu";
    f.plugin.endpoint = "";
    f.plugin.versions[0] = "v1beta1";
    f.uid = (uid_t)-1;
    serve(&f);
    WAIT(f.world, f.plugin.registered);
    snprintf(expected, sizeof expected, "plugin vendor.com/gpu %s/gpu-reg.sock;", f.directory);
    assert_string_equal(f.events, expected);
    assert_int_equal(f.uid, getuid());
    stop(&f);
}

static void one_that_is_wrong_is_told_so_in_the_kubelets_words(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.plugin.name = "Not A Name";
    serve(&f); /* logs warnings */
    WAIT(f.world, f.plugin.notified == 1);
    assert_false(f.plugin.registered);
    assert_string_equal(f.plugin.error,
                        "RegisterPlugin error -- plugin validation failed with err: the driver "
                        "name \"Not A Name\" is not a DNS subdomain of at most 253 bytes");
    assert_string_equal(f.events, "");
    stop(&f);
}

static void a_refusal_is_told_and_tried_again(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.refusal = "endpoint /run/dra.sock already registered";
    serve(&f); /* logs a warning */
    WAIT(f.world, f.plugin.notified == 1);
    assert_string_equal(f.plugin.error,
                        "RegisterPlugin error -- plugin registration failed with err: endpoint "
                        "/run/dra.sock already registered");
    f.refusal = NULL;
    WAIT(f.world, f.plugin.registered);
    assert_null(strstr(f.events, "gone"));
    stop(&f);
}

static void one_that_goes_unanswered_is_gone(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.later = true;
    serve(&f);
    WAIT(f.world, f.number != 0);
    assert_true(registry_waits_at(f.registry, "/run/dra.sock"));
    assert_false(registry_waits_at(f.registry, "/run/other.sock"));
    registering_close(&f.plugin);
    WAIT(f.world, f.gone == f.number);
    registry_answer(f.registry, f.number, NULL);
    stop(&f);
}

/* At once: its back-off is not the old one's. */
static void one_that_is_replaced_registers_anew(void **state)
{
    struct registering dead = {0};
    struct fixture f;
    uint64_t first;

    begin(&f, state);
    serve(&f);
    WAIT(f.world, f.plugin.registered);
    first = f.number;
    dead = f.plugin;
    assert_int_equal(unlink(f.plugin.path), 0);
    f.plugin.server = NULL;
    f.plugin.registered = false;
    serve(&f);
    WAIT(f.world, f.plugin.registered);
    assert_int_equal(f.gone, first);
    assert_true(f.number > first);
    registering_close(&dead);
    stop(&f);
}

static void one_that_does_not_take_its_success_is_gone(void **state)
{
    struct fixture f;

    begin(&f, state);
    f.plugin.notify_code = RPC_INTERNAL;
    serve(&f); /* logs a warning */
    WAIT(f.world, f.gone == f.number && f.gone != 0);
    f.plugin.notify_code = RPC_OK;
    f.plugin.registered = false;
    WAIT(f.world, f.plugin.registered);
    assert_true(f.number > f.gone);
    stop(&f);
}

static size_t linked(const struct fixture *f)
{
    DIR *names = opendir(f->kubelet);
    const struct dirent *entry;
    size_t n = 0;

    while (names && (entry = readdir(names)))
        n += entry->d_name[0] != '.';
    if (names)
        closedir(names);
    return n;
}

/* Later than its socket, if the kubelet's directory is; and again, if somebody removes it. */
static void a_csi_driver_is_the_kubelets(void **state)
{
    struct fixture f;
    char command[128];

    begin(&f, state);
    f.plugin.type = "CSIPlugin";
    f.plugin.name = "csi.example.com";
    serve(&f); /* logs a warning */
    WAIT(f.world, f.plugin.asked == 1);
    world_settle(f.world);
    assert_int_equal(mkdir(f.kubelet, 0755), 0);
    WAIT(f.world, linked(&f) == 1);
    snprintf(command, sizeof command, "rm %s/*", f.kubelet);
    assert_int_equal(system(command), 0);
    WAIT(f.world, linked(&f) == 1);
    assert_int_equal(f.plugin.notified, 0);
    assert_string_equal(f.events, "");
    registering_close(&f.plugin);
    WAIT(f.world, linked(&f) == 0);
    stop(&f);
}

/* Whatever the daemon does, the kubelet must not think that a CSI driver has gone. */
static void what_is_the_kubelets_outlives_the_daemon(void **state)
{
    struct fixture f;
    struct registry *first;
    bool stopped = false;

    begin(&f, state);
    assert_int_equal(mkdir(f.kubelet, 0755), 0);
    f.plugin.type = "CSIPlugin";
    serve(&f);
    WAIT(f.world, linked(&f) == 1);
    first = f.registry;
    registry_stop(first, on_stopped, &stopped);
    WAIT(f.world, stopped);
    assert_int_equal(linked(&f), 1);
    f.registry = registry_start(&f.world->loop, f.directory, f.kubelet, &OPS, &f);
    assert_int_equal(linked(&f), 1);
    WAIT(f.world, f.plugin.asked == 2);
    world_settle(f.world);
    assert_int_equal(linked(&f), 1);
    registering_close(&f.plugin);
    WAIT(f.world, linked(&f) == 0);
    stop(&f);
}

static void without_the_kubelets_directory_others_are_refused(void **state)
{
    struct fixture f;
    char expected[256];

    begin_with(&f, state, false);
    f.plugin.type = "CSIPlugin";
    serve(&f); /* logs a warning */
    WAIT(f.world, f.plugin.notified == 1);
    snprintf(expected, sizeof expected,
             "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket "
             "%s/gpu-reg.sock",
             f.directory);
    assert_string_equal(f.plugin.error, expected);
    stop(&f);
}

/* A plugin in Go could not read the refusal. */
static void what_is_no_text_is_not_said_to_a_plugin(void **state)
{
    struct fixture f;

    begin_with(&f, state, false);
    f.plugin.type = "caf\xe9";
    serve(&f); /* logs a warning */
    WAIT(f.world, f.plugin.notified == 1);
    assert_non_null(strstr(f.plugin.error, "plugin type: caf? at socket "));
    stop(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_driver),
        TEST(a_device_plugin_whose_endpoint_is_its_socket),
        TEST(one_that_is_wrong_is_told_so_in_the_kubelets_words),
        TEST(a_refusal_is_told_and_tried_again),
        TEST(one_that_goes_unanswered_is_gone),
        TEST(one_that_is_replaced_registers_anew),
        TEST(one_that_does_not_take_its_success_is_gone),
        TEST(a_csi_driver_is_the_kubelets),
        TEST(what_is_the_kubelets_outlives_the_daemon),
        TEST(without_the_kubelets_directory_others_are_refused),
        TEST(what_is_no_text_is_not_said_to_a_plugin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
