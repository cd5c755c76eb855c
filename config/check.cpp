#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <vector>

#include <regex.h>

#include "config/reading.hpp"

/* By a key's full name; NULL: the file has none. */
static const toml::node *find(const reading &r, const char *name)
{
    return toml::at_path(r.root, name).node();
}

/* ---- paths that are beside another ---- */

/* Two daemons with two sockets, or two directories, must not meet on one of these. */
static void place_beside(reading &r, const struct schema_key &key)
{
    char name[SCHEMA_NAME_BYTES], path[2 * SOCKET_BYTES_MAX];
    char **slot = (char **)schema_slot(&key, key.section, &r.config);
    const struct schema_key *enabled = schema_find(key.section, "enabled", strlen("enabled"));

    schema_full_name(&key, name);
    if (find(r, name))
        return;
    schema_initial(&key, &r.config, path, sizeof path);
    put_text(path, slot);
    /* What needs room in a directory needs it by another path. */
    if (key.type != VALUE_SOCKET || strlen(path) <= SOCKET_BYTES_MAX)
        return;
    if (key.may_be_empty) {
        put_text("", slot);
    } else if (*(bool *)schema_slot(enabled, key.section, &r.config)) {
        const char *file = strrchr(path, '/') + 1;

        r.fault(*find(r, "listen"), std::string("listen leaves no room for ") + file + " beside it",
                "a path of at most " + std::to_string(SOCKET_BYTES_MAX - strlen(file)) +
                    " bytes up to its last '/', or " + schema_tables[key.section].name +
                    " socket to be set");
    }
}

static void place_paths(reading &r)
{
    struct config &c = r.config;

    for (size_t i = 0; i < schema_keys_len; i++) {
        if (schema_keys[i].beside)
            place_beside(r, schema_keys[i]);
    }
    /* Who has the plugins in the kubelet's own place has no kubelet. */
    if (!find(r, "dra.registry_dir") && !strcmp(c.dra.registry_dir, c.dra.kubelet_registry_dir))
        c.dra.enabled = false;
}

/* ---- paths that must differ ---- */

/* Where that is, whatever links lead there (/var/run), or would be; as it is if that cannot be told. */
static std::filesystem::path without_links(const std::filesystem::path &path)
{
    std::error_code failed;
    std::filesystem::path found = std::filesystem::weakly_canonical(path, failed);

    return failed ? path : found;
}

/* A path of the settings, or something below it. */
struct spot {
    std::string name;
    const toml::node *node; /* where the file has it; NULL: nowhere */
    /* Without "//", "/./", "/../" and links; empty if it is wrong, none, or too long. */
    std::filesystem::path path;

    spot(const reading &r, const std::string &key, std::string given, const char *below = "")
        : name(key + below), node(find(r, key.c_str()))
    {
        given += given.empty() ? "" : below;
        if (given[0] != '/' || given.size() > SOCKET_BYTES_MAX || r.wrong.count(node))
            return;
        path = std::filesystem::path(given + '/').lexically_normal().parent_path();
        /* Itself it may be a link, in whose place the daemon puts a socket. */
        path = without_links(path.parent_path()) / path.filename();
    }

    spot directory() const
    {
        spot one = *this;

        if (!path.empty())
            one.path = without_links(path);
        return one;
    }
};

/* Told where the later of the two stands, the one just written. */
static void check_apart(reading &r, const spot &one, const spot &other, const std::string &wrong,
                        const char *expected)
{
    place at = {0, 0};

    if (one.path.empty() || one.path != other.path)
        return;
    for (const toml::node *node : {one.node, other.node})
        at = node ? std::max(at, node->source().begin) : at;
    r.fault(at, wrong, expected);
}

