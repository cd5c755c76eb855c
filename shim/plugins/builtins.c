#include "shim/plugins/builtins.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/must.h"

/* Names that come and go. Not IN_MODIFY, which uv_fs_event cannot leave out: it wakes the loop for
 * each write to /dev/null. */
#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |         \
     IN_ONLYDIR)

struct list {
    struct devicemgr_builtin_device *devices; /* their strings are owned */
    size_t len;
    size_t room;
    bool told; /* the owner knows it */
};

struct builtins {
    uv_loop_t *loop;
    const struct config_device *tables;
    struct list *lists; /* one for each table */
    size_t tables_len;
    const struct builtins_ops *ops;
    void *user;
    uv_timer_t timer; /* to the next look */
    uv_poll_t poll;
    int inotify;  /* -1: none */
    bool polling; /* look again every BUILTINS_POLL_MS */
    unsigned handles;
    void (*done)(void *user);
    void *done_user;
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
    memset(list, 0, sizeof *list);
}

static bool list_equal(const struct list *a, const struct list *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        if (strcmp(a->devices[i].id, b->devices[i].id) != 0 ||
            strcmp(a->devices[i].host_path, b->devices[i].host_path) != 0 ||
            a->devices[i].healthy != b->devices[i].healthy)
            return false;
    }
    return true;
}

static void list_add(struct list *list, const char *id, bool healthy, const char *host_path,
                     const char *container_path, const char *permissions)
{
    if (list->len == list->room) {
        list->room = list->room ? list->room * 2 : 16;
        list->devices = must(realloc(list->devices, list->room * sizeof *list->devices));
    }
    list->devices[list->len++] = (struct devicemgr_builtin_device){
        .id = must(strdup(id)),
        .healthy = healthy,
        .host_path = must(strdup(host_path)),
        .container_path = must(strdup(container_path)),
        .permissions = must(strdup(permissions)),
    };
}

/* ---- looking ---- */

static bool is_glob(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

static bool is_device_node(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode));
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

/* One node: `count` devices. */
static void add_node(struct list *list, const struct config_device *table, const char *path)
{
    const char *name = path + fixed_bytes(table->path);
    bool healthy = is_device_node(path);
    char container_path[PATH_MAX], id[PATH_MAX + 16];
    const char *inside = path;

    if (table->container_path) {
        inside = container_path;
        if (snprintf(container_path, sizeof container_path, "%s%s", table->container_path,
                     is_glob(table->path) ? name : "") >= (int)sizeof container_path)
            return; /* no path either way */
    }
    for (unsigned i = 0; i < table->count; i++) {
        if (list->len == BUILTINS_DEVICES_MAX)
            return;
        if (table->count > 1)
            snprintf(id, sizeof id, "%s-%u", name, i);
        else
            snprintf(id, sizeof id, "%s", name);
        list_add(list, id, healthy, path, inside, table->permissions);
    }
}

static void scan_glob(struct list *list, const struct config_device *table)
{
    glob_t found;
    int rc = glob(table->path, 0, NULL, &found); /* sorted */

    if (rc != 0 && rc != GLOB_NOMATCH)
        log_warning("device %s: cannot look for %s: %s", table->resource, table->path,
                    rc == GLOB_NOSPACE ? "out of memory" : "read error");
    if (rc != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_device_node(found.gl_pathv[i]))
            add_node(list, table, found.gl_pathv[i]);
    }
    globfree(&found);
}

static void scan(struct list *list, const struct config_device *table)
{
    if (is_glob(table->path))
        scan_glob(list, table);
    else
        add_node(list, table, table->path);
    if (list->len == BUILTINS_DEVICES_MAX)
        log_warning("device %s: only the first %d devices are offered", table->resource,
                    BUILTINS_DEVICES_MAX);
}

/* ---- watching ---- */

static void poll_instead(struct builtins *builtins, const char *what)
{
    if (builtins->polling)
        return;
    builtins->polling = true;
    log_warning("built-in devices: %s: %s; looking every %d s instead", what, strerror(errno),
                BUILTINS_POLL_MS / 1000);
}

