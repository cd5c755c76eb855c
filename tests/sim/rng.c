#include "tests/sim/rng.h"

void rng_mix(struct rng *rng, uint64_t about)
{
    rng->state = rng_next(rng) ^ about;
    rng->state = rng_next(rng);
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t end)
{
    return rng_next(rng) % end;
}

uint64_t rng_between(struct rng *rng, uint64_t from, uint64_t to)
{
    return from + rng_below(rng, to - from + 1);
}

bool rng_percent(struct rng *rng, unsigned percent)
{
    return rng_below(rng, 100) < percent;
}

uint64_t rng_delay_ms(struct rng *rng, uint64_t max_ms)
{
    uint64_t end_ms = rng_percent(rng, 10) ? max_ms : max_ms / 20;

    return rng_between(rng, 0, end_ms);
}
