/*
 * Somebody who changes the settings while the shim runs: times that pods and plugins already wait
 * by.
 */
#ifndef TESTS_SIM_RELOADER_H
#define TESTS_SIM_RELOADER_H

struct world;

/* In some of the worlds, now and then, until the faults stop. By a stream of its own: nothing else
 * is drawn otherwise. */
void reloader_begins(struct world *w);

#endif
