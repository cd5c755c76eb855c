/*
 * Random numbers that are the same for the same seed on every machine (splitmix64). Whatever
 * happens draws from a stream of its own, made from the seed, what it is about, and the time
 * (world_draw()): no draw depends on what was drawn before, nor on the order in which the core does
 * what it does at one time.
 */
#ifndef TESTS_SIM_RNG_H
#define TESTS_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

/* What is drawn for. */
enum draw {
    DRAW_CHAOS, /* what befalls the world */
    DRAW_SETTINGS,
    DRAW_SHIM_STARTS,
    DRAW_SHIM_DIES,
    DRAW_SHIM_DRAINS,
    DRAW_SHIM_RUNS,
    DRAW_CONFUSION,
    DRAW_MOVES,
    DRAW_NODE_REBOOTS,
    DRAW_KUBELET_LISTS,
    DRAW_KUBELET,
    DRAW_POD,
    DRAW_POD_SYNC,
    DRAW_POD_ENDS,
    DRAW_DECIDED_ANEW,
    DRAW_EDITED,
    DRAW_CREATE,
    DRAW_CREATE_RETRIED,
    DRAW_CREATE_CANCELLED,
    DRAW_CREATE_FORWARDED,
    DRAW_REPORT,
    DRAW_PREFERENCE,
    DRAW_PLUGIN,
    DRAW_PLUGIN_TROUBLE,
    DRAW_PLUGIN_STARTS,
    DRAW_PLUGIN_DIES,
    DRAW_PLUGIN_REGISTERS,
    DRAW_PLUGIN_OPTIONS,
    DRAW_PLUGIN_LISTS,
    DRAW_PLUGIN_DIALLED,
    DRAW_PLUGIN_CALLED,
    DRAW_PLUGIN_PREFERS,
    DRAW_RUNTIME,
    DRAW_RUNTIME_TROUBLE,
    DRAW_RUNTIME_CALLED,
    DRAW_RUNTIME_ACTS,
    DRAW_RUNTIME_ANSWERS,
    DRAW_CALL_LOST,
    DRAW_CONTAINER_STARTS,
    DRAW_CONTAINER_RUNS,
    DRAW_RIVAL,
    DRAW_LIST,
    DRAW_CHECK,
    DRAW_EVENT,
    DRAW_COMMIT,
    DRAW_COMMIT_ENDS,
    DRAW_STORE_DIES,
    DRAW_STORE_DAMAGED,
    DRAW_PUBLISHER,
    DRAW_WHY,
    DRAW_SHIM_RESUMES,
    DRAW_RELOAD,
    DRAW_SHIM_OUTLIVED,
    DRAW_LISTS,
    DRAW_OPERATOR,
    DRAW_RELEASE,
    DRAW_DRA_DRIVER,
    DRAW_DRA_CONNECTS,
    DRAW_DRA_STARTS,
    DRAW_DRA_CALLED,
    DRAW_DRA_ANSWERS,
    DRAW_DRA_CLAIM,
    DRAW_DRA_COMES,
    DRAW_DRA_LOOKS,
    DRAW_DRA_ASKS,
    DRAW_DRA_POD,
    DRAW_DRA_ALLOCATED,
    DRAW_DRA_AGENT,
    DRAW_DRA_WIPED,
    DRAW_HASTE,
    DRAW_FRAIL,
};

/* Mixes `about` in: another stream for each. */
void rng_mix(struct rng *rng, uint64_t about);
uint64_t rng_next(struct rng *rng);
/* From 0 to below `end`, which is not 0. */
uint64_t rng_below(struct rng *rng, uint64_t end);
/* From `from` to `to`, both included. */
uint64_t rng_between(struct rng *rng, uint64_t from, uint64_t to);
bool rng_percent(struct rng *rng, unsigned percent);
/* A delay: mostly short, now and then up to `max_ms`. */
uint64_t rng_delay_ms(struct rng *rng, uint64_t max_ms);

#endif
