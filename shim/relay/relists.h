/*
 * A new kubelet's relists and the gate (design §6, kubelet-facts §9): which connections of which
 * process show them, and what is held.
 *
 * On a connection of a process that the gate watches, Version is observed; while that process is
 * armed, ListContainers is intercepted, on all its connections. One with a present, empty filter is
 * given to the gate, which holds it or not; all else goes on at once. Connections of other
 * processes are not touched.
 */
#ifndef SHIM_RELAY_RELISTS_H
#define SHIM_RELAY_RELISTS_H

#include <stdint.h>
#include <sys/types.h>

#include "shim/kubelet/gate.h"
#include "shim/relay/session.h"

struct relists;

struct relists *relists_new(void); /* NULL: out of memory */
/* Every session must be gone. Accepts NULL. */
void relists_free(struct relists *r);

/* Before the first session; borrowed until relists_free(). NULL, as at first: no gate. */
void relists_bind(struct relists *r, struct gate *gate);

/* A connection of process `pid` begins; 0: not known. `session` is borrowed until
 * relists_session_gone(), which may come for any session, and after which only relists_ended()
 * follows for its calls. */
void relists_session_begun(struct relists *r, struct session *session, pid_t pid);
void relists_session_gone(struct relists *r, struct session *session);

/* Calls of CRI_VERSION and CRI_LIST_CONTAINERS, as in session_ops. `deadline_ms`: when the client
 * will give it up, UINT64_MAX for never. */
void relists_request(struct relists *r, struct session *session, struct session_call *call,
                     uint64_t deadline_ms);
void relists_answered(struct relists *r, struct session_call *call, int status);
void relists_ended(struct relists *r, struct session_call *call);

/* gate_ops.release */
void relists_released(struct relists *r, uint64_t hold);

/*
 * The daemon stops. What is held, and what would be from now on, is refused UNAVAILABLE: the
 * kubelet relists again a second later, and asks the next daemon, which knows what is armed. Let
 * through, it would open the admission of pods.
 */
void relists_drain(struct relists *r);

#endif
