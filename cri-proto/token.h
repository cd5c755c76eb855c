/*
 * The token: the annotation by which an allocation that the kubelet made comes back in
 * CreateContainer. Written by the bridge for the kubelet and by the device manager for
 * what it finds again; read by devicemgr/things/request.c.
 *
 *   key    devices.cri-device-shim/vendor.com_gpu        (the resource, '/' as '_')
 *   value  {"resource":"vendor.com/gpu","ids":["g0"]}
 */
#ifndef CRI_PROTO_TOKEN_H
#define CRI_PROTO_TOKEN_H

#include <stddef.h>

#define TOKEN_KEY_PREFIX "devices.cri-device-shim/"
/* In front of such a key: what the kubelet's token said, on a container that has others in the
 * place of that, which its own token says. */
#define TOKEN_ASKED_PREFIX "asked."

/* The caller frees both. NULL: out of memory. */
char *token_key(const char *resource);
/* The ids in their order, whatever they are. NULL also if one of the texts is not UTF-8. */
char *token_value(const char *resource, const char *const *ids, size_t ids_len);

#endif
