/*
 * CDI names of a create that are not what its claims have any more.
 *
 * A kubelet up to 1.36.2 that has restarted names what a claim had before beside what that has
 * now (kubernetes/kubernetes#140274); and any, what it had before alone, where its driver has
 * answered others since without its asking. By now another claim may have that.
 */
#ifndef DEVICEMGR_RULES_LAPSED_H
#define DEVICEMGR_RULES_LAPSED_H

#include "devicemgr/things/renames.h"

struct devicemgr_create;
struct state;

/*
 * In the place of each such name: those of what its claim has now for the same requests of the
 * claim, as far as the create does not name them itself. Which claim's it is says the claim's uid
 * in the name, or the cluster, that this is reserved for the pod, or, where its driver was never
 * with the kubelet itself, that the create names what the claim has now, too. A name that some
 * claim has now stays, since it may be by that one; but where the cluster has said that this one is
 * not reserved for the pod, and the other one is. So does what a claim had whose driver is with the
 * kubelet, or was since: that may have had it prepared anew. The caller frees it.
 */
struct renames lapsed_look(const struct state *state, const struct devicemgr_create *request);

#endif
