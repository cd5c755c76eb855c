/*
 * Who is to be ended since the machine goes down is ended by who ends pods.
 */
#include "devicemgr/shutdown.h"

#include "devicemgr/books/facts.h"
#include "devicemgr/turn/turn.h"
#include "devicemgr/words/shutdown.h"

static void take_step(struct devicemgr *mgr, const struct shutdown_step *step)
{
    const struct end_request request = {.asker = END_SHUTDOWN,
                                        .token = END_ONCE,
                                        .grace_ms = step->grace_ms,
                                        .or_less = true,
                                        .force_local = true,
                                        .once = true,
                                        .why = ""};

    if (step->ask)
        ends_ask(&mgr->ends, step->pod_uid, &request);
    else
        ends_cancel(&mgr->ends, step->pod_uid, END_SHUTDOWN, END_ONCE);
}

void turn_shut_down(struct devicemgr *mgr)
{
    struct shutdown_step *step;

    shutdowns_review(&mgr->shutdowns);
    while ((step = shutdowns_take(&mgr->shutdowns))) {
        take_step(mgr, step);
        shutdown_step_free(step);
    }
}

void devicemgr_shutdown(struct devicemgr *mgr, uint64_t now_ms,
                        const struct devicemgr_shutdown_said *said)
{
    state_at(&mgr->state, now_ms);
    shutdowns_told(&mgr->shutdowns, said);
}

/* ---- what is seen of it ---- */

void devicemgr_shutdown_look(const struct devicemgr *mgr, struct devicemgr_shutdown_view *out)
{
    const struct state *state = &mgr->state;
    const struct shutdown *shutdown = &state->shutdown;

    *out = (struct devicemgr_shutdown_view){.state = shutdown_state_name(shutdown->state),
                                            .under_way = shutdown_under_way(shutdown),
                                            .over = shutdown->state == SHUTDOWN_OVER,
                                            .settings_ms = shutdown_settings_ms(state)};
    if (!out->under_way)
        return;
    out->since_ms = shutdown->since_ms;
    out->limit_ms = shutdown->limit_ms;
    out->by_kubelet = shutdown->by_kubelet;
    out->pods = HASH_COUNT(shutdown->pods);
    out->remaining = shutdown_remaining(state);
    if (shutdown->state != SHUTDOWN_GROUPS)
        return;
    out->by_priority = shutdown->by_priority;
    out->group = shutdown->group + 1;
    out->groups = shutdown->groups_len;
    out->priority = shutdown->groups[shutdown->group].priority;
    out->group_ends_ms = shutdown_group_ends_ms(shutdown);
}

void devicemgr_shutdown_remaining(const struct devicemgr *mgr,
                                  void (*each)(void *user, const char *pod_namespace,
                                               const char *pod_name, size_t group),
                                  void *user)
{
    const struct state *state = &mgr->state;
    const struct shutdown *shutdown = &state->shutdown;

    for (size_t group = 0; group < shutdown->groups_len; group++) {
        for (const struct shutdown_pod *one = shutdown->pods; one; one = one->hh.next) {
            const struct pod *pod = pods_find(&state->pods, one->uid);

            if (one->group == group && pod && !facts_pod_has_left(state, one))
                each(user, pod->pod_namespace, pod->name, group + 1);
        }
    }
}
