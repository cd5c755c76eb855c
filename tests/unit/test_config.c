/* config/: the TOML file, its defaults and what is told about a bad one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "config/config.h"

static char file_path[] = "/tmp/test_config.XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(file_path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file_path);
}

static void write_bytes(const void *bytes, size_t n)
{
    FILE *file = fopen(file_path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static int load(const char *text, struct config *out, struct config_error *err)
{
    write_bytes(text, strlen(text));
    return config_load(file_path, out, err);
}

static void assert_loads(const char *text, struct config *out)
{
    struct config_error err = {0};

    if (load(text, out, &err) != 0)
        fail_msg("%s\n%s", text, err.text);
}

/* `expected` is what follows "FILE:". */
static void assert_refuses(const char *text, const char *expected)
{
    struct config config, untouched;
    struct config_error err = {0};
    size_t head = strlen(file_path) + 1;

    memset(&config, 0x5a, sizeof config);
    untouched = config;
    if (load(text, &config, &err) == 0)
        fail_msg("accepted: %s", text);
    assert_memory_equal(&config, &untouched, sizeof config);
    assert_memory_equal(err.text, file_path, head - 1);
    assert_string_equal(err.text + head, expected);
}

/* `expected` is somewhere in what is said. */
static void assert_refuses_with(const char *text, const char *expected)
{
    struct config_error err = {0};
    struct config config;

    if (load(text, &config, &err) == 0)
        fail_msg("accepted: %s", text);
    if (!strstr(err.text, expected))
        fail_msg("%s", err.text);
}

static void assert_same_bridge(const struct config_bridge *a, const struct config_bridge *b)
{
    assert_int_equal(a->enabled, b->enabled);
    assert_string_equal(a->socket, b->socket);
    assert_string_equal(a->kubelet_plugin_dir, b->kubelet_plugin_dir);
    assert_int_equal(a->mask_ms, b->mask_ms);
    assert_int_equal(a->preferred_timeout_ms, b->preferred_timeout_ms);
    assert_int_equal(a->gate, b->gate);
    assert_int_equal(a->gate_timeout_ms, b->gate_timeout_ms);
    assert_int_equal(a->kubelet_processes_len, b->kubelet_processes_len);
    for (size_t i = 0; i < a->kubelet_processes_len; i++)
        assert_string_equal(a->kubelet_processes[i], b->kubelet_processes[i]);
    assert_int_equal(a->redirect_plugin_mounts, b->redirect_plugin_mounts);
}

static void assert_same(const struct config *a, const struct config *b)
{
    assert_string_equal(a->listen, b->listen);
    assert_string_equal(a->runtime_endpoint, b->runtime_endpoint);
    assert_string_equal(a->state_dir, b->state_dir);
    assert_string_equal(a->plugin_dir, b->plugin_dir);
    assert_int_equal(a->log_level, b->log_level);
    assert_int_equal(a->log_format, b->log_format);
    assert_string_equal(a->metrics.listen, b->metrics.listen);
    assert_int_equal(a->metrics.page, b->metrics.page);
    assert_int_equal(a->drain_ms, b->drain_ms);
    assert_int_equal(a->grace_ms, b->grace_ms);
    assert_int_equal(a->hold_ms, b->hold_ms);
    assert_int_equal(a->allocate_timeout_ms, b->allocate_timeout_ms);
    assert_int_equal(a->allocates_at_once, b->allocates_at_once);
    assert_int_equal(a->prestart_timeout_ms, b->prestart_timeout_ms);
    assert_int_equal(a->kubelet_wait_ms, b->kubelet_wait_ms);
    assert_int_equal(a->refresh_options, b->refresh_options);
    assert_int_equal(a->hide_other_namespaces, b->hide_other_namespaces);
    assert_int_equal(a->annotations_enabled, b->annotations_enabled);
    assert_int_equal(a->start_without, b->start_without);
    assert_int_equal(a->annotation_namespaces_len, b->annotation_namespaces_len);
    assert_int_equal(a->devices_len, b->devices_len);
    assert_int_equal(a->resources_len, b->resources_len);
    assert_same_bridge(&a->bridge, &b->bridge);
    assert_int_equal(a->cluster.enabled, b->cluster.enabled);
    assert_string_equal(a->cluster.socket, b->cluster.socket);
    assert_string_equal(a->cluster.kubeconfig, b->cluster.kubeconfig);
    assert_string_equal(a->cluster.node_name, b->cluster.node_name);
    assert_int_equal(a->cluster.insecure_skip_tls_verify, b->cluster.insecure_skip_tls_verify);
    assert_int_equal(a->cluster.evict_force_after_ms, b->cluster.evict_force_after_ms);
    assert_int_equal(a->shutdown.grace_ms, b->shutdown.grace_ms);
    assert_int_equal(a->shutdown.critical_grace_ms, b->shutdown.critical_grace_ms);
    assert_int_equal(a->shutdown.periods_len, b->shutdown.periods_len);
    assert_string_equal(a->control_socket, b->control_socket);
}

static void works_without_a_file(void **state)
{
    struct config config;
    struct config_error err;

    (void)state;
    assert_int_equal(config_load(NULL, &config, &err), 0);
    assert_string_equal(config.listen, "/run/cri-device-shim/cri-device-shim.sock");
    assert_string_equal(config.runtime_endpoint, "/run/containerd/containerd.sock");
    assert_string_equal(config.state_dir, "/var/lib/cri-device-shim");
    assert_string_equal(config.plugin_dir, "/var/lib/cri-device-shim/device-plugins");
    assert_int_equal(config.log_level, 6);
    assert_int_equal(config.log_format, CONFIG_LOG_AUTO);
    assert_string_equal(config.metrics.listen, "");
    assert_int_equal(config.drain_ms, 10000);
    assert_int_equal(config.grace_ms, 300000);
    assert_int_equal(config.hold_ms, 5000);
    assert_int_equal(config.allocate_timeout_ms, 10000);
    assert_int_equal(config.allocates_at_once, 1);
    assert_int_equal(config.prestart_timeout_ms, 30000);
    assert_int_equal(config.kubelet_wait_ms, 120000);
    assert_int_equal(config.refresh_options, CONFIG_REFRESH_REBOOT);
    assert_false(config.hide_other_namespaces);
    assert_false(config.annotations_enabled);
    assert_false(config.start_without);
    assert_int_equal(config.annotation_namespaces_len, 0);
    assert_int_equal(config.devices_len, 0);
    assert_int_equal(config.resources_len, 0);
    assert_true(config.bridge.enabled);
    assert_string_equal(config.bridge.socket, "/run/cri-device-shim/bridge.sock");
    assert_string_equal(config.bridge.kubelet_plugin_dir, "/var/lib/kubelet/device-plugins");
    assert_int_equal(config.bridge.mask_ms, 120000);
    assert_int_equal(config.bridge.preferred_timeout_ms, 500);
    assert_true(config.bridge.gate);
    assert_int_equal(config.bridge.gate_timeout_ms, 10000);
    assert_int_equal(config.bridge.kubelet_processes_len, 4);
    assert_string_equal(config.bridge.kubelet_processes[0], "kubelet");
    assert_string_equal(config.bridge.kubelet_processes[3], "kubelite");
    assert_false(config.bridge.redirect_plugin_mounts);
    assert_false(config.cluster.enabled);
    assert_string_equal(config.cluster.socket, "/run/cri-device-shim/agent.sock");
    assert_string_equal(config.cluster.kubeconfig, "/etc/kubernetes/kubelet.conf");
    assert_string_equal(config.cluster.node_name, "");
    assert_false(config.cluster.insecure_skip_tls_verify);
    assert_int_equal(config.cluster.evict_force_after_ms, 0);
    assert_string_equal(config.control_socket, "/run/cri-device-shim/control.sock");
    config_fini(&config);
}

#define SAME_SOCKET " are the same socket; expected a socket of its own for each"

static void the_agents_settings(void **state)
{
#define NAME_WORDS "; expected \"\", or a node's name (at most 253 of a-z, 0-9, '-' and '.')"
    struct config config;
    char text[256];

    (void)state;
    assert_loads("listen = '/run/x/s.sock'\ncluster.node_name = 'node-1.example'", &config);
    assert_string_equal(config.cluster.socket, "/run/x/agent.sock");
    assert_string_equal(config.cluster.node_name, "node-1.example");
    config_fini(&config);
    assert_refuses("cluster.node_name = 'Node'", "1:21: node_name is \"Node\"" NAME_WORDS);
    assert_refuses("cluster.node_name = '-a'", "1:21: node_name is \"-a\"" NAME_WORDS);
    assert_refuses("cluster.node_name = 'a..b'", "1:21: node_name is \"a..b\"" NAME_WORDS);
    assert_refuses("cluster.node_name = 'a-.b'", "1:21: node_name is \"a-.b\"" NAME_WORDS);
    assert_refuses("cluster.kubeconfig = 'x'",
                   "1:22: kubeconfig is \"x\"; expected an absolute path");
    assert_refuses("bridge.socket = '/run/a'\ncluster.socket = '/run/a'",
                   "2:18: bridge.socket and cluster.socket" SAME_SOCKET);
    /* what is not wanted needs no room */
    snprintf(text, sizeof text, "listen = '/%0*d/s'\nbridge.enabled = false", 97, 0);
    assert_loads(text, &config);
    config_fini(&config);
    snprintf(text, sizeof text,
             "listen = '/%0*d/s'\nbridge.enabled = false\ncluster.enabled = true", 97, 0);
    assert_refuses(text, "1:10: listen leaves no room for agent.sock beside it; "
                         "expected a path of at most 97 bytes up to its last '/', or [cluster] "
                         "socket to be set");
}

