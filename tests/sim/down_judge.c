/*
 * The properties of the world of a machine that goes down, but for how far that is (down_plan.c).
 */
#include <inttypes.h>
#include <string.h>

#include "devicemgr/endings.h"
#include "devicemgr/shutdown.h"
#include "tests/sim/down_world.h"
#include "tests/sim/promise.h"

#define GRACE_MS_MIN 1000

static bool is_asked(const struct dw_pod *pod, enum dw_asker asker)
{
    return pod->asks[asker] != DW_NOT_ASKED;
}

void down_ask(struct dw_pod *pod, enum dw_asker asker)
{
    bool is_any = false, is_due = false;

    for (int other = 0; other < DW_ASKERS; other++) {
        is_any = is_any || pod->asks[other] != DW_NOT_ASKED;
        is_due = is_due || (pod->asks[other] == DW_DUE && !pod->unconfirmed);
    }
    if (!is_any && !pod->may_refuse) {
        pod->sent = false;
        pod->was_down = pod->was_down && pod->perhaps; /* since it may have been asked first */
        pod->due_ms = 0;
    }
    if (pod->asks[asker] != DW_DUE)
        pod->asks[asker] = DW_ASKED;
    for (int other = 0; other < DW_ASKERS && !is_due; other++) {
        if (pod->asks[other] == DW_CARRIED)
            pod->asks[other] = DW_ASKED;
    }
}

const struct dw_stop *down_stop_of(const struct down_world *d, unsigned container)
{
    for (size_t i = 0; i < DW_STOPS; i++) {
        if (d->stops[i].op && d->stops[i].container == container)
            return &d->stops[i];
    }
    return NULL;
}

/* By the operator, or since the machine goes down; what was sent for that goes on to its end. */
bool down_is_wanted(const struct down_world *d, const struct dw_pod *pod)
{
    return is_asked(pod, DW_OPERATOR) || is_asked(pod, DW_SHUTDOWN) || is_asked(pod, DW_EVICTION) ||
           down_plan_ends(d, pod) || pod->perhaps ||
           (pod->goes_on && pod->goes_on == pod->container);
}

/* ---- a container is stopped ---- */

static uint64_t at_least(uint64_t ms)
{
    return ms > GRACE_MS_MIN ? ms : GRACE_MS_MIN;
}

/* In whole seconds, as CRI has it. */
static uint64_t whole(uint64_t ms)
{
    return (ms + 999) / 1000 * 1000;
}

static void check_grace(struct down_world *d, const struct dw_pod *pod, uint64_t grace_ms)
{
    uint64_t most_ms = DW_NEVER, least_ms = DW_NEVER;

    if (pod->asks[DW_SHUTDOWN] == DW_DUE && !pod->may_refuse && pod->most_ms) {
        most_ms = earlier_ms(pod->grace_ms, whole(pod->most_ms));
        least_ms = earlier_ms(pod->grace_ms, pod->least_ms);
    }
    if (pod->asks[DW_OPERATOR] == DW_DUE)
        most_ms = earlier_ms(most_ms, pod->end_grace_ms);
    if (pod->asks[DW_EVICTION] == DW_DUE)
        most_ms = earlier_ms(most_ms, pod->grace_ms);
    check_that(d->w, grace_ms >= GRACE_MS_MIN && grace_ms <= at_least(most_ms),
               "each has the shorter of its own grace and what its group has: u%u has %" PRIu64
               " of %" PRIu64 " ms",
               pod->uid, grace_ms, most_ms);
    if (is_asked(pod, DW_EVICTION) && is_asked(pod, DW_SHUTDOWN))
        count_add(COUNT_DOWN_STOPPED_FOR_BOTH);
    if (pod->sent || pod->vague || is_asked(pod, DW_OPERATOR) || is_asked(pod, DW_EVICTION) ||
        least_ms == DW_NEVER)
        return;
    check_that(d->w, grace_ms >= least_ms, "and no less: u%u has %" PRIu64 " of %" PRIu64 " ms",
               pod->uid, grace_ms, least_ms);
}