/* Those of the settings, and what is in the two directories where plugins register. */
static void check_sockets(reading &r)
{
    const struct config &c = r.config;
    const spot kubelets(r, "bridge.kubelet_plugin_dir", c.bridge.kubelet_plugin_dir, PLUGIN_SOCKET);
    std::vector<spot> sockets;
    char name[SCHEMA_NAME_BYTES];

    for (size_t i = 0; i < schema_keys_len; i++) {
        const struct schema_key &key = schema_keys[i];

        schema_full_name(&key, name);
        if (key.type == VALUE_SOCKET)
            sockets.emplace_back(r, name, *(char **)schema_slot(&key, key.section, &r.config));
    }
    sockets.emplace_back(r, "metrics.listen", c.metrics.listen);
    sockets.emplace_back(r, "plugins.plugin_dir", c.plugin_dir, PLUGIN_SOCKET);
    /* Of one directory for both it is told that they are. */
    if (c.bridge.enabled && kubelets.path != sockets.back().path)
        sockets.push_back(kubelets);
    for (size_t i = 0; i < sockets.size(); i++) {
        for (size_t j = i + 1; j < sockets.size(); j++)
            check_apart(r, sockets[i], sockets[j],
                        sockets[i].name + " and " + sockets[j].name + " are the same socket",
                        "a socket of its own for each");
    }
}

/* The shim's directories and the kubelet's: each makes a kubelet.sock of its own, and the kubelet
 * empties its own. */
static void check_directories(reading &r)
{
    const struct config &c = r.config;
    const char *key = "bridge.kubelet_plugin_dir", *dir = c.bridge.kubelet_plugin_dir;
    const spot plugins = spot(r, "plugins.plugin_dir", c.plugin_dir).directory(),
               kubelet = spot(r, key, dir).directory(),
               bridges = spot(r, key, dir, BRIDGE_SUBDIRECTORY).directory(),
               registry = spot(r, "dra.registry_dir", c.dra.registry_dir).directory();
    const spot kubelets_registry =
        spot(r, "dra.kubelet_registry_dir", c.dra.kubelet_registry_dir).directory();

    if (c.bridge.enabled) { /* without it there may be no kubelet */
        check_apart(r, plugins, kubelet, "plugin_dir and kubelet_plugin_dir are the same directory",
                    "plugin_dir to be the shim's own and kubelet_plugin_dir the kubelet's");
        check_apart(r, plugins, bridges, "plugin_dir is where the bridge has its sockets",
                    "a directory other than kubelet_plugin_dir's cri-device-shim");
    }
    if (c.dra.enabled) {
        check_apart(r, registry, kubelets_registry,
                    "registry_dir and kubelet_registry_dir are the same directory",
                    "registry_dir to be the shim's own and kubelet_registry_dir the kubelet's");
        check_apart(r, registry, plugins, "registry_dir and plugin_dir are the same directory",
                    "one for each of the two ways in which plugins register");
    }
}

/* ---- devices and resources ---- */

/* A name stands in one of the array's tables only. */
static void check_unique(reading &r, const char *tables, const char *key, const char *expected)
{
    const toml::array *array = r.root.get_as<toml::array>(tables);
    std::map<std::string_view, toml::source_index> lines;

    for (size_t i = 0; array && i < array->size(); i++) {
        const toml::table *table = (*array)[i].as_table();
        const auto *name = table ? table->get_as<std::string>(key) : NULL;

        if (!name || r.wrong.count(name))
            continue;
        const auto &[first, is_first] = lines.emplace(name->get(), name->source().begin.line);
        if (!is_first)
            r.fault(*name,
                    key + (" " + quote(name->get())) + " stands already in line " +
                        std::to_string(first->second),
                    expected);
    }
}

/* Nodes or mounts: the container's path is the host's unless said otherwise, and none may hide
 * another. */
template <typename T>
static void check_bindings(reading &r, const toml::array *list, T *bindings, size_t bindings_len)
{
    for (size_t i = 0; i < bindings_len; i++) {
        const toml::node &element = (*list)[i];
        bool given = element.is_table() && element.as_table()->contains("container");

        if (bindings[i].host && !given)
            put_text(bindings[i].host, &bindings[i].container);
        for (size_t j = 0; bindings[i].container && j < i; j++) {
            const char *other = bindings[j].container;

            if (other && strcmp(other, bindings[i].container) == 0)
                r.fault(element, "the container would see " + quote(other) + " twice",
                        "a container path of its own for each");
        }
    }
}

