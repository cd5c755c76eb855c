/*
 * What the calls that pass mean to the device manager: pods come and go, containers ask for
 * devices.
 *
 * The relay tells of each looked-at call; this feeds the core and turns its verdicts into a forward
 * or a refusal.
 */
#ifndef SHIM_RELAY_CALLS_H
#define SHIM_RELAY_CALLS_H

#include "devicemgr/devicemgr.h"
#include "shim/plugins/manager.h"
#include "shim/relay/session.h"

struct calls;

/* The manager's `verdict` must lead to calls_verdict() with this object. NULL: out of memory. */
struct calls *calls_new(void);

/* Binds the manager; before the first call. Borrowed until calls_free(). */
void calls_bind(struct calls *calls, struct manager *manager);

/* After the relay has stopped. Accepts NULL. */
void calls_free(struct calls *calls);

/* The relay's three events (connection.h). */
void calls_request(struct calls *calls, struct session *session, struct session_call *call);
void calls_answered(struct calls *calls, struct session_call *call, int status,
                    const uint8_t *message, size_t message_bytes);
void calls_ended(struct calls *calls, struct session_call *call);

/* The runtime could be reached again after it was away. */
void calls_runtime_back(struct calls *calls);

/* The manager's decision on a pending create (ports.h). */
void calls_verdict(struct calls *calls, uint64_t create, const struct devicemgr_verdict *verdict);

#endif
