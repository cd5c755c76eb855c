/*
 * What is asked of the checkpoint through the control socket.
 */
#ifndef SHIM_CONTROL_CHECKPOINTING_H
#define SHIM_CONTROL_CHECKPOINTING_H

#include <uv.h>

#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

struct checkpointing;

/* `host` is borrowed until checkpointing_free(), `state_dir` as well. */
struct checkpointing *checkpointing_new(uv_loop_t *loop, struct host *host, const char *state_dir);
/* Answers what is found in the file and its rows, once it has been looked at: who asks meanwhile
 * gets the same answer. */
void checkpointing_verify(struct checkpointing *checkpointing, struct rpc_incoming *call);
/* Answers with all rows, one client at a time, as fast as it reads. */
void checkpointing_export(struct checkpointing *checkpointing, struct rpc_incoming *call);
/* The calls are over. A look that is under way ends without an answer. */
void checkpointing_free(struct checkpointing *checkpointing);

#endif
