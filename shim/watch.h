/*
 * Directories watched with inotify(7) on the loop: for names that come and go, not for contents.
 */
#ifndef SHIM_WATCH_H
#define SHIM_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct watch_ops {
    /* One event: `name` in one of the directories (inotify's mask), or "" for a directory itself.
     * May be NULL. An overflow of the queue is not told: see changed(). */
    void (*event)(void *user, const char *name, uint32_t mask);
    /* Something happened, after event() for all of it; `overflow`: also what event() did not
     * tell. */
    void (*changed)(void *user, bool overflow);
};

struct watch {
    /* private */
    uv_poll_t poll;
    int fd; /* -1: none */
    const struct watch_ops *ops;
    void *user;
    void (*closed)(void *user);
    void *closed_user;
};

/* 0, or a negative errno (there are limits per user): then nothing is to be closed, and the calls
 * below do nothing. `ops` and `user` are borrowed until the end. */
int watch_init(struct watch *watch, uv_loop_t *loop, const struct watch_ops *ops, void *user)
    __attribute__((warn_unused_result));

/* Whether it runs: watch_init() was a success. */
bool watch_runs(const struct watch *watch);

/*
 * Adds a directory. One that is watched already keeps its watch, one that was made anew under the
 * same name gets one, one that is not there, or is no directory, gets none: watch what is above it.
 * So call it again after each change. 0 or a negative errno (-ENOSPC: the limit of watches).
 */
int watch_directory(struct watch *watch, const char *path) __attribute__((warn_unused_result));

/* Adds each directory above `path`, which is absolute, and not `path` itself. */
int watch_above(struct watch *watch, const char *path) __attribute__((warn_unused_result));

/* No callback follows but `closed`, from the loop. Only if it runs. */
void watch_close(struct watch *watch, void (*closed)(void *user), void *user);

#endif
