/*
 * Pods that an operator ends through the control socket, or has end no more: asked of the core,
 * answered when that is durable.
 */
#ifndef SHIM_CONTROL_ENDING_H
#define SHIM_CONTROL_ENDING_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/asked.h"
#include "shim/core/host.h"
#include "shim/rpc/rpc.h"

/* Its client may go: it is done all the same, and is an event. Both are borrowed until the call is
 * over. */
void ending_call(struct host *host, struct asked_book *asked, struct rpc_incoming *call,
                 const Control__V1__EndRequest *request);

#endif
