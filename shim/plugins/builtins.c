#include "shim/plugins/builtins.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/hash.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/stopping.h"
#include "shim/watch.h"

/* What stands behind a name just now. */
struct found {
    bool healthy;      /* all nodes are there */
    uint64_t identity; /* of their kinds and numbers; other ones: another device */
};

struct list {
    struct devicemgr_builtin_device *devices; /* their strings are owned */
    uint64_t *identities;                     /* of each */
    size_t len;
    size_t room;
    bool told; /* the owner knows it */
};

struct builtins {
    uv_loop_t *loop;
    const struct config_device *tables;
    struct list *lists;                        /* one for each table */
    V1beta1__ContainerAllocateResponse **more; /* of each table: devicemgr_builtin_device.more */
    size_t tables_len;
    const struct builtins_ops *ops;
    void *user;
    uv_timer_t timer; /* to the next look */
    struct watch watch;
    bool polling;     /* look again every BUILTINS_POLL_MS */
    bool unseen;      /* something may be there that the last look could not see, */
    bool told_unseen; /* and the log says so */
    struct stopping stopping;
};

/* ---- lists ---- */

static void list_clear(struct list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        free((char *)list->devices[i].id);
        free((char *)list->devices[i].host_path);
        free((char *)list->devices[i].container_path);
        free((char *)list->devices[i].permissions);
    }
    free(list->devices);
    free(list->identities);
    memset(list, 0, sizeof *list);
}

static bool list_equal(const struct list *a, const struct list *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (strcmp(a->devices[i].id, b->devices[i].id) != 0 ||
            strcmp(a->devices[i].host_path, b->devices[i].host_path) != 0 ||
            a->devices[i].healthy != b->devices[i].healthy || a->identities[i] != b->identities[i])
            return false;
    }
    return true;
}

static void list_add(struct list *list, const struct found *found,
                     const struct devicemgr_builtin_device *device)
{
    if (list->len == list->room) {
        list->room = list->room ? list->room * 2 : 16;
        list->devices = must(realloc(list->devices, list->room * sizeof *list->devices));
        list->identities = must(realloc(list->identities, list->room * sizeof *list->identities));
    }
    list->identities[list->len] = found->identity;
    list->devices[list->len++] = (struct devicemgr_builtin_device){
        .id = must(strdup(device->id)),
        .healthy = found->healthy,
        .host_path = must(strdup(device->host_path)),
        .container_path = must(strdup(device->container_path)),
        .permissions = must(strdup(device->permissions)),
        .more = device->more,
    };
}

/* Makes each device unhealthy in `old` that is another one in `now`; true if there is any. Both are
 * in the order of their paths. */
static bool list_mark_replaced(struct list *old, const struct list *now, const char *resource)
{
    bool any = false;

    for (size_t i = 0, n = 0; i < old->len && n < now->len;) {
        struct devicemgr_builtin_device *was = &old->devices[i], *is = &now->devices[n];
        int order = strcmp(was->host_path, is->host_path);

        if (order == 0 && was->healthy && is->healthy && old->identities[i] != now->identities[n]) {
            log_info("device %s: %s is another device now", resource, is->host_path);
            was->healthy = false;
            any = true;
        }
        i += order <= 0;
        n += order >= 0;
    }
    return any;
}

/* ---- looking ---- */

static bool is_glob(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

/* Adds one node to what was found before it. */
static void find_node(struct found *found, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) {
        found->healthy = false;
        return;
    }
    found->identity = hash_word(found->identity, st.st_rdev);
    found->identity = hash_word(found->identity, S_ISBLK(st.st_mode));
}

/* Bytes of `path` up to the '/' before its first part with a glob character, or its last part. */
static size_t fixed_bytes(const char *path)
{
    size_t glob_at = strcspn(path, "*?["), bytes = 0;

    for (size_t i = 0; i < glob_at; i++) {
        if (path[i] == '/')
            bytes = i + 1;
    }
    return bytes;
}

