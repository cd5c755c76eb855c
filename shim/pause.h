/*
 * The pause before what failed again is tried again.
 */
#ifndef SHIM_PAUSE_H
#define SHIM_PAUSE_H

#include <stdint.h>

/* Twice the last one, 0 at first, within these bounds. */
static inline uint64_t pause_longer(uint64_t last_ms, uint64_t min_ms, uint64_t max_ms)
{
    uint64_t ms = 2 * last_ms < max_ms ? 2 * last_ms : max_ms;

    return ms > min_ms ? ms : min_ms;
}

#endif
