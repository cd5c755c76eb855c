/*
 * What the kubelet has taken of what it is shown, for who waits with it.
 */
#include "devicemgr/books/replacing.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/turn/turn.h"

bool devicemgr_replacing(const struct devicemgr *mgr, const char *resource)
{
    const struct replacing *replacing = mgr->state.replacings.by_key;

    while (replacing && (replacing->confirmed || strcmp(replacing->resource, resource) != 0))
        replacing = replacing->hh.next;
    return replacing != NULL;
}

void devicemgr_kubelet_took(struct devicemgr *mgr, uint64_t now_ms, const char *resource)
{
    state_at(&mgr->state, now_ms);
    replacing_took(&mgr->state, resource);
}
