/*
 * How long to wait before something that failed is tried again: doubled each time, with up to as
 * much more by chance, so that the nodes of a cluster do not come back all at once.
 */
#ifndef SHIM_AGENT_BACKOFF_H
#define SHIM_AGENT_BACKOFF_H

#include <stdint.h>

/* All zero: nothing has failed yet. */
struct backoff {
    uint64_t next_ms;
    uint64_t failed_at_ms;
};

/* It has failed, at `now_ms`: the time to wait, which is doubled up to `max_ms`, and never less
 * than `at_least_ms` (a server's Retry-After). */
uint64_t backoff_failed(struct backoff *backoff, uint64_t now_ms, uint64_t at_least_ms,
                        uint64_t max_ms);

/* A time below `bound_ms`, by chance. */
uint64_t backoff_spread(uint64_t bound_ms);

#endif