/* One that is watched already keeps its watch; one that is gone lost it. */
static void watch(struct builtins *builtins, const char *dir)
{
    if (inotify_add_watch(builtins->inotify, dir, WATCH_MASK) < 0 && errno != ENOENT &&
        errno != ENOTDIR)
        poll_instead(builtins, dir);
}

/* Every directory that `pattern` matches. */
static void watch_matches(struct builtins *builtins, const char *pattern)
{
    glob_t found;

    if (glob(pattern, GLOB_ONLYDIR, NULL, &found) != 0)
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

static void tell(struct builtins *builtins, size_t i)
{
    const struct list *list = &builtins->lists[i];

    builtins->ops->changed(builtins->user, builtins->tables[i].resource, list->devices, list->len);
}

static void look(uv_timer_t *timer)
{
    struct builtins *builtins = timer->data;

    /* Watch first: what comes between the two is then seen by one of them. */
    for (size_t i = 0; i < builtins->tables_len && builtins->inotify >= 0; i++)
        watch_path(builtins, builtins->tables[i].path);
    for (size_t i = 0; i < builtins->tables_len; i++) {
        struct list now = {0};

        scan(&now, &builtins->tables[i]);
        if (builtins->lists[i].told && list_equal(&now, &builtins->lists[i])) {
            list_clear(&now);
            continue;
        }
        list_clear(&builtins->lists[i]);
        builtins->lists[i] = now;
        builtins->lists[i].told = true;
        tell(builtins, i);
    }
    if (builtins->polling)
        uv_timer_start(&builtins->timer, look, BUILTINS_POLL_MS, 0);
}

/* What happened does not matter, that something did is enough; also an overflow of the queue. */
static void on_inotify(uv_poll_t *poll, int status, int events)
{
    struct builtins *builtins = poll->data;
    char buffer[4096];

    (void)status;
    (void)events;
    while (read(builtins->inotify, buffer, sizeof buffer) > 0) {
    }
    /* Not pushed back by each further event: under a flood it would never come. */
    if (builtins->polling || !uv_is_active((uv_handle_t *)&builtins->timer))
        uv_timer_start(&builtins->timer, look, BUILTINS_SETTLE_MS, 0);
}

static void start_inotify(struct builtins *builtins)
{
    builtins->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (builtins->inotify < 0) {
        poll_instead(builtins, "inotify");
        return;
    }
    uv_poll_init(builtins->loop, &builtins->poll, builtins->inotify);
    builtins->poll.data = builtins;
    builtins->handles++;
    uv_poll_start(&builtins->poll, UV_READABLE, on_inotify);
}

struct builtins *builtins_start(uv_loop_t *loop, const struct config_device *devices,
                                size_t devices_len, const struct builtins_ops *ops, void *user)
{
    struct builtins *builtins = must(calloc(1, sizeof *builtins));

    builtins->loop = loop;
    builtins->tables = devices;
    builtins->tables_len = devices_len;
    builtins->lists = must(calloc(devices_len + 1, sizeof *builtins->lists));
    builtins->ops = ops;
    builtins->user = user;
    builtins->inotify = -1;
    uv_timer_init(loop, &builtins->timer);
    builtins->timer.data = builtins;
    builtins->handles = 1;
    if (devices_len > 0) {
        start_inotify(builtins);
        uv_timer_start(&builtins->timer, look, 0, 0);
    }
    return builtins;
}

static void on_closed(uv_handle_t *handle)
{
    struct builtins *builtins = handle->data;
    void (*done)(void *user) = builtins->done;
    void *user = builtins->done_user;

    if (--builtins->handles > 0)
        return;
    if (builtins->inotify >= 0)
        close(builtins->inotify);
    for (size_t i = 0; i < builtins->tables_len; i++)
        list_clear(&builtins->lists[i]);
    free(builtins->lists);
    free(builtins);
    done(user);
}

void builtins_stop(struct builtins *builtins, void (*done)(void *user), void *user)
{
    builtins->done = done;
    builtins->done_user = user;
    uv_close((uv_handle_t *)&builtins->timer, on_closed);
    if (builtins->inotify >= 0)
        uv_close((uv_handle_t *)&builtins->poll, on_closed);
}
