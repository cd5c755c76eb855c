/*
 * How far a shutdown has come in that world: in the words of the kubelet's own
 * (pkg/kubelet/nodeshutdown), and of what is promised beside that. The core's word on its state is
 * followed only where the world allows that step.
 */
#include <string.h>

#include "devicemgr/shutdown.h"
#include "tests/sim/down_world.h"

/* How long the cluster's priorities are waited for, and a kubelet that has let go of its lock; what
 * is left of the machine's time, and how long after all is done a machine that is there still is
 * believed to go down. */
#define KNOW_MS 2000
#define LEFT_MS 2000
#define MARGIN_MS 1000
#define GIVEN_UP_MS 600000
#define NODE_CRITICAL 2000001000

static const char *const STATES[] = {[DW_NONE] = "none",
                                     [DW_BEGUN] = "begun",
                                     [DW_IN_GROUPS] = "groups",
                                     [DW_BY_KUBELET] = "kubelet",
                                     [DW_OVER] = "over"};

static enum dw_state find_state(const char *name)
{
    int state = DW_NONE;

    while (state < DW_OVER && strcmp(STATES[state], name) != 0)
        state++;
    return (enum dw_state)state;
}

static uint64_t deadline_ms(const struct dw_plan *plan)
{
    if (plan->limit_ms == 0)
        return DW_NEVER;
    return plan->since_ms +
           (plan->limit_ms > 2 * MARGIN_MS ? plan->limit_ms - MARGIN_MS : plan->limit_ms / 2);
}

static uint64_t until_ms(uint64_t then_ms, uint64_t now_ms)
{
    return then_ms > now_ms ? then_ms - now_ms : 0;
}

static bool is_late(const struct down_world *d)
{
    return d->now_ms >= deadline_ms(&d->plan);
}

/* Whether it is known what runs, and who may be ended in which order, or at least who is in the
 * way. */
static bool may_plan(const struct down_world *d)
{
    return d->listed &&
           (d->plan.by_kubelet || d->known.is || d->now_ms >= d->plan.since_ms + KNOW_MS);
}

/* ---- who is of which group ---- */

static int32_t priority_of(const struct down_world *d, const struct dw_pod *pod)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->known.uids[i] == pod->uid)
            return d->known.priorities[i];
    }
    return pod->is_static ? NODE_CRITICAL : 0;
}

static size_t group_of(const struct dw_plan *plan, int32_t priority)
{
    size_t group = plan->groups_len - 1;

    while (group > 0 && plan->groups[group].priority > priority)
        group--;
    return group;
}

/* It has something that may run; surely, or perhaps. */
static bool may_leave(const struct down_world *d, const struct dw_pod *pod)
{
    return pod->there && pod->known && (d->plan.by_priority || pod->device);
}

static bool leaves(const struct down_world *d, const struct dw_pod *pod)
{
    return may_leave(d, pod) && pod->ready && (d->plan.by_priority || (pod->runs && pod->seen));
}

/* It was perhaps one of them: it may have been taken in by now, or have been asked before. */
static void note_comes(const struct down_world *d, struct dw_part *part, const struct dw_pod *pod)
{
    if (part->sure || part->came || !leaves(d, pod))
        return;
    part->came = part->is_to_be_asked = true;
    part->sure = part->vague = !d->plan.by_priority;
}

static void take_in(struct down_world *d)
{
    struct dw_plan *plan = &d->plan;

    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_pod *pod = &d->pods[i];
        struct dw_part *part = &plan->parts[i];
        size_t group;

        if (!may_leave(d, pod))
            continue;
        if (part->uid == pod->uid) {
            note_comes(d, part, pod);
            continue;
        }
        group = group_of(plan, priority_of(d, pod));
        *part = (struct dw_part){.uid = pod->uid,
                                 .sure = leaves(d, pod),
                                 .group = group > plan->group ? group : plan->group,
                                 .is_to_be_asked = true};
    }
}

bool down_plan_ends(const struct down_world *d, const struct dw_pod *pod)
{
    const struct dw_part *part = &d->plan.parts[pod - d->pods];

    return (d->plan.state == DW_IN_GROUPS || d->plan.state == DW_OVER) && part->uid == pod->uid &&
           part->group <= d->plan.group;
}

/* ---- the groups ---- */

