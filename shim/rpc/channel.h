/*
 * One connection to a server, and its calls (call.h): what the files of the client's role share.
 */
#ifndef SHIM_RPC_CHANNEL_H
#define SHIM_RPC_CHANNEL_H

#include <stddef.h>
#include <sys/queue.h>

#include "shim/rpc/link.h"
#include "shim/rpc/rpc.h"

struct rpc_channel {
    struct link link;
    const struct rpc_channel_ops *ops;
    void *user;
    LIST_HEAD(, rpc_call) calls;
    size_t calls_len;
};

#endif
