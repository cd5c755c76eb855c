#include "config/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tree_node *find(const struct tree_node *root, const char *table, const char *key)
{
    return read_find(table ? read_find(root, table) : root, key);
}

static bool is_right(const struct tree_node *node)
{
    return !node || !node->wrong;
}

/* ---- sockets beside `listen` ---- */

/* Two daemons with two sockets must not meet on one of these: beside the kubelet's socket, unless
 * the file says where. False: there is no room for it. */
static bool place_beside(struct reading *r, const struct tree_node *given, const char *name,
                         char **slot)
{
    const char *path = r->config->listen;
    size_t dir_bytes = (size_t)(strrchr(path, '/') - path), bytes = dir_bytes + strlen(name);

    if (given)
        return true;
    free(*slot);
    *slot = value_allocate(r, bytes + 1, 1);
    if (*slot)
        strcpy(mempcpy(*slot, path, dir_bytes), name);
    return bytes <= SOCKET_BYTES_MAX;
}

static void place_sockets(struct reading *r, const struct tree_node *root)
{
    struct config *c = r->config;
    char expected[128];

    if (!place_beside(r, find(root, "bridge", "socket"), BRIDGE_SOCKET, &c->bridge.socket) &&
        c->bridge.enabled) {
        snprintf(expected, sizeof expected,
                 "a path of at most %zu bytes up to its last '/', or [bridge] socket to be set",
                 SOCKET_BYTES_MAX - strlen(BRIDGE_SOCKET) + 1);
        faults_add(&r->faults, find(root, NULL, "listen")->at, expected,
                   "listen leaves no room for the bridge's %s beside it", &BRIDGE_SOCKET[1]);
    }
    /* Nobody needs it: without room there is none. */
    if (!place_beside(r, find(root, "control", "socket"), CONTROL_SOCKET, &c->control_socket) &&
        c->control_socket)
        c->control_socket[0] = '\0';
}

/* ---- paths that must differ ---- */

#define AT(member) offsetof(struct config, member)
#define KUBELETS_DIR "bridge", "kubelet_plugin_dir", AT(bridge.kubelet_plugin_dir)

static const struct place {
    const char *table, *key;
    size_t offset;
    const char *below;
} LISTEN = {NULL, "listen", AT(listen), ""},
  RUNTIME = {NULL, "runtime_endpoint", AT(runtime_endpoint), ""},
  FEED = {"bridge", "socket", AT(bridge.socket), ""},
  CONTROL = {"control", "socket", AT(control_socket), ""},
  METRICS = {"metrics", "listen", AT(metrics.listen), ""},
  PLUGINS = {"plugins", "plugin_dir", AT(plugin_dir), ""},
  REGISTRATION = {"plugins", "plugin_dir", AT(plugin_dir), PLUGIN_SOCKET},
  KUBELETS = {KUBELETS_DIR, ""}, KUBELETS_OWN = {KUBELETS_DIR, PLUGIN_SOCKET},
  BRIDGES = {KUBELETS_DIR, BRIDGE_SUBDIRECTORY};

/* The shim's directory for plugins and the kubelet's: each makes a kubelet.sock of its own, and the
 * kubelet empties its own. */
static const struct pair {
    const struct place *a, *b;
    const char *wrong, *expected;
    bool with_bridge; /* without it there may be no kubelet */
} apart[] = {
#define METRICS_WORDS "listen of [metrics] is another socket's path", "a socket of its own", false
    {&METRICS, &LISTEN, METRICS_WORDS},
    {&METRICS, &RUNTIME, METRICS_WORDS},
    {&METRICS, &FEED, METRICS_WORDS},
    {&METRICS, &REGISTRATION, METRICS_WORDS},
    {&METRICS, &KUBELETS_OWN, METRICS_WORDS},
    {&LISTEN, &RUNTIME, "listen and runtime_endpoint are the same socket",
     "listen to be the shim's own and runtime_endpoint the runtime's", false},
    {&LISTEN, &REGISTRATION, "listen is the socket on which plugins register",
     "a path other than plugin_dir's kubelet.sock", false},
    {&FEED, &LISTEN, "socket and listen are the same socket",
     "listen to be for the kubelet and socket for the bridge", false},
    {&FEED, &RUNTIME, "socket and runtime_endpoint are the same socket",
     "socket to be the shim's own and runtime_endpoint the runtime's", false},
    {&FEED, &REGISTRATION, "socket is the one on which plugins register",
     "a path other than plugin_dir's kubelet.sock", false},
    {&PLUGINS, &KUBELETS, "plugin_dir and kubelet_plugin_dir are the same directory",
     "plugin_dir to be the shim's own and kubelet_plugin_dir the kubelet's", true},
    {&PLUGINS, &BRIDGES, "plugin_dir is where the bridge has its sockets",
     "a directory other than kubelet_plugin_dir's cri-device-shim", true},
    {&FEED, &KUBELETS_OWN, "socket is the kubelet's own",
     "a path other than kubelet_plugin_dir's kubelet.sock", true},
#define CONTROL_WORDS                                                                              \
    "[control] socket is another socket's, too", "a path that no other setting has", false
    {&CONTROL, &LISTEN, CONTROL_WORDS},
    {&CONTROL, &RUNTIME, CONTROL_WORDS},
    {&CONTROL, &FEED, CONTROL_WORDS},
    {&CONTROL, &METRICS, CONTROL_WORDS},
    {&CONTROL, &REGISTRATION, CONTROL_WORDS},
};

/* Takes out "//", "/./" and "/../", as far as names tell; of an absolute path. */
static void make_normal(char *path)
{
    char *end = path, *part = path;

    for (size_t len; *part == '/'; part += len) {
        len = 1 + strcspn(part + 1, "/");
        if (len == 3 && strncmp(part, "/..", len) == 0) {
            while (end > path && *--end != '/')
                continue;
        } else if (len > 1 && (len != 2 || part[1] != '.')) {
            memmove(end, part, len);
            end += len;
        }
    }
    strcpy(end, end == path ? "/" : "");
}

/* Where the file has it; NULL: nowhere. The path is empty if it is wrong, none, or too long for a
 * socket's. */
static const struct tree_node *look_up(const struct config *config, const struct tree_node *root,
                                       const struct place *place, char path[SOCKET_BYTES_MAX + 1])
{
    const struct tree_node *node = find(root, place->table, place->key);
    const char *above = *(char *const *)((const char *)config + place->offset);
    int n = snprintf(path, SOCKET_BYTES_MAX + 1, "%s%s", above, place->below);

    if (*above != '/' || (size_t)n > SOCKET_BYTES_MAX || !is_right(node))
        *path = '\0';
    else
        make_normal(path);
    return node;
}

/* Told where the later of the two stands, the one just written. */
static void check_pair(struct reading *r, const struct tree_node *root, const struct pair *pair)
{
    char a_path[SOCKET_BYTES_MAX + 1], b_path[SOCKET_BYTES_MAX + 1];
    const struct tree_node *last = look_up(r->config, root, pair->a, a_path);
    const struct tree_node *b = look_up(r->config, root, pair->b, b_path);

    if (!*a_path || strcmp(a_path, b_path) != 0 ||
        (pair->with_bridge && !r->config->bridge.enabled))
        return;
    if (!last || (b && tree_before(last->at, b->at)))
        last = b;
    faults_add(&r->faults, last ? last->at : (struct tree_place){0}, pair->expected, "%s",
               pair->wrong);
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

        if (host && text_is_glob(host))
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
    glob = text_is_glob(d->path);
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

    place_sockets(r, root);
    if (r->out_of_memory)
        return;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        check_pair(r, root, &apart[i]);
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