static void the_control_socket_is_beside_the_others_or_nowhere(void **state)
{
    struct config config;
    char text[256];

    (void)state;
    assert_loads("listen = '/run/x/s.sock'", &config);
    assert_string_equal(config.control_socket, "/run/x/control.sock");
    config_fini(&config);
    assert_loads("control.socket = 'unix:///run/y.sock'", &config);
    assert_string_equal(config.control_socket, "/run/y.sock");
    config_fini(&config);
    assert_loads("control.socket = ''", &config);
    assert_string_equal(config.control_socket, "");
    config_fini(&config);
    /* nobody needs it as much as a settings file that worked before */
    snprintf(text, sizeof text, "listen = '/%0*d/s'", 93, 0);
    assert_loads(text, &config);
    assert_int_equal(strlen(config.control_socket), 107);
    config_fini(&config);
    snprintf(text, sizeof text, "listen = '/%0*d/s'", 94, 0);
    assert_loads(text, &config);
    assert_string_equal(config.control_socket, "");
    config_fini(&config);
}

static void refuses_bad_control_sockets(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"listen = '/run/a'\ncontrol.socket = '/run/a'",
         "2:18: listen and control.socket" SAME_SOCKET},
        {"control.socket = '/run/containerd/containerd.sock'",
         "1:18: runtime_endpoint and control.socket" SAME_SOCKET},
        {"bridge.socket = '/run/a'\ncontrol.socket = '/run/a'",
         "2:18: bridge.socket and control.socket" SAME_SOCKET},
        {"plugins.plugin_dir = '/p'\ncontrol.socket = '/p/kubelet.sock'",
         "2:18: control.socket and plugins.plugin_dir/kubelet.sock" SAME_SOCKET},
        {"metrics.listen = '/run/a'\ncontrol.socket = '/run/a'",
         "2:18: control.socket and metrics.listen" SAME_SOCKET},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refuses(cases[i].text, cases[i].error);
    assert_refuses("control.socket = 'x'",
                   "1:18: socket is \"x\"; expected an absolute path in quotes, with or without "
                   "unix:// in front");
    assert_refuses("control.sockets = '/x'", "1:9: unknown key \"sockets\" in [control]; expected "
                                             "\"socket\", the nearest name known");
    assert_refuses("listen = ''", "1:10: listen is \"\"; expected an absolute path in quotes, with "
                                  "or without unix:// in front");
}

static void reads_every_key_of_dra(void **state)
{
    struct config config;

    (void)state;
    assert_int_equal(config_parse("", 0, NULL, &config, &(struct config_error){0}), 0);
    assert_true(config.dra.enabled);
    assert_string_equal(config.dra.registry_dir, "/var/lib/cri-device-shim/plugins_registry");
    assert_string_equal(config.dra.kubelet_registry_dir, "/var/lib/kubelet/plugins_registry");
    assert_int_equal(config.dra.call_timeout_ms, 45000);
    assert_int_equal(config.dra.redirect_mounts_len, 0);
    config_fini(&config);
    assert_loads("[dra]\n"
                 "enabled = false\n"
                 "registry_dir = '/r/'\n"
                 "kubelet_registry_dir = '/k'\n"
                 "call_timeout = '1m'\n"
                 "redirect_mounts = ['kube-system/gpu-*', 'a/b']\n",
                 &config);
    assert_false(config.dra.enabled);
    assert_string_equal(config.dra.registry_dir, "/r");
    assert_string_equal(config.dra.kubelet_registry_dir, "/k");
    assert_int_equal(config.dra.call_timeout_ms, 60000);
    assert_int_equal(config.dra.redirect_mounts_len, 2);
    assert_string_equal(config.dra.redirect_mounts[0], "kube-system/gpu-*");
    config_fini(&config);
}

static void refuses_bad_settings_of_dra(void **state)
{
    char text[256], path[70];

    (void)state;
    for (const char *const *pod =
             (const char *const[]){"gpu-*", "/gpu", "a/", "a/b/c", "A/b", NULL};
         *pod; pod++) {
        snprintf(text, sizeof text, "dra.redirect_mounts = ['%s']", *pod);
        assert_refuses_with(text, "expected a pod's namespace, '/' and its name");
    }
    assert_refuses_with("dra.registry_dir = '/var/lib/kubelet/plugins_registry'",
                        "registry_dir and kubelet_registry_dir are the same directory");
    assert_refuses_with("dra.registry_dir = '/p/'\nplugins.plugin_dir = '/p'",
                        "registry_dir and plugin_dir are the same directory");
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[68] = '\0';
    snprintf(text, sizeof text, "dra.registry_dir = '%s'", path);
    assert_refuses_with(text, "at most 67 bytes");
    path[68] = 'x';
    path[69] = '\0';
    snprintf(text, sizeof text, "dra.kubelet_registry_dir = '%sx'", path);
    assert_refuses_with(text, "at most 69 bytes");
}

static void reads_every_key_of_the_bridge(void **state)
{
    struct config config;

    (void)state;
    assert_loads("[bridge]\n"
                 "enabled = false\n"
                 "socket = 'unix:///run/f.sock'\n"
                 "kubelet_plugin_dir = '/k//'\n"
                 "mask = '0s'\n"
                 "preferred_timeout = '1ms'\n"
                 "gate = false\n"
                 "gate_timeout = '1m'\n"
                 "kubelet_processes = ['k3s-server', 'exactly-15bytes']\n"
                 "redirect_plugin_mounts = true\n",
                 &config);
    assert_false(config.bridge.enabled);
    assert_string_equal(config.bridge.socket, "/run/f.sock");
    assert_string_equal(config.bridge.kubelet_plugin_dir, "/k");
    assert_int_equal(config.bridge.mask_ms, 0);
    assert_int_equal(config.bridge.preferred_timeout_ms, 1);
    assert_false(config.bridge.gate);
    assert_int_equal(config.bridge.gate_timeout_ms, 60000);
    assert_int_equal(config.bridge.kubelet_processes_len, 2);
    assert_string_equal(config.bridge.kubelet_processes[0], "k3s-server");
    assert_string_equal(config.bridge.kubelet_processes[1], "exactly-15bytes");
    assert_true(config.bridge.redirect_plugin_mounts);
    config_fini(&config);
}

static void reads_every_key(void **state)
{
    struct config config;

    (void)state;
    assert_loads("listen = 'unix:///run/a.sock'\n"
                 "runtime_endpoint = 'unix:///run/b.sock'\n"
                 "state_dir = '/s/'\n"
                 "log_level = 'debug'\n"
                 "drain = '3s'\n"
                 "[log]\n"
                 "format = 'json'\n"
                 "[plugins]\n"
                 "plugin_dir = '/p//'\n"
                 "grace = '1h30m'\n"
                 "hold = '0s'\n"
                 "allocate_timeout = '1s500ms'\n"
                 "allocates_at_once = 4\n"
                 "prestart_timeout = '1ms'\n"
                 "kubelet_wait = '0s'\n"
                 "refresh_options = 'never'\n"
                 "hide_other_namespaces = true\n"
                 "[annotations]\n"
                 "enabled = true\n"
                 "namespaces = ['default', 'kube-system']\n"
                 "start_without = true\n"
                 "[[device]]\n"
                 "resource = 'vendor.com/kvm'\n"
                 "path = '/dev/kvm'\n"
                 "container_path = '/dev/virt'\n"
                 "permissions = 'rwm'\n"
                 "count = 10000\n"
                 "[[device]]\n"
                 "resource = 'vendor.com/tty'\n"
                 "path = '/dev/ttyUSB*'\n"
                 "container_path = '/dev/serial/'\n",
                 &config);
    assert_string_equal(config.listen, "/run/a.sock");
    assert_string_equal(config.runtime_endpoint, "/run/b.sock");
    assert_string_equal(config.state_dir, "/s");
    assert_int_equal(config.log_level, 7);
    assert_int_equal(config.log_format, CONFIG_LOG_JSON);
    assert_int_equal(config.drain_ms, 3000);
    assert_string_equal(config.plugin_dir, "/p");
    assert_int_equal(config.grace_ms, 5400000);
    assert_int_equal(config.hold_ms, 0);
    assert_int_equal(config.allocate_timeout_ms, 1500);
    assert_int_equal(config.allocates_at_once, 4);
    assert_int_equal(config.prestart_timeout_ms, 1);
    assert_int_equal(config.kubelet_wait_ms, 0);
    assert_int_equal(config.refresh_options, CONFIG_REFRESH_NEVER);
    assert_true(config.hide_other_namespaces);
    assert_true(config.annotations_enabled);
    assert_true(config.start_without);
    assert_int_equal(config.annotation_namespaces_len, 2);
    assert_string_equal(config.annotation_namespaces[1], "kube-system");
    assert_int_equal(config.devices_len, 2);
    assert_string_equal(config.devices[0].resource, "vendor.com/kvm");
    assert_string_equal(config.devices[0].path, "/dev/kvm");
    assert_string_equal(config.devices[0].container_path, "/dev/virt");
    assert_string_equal(config.devices[0].permissions, "rwm");
    assert_int_equal(config.devices[0].count, 10000);
    assert_string_equal(config.devices[1].container_path, "/dev/serial/");
    assert_string_equal(config.devices[1].permissions, "rw");
    assert_int_equal(config.devices[1].count, 1);
    config_fini(&config);
}

