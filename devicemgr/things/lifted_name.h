/*
 * What ids and resources are called as parts of a name that Kubernetes takes: the same one is called
 * the same for ever, and two never alike.
 *
 * What is such a part already keeps its name, unless it has "--". Any other is
 * "readable--hash": some letters of it, for people, and 128 bits of FNV-1a over all of it. That is
 * no proof against a plugin that looks for two ids of its own with one hash, which hurts its own
 * devices alone.
 */
#ifndef DEVICEMGR_THINGS_LIFTED_NAME_H
#define DEVICEMGR_THINGS_LIFTED_NAME_H

/* A DNS label (RFC 1123), its NUL, and what a domain and a slash add. */
#define LIFTED_NAME_BYTES (63 + 1)
#define LIFTED_POOL_BYTES (253 + 1 + LIFTED_NAME_BYTES)

/* A device's: a DNS label. */
void lifted_name_device(const char *id, char out[LIFTED_NAME_BYTES]);
/* A resource's, as the part of a pool's name behind the node's: DNS subdomains with '/' between
 * them. */
void lifted_name_pool(const char *resource, char out[LIFTED_POOL_BYTES]);

#endif
