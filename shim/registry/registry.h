/*
 * The plugin watcher: what registers by a socket in a directory of its own, as it would with the
 * kubelet in its plugins_registry (pkg/kubelet/pluginmanager).
 *
 *   sockets.h       which sockets there are
 *   handshake.h     the talk with each
 *   info.h          what a plugin may say of itself
 *   kubelet_link.h  those that are none of ours
 *
 * Beside it elsewhere.h looks for drivers that register with the kubelet itself.
 *
 * DRA drivers ("DRAPlugin") and device plugins ("DevicePlugin") are its owner's. All others, such
 * as CSI's registrars, which use the same directory, are passed on to the kubelet, so that a pod
 * whose mount of it is redirected loses nothing. It judges nothing but what is malformed.
 */
#ifndef SHIM_REGISTRY_REGISTRY_H
#define SHIM_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

/* In every number of a registration, and in no number of the registrar's (plugins/registrar.h). */
#define REGISTRY_NUMBER_BIT (UINT64_C(1) << 63)

struct registry;

/* Strings are borrowed until return. Any function below may be called from inside. */
struct registry_ops {
    /* A driver wants to register: its name is a DNS subdomain, its endpoint an absolute path, both
     * in bounds; `services` are the gRPC services that it says it has, in its order. Ends in
     * registry_answer() or gone(). */
    void (*driver)(void *user, uint64_t registration, const char *name, const char *endpoint,
                   const char *const *services, size_t services_len);
    /* A device plugin, of the version and with the kind of name that the kubelet takes, whose
     * registration socket `uid` serves. Likewise. */
    void (*plugin)(void *user, uint64_t registration, const char *resource, const char *endpoint,
                   uid_t uid);
    /* Of either, answered or not: its socket has gone or was replaced, or it did not take the news
     * of its success. It is not registered any more. */
    void (*gone)(void *user, uint64_t registration);
};

/* Watches `directory`, which it makes. `kubelet_directory` is the kubelet's own; "": the others are
 * refused, as the kubelet does with what it does not know. Both, `ops` and `user` are borrowed
 * until the end. No callback comes before return. */
struct registry *registry_start(uv_loop_t *loop, const char *directory,
                                const char *kubelet_directory, const struct registry_ops *ops,
                                void *user);

/* NULL: it is registered, else why it is not (copied). One that is not pending is ignored. */
void registry_answer(struct registry *registry, uint64_t registration, const char *error);

/* It is not what it should be, which is told as the kubelet tells it where it validates a
 * plugin. */
void registry_refuse(struct registry *registry, uint64_t registration, const char *wrong);

/* Who serves the socket of a registration that is pending or was a success; false: it is over. */
bool registry_peer(const struct registry *registry, uint64_t registration, uid_t *uid)
    __attribute__((warn_unused_result));
/* Whether there is such a registration with this endpoint, and whether it is pending. */
bool registry_has_endpoint(const struct registry *registry, const char *endpoint);
bool registry_waits_at(const struct registry *registry, const char *endpoint);

/* Why nobody can register, and since when (boot_now_ms()); NULL: they can. */
const char *registry_trouble(const struct registry *registry, uint64_t *since_ms);

/* No gone() comes any more, and the kubelet keeps what was passed on to it. Frees it, then runs
 * `done` from the loop. */
void registry_stop(struct registry *registry, void (*done)(void *user), void *user);

#endif
