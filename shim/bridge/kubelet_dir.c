#include "shim/bridge/kubelet_dir.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "shim/bridge/limits.h"
#include "shim/bridge/names.h"
#include "shim/file_identity.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/watch.h"

struct kubelet_dir {
    char *path;
    const struct kubelet_dir_ops *ops;
    void *user;
    uv_timer_t timer;
    struct watch watch;
    bool watching;
    bool blind; /* said that it is not */
    bool warned;
    unsigned handles;
    struct file_identity socket; /* the last one that was there, */
    bool has_socket;             /* and whether it is */
    struct file_identity checkpoint;
    size_t renames; /* of the checkpoint, not told yet */
    bool seen;      /* renames since the last slow look */
    bool unseen;    /* at the last slow look the checkpoint had changed without one */
};

/* ---- looking ---- */

/* Whether *known is not what is there `now`; it is afterwards. */
static bool identity_changed(struct file_identity *known, const struct file_identity *now)
{
    bool same = file_identity_is(known, now);

    *known = *now;
    return !same;
}

/* Watch first: what comes between the two is then seen by one of them. */
static void watch(struct kubelet_dir *dir)
{
    char below[PATH_MAX];
    int err;

    if (!dir->watching)
        return;
    snprintf(below, sizeof below, "%s/" NAMES_SUBDIRECTORY "/", dir->path);
    err = watch_above(&dir->watch, below);
    if (err && !dir->warned)
        log_warning("%s: inotify: %s; looking every %d ms instead", dir->path, strerror(-err),
                    LOOK_MS);
    dir->warned = err != 0;
}

/* `slow`: the timer's. */
static void look_for_socket(struct kubelet_dir *dir, bool slow)
{
    struct file_identity now = file_identity_at(dir->path, KUBELET_SOCKET_NAME, S_IFSOCK);
    bool present = !file_identity_is_none(&now), went = dir->has_socket && !present;
    bool another = present && identity_changed(&dir->socket, &now);
    bool came = another || (present && !dir->has_socket);

    dir->has_socket = present;
    if (slow || came)
        dir->ops->endpoints(dir->user);
    if (came)
        dir->ops->socket(dir->user, another ? KUBELET_SOCKET_NEW : KUBELET_SOCKET_BACK);
    else if (went)
        dir->ops->socket(dir->user, KUBELET_SOCKET_GONE);
}

static void look(struct kubelet_dir *dir, bool slow)
{
    size_t renames;

    watch(dir);
    look_for_socket(dir, slow);
    renames = dir->renames;
    dir->renames = 0;
    if (renames > 0)
        dir->ops->stored(dir->user, renames);
}

static void on_event(void *user, const char *name, uint32_t mask)
{
    struct kubelet_dir *dir = user;

    if (mask & IN_MOVED_TO && strcmp(name, KUBELET_CHECKPOINT_NAME) == 0) {
        dir->renames += dir->renames < SIZE_MAX;
        dir->seen = true;
    }
}

static void on_changed(void *user, bool overflow)
{
    struct kubelet_dir *dir = user;

    if (overflow)
        dir->renames = SIZE_MAX;
    look(dir, false);
}

/* There may be an inotify instance to be had by now: there is a limit of them per user. */
static void watch_again(struct kubelet_dir *dir)
{
    static const struct watch_ops ops = {.event = on_event, .changed = on_changed};
    int err;

    if (dir->watching)
        return;
    err = watch_init(&dir->watch, dir->timer.loop, &ops, dir);
    dir->watching = !err;
    dir->handles += dir->watching;
    if (err && !dir->blind)
        log_warning("inotify: %s; looking at %s every %d ms instead", strerror(-err), dir->path,
                    LOOK_BLIND_MS);
    else if (!err && dir->blind)
        log_info("inotify: %s is watched now", dir->path);
    dir->blind = err != 0;
    uv_timer_set_repeat(&dir->timer, err ? LOOK_BLIND_MS : LOOK_MS);
}

/* The safety net. A checkpoint that changed without an event was not seen being written; but the
 * event may be on its way yet, so it has until the next look. */
static void on_timer(uv_timer_t *timer)
{
    struct kubelet_dir *dir = timer->data;
    struct file_identity now = file_identity_at(dir->path, KUBELET_CHECKPOINT_NAME, S_IFREG);

    if (dir->unseen && !dir->seen)
        dir->renames = SIZE_MAX;
    dir->unseen =
        identity_changed(&dir->checkpoint, &now) && !file_identity_is_none(&now) && !dir->seen;
    dir->seen = false;
    watch_again(dir);
    look(dir, true);
}

/* ---- life ---- */

struct kubelet_dir *kubelet_dir_start(uv_loop_t *loop, const char *path,
                                      const struct kubelet_dir_ops *ops, void *user)
{
    struct kubelet_dir *dir = must(calloc(1, sizeof *dir));

    dir->path = must(strdup(path));
    dir->ops = ops;
    dir->user = user;
    uv_timer_init(loop, &dir->timer);
    dir->timer.data = dir;
    dir->handles = 1;
    watch_again(dir);
    dir->checkpoint = file_identity_at(dir->path, KUBELET_CHECKPOINT_NAME, S_IFREG);
    uv_timer_start(&dir->timer, on_timer, 0, dir->watching ? LOOK_MS : LOOK_BLIND_MS);
    return dir;
}

void kubelet_dir_look(struct kubelet_dir *dir)
{
    look_for_socket(dir, false);
}

static void on_closed(void *user)
{
    struct kubelet_dir *dir = user;

    if (--dir->handles > 0)
        return;
    free(dir->path);
    free(dir);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

void kubelet_dir_stop(struct kubelet_dir *dir)
{
    if (!dir)
        return;
    uv_close((uv_handle_t *)&dir->timer, on_timer_closed);
    if (dir->watching)
        watch_close(&dir->watch, on_closed, dir);
}