static void a_resource_has_its_own_rules_and_the_general_ones(void **state)
{
    struct config config;

    (void)state;
    assert_loads("[[resource]]\n"
                 "name = 'vendor.com/gpu'\n"
                 "grace = '1m'\n"
                 "hold = '0s'\n"
                 "allocate_timeout = '1ms'\n"
                 "allocates_at_once = 0\n"
                 "refresh_options = 'plugin'\n"
                 "exclusive = false\n"
                 "[[resource]]\n"
                 "name = 'vendor.com/nic'\n"
                 "hold = '7s'\n"
                 "[plugins]\n"
                 "grace = '2m'\n"
                 "refresh_options = 'never'\n",
                 &config);
    assert_int_equal(config.grace_ms, 120000);
    assert_int_equal(config.hold_ms, 5000);
    assert_int_equal(config.resources_len, 2);
    assert_string_equal(config.resources[0].name, "vendor.com/gpu");
    assert_int_equal(config.resources[0].grace_ms, 60000);
    assert_int_equal(config.resources[0].hold_ms, 0);
    assert_int_equal(config.resources[0].allocate_timeout_ms, 1);
    assert_int_equal(config.resources[0].allocates_at_once, 0);
    assert_int_equal(config.resources[0].refresh_options, CONFIG_REFRESH_PLUGIN);
    assert_false(config.resources[0].exclusive);
    assert_string_equal(config.resources[1].name, "vendor.com/nic");
    assert_int_equal(config.resources[1].grace_ms, 120000);
    assert_int_equal(config.resources[1].hold_ms, 7000);
    assert_int_equal(config.resources[1].allocate_timeout_ms, 10000);
    assert_int_equal(config.resources[1].allocates_at_once, 1);
    assert_int_equal(config.resources[1].refresh_options, CONFIG_REFRESH_NEVER);
    assert_true(config.resources[1].exclusive);
    config_fini(&config);
}

static void devices_have_attributes(void **state)
{
    const struct config_attribute *attributes;
    struct config config;

    (void)state;
    assert_loads("cluster.enabled = true\n"
                 "[[resource]]\n"
                 "name = 'vendor.com/gpu'\n"
                 "dra = true\n"
                 "[[resource.attribute]]\n"
                 "name = 'model'\n"
                 "value = 'a b'\n"
                 "[[resource.attribute]]\n"
                 "device = 'GPU-[0-3]'\n"
                 "name = 'example.com/memory_GiB'\n"
                 "value = -80\n"
                 "[[resource.attribute]]\n"
                 "name = '_fast'\n"
                 "value = true\n"
                 "[[resource]]\n"
                 "name = 'vendor.com/nic'\n",
                 &config);
    attributes = config.resources[0].attributes;
    assert_true(config.resources[0].dra);
    assert_int_equal(config.resources[0].attributes_len, 3);
    assert_string_equal(attributes[0].device, "*");
    assert_string_equal(attributes[0].name, "model");
    assert_string_equal(attributes[0].value, "\"a b\"");
    assert_string_equal(attributes[1].device, "GPU-[0-3]");
    assert_string_equal(attributes[1].name, "example.com/memory_GiB");
    assert_string_equal(attributes[1].value, "-80");
    assert_string_equal(attributes[2].value, "true");
    assert_false(config.resources[1].dra);
    assert_int_equal(config.resources[1].attributes_len, 0);
    config_fini(&config);
}

#define ATTRIBUTE(text) "[[resource]]\nname = 'a/b'\n[[resource.attribute]]\n" text

#define PUBLISHED(text)                                                                            \
    "cluster.enabled = true\n"                                                                     \
    "[[resource]]\n"                                                                               \
    "name = 'a/b'\n"                                                                               \
    "\n"                                                                                           \
    "dra = true\n" text

static void attributes_that_are_none(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[[resource]]\nname = 'a/b'\ndra = true",
         "3:7: dra is true, and there is no agent, which publishes the devices; expected [cluster] "
         "enabled = true"},
        {PUBLISHED("[bridge]\nenabled = false"), "5:7: dra is true, and there is no bridge, which "
                                                 "shows the driver to the kubelet; expected "
                                                 "[bridge] enabled = true"},
        {PUBLISHED("[dra]\nenabled = false"),
         "5:7: dra is true, and no claim is prepared here; expected [dra] enabled = true, and a "
         "registry_dir other than the kubelet's"},
        {PUBLISHED("[dra]\nkubelet_registry_dir = '/var/lib/cri-device-shim/plugins_registry'"),
         "5:7: dra is true, and no claim is prepared here; expected"},
        {ATTRIBUTE("value = 1"), "3:1: this [[resource.attribute]] has no name; expected"},
        {ATTRIBUTE("name = 'm'"), "3:1: this [[resource.attribute]] has no value; expected"},
        {ATTRIBUTE("name = 'numaNode'\nvalue = 1"), "4:8: name is \"numaNode\"; expected an "},
        {ATTRIBUTE("name = 'm'\nvalue = 1\nversion = true"),
         "5:9: version is true, and value is 1"},
        {ATTRIBUTE("name = 'm'\nvalue = '1.2'\nversion = true"),
         "5:9: version is true, and value is \"1.2\""},
        {ATTRIBUTE("name = 'm'\nvalue = '1.02.3'\nversion = true"), "5:9: version is true, and"},
        {ATTRIBUTE("name = 'a-b'\nvalue = 1"), "4:8: name is \"a-b\"; expected an attribute's "},
        {ATTRIBUTE("name = '1a'\nvalue = 1"), "4:8: name is \"1a\"; expected an attribute's "},
        {ATTRIBUTE("name = 'A.b/m'\nvalue = 1"), "4:8: name is \"A.b/m\"; expected an "},
        {ATTRIBUTE("name = 'm'\nvalue = 1.5"),
         "5:9: value is a float; expected a text in quotes, a whole number, true or false"},
        {ATTRIBUTE("name = 'm'\nvalue = '12345678901234567890123456789012345678901234567890123456"
                   "789012345'"),
         "5:9: value is \"1234"},
        {ATTRIBUTE("name = 'm'\nvalue = 'a\"b'"), "5:9: value is \"a"},
        {ATTRIBUTE("name = 'm'\nvalue = 1\ndevice = ''"), "6:10: device is \"\"; expected"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refuses_with(cases[i].text, cases[i].expected);
}

static void a_driver_has_its_own_rules(void **state)
{
    struct config config;
    char text[128];

    (void)state;
    assert_loads("[[driver]]\nname = 'gpu.example.com'\ncached_prepare = true\n"
                 "[[driver]]\nname = 'nic.example.com'\n",
                 &config);
    assert_int_equal(config.drivers_len, 2);
    assert_string_equal(config.drivers[0].name, "gpu.example.com");
    assert_true(config.drivers[0].cached_prepare);
    assert_string_equal(config.drivers[1].name, "nic.example.com");
    assert_false(config.drivers[1].cached_prepare);
    config_fini(&config);
    for (const char *const *name = (const char *const[]){"", "GPU", "a..b", "-a", "a_b", NULL};
         *name; name++) {
        snprintf(text, sizeof text, "[[driver]]\nname = '%s'", *name);
        assert_refuses_with(text, "expected a DRA driver's name, such as \"gpu.example.com\"");
    }
    snprintf(text, sizeof text, "[[driver]]\nname = '%064d'", 0);
    assert_refuses_with(text, "at most 63 of");
    assert_refuses_with("[[driver]]\ncached_prepare = true", "this [[driver]] has no name");
    assert_refuses_with("[[driver]]\nname = 'a'\n[[driver]]\nname = 'a'",
                        "stands already in line 2; expected one [[driver]] for each driver");
    assert_refuses_with("driver = {}", "expected [[driver]] tables, with two brackets");
}

