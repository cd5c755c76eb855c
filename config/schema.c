#include "config/schema.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/listen_address.h"
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

/* A label of RFC 1123 in lower case. */
static bool is_namespace(const char *text)
{
    size_t len = strlen(text);

    if (strcmp(text, "*") == 0)
        return true;
    return len > 0 && len <= 63 && text[0] != '-' && text[len - 1] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
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

#define PERMISSIONS_WORDS "one or more of 'r', 'w' and 'm', each once, such as \"rw\""
static const struct schema_text PERMISSIONS = {is_permissions, PERMISSIONS_WORDS,
                                               PERMISSIONS_WORDS};

#define RESOURCE_WORDS "an extended resource's name, such as \"vendor.com/serial\""
static const struct schema_text RESOURCE = {
    resource_name_valid, RESOURCE_WORDS,
    RESOURCE_WORDS ": a DNS name outside kubernetes.io, '/', and at most 63 letters, digits, '-', "
                   "'_' or '.'"};

static const struct schema_text NAMESPACE = {
    is_namespace, "a namespace in quotes",
    "a namespace's name (at most 63 of a-z, 0-9 and '-') or \"*\""};

#define LISTEN_WORDS                                                                               \
    "\"\", the absolute path of a unix socket of at most 107 bytes, or a loopback address with "   \
    "its "                                                                                         \
    "port, such as \"127.0.0.1:9100\" or \"[::1]:9100\""
static const struct schema_text LISTEN = {is_listen, LISTEN_WORDS, LISTEN_WORDS};

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

#define AT(member) offsetof(struct config, member)
#define OWN(member) offsetof(struct config_resource, member)
#define LIST(type, member) offsetof(type, member), offsetof(type, member##_len)

const struct schema_key schema_keys[] = {
    {SECTION_TOP, "listen", VALUE_SOCKET, AT(listen),
     .initial = "/run/cri-device-shim/cri-device-shim.sock", .limit = SOCKET_BYTES_MAX},
    {SECTION_TOP, "runtime_endpoint", VALUE_SOCKET, AT(runtime_endpoint),
     .initial = "/run/containerd/containerd.sock", .limit = SOCKET_BYTES_MAX},
    {SECTION_TOP, "state_dir", VALUE_DIRECTORY, AT(state_dir),
     .initial = "/var/lib/cri-device-shim", .limit = DIRECTORY_BYTES_MAX, .reason = ""},
    {SECTION_TOP, "log_level", VALUE_CHOICE, AT(log_level), .choices = LEVELS, .older_name = true},
    {SECTION_TOP, "drain", VALUE_DURATION, AT(drain_ms), .initial = "10s", .max = "1h",
     .live = true},
    {SECTION_TOP, "log", VALUE_TABLE, .inner = SECTION_LOG},
    {SECTION_TOP, "metrics", VALUE_TABLE, .inner = SECTION_METRICS},
    {SECTION_TOP, "plugins", VALUE_TABLE, .inner = SECTION_PLUGINS},
    {SECTION_TOP, "annotations", VALUE_TABLE, .inner = SECTION_ANNOTATIONS},
    {SECTION_TOP, "bridge", VALUE_TABLE, .inner = SECTION_BRIDGE},
    {SECTION_TOP, "control", VALUE_TABLE, .inner = SECTION_CONTROL},

    /* Behind log_level, its older name, whose value it takes the place of where it is given. */
    {SECTION_LOG, "level", VALUE_CHOICE, AT(log_level), .initial = "info", .choices = LEVELS,
     .live = true},
    {SECTION_LOG, "format", VALUE_CHOICE, AT(log_format), .initial = "auto", .choices = FORMATS,
     .live = true},

    {SECTION_METRICS, "listen", VALUE_TEXT, AT(metrics.listen), .initial = "", .text = &LISTEN},

    {SECTION_PLUGINS, "plugin_dir", VALUE_DIRECTORY, AT(plugin_dir),
     .initial = "/var/lib/cri-device-shim/device-plugins",
     .limit = SOCKET_BYTES_MAX - (sizeof PLUGIN_SOCKET - 1),
     .reason = ", so that a unix socket's path in it still fits"},
    {SECTION_PLUGINS, "grace", VALUE_DURATION, AT(grace_ms), .override = OWN(grace_ms),
     .initial = "5m", .max = "720h", .live = true},
    {SECTION_PLUGINS, "hold", VALUE_DURATION, AT(hold_ms), .override = OWN(hold_ms),
     .initial = "5s", .max = "60s", .live = true},
    {SECTION_PLUGINS, "allocate_timeout", VALUE_DURATION, AT(allocate_timeout_ms),
     .override = OWN(allocate_timeout_ms), .initial = "10s", .min = "1ms", .max = "1h",
     .live = true},
    {SECTION_PLUGINS, "prestart_timeout", VALUE_DURATION, AT(prestart_timeout_ms), .initial = "30s",
     .min = "1ms", .max = "1h", .live = true},
    {SECTION_PLUGINS, "kubelet_wait", VALUE_DURATION, AT(kubelet_wait_ms), .initial = "2m",
     .max = "720h"},
    {SECTION_PLUGINS, "refresh_options", VALUE_CHOICE, AT(refresh_options),
     .override = OWN(refresh_options), .initial = "reboot", .choices = REFRESH, .live = true},
    {SECTION_PLUGINS, "hide_other_namespaces", VALUE_FLAG, AT(hide_other_namespaces),
     .initial = "false", .live = true},

    {SECTION_ANNOTATIONS, "enabled", VALUE_FLAG, AT(annotations_enabled), .initial = "false",
     .live = true},
    {SECTION_ANNOTATIONS, "namespaces", VALUE_NAMES, LIST(struct config, annotation_namespaces),
     .initial = "", .live = true, .text = &NAMESPACE,
     .expected = "an array of names in quotes, such as [\"default\"], or [\"*\"] for all"},
    {SECTION_ANNOTATIONS, "start_without", VALUE_FLAG, AT(start_without), .initial = "false",
     .live = true},

    {SECTION_BRIDGE, "enabled", VALUE_FLAG, AT(bridge.enabled), .initial = "true"},
    /* Beside the default of listen; where listen is another, check.c puts it beside that. */
    {SECTION_BRIDGE, "socket", VALUE_SOCKET, AT(bridge.socket),
     .initial = "/run/cri-device-shim/bridge.sock", .limit = SOCKET_BYTES_MAX},
    {SECTION_BRIDGE, "kubelet_plugin_dir", VALUE_DIRECTORY, AT(bridge.kubelet_plugin_dir),
     .initial = "/var/lib/kubelet/device-plugins",
     .limit = SOCKET_BYTES_MAX - (sizeof BRIDGE_SUBDIRECTORY - 1) - BRIDGE_NAME_BYTES,
     .reason = ", so that the paths of the bridge's sockets in it still fit"},
    {SECTION_BRIDGE, "mask", VALUE_DURATION, AT(bridge.mask_ms), .initial = "2m", .max = "720h"},
    {SECTION_BRIDGE, "preferred_timeout", VALUE_DURATION, AT(bridge.preferred_timeout_ms),
     .initial = "500ms", .min = "1ms", .max = "10s", .live = true},
    {SECTION_BRIDGE, "gate", VALUE_FLAG, AT(bridge.gate), .initial = "true"},
    {SECTION_BRIDGE, "gate_timeout", VALUE_DURATION, AT(bridge.gate_timeout_ms), .initial = "10s",
     .min = "1ms", .max = "60s", .live = true},
    {SECTION_BRIDGE, "kubelet_processes", VALUE_NAMES,
     LIST(struct config, bridge.kubelet_processes), .limit = ELEMENTS_MAX,
     .initial = "kubelet,k3s-server,k3s-agent,kubelite", .text = &PROCESS,
     .expected = "an array of names in quotes, such as [\"kubelet\"]"},
    {SECTION_BRIDGE, "redirect_plugin_mounts", VALUE_FLAG, AT(bridge.redirect_plugin_mounts),
     .initial = "false"},

    /* Placed as bridge.socket is. */
    {SECTION_CONTROL, "socket", VALUE_SOCKET, AT(control_socket), .initial = CONTROL_SOCKET_DEFAULT,
     .limit = SOCKET_BYTES_MAX, .may_be_empty = true},

    {SECTION_TOP, "device", VALUE_TABLES, LIST(struct config, devices), .inner = SECTION_DEVICE,
     .expected = "[[device]] tables, with two brackets"},
    /* Behind "plugins", of which it takes what its tables do not say. */
    {SECTION_TOP, "resource", VALUE_TABLES, LIST(struct config, resources),
     .inner = SECTION_RESOURCE, .expected = "[[resource]] tables, with two brackets"},

    {SECTION_DEVICE, "resource", VALUE_TEXT, offsetof(struct config_device, resource),
     .text = &RESOURCE, .required = "resource = \"vendor.com/name\""},
    {SECTION_DEVICE, "path", VALUE_TEXT, offsetof(struct config_device, path), .text = &NODE},
    {SECTION_DEVICE, "container_path", VALUE_TEXT, offsetof(struct config_device, container_path),
     .text = &PATH},
    {SECTION_DEVICE, "paths", VALUE_TABLES, LIST(struct config_device, paths),
     .inner = SECTION_PATH, .limit = ELEMENTS_MAX,
     .expected = "an array, such as [\"/dev/a\", { host = \"/dev/b\", container = \"/dev/c\" }]"},
    {SECTION_DEVICE, "permissions", VALUE_TEXT, offsetof(struct config_device, permissions),
     .initial = "rw", .text = &PERMISSIONS},
    {SECTION_DEVICE, "count", VALUE_COUNT, offsetof(struct config_device, count), .initial = "1",
     .min = "1", .max = "10000"},
    {SECTION_DEVICE, "mounts", VALUE_TABLES, LIST(struct config_device, mounts),
     .inner = SECTION_MOUNT, .limit = ELEMENTS_MAX,
     .expected = "an array, such as [{ host = \"/opt/a\", container = \"/opt/b\" }]"},
    {SECTION_DEVICE, "envs", VALUE_ENVIRONMENT, LIST(struct config_device, envs),
     .limit = ELEMENTS_MAX, .expected = "names and texts, such as { NAME = \"value\" }"},

    {SECTION_RESOURCE, "name", VALUE_TEXT, offsetof(struct config_resource, name),
     .text = &RESOURCE, .required = "name = \"vendor.com/name\""},
    {SECTION_RESOURCE, "exclusive", VALUE_FLAG, offsetof(struct config_resource, exclusive),
     .initial = "true"},

    {SECTION_PATH, "host", VALUE_TEXT, offsetof(struct config_node, host), .text = &PATH,
     .required = "host = \"/...\", where it is"},
    {SECTION_PATH, "container", VALUE_TEXT, offsetof(struct config_node, container), .text = &PATH},

    {SECTION_MOUNT, "host", VALUE_TEXT, offsetof(struct config_mount, host), .text = &PATH,
     .required = "host = \"/...\", where it is"},
    {SECTION_MOUNT, "container", VALUE_TEXT, offsetof(struct config_mount, container),
     .text = &PATH},
    {SECTION_MOUNT, "read_only", VALUE_FLAG, offsetof(struct config_mount, read_only),
     .initial = "true"},
};

const size_t schema_keys_len = sizeof schema_keys / sizeof *schema_keys;

const struct schema_table schema_tables[SECTIONS] = {
    [SECTION_TOP] = {.name = "the top level"},
    [SECTION_LOG] = {.name = "[log]"},
    [SECTION_METRICS] = {.name = "[metrics]"},
    [SECTION_PLUGINS] = {.name = "[plugins]"},
    [SECTION_ANNOTATIONS] = {.name = "[annotations]"},
    [SECTION_BRIDGE] = {.name = "[bridge]"},
    [SECTION_CONTROL] = {.name = "[control]"},
    [SECTION_DEVICE] = {.name = "[[device]]",
                        .one = "this [[device]]",
                        .bytes = sizeof(struct config_device),
                        .element = "a [[device]] table"},
    [SECTION_RESOURCE] = {.name = "[[resource]]",
                          .one = "this [[resource]]",
                          .bytes = sizeof(struct config_resource),
                          .element = "a [[resource]] table"},
    [SECTION_PATH] = {.name = "an element of paths",
                      .one = "an element of paths",
                      .bytes = sizeof(struct config_node),
                      .element = "a path in quotes, or { host = \"/dev/a\", container = "
                                 "\"/dev/b\" }",
                      .or_text = true},
    [SECTION_MOUNT] = {.name = "an element of mounts",
                       .one = "an element of mounts",
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
