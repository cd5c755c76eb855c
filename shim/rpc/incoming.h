/*
 * One call of a client's: what comes of it from the session, until rpc_incoming_finish().
 *
 *     HEADERS ──whole──▶ BODY ──end of the request──▶ HANDLED ──finish──▶ FINISHED
 *        └─────────────────┴── refused ──────────────────────────────────────┘
 *
 * HEADERS and BODY wait for the client, HANDLED for the handler, FINISHED for the client to take
 * the answer. The stream's end frees the call in any of them.
 */
#ifndef SHIM_RPC_INCOMING_H
#define SHIM_RPC_INCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/rpc/caller.h"

/* A request's headers begin. False: out of memory. */
bool incoming_begin(struct caller *caller, int32_t stream_id);

/* One field. False: they are too many. */
bool incoming_header(struct rpc_incoming *call, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t len);

/* A header block, or a piece of data, is whole; `end`: the client has said all. */
void incoming_frame(struct rpc_incoming *call, bool end);

/* A piece of data. */
void incoming_data(struct rpc_incoming *call, const uint8_t *data, size_t len);

/* The client has gone: the call goes, then its handler hears of it. */
void incoming_cancel(struct rpc_incoming *call);

/* Whether one of its calls waits for its handler, and not for the client. */
bool incoming_any_handled(const struct caller *caller);

/* Takes the call out of everything and frees it, without a word. */
void incoming_free(struct rpc_incoming *call);

#endif
