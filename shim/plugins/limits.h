/*
 * What plugins can make the daemon hold of messages that have begun to come, and what that is
 * together. What is made of a list when it is whole has bounds in devicemgr/things/limits.h.
 */
#ifndef SHIM_PLUGINS_LIMITS_H
#define SHIM_PLUGINS_LIMITS_H

#include <stddef.h>

#include "shim/rpc/rpc.h"

/* Of one plugin, on all connections since one dial, and on each that a process before this one left
 * (left_streams.h): the largest message inflated, with what it came as, and one more. */
#define PLUGIN_RECEIVED_BYTES_MAX (3 * (size_t)RPC_MESSAGE_BYTES_MAX)
/* Of it, what each has for itself whatever others send: a list of some 5,000 devices; twice that
 * while one that was dialled before it registered is listened to there, too. What was left has
 * nothing for itself. */
#define PLUGIN_OWN_BYTES ((size_t)256 * 1024)
/* What all have together beyond that: eight of the largest messages at a time. Whoever finds
 * nothing left loses his call, and may come again. With RESOURCES_MAX times twice
 * PLUGIN_OWN_BYTES that is 640 MiB, where the unit lets the daemon have 1 GiB. */
#define PLUGINS_SHARED_BYTES (8 * (size_t)RPC_MESSAGE_BYTES_MAX)
/* Those that register, at once, what each may send for it, and how many calls it may have: with
 * 4 KiB for each of these 32 MiB together. A Register call names a version, an endpoint and a
 * resource, some 500 bytes. */
#define REGISTRAR_CONNECTIONS_MAX 256
#define REGISTRAR_REQUEST_BYTES_MAX ((size_t)64 * 1024)
#define REGISTRAR_CALLS_MAX 16

#endif
