/*
 * One client of a server: its connection, and its calls (incoming.h).
 */
#ifndef SHIM_RPC_CALLER_H
#define SHIM_RPC_CALLER_H

#include <stddef.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "shim/rpc/link.h"
#include "shim/rpc/rpc.h"

/* What a server does for all its clients. */
struct rpc_service {
    const struct rpc_method *methods;
    size_t methods_len;
    void *user;        /* the handlers' */
    const char *name;  /* of the socket, for the log */
    uint64_t pings_ms; /* rpc_server_set_pings() */
    struct rpc_limits limits;
    size_t *queued_max; /* the most that a client's `queued` was */
    /* A client is gone, out of its list and about to be freed; `gone_user` as given. */
    void (*gone)(void *user);
    void *gone_user;
};

LIST_HEAD(callers, caller);

struct caller {
    struct link link;
    const struct rpc_service *service;
    LIST_ENTRY(caller) entry;
    LIST_HEAD(, rpc_incoming) calls;
    /* Since when it has had no call, or no handler one of its own: the loop's time. */
    uint64_t idle_since_ms;
    size_t queued; /* bytes of answers, all calls together */
    struct ucred peer;
    bool denied; /* it may not call */
};

/* One without a connection, in `callers`; caller_accept() follows. `service` is
 * borrowed until gone(). 0 or a negative uv error. */
int caller_new(uv_loop_t *loop, const struct rpc_service *service, struct callers *callers,
               struct caller **out) __attribute__((warn_unused_result));

/* Takes the connected socket `fd`; a connection that fails is closed. */
void caller_accept(struct caller *caller, int fd);

/* Ends its calls without a word, and then the connection. */
void caller_close(struct caller *caller);

#endif
