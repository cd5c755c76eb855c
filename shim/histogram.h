/*
 * How long things took: counts in buckets whose bounds are the same for all, and the sum.
 */
#ifndef SHIM_HISTOGRAM_H
#define SHIM_HISTOGRAM_H

#include <stdint.h>

/* From half a millisecond, in which a call of the runtime's passes, to the minutes of a pull. */
#define HISTOGRAM_BOUNDS_US                                                                        \
    {                                                                                              \
        500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 5000000, 15000000,    \
            60000000, 300000000                                                                    \
    }
#define HISTOGRAM_BOUNDS 14

/* Plain integers; zeroed it is empty. */
struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* of each bucket alone; the last has no bound */
    uint64_t sum_us;
};

static inline void histogram_add(struct histogram *h, uint64_t us)
{
    static const uint64_t bounds_us[HISTOGRAM_BOUNDS] = HISTOGRAM_BOUNDS_US;
    unsigned i = 0;

    while (i < HISTOGRAM_BOUNDS && us > bounds_us[i])
        i++;
    h->counts[i]++;
    h->sum_us += us;
}

#endif
