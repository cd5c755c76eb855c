/* config/compare.c: what differs, and what of it may change without a restart; and which settings
 * are not as they are without a file; and what one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/compare.h"

static char said[512];

static void say(void *user, const char *name, bool live)
{
    size_t len = strlen(said);

    (void)user;
    snprintf(said + len, sizeof said - len, "%s%s%s", len ? " " : "", live ? "" : "!", name);
}

static void parse(const char *text, struct config *out)
{
    static struct config_error err;

    if (config_parse(text, strlen(text), "t", out, &err) < 0)
        fail_msg("%s", err.text);
}

static const char *differences(const struct config *a, const struct config *b)
{
    said[0] = '\0';
    config_compare(a, b, say, NULL);
    return said;
}

#define DEVICE "[[device]]\nresource = 'a.b/c'\npath = '/dev/c'\n"
#define DRIVER "[[driver]]\nname = 'gpu.example.com'\n"
#define PERIOD "cluster.enabled = true\n[[shutdown.period]]\npriority = 7\ngrace = '1s'\n"
#define RESOURCE "[[resource]]\nname = 'a.b/c'\n"
#define ATTRIBUTE "[[resource.attribute]]\nname = 'a'\nvalue = "

/* `expected`: "!" in front of what needs a restart; what does not is taken over. */
static void every_kind_of_key(void **state)
{
    static const struct {
        const char *before, *after, *expected, *left;
    } cases[] = {
        {"", "", "", ""},
        {"", "listen = '/run/x.sock'", "!listen !bridge.socket !cluster.socket !control.socket",
         "!listen !bridge.socket !cluster.socket !control.socket"},
        {"", "log_level = 'debug'", "log.level", ""},
        {"log_level = 'error'", "[log]\nlevel = 'error'", "", ""},
        {"", "[log]\nformat = 'json'", "log.format", ""},
        {"", "drain = '3s'", "drain", ""},
        {"", "state_dir = '/s'", "!state_dir", "!state_dir"},
        {"", "[metrics]\nlisten = '/m'", "!metrics.listen", "!metrics.listen"},
        {"[metrics]\nlisten = '/m'", "[metrics]\nlisten = '/m'\npage = true", "!metrics.page",
         "!metrics.page"},
        {"", "[plugins]\nhold = '1s'\ngrace = '1m'", "plugins.grace plugins.hold", ""},
        {"", "[plugins]\nkubelet_wait = '1s'\nhold = '1s'", "plugins.hold !plugins.kubelet_wait",
         "!plugins.kubelet_wait"},
        {"", "[bridge]\ngate = false\nmask = '1s'\ngate_timeout = '1s'",
         "!bridge.mask !bridge.gate bridge.gate_timeout", "!bridge.mask !bridge.gate"},
        {"", "[bridge]\nkubelet_processes = ['x']", "!bridge.kubelet_processes",
         "!bridge.kubelet_processes"},
        {"annotations.namespaces = ['a', 'b']", "annotations.namespaces = ['a', 'c']",
         "annotations.namespaces", ""},
        {"", DEVICE, "![[device]]", "![[device]]"},
        {DEVICE, DEVICE, "", ""},
        {DEVICE, DEVICE "envs = { A = 'b' }", "![[device]]", "![[device]]"},
        {DEVICE "envs = { A = 'b' }", DEVICE "envs = { A = 'c' }", "![[device]]", "![[device]]"},
        {DEVICE "count = 2", DEVICE "count = 3", "![[device]]", "![[device]]"},
        {RESOURCE, RESOURCE "hold = '1s'", "[[resource]]", ""},
        {RESOURCE "hold = '1s'", RESOURCE "hold = '2s'\nexclusive = false", "![[resource]]",
         "![[resource]]"},
        {RESOURCE ATTRIBUTE "1", RESOURCE ATTRIBUTE "2", "[[resource]]", ""},
        {RESOURCE ATTRIBUTE "1", RESOURCE ATTRIBUTE "'1'", "[[resource]]", ""},
        {RESOURCE ATTRIBUTE "true", RESOURCE ATTRIBUTE "true", "", ""},
        {RESOURCE, RESOURCE ATTRIBUTE "1", "[[resource]]", ""},
        {"", DRIVER, "[[driver]]", ""},
        {DRIVER, DRIVER "cached_prepare = true", "[[driver]]", ""},
        {DRIVER "cached_prepare = true", "", "[[driver]]", ""},
        {PERIOD, PERIOD, "", ""},
        {"", "[cluster]\nenabled = true\n[shutdown]\ngrace = '9s'\ncritical_grace = '3s'",
         "!cluster.enabled shutdown.grace shutdown.critical_grace", "!cluster.enabled"},
        {PERIOD, PERIOD "[[shutdown.period]]\npriority = 8\ngrace = '1s'", "[[shutdown.period]]",
         ""},
        {RESOURCE, "plugins.grace = '1m'\n" RESOURCE, "plugins.grace [[resource]]", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config before, after;

        parse(cases[i].before, &before);
        parse(cases[i].after, &after);
        assert_string_equal(differences(&before, &after), cases[i].expected);
        config_exchange_live(&before, &after);
        config_fini(&after);
        parse(cases[i].after, &after);
        assert_string_equal(differences(&before, &after), cases[i].left);
        config_fini(&before);
        config_fini(&after);
    }
}

/* ---- beside the defaults ---- */

struct told {
    char text[4096];
    size_t used;
};

static void tell(void *user, const struct config_difference *difference)
{
    struct told *told = user;

    told->used +=
        (size_t)snprintf(told->text + told->used, sizeof told->text - told->used, "%s = %s (%s)\n",
                         difference->key, difference->value, difference->initial);
}

static const char *told_of(struct told *told, const char *text)
{
    struct config config;
    struct config_error err;

    *told = (struct told){0};
    if (config_parse(text, strlen(text), "c", &config, &err) < 0)
        fail_msg("%s", err.text);
    config_differences(&config, tell, told);
    config_fini(&config);
    return told->text;
}

static void nothing_differs_without_a_file(void **state)
{
    struct config config;
    struct config_error err;
    struct told told = {0};

    (void)state;
    assert_int_equal(config_load(NULL, &config, &err), 0);
    config_differences(&config, tell, &told);
    assert_string_equal(told.text, "");
    config_fini(&config);
}

static void what_is_as_by_default_is_not_told(void **state)
{
    struct told told;

    (void)state;
    assert_string_equal(told_of(&told, "log_level = 'info'\ndrain = '10000ms'\n"
                                       "[plugins]\nhold = '5s'\n[bridge]\ngate = true\n"),
                        "");
}

static void each_type_is_told_with_its_default(void **state)
{
    struct told told;

    (void)state;
    assert_string_equal(told_of(&told,
                                "log_level = 'debug'\ndrain = '30m2s5ms'\n"
                                "runtime_endpoint = '/r.sock'\nstate_dir = '/s'\n"
                                "[plugins]\nhold = '0s'\nrefresh_options = 'never'\n"
                                "[annotations]\nenabled = true\nnamespaces = ['a', 'b']\n"
                                "[bridge]\nkubelet_processes = ['k']\ngate = false\n"
                                "[[device]]\nresource = 'a.com/b'\npath = '/dev/null'\n"
                                "[[resource]]\nname = 'a.com/b'\n[[resource]]\nname = 'a.com/c'\n"),
                        "runtime_endpoint = /r.sock (/run/containerd/containerd.sock)\n"
                        "state_dir = /s (/var/lib/cri-device-shim)\n"
                        "drain = 30m2s5ms (10s)\n"
                        "[[device]] = 1 ()\n"
                        "[[resource]] = 2 ()\n"
                        "log.level = debug (info)\n"
                        "plugins.hold = 0s (5s)\n"
                        "plugins.refresh_options = never (reboot)\n"
                        "annotations.enabled = true (false)\n"
                        "annotations.namespaces = a,b ()\n"
                        "bridge.gate = false (true)\n"
                        "bridge.kubelet_processes = k (kubelet,k3s-server,k3s-agent,kubelite)\n");
}

static void a_path_beside_another_is_as_by_default(void **state)
{
    struct told told;

    (void)state;
    assert_string_equal(told_of(&told, "listen = '/run/x/s.sock'\n"),
                        "listen = /run/x/s.sock (/run/cri-device-shim/cri-device-shim.sock)\n");
    assert_string_equal(
        told_of(&told, "plugins.plugin_dir = '/p/plugins'\n"),
        "plugins.plugin_dir = /p/plugins (/var/lib/cri-device-shim/device-plugins)\n");
    assert_string_equal(told_of(&told, "[bridge]\nsocket = '/run/f'\n[control]\nsocket = ''\n"),
                        "bridge.socket = /run/f (/run/cri-device-shim/bridge.sock)\n"
                        "control.socket =  (/run/cri-device-shim/control.sock)\n");
}

static void a_long_value_is_cut(void **state)
{
    char text[8192] = "annotations.enabled = true\nannotations.namespaces = ['n0'";
    struct told told;

    (void)state;
    for (int i = 1; i < 500; i++)
        sprintf(text + strlen(text), ", 'n%d'", i);
    strcat(text, "]");
    told_of(&told, text);
    assert_in_range(strlen(told.text), DIFFERENCE_BYTES_MAX, 2 * DIFFERENCE_BYTES_MAX);
}

static void expect_said(const struct config *config, const char *name, const char *expected)
{
    static char value[CONFIG_FILE_BYTES_MAX];

    assert_true(config_value(config, name, value));
    assert_string_equal(value, expected);
}

/* Each by its name, however the file writes it, or as by default; of tables, how many. */
static void a_value_by_its_name(void **state)
{
    struct config config;
    char value[8], nodes[4096] = "bridge = { enabled = false }\n'plugins' . \"grace\" = '90s'\n"
                                 "log_level = 'debug'\nlisten = 'unix:///run/a/b.sock'\n"
                                 "[annotations]\nenabled = true\nnamespaces = ['a'";

    (void)state;
    for (int i = 0; i < 200; i++)
        sprintf(nodes + strlen(nodes), ", 'n%d'", i);
    strcat(nodes, "]\n" DEVICE);
    parse(nodes, &config);
    expect_said(&config, "bridge.enabled", "false");
    expect_said(&config, "plugins.grace", "1m30s");
    expect_said(&config, "log.level", "debug");
    expect_said(&config, "listen", "/run/a/b.sock");
    expect_said(&config, "bridge.socket", "/run/a/bridge.sock");
    expect_said(&config, "bridge.kubelet_processes", "kubelet,k3s-server,k3s-agent,kubelite");
    expect_said(&config, "[[device]]", "1");
    expect_said(&config, "[[driver]]", "");
    expect_said(&config, "cluster.node_name", "");
    nodes[0] = 'a';
    nodes[1] = '\0';
    for (int i = 0; i < 200; i++)
        sprintf(nodes + strlen(nodes), ",n%d", i);
    expect_said(&config, "annotations.namespaces", nodes);
    assert_false(config_value(&config, "grace", value));
    assert_false(config_value(&config, "log_level", value));
    assert_false(config_value(&config, "bridge", value));
    assert_false(config_value(&config, "", value));
    config_fini(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_key),
        cmocka_unit_test(nothing_differs_without_a_file),
        cmocka_unit_test(what_is_as_by_default_is_not_told),
        cmocka_unit_test(each_type_is_told_with_its_default),
        cmocka_unit_test(a_path_beside_another_is_as_by_default),
        cmocka_unit_test(a_long_value_is_cut),
        cmocka_unit_test(a_value_by_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
