/*
 * The kubelet's plugin directory, watched: what is there is what counts, an event only says when to
 * look. It may not exist yet, be removed and made anew, be mounted or unmounted; the kubelet's to
 * make, never ours.
 */
#ifndef SHIM_BRIDGE_KUBELET_DIR_H
#define SHIM_BRIDGE_KUBELET_DIR_H

#include <stddef.h>

#include <uv.h>

#define KUBELET_SOCKET_NAME "kubelet.sock"
#define KUBELET_CHECKPOINT_NAME "kubelet_internal_checkpoint"

enum kubelet_socket {
    KUBELET_SOCKET_GONE,
    KUBELET_SOCKET_NEW,  /* another one than before, or the first */
    KUBELET_SOCKET_BACK, /* the one before, which was gone: its directory was hidden by a mount, or
                          * had another name for a while */
};

/* From the loop or kubelet_dir_look(), in this order where several are due at once. None may stop
 * it. */
struct kubelet_dir_ops {
    /* Time to see whether our sockets are still there: every LOOK_MS (without inotify
     * LOOK_BLIND_MS), and before a kubelet needs them. Not at once when one goes: who removes a
     * tree should get to its end. */
    void (*endpoints)(void *user);
    /* What has become of kubelet.sock. */
    void (*socket)(void *user, enum kubelet_socket now);
    /* The kubelet has written its checkpoint so often; SIZE_MAX: nobody knows how often. */
    void (*stored)(void *user, size_t times);
};

struct kubelet_dir;

/* The first look is from the loop. `ops` and `user` are borrowed until the end, `path` is
 * copied. */
struct kubelet_dir *kubelet_dir_start(uv_loop_t *loop, const char *path,
                                      const struct kubelet_dir_ops *ops, void *user);

/* Looks for kubelet.sock now, for an owner who must not wait for the event that tells of it:
 * endpoints() and socket() run inside. */
void kubelet_dir_look(struct kubelet_dir *dir);

/* Frees it; no callback runs any more. Accepts NULL. */
void kubelet_dir_stop(struct kubelet_dir *dir);

#endif
