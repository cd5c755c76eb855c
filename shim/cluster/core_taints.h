/*
 * What the core is told of taints: those of ResourceSlices, DeviceTaintRules, and what a claim's
 * pods tolerate (devicemgr/taints.h).
 */
#ifndef SHIM_CLUSTER_CORE_TAINTS_H
#define SHIM_CLUSTER_CORE_TAINTS_H

#include <stdint.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "devicemgr/taints.h"

/* Of a slice, as it is now. How old a taint is, by the clock of who says when it was added: it
 * shows `server_now_s`, since 1970. */
void core_taints_slice(struct devicemgr *core, uint64_t now_ms, uint64_t server_now_s,
                       const char *uid, const Agent__V1__Slice *slice);
/* A rule, likewise. NULL: it is no more. One that selects no device, or by what is not known
 * here, is none. */
void core_taints_rule(struct devicemgr *core, uint64_t now_ms, uint64_t server_now_s,
                      const char *uid, const Agent__V1__TaintRule *rule);
/* Who may use a claim, and what they tolerate. */
void core_taints_claim(struct devicemgr *core, uint64_t now_ms, const Agent__V1__Claim *claim);

#endif