/* As the settings have them; what is less is shared by those that have pods. */
static void shorten(struct down_world *d)
{
    struct dw_plan *plan = &d->plan;
    uint64_t all_ms = until_ms(deadline_ms(plan), d->now_ms), sure_ms = 0, perhaps_ms = 0;

    for (size_t g = 0; g < plan->groups_len; g++) {
        bool sure = false, perhaps = false;

        for (size_t i = 0; i < DW_PODS; i++) {
            const struct dw_part *part = &plan->parts[i];

            perhaps = perhaps || (part->uid && part->group == g);
            sure = sure || (part->uid && part->group == g && part->sure);
        }
        sure_ms += sure ? plan->groups[g].most_ms : 0;
        perhaps_ms += perhaps ? plan->groups[g].most_ms : 0;
    }
    for (size_t g = 0; g < plan->groups_len; g++) {
        struct dw_group *group = &plan->groups[g];

        if (perhaps_ms > all_ms)
            group->least_ms = group->least_ms * all_ms / perhaps_ms;
        if (sure_ms > all_ms)
            group->most_ms = group->most_ms * all_ms / sure_ms;
    }
    if (sure_ms > all_ms)
        count_add(COUNT_DOWN_SHORTENED);
}

/* If so, what the operator asks for waits for the next commit with it. */
static void ask_perhaps(struct dw_pod *pod)
{
    pod->vague = pod->perhaps = true;
    if (pod->asks[DW_OPERATOR] == DW_CARRIED)
        pod->asks[DW_OPERATOR] = DW_ASKED;
}

static void ask_for(struct down_world *d, struct dw_pod *pod, bool vague)
{
    bool again = pod->asks[DW_SHUTDOWN] != DW_NOT_ASKED;

    down_note(d, "u%u is to end, by group %zu", pod->uid, d->plan.group);
    count_add(again ? COUNT_DOWN_ASKED_AGAIN : COUNT_DOWN_ASKED);
    down_ask(pod, DW_SHUTDOWN);
    pod->asks[DW_SHUTDOWN] = DW_ASKED;
    pod->shown = false;
    pod->vague = again || vague;
    if (again)
        return;
    pod->asked_ms = d->now_ms;
    pod->least_ms = pod->most_ms = DW_NEVER;
}

/* How long the group has is not always known to the millisecond: then nor is it, whether one that
 * was asked for in another shutdown is asked for again. */
static void ask_one(struct down_world *d, struct dw_pod *pod, bool vague)
{
    const struct dw_plan *plan = &d->plan;
    const struct dw_group *group = &plan->groups[plan->group];
    uint64_t most_ms = earlier_ms(deadline_ms(plan), plan->group_ms + group->most_ms);
    uint64_t least_ms = earlier_ms(deadline_ms(plan), plan->group_ms + group->least_ms);
    bool again = pod->asks[DW_SHUTDOWN] != DW_NOT_ASKED;

    if (again && down_surely_comes_in_time(d, pod, least_ms))
        return;
    if (again && down_may_come_in_time(d, pod, most_ms)) {
        ask_perhaps(pod);
        pod->least_ms = earlier_ms(pod->least_ms, until_ms(least_ms, d->now_ms));
        return;
    }
    ask_for(d, pod, vague);
    pod->least_ms = earlier_ms(pod->least_ms, until_ms(least_ms, d->now_ms));
    pod->most_ms = earlier_ms(pod->most_ms, until_ms(most_ms, vague ? plan->group_ms : d->now_ms));
}

/* Those of the group whose turn it is. */
static void ask(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_part *part = &d->plan.parts[i];
        struct dw_pod *pod = &d->pods[i];

        if (!part->uid || !part->is_to_be_asked || part->group > d->plan.group)
            continue;
        part->is_to_be_asked = false;
        if (part->uid != pod->uid)
            continue;
        if (part->sure && leaves(d, pod))
            ask_one(d, pod, part->vague);
        else
            ask_perhaps(pod);
    }
}

static void begin_group(struct down_world *d, size_t group)
{
    d->plan.group = group;
    d->plan.group_ms = d->now_ms;
    ask(d);
}

static void make_groups(struct down_world *d)
{
    struct dw_plan *plan = &d->plan;
    uint64_t all_ms = 0;

    plan->state = DW_IN_GROUPS;
    plan->by_priority = d->known.is;
    plan->groups_len = d->groups_len;
    plan->group = 0;
    for (size_t g = 0; g < d->groups_len; g++) {
        plan->groups[g] =
            (struct dw_group){d->groups[g].priority, d->groups[g].grace_ms, d->groups[g].grace_ms};
        all_ms += d->groups[g].grace_ms;
    }
    if (!plan->by_priority) {
        count_add(COUNT_DOWN_UNKNOWN);
        plan->groups[0] = (struct dw_group){INT32_MIN, all_ms, all_ms};
        plan->groups_len = 1;
    }
    memset(plan->parts, 0, sizeof plan->parts);
    take_in(d);
    shorten(d);
    begin_group(d, 0);
}

/* It had no sandbox at some time since it was to end. */
static bool has_left(const struct dw_plan *plan, size_t group)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_part *part = &plan->parts[i];

        if (part->uid && part->sure && part->group == group && !part->left)
            return false;
    }
    return true;
}

