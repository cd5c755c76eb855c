/*
 * A kubelet's token in an encoded CreateContainerRequest, where the container gets other devices
 * than it says: of two annotations with one key the request's would count, which comes behind what
 * is put in front, and say for ever what the container has not.
 */
#ifndef SHIM_RELAY_TOKEN_DISPLACE_H
#define SHIM_RELAY_TOKEN_DISPLACE_H

#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/relay/buffer.h"

/*
 * Writes `request` to `out`, which is empty, without the tokens among its config's annotations
 * (cri-proto/token.h) whose keys `options` has, too; all else is copied byte for byte. 1: done; 0:
 * there is none, or the bytes are malformed; -ENOMEM, -EMSGSIZE. `out` is empty again unless 1 is
 * returned.
 */
int token_displace(const uint8_t *request, size_t request_len,
                   const V1beta1__ContainerAllocateResponse *options, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