void down_judge_stop(struct down_world *d, struct dw_pod *pod, uint64_t grace_ms)
{
    const struct dw_stop *stop = down_stop_of(d, pod->container);

    count_add(COUNT_DOWN_STOPPED);
    check_that(d->w, down_is_wanted(d, pod), "only pods that are to end are stopped: u%u",
               pod->uid);
    check_that(d->w,
               d->plan.state != DW_BY_KUBELET || is_asked(pod, DW_OPERATOR) ||
                   is_asked(pod, DW_SHUTDOWN) || is_asked(pod, DW_EVICTION) || pod->goes_on ||
                   pod->perhaps, /* in the one before */
               "who is ended by the kubelet is left to it: u%u", pod->uid);
    check_that(d->w, !stop || stop->kills_ms > d->now_ms + grace_ms,
               "one that is being stopped is told so again only to end sooner: c%u",
               pod->container);
    check_grace(d, pod, grace_ms);
    if (stop || !d->taking_list)
        return;
    check_that(d->w, !pod->device || !pod->seen || !pod->runs || !d->plain_stopped,
               "those that have devices are stopped first: u%u", pod->uid);
    if (pod->device && pod->seen)
        count_add(COUNT_DOWN_HOLDERS);
    d->plain_stopped = d->plain_stopped || !pod->device;
}

void down_judge_box_stop(struct down_world *d, unsigned sandbox)
{
    count_add(COUNT_DOWN_BOXES);
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_pod *pod = &d->pods[i];

        check_that(d->w,
                   !pod->there || pod->sandbox != sandbox ||
                       (d->plan.state != DW_NONE && (is_asked(pod, DW_SHUTDOWN) || pod->perhaps ||
                                                     down_plan_ends(d, pod) || pod->may_refuse)),
                   "no sandbox is stopped but of who is ended since the machine goes down: s%u",
                   sandbox);
        check_that(d->w,
                   !pod->there || pod->sandbox != sandbox || !pod->runs || !pod->seen ||
                       !down_stop_of(d, pod->container),
                   "its containers have their time first: s%u", sandbox);
    }
}

/* Before a longer one is taken back the shorter one is sent. */
void down_judge_stop_cancelled(struct down_world *d, unsigned container)
{
    const struct dw_pod *pod = down_pod_by_container(d, container);

    check_that(d->w, !pod || !pod->runs || !pod->must_go_on || down_stop_of(d, container),
               "what was sent when the machine was to go down comes to its end: c%u", container);
}

static bool box_is_being_stopped(const struct down_world *d, unsigned sandbox)
{
    for (size_t i = 0; i < DW_STOPS; i++) {
        if (d->boxes[i].op && d->boxes[i].sandbox == sandbox)
            return true;
    }
    return false;
}

/* Of one that the machine's end has asked for nothing runs any more, as the list has shown: its
 * sandbox follows. */
static void check_box(struct down_world *d, const struct dw_pod *pod, const struct dw_pod *was)
{
    if (d->plan.state == DW_NONE || pod->asks[DW_SHUTDOWN] != DW_DUE || !pod->shown ||
        pod->may_refuse || was->runs || pod->runs || pod->create || !was->ready || !pod->ready ||
        pod->sandbox != was->sandbox || pod->sandbox == pod->failed ||
        down_is_being_stopped(d, pod))
        return;
    check_that(d->w, box_is_being_stopped(d, pod->sandbox),
               "a sandbox of which nothing runs any more is stopped: s%u", pod->sandbox);
}

static bool is_due(const struct dw_pod *pod)
{
    return pod->asks[DW_SHUTDOWN] == DW_DUE || pod->asks[DW_OPERATOR] == DW_DUE ||
           (pod->asks[DW_EVICTION] == DW_DUE && !pod->unconfirmed && !pod->loose);
}

/* What it shows to run and is to end is told so. */
void down_judge_listed(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS && !*d->w->broken; i++) {
        const struct dw_pod *pod = &d->pods[i], *was = &d->snapshot[i];

        if (pod->there && pod->uid == was->uid)
            check_box(d, pod, was);
        if (!pod->there || pod->uid != was->uid || !was->runs || !pod->runs ||
            pod->container != was->container)
            continue;
        check_that(d->w, !is_due(pod) || down_stop_of(d, pod->container),
                   "each is told to end when its turn has come: u%u", pod->uid);
    }
}

/* ---- what is made ---- */

