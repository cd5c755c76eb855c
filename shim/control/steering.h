/*
 * What an operator sets through the control socket: asked of the core, answered when that is done.
 */
#ifndef SHIM_CONTROL_STEERING_H
#define SHIM_CONTROL_STEERING_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/asked.h"
#include "shim/core/host.h"
#include "shim/events/events.h"
#include "shim/rpc/rpc.h"

struct steering;

/* All are borrowed until steering_free(). */
struct steering *steering_new(struct host *host, struct events *events, struct asked_book *asked);
/* Ends the call when what it asks for is durable, or refused. Its client may go: it is done all the
 * same, and what has changed is an event. */
void steering_call(struct steering *steering, struct rpc_incoming *call,
                   const Control__V1__SteerRequest *request);
/* The calls are over. */
void steering_free(struct steering *steering);

#endif
