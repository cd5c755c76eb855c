/*
 * Pods that have devices of lifted resources, by claims, or as the kubelet gave them away before.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define OLD_PERCENT 30
#define BY_CLAIMS_PERCENT 65
#define SECOND_PERCENT 35
#define STOPS_ON_PERCENT 88
#define FORCED_PERCENT 75

bool lift_pod_by_claims(const struct lw_pod *pod)
{
    return pod->claims_len > 0;
}

/* An extended claim is of one container of its pod. */
static bool names_claim(const struct lift_world *h, size_t claim, size_t container)
{
    return container == 0 || !h->claims[claim].extended;
}

static bool has_already(const struct lw_had *had, size_t len, const struct lw_result *result)
{
    for (size_t i = 0; i < len; i++) {
        if (had[i].resource == result->resource && had[i].device == result->device)
            return true;
    }
    return false;
}

/* Each device once, however many claims have it. */
size_t lift_pod_had(const struct lift_world *h, const struct lw_pod *pod, size_t container,
                    struct lw_had had[LW_HAD])
{
    size_t len = 0;

    for (size_t i = 0; i < pod->devices_len; i++)
        had[len++] = (struct lw_had){pod->resource, pod->devices[i], LW_NO_CLAIM};
    for (size_t i = 0; i < pod->claims_len; i++) {
        const struct lw_claim *claim = &h->claims[pod->claims[i]];

        for (size_t k = 0; names_claim(h, pod->claims[i], container) && k < claim->results_len;
             k++) {
            const struct lw_result *result = &claim->results[k];

            if (!has_already(had, len, result))
                had[len++] = (struct lw_had){result->resource, result->device, pod->claims[i]};
        }
    }
    return len;
}

bool lift_pod_runs(const struct lw_pod *pod)
{
    for (size_t i = 0; i < pod->containers_len; i++) {
        if (pod->containers[i].state != LW_RUNS)
            return false;
    }
    return true;
}

static bool has(const struct lw_pod *pod, size_t claim)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        if (pod->claims[i] == claim)
            return true;
    }
    return false;
}

/* Another pod has the claim, that is not deleted (`any`: or is). */
static bool others_have(const struct lift_world *h, const struct lw_pod *pod, size_t claim,
                        bool any)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *other = &h->pods[i];

        if (other->there && other != pod && has(other, claim) && (any || !other->deleting))
            return true;
    }
    return false;
}

/* ---- one step of a pod ---- */

/* Whether the kubelet remembers all its claims as prepared; else it asks. */
static bool prepare(struct lift_world *h, const struct lw_pod *pod)
{
    bool done = true;

    for (size_t i = 0; i < pod->claims_len && !*h->w->broken; i++) {
        if (!h->claims[pod->claims[i]].prepared)
            lift_ask(h, pod->claims[i], true);
        done = done && h->claims[pod->claims[i]].prepared;
    }
    return done;
}

/* Whether the claims of which it is the last are unprepared. */
static bool unprepare(struct lift_world *h, const struct lw_pod *pod)
{
    bool done = true;

    for (size_t i = 0; i < pod->claims_len && !*h->w->broken; i++) {
        struct lw_claim *claim = &h->claims[pod->claims[i]];

        if (others_have(h, pod, pod->claims[i], true))
            continue;
        if (claim->life == LW_WANTED) {
            lift_give_up(h, pod->claims[i]);
            claim->life = claim->in_books ? LW_LEAVING : LW_GONE;
            claim->allocated = claim->allocated && claim->in_books;
        }
        if (claim->life == LW_LEAVING)
            lift_ask(h, pod->claims[i], false);
        done = done && claim->life == LW_GONE;
    }
    return done;
}

static bool is_asked(const struct lw_pod *pod)
{
    for (size_t i = 0; i < pod->containers_len; i++) {
        if (pod->containers[i].state == LW_ASKED || pod->containers[i].state == LW_COMES)
            return true;
    }
    return false;
}

/* Its containers, one after the other. */
static void make_containers(struct lift_world *h, struct lw_pod *pod)
{
    for (size_t i = 0; i < pod->containers_len; i++) {
        const struct lw_container *container = &pod->containers[i];

        if (container->state != LW_NOTHING && container->state != LW_EXITED)
            continue;
        if (h->now_ms < container->retry_ms)
            continue;
        lift_container_asked(h, pod, i);
        return;
    }
}

