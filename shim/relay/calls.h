/*
 * What the calls that pass mean to the device manager: pods come and go, containers ask for
 * devices.
 *
 * The relay tells of each looked-at call; this feeds the core and turns its verdicts into a forward
 * or a refusal.
 */
#ifndef SHIM_RELAY_CALLS_H
#define SHIM_RELAY_CALLS_H

#include <sys/types.h>

#include "devicemgr/devicemgr.h"
#include "shim/kubelet/gate.h"
#include "shim/plugins/manager.h"
#include "shim/relay/session.h"

struct calls;

/* The manager's `verdict` must lead to calls_verdict() with this object. NULL: out of memory. */
struct calls *calls_new(void);

/* Binds the manager; before the first call. Borrowed until calls_free(). */
void calls_bind(struct calls *calls, struct manager *manager);

/* Binds the gate, which also says who is a kubelet; before the first call. Borrowed until
 * calls_free(). Its `release` must lead to calls_gate_released(). NULL, as at first: none. */
void calls_bind_gate(struct calls *calls, struct gate *gate);

/*
 * In a container that is created, a mount of the host's directory `from` becomes one of `to`;
 * before the first call. Both are absolute paths, borrowed until calls_free(). NULL, as at first:
 * mounts stay as they are.
 */
void calls_set_redirect(struct calls *calls, const char *from, const char *to);

/* After the relay has stopped. Accepts NULL. */
void calls_free(struct calls *calls);

/* The relay's events (connection.h). */
void calls_begun(struct calls *calls, struct session *session, pid_t pid);
void calls_gone(struct calls *calls, struct session *session);
void calls_request(struct calls *calls, struct session *session, struct session_call *call);
void calls_answered(struct calls *calls, struct session_call *call, int status,
                    const uint8_t *message, size_t message_bytes);
void calls_ended(struct calls *calls, struct session_call *call);

/* The daemon stops: no call waits for the gate, a plugin or a device any more. */
void calls_drain(struct calls *calls);

/* The runtime could be reached again after it was away. */
void calls_runtime_back(struct calls *calls);

/* gate_ops.release; does nothing for a hold that is over. */
void calls_gate_released(struct calls *calls, uint64_t hold);

/* The manager's decision on a pending create (ports.h). */
void calls_verdict(struct calls *calls, uint64_t create, const struct devicemgr_verdict *verdict);

#endif