void down_judge_refused(struct down_world *d, const struct dw_pod *pod, int code,
                        const char *message)
{
    down_note(d, "create of u%u is refused %d: %s", pod->uid, code, message);
    if (strstr(message, "node is shutting down")) {
        count_add(COUNT_DOWN_REFUSED);
        check_that(d->w, d->plan.state != DW_NONE && code == CODE_UNAVAILABLE,
                   "only while the machine goes down all is refused, for now: u%u", pod->uid);
    } else if (strstr(message, "is ended on this node")) {
        count_add(COUNT_DOWN_REFUSED_ENDED);
        check_that(d->w,
                   is_asked(pod, DW_OPERATOR) || is_asked(pod, DW_EVICTION) || pod->may_refuse,
                   "only of pods that are to end no container is made: u%u", pod->uid);
    } else {
        if (strstr(message, "tainted"))
            count_add(COUNT_DOWN_REFUSED_TAINTED);
        check_that(d->w, pod->device && (d->plan.state == DW_NONE || d->draining),
                   "who asks for no device is not refused, and all are alike: u%u: %s", pod->uid,
                   message);
    }
}

void down_judge_made(struct down_world *d, struct dw_pod *pod)
{
    count_add(COUNT_DOWN_MADE);
    check_that(d->w, d->plan.state == DW_NONE, "nothing is made while the machine goes down: u%u",
               pod->uid);
    check_that(d->w,
               pod->asks[DW_OPERATOR] != DW_DUE &&
                   (pod->asks[DW_EVICTION] != DW_DUE || pod->unconfirmed || pod->loose),
               "none is made of a pod that is being ended: u%u", pod->uid);
    pod->may_refuse = false; /* that came to its end */
    pod->goes_on = 0;
    pod->must_go_on = false;
}

void down_judge_sandbox_refused(struct down_world *d, const struct dw_pod *pod, int code)
{
    if (code == CODE_UNAVAILABLE) {
        count_add(COUNT_DOWN_SANDBOX_REFUSED);
        check_that(d->w, d->plan.state != DW_NONE,
                   "no sandbox is refused for a shutdown that is not: u%u", pod->uid);
    } else {
        check_that(d->w,
                   d->plan.state == DW_NONE && (is_asked(pod, DW_OPERATOR) ||
                                                is_asked(pod, DW_EVICTION) || pod->may_refuse),
                   "no sandbox is refused but of a pod that is to end: u%u", pod->uid);
    }
}

/* ---- after each run ---- */

static void check_stops(struct down_world *d)
{
    for (size_t i = 0; i < DW_STOPS; i++) {
        const struct dw_stop *stop = &d->stops[i];
        const struct dw_pod *pod = stop->op ? down_pod_by_container(d, stop->container) : NULL;

        for (size_t k = 0; stop->op && k < i; k++)
            check_that(d->w, !d->stops[k].op || stop->container != d->stops[k].container,
                       "one StopContainer of a container is under way: c%u", stop->container);
        check_that(d->w, !pod || down_is_wanted(d, pod),
                   "what nobody wants any more is taken back: c%u", stop->container);
    }
}

void down_judge(struct down_world *d)
{
    struct devicemgr_refusal refusal;

    for (size_t i = 0; i < DW_PODS; i++)
        d->pods[i].was_down = d->pods[i].was_down || !d->pods[i].runs;
    down_plan_judge(d);
    down_taint_judge(d);
    check_that(
        d->w, devicemgr_sandbox_refused(d->core, "another", &refusal) == (d->plan.state != DW_NONE),
        "while the machine goes down no sandbox is run, and only then");
    check_that(d->w, d->plan.state == DW_NONE || devicemgr_refuses_sandboxes(d->core),
               "nor is any passed without a look");
    for (size_t i = 0; i < DW_PODS; i++)
        check_that(d->w, d->plan.state == DW_NONE || !d->pods[i].create || d->pods[i].forwarded,
                   "nor does a container wait to be made: u%u", d->pods[i].uid);
    check_stops(d);
}

/* ---- in the end ---- */

void down_judge_rest(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_pod *pod = &d->pods[i];

        if (!pod->there)
            continue;
        check_that(d->w, pod->runs, "every pod gets what it asked for: u%u", pod->uid);
        count_add(COUNT_DOWN_RUNS);
    }
    /* of a pod that the runtime has forgotten it is not known that it does not come back */
    for (const struct row *row = d->rows; row; row = row->next)
        check_that(d->w,
                   row->kind != DEVICEMGR_RECORD_SHUTDOWN && row->kind != DEVICEMGR_RECORD_ORDER &&
                       (row->kind != DEVICEMGR_RECORD_ENDING || !down_pod_of(d, row->key[0])),
                   "what is over is kept no more: %s", row->key[0]);
}
