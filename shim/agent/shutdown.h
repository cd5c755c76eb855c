/*
 * The machine's shutdown: told to the daemon as logind has it, and delayed by a lock for as long as
 * the daemon wants it to be (cri-proto/agent_v1.proto, ShutdownWish and Shutdown). Without rules:
 * what is done meanwhile is the daemon's.
 *
 * The lock is let go
 *   - when the daemon says that all is over;
 *   - SHUTDOWN_EARLY_MS before logind goes on without us, if there is no daemon to say so;
 *   - when the settings want none any more.
 * It is not when this process ends: the service manager keeps it for the next one. Once a shutdown
 * has begun logind gives none, so that what was let go comes back only after it was cancelled.
 */
#ifndef SHIM_AGENT_SHUTDOWN_H
#define SHIM_AGENT_SHUTDOWN_H

#include <stdbool.h>

#include <uv.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "shim/fd_store.h"

struct shutdown;

/* Until the daemon says what it wants, it wants what it wanted of the process whose lock was handed
 * over in `store`, which is borrowed until the end. `changed`, from the loop: what shutdown_tell()
 * tells is another. */
struct shutdown *shutdown_new(uv_loop_t *loop, struct fd_store *store, void (*changed)(void *user),
                              void *user);
/* No callback follows; the service manager keeps the lock. Not from a callback. Accepts NULL. */
void shutdown_free(struct shutdown *shutdown);

/* A feed's message; `wish` is NULL if it has none, which in the first one of a feed means that
 * nothing is wanted. */
void shutdown_wish(struct shutdown *shutdown, const Agent__V1__ShutdownWish *wish, bool first);
/* The feed is lost. What was wanted is. */
void shutdown_daemon_lost(struct shutdown *shutdown);

/* What is to be reported; borrows from `shutdown` until that changes. False: nothing is wanted. */
bool shutdown_tell(const struct shutdown *shutdown, Agent__V1__Shutdown *out);

#endif