static void a_shutdown_has_its_times(void **state)
{
#define AGENT "cluster.enabled = true\n"
#define PERIOD(priority, grace)                                                                    \
    "[[shutdown.period]]\npriority = " priority "\ngrace = '" grace "'\n"
    static const struct {
        const char *text, *expected;
    } wrong[] = {
        {"shutdown.grace = '30s'", "1:18: [shutdown] is on, and there is no agent, which hears of "
                                   "shutdowns; expected [cluster] enabled = true"},
        {PERIOD("0", "1s"), "[shutdown] is on, and there is no agent"},
        {AGENT "shutdown.grace = '999ms'", "a grace of less than a second; expected \"0s\", or"},
        {AGENT "[shutdown]\ngrace = '2s'\ncritical_grace = '1ms'", "4:18: a grace of less than"},
        {AGENT "[shutdown]\ngrace = '2s'\ncritical_grace = '3s'",
         "4:18: critical_grace is more than grace, of which it is a part; expected at most what"},
        {"shutdown.critical_grace = '1s'", "critical_grace is more than grace"},
        {AGENT PERIOD("0", "999ms"), "grace is \"999ms\"; expected from \"1s\" to \"24h\""},
        {AGENT PERIOD("2147483648", "1s"), "priority is 2147483648; expected a whole number from"},
        {AGENT PERIOD("'0'", "1s"), "priority is a string; expected a whole number from"},
        {AGENT "[[shutdown.period]]\ngrace = '1s'", "this [[shutdown.period]] has no priority"},
        {AGENT "[[shutdown.period]]\npriority = 1", "this [[shutdown.period]] has no grace"},
        {AGENT "shutdown.grace = '3s'\n" PERIOD("0", "1s"),
         "3:1: [[shutdown.period]] stands beside grace and critical_grace; expected one or"},
        {AGENT PERIOD("7", "1s") PERIOD("8", "1s") PERIOD("7", "2s"),
         "9:12: priority 7 stands already in another period; expected one [[shutdown.period]]"},
        {AGENT "[shutdown]\nperiod = {}", "expected [[shutdown.period]] tables, with two"},
        {AGENT "[shutdown]\nperiod = [1]", "expected a [[shutdown.period]] table"},
    };
    struct config config;

    (void)state;
    assert_loads(AGENT "[shutdown]\ngrace = '30s'\ncritical_grace = '30s'", &config);
    assert_int_equal(config.shutdown.grace_ms, 30000);
    assert_int_equal(config.shutdown.critical_grace_ms, 30000);
    config_fini(&config);
    assert_loads(AGENT PERIOD("-2147483648", "1s") PERIOD("2147483647", "24h"), &config);
    assert_int_equal(config.shutdown.periods_len, 2);
    assert_int_equal(config.shutdown.periods[0].priority, INT32_MIN);
    assert_int_equal(config.shutdown.periods[0].grace_ms, 1000);
    assert_int_equal(config.shutdown.periods[1].priority, INT32_MAX);
    config_fini(&config);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refuses_with(wrong[i].text, wrong[i].expected);
#undef PERIOD
#undef AGENT
}

static void takes_what_the_bounds_still_allow(void **state)
{
    static const char *const texts[] = {
        "",
        "log_level = 'error'",
        "log_level = 'warning'",
        "log.level = 'error'",
        "log.format = 'plain'",
        "metrics.listen = ''",
        "metrics.listen = '/run/m.sock'",
        "metrics.listen = '127.0.0.1:1'",
        "metrics.listen = '127.255.0.3:65535'",
        "metrics.listen = '[::1]:9100'",
        "plugins.hold = '60s'",
        "plugins.hold = '1m'",
        "plugins.grace = '720h'",
        "plugins.refresh_options = 'plugin'",
        "annotations = { enabled = true, namespaces = ['*'] }",
        "annotations = { enabled = false, namespaces = [] }",
        "bridge.mask = '720h'",
        "bridge.gate_timeout = '1ms'",
        "bridge.preferred_timeout = '10s'",
        "bridge = { gate = false, kubelet_processes = [] }",
        "plugins.plugin_dir = '/var/lib/kubelet/device-plugins/x'",
        "plugins.plugin_dir = '/var/lib/kubelet/device-plugins'\nbridge.enabled = false",
        "device = []",
        "resource = []",
        "resource = [{ name = 'a/b', grace = '720h', hold = '60s', allocate_timeout = '1h' }]",
        "device = [{ resource = 'a.b-c.d/E_f.g-1', path = '/dev/x' }]",
        "device = [{ resource = 'a/b', path = '/dev/[ab]', container_path = '/' }]",
    };
    struct config config;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_loads(texts[i], &config);
        config_fini(&config);
    }
}

