/*
 * What the calls that pass mean to the device manager: pods come and go, containers ask for
 * devices.
 *
 * The owner of the sessions' calls (session.h): each goes to who knows its kind, which are
 * pending_creates.h, relists.h, sandbox_runs.h and observed_calls.h.
 */
#ifndef SHIM_RELAY_CALLS_H
#define SHIM_RELAY_CALLS_H

#include <sys/types.h>

#include "devicemgr/devicemgr.h"
#include "shim/core/host.h"
#include "shim/relay/pending_creates.h"
#include "shim/relay/relists.h"
#include "shim/relay/session.h"

struct calls;

/* The host's `verdict` must lead to calls_verdict() with this object. NULL: out of memory. */
struct calls *calls_new(void);

/* Binds the core's host; before the first call. Borrowed until calls_free(). */
void calls_bind(struct calls *calls, struct host *host);

/* Binds the gate, which also says who is a kubelet; before the first call. Borrowed until
 * calls_free(). What it holds it lets go by calls_gate_released(). NULL, as at first: none. */
void calls_bind_gate(struct calls *calls, const struct relists_gate *gate, void *user);

/*
 * In a container that is created, a mount of the host's directory `from` becomes one of `to`;
 * before the first call. Both are absolute paths, borrowed until calls_free(). NULL, as at first:
 * mounts stay as they are.
 */
void calls_set_redirect(struct calls *calls, const char *from, const char *to);

/* The same for the directory in which DRA drivers register, and only of pods that are named: by one
 * of `pods` (plugin_mounts.h; borrowed likewise), or by their annotation. */
void calls_set_driver_redirect(struct calls *calls, const char *from, const char *to,
                               const char *const *pods, size_t pods_len);

/* Borrowed until calls_free(). */
const struct create_counts *calls_create_counts(const struct calls *calls);

/* After the relay has stopped. Accepts NULL. */
void calls_free(struct calls *calls);

/* The owner of every session, for connection_accept(). */
struct session_owner calls_owner(struct calls *calls);

/* The daemon stops: no call waits for the gate, a plugin or a device any more. */
void calls_drain(struct calls *calls);

/* The host's `kicked`. */
void calls_look(struct calls *calls);
/* And its `known`. */
void calls_known(struct calls *calls);

/* The runtime could be reached again after it was away. */
void calls_runtime_back(struct calls *calls);

/* A call that the gate held goes on; does nothing for a hold that is over. */
void calls_gate_released(struct calls *calls, uint64_t hold);

/* The host's decision on a pending create (ports.h). */
void calls_verdict(struct calls *calls, uint64_t create, const struct devicemgr_verdict *verdict);

#endif
