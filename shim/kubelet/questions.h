/*
 * The kubelet's questions which devices are preferred (Prefer), as the bridge passes them on.
 *
 * Each is one to the core, and is open until that answers or whoever asked has gone.
 */
#ifndef SHIM_KUBELET_QUESTIONS_H
#define SHIM_KUBELET_QUESTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

/* The kubelet admits one pod at a time; those given up are over at once. */
#define QUESTIONS_MAX 64

/* Embedded in its owner; private. */
struct questions {
    struct host *host;
    uint64_t timeout_ms;
    LIST_HEAD(, question) open;
    unsigned len;
    uint64_t last_number;
};

/* `host` is borrowed until questions_fini(); `timeout_ms`: what the plugin has. */
void questions_init(struct questions *questions, struct host *host, uint64_t timeout_ms);
/* A call of BRIDGE_PREFER; it is answered now, or by questions_answer(). */
void questions_ask(struct questions *questions, struct rpc_incoming *call,
                   const Bridge__V1__PreferRequest *request);
/* The core's answer (host_ops.preferred); does nothing for a question that is over. */
void questions_answer(struct questions *questions, uint64_t number, const char *const *ids,
                      size_t ids_len);
/* The server must be closed: the calls are gone. */
void questions_fini(struct questions *questions);

#endif
