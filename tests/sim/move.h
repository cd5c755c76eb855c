/*
 * Plugins that serve the kubelet itself before they are moved over to the shim, and after they are
 * moved back. What the kubelet gives out meanwhile it makes containers with that carry no token:
 * the shim sees their creates pass, and knows what they have by the kubelet's checkpoint only.
 */
#ifndef TESTS_SIM_MOVE_H
#define TESTS_SIM_MOVE_H

#include <stdbool.h>
#include <stddef.h>

struct rt_container;
struct world;

/* In some worlds some plugins are the kubelet's at first. */
void moves_init(struct world *w);
/* Whether that is so often in this world, and pods are replaced just then. */
bool moves_often(const struct world *w);
/* The plugin is moved over, or back, if plugins are in this world. */
void move_plugin(struct world *w, size_t resource);
/* All are moved over in the end. */
void moves_end(struct world *w);
/* What the shim has been told, and has served, it must know from now on: of each container that
 * runs without a token. After each event. */
void moves_note_known(struct world *w);
/* A create of this container passes, with what the kubelet gave it: if the shim can tell, it must
 * know. Now and then the pod is deleted by force just then, and another may get that. */
void moves_note_made(struct world *w, struct rt_container *made);
/* A commit is durable: what was known before it began is stored. */
void moves_check_stored(struct world *w);
/* A shim has started: it knows what it has a row of. */
void moves_shim_started(struct world *w);

#endif
