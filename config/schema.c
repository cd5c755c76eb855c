#include "config/schema.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/listen_address.h"
#include "cri-proto/kube_name.h"
#include "cri-proto/methods.h"
#include "cri-proto/resource_name.h"

/* ---- rules for texts ---- */

static bool has_controls(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    }
    return false;
}

bool text_is_absolute(const char *text)
{
    return text[0] == '/' && !has_controls(text);
}

static bool is_path(const char *text)
{
    return text_is_absolute(text) && strlen(text) < PATH_MAX;
}

static bool is_node_path(const char *text)
{
    return is_path(text) && text[strlen(text) - 1] != '/';
}

static bool is_permissions(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (!strchr("rwm", *at) || strchr(at + 1, *at))
            return false;
    }
    return *text != '\0';
}

static bool is_namespace(const char *text)
{
    return strcmp(text, "*") == 0 || kube_name_is_dns_label(text);
}

/* "namespace/name" of a pod, either with glob(7) characters. */
static bool is_pod_glob(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && slash > text && slash[1] != '\0' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-./*?[]!") == strlen(text) &&
           !strchr(slash + 1, '/');
}

/* "": it is known otherwise. */
static bool is_node_name(const char *text)
{
    return *text == '\0' || kube_name_is_dns_subdomain(text, strlen(text));
}

static bool is_comm(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= COMM_BYTES_MAX && !has_controls(text) && !strchr(text, '/');
}

static bool is_listen(const char *text)
{
    struct listen_address address;

    return !*text || listen_address_parse(text, &address);
}

/* A driver's name is one without a slash. */
static bool is_resource_or_driver(const char *text)
{
    return resource_name_valid(text) || kube_name_is_driver(text);
}

static bool is_id(const char *text)
{
    return *text != '\0' && !has_controls(text);
}

static bool is_effect(const char *text)
{
    return strcmp(text, "None") == 0 || strcmp(text, "NoSchedule") == 0 ||
           strcmp(text, "NoExecute") == 0;
}

bool text_is_glob(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

/* ---- words of the rows ---- */

static const struct schema_choice LEVELS[] = {
    {"error", 3}, {"warning", 4}, {"info", 6}, {"debug", 7}, {0}};

static const struct schema_choice FORMATS[] = {
    {"auto", CONFIG_LOG_AUTO},   {"logfmt", CONFIG_LOG_LOGFMT},   {"json", CONFIG_LOG_JSON},
    {"plain", CONFIG_LOG_PLAIN}, {"journal", CONFIG_LOG_JOURNAL}, {0}};

static const struct schema_choice REFRESH[] = {{"reboot", CONFIG_REFRESH_REBOOT},
                                               {"plugin", CONFIG_REFRESH_PLUGIN},
                                               {"never", CONFIG_REFRESH_NEVER},
                                               {0}};

static const struct schema_text PATH = {is_path, "an absolute path in quotes", "an absolute path"};

static const struct schema_text NODE = {is_node_path, "an absolute path in quotes",
                                        "the absolute path of a device node, or a glob of such"};

static const struct schema_text PERMISSIONS = {
    is_permissions, "one or more of 'r', 'w' and 'm', each once, such as \"rw\"", NULL};

#define RESOURCE_WORDS "an extended resource's name, such as \"vendor.com/serial\""
static const struct schema_text RESOURCE = {
    resource_name_valid, RESOURCE_WORDS,
    RESOURCE_WORDS ": a DNS name outside kubernetes.io, '/', and at most 63 letters, digits, '-', "
                   "'_' or '.'"};

static const struct schema_text TAINTED = {
    is_resource_or_driver, RESOURCE_WORDS ", or a driver's, such as \"gpu.example.com\"", NULL};

static const struct schema_text ID = {is_id, "a device's id in quotes; of a driver \"POOL/DEVICE\"",
                                      NULL};

static const struct schema_text TAINT_KEY = {
    kube_name_is_qualified, "a label's name in quotes, such as \"example.com/broken\"", NULL};

static const struct schema_text TAINT_VALUE = {kube_name_is_label_value,
                                               "a label's value in quotes", NULL};

static const struct schema_text EFFECT = {is_effect, "\"None\", \"NoSchedule\" or \"NoExecute\"",
                                          NULL};

static const struct schema_text NAMESPACE = {
    is_namespace, "a namespace in quotes",
    "a namespace's name (at most 63 of a-z, 0-9 and '-') or \"*\""};

static const struct schema_text LISTEN = {
    is_listen,
    "\"\", the absolute path of a unix socket of at most 107 bytes, or a loopback address with its "
    "port, such as \"127.0.0.1:9100\" or \"[::1]:9100\"",
    NULL};

static const struct schema_text POD = {
    is_pod_glob, "a pod in quotes, such as \"kube-system/gpu-dra-driver-*\"",
    "a pod's namespace, '/' and its name, both of which may have '*', '?' and '[...]'"};

static const struct schema_text NODE_NAME = {
    is_node_name, "a node's name in quotes",
    "\"\", or a node's name (at most 253 of a-z, 0-9, '-' and '.')"};

static const struct schema_text DRIVER = {
    kube_name_is_driver, "a DRA driver's name in quotes, such as \"gpu.example.com\"",
    "a DRA driver's name, such as \"gpu.example.com\": at most 63 of a-z, 0-9, '-' and '.'"};

static const struct schema_text PROCESS = {
    is_comm, "a process's name in quotes",
    "a process's name as /proc/PID/comm has it, 1 to 15 bytes and no '/'"};

_Static_assert(sizeof(enum config_refresh) == sizeof(int), "a VALUE_CHOICE");
_Static_assert(sizeof(enum config_log_format) == sizeof(int), "a VALUE_CHOICE");
_Static_assert(COMM_BYTES_MAX == 15, "what PROCESS says");
_Static_assert(SOCKET_BYTES_MAX == 107, "what LISTEN says");

/* Elements of a [[device]]'s paths, mounts and envs, each: a container that gets the device gets
 * them all. And names of kubelets. */
#define ELEMENTS_MAX 64
#define DIRECTORY_BYTES_MAX (PATH_MAX - 256)

/* Behind the member its default, the least and the most, then what else there is to say. */
#define KEY(in, name, type, of, member, ...)                                                       \
    {                                                                                              \
        .section = SECTION_##in, name, VALUE_##type, offsetof(struct of, member), __VA_ARGS__      \
    }
#define LIST(in, name, type, of, member, ...)                                                      \
    KEY(in, name, type, of, member, __VA_ARGS__, .len = offsetof(struct of, member##_len))
#define TABLE(name, inner_section)                                                                 \
    {                                                                                              \
        SECTION_TOP, name, VALUE_TABLE, .inner = SECTION_##inner_section                           \
    }
#define LIVE .live = true
#define OWN(member) .override = offsetof(struct config_resource, member)

const struct schema_key schema_keys[] = {
    KEY(TOP, "listen", SOCKET, config, listen, "/run/cri-device-shim/cri-device-shim.sock",
        .limit = SOCKET_BYTES_MAX),
    KEY(TOP, "runtime_endpoint", SOCKET, config, runtime_endpoint,
        "/run/containerd/containerd.sock", .limit = SOCKET_BYTES_MAX),
    KEY(TOP, "state_dir", DIRECTORY, config, state_dir, "/var/lib/cri-device-shim",
        .limit = DIRECTORY_BYTES_MAX, .reason = ""),
    KEY(TOP, "log_level", CHOICE, config, log_level, .choices = LEVELS, .older_name = true),
    KEY(TOP, "drain", DURATION, config, drain_ms, "10s", NULL, "1h", LIVE),
    TABLE("log", LOG),
    TABLE("metrics", METRICS),
    TABLE("plugins", PLUGINS),
    TABLE("annotations", ANNOTATIONS),
    TABLE("bridge", BRIDGE),
    TABLE("dra", DRA),
    TABLE("cluster", CLUSTER),
    TABLE("control", CONTROL),

    /* Behind log_level, its older name, whose value it takes the place of where it is given. */
    KEY(LOG, "level", CHOICE, config, log_level, "info", .choices = LEVELS, LIVE),
    KEY(LOG, "format", CHOICE, config, log_format, "auto", .choices = FORMATS, LIVE),

    KEY(METRICS, "listen", TEXT, config, metrics.listen, "", .text = &LISTEN),

    KEY(PLUGINS, "plugin_dir", DIRECTORY, config, plugin_dir,
        "/var/lib/cri-device-shim/device-plugins",
        .limit = SOCKET_BYTES_MAX - (sizeof PLUGIN_SOCKET - 1),
        .reason = ", so that a unix socket's path in it still fits"),
    KEY(PLUGINS, "grace", DURATION, config, grace_ms, "5m", NULL, "720h", LIVE, OWN(grace_ms)),
    KEY(PLUGINS, "hold", DURATION, config, hold_ms, "5s", NULL, "60s", LIVE, OWN(hold_ms)),
    KEY(PLUGINS, "allocate_timeout", DURATION, config, allocate_timeout_ms, "10s", "1ms", "1h",
        LIVE, OWN(allocate_timeout_ms)),
    KEY(PLUGINS, "prestart_timeout", DURATION, config, prestart_timeout_ms, "30s", "1ms", "1h",
        LIVE),
    KEY(PLUGINS, "kubelet_wait", DURATION, config, kubelet_wait_ms, "2m", NULL, "720h"),
    KEY(PLUGINS, "refresh_options", CHOICE, config, refresh_options, "reboot", .choices = REFRESH,
        LIVE, OWN(refresh_options)),
    KEY(PLUGINS, "taint_unhealthy_after", DURATION, config, taint_unhealthy_after_ms, "0s", NULL,
        "720h", LIVE, OWN(taint_unhealthy_after_ms)),
    KEY(PLUGINS, "evict_per_minute", COUNT, config, evict_per_minute, "30", "0", "600", LIVE),
    KEY(PLUGINS, "hide_other_namespaces", FLAG, config, hide_other_namespaces, "false", LIVE),

    KEY(ANNOTATIONS, "enabled", FLAG, config, annotations_enabled, "false", LIVE),
    LIST(ANNOTATIONS, "namespaces", NAMES, config, annotation_namespaces, "", .text = &NAMESPACE,
         LIVE,
         .expected = "an array of names in quotes, such as [\"default\"], or [\"*\"] for all"),
    KEY(ANNOTATIONS, "start_without", FLAG, config, start_without, "false", LIVE),

    KEY(BRIDGE, "enabled", FLAG, config, bridge.enabled, "true"),
    /* Beside the default of listen; where listen is another, check.cpp puts it beside that. */
    KEY(BRIDGE, "socket", SOCKET, config, bridge.socket, "/run/cri-device-shim/bridge.sock",
        .limit = SOCKET_BYTES_MAX),
    KEY(BRIDGE, "kubelet_plugin_dir", DIRECTORY, config, bridge.kubelet_plugin_dir,
        "/var/lib/kubelet/device-plugins",
        .limit = SOCKET_BYTES_MAX - (sizeof BRIDGE_SUBDIRECTORY - 1) - BRIDGE_NAME_BYTES,
        .reason = ", so that the paths of the bridge's sockets in it still fit"),
    KEY(BRIDGE, "mask", DURATION, config, bridge.mask_ms, "2m", NULL, "720h"),
    KEY(BRIDGE, "preferred_timeout", DURATION, config, bridge.preferred_timeout_ms, "500ms", "1ms",
        "10s", LIVE),
    KEY(BRIDGE, "gate", FLAG, config, bridge.gate, "true"),
    KEY(BRIDGE, "gate_timeout", DURATION, config, bridge.gate_timeout_ms, "10s", "1ms", "60s",
        LIVE),
    LIST(BRIDGE, "kubelet_processes", NAMES, config, bridge.kubelet_processes,
         "kubelet,k3s-server,k3s-agent,kubelite", .text = &PROCESS, .limit = ELEMENTS_MAX,
         .expected = "an array of names in quotes, such as [\"kubelet\"]"),
    KEY(BRIDGE, "redirect_plugin_mounts", FLAG, config, bridge.redirect_plugin_mounts, "false"),

    /* registry_dir is beside plugins.plugin_dir; where that is another, check.cpp puts it there. */
    KEY(DRA, "enabled", FLAG, config, dra.enabled, "true"),
    KEY(DRA, "registry_dir", DIRECTORY, config, dra.registry_dir,
        "/var/lib/cri-device-shim/plugins_registry",
        .limit = SOCKET_BYTES_MAX - REGISTRY_NAME_BYTES,
        .reason = ", so that the paths of drivers' sockets in it still fit"),
    KEY(DRA, "kubelet_registry_dir", DIRECTORY, config, dra.kubelet_registry_dir,
        "/var/lib/kubelet/plugins_registry", .limit = SOCKET_BYTES_MAX - KUBELET_LINK_BYTES,
        .reason = ", so that the paths of links in it still fit"),
    KEY(DRA, "call_timeout", DURATION, config, dra.call_timeout_ms, "45s", "1ms", "1h", LIVE),
    KEY(DRA, "mask", DURATION, config, dra.mask_ms, "10s", NULL, "1h", LIVE),
    KEY(DRA, "wipe_after", DURATION, config, dra.wipe_after_ms, "30s", NULL, "720h", LIVE),
    KEY(DRA, "wipe_at_start", FLAG, config, dra.wipe_at_start, "false"),
    LIST(DRA, "redirect_mounts", NAMES, config, dra.redirect_mounts, "", .text = &POD,
         .limit = ELEMENTS_MAX,
         .expected = "an array of pods in quotes, such as [\"kube-system/gpu-dra-driver-*\"]"),

    KEY(CLUSTER, "enabled", FLAG, config, cluster.enabled, "false"),
    /* Placed as bridge.socket is. */
    KEY(CLUSTER, "socket", SOCKET, config, cluster.socket, "/run/cri-device-shim/agent.sock",
        .limit = SOCKET_BYTES_MAX),
    KEY(CLUSTER, "kubeconfig", TEXT, config, cluster.kubeconfig, "/etc/kubernetes/kubelet.conf",
        .text = &PATH),
    KEY(CLUSTER, "node_name", TEXT, config, cluster.node_name, "", .text = &NODE_NAME),
    KEY(CLUSTER, "evict_force_after", DURATION, config, cluster.evict_force_after_ms, "0s", NULL,
        "720h", LIVE),
    KEY(CLUSTER, "insecure_skip_tls_verify", FLAG, config, cluster.insecure_skip_tls_verify,
        "false"),
    KEY(CLUSTER, "events_after", DURATION, config, cluster.events_after_ms, "1m", NULL, "24h",
        LIVE),

    /* Placed as bridge.socket is. */
    KEY(CONTROL, "socket", SOCKET, config, control_socket, CONTROL_SOCKET_DEFAULT,
        .limit = SOCKET_BYTES_MAX, .may_be_empty = true),

    LIST(TOP, "device", TABLES, config, devices, .inner = SECTION_DEVICE,
         .expected = "[[device]] tables, with two brackets"),
    /* Behind "plugins", of which it takes what its tables do not say. */
    LIST(TOP, "resource", TABLES, config, resources, .inner = SECTION_RESOURCE,
         .expected = "[[resource]] tables, with two brackets"),
    LIST(TOP, "driver", TABLES, config, drivers, .inner = SECTION_DRIVER, LIVE,
         .expected = "[[driver]] tables, with two brackets"),

    LIST(TOP, "taint", TABLES, config, taints, .inner = SECTION_TAINT, LIVE,
         .expected = "[[taint]] tables, with two brackets"),

    KEY(DEVICE, "resource", TEXT, config_device, resource, .text = &RESOURCE,
        .required = "resource = \"vendor.com/name\""),
    KEY(DEVICE, "path", TEXT, config_device, path, .text = &NODE),
    KEY(DEVICE, "container_path", TEXT, config_device, container_path, .text = &PATH),
    LIST(DEVICE, "paths", TABLES, config_device, paths, .inner = SECTION_PATH,
         .limit = ELEMENTS_MAX,
         .expected =
             "an array, such as [\"/dev/a\", { host = \"/dev/b\", container = \"/dev/c\" }]"),
    KEY(DEVICE, "permissions", TEXT, config_device, permissions, "rw", .text = &PERMISSIONS),
    KEY(DEVICE, "count", COUNT, config_device, count, "1", "1", "10000"),
    LIST(DEVICE, "mounts", TABLES, config_device, mounts, .inner = SECTION_MOUNT,
         .limit = ELEMENTS_MAX,
         .expected = "an array, such as [{ host = \"/opt/a\", container = \"/opt/b\" }]"),
    LIST(DEVICE, "envs", ENVIRONMENT, config_device, envs, .limit = ELEMENTS_MAX,
         .expected = "names and texts, such as { NAME = \"value\" }"),

    KEY(RESOURCE, "name", TEXT, config_resource, name, .text = &RESOURCE,
        .required = "name = \"vendor.com/name\""),
    KEY(RESOURCE, "exclusive", FLAG, config_resource, exclusive, "true"),

    KEY(DRIVER, "name", TEXT, config_driver, name, .text = &DRIVER, LIVE,
        .required = "name = \"gpu.example.com\""),
    KEY(DRIVER, "cached_prepare", FLAG, config_driver, cached_prepare, "false", LIVE),

    KEY(TAINT, "resource", TEXT, config_taint, resource, .text = &TAINTED, LIVE,
        .required = "resource = \"vendor.com/name\""),
    KEY(TAINT, "id", TEXT, config_taint, id, .text = &ID, LIVE),
    KEY(TAINT, "key", TEXT, config_taint, key, .text = &TAINT_KEY, LIVE,
        .required = "key = \"example.com/name\""),
    KEY(TAINT, "value", TEXT, config_taint, value, .text = &TAINT_VALUE, LIVE),
    KEY(TAINT, "effect", TEXT, config_taint, effect, .text = &EFFECT, LIVE,
        .required = "effect = \"NoSchedule\""),

    KEY(PATH, "host", TEXT, config_node, host, .text = &PATH,
        .required = "host = \"/...\", where it is"),
    KEY(PATH, "container", TEXT, config_node, container, .text = &PATH),

    KEY(MOUNT, "host", TEXT, config_mount, host, .text = &PATH,
        .required = "host = \"/...\", where it is"),
    KEY(MOUNT, "container", TEXT, config_mount, container, .text = &PATH),
    KEY(MOUNT, "read_only", FLAG, config_mount, read_only, "true"),
};

const size_t schema_keys_len = sizeof schema_keys / sizeof *schema_keys;

const struct schema_table schema_tables[SECTIONS] = {
    [SECTION_TOP] = {.name = "the top level"},
    [SECTION_LOG] = {.name = "[log]"},
    [SECTION_METRICS] = {.name = "[metrics]"},
    [SECTION_PLUGINS] = {.name = "[plugins]"},
    [SECTION_ANNOTATIONS] = {.name = "[annotations]"},
    [SECTION_BRIDGE] = {.name = "[bridge]"},
    [SECTION_DRA] = {.name = "[dra]"},
    [SECTION_CLUSTER] = {.name = "[cluster]"},
    [SECTION_CONTROL] = {.name = "[control]"},
    [SECTION_DEVICE] = {.name = "[[device]]", .bytes = sizeof(struct config_device)},
    [SECTION_RESOURCE] = {.name = "[[resource]]", .bytes = sizeof(struct config_resource)},
    [SECTION_DRIVER] = {.name = "[[driver]]", .bytes = sizeof(struct config_driver)},
    [SECTION_TAINT] = {.name = "[[taint]]", .bytes = sizeof(struct config_taint)},
    [SECTION_PATH] = {.name = "an element of paths",
                      .bytes = sizeof(struct config_node),
                      .element =
                          "a path in quotes, or { host = \"/dev/a\", container = \"/dev/b\" }",
                      .or_text = true},
    [SECTION_MOUNT] = {.name = "an element of mounts",
                       .bytes = sizeof(struct config_mount),
                       .element = "{ host = \"/opt/a\", container = \"/opt/b\" }"},
};

const struct schema_key *schema_next(enum schema_section section, const struct schema_key *after)
{
    const struct schema_key *end = schema_keys + schema_keys_len;

    for (after = after ? after + 1 : schema_keys; after < end; after++) {
        if (after->section == section || (section == SECTION_RESOURCE && after->override))
            return after;
    }
    return NULL;
}

const struct schema_key *schema_find(enum schema_section section, const char *name, size_t len)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key)) &&
           (strlen(key->name) != len || memcmp(key->name, name, len) != 0))
        continue;
    return key;
}

void schema_full_name(const struct schema_key *key, char out[SCHEMA_NAME_BYTES])
{
    const char *section = schema_tables[key->section].name; /* "[plugins]" */

    if (key->type == VALUE_TABLES)
        snprintf(out, SCHEMA_NAME_BYTES, "[[%s]]", key->name);
    else if (key->section == SECTION_TOP)
        snprintf(out, SCHEMA_NAME_BYTES, "%s", key->name);
    else
        snprintf(out, SCHEMA_NAME_BYTES, "%.*s.%s", (int)strlen(section) - 2, section + 1,
                 key->name);
}

void *schema_slot(const struct schema_key *key, enum schema_section section, void *base)
{
    bool own = section == SECTION_RESOURCE && key->section != SECTION_RESOURCE;

    return (char *)base + (own ? key->override : key->offset);
}
