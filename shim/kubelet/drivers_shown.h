/*
 * The DRA drivers that the bridge is told of (WatchDrivers): all there are, then again at each change.
 */
#ifndef SHIM_KUBELET_DRIVERS_SHOWN_H
#define SHIM_KUBELET_DRIVERS_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/core/host.h"
#include "shim/kubelet/open_streams.h"
#include "shim/rpc/rpc.h"

/* A stream with more than this on the way gets no further message. */
#define DRIVERS_SHOWN_QUEUED_BYTES_MAX (64u * 1024)

/* Embedded in its owner; private. */
struct drivers_shown {
    struct host *host;
    bool away_too; /* drivers that are away are shown, too */
    struct open_streams streams;
};

/* `host` is borrowed until drivers_shown_fini(). */
void drivers_shown_init(struct drivers_shown *shown, struct host *host);
/* A call of BRIDGE_WATCH_DRIVERS. False: it is refused. */
bool drivers_shown_add(struct drivers_shown *shown, struct rpc_incoming *call);
/* Somebody wipes the slices of drivers that are away, so that the kubelet need not see that they are; or
 * not any more. */
void drivers_shown_set_away_too(struct drivers_shown *shown, bool away_too);
/* Whether this one is to be the kubelet's, and some stream says so. */
bool drivers_shown_has(const struct drivers_shown *shown, const char *driver);
/* Whether some stream has not got what is so now. */
bool drivers_shown_is_due(const struct drivers_shown *shown);
/* Sends each what it has not got; host_ready() must be so. False: one does not take it now; to be tried
 * again. */
bool drivers_shown_update(struct drivers_shown *shown);
/* The server must be closed: the calls are gone. */
void drivers_shown_fini(struct drivers_shown *shown);

#endif
