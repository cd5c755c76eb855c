/*
 * Who is to be ended when the machine goes down, and when.
 */
#ifndef DEVICEMGR_RULES_LEAVING_H
#define DEVICEMGR_RULES_LEAVING_H

#include <stdbool.h>
#include <stdint.h>

struct pod;
struct shutdown;
struct state;

/* Whether the pod has something that may run. */
bool leaving_pod(const struct state *state, const struct pod *pod);
/* Whether it has devices: of a plugin's, of the host's, or of a claim. */
bool leaving_holds(const struct state *state, const char *pod_uid);
/* By the cluster's word. One that it does not know has the default (0), a static one is critical,
 * as the kubelet has it (pkg/kubelet/types/pod_update.go, IsCriticalPod). */
int32_t leaving_priority(const struct shutdown *shutdown, const struct pod *pod);
/* Whether some sandbox is ready still. */
bool leaving_sandboxes(const struct state *state);

#endif