void lift_pod_proceeds(struct lift_world *h, struct lw_pod *pod)
{
    if (!pod->there || is_asked(pod))
        return;
    if (pod->deleting) {
        if (pod->sandbox && !h->calm && rng_percent(&h->rng, STOPS_ON_PERCENT))
            return; /* it has its grace period yet */
        lift_sandbox_ends(h, pod);
        if (!*h->w->broken && unprepare(h, pod))
            pod->there = false;
        return;
    }
    if (pod->sandbox && !pod->ready)
        lift_sandbox_ends(h, pod);
    else if (!pod->sandbox && prepare(h, pod))
        lift_sandbox_runs(h, pod);
    else if (pod->sandbox)
        make_containers(h, pod);
}

/* ---- they come and go ---- */

/* One that some pod has, to be shared; or a new one. */
static size_t pick_claim(struct lift_world *h)
{
    size_t claim;

    if (h->claims_len == 0 || !rng_percent(&h->rng, OLD_PERCENT))
        return lift_claim_new(h);
    claim = rng_below(&h->rng, h->claims_len);
    return h->claims[claim].life == LW_WANTED && h->claims[claim].allocated &&
                   !h->claims[claim].extended
               ? claim
               : LW_CLAIMS;
}

static bool add_claims(struct lift_world *h, struct lw_pod *pod)
{
    for (uint64_t left = rng_between(&h->rng, 1, LW_POD_CLAIMS); left > 0; left--) {
        size_t claim = pick_claim(h);

        if (claim < LW_CLAIMS && !has(pod, claim))
            pod->claims[pod->claims_len++] = claim;
    }
    return pod->claims_len > 0;
}

void lift_pod_comes(struct lift_world *h)
{
    struct lw_pod pod = {.there = true, .uid = h->last_uid + 1, .containers_len = 1};
    size_t slot = 0;
    bool by_claims = rng_percent(&h->rng, BY_CLAIMS_PERCENT);

    while (slot < LW_PODS && h->pods[slot].there)
        slot++;
    if (slot == LW_PODS || !(by_claims ? add_claims(h, &pod) : lift_kubelet_gives(h, &pod)))
        return;
    if (by_claims && !h->claims[pod.claims[0]].extended && rng_percent(&h->rng, SECOND_PERCENT))
        pod.containers_len = 2;
    h->last_uid++;
    h->pods[slot] = pod;
    lift_note(
        h, "pod u%u comes, with %zu claims from c%zu on, %zu devices of resource %zu from %zu on",
        pod.uid, pod.claims_len, pod.claims[0], pod.devices_len, pod.resource, pod.devices[0]);
    count_add(by_claims ? COUNT_LIFT_PODS : COUNT_LIFT_PODS_BEFORE);
}

void lift_pod_deleted(struct lift_world *h, struct lw_pod *pod, bool forced)
{
    pod->deleting = true;
    lift_note(h, "pod u%u is deleted%s", pod->uid, forced ? " by force" : "");
    for (size_t i = 0; forced && i < pod->claims_len; i++) {
        if (!others_have(h, pod, pod->claims[i], false))
            lift_claim_deallocated(h, pod->claims[i]);
    }
    if (forced && lift_pod_by_claims(pod))
        lift_pod_comes(h); /* which may be given what that has */
}

void lift_pod_trouble(struct lift_world *h, struct lw_pod *pod)
{
    size_t container = rng_below(&h->rng, LW_CONTAINERS);

    if (!pod->there)
        return;
    switch (rng_below(&h->rng, 6)) {
    case 0:
    case 1:
        if (pod->containers[container].state == LW_RUNS)
            lift_container_exits(h, pod, container, rng_percent(&h->rng, 60));
        break;
    case 2: /* it dies, and nobody is told */
        if (is_asked(pod))
            break;
        for (size_t i = 0; i < pod->containers_len; i++) {
            if (pod->containers[i].state == LW_RUNS)
                lift_container_exits(h, pod, i, false);
        }
        pod->ready = false;
        break;
    default:
        if (!pod->deleting && (lift_pod_runs(pod) || rng_percent(&h->rng, 20)))
            lift_pod_deleted(h, pod, rng_percent(&h->rng, FORCED_PERCENT));
        break;
    }
}
