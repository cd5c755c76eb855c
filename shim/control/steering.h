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
/* Answers what is set. */
void steering_orders(const struct steering *steering, struct rpc_incoming *call,
                     const Control__V1__OrdersRequest *request);
/* How many of each kind, into `counts`, and the newest of each (both of STEERING_KINDS); how many kinds
 * there are. The texts are the core's, and count until its next event. */
#define STEERING_KINDS 3
size_t steering_count(const struct devicemgr *core, Control__V1__OrderCount *counts,
                      Control__V1__Order *newest);
/* How long ago that was, of what the core keeps as the time of an order. */
uint64_t steering_ago_ms(uint64_t at_s);
/* The calls are over. */
void steering_free(struct steering *steering);

#endif