/* `count` devices of the name `device->id`. */
static void add_devices(struct list *list, const struct config_device *table,
                        const struct found *found, const struct devicemgr_builtin_device *device)
{
    struct devicemgr_builtin_device one = *device;
    char id[PATH_MAX + 16];

    one.id = id;
    for (unsigned i = 0; i < table->count; i++) {
        if (list->len == BUILTINS_DEVICES_MAX)
            return;
        if (table->count > 1)
            snprintf(id, sizeof id, "%s-%u", device->id, i);
        else
            snprintf(id, sizeof id, "%s", device->id);
        list_add(list, found, &one);
    }
}

/* A node that `path` of the table names or matches. */
static void add_node(struct list *list, const struct config_device *table,
                     const V1beta1__ContainerAllocateResponse *more, const char *path,
                     const struct found *found)
{
    char container_path[PATH_MAX];
    struct devicemgr_builtin_device device = {.id = path + fixed_bytes(table->path),
                                              .host_path = path,
                                              .container_path = path,
                                              .permissions = table->permissions,
                                              .more = more};

    if (table->container_path) {
        device.container_path = container_path;
        if (snprintf(container_path, sizeof container_path, "%s%s", table->container_path,
                     is_glob(table->path) ? device.id : "") >= (int)sizeof container_path)
            return; /* no path either way */
    }
    add_devices(list, table, found, &device);
}

/* The nodes of `paths`: one device, named like the first. */
static void add_nodes(struct list *list, const struct config_device *table,
                      const V1beta1__ContainerAllocateResponse *more)
{
    const struct config_node *first = &table->paths[0];
    const struct devicemgr_builtin_device device = {.id = first->host + fixed_bytes(first->host),
                                                    .host_path = first->host,
                                                    .container_path = first->container,
                                                    .permissions = table->permissions,
                                                    .more = more};
    struct found found = {.healthy = true};

    for (size_t i = 0; i < table->paths_len; i++)
        find_node(&found, table->paths[i].host);
    add_devices(list, table, &found, &device);
}

/* Whether it ends glob(3): without that, what cannot be opened counts as empty. */
static int on_unopened(const char *path, int error)
{
    (void)path;
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* As glob(3). That it has ended for want of a descriptor or memory is noted. */
static int look_for(struct builtins *builtins, const char *pattern, int flags, glob_t *found)
{
    int rc = glob(pattern, flags, on_unopened, found);

    if (rc == GLOB_ABORTED || rc == GLOB_NOSPACE)
        builtins->unseen = true;
    return rc;
}

/* False: what there is is not known. */
static bool scan_glob(struct builtins *builtins, struct list *list,
                      const struct config_device *table,
                      const V1beta1__ContainerAllocateResponse *more)
{
    glob_t found;
    int rc = look_for(builtins, table->path, 0, &found);

    if (rc != 0)
        return rc == GLOB_NOMATCH;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct found node = {.healthy = true};

        find_node(&node, found.gl_pathv[i]);
        if (node.healthy)
            add_node(list, table, more, found.gl_pathv[i], &node);
    }
    globfree(&found);
    return true;
}

/* As scan_glob(). */
static bool scan(struct builtins *builtins, struct list *list, const struct config_device *table,
                 const V1beta1__ContainerAllocateResponse *more)
{
    struct found node = {.healthy = true};
    bool seen = true;

    if (!table->path) {
        add_nodes(list, table, more);
    } else if (is_glob(table->path)) {
        seen = scan_glob(builtins, list, table, more);
    } else {
        find_node(&node, table->path);
        add_node(list, table, more, table->path, &node);
    }
    if (list->len == BUILTINS_DEVICES_MAX)
        log_warning("device %s: only the first %d devices are offered", table->resource,
                    BUILTINS_DEVICES_MAX);
    return seen;
}

/* ---- watching ---- */

static void poll_instead(struct builtins *builtins, const char *what, int err)
{
    if (builtins->polling)
        return;
    builtins->polling = true;
    log_warning("built-in devices: %s: %s; looking every %d s instead", what, strerror(-err),
                BUILTINS_POLL_MS / 1000);
}

