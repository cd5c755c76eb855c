/*
 * The DRA drivers that the bridge is told of (WatchDrivers): all there are, then again at each
 * change.
 *
 * A driver that is away is the kubelet's as if it served, for `dra.mask`: one that is only
 * restarted is back by then, and what the kubelet asks meanwhile waits for it. A kubelet that sees
 * a driver go refuses its pods, and tries again after 60 to 90 s (pkg/kubelet/cm/dra/manager.go).
 * One that has moved to the kubelet (devicemgr/dra.h) is not: the kubelet would take us for another
 * instance of it.
 */
#ifndef SHIM_KUBELET_DRIVERS_SHOWN_H
#define SHIM_KUBELET_DRIVERS_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "shim/core/host.h"
#include "shim/kubelet/open_streams.h"
#include "shim/rpc/rpc.h"

/* A stream with more than this on the way gets no further message. */
#define DRIVERS_SHOWN_QUEUED_BYTES_MAX (64u * 1024)

/* Embedded in its owner; private. */
struct drivers_shown {
    const struct config *config;
    struct host *host;
    bool away_too;    /* drivers that are away are shown, too, for as long as they are */
    uint64_t mask_ms; /* `dra.mask` as it was when they were looked at last */
    uint64_t
        next_ms; /* the first of the masks ends then, by what was so then; UINT64_MAX: none does */
    uint64_t masks; /* how often one has ended, or changed */
    struct open_streams streams;
};

/* `config` and `host` are borrowed until drivers_shown_fini(). */
void drivers_shown_init(struct drivers_shown *shown, const struct config *config,
                        struct host *host);
/* A call of BRIDGE_WATCH_DRIVERS. False: it is refused. */
bool drivers_shown_add(struct drivers_shown *shown, struct rpc_incoming *call);
/* Somebody wipes the slices of drivers that are away, so that the kubelet need not see that they
 * are; or not any more. */
void drivers_shown_set_away_too(struct drivers_shown *shown, bool away_too);
/* Whether this one is to be the kubelet's, and some stream says so. */
bool drivers_shown_has(const struct drivers_shown *shown, const char *driver);
/* Whether some stream has not got what is so now. */
bool drivers_shown_is_due(const struct drivers_shown *shown);
/* Sends each what it has not got; host_ready() must be so. False: one does not take it now; to be
 * tried again. */
bool drivers_shown_update(struct drivers_shown *shown);
/* drivers_shown_update() is to be called then, on the clock of boot_now_ms(); UINT64_MAX: only when
 * drivers_shown_is_due() says so. */
uint64_t drivers_shown_next_ms(const struct drivers_shown *shown);
/* The server must be closed: the calls are gone. */
void drivers_shown_fini(struct drivers_shown *shown);

#endif