static void check_container_path(reading &r, const toml::node &node, const std::string &path,
                                 bool glob)
{
    bool directory = path.back() == '/';

    if (glob && !directory)
        r.fault(node, "container_path is " + quote(path) + " and path is a glob",
                "a directory that ends in '/', since a glob may match many nodes");
    if (!glob && directory)
        r.fault(node, "container_path is " + quote(path),
                "the node's whole path, without '/' at the end");
}

static void check_device(reading &r, const toml::table &table, const struct config_device &d)
{
    const toml::node *path = table.get("path"), *paths = table.get("paths"),
                     *container_path = table.get("container_path");

    if (!path && !paths)
        r.fault(table, "this [[device]] has no path", "path = \"/dev/...\", the node on the host");
    if (path && paths)
        r.fault(std::max(path->source().begin, paths->source().begin),
                "this [[device]] has path and paths", "one of them");
    if (paths && container_path)
        r.fault(*container_path, "container_path stands beside paths",
                "it with each path, as in paths = [{ host = \"/dev/a\", container = "
                "\"/dev/b\" }]");
    if (d.path && d.container_path)
        check_container_path(r, *container_path, d.container_path, text_is_glob(d.path));
    for (size_t i = 0; i < d.paths_len; i++) {
        if (d.paths[i].host && text_is_glob(d.paths[i].host))
            r.fault((*paths->as_array())[i], "paths holds " + quote(d.paths[i].host),
                    "no '*', '?' or '[': several paths are one device; path may be a glob");
    }
    check_bindings(r, table.get_as<toml::array>("paths"), d.paths, d.paths_len);
    check_bindings(r, table.get_as<toml::array>("mounts"), d.mounts, d.mounts_len);
}

/* Semantic Versioning 2.0.0 (https://semver.org), which the API asks of it. */
static bool is_version(const char *value)
{
    regex_t form;
    int result;

    if (regcomp(&form,
                "^\"(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)"
                "(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
                "([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
                "([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?\"$",
                REG_EXTENDED | REG_NOSUB) != 0)
        throw std::bad_alloc();
    result = regexec(&form, value, 0, NULL, 0);
    regfree(&form);
    if (result != 0 && result != REG_NOMATCH)
        throw std::bad_alloc();
    return result == 0;
}

static void check_versions(reading &r, const toml::table &table, const struct config_resource &is)
{
    for (size_t i = 0; i < is.attributes_len; i++) {
        const struct config_attribute &attribute = is.attributes[i];
        const toml::table *of = (*table.get_as<toml::array>("attribute"))[i].as_table();
        const toml::node *value = of ? of->get("value") : NULL;

        if (attribute.version && value && !r.wrong.count(value) && !is_version(attribute.value))
            r.fault(*value, std::string("version is true, and value is ") + attribute.value,
                    "a version in quotes, such as \"1.2.3\" (Semantic Versioning)");
    }
}

static void check_lifted(reading &r, const toml::table &table, const struct config_resource &is)
{
    const struct {
        bool is_there;
        const char *wrong, *expected;
    } needs[] = {
        {r.config.cluster.enabled, "there is no agent, which publishes the devices",
         "[cluster] enabled = true"},
        {r.config.bridge.enabled, "there is no bridge, which shows the driver to the kubelet",
         "[bridge] enabled = true"},
        {r.config.dra.enabled, "no claim is prepared here",
         "[dra] enabled = true, and a registry_dir other than the kubelet's"},
    };

    for (const auto &need : needs) {
        if (is.dra && !need.is_there)
            r.fault(*table.get("dra"), std::string("dra is true, and ") + need.wrong,
                    need.expected);
    }
}

/* ---- the machine's shutdown ---- */

static bool is_whole(uint64_t grace_ms)
{
    return grace_ms == 0 || grace_ms >= 1000;
}

