/*
 * What is ours in the kubelet's plugins_registry: by its name, so that each process knows what the
 * other has put there.
 */
#ifndef SHIM_KUBELET_REGISTRY_H
#define SHIM_KUBELET_REGISTRY_H

#include <stdbool.h>
#include <string.h>

/* What names begin with: of the daemon's links (registry/kubelet_link.h), and of the bridge's
 * sockets (bridge/dra/stand_in.h). */
#define KUBELET_REGISTRY_LINK "cri-device-shim-"
#define KUBELET_REGISTRY_STAND_IN "dra-cri-device-shim-"

static inline bool kubelet_registry_is_ours(const char *name)
{
    return strncmp(name, KUBELET_REGISTRY_LINK, strlen(KUBELET_REGISTRY_LINK)) == 0 ||
           strncmp(name, KUBELET_REGISTRY_STAND_IN, strlen(KUBELET_REGISTRY_STAND_IN)) == 0;
}

#endif
