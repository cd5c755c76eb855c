/*
 * Names of resources in a small file, one a line: what the Node is still to be told is removed, for
 * the daemon that follows. It is not synced (file_replace()): a kernel that dies may cost it.
 */
#ifndef SHIM_CLUSTER_REMOVED_FILE_H
#define SHIM_CLUSTER_REMOVED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#define REMOVED_FILE "removed-resources"

/* Calls `each` for those in the file at `path`, before it returns; what is no name of a resource is
 * left out. One that cannot be read is warned of, one that is not there has none. */
void removed_file_read(const char *path, void (*each)(void *user, const char *name), void *user);

/* The file, as it is to be; embedded in its owner, private. */
struct removed_file {
    uv_loop_t *loop;
    uv_work_t work;
    char *path;
    char *text, *next; /* what is being written, and what is to be behind that; NULL: nothing is */
    int err;
    void (*written)(void *user, int err);
    void *user;
};

/* Takes `path`. `written` is told from the loop what came of it: 0, or a negative errno, with which
 * nothing has changed. */
void removed_file_init(struct removed_file *file, uv_loop_t *loop, char *path,
                       void (*written)(void *user, int err), void *user);
/* Nothing is being written. */
void removed_file_fini(struct removed_file *file);

/* These (copied) are to be in it from now on; the file of none is removed. That is libuv's worker's
 * to do, behind what it is at: of what is asked for meanwhile it does the last. */
void removed_file_write(struct removed_file *file, const char *const *names, size_t len);
/* Whether that is not over; when `written` is told last, it is. */
bool removed_file_writes(const struct removed_file *file);

#endif
