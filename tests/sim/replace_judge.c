/*
 * What must hold where devices are lost and replaced.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "tests/sim/replace_world.h"
#include "tests/sim/world.h"

unsigned replace_count(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* The container's devices that are in the place of others. */
static unsigned in_place(const struct rw_pod *pod, const struct rw_container *container)
{
    return pod->token ? container->has & ~pod->given : 0;
}

static bool is_live(const struct rw_pod *pod)
{
    return pod->there && !pod->over;
}

/* With what containers of others than this one live. */
static unsigned others_have(const struct replace_world *r, const struct rw_container *but)
{
    unsigned set = 0;

    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; is_live(&r->pods[i]) && k < RW_CONTAINERS; k++) {
            const struct rw_container *container = &r->pods[i].containers[k];

            if (container != but && replace_container_lives(container))
                set |= container->has;
        }
    }
    return set;
}

/* What other pods that are not over have been given, or had last. */
static unsigned others_keep(const struct replace_world *r, const struct rw_pod *but)
{
    unsigned set = 0;

    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];

        if (pod == but || !pod->there)
            continue;
        set |= pod->given;
        for (size_t k = 0; !pod->over && k < RW_CONTAINERS; k++)
            set |= pod->containers[k].has | pod->containers[k].had;
    }
    return set;
}

struct chosen {
    const char *uid;
    unsigned set;
};

static bool add_chosen(void *user, const struct devicemgr_device *device)
{
    struct chosen *chosen = user;
    char quoted[16];

    snprintf(quoted, sizeof quoted, "\"%s\"", device->id);
    for (size_t i = 0; i < device->holders_len; i++) {
        const struct devicemgr_holder *holder = &device->holders[i];

        if (strcmp(holder->pod_uid, chosen->uid) == 0 && strcmp(holder->state, "promised") != 0)
            chosen->set |= replace_named(quoted);
    }
    return true;
}

/* What the shim has for the pod, said or not. */
static unsigned kept_for(const struct replace_world *r, const struct rw_pod *pod)
{
    const struct devicemgr_which which = {.resource = RW_RESOURCE};
    char uid[16];
    struct chosen chosen = {.uid = uid};

    if (!r->core || !is_live(pod))
        return 0;
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    devicemgr_devices(r->core, r->now_ms, &which, add_chosen, &chosen);
    return chosen.set;
}

/* The same for a container that it is asked for, of which it has not said so yet. */
static unsigned chosen_for(const struct replace_world *r, const struct rw_pod *pod)
{
    return pod->containers[pod->at].state == RW_ASKED ? kept_for(r, pod) : 0;
}

static void note_bad(struct replace_world *r)
{
    for (size_t d = 0; d < RW_DEVICES; d++) {
        if (!replace_plugin_serves(r) || (r->said_healthy >> d & 1))
            r->bad_since_ms[d] = 0;
        else if (!r->bad_since_ms[d])
            r->bad_since_ms[d] = r->now_ms;
        if (r->bad_since_ms[d] && r->now_ms - r->bad_since_ms[d] >= RW_AFTER_MS)
            r->lost_ms[d] = r->now_ms;
    }
}

/* What the kubelet has given to other pods, as far as the shim was told, too. */
static unsigned told_to_others(const struct replace_world *r, const struct rw_pod *but)
{
    unsigned set = r->ended;

    for (size_t i = 0; i < RW_PODS; i++)
        set |= &r->pods[i] != but && r->pods[i].there ? r->pods[i].given : 0;
    for (size_t i = 0; i < r->read.len; i++)
        set |= r->read.entries[i].uid != but->uid ? r->read.entries[i].given : 0;
    return set;
}

void replace_judge_disturbed(struct replace_world *r)
{
    unsigned chosen[RW_PODS];

    note_bad(r);
    for (size_t i = 0; i < RW_PODS; i++)
        chosen[i] = chosen_for(r, &r->pods[i]);
    for (size_t i = 0; i < RW_PODS; i++) {
        struct rw_pod *pod = &r->pods[i];
        unsigned set = replace_plugin_serves(r) ? ~r->said_healthy : RW_ALL;
        unsigned of_another = others_have(r, &pod->containers[pod->at]) | others_keep(r, pod) |
                              told_to_others(r, pod);

        for (size_t k = 0; k < RW_PODS; k++)
            of_another |= k != i ? chosen[k] : 0;
        for (size_t d = 0; d < RW_DEVICES; d++) {
            if ((set | of_another) >> d & 1)
                pod->disturbed_ms[d] = r->now_ms;
            if (of_another >> d & 1)
                pod->of_another_ms[d] = r->now_ms;
        }
    }
}

/* Whether the container may have had to give up what it had, to others: since it ended, they may
 * have taken it, and be over by now. */
static bool is_yielded(const struct rw_pod *pod, const struct rw_container *container)
{
    bool yielded = container->unsure;

    for (size_t d = 0; d < RW_DEVICES; d++)
        yielded =
            yielded || ((container->had >> d & 1) && pod->of_another_ms[d] >= container->ended_ms);
    return yielded;
}

