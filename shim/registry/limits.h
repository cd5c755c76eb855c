/*
 * What those who can write to the registry's directory can make the daemon look at and hold. A node
 * has some ten plugins; what is beyond a bound is left out, and said to be.
 */
#ifndef SHIM_REGISTRY_LIMITS_H
#define SHIM_REGISTRY_LIMITS_H

#include <stddef.h>

/* Sockets at a time, with a descriptor and a connection of 64 KiB for each: 64 drivers in two
 * versions, and as many of other kinds. */
#define REGISTRY_SOCKETS_MAX 256
/* Of one driver so many sockets are registered though nobody serves some of them any more: a pod
 * that was killed leaves its own behind. Half of what the core takes (DRIVER_INSTANCES_MAX). */
#define REGISTRY_OF_ONE_DRIVER 8
/* Directories at a time, with an inotify watch for each, and how deep they may lie. */
#define REGISTRY_DIRECTORIES_MAX 256
#define REGISTRY_DEPTH_MAX 8
/* Names that one look reads: some 10 ms. */
#define REGISTRY_NAMES_MAX 20000
/* What comes on a connection to a registration socket: a PluginInfo has some hundred bytes. */
#define REGISTRY_RECEIVED_BYTES_MAX ((size_t)64 * 1024)
/* Of a PluginInfo, whose name is a DNS subdomain, and its endpoint a unix socket's path. */
#define REGISTRY_VERSIONS_MAX 32
#define REGISTRY_VERSION_BYTES_MAX 253

#endif
