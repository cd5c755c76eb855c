/*
 * What the core knows of the kubelet: when it started, and whether it has listed.
 */
#include "devicemgr/core.h"

void devicemgr_kubelet_started(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    mgr->kubelet_started_ms = mgr->now_ms;
}

void devicemgr_kubelet_listed(struct devicemgr *mgr, uint64_t now_ms)
{
    core_at(mgr, now_ms);
    mgr->kubelet_listed = true;
}
