/*
 * Lists of plugins on streams that a process before this one had opened. Plugins in Go wait for
 * what changes at one channel, whoever has called ListAndWatch, and do not look whether their
 * caller is there: the stream of a process that died takes the next change, which would be lost
 * with it. So its connection is kept by the service manager (fd_store.h), over a kill -9 and a
 * restart, and the next process listens there, too, until the plugin ends it, has registered at
 * another socket, or does not answer any more: it may have a thread for each call, and few of them.
 * Two changes within the same moment, told on two streams, may come in another order, and the
 * former stand until the next one.
 */
#ifndef SHIM_PLUGINS_LEFT_STREAMS_H
#define SHIM_PLUGINS_LEFT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <uv.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/fd_store.h"
#include "shim/rpc/rpc.h"

/* In the program of a release that listens at what this one leaves (program.h). */
extern const char LEFT_STREAMS_READER[];

/* Of one plugin; more are ended. */
#define LEFT_STREAMS_MAX 4

struct left_streams;

struct left_streams_ops {
    /* The plugin at the socket `path` has sent a list; borrowed until return. `pid`: the process
     * that listened there (SO_PEERCRED), where another one may by now; 0: not known. */
    void (*list)(void *user, const char *path, pid_t pid,
                 const V1beta1__ListAndWatchResponse *list);
};

/* Listens at what was left here. `store` (NULL: none), `shared` (PLUGINS_SHARED_BYTES' rest), `ops`
 * and `user` are borrowed until the end. */
struct left_streams *left_streams_new(uv_loop_t *loop, struct fd_store *store, size_t *shared,
                                      const struct left_streams_ops *ops, void *user);

/* All is left to the next process, and no callback runs any more; the loop has to run once. */
void left_streams_free(struct left_streams *left);

/* Ends those of the plugin at the socket `path`, which does not answer, or is nobody's any more;
 * NULL: all. Whether there were any. Not from inside list(). */
bool left_streams_end(struct left_streams *left, const char *path);

/* The stream of a call, of which a list has come, is to be left to the next process. 0 and *name,
 * under which it is kept and which the caller frees; or a negative errno: it is not, such as where
 * its path does not fit a name. -EAGAIN: it may be, if it is tried again (fd_store.h). */
int left_streams_put(struct left_streams *left, const char *path, const struct rpc_call *call,
                     char **name) __attribute__((warn_unused_result));
/* It is not to be left any more. The connection is ended by shutdown(2) before. */
void left_streams_forget(struct left_streams *left, const char *name);

#endif
