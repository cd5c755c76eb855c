/*
 * The way to the kubelet's Registration service: connects to its socket as soon as somebody
 * listens, and keeps the connection, whose end says that the kubelet is gone.
 *
 *              socket appears            connected
 *     ABSENT ────────────────▶ CONNECTING ─────────▶ CONNECTED
 *        ▲                      ▲   │                  │   │
 *        │                      └───┼──── lost ────────┘   │
 *        └────── it is gone ────────┘                      │
 *                               ▲                          │
 *                               └──── another one ─────────┘
 *
 * ABSENT waits for the owner, who watches the directory; CONNECTING for a timer, after which it
 * tries again; CONNECTED for calls and the end. A socket file that goes while connected, and that
 * comes back, changes nothing: the kubelet still lives.
 */
#ifndef SHIM_BRIDGE_REGISTRATION_H
#define SHIM_BRIDGE_REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "shim/bridge/kubelet_dir.h"
#include "shim/file_identity.h"
#include "shim/rpc/rpc.h"

struct registration;

struct registration_ops {
    /* A connect comes next, or has just been made: what the owner knows of the socket file must be
     * what is there, or the connection would be taken for one to the file before. If it is another
     * one, or none, he calls registration_socket() from inside; nothing else. */
    void (*look)(void *user);
    /* Now resources can be registered. */
    void (*connected)(void *user);
    /* Not any more; calls of registration_call() have been ended before. */
    void (*lost)(void *user);
};

/* `ops` and `user` are borrowed until the end, `path` (of kubelet.sock) is copied. */
struct registration *registration_new(uv_loop_t *loop, const char *path,
                                      const struct registration_ops *ops, void *user);

/* Ends everything; no callback runs, also none of calls under way. Accepts NULL. */
void registration_free(struct registration *registration);

/* What has become of the socket file. With another one a connection that stands is ended as by
 * registration_free(): the owner has let go of its calls before, and connected() follows when
 * somebody listens there. With the one before a connection that stands goes on, and else
 * connected() follows. */
void registration_socket(struct registration *registration, enum kubelet_socket now);

bool registration_connected(const struct registration *registration);
/* Who listens (0 while not connected), and how many socket files there have been. */
pid_t registration_pid(const struct registration *registration);
unsigned registration_epoch(const struct registration *registration);
/* Which file the last one was, for another process. */
struct file_identity registration_file(const struct registration *registration);

/* Calls Register; see rpc_channel_call(). Only while connected. */
struct rpc_call *registration_call(struct registration *registration, const char *resource,
                                   const char *endpoint, const struct rpc_call_ops *ops,
                                   void *user);

#endif
