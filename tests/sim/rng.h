/*
 * Random numbers that are the same for the same seed on every machine (splitmix64).
 */
#ifndef TESTS_SIM_RNG_H
#define TESTS_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

void rng_init(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* From 0 to below `end`, which is not 0. */
uint64_t rng_below(struct rng *rng, uint64_t end);
/* From `from` to `to`, both included. */
uint64_t rng_between(struct rng *rng, uint64_t from, uint64_t to);
bool rng_percent(struct rng *rng, unsigned percent);
/* A delay: mostly short, now and then up to `max_ms`. */
uint64_t rng_delay_ms(struct rng *rng, uint64_t max_ms);

#endif