static void watch(struct builtins *builtins, const char *dir)
{
    int err = watch_directory(&builtins->watch, dir);

    if (err)
        poll_instead(builtins, dir, err);
}

/* Every directory that `pattern` matches. */
static void watch_matches(struct builtins *builtins, const char *pattern)
{
    glob_t found;

    if (look_for(builtins, pattern, GLOB_ONLYDIR, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        watch(builtins, found.gl_pathv[i]);
    globfree(&found);
}

/* Each level of the path: a node can appear only after its directory has, a glob can match new
 * directories, and a directory that is made anew is another one. */
static void watch_path(struct builtins *builtins, const char *path)
{
    char level[PATH_MAX];

    watch(builtins, "/");
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(level, sizeof level, "%.*s", (int)(slash - path), path);
        watch_matches(builtins, level);
    }
}

static void watch_table(struct builtins *builtins, const struct config_device *table)
{
    if (table->path)
        watch_path(builtins, table->path);
    for (size_t i = 0; i < table->paths_len; i++)
        watch_path(builtins, table->paths[i].host);
}

static void tell(struct builtins *builtins, size_t i)
{
    const struct list *list = &builtins->lists[i];

    builtins->ops->changed(builtins->user, builtins->tables[i].resource, list->devices, list->len);
}

static void look_at(struct builtins *builtins, size_t i)
{
    struct list *list = &builtins->lists[i], now = {0};

    if (!scan(builtins, &now, &builtins->tables[i], builtins->more[i]))
        return;
    if (list->told && list_equal(&now, list)) {
        list_clear(&now);
        return;
    }
    /* What was exchanged has gone before it came, however fast. */
    if (list_mark_replaced(list, &now, builtins->tables[i].resource))
        tell(builtins, i);
    list_clear(list);
    *list = now;
    list->told = true;
    tell(builtins, i);
}

/* Once, until all is seen again. */
static void tell_unseen(struct builtins *builtins)
{
    if (builtins->unseen && !builtins->told_unseen)
        log_warning("built-in devices: no descriptor or memory to look for them; they stay as they "
                    "were, looking every %d s",
                    BUILTINS_POLL_MS / 1000);
    else if (!builtins->unseen && builtins->told_unseen)
        log_info("built-in devices: they are looked for again");
    builtins->told_unseen = builtins->unseen;
}

static void look(uv_timer_t *timer)
{
    struct builtins *builtins = timer->data;

    builtins->unseen = false;
    /* Watch first: what comes between the two is then seen by one of them. */
    for (size_t i = 0; i < builtins->tables_len && watch_runs(&builtins->watch); i++)
        watch_table(builtins, &builtins->tables[i]);
    for (size_t i = 0; i < builtins->tables_len; i++)
        look_at(builtins, i);
    tell_unseen(builtins);
    if (builtins->polling || builtins->unseen)
        uv_timer_start(&builtins->timer, look, BUILTINS_POLL_MS, 0);
}

/* What happened does not matter, that something did is enough; also an overflow of the queue. */
static void on_changed(void *user, bool overflow)
{
    uv_timer_t *timer = &((struct builtins *)user)->timer;

    (void)overflow;
    /* Not pushed back by each further event: under a flood it would never come. */
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > BUILTINS_SETTLE_MS)
        uv_timer_start(timer, look, BUILTINS_SETTLE_MS, 0);
}

static void start_watch(struct builtins *builtins)
{
    static const struct watch_ops ops = {.changed = on_changed};
    int err = watch_init(&builtins->watch, builtins->loop, &ops, builtins);

    if (err)
        poll_instead(builtins, "inotify", err);
}

/* ---- what a device brings along ---- */

static V1beta1__DeviceSpec *device_spec(const struct config_node *node, char *permissions)
{
    V1beta1__DeviceSpec *spec = must(malloc(sizeof *spec));

    v1beta1__device_spec__init(spec);
    spec->host_path = node->host;
    spec->container_path = node->container;
    spec->permissions = permissions;
    return spec;
}

