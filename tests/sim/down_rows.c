/*
 * What the rows say in the world of a machine that goes down: what the next shim goes on with.
 */
#include <stdio.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "tests/sim/down_world.h"

static const char *const ASKERS[DW_ASKERS] = {
    [DW_OPERATOR] = "operator", [DW_SHUTDOWN] = "shutdown", [DW_EVICTION] = "eviction"};

/* ---- an ending ---- */

struct asks {
    bool is[DW_ASKERS];
    uint64_t grace_ms[DW_ASKERS];
    uint64_t asked_ms[DW_ASKERS];
    uint64_t due_ms;
};

/* What the machine's last shutdown has asked for is over with it. */
static struct asks read_asks(const struct down_world *d, const void *value, size_t bytes)
{
    struct asks asks = {.grace_ms = {DW_NEVER, DW_NEVER, DW_NEVER}};
    Checkpoint__V1__Ending *row = checkpoint__v1__ending__unpack(NULL, bytes, value);
    char boot[16];

    down_boot_id(d, boot);
    for (size_t i = 0; row && i < row->n_asks; i++) {
        for (int asker = 0; asker < DW_ASKERS; asker++) {
            if (strcmp(row->asks[i]->asker, ASKERS[asker]) != 0)
                continue;
            asks.is[asker] = true;
            asks.grace_ms[asker] = row->asks[i]->grace_ms;
            asks.asked_ms[asker] = row->asks[i]->asked_ms;
        }
    }
    if (row && strcmp(row->boot_id, boot) != 0)
        asks.is[DW_SHUTDOWN] = false;
    else if (row)
        asks.due_ms = row->due_ms;
    checkpoint__v1__ending__free_unpacked(row, NULL);
    return asks;
}

/* Whether somebody has asked since this row was made, and nothing is done yet: it waits for the
 * next commit with that one. */
static bool is_asked_since(const struct dw_pod *pod, const struct asks *asks)
{
    bool since = false;

    for (int asker = 0; asker < DW_ASKERS; asker++) {
        if (pod->asks[asker] == DW_DUE && !pod->unconfirmed)
            return false;
        since = since || (pod->asks[asker] == DW_ASKED && !asks->is[asker]);
    }
    return since;
}

void down_rows_carried(struct down_world *d, const struct devicemgr_record *records, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct dw_pod *pod = records[i].kind == DEVICEMGR_RECORD_ENDING && records[i].value
                                 ? down_pod_of(d, records[i].key[0])
                                 : NULL;
        struct asks asks;

        if (!pod)
            continue;
        asks = read_asks(d, records[i].value, records[i].value_bytes);
        if (is_asked_since(pod, &asks))
            continue;
        for (int asker = 0; asker < DW_ASKERS; asker++) {
            if (asks.is[asker] && pod->asks[asker] == DW_ASKED)
                pod->asks[asker] = DW_CARRIED;
        }
    }
}

static struct asks stored_asks(const struct down_world *d, const struct dw_pod *pod)
{
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    for (const struct row *row = d->rows; row; row = row->next) {
        if (row->kind == DEVICEMGR_RECORD_ENDING && strcmp(row->key[0], uid) == 0)
            return read_asks(d, row->value, row->bytes);
    }
    return (struct asks){.grace_ms = {DW_NEVER, DW_NEVER, DW_NEVER}};
}

/* ---- the shutdown ---- */

static enum dw_state find_state(const char *name)
{
    static const char *const STATES[] = {"none", "begun", "groups", "kubelet", "over"};
    int state = DW_NONE;

    while (state < DW_OVER && strcmp(STATES[state], name) != 0)
        state++;
    return (enum dw_state)state;
}

static struct dw_plan read_plan(const struct down_world *d, const Checkpoint__V1__Shutdown *row)
{
    struct dw_plan plan = {.state = find_state(row->state),
                           .since_ms = row->since_ms,
                           .limit_ms = row->limit_ms,
                           .by_kubelet = row->by_kubelet,
                           .by_priority = row->by_priority,
                           .groups_len = row->n_groups < DW_GROUPS ? row->n_groups : DW_GROUPS,
                           .group = row->group,
                           .group_ms = row->group_since_ms,
                           .over_ms = row->over_ms};

    for (size_t g = 0; g < plan.groups_len; g++)
        plan.groups[g] = (struct dw_group){row->groups[g]->priority, row->groups[g]->grace_ms,
                                           row->groups[g]->grace_ms};
    for (size_t i = 0; i < row->n_pods; i++) {
        const struct dw_pod *pod = down_pod_of((struct down_world *)d, row->pods[i]->uid);

        if (pod)
            plan.parts[pod - d->pods] =
                (struct dw_part){.uid = pod->uid, .sure = true, .group = row->pods[i]->group};
    }
    return plan;
}

