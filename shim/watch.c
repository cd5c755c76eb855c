#include "shim/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Names that come and go. Not IN_MODIFY, which uv_fs_event cannot leave out: it wakes the loop for
 * each write to /dev/null. */
#define WATCH_MASK                                                                                 \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |         \
     IN_ONLYDIR)

/* Tells the events in the `len` bytes; true if one of them is an overflow. */
static bool tell(struct watch *watch, const char *buffer, size_t len)
{
    const struct inotify_event *event;
    bool overflow = false;

    for (size_t at = 0; at < len; at += sizeof *event + event->len) {
        event = (const struct inotify_event *)(buffer + at);
        overflow |= event->mask & IN_Q_OVERFLOW;
        if (watch->ops->event && !(event->mask & (IN_Q_OVERFLOW | IN_IGNORED)))
            watch->ops->event(watch->user, event->len ? event->name : "", event->mask);
    }
    return overflow;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct watch *watch = poll->data;
    bool overflow = false;
    ssize_t n;

    (void)status;
    (void)events;
    while ((n = read(watch->fd, buffer, sizeof buffer)) > 0)
        overflow |= tell(watch, buffer, (size_t)n);
    watch->ops->changed(watch->user, overflow);
}

int watch_init(struct watch *watch, uv_loop_t *loop, const struct watch_ops *ops, void *user)
{
    int err;

    watch->ops = ops;
    watch->user = user;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0)
        return -errno;
    err = uv_poll_init(loop, &watch->poll, watch->fd);
    if (err < 0) {
        close(watch->fd);
        watch->fd = -1;
        return err;
    }
    watch->poll.data = watch;
    uv_poll_start(&watch->poll, UV_READABLE, on_readable);
    return 0;
}

bool watch_runs(const struct watch *watch)
{
    return watch->fd >= 0;
}

int watch_directory(struct watch *watch, const char *path)
{
    if (!watch_runs(watch) || inotify_add_watch(watch->fd, path, WATCH_MASK) >= 0)
        return 0;
    return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

int watch_above(struct watch *watch, const char *path)
{
    char level[PATH_MAX];
    int err = watch_directory(watch, "/");

    for (const char *slash = strchr(path + 1, '/'); slash && !err; slash = strchr(slash + 1, '/')) {
        snprintf(level, sizeof level, "%.*s", (int)(slash - path), path);
        err = watch_directory(watch, level);
    }
    return err;
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    close(watch->fd);
    watch->fd = -1;
    watch->closed(watch->closed_user);
}

void watch_close(struct watch *watch, void (*closed)(void *user), void *user)
{
    watch->closed = closed;
    watch->closed_user = user;
    uv_close((uv_handle_t *)&watch->poll, on_closed);
}
