/*
 * The kubelet's admission: which devices the containers of a pod ask for, and which of them the
 * kubelet chooses itself, as its tokens say. Now and then it decides anew.
 */
#ifndef TESTS_SIM_ADMISSION_H
#define TESTS_SIM_ADMISSION_H

#include "tests/sim/kubelet.h"

struct world;

/* Fills in what the containers of a new pod ask for. */
void admission_ask(struct world *w, struct pod_sim *pod);
/* A container of some pod has other devices from now on, as after the loss of the kubelet's own
 * checkpoint. */
void admission_decide_anew(struct world *w);
/* A pod's annotation is edited: a container asks for fewer now, or for as many as before. In the
 * end each asks for what it has, if it has some. */
void admission_edit(struct world *w);
void admission_edits_end(struct world *w);

#endif
