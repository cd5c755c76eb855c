/*
 * Which sockets stand in a directory and the directories in it, as the kubelet's plugin watcher
 * sees them (pkg/kubelet/pluginmanager/pluginwatcher/plugin_watcher.go):
 *
 *   - names that begin with a dot do not count; what lies in a directory of such a name counts if
 *     that was there at the start, and not if it came later;
 *   - what a symlink leads to counts, if it is a socket; one that leads to a directory does not.
 *
 * inotify says only that something has changed, and then all of it is looked at. So nothing is
 * missed, whatever the order of events, and an overflow of their queue is one event more. Looks
 * keep a pace (SOCKETS_PAUSE_MS), whatever is done to the directory. Where inotify cannot be had,
 * the directory is looked at each SOCKETS_LOOK_MS; so it is while it cannot be made or read.
 * Without descriptors or memory for a look nothing has gone.
 *
 * A socket is told from another by its inode, which is held open (O_PATH) and so is not given away
 * again. One that is replaced under its name has gone, and another has come.
 *
 * Where there are more than REGISTRY_SOCKETS_MAX, one that nobody serves has gone for a newer one:
 * a driver whose sockets have its pod's uid in their names leaves one behind with each pod that is
 * killed.
 */
#ifndef SHIM_REGISTRY_SOCKETS_H
#define SHIM_REGISTRY_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

/* Between the end of a look and the next; and ten times what the look took, if that is longer. */
#define SOCKETS_PAUSE_MS 10
#define SOCKETS_LOOK_MS 1000

struct sockets;

/* Strings are borrowed until the end. */
struct sockets_place {
    const char *directory; /* absolute */
    const char *setting;   /* its name, for the log */
    bool is_ours; /* made (0755) whenever it is not there; another's: nothing is there then */
};

struct sockets_ops {
    /* A socket stands at `path`, which is absolute. `file` (O_PATH) is what stands there; both are
     * borrowed until went(). Returns what went() is to be told, not NULL. */
    void *(*came)(void *user, const char *path, int file);
    /* It does not any more. Of one look this comes first, so that a plugin that has taken another
     * name is not two at any time. */
    void (*went)(void *user, void *socket);
    /* Whether nobody serves what came() has told. NULL: it is never so. */
    bool (*dead)(void *user, const void *socket);
};

/* `place` is copied. Looks for the first time from the loop. `ops` and `user` are borrowed until
 * the end. */
struct sockets *sockets_start(uv_loop_t *loop, const struct sockets_place *place,
                              const struct sockets_ops *ops, void *user);

/* Looks soon, from the loop: nothing tells of a directory that was mounted over this one, or made
 * where a link of its path leads. It is watched from then on. */
void sockets_look(struct sockets *sockets);

/* Why the directory cannot be looked at, and since when (boot_now_ms()); NULL: it can. */
const char *sockets_trouble(const struct sockets *sockets, uint64_t *since_ms);

/* went() comes for each that is there, before return. Then runs `done` from the loop. */
void sockets_stop(struct sockets *sockets, void (*done)(void *user), void *user);

#endif
