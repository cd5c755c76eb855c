/*
 * What DRA drivers can make the daemon hold of messages that have begun to come, and what that is
 * together.
 */
#ifndef SHIM_DRA_LIMITS_H
#define SHIM_DRA_LIMITS_H

#include <stddef.h>

#include "shim/rpc/rpc.h"

/* Of one instance of a driver, on all its connections: the largest message inflated, with what it came
 * as, and one more. */
#define DRIVER_RECEIVED_BYTES_MAX (3 * (size_t)RPC_MESSAGE_BYTES_MAX)
/* Of it, what each has for itself whatever others send: the answer for a claim of some 2,000 devices. */
#define DRIVER_OWN_BYTES ((size_t)256 * 1024)
/* What all have together beyond that: four of the largest messages at a time. */
#define DRIVERS_SHARED_BYTES (4 * (size_t)RPC_MESSAGE_BYTES_MAX)

#endif
