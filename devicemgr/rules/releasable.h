/*
 * Whether an operator may take a pod's devices from it: none of its containers runs or can come to
 * run with them, by all that is known, and it has no sandbox in which one could be made.
 */
#ifndef DEVICEMGR_RULES_RELEASABLE_H
#define DEVICEMGR_RULES_RELEASABLE_H

#include "devicemgr/words/release.h"

/* By the runtime's last list and what came since. A pod that the runtime does not know has nothing
 * in the way. */
struct release_look releasable(const struct state *state, const char *pod_uid);

#endif
