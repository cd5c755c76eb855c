/*
 * What ids and resources are called as parts of a name that Kubernetes takes: the same one is
 * called the same for ever, and two never alike.
 *
 * What is such a part already keeps its name, unless it has "--". Any other is
 * "readable--hash": some letters of it, for people, and 128 bits of FNV-1a over all of it. That is
 * no proof against a plugin that looks for two ids of its own with one hash, which hurts its own
 * devices alone.
 */
#ifndef CRI_PROTO_LIFTED_NAME_H
#define CRI_PROTO_LIFTED_NAME_H

#include <stdbool.h>

/* A DNS label (RFC 1123), its NUL, and what a domain and a slash add. */
#define LIFTED_NAME_BYTES (63 + 1)
#define LIFTED_POOL_BYTES (253 + 1 + LIFTED_NAME_BYTES)
#define LIFTED_CLASS_BYTES (253 + 1)

/* Of an attribute's text; so many the API takes (staging/src/k8s.io/api/resource/v1/types.go). */
#define LIFTED_TEXT_BYTES_MAX 64

/* A device's: a DNS label. */
void lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES]);
/* A resource's, as the part of a pool's name behind the node's: DNS subdomains with '/' between
 * them. */
void lifted_name_pool(const char *resource, char out[LIFTED_POOL_BYTES]);
/* What its devices' attribute "resource" says: the name, or, where that is too long for a text, as
 * the pool has it. False: so is that, and they have none. */
bool lifted_name_attribute(const char *resource, char out[LIFTED_POOL_BYTES])
    __attribute__((warn_unused_result));
/* What a DeviceClass of it is called: a DNS subdomain, "gpu.vendor.com" of "vendor.com/gpu". */
void lifted_name_class(const char *resource, char out[LIFTED_CLASS_BYTES]);

#endif
