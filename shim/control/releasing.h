/*
 * Pods whose devices an operator takes from them, through the control socket.
 */
#ifndef SHIM_CONTROL_RELEASING_H
#define SHIM_CONTROL_RELEASING_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/asked.h"
#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

struct releasing;

/* Both are borrowed until releasing_free(). */
struct releasing *releasing_new(struct host *host, struct asked_book *asked);
/* Ends the call when that is durable, or refused; a dry run when that is known. Its client may go:
 * it is done all the same. What was taken is an event. */
void releasing_call(struct releasing *releasing, struct rpc_incoming *call,
                    const Control__V1__ReleaseRequest *request);
/* The calls are over. */
void releasing_free(struct releasing *releasing);

#endif
