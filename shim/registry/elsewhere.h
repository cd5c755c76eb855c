/*
 * DRA drivers that register with the kubelet itself: whose sockets stand in its plugins_registry
 * beside ours, and who they say that they are.
 *
 * They are asked only while that is to be known (elsewhere_ask()), each once, unless somebody wants
 * to know later (elsewhere_known()), with GetInfo and nothing else: a registrar may take that for
 * the kubelet's look at it. What does not answer is asked again, as what registers here is
 * (handshake.h).
 */
#ifndef SHIM_REGISTRY_ELSEWHERE_H
#define SHIM_REGISTRY_ELSEWHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

/* In every number of a driver here, with REGISTRY_NUMBER_BIT (registry.h), and in no number
 * there. */
#define ELSEWHERE_NUMBER_BIT (UINT64_C(1) << 62)

struct elsewhere;

/* From the loop; strings are borrowed until return. */
struct elsewhere_ops {
    /* This driver is there, as info.h has it; `uid` serves its registration's socket. False: nobody
     * wants to know; it is over, and `gone` is not called. */
    bool (*driver)(void *user, uint64_t number, const char *name, const char *endpoint,
                   const char *const *services, size_t services_len, uid_t uid);
    /* Its socket has gone or was replaced; or nobody asks any more. */
    void (*gone)(void *user, uint64_t number);
};

/* `directory` is the kubelet's, which makes it; "": none is. It, `ops` and `user` are borrowed
 * until the end. Nobody is asked yet, nor before `from_ms`, the loop's time. */
struct elsewhere *elsewhere_start(uv_loop_t *loop, const char *directory, uint64_t from_ms,
                                  const struct elsewhere_ops *ops, void *user);

/* Whether they are to be asked, from the loop's next turn on, but not before `from_ms`. Each time
 * that it is so anew, all are; as long as it is so, the directory is looked at each second. */
void elsewhere_ask(struct elsewhere *elsewhere, bool ask);

/* A driver of this name is known from now on: who was there by that name, and nobody wanted to
 * know of it, is asked again. */
void elsewhere_known(struct elsewhere *elsewhere, const char *name);

/* No callback comes any more. Frees it, then runs `done` from the loop. */
void elsewhere_stop(struct elsewhere *elsewhere, void (*done)(void *user), void *user);

#endif
