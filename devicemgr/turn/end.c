#include "devicemgr/turn/end.h"

#include <stdlib.h>

#include "devicemgr/turn/turn.h"

static void end_told(struct devicemgr *mgr, const struct end_told *told)
{
    (void)mgr;
    switch (told->asker) {
    case END_OPERATOR: /* is told by an event */
    case END_EVICTION:
    case END_SHUTDOWN:
    case END_ASKERS:
        break;
    }
}

void end_tell(struct devicemgr *mgr)
{
    struct end_told *told;

    while ((told = ends_take_told(&mgr->ends))) {
        end_told(mgr, told);
        ends_told_free(told);
    }
}

void end_ask(struct devicemgr *mgr, const char *pod_uid, const struct end_request *request)
{
    ends_ask(&mgr->ends, pod_uid, request);
    end_tell(mgr);
}

bool end_cancel(struct devicemgr *mgr, const char *pod_uid, enum end_asker asker, uint64_t token)
{
    return ends_cancel(&mgr->ends, pod_uid, asker, token);
}

void devicemgr_container_stopped(struct devicemgr *mgr, uint64_t now_ms, uint64_t op, int code,
                                 const char *message)
{
    char *ended;

    state_at(&mgr->state, now_ms);
    ended = ends_stopped(&mgr->ends, op, code, message);
    if (ended)
        runtime_container_ended(&mgr->runtime, ended);
    free(ended);
    end_tell(mgr);
}

void devicemgr_pod_evicted(struct devicemgr *mgr, uint64_t now_ms, uint64_t order,
                           enum devicemgr_evicted outcome)
{
    state_at(&mgr->state, now_ms);
    ends_evicted(&mgr->ends, order, outcome);
    end_tell(mgr);
}
