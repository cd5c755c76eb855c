/*
 * Unary calls by their caller's numbers.
 *
 * Each ends exactly once, from the loop, unless it is taken back; also one that could not even be
 * made.
 */
#ifndef SHIM_RPC_NUMBERED_H
#define SHIM_RPC_NUMBERED_H

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "shim/rpc/rpc.h"

/* What answers may take on the wire whose calls are not over: four of the largest. A call whose
 * answer is beyond that ends RESOURCE_EXHAUSTED. */
#define NUMBERED_BYTES_MAX (4 * (size_t)RPC_MESSAGE_BYTES_MAX)

struct numbered_method {
    const char *path;
    const ProtobufCMessageDescriptor *response;
};

struct numbered_end {
    const struct numbered_method *method;
    uint64_t number;
    const char *note;                 /* the caller's; NULL: none */
    int code;                         /* RPC_OK, or a gRPC code, */
    const char *message;              /* with the server's words */
    const ProtobufCMessage *response; /* NULL unless RPC_OK */
};

/* Embedded in its owner; private. */
struct numbered_calls {
    void (*ended)(void *user, const struct numbered_end *end);
    void *user;
    const char *gone;
    struct numbered_call *open; /* a table by number */
    size_t kept_bytes;          /* of answers */
    uv_timer_t unmade;          /* tells the ends of calls that could not be made */
    void (*done)(void *user);
    void *done_user;
};

/* `ended`: all of `end` is borrowed until return; any function below may be called from inside.
 * `gone`: the words of one that could not be made; borrowed until it is stopped. */
void numbered_calls_init(struct numbered_calls *calls, uv_loop_t *loop,
                         void (*ended)(void *user, const struct numbered_end *end), void *user,
                         const char *gone);

/* How many are open. */
size_t numbered_calls_len(const struct numbered_calls *calls);

/*
 * Calls `method` (borrowed until the end) on `channel`; NULL, or one that is lost: it ends
 * UNAVAILABLE. `number` is the caller's, not in use; `note` is copied, may be NULL. A timeout of 0
 * counts as 1 ms.
 */
void numbered_calls_start(struct numbered_calls *calls, struct rpc_channel *channel,
                          const struct numbered_method *method, uint64_t number, const char *note,
                          const ProtobufCMessage *request, uint64_t timeout_ms);

/* One that is over is ignored. */
void numbered_calls_cancel(struct numbered_calls *calls, uint64_t number);

/* Those that began on the channel, which may be closed then, or go on. */
void numbered_calls_cancel_all(struct numbered_calls *calls, const struct rpc_channel *channel);

/* The channel is lost, and what began there and goes on elsewhere counts to `to` from now on. */
void numbered_calls_move(struct numbered_calls *calls, const struct rpc_channel *channel,
                         const struct rpc_channel *to);

/* No channel must be left, or each be closed by now. No end is told any more; runs `done` from the
 * loop. */
void numbered_calls_stop(struct numbered_calls *calls, void (*done)(void *user), void *user);

#endif
