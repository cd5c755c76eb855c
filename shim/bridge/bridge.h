/*
 * The bridge: what the feed says is shown to the kubelet, what the kubelet has taken is reported
 * back. Without rules: all it decides by itself is when the mask has run out.
 */
#ifndef SHIM_BRIDGE_BRIDGE_H
#define SHIM_BRIDGE_BRIDGE_H

#include <uv.h>

#include "config/config.h"
#include "shim/fd_store.h"

struct bridge;

/* Shows what was shown before a restart, and goes on from there. `config` and `store` are borrowed
 * until the end. */
struct bridge *bridge_start(uv_loop_t *loop, const struct config_bridge *config,
                            struct fd_store *store);

/* Ends all streams at once, removes the sockets; the loop closes what is open. */
void bridge_stop(struct bridge *bridge);

#endif
