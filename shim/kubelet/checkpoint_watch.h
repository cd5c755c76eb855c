/*
 * The kubelet's own checkpoint as it is on disk: read at the start and whenever
 * the kubelet has renamed a new one in.
 *
 * The directory may not be there yet, and may be made anew: every level of its path is watched. Of
 * one that was mounted over it, or made where a link of the path leads, nothing tells: it is
 * watched from the next reading on. Where inotify is not to be had, of which there is so much for
 * each user, the file is read, and inotify tried again, at intervals. Reading and parsing run in
 * libuv's worker.
 */
#ifndef SHIM_KUBELET_CHECKPOINT_WATCH_H
#define SHIM_KUBELET_CHECKPOINT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/kubelet/checkpoint_file.h"

/* A kubelet that starts many pods writes the file for each; it is read once in so long. */
#define CHECKPOINT_WATCH_SETTLE_MS 100
/* It is read that often while it cannot be watched, or be read. */
#define CHECKPOINT_WATCH_AGAIN_MS 1000

struct kubelet_file {
    enum kubelet_file_state state; /* UNREADABLE, DAMAGED: one log line says why */
    /* The ids of its resources are in the natural order. KUBELET_FILE_READ: what it says;
     * UNREADABLE, DAMAGED: what it last said; else empty. */
    struct kubelet_checkpoint checkpoint;
    /* When the reading began that has found what it says, boot_now_ms(); 0: it is not READ. */
    uint64_t read_ms;
};

struct checkpoint_watch;

struct checkpoint_watch_ops {
    /* The file was read; `file` is borrowed until the next one, or the stop. */
    void (*read)(void *user, const struct kubelet_file *file);
};

/* Starts to watch, and to read for the first time; `dir`, `ops` and `user` are borrowed until the
 * stop. Everything comes from the loop. */
struct checkpoint_watch *checkpoint_watch_start(uv_loop_t *loop, const char *dir,
                                                const struct checkpoint_watch_ops *ops, void *user);

/* Reads the file now, also if that is under way, which may have begun too early for the caller. */
void checkpoint_watch_read(struct checkpoint_watch *watch);

/* Whether a reading that began since the last checkpoint_watch_read(), or the start, is over. */
bool checkpoint_watch_current(const struct checkpoint_watch *watch);

/* Waits for a reading that is under way, frees, then runs `done` from the loop. */
void checkpoint_watch_stop(struct checkpoint_watch *watch, void (*done)(void *user), void *user);

#endif
