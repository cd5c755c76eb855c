/*
 * Resources of device plugins that are published as those of a DRA driver, in ResourceSlices: what
 * is to be said of them there. Settings say which (struct devicemgr_resource_settings, `dra`).
 *
 * A resource is a pool of its own, from its first list on, or its restoring, until its grace period
 * is over. Its devices are all that its plugin lists, healthy or not, with the attributes
 *   resource   its name, or, where it is longer than 64 bytes, as the pool has it
 *   id         as the plugin has it, where it is no longer than 64 bytes
 *   numaNode   where there is one; numaNodes, as "0,1", where there are several
 * and those of the settings; and they are tainted
 *   devices.cri-device-shim/unhealthy    by their plugin's word: NoSchedule, or NoExecute
 *                                        (settings.taint_unhealthy_after_ms)
 *   devices.cri-device-shim/plugin-away  NoSchedule, once it has been for settings.mask_ms
 *   devices.cri-device-shim/held         NoSchedule, while a pod has it that the kubelet gave it
 *                                        to, from before it was published
 *   devices.cri-device-shim/cordoned,
 *   devices.cri-device-shim/withdrawn    NoSchedule, by an operator
 * and as an operator or the settings taint them, but for the effect None.
 */
#ifndef DEVICEMGR_LIFT_H
#define DEVICEMGR_LIFT_H

#include <stddef.h>
#include <stdint.h>

#include "cri-proto/lift_marker.h"
#include "devicemgr/devicemgr.h"

/* The driver of all of them. */
#define DEVICEMGR_LIFT_DRIVER LIFT_DRIVER
/* Devices in one slice: so many the API takes where one of them is tainted
 * (staging/src/k8s.io/api/resource/v1/types.go), so that a taint moves no device. */
#define DEVICEMGR_LIFT_SLICE_DEVICES 64

struct devicemgr_lifted {
    const char *resource;
    const char *pool; /* what its name is behind the node's and '/' */
    size_t devices;   /* that are published, */
    size_t left_out;  /* and those that are too many */
};

struct devicemgr_lifted_taint {
    const char *key, *value, *effect; /* value "": none */
};

struct devicemgr_lifted_device {
    const char *id;
    const char *name; /* a DNS label that no other device of the resource has */
    const struct devicemgr_attribute *attributes;
    size_t attributes_len;
    const struct devicemgr_lifted_taint *taints; /* each once; the strongest first */
    size_t taints_len;
};

/* Another number whenever any of what follows may differ; never 0. Cheap. As devicemgr_run() left
 * it. */
uint64_t devicemgr_lifted_version(const struct devicemgr *mgr);
/* Calls `each` for every resource that is published, in the order of names, before it returns; what
 * it is given is borrowed until `each` returns. `each` must not send events. The same holds for the
 * devices, in the natural order of ids: the first DEVICEMGR_LIFT_SLICE_DEVICES are the first
 * slice's, and so on. */
void devicemgr_lifted(const struct devicemgr *mgr,
                      void (*each)(void *user, const struct devicemgr_lifted *lifted), void *user);
void devicemgr_lifted_devices(const struct devicemgr *mgr, const char *resource,
                              void (*each)(void *user,
                                           const struct devicemgr_lifted_device *device),
                              void *user);

#endif