static void names_the_place_of_each_fault(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"listn = '/a'", "1:1: unknown key \"listn\" in the top level; expected \"listen\", the "
                         "nearest name known"},
        {"[plugin]\n", "1:2: unknown table \"plugin\" in the top level; expected \"plugins\", the "
                       "nearest name known"},
        {"\n\n  grace = '5m'", "3:3: unknown key \"grace\" in the top level; expected it in "
                               "[plugins]"},
        {"[annotations]\nzzzzzz = 1", "2:1: unknown key \"zzzzzz\" in [annotations]; expected one "
                                      "of enabled, namespaces, start_without"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\npermission = 'r'",
         "4:1: unknown key \"permission\" in [[device]]; expected \"permissions\", the nearest "
         "name "
         "known"},
        {"listen = 1", "1:10: listen is an integer; expected an absolute path in quotes, with or "
                       "without unix:// in front"},
        {"listen = 'run/a.sock'", "1:10: listen is \"run/a.sock\"; expected an absolute path in "
                                  "quotes, with or without unix:// in front"},
        {"listen = 'tcp://1.2.3.4'", "1:10: listen is \"tcp://1.2.3.4\"; expected an absolute path "
                                     "in quotes, with or without unix:// in front"},
        {"listen = 'unix://'", "1:10: listen is \"unix://\"; expected an absolute path in quotes, "
                               "with or without unix:// in front"},
        {"listen = \"/a\\u0000b\"",
         "1:10: listen is \"/a?b\"; expected an absolute path in quotes, "
         "with or without unix:// in front"},
        {"listen = '/run/'", "1:10: listen is \"/run/\"; expected the path of a socket, not a "
                             "directory"},
        {"listen = ['/a']", "1:10: listen is an array; expected an absolute path in quotes, with "
                            "or without unix:// in front"},
        {"plugins.refresh_options = 1", "1:27: refresh_options is an integer; expected "
                                        "\"reboot\", \"plugin\" or \"never\""},
        {"[[device]]\nresource = 1\npath = '/dev/x'",
         "2:12: resource is an integer; expected an extended resource's name, such as "
         "\"vendor.com/serial\""},
        {"[[device]]\nresource = 'a/b'\npath = 1",
         "3:8: path is an integer; expected an absolute path in quotes"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncontainer_path = 1",
         "4:18: container_path is an integer; expected an absolute path in quotes"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\npermissions = 1",
         "4:15: permissions is an integer; expected one or more of 'r', 'w' and 'm', each once, "
         "such as \"rw\""},
        {"state_dir = 'var'", "1:13: state_dir is \"var\"; expected an absolute path"},
        {"state_dir = true", "1:13: state_dir is a boolean; expected an absolute path in quotes"},
        {"log_level = 'loud'", "1:13: log_level is \"loud\"; expected \"error\", \"warning\", "
                               "\"info\" or \"debug\""},
        {"log_level = 6", "1:13: log_level is an integer; expected \"error\", \"warning\", "
                          "\"info\" or \"debug\""},
        {"metrics.listen = 9100",
         "1:18: listen is an integer; expected \"\", the absolute path of a unix socket of at most "
         "107 bytes, or a loopback address with its port, such as \"127.0.0.1:19100\" or "
         "\"[::1]:19100\""},
        {"[metrics]\npage = true",
         "2:8: page is true, and listen says nowhere; expected listen to be a unix socket or a "
         "loopback address"},
        {"plugins = 1", "1:11: plugins is an integer; expected a table, [plugins]"},
        {"annotations = 1.5", "1:15: annotations is a float; expected a table, [annotations]"},
        {"[device]\n", "1:1: device is a table; expected [[device]] tables, with two brackets"},
        {"device = [1]", "1:11: an element of device is an integer; expected a [[device]] table"},
        {"[resource]\nname = 'a/b'",
         "1:1: resource is a table; expected [[resource]] tables, with two brackets"},
        {"resource = [1]",
         "1:13: an element of resource is an integer; expected a [[resource]] table"},
        {"[[resource]]\ngrace = '1s'",
         "1:1: this [[resource]] has no name; expected name = \"vendor.com/name\""},
        {"[[resource]]\nname = 'gpu'",
         "2:8: name is \"gpu\"; expected an extended resource's name, such as "
         "\"vendor.com/serial\": a DNS name outside kubernetes.io, '/', and at most 63 letters, "
         "digits, '-', '_' or '.'"},
        {"[[resource]]\nname = 1", "2:8: name is an integer; expected an extended resource's name, "
                                   "such as \"vendor.com/serial\""},
        {"[[resource]]\nname = 'a/b'\n[[resource]]\nname = 'a/b'",
         "4:8: name \"a/b\" stands already in line 2; expected one [[resource]] for each resource"},
        {"[[resource]]\nname = 'a/b'\nexclusive = 1",
         "3:13: exclusive is an integer; expected true or false, without quotes"},
        {"[[resource]]\nname = 'a/b'\nhold = '2m'",
         "3:8: hold is \"2m\"; expected at most \"60s\""},
        {"[[resource]]\nname = 'a/b'\nexclusiv = true",
         "3:1: unknown key \"exclusiv\" in [[resource]]; expected \"exclusive\", the nearest name "
         "known"},
        {"[[resource]]\nname = 'a/b'\nprestart_timeout = '1s'",
         "3:1: unknown key \"prestart_timeout\" in [[resource]]; expected it in [plugins]"},
        {"[plugins]\nexclusive = true",
         "2:1: unknown key \"exclusive\" in [plugins]; expected it in [[resource]]"},
        {"[plugins]\ngrace = 300", "2:9: grace is an integer; expected a duration with its unit, "
                                   "in quotes, such as \"300s\""},
        {"[plugins]\ngrace = 2026-01-01", "2:9: grace is a date or time; expected a duration in "
                                          "quotes, such as \"500ms\", \"5s\", \"5m\" or "
                                          "\"1h30m\""},
        {"[plugins]\ngrace = '721h'", "2:9: grace is \"721h\"; expected at most \"720h\""},
        {"[plugins]\nhold = '61s'", "2:8: hold is \"61s\"; expected at most \"60s\""},
        {"[plugins]\nallocate_timeout = '0s'", "2:20: allocate_timeout is \"0s\"; expected from "
                                               "\"1ms\" to \"1h\""},
        {"[plugins]\nprestart_timeout = '2h'", "2:20: prestart_timeout is \"2h\"; expected from "
                                               "\"1ms\" to \"1h\""},
        {"[plugins]\nkubelet_wait = '721h'", "2:16: kubelet_wait is \"721h\"; expected at most "
                                             "\"720h\""},
        {"[plugins]\nrefresh_options = 'always'", "2:19: refresh_options is \"always\"; expected "
                                                  "\"reboot\", \"plugin\" or \"never\""},
        {"[annotations]\nenabled = 'yes'", "2:11: enabled is a string; expected true or false, "
                                           "without quotes"},
        {"[annotations]\nenabled = true", "2:11: enabled is true, but namespaces is empty: no "
                                          "request could be taken; expected namespaces = "
                                          "[\"a-namespace\"], or [\"*\"] for all"},
        {"[annotations]\nnamespaces = 'a'", "2:14: namespaces is a string; expected an array of "
                                            "names in quotes, such as [\"default\"], or [\"*\"] "
                                            "for all"},
        {"[annotations]\nnamespaces = ['a', 2]", "2:20: namespaces's element is an integer; "
                                                 "expected a namespace in quotes"},
        {"[annotations]\nnamespaces = ['Prod']", "2:15: namespaces holds \"Prod\"; expected a "
                                                 "namespace's name (at most 63 of a-z, 0-9 and "
                                                 "'-') or \"*\""},
        {"[[device]]\npath = '/dev/x'", "1:1: this [[device]] has no resource; expected resource "
                                        "= \"vendor.com/name\""},
        {"[[device]]\nresource = 'a/b'", "1:1: this [[device]] has no path; expected path = "
                                         "\"/dev/...\", the node on the host"},
        {"[[device]]\nresource = 'a/b'\npath = 'dev/x'", "3:8: path is \"dev/x\"; expected the "
                                                         "absolute path of a device node, or a "
                                                         "glob of such"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\n[[device]]\nresource = 'a/b'\npath = '/y'",
         "5:12: resource \"a/b\" stands already in line 2; expected one [[device]] for each "
         "resource; its path may be a glob"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/*'\ncontainer_path = '/dev/x'",
         "4:18: container_path is \"/dev/x\" and path is a glob; expected a directory that ends in "
         "'/', since a glob may match many nodes"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncontainer_path = '/dev/'",
         "4:18: container_path is \"/dev/\"; expected the node's whole path, without '/' at the "
         "end"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncontainer_path = 'dev'",
         "4:18: container_path is \"dev\"; expected an absolute path"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\npermissions = 'rx'",
         "4:15: permissions is \"rx\"; expected one or more of 'r', 'w' and 'm', each once, such "
         "as "
         "\"rw\""},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncount = 0",
         "4:9: count is 0; expected a whole number from 1 to 10000, without quotes"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncount = 10001",
         "4:9: count is 10001; expected a whole number from 1 to 10000, without quotes"},
        {"[[device]]\nresource = 'a/b'\npath = '/dev/x'\ncount = '1'",
         "4:9: count is a string; expected a whole number from 1 to 10000, without quotes"},
        {"listen = '/run/a'\nruntime_endpoint = '/run/b/../a'",
         "2:20: listen and runtime_endpoint" SAME_SOCKET},
        {"listen = '/run/containerd/containerd.sock'",
         "1:10: listen and runtime_endpoint" SAME_SOCKET},
        {"listen = '/p/kubelet.sock'\nplugins.plugin_dir = '/p'",
         "2:22: listen and plugins.plugin_dir/kubelet.sock" SAME_SOCKET},
        {"zzzzzz_a = 1",
         "1:1: unknown key \"zzzzzz_a\" in the top level; expected one of listen, "
         "runtime_endpoint, state_dir, log_level, drain, log, metrics, plugins, "
         "annotations, bridge, dra, cluster, shutdown, control, device, resource, driver, taint"},
        /* What is wrong by itself is not told a second time. */
        {"[annotations]\nenabled = true\nnamespaces = 1",
         "3:14: namespaces is an integer; expected an array of names in quotes, such as "
         "[\"default\"], or [\"*\"] for all"},
        {"listen = '/run/a/'\nruntime_endpoint = '/run/cri-device-shim/cri-device-shim.sock'",
         "1:10: listen is \"/run/a/\"; expected the path of a socket, not a directory"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refuses(cases[i].text, cases[i].error);
}

/* Not in the order in which they are looked for: neither of keys, nor of checks behind all keys. */
static void tells_all_mistakes_of_a_file_in_their_order(void **state)
{
    static const char TEXT[] = "zzzzzz = 1\n"
                               "runtime_endpoint = '/run/a'\n"
                               "listen = '/run/a'\n"
                               "drain = 5\n"
                               "[[device]]\n"
                               "count = 0\n"
                               "[annotations]\n"
                               "enabled = true\n";
    char expected[2048];
    struct config config;
    struct config_error err;
    const char *f = file_path;

    (void)state;
    assert_int_equal(load(TEXT, &config, &err), -1);
    snprintf(expected, sizeof expected,
             "%s:1:1: unknown key \"zzzzzz\" in the top level; expected one of listen, "
             "runtime_endpoint, state_dir, log_level, drain, log, metrics, plugins, annotations, "
             "bridge, dra, cluster, shutdown, control, "
             "device, resource, driver, taint\n"
             "%s:3:10: listen and runtime_endpoint" SAME_SOCKET "\n"
             "%s:4:9: drain is an integer; expected a duration with its unit, in quotes, such as "
             "\"5s\"\n"
             "%s:5:1: this [[device]] has no resource; expected resource = \"vendor.com/name\"\n"
             "%s:5:1: this [[device]] has no path; expected path = \"/dev/...\", the node on the "
             "host\n"
             "%s:6:9: count is 0; expected a whole number from 1 to 10000, without quotes\n"
             "%s:8:11: enabled is true, but namespaces is empty: no request could be taken; "
             "expected namespaces = [\"a-namespace\"], or [\"*\"] for all",
             f, f, f, f, f, f, f);
    assert_string_equal(err.text, expected);
}

static void tells_the_first_of_too_many_mistakes(void **state)
{
    char text[1024] = "", expected[8192] = "", line[256];
    struct config config;
    struct config_error err;

    (void)state;
    for (int i = 25; i > 0; i--) {
        snprintf(line, sizeof line, "grace%02d = 1\n", i);
        strcat(text, line);
        if (i <= 5)
            continue;
        snprintf(line, sizeof line,
                 "%s:%d:1: unknown key \"grace%02d\" in the top level; expected one of listen, "
                 "runtime_endpoint, state_dir, log_level, drain, log, metrics, plugins, "
                 "annotations, bridge, dra, cluster, shutdown, control, "
                 "device, resource, driver, taint\n",
                 file_path, 26 - i, i);
        strcat(expected, line);
    }
    strcat(expected, "and 5 more");
    assert_int_equal(load(text, &config, &err), -1);
    assert_string_equal(err.text, expected);
}

/* One mistake is one line, whatever the file has in its names. */
static void a_name_does_not_break_a_line(void **state)
{
    (void)state;
    assert_refuses("\"a\\n/etc/b:1:1\" = 1",
                   "1:1: unknown key \"a?/etc/b:1:1\" in the top level; expected one of listen, "
                   "runtime_endpoint, state_dir, log_level, drain, log, metrics, plugins, "
                   "annotations, bridge, dra, cluster, shutdown, control, "
                   "device, resource, driver, taint");
    assert_refuses("[[device]]\nresource = 'a/b'\npath = '/x'\nenvs = { \"a\\nb\" = 1 }",
                   "4:19: a?b is an integer; expected a text in quotes");
}

/* The parser would end the stack with them. */
static void refuses_keys_of_too_many_parts(void **state)
{
    const size_t parts = 500000;
    char *text = malloc(2 * parts + 16);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < parts; i++)
        memcpy(text + 2 * i, "a.", 2);
    strcpy(text + 2 * parts, "a = 1");
    assert_refuses(text, "1:20002: a dot more than 10000; expected fewer in a file: the parser "
                         "cannot hold keys of so many parts");
    text[2 * 10001 - 1] = '\0';
    strcat(text, " = 1");
    assert_refuses(
        text, "1:1: unknown table \"a\" in the top level; expected one of listen, "
              "runtime_endpoint, state_dir, log_level, drain, log, metrics, plugins, annotations, "
              "bridge, dra, cluster, shutdown, control, device, resource, driver, taint");
    free(text);
}

