#include "config/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/read.h"

static struct tree_node *find(const struct tree_node *root, const char *table, const char *key)
{
    return read_find(table ? read_find(root, table) : root, key);
}

static bool is_right(const struct tree_node *node)
{
    return !node || !node->wrong;
}

/* ---- paths that must differ ---- */

struct place {
    struct tree_node *node; /* NULL: the default */
    bool right;
    char path[SOCKET_BYTES_MAX + 1];
};

/* Without "//", "/./" and "/../", as far as names tell; of an absolute path. */
static void make_normal(struct reading *r, char *path)
{
    char *rest = value_text(r, path, strlen(path)), *next = rest, *part, *end = path;

    while (rest && (part = strsep(&next, "/"))) {
        if (strcmp(part, "..") == 0) {
            while (end > path && *--end != '/')
                continue;
        } else if (*part && strcmp(part, ".") != 0) {
            end = stpcpy(stpcpy(end, "/"), part);
        }
    }
    strcpy(end, end == path ? "/" : "");
    free(rest);
}

static struct place place_of(struct reading *r, struct tree_node *node, const char *path,
                             const char *below)
{
    struct place out = {.node = node};
    int n = snprintf(out.path, sizeof out.path, "%s%s", path, below);

    /* One that is too long is no socket's. */
    out.right = is_right(node) && (size_t)n < sizeof out.path;
    make_normal(r, out.path);
    return out;
}

/* Told where the later of the two stands, the one just written. */
static void differ(struct reading *r, const struct place *a, const struct place *b,
                   const char *wrong, const char *expected)
{
    struct tree_node *last = a->node;

    if (!a->right || !b->right || strcmp(a->path, b->path) != 0)
        return;
    if (!last || (b->node && tree_before(last->at, b->node->at)))
        last = b->node;
    faults_add(&r->faults, last ? last->at : (struct tree_place){0}, expected, "%s", wrong);
}

/* Two daemons with two sockets must not meet on one of these: beside the kubelet's socket. False:
 * there is no room for it. */
static bool place_beside(struct reading *r, const char *name, char **slot)
{
    const char *path = r->config->listen;
    int dir_bytes = (int)(strrchr(path, '/') - path);
    char *socket;

    if (asprintf(&socket, "%.*s%s", dir_bytes, path, name) < 0) {
        r->out_of_memory = true;
        return true;
    }
    free(*slot);
    *slot = socket;
    return strlen(socket) <= SOCKET_BYTES_MAX;
}

static void place_bridge_socket(struct reading *r, const struct tree_node *root)
{
    const struct tree_node *listen = read_find(root, "listen");
    char expected[128];

    if (find(root, "bridge", "socket") ||
        place_beside(r, BRIDGE_SOCKET, &r->config->bridge.socket) || !r->config->bridge.enabled)
        return;
    snprintf(expected, sizeof expected,
             "a path of at most %zu bytes up to its last '/', or [bridge] socket to be set",
             SOCKET_BYTES_MAX - strlen(BRIDGE_SOCKET) + 1);
    faults_add(&r->faults, listen->at, expected,
               "listen leaves no room for the bridge's %s beside it", &BRIDGE_SOCKET[1]);
}

/* Nobody needs it: without room there is none. */
static void place_control_socket(struct reading *r, const struct tree_node *root)
{
    char *socket;

    if (find(root, "control", "socket") ||
        place_beside(r, CONTROL_SOCKET, &r->config->control_socket))
        return;
    socket = r->config->control_socket;
    socket[0] = '\0';
}

static void check_control(struct reading *r, const struct tree_node *root)
{
    const struct config *c = r->config;
    const char *path = c->control_socket;
    const struct place control = place_of(r, find(root, "control", "socket"), path, "");
    const struct place others[] = {
        place_of(r, read_find(root, "listen"), c->listen, ""),
        place_of(r, read_find(root, "runtime_endpoint"), c->runtime_endpoint, ""),
        place_of(r, find(root, "bridge", "socket"), c->bridge.socket, ""),
        place_of(r, find(root, "plugins", "plugin_dir"), c->plugin_dir, PLUGIN_SOCKET),
        place_of(r, find(root, "metrics", "listen"), c->metrics.listen, "")};

    for (size_t i = 0; path[0] != '\0' && i < sizeof others / sizeof *others; i++)
        differ(r, &control, &others[i], "[control] socket is another socket's, too",
               "a path that no other setting has");
}

/* The shim's directory for plugins and the kubelet's: each makes a kubelet.sock of its own, and the
 * kubelet empties its own. Without the bridge there may be no kubelet. */
