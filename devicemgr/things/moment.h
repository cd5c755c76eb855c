/*
 * Moments on the core's clock, in ms.
 *
 * UINT64_MAX is never: of what is to happen, where the earliest of several counts. A field in which
 * 0 is none, as it is in a zeroed struct, has a moment at which something ends or may be done
 * again: one that is long past says the same. Where such a one is to count among others, it goes
 * through moment_or_never().
 *
 * The clock is that of a boot, and says nothing in another.
 */
#ifndef DEVICEMGR_THINGS_MOMENT_H
#define DEVICEMGR_THINGS_MOMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t earlier(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

static inline uint64_t later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* When the next may be, now or later, of what may be `at_once` times in quick succession, and from
 * then on once in `every_ms`; `paid_ms`: those that there were are paid for by then. */
static inline uint64_t paced_ms(uint64_t paid_ms, uint64_t now_ms, uint64_t at_once,
                                uint64_t every_ms)
{
    uint64_t ahead_ms = (at_once - 1) * every_ms;

    return paid_ms > now_ms + ahead_ms ? paid_ms - ahead_ms : now_ms;
}

/* By when they are paid for with one more, now: as early as `at_once` of them are, at the
 * latest. */
static inline uint64_t paced_paid_ms(uint64_t paid_ms, uint64_t now_ms, uint64_t at_once,
                                     uint64_t every_ms)
{
    return earlier(later(paid_ms, now_ms) + every_ms, now_ms + at_once * every_ms);
}

static inline uint64_t moment_or_never(uint64_t ms)
{
    return ms > 0 ? ms : UINT64_MAX;
}

/* Never, if the clock does not go so far. */
static inline uint64_t later_by(uint64_t from_ms, uint64_t span_ms)
{
    return span_ms > UINT64_MAX - from_ms ? UINT64_MAX : from_ms + span_ms;
}

/* 0 for what is still to come. */
static inline uint64_t ago(uint64_t now_ms, uint64_t then_ms)
{
    return now_ms > then_ms ? now_ms - then_ms : 0;
}

/* How long it is until then; 0 once it is over. */
static inline uint64_t time_left(uint64_t now_ms, uint64_t end_ms)
{
    return end_ms > now_ms ? end_ms - now_ms : 0;
}

/* The pause before what failed again is tried again: twice the last one, 0 at first. */
static inline uint64_t longer_pause(uint64_t last_ms, uint64_t min_ms, uint64_t max_ms)
{
    return later(earlier(2 * last_ms, max_ms), min_ms);
}

/* A boot that is not known ("") is never the same as another. */
static inline bool same_boot(const char *a_id, const char *b_id)
{
    return a_id[0] != '\0' && strcmp(a_id, b_id) == 0;
}

#endif