static void over(struct down_world *d)
{
    down_note(d, "the shutdown is over");
    count_add(COUNT_DOWN_OVER);
    d->plan.state = DW_OVER;
    d->plan.over_ms = d->now_ms;
}

static void note_left(struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_part *part = &d->plan.parts[i];

        if (part->uid && (part->uid != d->pods[i].uid || !d->pods[i].ready))
            part->left = true;
    }
}

static void follow(struct down_world *d)
{
    if (d->plan.state != DW_IN_GROUPS || !d->listed || d->draining)
        return;
    take_in(d);
    ask(d);
    note_left(d);
}

static void move_to(struct down_world *d, size_t group)
{
    struct dw_plan *plan = &d->plan;

    note_left(d);
    check_that(d->w, group >= plan->group, "a group that is over does not come again");
    while (plan->group < group && !*d->w->broken) {
        bool is_over = has_left(plan, plan->group);

        check_that(d->w, d->listed, "before the runtime has listed no group is over");
        check_that(d->w,
                   is_over || d->now_ms >= plan->group_ms + plan->groups[plan->group].least_ms,
                   "a group begins when the one before is over, or its time is: %zu", plan->group);
        count_add(is_over ? COUNT_DOWN_GROUP_OVER : COUNT_DOWN_GROUP_LATE);
        if (plan->group + 1 == plan->groups_len) {
            over(d);
            return;
        }
        begin_group(d, plan->group + 1);
        note_left(d);
    }
}

/* ---- what the core says of it ---- */

static bool has_sandboxes(const struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].there && d->pods[i].ready && d->pods[i].known)
            return true;
    }
    return false;
}

static void leave_begun(struct down_world *d, enum dw_state state)
{
    if (state == DW_OVER && is_late(d)) {
        count_add(COUNT_DOWN_UNLISTED);
        over(d);
        return;
    }
    check_that(d->w, may_plan(d),
               "nobody is ended before it is known what runs, and in which order");
    if (!d->plan.by_kubelet) {
        make_groups(d);
        return;
    }
    count_add(COUNT_DOWN_BY_KUBELET);
    d->plan.state = DW_BY_KUBELET;
}

/* Nobody ends them any more. */
static bool is_left(const struct down_world *d)
{
    return d->plan.state == DW_BY_KUBELET && d->listed && !d->draining && !is_late(d) &&
           d->told_gone_ms != DW_NEVER && d->now_ms >= d->told_gone_ms + LEFT_MS;
}

static void take_over(struct down_world *d)
{
    check_that(d->w, is_left(d), "a kubelet that ends its pods is waited for");
    count_add(COUNT_DOWN_LEFT);
    d->plan.by_kubelet = false;
    make_groups(d);
}

void down_plan_observe(struct down_world *d)
{
    struct dw_plan *plan = &d->plan;
    struct devicemgr_shutdown_view view;
    enum dw_state state;

    devicemgr_shutdown_look(d->core, &view);
    state = find_state(view.state);
    if (plan->state == DW_BEGUN && state != DW_BEGUN && state != DW_NONE)
        leave_begun(d, state);
    if (plan->state == DW_BY_KUBELET &&
        (state == DW_IN_GROUPS || (state == DW_OVER && is_left(d) && has_sandboxes(d))))
        take_over(d);
    follow(d); /* whom it has heard of just now it asks before it looks whether a group is over */
    if (plan->state == DW_IN_GROUPS && state == DW_OVER && is_late(d)) {
        count_add(COUNT_DOWN_LATE);
        over(d);
    } else if (plan->state == DW_IN_GROUPS && state == DW_OVER) {
        move_to(d, plan->groups_len);
    } else if (plan->state == DW_IN_GROUPS && state == DW_IN_GROUPS) {
        move_to(d, view.group - 1);
        check_that(d->w, view.by_priority == plan->by_priority && view.groups == plan->groups_len,
                   "they are ended by priority if the cluster has told it in time");
    } else if (plan->state == DW_BY_KUBELET && state == DW_OVER) {
        check_that(d->w, is_late(d) || !has_sandboxes(d),
                   "a kubelet that ends its pods is waited for");
        over(d);
    } else if (plan->state == DW_OVER && state == DW_NONE &&
               d->now_ms >= plan->over_ms + GIVEN_UP_MS) {
        count_add(COUNT_DOWN_GIVEN_UP);
        d->given_up_ms = plan->since_ms;
        down_plan_end(d);
    }
    check_that(d->w, plan->state == state, "it is as far as it can be: %s, not %s",
               STATES[plan->state], STATES[state]);
    follow(d);
}

