/*
 * Which claims a pod of this node has, as the agent knows it.
 */
#ifndef SHIM_CLUSTER_POD_CLAIMS_H
#define SHIM_CLUSTER_POD_CLAIMS_H

#include "shim/facts.h"

/* Of the pod of this uid, "namespace/name", or of this name in any: calls `each` for all of them
 * that are made, before it returns. */
void pod_claims_each(const struct facts *facts, const char *pod,
                     void (*each)(void *to, const char *pod_namespace, const char *claim),
                     void *to);

#endif
