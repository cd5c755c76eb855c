/*
 * Names of CDI devices in an encoded CreateContainerRequest, each of which is to be there once: a
 * kubelet sends those of a claim twice that it has asked to be prepared twice
 * (kubernetes/kubernetes#140274), and what a device is may be done twice then, its hooks for one.
 *
 * They stand in config.CDI_devices, and in annotations of the config whose keys begin with
 * "cdi.k8s.io/", names with ',' between them: kubelets before 1.31 send both, for runtimes that
 * know one of them only. So both ways are looked at by themselves; a name is left out of an
 * annotation since it is in the field only where the runtime is known to read that.
 *
 * Those that stand for devices here (cri-proto/lift_marker.h) are left out in any case: no runtime
 * is to see them. Others go on in the place of those that the device manager says (ports.h).
 */
#ifndef SHIM_RELAY_CDI_NAMES_H
#define SHIM_RELAY_CDI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/ports.h"
#include "shim/relay/buffer.h"

#define CDI_NAMES_ANNOTATION "cdi.k8s.io/"

/* What is so of the names; all is borrowed. */
struct cdi_names {
    /* Put in front of the request; may be NULL. */
    const V1beta1__ContainerAllocateResponse *options;
    bool field_read; /* the runtime reads CDI_devices */
    const struct devicemgr_rename *renames;
    size_t renames_len;
};

/*
 * Writes `request` to `out`, which is empty, without the names that are in it once more, or in
 * the options, and with others in the place of those that have others. Of a name the first stays;
 * all else is copied byte for byte. An annotation that would be without a name is left out, since
 * an empty one is none that a runtime can read. `count`, set with 1: how many were there once
 * more.
 *
 * 1: done; 0: there is none, or the bytes are not what they should be (malformed, another wire
 * type), or more names than RELAY_CDI_NAMES_MAX, or two annotations of one key; -EBADMSG: that is
 * so, and some names have others; -ENOMEM. `out` is empty again unless 1 is returned.
 */
int cdi_names_once(const uint8_t *request, size_t request_len, const struct cdi_names *names,
                   struct buffer *out, size_t *count) __attribute__((warn_unused_result));

#endif
