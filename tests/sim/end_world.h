/*
 * A small world beside the large one, of pods that an operator ends and takes back, at any time:
 * with a runtime that is away, answers late or not at all, and lists what is old by then; a store
 * that fails; a shim that is killed; and a kubelet that makes containers again and again. Then all
 * troubles end, and what is to have ended must have.
 */
#ifndef TESTS_SIM_END_WORLD_H
#define TESTS_SIM_END_WORLD_H

#include <stdbool.h>

struct world;

/* Runs the one of the world's seed, whose own run is over and has held. False: world's `broken`
 * says why. */
bool end_world_run(struct world *w);

#endif
