/*
 * The client's end of a feed of ours: one server stream that is called for ever, of a server that
 * may come, go, hang and be another version at any time; and other calls beside it.
 *
 *     DOWN ──dial──▶ CALLING ──first message──▶ ALIVE
 *       ▲               │                         │
 *       └── later ──────┴── the stream's end ─────┘
 *
 * DOWN waits for a timer, CALLING for the server's first message, ALIVE for more.
 */
#ifndef SHIM_RPC_FOLLOWER_H
#define SHIM_RPC_FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "shim/rpc/rpc.h"

struct follower;

/* What is called, and when again. */
struct follower_feed {
    const char *method;
    const ProtobufCMessage *request;
    const ProtobufCMessageDescriptor *response;
    /* rpc_channel_set_pings() */
    uint64_t pings_ms;
    /* It is called again at once after a stream that was alive, then doubling between these. */
    uint64_t again_ms_min, again_ms_max;
};

struct follower_ops {
    /* One message, borrowed until return; `first` of a new stream. False: it could not be taken,
     * and all is to be sent again: the stream is given up, lost() follows, and a new one in
     * `again_ms_max`. */
    bool (*message)(void *user, const ProtobufCMessage *message, bool first);
    /* A stream has ended, or could not be had. How long to wait at least; 0: as ever. */
    uint64_t (*ended)(void *user, const struct rpc_status *status, bool was_alive);
    /* No more until the next `first`. */
    void (*lost)(void *user);
};

/* Dials at once; callbacks run from the loop. `feed`, what it points to, `ops` and `user` are
 * borrowed until the end, `path` is copied. */
struct follower *follower_start(uv_loop_t *loop, const char *path, const struct follower_feed *feed,
                                const struct follower_ops *ops, void *user);

/* Frees it; no callback runs any more, also none of calls under way. Accepts NULL. */
void follower_stop(struct follower *follower);

bool follower_alive(const struct follower *follower);

/* Another call on its connection, see rpc_channel_call(). It waits for a server that is called, and
 * may be just starting. NULL while DOWN. */
struct rpc_call *follower_call(struct follower *follower, const char *path,
                               const ProtobufCMessage *request,
                               const ProtobufCMessageDescriptor *response, bool stream,
                               uint64_t timeout_ms, const struct rpc_call_ops *ops, void *user);

#endif
