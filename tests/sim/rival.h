/*
 * Another client of the runtime, behind the shim's back: it removes and stops what is the
 * kubelet's, makes containers in the kubelet's pods and pods of its own, at times with a token
 * annotation: such a container holds those devices from the moment the shim has listed it. And one
 * that goes through the shim: it stops a sandbox, and the kubelet does not know.
 *
 * All it makes it removes again in a while.
 */
#ifndef TESTS_SIM_RIVAL_H
#define TESTS_SIM_RIVAL_H

struct world;

void rival_trouble(struct world *w);
/* The shim is about to be told of this container, which may be a rival's. */
void rival_heard(struct world *w, unsigned container);
/* The shim died, and with it what it had not stored. */
void rival_shim_gone(struct world *w);

#endif
