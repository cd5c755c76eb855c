/*
 * What the daemon wants done at the API server: each order is one attempt, answered once.
 *
 * An order that was done is remembered, so that its answer, which may be lost, is given again; one
 * that comes a second time while it is under way is not begun twice.
 */
#ifndef SHIM_AGENT_ORDERS_H
#define SHIM_AGENT_ORDERS_H

#include <uv.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/agent/api_client.h"
#include "shim/agent/served.h"

struct orders;

/* All is borrowed until the end; `node` is its name; answer() is called from the loop, never from
 * inside orders_take(), and what it is given is borrowed until it returns. */
struct orders *orders_new(uv_loop_t *loop, struct api_client *client, struct served *served,
                          const char *node,
                          void (*answer)(void *user, const Agent__V1__AnswerRequest *answer),
                          void *user);
/* Those under way are cut, without an answer. Accepts NULL. */
void orders_free(struct orders *orders);

/* `order` is copied. */
void orders_take(struct orders *orders, const Agent__V1__Order *order);
/* Nobody waits for it: it is cut, without an answer. */
void orders_cancel(struct orders *orders, uint64_t id);
/* The daemon is lost: likewise all of them, but Events that are being told, which end as they do.
 * What it, or the next, still wants is ordered again; what it does not want by then, or wants
 * otherwise, is not to come in between. */
void orders_daemon_lost(struct orders *orders);

#endif
