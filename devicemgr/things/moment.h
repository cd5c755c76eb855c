/*
 * Moments on the core's clock, in ms; UINT64_MAX is never.
 */
#ifndef DEVICEMGR_THINGS_MOMENT_H
#define DEVICEMGR_THINGS_MOMENT_H

#include <stdint.h>

static inline uint64_t earlier(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* Never, if the clock does not go so far. */
static inline uint64_t later_by(uint64_t from_ms, uint64_t span_ms)
{
    return span_ms > UINT64_MAX - from_ms ? UINT64_MAX : from_ms + span_ms;
}

#endif
