/*
 * References to variables, `$(NAME)`, in the command and the args of a container, in whose place a
 * kubelet puts the values (ExpandContainerCommandAndArgs() in pkg/kubelet/container/helpers.go): of
 * what a plugin's answer sets, too, where it has that. One that has a token in its place leaves the
 * references as they are, and they are replaced here, in an encoded CreateContainerRequest.
 *
 * The syntax is that of third_party/forked/golang/expansion: a name is whatever there is up to the
 * next ')', '$' and '(' as well; without one there is no reference; values are not looked into. But
 * for "$$": each of the pod's is a "$" by now, so that two of them escape nothing any more. What
 * cannot be told any more:
 * - whether "$(NAME)" was that, or escaped, "$$(NAME)"; nor "$$(NAME)" from "$$$(NAME)" and
 *   "$$$$(NAME)";
 * - whether it comes out of the value of another variable, into which a kubelet does not look.
 * All is taken for what was neither: of "$$(NAME)" comes "$" with the value behind it.
 */
#ifndef SHIM_RELAY_COMMAND_VARS_H
#define SHIM_RELAY_COMMAND_VARS_H

#include <stddef.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/relay/buffer.h"

/*
 * Writes `request` to `out`, which is empty, with the values of the envs in `options` in the place
 * of references to them (of two with one name the last counts, as in the container); not of those
 * that the request sets, too: these win, and the kubelet had them, so that what is left of such a
 * reference was none. Only those texts and the lengths around them change; all else is copied byte
 * for byte. 1: done; 0: there is none, or the bytes are not what they should be (malformed, another
 * wire type); -ENOMEM, -EMSGSIZE: over RELAY_MESSAGE_BYTES_MAX. `out` is empty again unless 1 is
 * returned.
 */
int command_vars_expand(const uint8_t *request, size_t request_len,
                        const V1beta1__ContainerAllocateResponse *options, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
