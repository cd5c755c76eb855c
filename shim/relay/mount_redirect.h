/*
 * Another directory in the place of one that a container mounts from the host, written into the
 * encoded CreateContainerRequest.
 */
#ifndef SHIM_RELAY_MOUNT_REDIRECT_H
#define SHIM_RELAY_MOUNT_REDIRECT_H

#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"

/* Where a path is, seen from a directory. */
enum mount_place {
    MOUNT_ELSEWHERE,
    MOUNT_AT,    /* the directory itself */
    MOUNT_ABOVE, /* a directory that holds it */
    MOUNT_BELOW, /* something in it */
};

/*
 * Compares name by name, so that slashes too many and "." do not matter. By text only: symbolic
 * links are not followed, and a path that is not absolute, or has "..", which the kubelet allows in
 * no hostPath, is elsewhere.
 */
enum mount_place mount_place(const char *path, size_t path_len, const char *directory);

/*
 * Writes `request` to `out`, which is empty, with `to` as the host_path of every mount of its
 * config's whose host_path is `from` (MOUNT_AT) and that is not read-only. Only those strings and
 * the lengths around them change; all else is copied byte for byte. 1: done; 0: there is none, or
 * the bytes are not what they should be (malformed, groups, another wire type); -ENOMEM, -EMSGSIZE:
 * over RELAY_MESSAGE_BYTES_MAX. `out` is empty again unless 1 is returned.
 */
int mount_redirect(const uint8_t *request, size_t request_len, const char *from, const char *to,
                   struct buffer *out) __attribute__((warn_unused_result));

#endif