bool replace_judge_unsure(const struct rw_pod *pod, const struct rw_container *container)
{
    return container->called || is_yielded(pod, container);
}

/* ---- what is made ---- */

static void count(const struct replace_world *r, const struct rw_pod *pod,
                  const struct rw_container *container)
{
    unsigned in = in_place(pod, container), had = container->had;

    if (pod->token && in && in != (had & ~pod->given))
        count_add(COUNT_REPLACE_TOLD);
    if (in && (container->has & pod->given))
        count_add(COUNT_REPLACE_SOME);
    if (in && pod->init && pod->at == 1)
        count_add(COUNT_REPLACE_BEHIND_INIT);
    if (in && had && (had & ~pod->given) && had != container->has)
        count_add(COUNT_REPLACE_AGAIN);
    if (!pod->token && had && had != container->has)
        count_add(COUNT_REPLACE_CHOSEN);
    if (in && in == (had & ~pod->given) && (pod->given & ~container->has & r->said_healthy))
        count_add(COUNT_REPLACE_BACK);
    if (in && (pod->given & ~container->has & others_have(r, container)))
        count_add(COUNT_REPLACE_TWO);
}

static void check_kept(const struct replace_world *r, const struct rw_pod *pod,
                       const struct rw_container *container)
{
    unsigned before = is_yielded(pod, container) ? 0 : container->had;

    for (size_t d = 0; d < RW_DEVICES; d++) {
        unsigned bit = 1u << d;

        check_that(
            r->w, !(before & ~container->has & bit) || pod->disturbed_ms[d] >= container->asked_ms,
            "what a container had, and is not lost, it keeps: u%u is made with %02x, not %02x",
            pod->uid, container->has, before);
        check_that(r->w, !(before & ~container->has & bit) || r->lost_ms[d] >= container->asked_ms,
                   "nothing is lost before its time: u%u is made with %02x, not %02x", pod->uid,
                   container->has, before);
    }
}

/* Whether the shim was told before the create that the kubelet had given any of it to another. What
 * that has others in the place of need not be given up by who has it. */
static bool is_anothers(const struct replace_world *r, const struct rw_pod *pod,
                        const struct rw_container *container, unsigned set)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *other = &r->pods[i];
        const struct rw_container *next = &other->containers[other->at];
        unsigned kept = next->unsure ? kept_for(r, other) : chosen_for(r, other);
        unsigned keeps = !container->unsure ? RW_ALL : kept ? kept : next->had;

        if (other != pod && is_live(other) && other->read && !other->in_flight &&
            other->read_ms < container->asked_ms && (other->given & keeps & set))
            return true;
    }
    return false;
}

void replace_judge_forward(struct replace_world *r, struct rw_pod *pod,
                           struct rw_container *container)
{
    unsigned had = container->unsure ? 0 : container->had;
    unsigned added = in_place(pod, container) & ~had;

    count(r, pod, container);
    check_that(r->w, replace_count(container->has) == pod->want,
               "a container gets as many devices as it wants: %02x", container->has);
    check_that(r->w, replace_plugin_serves(r) && !(container->has & ~r->said_healthy),
               "a container gets devices that are there, and well: %02x of %02x", container->has,
               r->said_healthy);
    check_that(r->w, container->says == container->has,
               "a container says which devices it has: %02x, not %02x", container->says,
               container->has);
    check_that(r->w,
               !pod->token ||
                   container->says_asked == (container->has == pod->given ? 0 : pod->given),
               "and in the place of which: %02x, not %02x", container->says_asked, pod->given);
    check_kept(r, pod, container);
    check_that(r->w,
               container->lost ||
                   !(added & r->kubelet_healthy & ~r->kubelet_owed & ~told_to_others(r, pod)),
               "nothing is in the place of another that the kubelet may give away: %02x", added);
    if (!pod->token)
        added = container->has & ~had;
    check_that(r->w, container->lost || !added || !is_anothers(r, pod, container, added),
               "nothing is chosen that the kubelet has given to another pod: %02x", added);
}

/* The other container that a refusal says to have a device, if others are in the place of what it
 * was given: those. */
static unsigned named_in_place(const struct replace_world *r, const struct rw_pod *but,
                               const char *message)
{
    const char *held = strstr(message, "is held by");
    unsigned set = 0;
    char holder[64], name[8];

    for (size_t i = 0; held && i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];

        for (size_t k = 0; pod != but && is_live(pod) && k < RW_CONTAINERS; k++) {
            replace_container_name(k, name);
            snprintf(holder, sizeof holder, "container \"%s\" of pod \"ns/u%u\"", name, pod->uid);
            set |= strstr(held, holder) ? in_place(pod, &pod->containers[k]) : 0;
        }
    }
    return set;
}

/* Another container may be about to be made, and to have what looks free. */
static bool another_waits(const struct replace_world *r, const struct rw_pod *but)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];

        if (pod != but && is_live(pod) && !replace_container_lives(&pod->containers[pod->at]))
            return true;
    }
    return false;
}

