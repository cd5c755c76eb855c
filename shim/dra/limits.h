/*
 * What DRA drivers can make the daemon hold of messages that have begun to come, and what that is
 * together.
 */
#ifndef SHIM_DRA_LIMITS_H
#define SHIM_DRA_LIMITS_H

#include <stddef.h>

/* Of one instance of a driver, on all its connections. An answer is for one claim, of which the
 * device manager keeps CLAIM_RESPONSE_BYTES_MAX, 64 KiB (devicemgr/things/limits.h); a word of
 * health is some 100 bytes for a device, 1.3 KiB at most, so that this is that of 800 devices at
 * the least and 10,000 as they are. What is longer is refused by its length, before it is taken;
 * what is not takes 16 times that much while it is read (message_unpack()), 16 MiB, one at a
 * time. */
#define DRIVER_RECEIVED_BYTES_MAX ((size_t)1024 * 1024)
/* Of it, what each has for itself whatever others send: the answers for three of the largest
 * claims. */
#define DRIVER_OWN_BYTES ((size_t)256 * 1024)
/* What all have together beyond that: eight of the largest messages at a time. */
#define DRIVERS_SHARED_BYTES (8 * DRIVER_RECEIVED_BYTES_MAX)

#endif
