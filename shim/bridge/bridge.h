/*
 * The bridge: what the feed says is shown to the kubelet, what the kubelet has taken is reported
 * back. Without rules: all it decides by itself is when the mask has run out.
 */
#ifndef SHIM_BRIDGE_BRIDGE_H
#define SHIM_BRIDGE_BRIDGE_H

#include <uv.h>

#include "shim/fd_store.h"
#include "shim/settings.h"

struct bridge;

/* Shows what was shown before a restart, and goes on from there. `settings`, of which it takes over
 * what the daemon has read later, and `store` are borrowed until the end. */
struct bridge *bridge_start(uv_loop_t *loop, struct settings *settings, struct fd_store *store);

/* They have been read again: the daemon is told how they are. */
void bridge_settings_read(struct bridge *bridge);

/* Ends all streams at once, removes the sockets; the loop closes what is open. */
void bridge_stop(struct bridge *bridge);

#endif
