/*
 * What the kubelet's own checkpoint says its pods hold, for the core.
 */
#ifndef SHIM_KUBELET_HELD_H
#define SHIM_KUBELET_HELD_H

#include "shim/core/host.h"
#include "shim/kubelet/checkpoint_watch.h"

/* Tells the core (devicemgr_kubelet_holds()); host_kick() is the caller's. */
void held_tell(struct host *host, const struct kubelet_file *file);

#endif
