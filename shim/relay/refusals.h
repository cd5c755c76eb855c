/*
 * The log lines of refused creates. A kubelet repeats a refused create every 11 to 15 s for as long
 * as it takes: the same refusal of the same container is said once, then counted, and said again
 * with its count when it changes, when it ends, and every REFUSALS_TELL_MS.
 *
 * Two are the same if the gRPC code is and the message but for its numbers and times.
 */
#ifndef SHIM_RELAY_REFUSALS_H
#define SHIM_RELAY_REFUSALS_H

#include <stdint.h>

/* Containers remembered, and bytes of the message of each: 256 * 1 KiB = 256 KiB at most. The one
 * that was refused longest ago goes when one more comes. */
#define REFUSALS_MAX 256
#define REFUSALS_TEXT_BYTES_MAX 1024
/* How often one that goes on is said. */
#define REFUSALS_TELL_MS (10 * 60 * 1000)

struct refusals;

/* NULL: out of memory. */
struct refusals *refusals_new(void);
/* Accepts NULL. */
void refusals_free(struct refusals *refusals);

/* What a container is known by here: the same for each create of it. */
uint64_t refusals_key(const char *pod_uid, const char *container);

/* Whose create it is, for the log; NULL: not known. */
struct refusals_name {
    const char *pod; /* "namespace/name" */
    const char *container;
    const char *resource; /* which it is refused for */
};

/* A create of that container is refused with `code` and `message`. Logs it, or counts it. */
void refusals_add(struct refusals *refusals, uint64_t key, struct refusals_name name,
                  uint64_t now_ms, int code, const char *message);

/* A create of it is not refused: what was counted is over. */
void refusals_end(struct refusals *refusals, uint64_t key, struct refusals_name name);

#endif
