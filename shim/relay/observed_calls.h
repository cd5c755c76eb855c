/*
 * What observed calls mean to the device manager: sandboxes that run, stop and go, containers that
 * are removed. A request is kept until its answer; one that cannot be read means nothing.
 */
#ifndef SHIM_RELAY_OBSERVED_CALLS_H
#define SHIM_RELAY_OBSERVED_CALLS_H

#include "shim/core/host.h"
#include "shim/relay/session.h"

/* As in session_owner_ops, of any method that is observed. */
void observed_calls_request(struct host *host, struct session_call *call);
void observed_calls_answered(struct host *host, struct session_call *call, int status,
                             const uint8_t *message, size_t message_bytes);
/* Of a RunPodSandbox that was kept (call->user); borrowed until its end. */
const char *observed_calls_pod_uid(const struct session_call *call);
void observed_calls_ended(struct host *host, struct session_call *call);

#endif
