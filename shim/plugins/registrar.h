/*
 * The Registration service towards device plugins: Register on <plugin_dir>/kubelet.sock, where a
 * plugin looks for the kubelet.
 *
 * It judges nothing: calls go to its owner, who answers. The socket is root's alone (mode 0600).
 */
#ifndef SHIM_PLUGINS_REGISTRAR_H
#define SHIM_PLUGINS_REGISTRAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "shim/fd_store.h"

/* The name under which plugins look for the kubelet. */
#define REGISTRAR_SOCKET_NAME "kubelet.sock"
/* Register calls that wait for their answer; one more is answered RESOURCE_EXHAUSTED. A node has a
 * handful of plugins, and an answer takes at most PLUGIN_DIAL_MS_MAX and PLUGIN_OPTIONS_MS_MAX. */
#define REGISTRAR_PENDING_MAX 256

struct registrar;

struct registrar_ops {
    /* A plugin of the user `uid` called Register; the strings are borrowed until return. Ends in
     * registrar_answer() or in cancelled(). */
    void (*registered)(void *user, uint64_t registration, const char *version,
                       const char *socket_name, uid_t uid, const char *resource);
    /* The caller is gone; the registration must not be answered any more. */
    void (*cancelled)(void *user, uint64_t registration);
};

/* Makes `plugin_dir` (0755) and listens in it, as long as it takes and as often as directory or
 * socket are removed (rpc/keeper.h); what listens is kept in `store` (NULL: there is none).
 * `store`, `ops` and `user` are borrowed until registrar_stop(). */
struct registrar *registrar_start(uv_loop_t *loop, const char *plugin_dir, struct fd_store *store,
                                  const struct registrar_ops *ops, void *user);

/* Before registrar_start(): which plugins had registered, or where they serve, is not known for
 * sure any more. So the socket is to be a new one, at which they register again, as they do when
 * the kubelet starts; one that was kept tells them nothing. */
void registrar_begin_anew(struct fd_store *store);

/* Before registrar_start(), where plugins that serve may have been forgotten: removes what sockets
 * there are in `plugin_dir` itself but for kubelet.sock, as a kubelet that starts does, and but for
 * those that are known. Many plugins look at their own socket only, and register again when it has
 * gone. What cannot be removed is told. */
void registrar_remove_sockets(const char *plugin_dir, bool (*known)(void *user, const char *name),
                              void *user);

/* Answers a call: gRPC code 0, or another with its message (copied). A registration that is no
 * longer pending is ignored. */
void registrar_answer(struct registrar *registrar, uint64_t registration, int code,
                      const char *message);

/* Whether a call that names this socket is pending. */
bool registrar_waits(const struct registrar *registrar, const char *socket_name);

/* keeper_trouble() of its socket. */
const char *registrar_trouble(const struct registrar *registrar, uint64_t *since_ms);

/* Ends all calls, removes the socket, frees. Accepts NULL. */
void registrar_stop(struct registrar *registrar);

#endif
