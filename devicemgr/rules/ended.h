/*
 * Whether something of a pod may still be made: the one answer for who is being ended, has been, or
 * whose sandbox was told to stop; and for all of them while the machine goes down.
 */
#ifndef DEVICEMGR_RULES_ENDED_H
#define DEVICEMGR_RULES_ENDED_H

#include "devicemgr/rules/look.h"

struct sandbox;
struct state;

/* A sandbox, or a container with or without devices. GO or REFUSE. */
struct look ended_pod(const struct state *state, const char *pod_uid);
/* A container in this sandbox, which is to be there (NULL: it is not), and open. Likewise. */
struct look ended_sandbox(const struct state *state, const char *pod_uid,
                          const struct sandbox *sandbox);

#endif
