/*
 * What an operator sets through the control socket: asked of the core, answered when that is done.
 */
#ifndef SHIM_CONTROL_STEERING_H
#define SHIM_CONTROL_STEERING_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/control/asked.h"
#include "shim/control/told_id.h"
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
/* How many of each kind. The texts are the core's, and count until its next event. */
#define STEERING_KINDS 3
struct steering_counts {
    Control__V1__OrderCount of[STEERING_KINDS];
    size_t len; /* kinds of which there are some */

    /* private */
    Control__V1__Order newest[STEERING_KINDS]; /* of each */
    char ids[STEERING_KINDS][TOLD_ID_BYTES_MAX];
};
void steering_count(const struct devicemgr *core, struct steering_counts *counts);
/* How long ago that was, of what the core keeps as the time of an order. */
uint64_t steering_ago_ms(uint64_t at_s);
/* The calls are over. */
void steering_free(struct steering *steering);

#endif
