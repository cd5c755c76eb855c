/*
 * Who reads events, and follows them. Each has a place in the order of events, and is sent what
 * comes behind it as fast as it reads; nothing is kept for it. One that lags behind what is kept is
 * told how much it has missed.
 */
#ifndef SHIM_CONTROL_FOLLOW_H
#define SHIM_CONTROL_FOLLOW_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/events/events.h"
#include "shim/rpc/rpc.h"

struct followers;

/* `events` is borrowed until followers_free(). */
struct followers *followers_new(uv_loop_t *loop, struct events *events);
/* Answers `call`, whose request this is, now or as time goes by. */
void followers_add(struct followers *followers, struct rpc_incoming *call,
                   const Control__V1__EventsRequest *request);
/* Their calls are over already (rpc_server_close()). */
void followers_free(struct followers *followers);

/* An event as a message, which borrows its texts. */
void follow_event(Control__V1__Event *message, const struct event *event,
                  const struct event_moment *now);

#endif
