/*
 * What taints do to containers that are to be made: none is made with a device that is NoExecute,
 * unless its pod tolerates that, or the claim by which it has the device; and none that is
 * NoSchedule is chosen for a pod that has it not and does not tolerate it. What the kubelet or the
 * scheduler has chosen is not taken back for a NoSchedule.
 */
#ifndef DEVICEMGR_RULES_TAINTED_H
#define DEVICEMGR_RULES_TAINTED_H

#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"

struct devicemgr_create;
struct tolerations;

/* What the pod tolerates by its annotation; never NULL. */
const struct tolerations *tainted_tolerations(const struct state *state, const char *pod_uid);

/* Whether a container may be made with them: GO, or REFUSE. Asked, as the others of a resource,
 * only where some of its devices are tainted (`wanted->tainted`). */
struct look tainted_of_ids(const struct state *state, const struct wanted *wanted,
                           const struct ids *ids);
/* The same of the devices of claims that are named to the runtime (dra.h), whoever tainted them; a
 * claim's allocation may tolerate that, too. */
struct look tainted_of_claims(const struct state *state, const struct devicemgr_create *request);
/* Whether it is not to be chosen for the pod, as what the container gets anew. */
bool tainted_for(const struct state *state, const struct wanted *wanted, const char *id);
/* `free` of its devices can be had, too few; with `ids`, which are tainted, it would be enough. */
struct look tainted_too_few(const struct state *state, const struct wanted *wanted, size_t free,
                            const struct ids *ids);

#endif
