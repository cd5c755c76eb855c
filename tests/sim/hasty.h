/*
 * Haste: in some worlds who asks for a device that a container has gives up in the moment in which
 * the runtime is about to say that it runs; it ends soon after, and another pod asks for the
 * device. What was said then, and nobody waited for, is of no use to that one.
 */
#ifndef TESTS_SIM_HASTY_H
#define TESTS_SIM_HASTY_H

#include <stdint.h>

struct world;

/* In some of the worlds: pods are deleted by force, and others come in their place, all the
 * time. */
void hasty_begins(struct world *w);
/* So much longer the runtime takes to say whether this container runs: others ask for what it has
 * meanwhile. */
uint64_t hasty_slow_ms(struct world *w, unsigned container);
/* The runtime is about to answer that this container runs. */
void hasty_check(struct world *w, unsigned container);

#endif
