/*
 * What the kubelet is shown, as text, in the world of devicemgr_world.h.
 */
#ifndef TESTS_UNIT_SHOWN_WORLD_H
#define TESTS_UNIT_SHOWN_WORLD_H

#include "devicemgr_world.h"

#define MASK_MS 120000

/* What of one resource was seen last: another list must come with other versions. */
struct seen {
    const char *resource;
    uint64_t version;
    uint64_t version_of_all;
    uint64_t mask_end_ms;
    char text[4096];
};
extern struct seen seen[2]; /* of GPU and NIC */

/* Versions begin anew. */
void forget_seen(void);
/* Asserts that what is shown now of the resource has other versions if it differs. */
void look(struct world *w, struct seen *before);
/* And that it is this: "g0 g1! g2+ g3@1": g1 unhealthy, g2 held, g3 on NUMA node 1. */
void expect_shown(struct world *w, const char *resource, const char *expected);
/* Their names, as "a, b". */
void expect_resources(struct world *w, const char *expected);
uint64_t version_of(struct world *w, const char *resource);
uint64_t mask_end_of(struct world *w, const char *resource);

/* Setup of a test: a mask of MASK_MS, annotation requests, a kubelet that has just started. */
int mask_setup(void **state);
/* For good: the redial fails, too. */
void lose(struct world *w);
/* Time passes; what is to be stored is. */
void pass_stored(struct world *w, uint64_t ms);
/* Of the shim. */
void restart(struct world *w);
/* The plugin that was dialled after a restart serves. */
void serve(struct world *w, const char *devices);
void kubelet_starts(struct world *w);
/* The sandbox is stopped, by request. */
void sandbox_ended(struct world *w, const char *id);

#endif
