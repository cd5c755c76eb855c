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

/* Those that each device has (devicemgr/lift.h). */
static bool is_given(const char *name)
{
    static const char *const GIVEN[] = {"resource", "id", "numaNode", "numaNodes"};

    for (size_t i = 0; i < sizeof GIVEN / sizeof *GIVEN; i++) {
        if (strcmp(name, GIVEN[i]) == 0)
            return true;
    }
    return false;
}

/* staging/src/k8s.io/api/resource/v1/types.go, QualifiedName: a C identifier, behind a domain and
 * '/' or not. */
static bool is_attribute(const char *text)
{
    const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
    size_t domain = slash ? (size_t)(slash - text) : 0, len = strlen(name);

    if (slash && (domain > 63 || !kube_name_is_dns_subdomain(text, domain)))
        return false;
    return len > 0 && len <= 32 && (*name < '0' || *name > '9') && !is_given(text) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == len;
}

static bool is_attribute_text(const char *text)
{
    return strlen(text) <= 64 && !has_controls(text) && !strchr(text, '"');
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

static const struct schema_text IDS = {
    is_id, "a device's id in quotes, which may have '*', '?' and '[...]'", NULL};

#define ATTRIBUTE_WORDS "an attribute's name in quotes, such as \"model\""
static const struct schema_text ATTRIBUTE = {
    is_attribute, ATTRIBUTE_WORDS,
    ATTRIBUTE_WORDS ": at most 32 letters, digits and '_', with a domain and '/' in front or "
                    "without; none of resource, id, numaNode and numaNodes"};

static const struct schema_text ATTRIBUTE_TEXT = {
    is_attribute_text, "a text in quotes, a whole number, true or false",
    "a text of at most 64 bytes, without quotes and controls in it"};

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
    "port, such as \"127.0.0.1:19100\" or \"[::1]:19100\"",
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
_Static_assert(offsetof(struct config, listen) > 0, "0 is none, of those that are beside another");
_Static_assert(COMM_BYTES_MAX == 15, "what PROCESS says");
_Static_assert(SOCKET_BYTES_MAX == 107, "what LISTEN says");

/* Elements of a [[device]]'s paths, mounts and envs, each: a container that gets the device gets
 * them all. And names of kubelets. */
#define ELEMENTS_MAX 64
/* Rows for the devices of one resource, of which each has some. */
#define ATTRIBUTES_MAX 1024
#define DIRECTORY_BYTES_MAX (PATH_MAX - 256)

/* Behind the member its default, the least and the most, then what else there is to say. */
#define KEY_OF(of, in, name, type, member, ...)                                                    \
    {                                                                                              \
        .section = SECTION_##in, name, VALUE_##type, offsetof(struct of, member), __VA_ARGS__      \
    }
#define LIST_OF(of, in, name, type, member, ...)                                                   \
    KEY_OF(of, in, name, type, member, __VA_ARGS__, .len = offsetof(struct of, member##_len))
#define KEY(...) KEY_OF(config, __VA_ARGS__)
#define LIST(...) LIST_OF(config, __VA_ARGS__)
#define SOCKET(in, name, ...) KEY(in, name, SOCKET, __VA_ARGS__, .limit = SOCKET_BYTES_MAX)
#define TABLE(name, inner_section)                                                                 \
    {                                                                                              \
        SECTION_TOP, name, VALUE_TABLE, .inner = SECTION_##inner_section                           \
    }
#define LIVE .live = true
#define OWN(member) .override = offsetof(struct config_resource, member)
#define BESIDE(member) .beside = offsetof(struct config, member)

const struct schema_key schema_keys[] = {
    SOCKET(TOP, "listen", listen, "/run/cri-device-shim/cri-device-shim.sock"),
    SOCKET(TOP, "runtime_endpoint", runtime_endpoint, "/run/containerd/containerd.sock"),
    KEY(TOP, "state_dir", DIRECTORY, state_dir, "/var/lib/cri-device-shim",
        .limit = DIRECTORY_BYTES_MAX, .reason = ""),
    KEY(TOP, "log_level", CHOICE, log_level, .choices = LEVELS, .older_name = true, LIVE),
    KEY(TOP, "drain", DURATION, drain_ms, "10s", NULL, "1h", LIVE),
    TABLE("log", LOG),
    TABLE("metrics", METRICS),
    TABLE("plugins", PLUGINS),
    TABLE("annotations", ANNOTATIONS),
    TABLE("bridge", BRIDGE),
    TABLE("dra", DRA),
    TABLE("cluster", CLUSTER),
    TABLE("shutdown", SHUTDOWN),
    TABLE("control", CONTROL),

    /* Behind log_level, its older name, whose value it takes the place of where it is given. */
    KEY(LOG, "level", CHOICE, log_level, "info", .choices = LEVELS, LIVE),
    KEY(LOG, "format", CHOICE, log_format, "auto", .choices = FORMATS, LIVE),

    KEY(METRICS, "listen", TEXT, metrics.listen, "", .text = &LISTEN),
    KEY(METRICS, "page", FLAG, metrics.page, "false"),

    KEY(PLUGINS, "plugin_dir", DIRECTORY, plugin_dir, "/var/lib/cri-device-shim/device-plugins",
        .limit = SOCKET_BYTES_MAX - (sizeof PLUGIN_SOCKET - 1),
        .reason = ", so that a unix socket's path in it still fits"),
    KEY(PLUGINS, "grace", DURATION, grace_ms, "5m", NULL, "720h", LIVE, OWN(grace_ms)),
    KEY(PLUGINS, "hold", DURATION, hold_ms, "5s", NULL, "60s", LIVE, OWN(hold_ms)),
    KEY(PLUGINS, "allocate_timeout", DURATION, allocate_timeout_ms, "10s", "1ms", "1h", LIVE,
        OWN(allocate_timeout_ms)),
    KEY(PLUGINS, "allocates_at_once", COUNT, allocates_at_once, "1", "0", "1000", LIVE,
        OWN(allocates_at_once)),
    KEY(PLUGINS, "prestart_timeout", DURATION, prestart_timeout_ms, "30s", "1ms", "1h", LIVE),
    KEY(PLUGINS, "kubelet_wait", DURATION, kubelet_wait_ms, "2m", NULL, "720h"),
    KEY(PLUGINS, "refresh_options", CHOICE, refresh_options, "reboot", .choices = REFRESH, LIVE,
        OWN(refresh_options)),
    KEY(PLUGINS, "taint_unhealthy_after", DURATION, taint_unhealthy_after_ms, "0s", NULL, "720h",
        LIVE, OWN(taint_unhealthy_after_ms)),
    KEY(PLUGINS, "evict_per_minute", COUNT, evict_per_minute, "30", "0", "600", LIVE),
    KEY(PLUGINS, "hide_other_namespaces", FLAG, hide_other_namespaces, "false", LIVE),

    KEY(ANNOTATIONS, "enabled", FLAG, annotations_enabled, "false", LIVE),
    LIST(ANNOTATIONS, "namespaces", NAMES, annotation_namespaces, "", .text = &NAMESPACE, LIVE,
         .expected = "an array of names in quotes, such as [\"default\"], or [\"*\"] for all"),
    KEY(ANNOTATIONS, "start_without", FLAG, start_without, "false", LIVE),

    KEY(BRIDGE, "enabled", FLAG, bridge.enabled, "true"),
    SOCKET(BRIDGE, "socket", bridge.socket, "/run/cri-device-shim/bridge.sock", BESIDE(listen)),
    KEY(BRIDGE, "kubelet_plugin_dir", DIRECTORY, bridge.kubelet_plugin_dir,
        "/var/lib/kubelet/device-plugins",
        .limit = SOCKET_BYTES_MAX - (sizeof BRIDGE_SUBDIRECTORY - 1) - BRIDGE_NAME_BYTES,
        .reason = ", so that the paths of the bridge's sockets in it still fit"),
    KEY(BRIDGE, "mask", DURATION, bridge.mask_ms, "2m", NULL, "720h"),
    KEY(BRIDGE, "preferred_timeout", DURATION, bridge.preferred_timeout_ms, "500ms", "1ms", "10s",
        LIVE),
    KEY(BRIDGE, "gate", FLAG, bridge.gate, "true"),
    KEY(BRIDGE, "gate_timeout", DURATION, bridge.gate_timeout_ms, "10s", "1ms", "60s", LIVE),
    LIST(BRIDGE, "kubelet_processes", NAMES, bridge.kubelet_processes,
         "kubelet,k3s-server,k3s-agent,kubelite", .text = &PROCESS, .limit = ELEMENTS_MAX,
         .expected = "an array of names in quotes, such as [\"kubelet\"]"),
    KEY(BRIDGE, "redirect_plugin_mounts", FLAG, bridge.redirect_plugin_mounts, "false"),

    KEY(DRA, "enabled", FLAG, dra.enabled, "true"),
    KEY(DRA, "registry_dir", DIRECTORY, dra.registry_dir,
        "/var/lib/cri-device-shim/plugins_registry", BESIDE(plugin_dir),
        .limit = SOCKET_BYTES_MAX - REGISTRY_NAME_BYTES,
        .reason = ", so that the paths of drivers' sockets in it still fit"),
    KEY(DRA, "kubelet_registry_dir", DIRECTORY, dra.kubelet_registry_dir,
        "/var/lib/kubelet/plugins_registry", .limit = SOCKET_BYTES_MAX - KUBELET_LINK_BYTES,
        .reason = ", so that the paths of links in it still fit"),
    KEY(DRA, "call_timeout", DURATION, dra.call_timeout_ms, "45s", "1ms", "1h", LIVE),
    KEY(DRA, "mask", DURATION, dra.mask_ms, "10s", NULL, "1h", LIVE),
    KEY(DRA, "wipe_after", DURATION, dra.wipe_after_ms, "30s", NULL, "720h", LIVE),
    KEY(DRA, "wipe_at_start", FLAG, dra.wipe_at_start, "false"),
    LIST(DRA, "redirect_mounts", NAMES, dra.redirect_mounts, "", .text = &POD,
         .limit = ELEMENTS_MAX,
         .expected = "an array of pods in quotes, such as [\"kube-system/gpu-dra-driver-*\"]"),

    KEY(CLUSTER, "enabled", FLAG, cluster.enabled, "false"),
    SOCKET(CLUSTER, "socket", cluster.socket, "/run/cri-device-shim/agent.sock", BESIDE(listen)),
    KEY(CLUSTER, "kubeconfig", TEXT, cluster.kubeconfig, "/etc/kubernetes/kubelet.conf",
        .text = &PATH),
    KEY(CLUSTER, "node_name", TEXT, cluster.node_name, "", .text = &NODE_NAME),
    KEY(CLUSTER, "evict_force_after", DURATION, cluster.evict_force_after_ms, "0s", NULL, "720h",
        LIVE),
    KEY(CLUSTER, "insecure_skip_tls_verify", FLAG, cluster.insecure_skip_tls_verify, "false"),
    KEY(CLUSTER, "events_after", DURATION, cluster.events_after_ms, "1m", NULL, "24h", LIVE),

    KEY(SHUTDOWN, "grace", DURATION, shutdown.grace_ms, "0s", NULL, "24h", LIVE),
    KEY(SHUTDOWN, "critical_grace", DURATION, shutdown.critical_grace_ms, "0s", NULL, "24h", LIVE),
    LIST(SHUTDOWN, "period", TABLES, shutdown.periods, .inner = SECTION_PERIOD, LIVE,
         .limit = ELEMENTS_MAX),

    SOCKET(CONTROL, "socket", control_socket, CONTROL_SOCKET_DEFAULT, BESIDE(listen),
           .may_be_empty = true),

    LIST(TOP, "device", TABLES, devices, .inner = SECTION_DEVICE),
    /* Behind "plugins", of which it takes what its tables do not say. */
    LIST(TOP, "resource", TABLES, resources, .inner = SECTION_RESOURCE),
    LIST(TOP, "driver", TABLES, drivers, .inner = SECTION_DRIVER, LIVE),
    LIST(TOP, "taint", TABLES, taints, .inner = SECTION_TAINT, LIVE),

    KEY_OF(config_device, DEVICE, "resource", TEXT, resource, .text = &RESOURCE,
           .required = "resource = \"vendor.com/name\""),
    KEY_OF(config_device, DEVICE, "path", TEXT, path, .text = &NODE),
    KEY_OF(config_device, DEVICE, "container_path", TEXT, container_path, .text = &PATH),
    LIST_OF(config_device, DEVICE, "paths", TABLES, paths, .inner = SECTION_PATH,
            .limit = ELEMENTS_MAX,
            .expected =
                "an array, such as [\"/dev/a\", { host = \"/dev/b\", container = \"/dev/c\" }]"),
    KEY_OF(config_device, DEVICE, "permissions", TEXT, permissions, "rw", .text = &PERMISSIONS),
    KEY_OF(config_device, DEVICE, "count", COUNT, count, "1", "1", "10000"),
    LIST_OF(config_device, DEVICE, "mounts", TABLES, mounts, .inner = SECTION_MOUNT,
            .limit = ELEMENTS_MAX,
            .expected = "an array, such as [{ host = \"/opt/a\", container = \"/opt/b\" }]"),
    LIST_OF(config_device, DEVICE, "envs", ENVIRONMENT, envs, .limit = ELEMENTS_MAX,
            .expected = "names and texts, such as { NAME = \"value\" }"),

    KEY_OF(config_resource, RESOURCE, "name", TEXT, name, .text = &RESOURCE,
           .required = "name = \"vendor.com/name\""),
    KEY_OF(config_resource, RESOURCE, "exclusive", FLAG, exclusive, "true"),
    KEY_OF(config_resource, RESOURCE, "dra", FLAG, dra, "false"),
    KEY_OF(config_resource, RESOURCE, "replace", FLAG, replace, "false", LIVE),
    KEY_OF(config_resource, RESOURCE, "replace_after", DURATION, replace_after_ms, "30s", NULL,
           "720h", LIVE),
    LIST_OF(config_resource, RESOURCE, "attribute", TABLES, attributes, .inner = SECTION_ATTRIBUTE,
            .limit = ATTRIBUTES_MAX, LIVE),

    KEY_OF(config_driver, DRIVER, "name", TEXT, name, .text = &DRIVER, LIVE,
           .required = "name = \"gpu.example.com\""),
    KEY_OF(config_driver, DRIVER, "cached_prepare", FLAG, cached_prepare, "false", LIVE),

    KEY_OF(config_taint, TAINT, "resource", TEXT, resource, .text = &TAINTED, LIVE,
           .required = "resource = \"vendor.com/name\""),
    KEY_OF(config_taint, TAINT, "id", TEXT, id, .text = &ID, LIVE),
    KEY_OF(config_taint, TAINT, "key", TEXT, key, .text = &TAINT_KEY, LIVE,
           .required = "key = \"example.com/name\""),
    KEY_OF(config_taint, TAINT, "value", TEXT, value, .text = &TAINT_VALUE, LIVE),
    KEY_OF(config_taint, TAINT, "effect", TEXT, effect, .text = &EFFECT, LIVE,
           .required = "effect = \"NoSchedule\""),

    KEY_OF(config_node, PATH, "host", TEXT, host, .text = &PATH,
           .required = "host = \"/...\", where it is"),
    KEY_OF(config_node, PATH, "container", TEXT, container, .text = &PATH),

    KEY_OF(config_mount, MOUNT, "host", TEXT, host, .text = &PATH,
           .required = "host = \"/...\", where it is"),
    KEY_OF(config_mount, MOUNT, "container", TEXT, container, .text = &PATH),
    KEY_OF(config_mount, MOUNT, "read_only", FLAG, read_only, "true"),

    KEY_OF(config_shutdown_period, PERIOD, "priority", INTEGER, priority, NULL, "-2147483648",
           "2147483647", LIVE, .required = "priority = 0, the lowest of the pods it is for"),
    KEY_OF(config_shutdown_period, PERIOD, "grace", DURATION, grace_ms, NULL, "1s", "24h", LIVE,
           .required = "grace = \"30s\", how long they have"),

    KEY_OF(config_attribute, ATTRIBUTE, "device", TEXT, device, "*", .text = &IDS, LIVE),
    KEY_OF(config_attribute, ATTRIBUTE, "name", TEXT, name, .text = &ATTRIBUTE, LIVE,
           .required = "name = \"model\""),
    KEY_OF(config_attribute, ATTRIBUTE, "value", SCALAR, value, .text = &ATTRIBUTE_TEXT, LIVE,
           .required = "value = \"a text\", a whole number, true or false"),
    KEY_OF(config_attribute, ATTRIBUTE, "version", FLAG, version, "false", LIVE),
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
    [SECTION_SHUTDOWN] = {.name = "[shutdown]"},
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
    [SECTION_PERIOD] = {.name = "[[shutdown.period]]",
                        .bytes = sizeof(struct config_shutdown_period)},
    [SECTION_ATTRIBUTE] = {.name = "[[resource.attribute]]",
                           .bytes = sizeof(struct config_attribute)},
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

    if (key->type == VALUE_TABLES && key->section == SECTION_TOP)
        snprintf(out, SCHEMA_NAME_BYTES, "[[%s]]", key->name);
    else if (key->type == VALUE_TABLES)
        snprintf(out, SCHEMA_NAME_BYTES, "[[%.*s.%s]]", (int)strlen(section) - 2, section + 1,
                 key->name);
    else if (key->section == SECTION_TOP)
        snprintf(out, SCHEMA_NAME_BYTES, "%s", key->name);
    else
        snprintf(out, SCHEMA_NAME_BYTES, "%.*s.%s", (int)strlen(section) - 2, section + 1,
                 key->name);
}

void schema_initial(const struct schema_key *key, const struct config *config, char *out,
                    size_t size)
{
    const char *initial = key->initial ? key->initial : "", *beside;

    if (key->beside) {
        beside = *(char **)((char *)config + key->beside);
        snprintf(out, size, "%.*s%s", (int)(strrchr(beside, '/') - beside), beside,
                 strrchr(initial, '/'));
    } else {
        snprintf(out, size, "%s", initial);
    }
}

void *schema_slot(const struct schema_key *key, enum schema_section section, void *base)
{
    bool own = section == SECTION_RESOURCE && key->section != SECTION_RESOURCE;

    return (char *)base + (own ? key->override : key->offset);
}