static void refuses_bad_bridges(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"bridge = 1", "1:10: bridge is an integer; expected a table, [bridge]"},
        {"[bridge]\nenabled = 1",
         "2:11: enabled is an integer; expected true or false, without quotes"},
        {"[bridge]\nmasks = '1s'",
         "2:1: unknown key \"masks\" in [bridge]; expected \"mask\", the nearest name known"},
        {"mask = '1s'", "1:1: unknown key \"mask\" in the top level; expected it in [bridge]"},
        {"[bridge]\ngrace = '1s'",
         "2:1: unknown key \"grace\" in [bridge]; expected it in [plugins]"},
        {"[bridge]\nsocket = 'x'", "2:10: socket is \"x\"; expected an absolute path in quotes, "
                                   "with or without unix:// in front"},
        {"[bridge]\nkubelet_plugin_dir = 'x'",
         "2:22: kubelet_plugin_dir is \"x\"; expected an absolute path"},
        {"[bridge]\nmask = '721h'", "2:8: mask is \"721h\"; expected at most \"720h\""},
        {"[bridge]\npreferred_timeout = '0s'",
         "2:21: preferred_timeout is \"0s\"; expected from \"1ms\" to \"10s\""},
        {"[bridge]\npreferred_timeout = '11s'",
         "2:21: preferred_timeout is \"11s\"; expected from \"1ms\" to \"10s\""},
        {"[bridge]\ngate = 'on'", "2:8: gate is a string; expected true or false, without quotes"},
        {"[bridge]\ngate_timeout = '0s'",
         "2:16: gate_timeout is \"0s\"; expected from \"1ms\" to \"60s\""},
        {"[bridge]\ngate_timeout = '61s'",
         "2:16: gate_timeout is \"61s\"; expected from \"1ms\" to \"60s\""},
        {"[bridge]\nredirect_plugin_mounts = 0",
         "2:26: redirect_plugin_mounts is an integer; expected true or false, without quotes"},
        {"[bridge]\nkubelet_processes = 'kubelet'",
         "2:21: kubelet_processes is a string; expected an array of names in quotes, such as "
         "[\"kubelet\"]"},
        {"[bridge]\nkubelet_processes = [1]",
         "2:22: kubelet_processes's element is an integer; expected a process's name in quotes"},
        {"[bridge]\nkubelet_processes = []",
         "2:21: kubelet_processes is empty: the gate would know no kubelet; expected "
         "kubelet_processes = [\"kubelet\"], or gate = false"},
        {"[bridge]\nkubelet_processes = ['kubelet', '']",
         "2:33: kubelet_processes holds \"\"; expected a process's name as /proc/PID/comm has it, "
         "1 to 15 bytes and no '/'"},
        {"[bridge]\nkubelet_processes = ['exactly-16-bytes']",
         "2:22: kubelet_processes holds \"exactly-16-bytes\"; expected a process's name as "
         "/proc/PID/comm has it, 1 to 15 bytes and no '/'"},
        {"[bridge]\nkubelet_processes = ['/bin/kubelet']",
         "2:22: kubelet_processes holds \"/bin/kubelet\"; expected a process's name as "
         "/proc/PID/comm has it, 1 to 15 bytes and no '/'"},
        {"[bridge]\nkubelet_processes = [\"a\\n\"]",
         "2:22: kubelet_processes holds \"a?\"; expected a process's name as /proc/PID/comm has "
         "it, 1 to 15 bytes and no '/'"},
        {"listen = '/run/a'\n[bridge]\nsocket = '/run/./a'",
         "3:10: listen and bridge.socket" SAME_SOCKET},
        {"listen = '/run/cri-device-shim/bridge.sock'",
         "1:10: listen and bridge.socket" SAME_SOCKET},
        {"[bridge]\nsocket = '/run/containerd/containerd.sock'",
         "2:10: runtime_endpoint and bridge.socket" SAME_SOCKET},
        {"bridge.socket = '/p/kubelet.sock'\nplugins.plugin_dir = '/p'",
         "2:22: bridge.socket and plugins.plugin_dir/kubelet.sock" SAME_SOCKET},
        {"[bridge]\nsocket = '/k/kubelet.sock'\nkubelet_plugin_dir = '/k'",
         "3:22: bridge.socket and bridge.kubelet_plugin_dir/kubelet.sock" SAME_SOCKET},
        {"listen = '/k/kubelet.sock'\nbridge.kubelet_plugin_dir = '/k'",
         "2:29: listen and bridge.kubelet_plugin_dir/kubelet.sock" SAME_SOCKET},
        {"plugins.plugin_dir = '/var/lib/kubelet/device-plugins/'",
         "1:22: plugin_dir and kubelet_plugin_dir are the same directory; expected plugin_dir to "
         "be the shim's own and kubelet_plugin_dir the kubelet's"},
        {"plugins.plugin_dir = '/k/./a'\nbridge.kubelet_plugin_dir = '/k/a'",
         "2:29: plugin_dir and kubelet_plugin_dir are the same directory; expected plugin_dir to "
         "be the shim's own and kubelet_plugin_dir the kubelet's"},
        {"plugins.plugin_dir = '/k/cri-device-shim'\nbridge.kubelet_plugin_dir = '/k'",
         "2:29: plugin_dir is where the bridge has its sockets; expected a directory other than "
         "kubelet_plugin_dir's cri-device-shim"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refuses(cases[i].text, cases[i].error);
}

static void refuses_more_names_of_kubelets_than_it_keeps(void **state)
{
    char text[1024] = "bridge.kubelet_processes = [";
    struct config config;
    size_t n;

    (void)state;
    for (n = 0; n < 64; n++)
        strcat(text, "'k', ");
    strcat(text, "]");
    assert_loads(text, &config);
    assert_int_equal(config.bridge.kubelet_processes_len, 64);
    config_fini(&config);
    strcpy(strrchr(text, ']'), "'k']");
    assert_refuses(text, "1:28: kubelet_processes has 65 elements; expected at most 64");
}

static void refuses_durations_that_are_none(void **state)
{
    static const char *const texts[] = {
        "",     "5",  "s",   "-5s", "5 s", "5S",   "1.5s",         "5d",  "5s5m",
        "5s5s", "ms", "5m5", "+5s", "5sm", "0x5s", "9999999999ms", " 5s", "5s ",
    };
    char text[64], error[256];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(text, sizeof text, "plugins.grace = '%s'", texts[i]);
        snprintf(error, sizeof error,
                 "1:17: grace is \"%s\"; expected a duration in quotes, such as \"500ms\", \"5s\", "
                 "\"5m\" or \"1h30m\"",
                 texts[i]);
        assert_refuses(text, error);
    }
}

static void refuses_names_that_are_no_extended_resource(void **state)
{
    static const char *const names[] = {
        "",
        "gpu",
        "/gpu",
        "a/",
        "a/b/c",
        "kubernetes.io/gpu",
        "A.com/x",
        "a..com/x",
        ".a/x",
        "x.kubernetes.io/gpu",
        "requests.a/b",
        "-a/x",
        "a-/x",
        "a_b.c/x",
        "a/-x",
        "a/x-",
        "a/x y",
        "a/0123456789012345678901234567890123456789012345678901234567890123",
    };
    char text[256], error[512];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "[[device]]\nresource = '%s'\npath = '/dev/x'", names[i]);
        snprintf(error, sizeof error,
                 "2:12: resource is \"%.60s%s\"; expected an extended resource's name, such as "
                 "\"vendor.com/serial\": a DNS name outside kubernetes.io, '/', and at most 63 "
                 "letters, digits, '-', '_' or '.'",
                 names[i], strlen(names[i]) > 60 ? "..." : "");
        assert_refuses(text, error);
    }
}