/* In this boot. */
static struct dw_plan stored_plan(const struct down_world *d)
{
    struct dw_plan plan = {.state = DW_NONE};
    char boot[16];

    down_boot_id(d, boot);
    for (const struct row *row = d->rows; row; row = row->next) {
        Checkpoint__V1__Shutdown *is;

        if (row->kind != DEVICEMGR_RECORD_SHUTDOWN)
            continue;
        is = checkpoint__v1__shutdown__unpack(NULL, row->bytes, row->value);
        if (is && strcmp(is->boot_id, boot) == 0)
            plan = read_plan(d, is);
        checkpoint__v1__shutdown__free_unpacked(is, NULL);
    }
    return plan;
}

/* ---- what the next shim knows ---- */

void down_rows_restored(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];
        struct asks asks = stored_asks(d, pod);

        pod->end_grace_ms = asks.grace_ms[DW_OPERATOR];
        pod->least_ms = pod->most_ms = asks.grace_ms[DW_SHUTDOWN];
        pod->asked_ms = asks.asked_ms[DW_SHUTDOWN];
        pod->due_ms = asks.due_ms;
        pod->vague = asks.is[DW_SHUTDOWN];
        pod->perhaps = false;
        for (int asker = 0; asker < DW_ASKERS; asker++)
            pod->asks[asker] = asks.is[asker] ? DW_DUE : DW_NOT_ASKED;
        /* what a shutdown has asked for beside it may be taken back by this start */
        pod->unconfirmed = asks.is[DW_EVICTION] && !asks.is[DW_OPERATOR];
    }
    d->plan = stored_plan(d);
}

/* ---- nothing waits for the store ---- */

static uint64_t at_least_a_second(uint64_t ms)
{
    return ms > 1000 ? ms : 1000;
}

static void check_asks(struct down_world *d, const struct dw_pod *pod)
{
    struct asks asks = stored_asks(d, pod);

    check_that(d->w, asks.is[DW_OPERATOR] == (pod->asks[DW_OPERATOR] != DW_NOT_ASKED),
               "what an operator asks for is stored, or that he does not any more: u%u", pod->uid);
    check_that(d->w,
               !d->listed || pod->loose ||
                   asks.is[DW_EVICTION] == (pod->asks[DW_EVICTION] != DW_NOT_ASKED),
               "whom a taint makes go is stored, or that it does not any more: u%u", pod->uid);
    check_that(d->w, asks.is[DW_SHUTDOWN] || pod->asks[DW_SHUTDOWN] == DW_NOT_ASKED,
               "whom the shutdown ends is stored: u%u", pod->uid);
    check_that(d->w,
               pod->asks[DW_SHUTDOWN] == DW_NOT_ASKED || pod->may_refuse || pod->vague ||
                   (asks.grace_ms[DW_SHUTDOWN] >= pod->least_ms &&
                    asks.grace_ms[DW_SHUTDOWN] <= at_least_a_second(pod->most_ms)),
               "and what it has for that: u%u", pod->uid);
    check_that(d->w,
               pod->asks[DW_OPERATOR] == DW_NOT_ASKED ||
                   asks.grace_ms[DW_OPERATOR] == pod->end_grace_ms,
               "and what the operator leaves it: u%u", pod->uid);
}

static void check_plan(struct down_world *d)
{
    const struct dw_plan *plan = &d->plan;
    const struct dw_plan stored = stored_plan(d);

    check_that(d->w, stored.state == plan->state && stored.group == plan->group,
               "how far the shutdown has come is stored");
    if (plan->state == DW_NONE)
        return;
    check_that(d->w,
               stored.since_ms == plan->since_ms && stored.limit_ms == plan->limit_ms &&
                   stored.by_kubelet == plan->by_kubelet,
               "what was told of the shutdown is stored");
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_part *part = &plan->parts[i], *is = &stored.parts[i];

        check_that(d->w,
                   !part->sure || part->uid != d->pods[i].uid ||
                       (is->uid == part->uid && is->group == part->group),
                   "of which group a pod is, is stored: u%u, of %zu, not %zu", part->uid,
                   part->group, is->group);
    }
    for (size_t g = 0; plan->state == DW_IN_GROUPS && g < plan->groups_len; g++)
        check_that(d->w,
                   stored.groups[g].least_ms >= plan->groups[g].least_ms &&
                       stored.groups[g].least_ms <= plan->groups[g].most_ms,
                   "each group has what the settings say, or its share of what there is");
}

void down_rows_judge(struct down_world *d)
{
    if (d->commit || d->store_fails)
        return;
    check_plan(d);
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].there)
            check_asks(d, &d->pods[i]);
    }
}
