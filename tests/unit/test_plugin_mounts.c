/* shim/relay/plugin_mounts.c: which containers are redirected, and what the log says, how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "shim/log.h"
#include "shim/relay/plugin_mounts.h"

#define FROM "/var/lib/kubelet/device-plugins"
#define TO "/our/plugins"
#define TEXT(text) ((char[]){text}) /* protobuf-c wants char * */

static struct {
    unsigned infos, warnings;
    char last[512];
} logged;

void __wrap_log_write(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void __wrap_log_write(enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(logged.last, sizeof logged.last, format, args);
    va_end(args);
    logged.infos += level == LOG_LEVEL_INFO;
    logged.warnings += level == LOG_LEVEL_WARNING;
}

static int set_up(void **state)
{
    struct plugin_mounts *m = calloc(1, sizeof *m);

    m->from = FROM;
    m->to = TO;
    m->whose = "device plugin";
    memset(&logged, 0, sizeof logged);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* A container that mounts up to two paths, the first of them read-only or not. */
static bool look_at(struct plugin_mounts *m, const char *uid, const char *container,
                    const char *one, bool readonly, const char *two)
{
    Runtime__V1__Mount mounts[2] = {RUNTIME__V1__MOUNT__INIT, RUNTIME__V1__MOUNT__INIT};
    Runtime__V1__Mount *list[] = {&mounts[0], &mounts[1]};
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    struct devicemgr_create create = {
        .pod_uid = uid, .pod_namespace = "ns", .pod_name = "plugin", .container = container};
    struct create_container *c;
    uint8_t bytes[512];
    bool redirect;

    mounts[0].host_path = (char *)one;
    mounts[0].readonly = readonly;
    mounts[1].host_path = (char *)two;
    config.mounts = list;
    config.n_mounts = (size_t)(one != NULL) + (two != NULL);
    request.config = &config;
    assert_int_equal(create_container_read(
                         bytes, runtime__v1__create_container_request__pack(&request, bytes), &c),
                     0);
    redirect = plugin_mounts_look(m, c, &create);
    create_container_free(c);
    return redirect;
}

static bool look(struct plugin_mounts *m, const char *uid, const char *container, const char *one,
                 const char *two)
{
    return look_at(m, uid, container, one, false, two);
}

static void said(unsigned infos, unsigned warnings)
{
    assert_int_equal(logged.infos, infos);
    assert_int_equal(logged.warnings, warnings);
}

static void the_directory_is_redirected_and_said_so_once(void **state)
{
    assert_true(look(*state, "uid", "main", "/dev", FROM "/"));
    said(1, 0);
    assert_string_equal(logged.last,
                        "pod ns/plugin, container main: its mount of " FROM "/ is one of " TO);
    assert_true(look(*state, "uid", "main", FROM, FROM));
    said(1, 0);
    assert_true(look(*state, "uid", "other", FROM, NULL));
    assert_true(look(*state, "uid2", "main", FROM, NULL));
    said(3, 0);
}

/* No plugin can make its socket there. */
static void what_is_mounted_read_only_stays_and_is_said_so_once(void **state)
{
    assert_false(look_at(*state, "uid", "agent", FROM, true, NULL));
    said(1, 0);
    assert_string_equal(logged.last, "pod ns/plugin, container agent: its mount of " FROM
                                     " is read-only, which is no device plugin's; it stays");
    assert_false(look_at(*state, "uid", "agent", FROM, true, NULL));
    said(1, 0);
    assert_true(look_at(*state, "uid", "agent", FROM, true, FROM));
    said(2, 0);
    assert_false(look_at(*state, "uid", "exporter", "/", true, NULL));
    assert_false(look_at(*state, "uid", "exporter", "/var/lib/kubelet", true, NULL));
    said(2, 0);
    assert_false(look_at(*state, "uid", "exporter", FROM "/kubelet.sock", true, NULL));
    said(2, 1);
}

static void what_is_above_or_below_is_warned_of_once(void **state)
{
    assert_false(look(*state, "uid", "main", "/var/lib/kubelet", NULL));
    said(0, 1);
    assert_string_equal(logged.last,
                        "pod ns/plugin, container main: its mount of /var/lib/kubelet, which holds "
                        "" FROM ", is not redirected; if it is a device plugin, let it mount " FROM
                        " itself, which is redirected to " TO);
    assert_false(look(*state, "uid", "main", "/", NULL)); /* the same container, the same matter */
    said(0, 1);
    assert_false(look(*state, "uid", "main", FROM "/kubelet.sock", NULL));
    said(0, 2);
    assert_string_equal(logged.last,
                        "pod ns/plugin, container main: its mount of " FROM
                        "/kubelet.sock, which lies in " FROM
                        ", is not redirected; if it is a device plugin, let it mount " FROM
                        " itself, which is redirected to " TO);
    assert_false(look(*state, "uid", "side", "/var", FROM "/x"));
    said(0, 4);
}

static void other_containers_are_left_in_peace(void **state)
{
    assert_false(look(*state, "uid", "main", "/dev", "/var/lib/kubelet/pods/1/volumes"));
    assert_false(look(*state, "uid", "main", NULL, NULL));
    said(0, 0);
}

static void without_a_directory_nothing_happens(void **state)
{
    struct plugin_mounts off = {0};

    (void)state;
    assert_false(look(&off, "uid", "main", FROM, "/"));
    said(0, 0);
}

/* "ab" of "c" is not "a" of "bc". */
static void pod_and_container_are_two_texts(void **state)
{
    look(*state, "ab", "c", "/", NULL);
    look(*state, "a", "bc", "/", NULL);
    said(0, 2);
}

static void of_many_the_oldest_are_forgotten(void **state)
{
    for (int i = 0; i <= PLUGIN_MOUNTS_TOLD_MAX; i++) {
        char uid[16];

        snprintf(uid, sizeof uid, "%d", i);
        look(*state, uid, "main", "/", NULL);
    }
    said(0, PLUGIN_MOUNTS_TOLD_MAX + 1);
    look(*state, "1", "main", "/", NULL);
    said(0, PLUGIN_MOUNTS_TOLD_MAX + 1);
    look(*state, "0", "main", "/", NULL);
    said(0, PLUGIN_MOUNTS_TOLD_MAX + 2);
}

static bool look_named(struct plugin_mounts *m, const char *namespace, const char *name,
                       const char *key, const char *value)
{
    Runtime__V1__Mount mount = RUNTIME__V1__MOUNT__INIT, *list[] = {&mount};
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    const struct devicemgr_annotation annotation = {.key = key, .value = value};
    struct devicemgr_create create = {.pod_uid = "uid",
                                      .pod_namespace = namespace,
                                      .pod_name = name,
                                      .container = "main",
                                      .pod_annotations = &annotation,
                                      .pod_annotations_len = key != NULL};
    struct create_container *c;
    uint8_t bytes[512];
    bool redirect;

    mount.host_path = TEXT(FROM);
    config.mounts = list;
    config.n_mounts = 1;
    request.config = &config;
    assert_int_equal(create_container_read(
                         bytes, runtime__v1__create_container_request__pack(&request, bytes), &c),
                     0);
    redirect = plugin_mounts_look(m, c, &create);
    create_container_free(c);
    return redirect;
}

static void only_pods_that_are_named_if_so_said(void **state)
{
    static const char *const pods[] = {"kube-system/gpu-*", "dra-*/driver-[0-9]"};
    char long_name[600];
    struct plugin_mounts *m = *state;

    m->named_only = true;
    m->whose = "DRA driver";
    m->pods = pods;
    m->pods_len = 2;
    assert_true(look_named(m, "kube-system", "gpu-x7k2p", NULL, NULL));
    assert_true(look_named(m, "dra-a", "driver-3", NULL, NULL));
    said(1, 0); /* once for the pod's uid and container */
    assert_false(look_named(m, "kube-system", "csi-x7k2p", NULL, NULL));
    assert_false(look_named(m, "default", "gpu-x7k2p", NULL, NULL));
    assert_false(look_named(m, "dra-a", "driver-x", NULL, NULL));
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    memcpy(long_name, "gpu-", 4);
    assert_false(look_named(m, "kube-system", long_name, NULL, NULL));

    assert_true(look_named(m, "default", "any", PLUGIN_MOUNTS_ANNOTATION, "true"));
    assert_false(look_named(m, "default", "any", PLUGIN_MOUNTS_ANNOTATION, "false"));
    assert_false(look_named(m, "default", "any", "redirect", "true"));
    m->pods_len = 0;
    assert_false(look_named(m, "kube-system", "gpu-x7k2p", NULL, NULL));
    said(1, 0);
}

static void a_request_without_config(void **state)
{
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    struct devicemgr_create create = {.pod_uid = "", .container = ""};
    struct create_container *c;
    uint8_t bytes[64];

    request.pod_sandbox_id = TEXT("box");
    assert_int_equal(create_container_read(
                         bytes, runtime__v1__create_container_request__pack(&request, bytes), &c),
                     0);
    assert_false(plugin_mounts_look(*state, c, &create));
    create_container_free(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_directory_is_redirected_and_said_so_once),
        TEST(what_is_mounted_read_only_stays_and_is_said_so_once),
        TEST(what_is_above_or_below_is_warned_of_once),
        TEST(other_containers_are_left_in_peace),
        TEST(without_a_directory_nothing_happens),
        TEST(pod_and_container_are_two_texts),
        TEST(of_many_the_oldest_are_forgotten),
        TEST(only_pods_that_are_named_if_so_said),
        TEST(a_request_without_config),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
