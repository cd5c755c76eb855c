#include <algorithm>
#include <cstring>
#include <filesystem>

#include "config/reading.hpp"

/* By a key's full name; NULL: the file has none. */
static const toml::node *find(const reading &r, const char *name)
{
    return toml::at_path(r.root, name).node();
}

/* ---- what is beside `listen`, and beside `plugin_dir` ---- */

/* Two daemons with two sockets, or two directories, must not meet on one of these: beside `path`, unless
 * the file says where. False: there is no room for a socket. */
static bool place_beside(reading &r, std::string path, const char *key, const char *name,
                         char **slot)
{

    if (find(r, key))
        return true;
    path.replace(path.rfind('/'), path.npos, name);
    put_text(path, slot);
    return path.size() <= SOCKET_BYTES_MAX;
}

/* Of a part that cannot do without, if it is wanted. */
static void place_or_refuse(reading &r, const std::string &section, const char *name,
                            const char *words, bool wanted, char **slot)
{
    size_t most = SOCKET_BYTES_MAX - strlen(name) + 1;

    if (!place_beside(r, r.config.listen, (section + ".socket").c_str(), name, slot) && wanted)
        r.fault(find(r, "listen")->source().begin, words,
                "a path of at most " + std::to_string(most) + " bytes up to its last '/', or [" +
                    section + "] socket to be set");
}

static void place_sockets(reading &r)
{
    struct config &c = r.config;

    place_or_refuse(r, "bridge", BRIDGE_SOCKET,
                    "listen leaves no room for the bridge's bridge.sock beside it",
                    c.bridge.enabled, &c.bridge.socket);
    place_or_refuse(r, "cluster", AGENT_SOCKET,
                    "listen leaves no room for the agent's agent.sock beside it", c.cluster.enabled,
                    &c.cluster.socket);
    /* Nobody needs it: without room there is none. */
    if (!place_beside(r, c.listen, "control.socket", CONTROL_SOCKET, &c.control_socket))
        put_text("", &c.control_socket);
    /* What a driver needs is room in the path by which it sees the directory. */
    (void)place_beside(r, c.plugin_dir, "dra.registry_dir", REGISTRY_DIRECTORY,
                       &c.dra.registry_dir);
    /* Who has the plugins in the kubelet's own place has no kubelet. */
    if (!find(r, "dra.registry_dir") && !strcmp(c.dra.registry_dir, c.dra.kubelet_registry_dir))
        c.dra.enabled = false;
}

/* ---- paths that must differ ---- */

/* A path of the settings, or something below it. */
struct spot {
    const toml::node *node; /* where the file has it; NULL: nowhere */
    std::string path; /* without "//", "/./" and "/../"; empty if it is wrong, none, or too long */

    spot(const reading &r, const char *key, std::string given, const char *below = "")
        : node(find(r, key))
    {
        given += given.empty() ? "" : below;
        if (given[0] != '/' || given.size() > SOCKET_BYTES_MAX || r.wrong.count(node))
            return;
        path = std::filesystem::path(given + '/').lexically_normal();
        if (path.size() > 1)
            path.pop_back();
    }
};

/* None of the others may be this one. Told where the later of two stands, the one just written. */
static void check_apart(reading &r, const spot &one, std::initializer_list<const spot *> others,
                        const char *wrong, const char *expected)
{
    for (const spot *other : others) {
        place at = {0, 0};

        if (one.path.empty() || one.path != other->path)
            continue;
        for (const toml::node *node : {one.node, other->node})
            at = node ? std::max(at, node->source().begin) : at;
        r.fault(at, wrong, expected);
    }
}

/* The shim's directory for plugins and the kubelet's: each makes a kubelet.sock of its own, and the
 * kubelet empties its own. */
static void check_paths(reading &r)
{
    const struct config &c = r.config;
    const spot listen(r, "listen", c.listen);
    const spot runtime(r, "runtime_endpoint", c.runtime_endpoint);
    const spot feed(r, "bridge.socket", c.bridge.socket);
    const spot control(r, "control.socket", c.control_socket);
    const spot agent(r, "cluster.socket", c.cluster.socket);
    const spot metrics(r, "metrics.listen", c.metrics.listen);
    const spot plugins(r, "plugins.plugin_dir", c.plugin_dir);
    const spot registration(r, "plugins.plugin_dir", c.plugin_dir, PLUGIN_SOCKET);
    const spot registry(r, "dra.registry_dir", c.dra.registry_dir);
    const spot kubelets_registry(r, "dra.kubelet_registry_dir", c.dra.kubelet_registry_dir);
    const char *key = "bridge.kubelet_plugin_dir", *dir = c.bridge.kubelet_plugin_dir;
    const spot kubelet(r, key, dir), kubelets_own(r, key, dir, PLUGIN_SOCKET),
        bridges(r, key, dir, BRIDGE_SUBDIRECTORY);

    check_apart(r, metrics, {&listen, &runtime, &feed, &registration, &kubelets_own},
                "listen of [metrics] is another socket's path", "a socket of its own");
    check_apart(r, listen, {&runtime}, "listen and runtime_endpoint are the same socket",
                "listen to be the shim's own and runtime_endpoint the runtime's");
    check_apart(r, listen, {&registration}, "listen is the socket on which plugins register",
                "a path other than plugin_dir's kubelet.sock");
    check_apart(r, feed, {&listen}, "socket and listen are the same socket",
                "listen to be for the kubelet and socket for the bridge");
    check_apart(r, feed, {&runtime}, "socket and runtime_endpoint are the same socket",
                "socket to be the shim's own and runtime_endpoint the runtime's");
    check_apart(r, feed, {&registration}, "socket is the one on which plugins register",
                "a path other than plugin_dir's kubelet.sock");
    if (c.bridge.enabled) { /* without it there may be no kubelet */
        check_apart(r, plugins, {&kubelet},
                    "plugin_dir and kubelet_plugin_dir are the same directory",
                    "plugin_dir to be the shim's own and kubelet_plugin_dir the kubelet's");
        check_apart(r, plugins, {&bridges}, "plugin_dir is where the bridge has its sockets",
                    "a directory other than kubelet_plugin_dir's cri-device-shim");
        check_apart(r, feed, {&kubelets_own}, "socket is the kubelet's own",
                    "a path other than kubelet_plugin_dir's kubelet.sock");
    }
    check_apart(r, control, {&listen, &runtime, &feed, &metrics, &registration},
                "[control] socket is another socket's, too", "a path that no other setting has");
    if (c.dra.enabled) {
        check_apart(r, registry, {&kubelets_registry},
                    "registry_dir and kubelet_registry_dir are the same directory",
                    "registry_dir to be the shim's own and kubelet_registry_dir the kubelet's");
        check_apart(r, registry, {&plugins}, "registry_dir and plugin_dir are the same directory",
                    "one for each of the two ways in which plugins register");
    }
    check_apart(r, agent, {&listen, &runtime, &feed, &control, &metrics, &registration},
                "[cluster] socket is another socket's, too", "a path that no other setting has");
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

/* ---- all ---- */

void check_settings(reading &r)
{
    const toml::array *devices = r.root.get_as<toml::array>("device");
    const struct config &c = r.config;

    place_sockets(r);
    check_paths(r);
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
    check_unique(r, "device", "resource",
                 "one [[device]] for each resource; its path may be a glob");
    check_unique(r, "resource", "name", "one [[resource]] for each resource");
    check_unique(r, "driver", "name", "one [[driver]] for each driver");
}
