/*
 * Which pods may still come, to the shim: those of an earlier boot, of which the runtime has
 * forgotten all, and those of which it knows nothing but what the kubelet's checkpoint gives them.
 */
#ifndef TESTS_SIM_COMING_H
#define TESTS_SIM_COMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

/* When the shim had heard of all that may be there: of the runtime, and of a kubelet, or it had
 * waited long enough for one. UINT64_MAX: not yet. */
uint64_t coming_sources_ms(const struct world *w);
/* The boot that the pod's durable row names; this one if there is no row, as the shim knows no
 * other then. */
unsigned coming_row_boot(const struct world *w, const char *uid);
/* A pod of which the runtime knows nothing, and which it last knew in that boot: whether the shim
 * keeps it, since no kubelet has listed, or since it is of an earlier boot. */
bool coming_back(const struct world *w, unsigned uid, unsigned boot);

/* Whether the kubelet's checkpoint names a pod that is gone, and the shim may think that it is
 * still to come. */
bool coming_any(struct world *w);
/* Masks of what its checkpoint gives: as told last, to pods that may live, or come, but this
 * one. */
unsigned coming_told(struct world *w, unsigned uid, size_t resource);
/* Likewise, to pods that run, or can be admitted again. */
unsigned coming_admitted(struct world *w, size_t resource);
/* As told before, to pods that surely live, but this one. */
unsigned coming_promised(struct world *w, unsigned uid, size_t resource, uint64_t before_ms);

#endif
