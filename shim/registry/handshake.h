/*
 * The kubelet's talk with one registration socket
 * (pkg/kubelet/pluginmanager/operationexecutor/operation_generator.go):
 *
 *             connected             answered          told what became of it
 *     WAITING ────────▶ ASKING ──────────▶ ASKED ─────────▶ NOTIFYING ──────▶ DONE
 *        ▲                 │                                    │
 *        └─────────────────┴──── failed, or was refused ◀───────┘
 *
 * WAITING waits for its timer, ASKING for GetInfo, ASKED for the owner, NOTIFYING for the plugin to
 * take NotifyRegistrationStatus, DONE for nothing. handshake_leave() goes from ASKED to DONE at
 * once, handshake_anew() from DONE to WAITING. Each try has a connection of its own.
 *
 * A plugin that does not listen yet is dialled again after some ms; one that has said something
 * that does not do, or nothing in time, after half a second. Both pauses are doubled, up to half a
 * minute. They are the socket's: one that takes its place begins anew, which the kubelet's
 * back-off, by path and up to two minutes, does not.
 */
#ifndef SHIM_REGISTRY_HANDSHAKE_H
#define SHIM_REGISTRY_HANDSHAKE_H

#include <stdbool.h>
#include <sys/types.h>

#include <uv.h>

#include "cri-proto/pluginregistration_v1.pb-c.h"

/* The kubelet's deadlines. */
#define HANDSHAKE_INFO_MS 1000
#define HANDSHAKE_NOTIFY_MS 5000
/* Pauses before the next try: after a dial that failed, */
#define HANDSHAKE_DIAL_MS_MIN 10
/* after an answer that did not do, */
#define HANDSHAKE_AGAIN_MS_MIN 500
/* and the longest of both. */
#define HANDSHAKE_AGAIN_MS_MAX 30000

struct handshake;

struct handshake_ops {
    /* The plugin says who it is (borrowed until return), and `uid` is who serves the socket.
     * Ends in handshake_answer() or handshake_leave(), from inside or later. */
    void (*asked)(void *user, const Pluginregistration__PluginInfo *info, uid_t uid);
    /* The answer was that it is registered, and it did not take that: it is not any more. */
    void (*refused)(void *user);
    /* What goes wrong is for whoever it registers with to tell. */
    bool quiet;
};

/* `path` is for the log; it and `file` (O_PATH, of the socket), `ops` and `user` are borrowed until
 * handshake_stop(). The first dial is made from the loop. */
struct handshake *handshake_start(uv_loop_t *loop, const char *path, int file,
                                  const struct handshake_ops *ops, void *user);

/* Whether nobody listens on it: for half a second, or on one that is registered now. */
bool handshake_is_dead(const struct handshake *handshake);

/* One that is DONE is not registered any more: it is asked again, once somebody listens. */
void handshake_anew(struct handshake *handshake);

/* Of one that is ASKED. NULL: it is registered. Else why not (copied): the plugin is told, and
 * asked again later. */
void handshake_answer(struct handshake *handshake, const char *error);

/* The same; it is told nothing by us, and not asked again: the kubelet does that. */
void handshake_leave(struct handshake *handshake);

/* No callback follows. Frees it, in a later turn of the loop. Accepts NULL. */
void handshake_stop(struct handshake *handshake);

#endif