/* sun_path holds 108 bytes with its NUL; plugin_dir must leave room for "/kubelet.sock". */
static void refuses_paths_too_long_for_a_socket(void **state)
{
    static const struct {
        const char *head;
        int bytes_max;
    } cases[] = {
        {"listen = '/", 107},
        {"runtime_endpoint = 'unix:///", 107},
        {"plugins.plugin_dir = '/", 94},
        {"bridge.socket = '/", 107},
        /* "/cri-device-shim/" and 40 bytes of a name. */
        {"bridge.kubelet_plugin_dir = '/", 50},
    };
    char text[256];
    struct config config;
    struct config_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%s%0*d'", cases[i].head, cases[i].bytes_max - 1, 0);
        assert_loads(text, &config);
        config_fini(&config);
        snprintf(text, sizeof text, "%s%0*d'", cases[i].head, cases[i].bytes_max, 0);
        assert_int_equal(load(text, &config, &err), -1);
        snprintf(text, sizeof text, " is %d bytes long: ", cases[i].bytes_max + 1);
        assert_non_null(strstr(err.text, text));
        snprintf(text, sizeof text, "; expected at most %d bytes, ", cases[i].bytes_max);
        assert_non_null(strstr(err.text, text));
    }
}

/* Two daemons with two sockets must not meet on the feed's. */
static void the_feed_is_beside_the_kubelets_socket(void **state)
{
    char text[256];
    struct config config;
    struct config_error err;

    (void)state;
    assert_loads("listen = 'unix:///run/a/s.sock'", &config);
    assert_string_equal(config.bridge.socket, "/run/a/bridge.sock");
    config_fini(&config);
    snprintf(text, sizeof text, "listen = '/%0*d/s'", 94, 0);
    assert_loads(text, &config);
    assert_int_equal(strlen(config.bridge.socket), 107);
    config_fini(&config);
    snprintf(text, sizeof text, "listen = '/%0*d/s'", 95, 0);
    assert_int_equal(load(text, &config, &err), -1);
    assert_non_null(strstr(err.text, "1:10: listen leaves no room for bridge.sock "
                                     "beside it; expected a path of at most 96 bytes"));
    snprintf(text, sizeof text, "listen = '/%0*d/s'\nbridge.enabled = false", 95, 0);
    assert_loads(text, &config);
    config_fini(&config);
    snprintf(text, sizeof text, "listen = '/%0*d/s'\nbridge.socket = '/run/f.sock'", 95, 0);
    assert_loads(text, &config);
    config_fini(&config);
}

static void tells_where_the_syntax_breaks(void **state)
{
    static const struct {
        const char *text, *head;
    } cases[] = {
        {"listen = ", "1:"},    {"\nlisten = '/a' x", "2:"}, {"[plugins\n", "1:"},
        {"a = 1\na = 2", "2:"}, {"listen = \"\xff\"", "1:"}, {"\xca\x8e = 1", "1:"},
        {"[\x15\n", "1:2:"},    {"#\n# \x7f", "2:3:"},
    };
    struct config config;
    struct config_error err;
    size_t head = strlen(file_path) + 1;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(load(cases[i].text, &config, &err), -1);
        assert_memory_equal(err.text, file_path, head - 1);
        assert_memory_equal(err.text + head, cases[i].head, strlen(cases[i].head));
        assert_non_null(strstr(err.text, "; expected valid TOML 1.0"));
    }
}

#define NOT_REGULAR "it is no regular file"

static void assert_cannot_be_read(const char *path, const char *why)
{
    struct config config;
    struct config_error err;
    char expected[256];

    assert_int_equal(config_load(path, &config, &err), -1);
    snprintf(expected, sizeof expected, "%s: cannot be read: %s; expected a TOML file", path, why);
    assert_string_equal(err.text, expected);
    assert_false(err.no_memory || err.no_files);
}

static void tells_why_a_file_cannot_be_read(void **state)
{
    (void)state;
    assert_cannot_be_read("/nonexistent/c.toml", "No such file or directory");
    assert_int_equal(truncate(file_path, CONFIG_FILE_BYTES_MAX + 1), 0);
    assert_cannot_be_read(file_path, "it is larger than 1 MiB");
    assert_int_equal(truncate(file_path, 0), 0);
}

