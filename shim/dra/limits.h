/*
 * What DRA drivers can make the daemon hold of messages that have begun to come, and what that is
 * together.
 */
#ifndef SHIM_DRA_LIMITS_H
#define SHIM_DRA_LIMITS_H

#include <stddef.h>

/* Claims that a driver is asked for in one call; a pod with more of it has a second one. */
#define DRIVER_CALL_CLAIMS_MAX 60
/* Of one instance of a driver, on all its connections: what a kubelet takes in one message. An
 * answer is for so many claims, of each of which the device manager keeps CLAIM_RESPONSE_BYTES_MAX,
 * 64 KiB, by a uid of CLAIM_NAMES_BYTES_MAX, 1 KiB (devicemgr/things/limits.h): 3.9 MiB. A word of
 * health is some 100 bytes for a device, 1.3 KiB at most, so that this is that of 3,000 devices at
 * the least. What is longer is refused by its length, before it is taken; what is not takes 16
 * times that much while it is read (message_unpack()), 64 MiB, one at a time. */
#define DRIVER_RECEIVED_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* Of it, what each has for itself whatever others send: the answers for three of the largest
 * claims. */
#define DRIVER_OWN_BYTES ((size_t)256 * 1024)
/* What all have together beyond that: two of the largest messages at a time. */
#define DRIVERS_SHARED_BYTES (2 * DRIVER_RECEIVED_BYTES_MAX)

#endif
