/*
 * Random numbers that are the same for the same seed on every machine (splitmix64). Each thing of
 * the world draws from a stream of its own, so that one draw more here moves nothing there.
 */
#ifndef TESTS_SIM_RNG_H
#define TESTS_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

/* Who draws; of plugins and pods each has its own, numbered from here on. */
enum rng_stream {
    RNG_WORLD, /* what befalls it */
    RNG_RUNTIME,
    RNG_RIVAL,
    RNG_LISTER,
    RNG_KUBELET,
    RNG_CLIENT,
    RNG_BRIDGE,
    RNG_SHIM,
    RNG_STORE,
    RNG_PUBLISHER,
    RNG_PLUGIN = 100,
    RNG_POD = 1000,
};

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct rng *rng);
/* From 0 to below `end`, which is not 0. */
uint64_t rng_below(struct rng *rng, uint64_t end);
/* From `from` to `to`, both included. */
uint64_t rng_between(struct rng *rng, uint64_t from, uint64_t to);
bool rng_percent(struct rng *rng, unsigned percent);
/* A delay: mostly short, now and then up to `max_ms`. */
uint64_t rng_delay_ms(struct rng *rng, uint64_t max_ms);

#endif