/* At once: nobody would ever write into that fifo. */
static void only_a_regular_file_is_read(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct config config;
    struct config_error err;
    char path[64], link[64];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_cannot_be_read("/", NOT_REGULAR);
    assert_cannot_be_read("/dev/zero", NOT_REGULAR);
    snprintf(path, sizeof path, "%s.fifo", file_path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_cannot_be_read(path, NOT_REGULAR);
    assert_int_equal(unlink(path), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_cannot_be_read(path, NOT_REGULAR);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);

    /* As Kubernetes mounts a ConfigMap: by links to one. */
    write_bytes("drain = '3s'", 12);
    snprintf(link, sizeof link, "%s.link", file_path);
    assert_int_equal(symlink(file_path, path), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(config_load(link, &config, &err), 0);
    assert_int_equal(config.drain_ms, 3000);
    config_fini(&config);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
}

/* Any cut of a good file either loads or is refused with a text; nothing crashes or leaks. */
static void survives_every_cut_of_the_example(void **state)
{
    FILE *file = fopen(EXAMPLE_TOML, "rb");
    char text[32768];
    size_t n;

    (void)state;
    assert_non_null(file);
    n = fread(text, 1, sizeof text, file);
    assert_true(feof(file));
    fclose(file);
    for (size_t cut = 0; cut <= n; cut += 3) {
        struct config config;
        struct config_error err = {0};

        write_bytes(text, cut);
        if (config_load(file_path, &config, &err) == 0)
            config_fini(&config);
        else
            assert_string_not_equal(err.text, "");
    }
}

static void fini_accepts_a_zeroed_struct(void **state)
{
    struct config config = {0};

    (void)state;
    config_fini(&config);
}

static void example_is_the_defaults(void **state)
{
    struct config defaults, example;
    struct config_error err;

    (void)state;
    assert_int_equal(config_load(NULL, &defaults, &err), 0);
    if (config_load(EXAMPLE_TOML, &example, &err) != 0)
        fail_msg("%s", err.text);
    assert_same(&example, &defaults);
    config_fini(&example);
    config_fini(&defaults);
}

/* Makes the example's commented [[device]] tables real: "# key = ..." below the first "# [[",
 * and switches on what [[shutdown.period]] cannot do without. */
static void uncomment_devices(char *text)
{
    char *from = strstr(text, "# [[device]]"), *to = from;
    char *agent = strstr(strstr(text, "\n[cluster]"), "\nenabled = false");

    assert_non_null(from);
    while (*from != '\0') {
        size_t line = strcspn(from, "\n") + (strchr(from, '\n') != NULL);
        size_t skip = strncmp(from, "# ", 2) == 0 ? 2 : 0;

        memmove(to, from + skip, line - skip);
        to += line - skip;
        from += line;
    }
    *to = '\0';
    memcpy(agent, "\nenabled = true ", strlen("\nenabled = true "));
}

static void read_example(char *text, size_t size)
{
    FILE *file = fopen(EXAMPLE_TOML, "rb");

    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    assert_true(feof(file));
    fclose(file);
}

static void devices_of_several_parts_load(void **state)
{
    struct config config;
    const struct config_device *d;

    (void)state;
    assert_loads("[[device]]\n"
                 "resource = 'a/b'\n"
                 "paths = ['/dev/x', { host = '/dev/y', container = '/dev/z' },"
                 " { host = '/dev/w' }]\n"
                 "mounts = [{ host = '/opt/a' },"
                 " { host = '/opt/b', container = '/opt/c', read_only = false }]\n"
                 "[device.envs]\n"
                 "A = ''\n"
                 "B = 'x=y'\n",
                 &config);
    d = config.devices;
    assert_null(d->path);
    assert_int_equal(d->paths_len, 3);
    assert_string_equal(d->paths[0].host, "/dev/x");
    assert_string_equal(d->paths[0].container, "/dev/x");
    assert_string_equal(d->paths[1].host, "/dev/y");
    assert_string_equal(d->paths[1].container, "/dev/z");
    assert_string_equal(d->paths[2].container, "/dev/w");
    assert_int_equal(d->mounts_len, 2);
    assert_string_equal(d->mounts[0].container, "/opt/a");
    assert_true(d->mounts[0].read_only);
    assert_string_equal(d->mounts[1].host, "/opt/b");
    assert_string_equal(d->mounts[1].container, "/opt/c");
    assert_false(d->mounts[1].read_only);
    assert_int_equal(d->envs_len, 2);
    assert_string_equal(d->envs[0].name, "A");
    assert_string_equal(d->envs[0].value, "");
    assert_string_equal(d->envs[1].value, "x=y");
    config_fini(&config);
}

#define DEVICE "[[device]]\nresource = 'a/b'\n"

static void refuses_bad_parts_of_devices(void **state)
{
    static const char *const FILES[][2] = {
        {DEVICE "path = '/x'\npaths = ['/y']",
         "4:9: this [[device]] has path and paths; expected one of them"},
        {DEVICE "paths = ['/y']\npath = '/x'",
         "4:8: this [[device]] has path and paths; expected one of them"},
        {DEVICE "paths = ['/y']\ncontainer_path = '/x'",
         "4:18: container_path stands beside paths; expected it with each path, as in paths = "
         "[{ host = \"/dev/a\", container = \"/dev/b\" }]"},
        {DEVICE "paths = '/y'",
         "3:9: paths is a string; expected an array, such as [\"/dev/a\", { host = \"/dev/b\", "
         "container = \"/dev/c\" }]"},
        {DEVICE "paths = []", "3:9: paths has 0 elements; expected from 1 to 64"},
        {DEVICE "paths = [1]",
         "3:10: an element of paths is an integer; expected a path in quotes, or { host = "
         "\"/dev/a\", container = \"/dev/b\" }"},
        {DEVICE "paths = ['dev/x']",
         "3:10: an element of paths is \"dev/x\"; expected an absolute path"},
        {DEVICE "paths = ['/dev/x*']",
         "3:10: paths holds \"/dev/x*\"; expected no '*', '?' or '[': several paths are one "
         "device; path may be a glob"},
        {DEVICE "paths = ['/dev/x', { host = '/dev/y', container = '/dev/x' }]",
         "3:20: the container would see \"/dev/x\" twice; expected a container path of its own "
         "for each"},
        {DEVICE "paths = [{ container = '/dev/x' }]",
         "3:10: an element of paths has no host; expected host = \"/...\", where it is"},
        {DEVICE "paths = [{ host = '/dev/x', container = 'x' }]",
         "3:41: container is \"x\"; expected an absolute path"},
        {DEVICE "paths = [{ host = 1 }]",
         "3:19: host is an integer; expected an absolute path in quotes"},
        {DEVICE "paths = [{ host = '/x', container = 1 }]",
         "3:37: container is an integer; expected an absolute path in quotes"},
        {DEVICE "paths = [{ host = '/dev/x', read_only = true }]",
         "3:29: unknown key \"read_only\" in an element of paths; expected one of host, container"},
        {DEVICE "path = '/x'\nmounts = '/y'",
         "4:10: mounts is a string; expected an array, such as [{ host = \"/opt/a\", container = "
         "\"/opt/b\" }]"},
        {DEVICE "path = '/x'\nmounts = []", "4:10: mounts has 0 elements; expected from 1 to 64"},
        {DEVICE "path = '/x'\nmounts = ['/y']",
         "4:11: an element of mounts is a string; expected { host = \"/opt/a\", container = "
         "\"/opt/b\" }"},
        {DEVICE "path = '/x'\nmounts = [{ host = '/y', read_only = 1 }]",
         "4:38: read_only is an integer; expected true or false, without quotes"},
        {DEVICE "path = '/x'\nenvs = 'A=b'",
         "4:8: envs is a string; expected names and texts, such as { NAME = \"value\" }"},
        {DEVICE "path = '/x'\nenvs = {}", "4:8: envs has 0 elements; expected from 1 to 64"},
        {DEVICE "path = '/x'\nenvs = { A = 1 }",
         "4:14: A is an integer; expected a text in quotes"},
        {DEVICE "path = '/x'\nenvs = { 'A=' = 'b' }",
         "4:10: envs has the name \"A=\"; expected the name of an environment variable, without "
         "'='"},
        {DEVICE "path = '/x'\nenvs = { A = \"\\u0000\" }",
         "4:14: A holds a NUL; expected a text without it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        assert_refuses(FILES[i][0], FILES[i][1]);
}

static void example_devices_load(void **state)
{
    char text[32768];
    struct config config;

    (void)state;
    read_example(text, sizeof text);
    uncomment_devices(text);
    assert_loads(text, &config);
    assert_int_equal(config.devices_len, 3);
    assert_int_equal(config.devices[2].paths_len, 2);
    assert_string_equal(config.devices[0].resource, "example.com/kvm");
    assert_string_equal(config.devices[0].permissions, "rw");
    assert_int_equal(config.devices[0].count, 1);
    assert_int_equal(config.resources_len, 1);
    assert_int_equal(config.resources[0].grace_ms, config.grace_ms);
    assert_int_equal(config.resources[0].hold_ms, config.hold_ms);
    assert_int_equal(config.resources[0].allocate_timeout_ms, config.allocate_timeout_ms);
    assert_int_equal(config.resources[0].allocates_at_once, config.allocates_at_once);
    assert_int_equal(config.resources[0].refresh_options, config.refresh_options);
    assert_true(config.resources[0].exclusive);
    assert_int_equal(config.drivers_len, 1);
    assert_false(config.drivers[0].cached_prepare);
    assert_int_equal(config.shutdown.periods_len, 1);
    config_fini(&config);
}

/* Told, without a leak and without a change; also where the file is wrong. How many allocations. */
static unsigned fail_each_allocation(const char *expected)
{
    struct config config, untouched;
    bool failed = true;
    unsigned n = 0;

    memset(&untouched, 0x5a, sizeof untouched);
    while (failed) {
        struct config_error err = {0};
        int result;

        config = untouched;
        alloc_fail_at(++n);
        alloc_fail_enable(true);
        result = config_load(file_path, &config, &err);
        alloc_fail_enable(false);
        failed = alloc_failed();
        assert_int_equal(result, failed || *expected ? -1 : 0);
        assert_non_null(strstr(err.text, failed ? "out of memory" : expected));
        assert_true(err.no_memory == failed);
        if (result == 0)
            config_fini(&config);
        else
            assert_memory_equal(&config, &untouched, sizeof config);
    }
    return n;
}

static void memory_may_end_anywhere(void **state)
{
    char text[32768];

    (void)state;
    read_example(text, sizeof text);
    uncomment_devices(text);
    write_bytes(text, strlen(text));
    assert_true(fail_each_allocation("") > 400);
    strcat(text, "\n[[device]]\nresource = 'a/b'\npath = 5\n[bridg]\n");
    write_bytes(text, strlen(text));
    assert_true(fail_each_allocation("\"bridge\", the nearest") > 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(works_without_a_file),
        cmocka_unit_test(reads_every_key),
        cmocka_unit_test(the_control_socket_is_beside_the_others_or_nowhere),
        cmocka_unit_test(the_agents_settings),
        cmocka_unit_test(refuses_bad_control_sockets),
        cmocka_unit_test(reads_every_key_of_dra),
        cmocka_unit_test(refuses_bad_settings_of_dra),
        cmocka_unit_test(reads_every_key_of_the_bridge),
        cmocka_unit_test(a_resource_has_its_own_rules_and_the_general_ones),
        cmocka_unit_test(devices_have_attributes),
        cmocka_unit_test(attributes_that_are_none),
        cmocka_unit_test(a_driver_has_its_own_rules),
        cmocka_unit_test(a_shutdown_has_its_times),
        cmocka_unit_test(takes_what_the_bounds_still_allow),
        cmocka_unit_test(names_the_place_of_each_fault),
        cmocka_unit_test(tells_all_mistakes_of_a_file_in_their_order),
        cmocka_unit_test(tells_the_first_of_too_many_mistakes),
        cmocka_unit_test(a_name_does_not_break_a_line),
        cmocka_unit_test(refuses_keys_of_too_many_parts),
        cmocka_unit_test(refuses_bad_bridges),
        cmocka_unit_test(refuses_more_names_of_kubelets_than_it_keeps),
        cmocka_unit_test(refuses_durations_that_are_none),
        cmocka_unit_test(refuses_names_that_are_no_extended_resource),
        cmocka_unit_test(refuses_paths_too_long_for_a_socket),
        cmocka_unit_test(the_feed_is_beside_the_kubelets_socket),
        cmocka_unit_test(tells_where_the_syntax_breaks),
        cmocka_unit_test(tells_why_a_file_cannot_be_read),
        cmocka_unit_test(only_a_regular_file_is_read),
        cmocka_unit_test(survives_every_cut_of_the_example),
        cmocka_unit_test(fini_accepts_a_zeroed_struct),
        cmocka_unit_test(example_is_the_defaults),
        cmocka_unit_test(devices_of_several_parts_load),
        cmocka_unit_test(refuses_bad_parts_of_devices),
        cmocka_unit_test(example_devices_load),
        cmocka_unit_test(memory_may_end_anywhere),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