static void check_places(struct reading *r, const struct tree_node *root)
{
    const struct config *c = r->config;
    struct tree_node *dir = find(root, "plugins", "plugin_dir");
    struct tree_node *kubelet_dir = find(root, "bridge", "kubelet_plugin_dir");
    const struct place listen = place_of(r, read_find(root, "listen"), c->listen, "");
    const struct place endpoint =
        place_of(r, read_find(root, "runtime_endpoint"), c->runtime_endpoint, "");
    const struct place feed = place_of(r, find(root, "bridge", "socket"), c->bridge.socket, "");
    const struct place registration = place_of(r, dir, c->plugin_dir, PLUGIN_SOCKET);
    const struct place metrics =
        place_of(r, find(root, "metrics", "listen"), c->metrics.listen, "");
    const struct place plugins = place_of(r, dir, c->plugin_dir, "");
    const struct place kubelets = place_of(r, kubelet_dir, c->bridge.kubelet_plugin_dir, "");
    const struct place sockets =
        place_of(r, kubelet_dir, c->bridge.kubelet_plugin_dir, BRIDGE_SUBDIRECTORY);
    const struct place kubelets_own =
        place_of(r, kubelet_dir, c->bridge.kubelet_plugin_dir, PLUGIN_SOCKET);

    const struct place *others[] = {&listen, &endpoint, &feed, &registration, &kubelets_own};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        differ(r, &metrics, others[i], "listen of [metrics] is another socket's path",
               "a socket of its own");
    differ(r, &listen, &endpoint, "listen and runtime_endpoint are the same socket",
           "listen to be the shim's own and runtime_endpoint the runtime's");
    differ(r, &listen, &registration, "listen is the socket on which plugins register",
           "a path other than plugin_dir's kubelet.sock");
    differ(r, &feed, &listen, "socket and listen are the same socket",
           "listen to be for the kubelet and socket for the bridge");
    differ(r, &feed, &endpoint, "socket and runtime_endpoint are the same socket",
           "socket to be the shim's own and runtime_endpoint the runtime's");
    differ(r, &feed, &registration, "socket is the one on which plugins register",
           "a path other than plugin_dir's kubelet.sock");
    if (!c->bridge.enabled)
        return;
    differ(r, &plugins, &kubelets, "plugin_dir and kubelet_plugin_dir are the same directory",
           "plugin_dir to be the shim's own and kubelet_plugin_dir the kubelet's");
    differ(r, &plugins, &sockets, "plugin_dir is where the bridge has its sockets",
           "a directory other than kubelet_plugin_dir's cri-device-shim");
    differ(r, &feed, &kubelets_own, "socket is the kubelet's own",
           "a path other than kubelet_plugin_dir's kubelet.sock");
}

/* ---- devices and resources ---- */

static int by_text_and_place(const void *a, const void *b)
{
    const struct tree_node *x = *(struct tree_node *const *)a, *y = *(struct tree_node *const *)b;
    int order = strcmp(x->text, y->text);

    return order ? order : tree_before(x->at, y->at) ? -1 : tree_before(y->at, x->at);
}

/* A name stands in one of the array's tables only. */
static void check_unique(struct reading *r, const struct tree_node *array, const char *key,
                         const char *expected)
{
    struct tree_node **names, *first = NULL;
    size_t names_len = 0;

    if (!array || array->type != TREE_ARRAY)
        return;
    names = value_allocate(r, array->children_len, sizeof(struct tree_node *));
    for (size_t i = 0; names && i < array->children_len; i++) {
        struct tree_node *name = read_find(&array->children[i], key);

        if (name && !name->wrong)
            names[names_len++] = name;
    }
    if (names_len > 0)
        qsort(names, names_len, sizeof(struct tree_node *), by_text_and_place);
    for (size_t i = 0; i < names_len; i++) {
        if (!first || strcmp(first->text, names[i]->text) != 0)
            first = names[i];
        else
            faults_add(&r->faults, names[i]->at, expected, "%s %s stands already in line %u", key,
                       quote(first->text, first->text_len).text, first->at.line);
    }
    free(names);
}

_Static_assert(offsetof(struct config_mount, host) == offsetof(struct config_node, host) &&
                   offsetof(struct config_mount, container) ==
                       offsetof(struct config_node, container),
               "a mount begins as a node does");

/* Of nodes or mounts, `bytes` each: the container's path is the host's unless said otherwise, and
 * none may hide another. */
