/*
 * Pods that are ended from here: what is told of that, and what is seen of it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "devicemgr/endings.h"
#include "devicemgr/rules/ended.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/words/ending.h"
#include "devicemgr/words/reason.h"
#include "devicemgr/words/shutdown.h"

bool devicemgr_refuses_sandboxes(const struct devicemgr *mgr)
{
    const struct ending *ending = mgr->state.endings.by_uid;

    while (ending && !ending_refuses(ending))
        ending = ending->hh.next;
    return ending != NULL || shutdown_under_way(&mgr->state.shutdown);
}

bool devicemgr_sandbox_refused(const struct devicemgr *mgr, const char *pod_uid,
                               struct devicemgr_refusal *out)
{
    const struct look look = ended_pod(&mgr->state, pod_uid);
    const struct ending *ending = endings_find(&mgr->state.endings, pod_uid);
    struct text text = {0};

    if (look.step != LOOK_REFUSE)
        return false;
    if (look.reason.kind == REASON_NODE_SHUTS_DOWN)
        shutdown_explain(&text);
    else
        ending_refuse_sandbox(ending, &text);
    out->code = reason_code(look.reason.kind);
    snprintf(out->words, sizeof out->words, "%s", text.buf);
    return true;
}

void devicemgr_endings(const struct devicemgr *mgr, struct devicemgr_endings *out)
{
    const struct end_counts *counts = &mgr->ends.counts;
    size_t states[ENDING_STATES] = {0};

    for (const struct ending *e = mgr->state.endings.by_uid; e; e = e->hh.next)
        states[e->state]++;
    *out = (struct devicemgr_endings){.asked = states[ENDING_ASKED],
                                      .evicting = states[ENDING_EVICTING],
                                      .evicted = states[ENDING_EVICTED],
                                      .stopping = states[ENDING_STOPPING],
                                      .stopped = states[ENDING_STOPPED],
                                      .stops = counts->stops,
                                      .stops_failed = counts->stops_failed,
                                      .evictions = counts->evictions,
                                      .ended = counts->ended};
}

void devicemgr_sidecars(struct devicemgr *mgr, const struct devicemgr_sidecars *sidecars)
{
    sidecars_set(&mgr->state.sidecars, sidecars);
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
}

void devicemgr_sandbox_stop_ended(struct devicemgr *mgr, uint64_t now_ms, uint64_t op, int code,
                                  const char *message)
{
    struct end_sandbox *stop;

    state_at(&mgr->state, now_ms);
    stop = ends_sandbox_stopped(&mgr->ends, op, code, message);
    if (stop && (code == CODE_OK || code == CODE_NOT_FOUND)) {
        runtime_sandbox_stopped(&mgr->runtime, stop->sandbox_id);
        tasks_sandbox_ended(&mgr->tasks, stop->sandbox_id);
    } else if (stop) {
        runtime_sandbox_stop_failed(&mgr->state, stop->sandbox_id);
    }
    end_sandbox_free(stop);
}

void devicemgr_cluster_reached(struct devicemgr *mgr, uint64_t now_ms, bool reached)
{
    state_at(&mgr->state, now_ms);
    if (!reached)
        mgr->state.tainted.away_ms = mgr->state.now_ms;
    ends_reached(&mgr->ends, reached);
}

void devicemgr_pod_evicted(struct devicemgr *mgr, uint64_t now_ms, uint64_t order,
                           enum devicemgr_evicted outcome)
{
    state_at(&mgr->state, now_ms);
    ends_evicted(&mgr->ends, order, outcome);
}