static void check_pair(reading &r, const struct config_shutdown &shutdown)
{
    const toml::node *grace = find(r, "shutdown.grace"),
                     *critical = find(r, "shutdown.critical_grace");

    for (const toml::node *node : {is_whole(shutdown.grace_ms) ? NULL : grace,
                                   is_whole(shutdown.critical_grace_ms) ? NULL : critical}) {
        if (node)
            r.refuse(*node, "a grace of less than a second", "\"0s\", or at least \"1s\"");
    }
    if (shutdown.critical_grace_ms > shutdown.grace_ms && !r.wrong.count(grace))
        r.fault(*critical, "critical_grace is more than grace, of which it is a part",
                "at most what grace is");
}

static void check_periods(reading &r, const struct config_shutdown &shutdown)
{
    const toml::array &tables = *find(r, "shutdown.period")->as_array();

    if (shutdown.grace_ms > 0 || shutdown.critical_grace_ms > 0)
        r.fault(tables[0], "[[shutdown.period]] stands beside grace and critical_grace",
                "one or the other");
    for (size_t i = 0; i < shutdown.periods_len; i++) {
        for (size_t j = 0; tables[i].is_table() && j < i; j++) {
            const toml::node *priority = tables[i].as_table()->get("priority");

            if (priority && !r.wrong.count(priority) &&
                shutdown.periods[j].priority == shutdown.periods[i].priority)
                r.refuse(*priority,
                         "priority " + std::to_string(shutdown.periods[i].priority) +
                             " stands already in another period",
                         "one [[shutdown.period]] for each priority");
        }
    }
}

/* The kubelet's rules for its own (pkg/kubelet/apis/config/validation/validation.go). */
static void check_shutdown(reading &r)
{
    const struct config_shutdown &shutdown = r.config.shutdown;
    const toml::node *first = find(r, "shutdown.period");

    check_pair(r, shutdown);
    if (shutdown.periods_len > 0)
        check_periods(r, shutdown);
    if (shutdown.periods_len == 0)
        first = find(r, "shutdown.grace");
    if ((shutdown.periods_len > 0 || shutdown.grace_ms > 0) && !r.config.cluster.enabled)
        r.fault(*first, "[shutdown] is on, and there is no agent, which hears of shutdowns",
                "[cluster] enabled = true");
}

/* ---- who watches ---- */

static void check_page(reading &r)
{
    const struct config_metrics &metrics = r.config.metrics;

    if (metrics.page && metrics.listen[0] == '\0' && !r.wrong.count(find(r, "metrics.listen")))
        r.fault(*find(r, "metrics.page"), "page is true, and listen says nowhere",
                "listen to be a unix socket or a loopback address");
}

/* ---- all ---- */

void check_settings(reading &r)
{
    const toml::array *devices = r.root.get_as<toml::array>("device");
    const struct config &c = r.config;

    place_paths(r);
    check_sockets(r);
    check_directories(r);
    if (c.annotations_enabled && c.annotation_namespaces_len == 0 &&
        !r.wrong.count(find(r, "annotations.namespaces")))
        r.fault(*find(r, "annotations.enabled"),
                "enabled is true, but namespaces is empty: no request could be taken",
                "namespaces = [\"a-namespace\"], or [\"*\"] for all");
    if (c.bridge.gate && c.bridge.kubelet_processes_len == 0 &&
        !r.wrong.count(find(r, "bridge.gate")))
        r.fault(*find(r, "bridge.kubelet_processes"),
                "kubelet_processes is empty: the gate would know no kubelet",
                "kubelet_processes = [\"kubelet\"], or gate = false");
    for (size_t i = 0; i < c.devices_len; i++) {
        if (const toml::table *table = (*devices)[i].as_table())
            check_device(r, *table, c.devices[i]);
    }
    for (size_t i = 0; i < c.resources_len; i++) {
        if (const toml::table *table = (*r.root.get_as<toml::array>("resource"))[i].as_table()) {
            check_lifted(r, *table, c.resources[i]);
            check_versions(r, *table, c.resources[i]);
        }
    }
    check_unique(r, "device", "resource",
                 "one [[device]] for each resource; its path may be a glob");
    check_unique(r, "resource", "name", "one [[resource]] for each resource");
    check_unique(r, "driver", "name", "one [[driver]] for each driver");
    check_shutdown(r);
    check_page(r);
}
