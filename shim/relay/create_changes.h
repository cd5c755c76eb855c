/*
 * What is changed in the bytes of a CreateContainerRequest before it goes on: mounts of whoever
 * registers plugins in a pod (plugin_mounts.h), CDI devices that are named twice, or otherwise by
 * now (cdi_names.h), tokens in the place of which there are others (token_displace.h), and
 * references to variables that are put in front of it (command_vars.h). All else passes as it came.
 */
#ifndef SHIM_RELAY_CREATE_CHANGES_H
#define SHIM_RELAY_CREATE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/relay/buffer.h"
#include "shim/relay/plugin_mounts.h"

/* Of one request; what it points to is borrowed. */
struct create_changes {
    const struct plugin_mounts *mounts; /* those of device plugins, if it has some; else NULL */
    const struct plugin_mounts *driver_mounts; /* the same of DRA drivers */
    bool cdi;                                  /* it names CDI devices */
    bool cdi_field_read;                       /* the runtime reads their field */
    const struct devicemgr_rename *renames;    /* of the verdict */
    size_t renames_len;
};

/*
 * Writes to `out`, which is empty, what takes the place of `message`; `options` (may be NULL) are
 * put in front of it. 1: done, and *repeats says how many names of CDI devices were left out; 0:
 * nothing is to be changed; -ENOMEM, -EMSGSIZE: over RELAY_MESSAGE_BYTES_MAX, -EBADMSG: names of
 * CDI devices have others, and cannot be told in it. `out` is empty again unless 1 is returned.
 */
int create_changes_make(const struct create_changes *changes, const uint8_t *message, size_t len,
                        const V1beta1__ContainerAllocateResponse *options, struct buffer *out,
                        size_t *repeats) __attribute__((warn_unused_result));

#endif