/* ---- what must have been done ---- */

bool down_is_being_stopped(const struct down_world *d, const struct dw_pod *pod)
{
    for (size_t i = 0; i < DW_STOPS; i++) {
        if (d->stops[i].op && d->stops[i].uid == pod->uid)
            return true;
    }
    return false;
}

/* The core knows that nothing of it runs. */
static bool is_settled(const struct down_world *d, size_t i)
{
    const struct dw_pod *pod = &d->pods[i];

    return d->plan.parts[i].uid == pod->uid && pod->there && pod->asks[DW_SHUTDOWN] == DW_DUE &&
           pod->shown && !pod->runs && !pod->ready && !pod->create &&
           !down_is_being_stopped(d, pod);
}

static bool group_is_settled(const struct down_world *d)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        const struct dw_part *part = &d->plan.parts[i];

        if (part->uid && (!part->sure || part->group == d->plan.group) && !is_settled(d, i))
            return false;
    }
    return true;
}

void down_plan_judge(struct down_world *d)
{
    const struct dw_plan *plan = &d->plan;

    down_plan_observe(d);
    if (plan->state == DW_NONE)
        return;
    check_that(d->w, plan->state == DW_OVER || !is_late(d),
               "the machine is not held up for longer than it waits");
    check_that(d->w, plan->state != DW_BEGUN || !may_plan(d) || d->draining,
               "what can be begun is begun");
    check_that(d->w, !is_left(d) || !has_sandboxes(d), "what a kubelet has left is ended");
    check_that(d->w, plan->state != DW_OVER || d->now_ms < plan->over_ms + GIVEN_UP_MS,
               "a machine that has not gone down is used again");
    if (plan->state != DW_IN_GROUPS || !d->listed || d->draining)
        return;
    check_that(d->w, d->now_ms < plan->group_ms + plan->groups[plan->group].most_ms,
               "a group has its time and no more: %zu", plan->group);
    check_that(d->w, !group_is_settled(d), "a group whose pods are over is over: %zu", plan->group);
}

/* ---- its beginning and its end ---- */

/* What was sent for it, or has ended by it and was not told yet. */
static void note_goes_on(struct down_world *d, struct dw_pod *pod)
{
    bool goes_on = pod->sent || pod->shown || (pod->goes_on && pod->goes_on == pod->container);

    pod->goes_on = goes_on ? pod->container : 0;
    pod->goes_on_making = goes_on && pod->create != 0;
    pod->must_go_on = pod->asks[DW_SHUTDOWN] == DW_DUE && !pod->was_down && d->listed &&
                      down_stop_of(d, pod->container);
    pod->may_refuse = true;
    if (pod->must_go_on)
        count_add(COUNT_DOWN_GOES_ON);
}

void down_plan_begin(struct down_world *d, uint64_t since_ms, uint64_t limit_ms, bool by_kubelet)
{
    for (size_t i = 0; i < DW_PODS; i++) {
        if (d->pods[i].asks[DW_SHUTDOWN] == DW_NOT_ASKED && down_plan_ends(d, &d->pods[i]))
            note_goes_on(d, &d->pods[i]); /* if it was asked for in the one before, it is still */
    }
    count_add(COUNT_DOWN_BEGUN);
    d->plan = (struct dw_plan){
        .state = DW_BEGUN, .since_ms = since_ms, .limit_ms = limit_ms, .by_kubelet = by_kubelet};
    d->given_up_ms = 0;
}

void down_plan_end(struct down_world *d)
{
    d->known.is = false;
    memset(d->known.uids, 0, sizeof d->known.uids);
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_pod *pod = &d->pods[i];

        if (pod->asks[DW_SHUTDOWN] != DW_NOT_ASKED || down_plan_ends(d, pod))
            note_goes_on(d, pod);
        pod->asks[DW_SHUTDOWN] = DW_NOT_ASKED;
        pod->perhaps = false;
    }
    d->plan = (struct dw_plan){.state = DW_NONE};
}

void down_plan_restored(struct down_world *d)
{
    struct dw_plan *plan = &d->plan;

    d->known.is = false;
    memset(d->known.uids, 0, sizeof d->known.uids);
    d->kubelet_before = false;
    d->told_gone_ms = DW_NEVER;
    d->given_up_ms = 0;
    if (plan->state != DW_NONE)
        count_add(COUNT_DOWN_RESTORED);
    for (size_t i = 0; i < DW_PODS; i++) {
        struct dw_part *part = &plan->parts[i];

        part->is_to_be_asked =
            part->uid && (part->group > plan->group ||
                          (part->group == plan->group && plan->state == DW_IN_GROUPS));
    }
    if (plan->state == DW_NONE || d->off)
        down_plan_end(d);
}