static V1beta1__Mount *mount(const struct config_mount *from)
{
    V1beta1__Mount *to = must(malloc(sizeof *to));

    v1beta1__mount__init(to);
    to->host_path = from->host;
    to->container_path = from->container;
    to->read_only = from->read_only;
    return to;
}

static V1beta1__ContainerAllocateResponse__EnvsEntry *env(const struct config_env *from)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry *to = must(malloc(sizeof *to));

    v1beta1__container_allocate_response__envs_entry__init(to);
    to->key = from->name;
    to->value = from->value;
    return to;
}

/* Its texts are the table's. */
static V1beta1__ContainerAllocateResponse *more_new(const struct config_device *table)
{
    V1beta1__ContainerAllocateResponse *more = must(malloc(sizeof *more));

    v1beta1__container_allocate_response__init(more);
    more->devices = must(calloc(table->paths_len + 1, sizeof *more->devices));
    for (size_t i = 1; i < table->paths_len; i++) /* the first is the device's own */
        more->devices[more->n_devices++] = device_spec(&table->paths[i], table->permissions);
    more->mounts = must(calloc(table->mounts_len + 1, sizeof *more->mounts));
    for (size_t i = 0; i < table->mounts_len; i++)
        more->mounts[more->n_mounts++] = mount(&table->mounts[i]);
    more->envs = must(calloc(table->envs_len + 1, sizeof *more->envs));
    for (size_t i = 0; i < table->envs_len; i++)
        more->envs[more->n_envs++] = env(&table->envs[i]);
    return more;
}

static void more_free(V1beta1__ContainerAllocateResponse *more)
{
    for (size_t i = 0; i < more->n_devices; i++)
        free(more->devices[i]);
    for (size_t i = 0; i < more->n_mounts; i++)
        free(more->mounts[i]);
    for (size_t i = 0; i < more->n_envs; i++)
        free(more->envs[i]);
    free(more->devices);
    free(more->mounts);
    free(more->envs);
    free(more);
}

/* ---- life ---- */

struct builtins *builtins_start(uv_loop_t *loop, const struct config_device *devices,
                                size_t devices_len, const struct builtins_ops *ops, void *user)
{
    struct builtins *builtins = must(calloc(1, sizeof *builtins));

    builtins->loop = loop;
    builtins->tables = devices;
    builtins->tables_len = devices_len;
    builtins->lists = must(calloc(devices_len + 1, sizeof *builtins->lists));
    builtins->more = must(calloc(devices_len + 1, sizeof *builtins->more));
    for (size_t i = 0; i < devices_len; i++)
        builtins->more[i] = more_new(&devices[i]);
    builtins->ops = ops;
    builtins->user = user;
    builtins->watch.fd = -1;
    uv_timer_init(loop, &builtins->timer);
    builtins->timer.data = builtins;
    if (devices_len > 0) {
        start_watch(builtins);
        uv_timer_start(&builtins->timer, look, 0, 0);
    }
    return builtins;
}

void builtins_look(struct builtins *builtins)
{
    uv_timer_stop(&builtins->timer);
    look(&builtins->timer);
}

static void builtins_free(void *thing)
{
    struct builtins *builtins = thing;

    for (size_t i = 0; i < builtins->tables_len; i++) {
        list_clear(&builtins->lists[i]);
        more_free(builtins->more[i]);
    }
    free(builtins->lists);
    free(builtins->more);
    free(builtins);
}

void builtins_stop(struct builtins *builtins, void (*done)(void *user), void *user)
{
    bool watches = watch_runs(&builtins->watch);

    builtins->stopping = (struct stopping){1 + watches, builtins_free, builtins, done, user};
    stopping_close(&builtins->stopping, (uv_handle_t *)&builtins->timer);
    if (watches)
        watch_close(&builtins->watch, stopping_part, &builtins->stopping);
}