static void check_bindings(struct reading *r, const struct tree_node *list, void *bindings,
                           size_t bindings_len, size_t bytes)
{
    for (size_t i = 0; i < bindings_len; i++) {
        const struct tree_node *element = &list->children[i];
        struct config_node *binding = (void *)((char *)bindings + i * bytes);

        if (binding->host && !read_find(element, "container"))
            binding->container = value_text(r, binding->host, strlen(binding->host));
        for (size_t j = 0; binding->container && j < i; j++) {
            const struct config_node *other = (void *)((char *)bindings + j * bytes);

            if (other->container && strcmp(other->container, binding->container) == 0)
                faults_add(&r->faults, element->at, "a container path of its own for each",
                           "the container would see %s twice",
                           quote(other->container, strlen(other->container)).text);
        }
    }
}

static void check_globs(struct reading *r, const struct tree_node *list,
                        const struct config_device *d)
{
    for (size_t i = 0; i < d->paths_len; i++) {
        const char *host = d->paths[i].host;

        if (host && value_is_glob(host))
            faults_add(&r->faults, list->children[i].at,
                       "no '*', '?' or '[': several paths are one device; path may be a glob",
                       "paths holds %s", quote(host, strlen(host)).text);
    }
}

static void check_container_path(struct reading *r, const struct tree_node *node,
                                 const struct config_device *d)
{
    const char *path = d->container_path;
    bool directory, glob;

    if (!path || !d->path)
        return;
    directory = path[strlen(path) - 1] == '/';
    glob = value_is_glob(d->path);
    if (glob && !directory)
        faults_add(&r->faults, node->at,
                   "a directory that ends in '/', since a glob may match many nodes",
                   "container_path is %s and path is a glob", quote(path, strlen(path)).text);
    if (!glob && directory)
        faults_add(&r->faults, node->at, "the node's whole path, without '/' at the end",
                   "container_path is %s", quote(path, strlen(path)).text);
}

static void check_device(struct reading *r, const struct tree_node *table, struct config_device *d)
{
    const struct tree_node *path = read_find(table, "path"), *paths = read_find(table, "paths");
    const struct tree_node *container_path = read_find(table, "container_path");

    if (!path && !paths)
        faults_add(&r->faults, table->at, "path = \"/dev/...\", the node on the host",
                   "this [[device]] has no path");
    if (path && paths)
        faults_add(&r->faults, tree_before(path->at, paths->at) ? paths->at : path->at,
                   "one of them", "this [[device]] has path and paths");
    if (paths && container_path)
        faults_add(&r->faults, container_path->at,
                   "it with each path, as in paths = [{ host = \"/dev/a\", container = "
                   "\"/dev/b\" }]",
                   "container_path stands beside paths");
    check_container_path(r, container_path, d);
    check_globs(r, paths, d);
    check_bindings(r, paths, d->paths, d->paths_len, sizeof *d->paths);
    check_bindings(r, read_find(table, "mounts"), d->mounts, d->mounts_len, sizeof *d->mounts);
}

/* ---- the rest ---- */

static void check_annotations(struct reading *r, const struct tree_node *root)
{
    const struct tree_node *enabled = find(root, "annotations", "enabled");

    if (r->config->annotations_enabled && r->config->annotation_namespaces_len == 0 &&
        is_right(find(root, "annotations", "namespaces")))
        faults_add(&r->faults, enabled->at, "namespaces = [\"a-namespace\"], or [\"*\"] for all",
                   "enabled is true, but namespaces is empty: no request could be taken");
}

static void check_gate(struct reading *r, const struct tree_node *root)
{
    const struct tree_node *processes = find(root, "bridge", "kubelet_processes");

    if (r->config->bridge.gate && r->config->bridge.kubelet_processes_len == 0 &&
        is_right(find(root, "bridge", "gate")))
        faults_add(&r->faults, processes->at, "kubelet_processes = [\"kubelet\"], or gate = false",
                   "kubelet_processes is empty: the gate would know no kubelet");
}

void check_settings(struct reading *r, struct tree_node *root)
{
    const struct tree_node *devices = read_find(root, "device");

    place_bridge_socket(r, root);
    place_control_socket(r, root);
    check_places(r, root);
    check_control(r, root);
    check_annotations(r, root);
    check_gate(r, root);
    for (size_t i = 0; i < r->config->devices_len; i++) {
        if (devices->children[i].type == TREE_TABLE)
            check_device(r, &devices->children[i], &r->config->devices[i]);
    }
    check_unique(r, devices, "resource",
                 "one [[device]] for each resource; its path may be a glob");
    check_unique(r, read_find(root, "resource"), "name", "one [[resource]] for each resource");
}