/* Whether a container has ended, say, is not known since the shim's start, or since a pod went. */
static bool waits_for_list(const struct replace_world *r)
{
    return r->list_wanted || r->listing;
}

void replace_judge_refused(struct replace_world *r, const struct rw_pod *pod,
                           const struct rw_container *container, const char *message)
{
    unsigned free = r->said_healthy & ~others_have(r, container) & ~others_keep(r, pod) &
                    ~told_to_others(r, pod);

    if (strstr(message, "once the kubelet gives them to nobody"))
        count_add(COUNT_REPLACE_WAITED);
    if (strstr(message, "which still runs"))
        check_that(r->w,
                   another_waits(r, pod) || waits_for_list(r) ||
                       !(pod->given & named_in_place(r, pod, message)) ||
                       replace_count(free) < pod->want,
                   "who was given what is in another's place is not refused for it: u%u, free %02x",
                   pod->uid, free);
    if (!strstr(message, "no other is free"))
        return;
    count_add(COUNT_REPLACE_NO_OTHER);
    check_that(r->w, another_waits(r, pod) || waits_for_list(r) || replace_count(free) < pod->want,
               "who is told that no other device is free could have none: u%u, free %02x", pod->uid,
               free);
}

/* ---- at any time ---- */

static void check_shared(const struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        for (size_t k = 0; is_live(&r->pods[i]) && k < RW_CONTAINERS; k++) {
            const struct rw_container *container = &r->pods[i].containers[k];

            check_that(r->w,
                       !replace_container_lives(container) ||
                           !(container->has & others_have(r, container)),
                       "no device is in two containers, be it in the place of another: %02x of u%u",
                       container->has, r->pods[i].uid);
        }
    }
}

/* Whether the shim must know what the kubelet has given to the pod. */
static bool is_told(const struct rw_pod *pod)
{
    bool told = pod->read;

    for (size_t k = 0; k < RW_CONTAINERS; k++)
        told = told || (pod->containers[k].known && replace_container_lives(&pod->containers[k]));
    return told && pod->in_books;
}

static void check_shown(const struct replace_world *r, const struct rw_pod *pod)
{
    for (size_t k = 0; k < RW_CONTAINERS; k++) {
        const struct rw_container *container = &pod->containers[k];
        unsigned in = in_place(pod, container) & ~told_to_others(r, pod);

        check_that(r->w,
                   !container->known || !replace_container_lives(container) ||
                       !(in & r->shown_healthy),
                   "what is in the place of another the kubelet is not offered: %02x of u%u", in,
                   pod->uid);
    }
    check_that(r->w, !is_told(pod) || !(pod->given & r->shown & ~r->shown_held),
               "what was asked for stays the pod's to the kubelet: %02x of u%u", pod->given,
               pod->uid);
}

void replace_judge(struct replace_world *r)
{
    check_shared(r);
    for (size_t i = 0; i < RW_PODS; i++) {
        if (is_live(&r->pods[i]) && r->pods[i].token && !r->pods[i].in_flight)
            check_shown(r, &r->pods[i]);
    }
}

/* It admits all its pods again, and fails those whose devices are not there. */
void replace_judge_first_list(struct replace_world *r)
{
    if (r->now_ms >= r->kubelet_started_ms + RW_MASK_MS)
        return;
    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];

        check_that(
            r->w,
            !is_live(pod) || !pod->read || pod->in_flight || !(pod->given & ~r->shown_healthy),
            "a kubelet that starts finds what it has given to its pods: %02x of u%u, not %02x",
            pod->given, pod->uid, r->shown_healthy);
    }
}

/* ---- in the end ---- */

void replace_judge_end(struct replace_world *r)
{
    for (size_t i = 0; i < RW_PODS; i++) {
        const struct rw_pod *pod = &r->pods[i];
        const struct rw_container *container = &pod->containers[1];

        if (!is_live(pod))
            continue;
        check_that(r->w, container->state == RW_RUNS,
                   "who has lost devices runs with others in the end: u%u", pod->uid);
        if (in_place(pod, container))
            count_add(COUNT_REPLACE_RUNS);
    }
}

static bool put(void *user, const struct devicemgr_device *device)
{
    unsigned *set = user;
    char quoted[16];

    snprintf(quoted, sizeof quoted, "\"%s\"", device->id);
    if (device->free)
        *set |= replace_named(quoted);
    return true;
}

void replace_judge_empty(struct replace_world *r)
{
    const struct devicemgr_which which = {.resource = RW_RESOURCE};
    unsigned free = 0;

    devicemgr_devices(r->core, r->now_ms, &which, put, &free);
    check_that(r->w, free == r->said_healthy,
               "all devices are free once all pods have ended: %02x of %02x", free,
               r->said_healthy);
    check_that(r->w, r->shown_healthy == r->said_healthy && r->shown_held == 0,
               "and the kubelet may give them away: %02x", r->shown_healthy);
    for (const struct row *row = r->rows; row; row = row->next)
        check_that(r->w, row->kind != DEVICEMGR_RECORD_ALLOCATION,
                   "and no row says that anybody has any of them: %s", row->key[0]);
}
