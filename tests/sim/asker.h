/*
 * Somebody who asks why, at any time, also in the middle of events; and to whom nobody listens.
 */
#ifndef TESTS_SIM_ASKER_H
#define TESTS_SIM_ASKER_H

struct world;

/* Asks now and then, about all containers. */
void asker_asks(struct world *w);

#endif
