/*
 * Frail sandboxes: in some worlds their pause processes die all the time, there is often no network
 * for another for a while, and the shim ends just then.
 */
#ifndef TESTS_SIM_FRAIL_H
#define TESTS_SIM_FRAIL_H

#include <stdbool.h>

struct world;

void frail_begins(struct world *w);
/* Whether this is such a world. */
bool frail_is(const struct world *w);

#endif
