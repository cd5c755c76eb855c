/*
 * ResourceSlices of drivers that do not serve, which are to go, so that nothing is scheduled by
 * them: what the kubelet does when a driver's connection is over
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go), which does not notice while the bridge stands
 * in the driver's place.
 *
 * A driver that has been away for `dra.wipe_after` is wiped once, and then left alone until it has
 * been there again. One that has moved to the kubelet (devicemgr/dra.h) is not, since it must not
 * lose what it publishes there. That is tried for ever, unless the driver comes back before, or so
 * many others come that it is not known any more.
 *
 * A daemon that is killed after that is done and before its checkpoint says so does it once more,
 * `dra.wipe_after` later: of a driver that is away nothing is left then.
 */
#ifndef SHIM_CLUSTER_WIPES_H
#define SHIM_CLUSTER_WIPES_H

#include <uv.h>

#include "config/config.h"
#include "shim/cluster/standing.h"
#include "shim/core/host.h"

/* Embedded in its owner; private. */
struct wipes {
    struct host *host;
    const struct config *config;
    struct standing ordered;
    void *cluster;
    uint64_t version;  /* devicemgr_drivers_version() when it was looked last, */
    uint64_t after_ms; /* and the setting */
    uv_timer_t timer;
};

/* `cancel` takes an order back. All is borrowed until the end. Wipes the whole node if the settings
 * say so, as the kubelet does at its start. */
void wipes_init(struct wipes *wipes, uv_loop_t *loop, const struct config *config,
                struct host *host, struct cluster_orders *orders,
                void (*cancel)(void *cluster, uint64_t order), void *cluster);
/* Before its orders; `closed` runs from the loop. */
void wipes_fini(struct wipes *wipes, uv_close_cb closed);

/* Something of the core's may have changed: it is looked at in the loop's next turn. */
void wipes_look(struct wipes *wipes);

#endif
