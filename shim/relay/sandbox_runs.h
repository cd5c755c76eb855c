/*
 * RunPodSandboxes of pods that are ended from here, which are refused: the kubelet makes a new
 * sandbox for a pod that has lost its own, and may be ended meanwhile (devicemgr/rules/ended.h).
 *
 * As long as there is no such pod the calls pass, and are observed only; while there is one, those
 * that begin then wait for their whole message, and are decided at once.
 */
#ifndef SHIM_RELAY_SANDBOX_RUNS_H
#define SHIM_RELAY_SANDBOX_RUNS_H

#include <stdbool.h>

#include "shim/core/host.h"
#include "shim/relay/session.h"

struct sandbox_runs;

struct sandbox_runs *sandbox_runs_new(void); /* NULL: out of memory */
/* Every session must be gone. Accepts NULL. */
void sandbox_runs_free(struct sandbox_runs *runs);
/* Before the first call; borrowed until sandbox_runs_free(). */
void sandbox_runs_bind(struct sandbox_runs *runs, struct host *host);

/* As relists_session_begun() and relists_session_gone(). */
void sandbox_runs_session_begun(struct sandbox_runs *runs, struct session *session);
void sandbox_runs_session_gone(struct sandbox_runs *runs, struct session *session);
/* The core may end other pods than before. */
void sandbox_runs_look(struct sandbox_runs *runs);

/* A call of CRI_RUN_POD_SANDBOX, as in session_owner_ops: observed_calls.h's, and decided if it
 * waits. */
void sandbox_runs_request(struct sandbox_runs *runs, struct session *session,
                          struct session_call *call);

#endif
