/*
 * Names of CDI devices that stand for devices of a lifted resource (devicemgr/lift.h), between
 * NodePrepareResources and CreateContainer: the kubelet carries them from the one to the other, and
 * no runtime is to see them. They say all that is to be known, so that they count also where
 * nothing was stored:
 *
 *     plugins.cri-device-shim/device=vendor.com:gpu:g0:CLAIM-UID
 *
 * the two parts of the pool's name behind the node's, the device's name, and the claim, which makes
 * the same device another name in another claim.
 */
#ifndef CRI_PROTO_LIFT_MARKER_H
#define CRI_PROTO_LIFT_MARKER_H

#include <stdbool.h>
#include <stddef.h>

#define LIFT_DRIVER "plugins.cri-device-shim"
#define LIFT_MARKER_PREFIX LIFT_DRIVER "/device="

/* Parts of a domain, a name and a device, a uid of at most 64 bytes, and what is between them. */
#define LIFT_MARKER_BYTES_MAX (sizeof LIFT_MARKER_PREFIX + 253 + 1 + 63 + 1 + 63 + 1 + 64)

/* Whether a name is one of those. */
bool lift_marker_is(const char *name, size_t len);

/* `pool` is "vendor.com/gpu". False: there is no such name. */
bool lift_marker_put(char out[LIFT_MARKER_BYTES_MAX], const char *pool, const char *device,
                     const char *claim_uid) __attribute__((warn_unused_result));

struct lift_marker {
    char pool[253 + 1 + 63 + 1];
    char device[63 + 1];
    char claim_uid[64 + 1];
};
/* False: it is none that was put so. */
bool lift_marker_read(const char *name, struct lift_marker *out)
    __attribute__((warn_unused_result));

#endif
