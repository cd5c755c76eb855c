/*
 * The properties of the world of taints.
 */
#include <inttypes.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/taints.h"
#include "tests/sim/taint_world.h"

#define CODE_UNAVAILABLE 14
#define CODE_RESOURCE_EXHAUSTED 8
#define CODE_FAILED_PRECONDITION 9
#define GRACE_MS_MIN 1000

/* Both are given as they are, and the shim knows of the second one as well. */
static bool is_wanted(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->ended.is ||
           (pod->evicted.is && (taint_may_ms(t, pod) <= t->now_ms || taint_pending(t, pod)));
}

/* ---- how many within a minute ---- */

static size_t asked_of_late(const struct taint_world *t, size_t from)
{
    size_t len = 0;

    for (size_t i = t->asked_len; i > from && i + TW_ASKS > t->asked_len; i--)
        len += t->asked_ms[(i - 1) % TW_ASKS] + TW_MINUTE_MS > t->now_ms;
    return len;
}

/* Of what was asked for in an earlier life that counts which was stored, and whose pod is there:
 * not before it is certain that it does, and no longer than it may. */
static bool is_full(const struct taint_world *t)
{
    return t->per_minute > 0 && asked_of_late(t, t->asked_before) >= t->per_minute;
}

static bool may_be_full(const struct taint_world *t)
{
    return t->per_minute > 0 && asked_of_late(t, 0) >= t->per_minute;
}

/* ---- an eviction is asked for ---- */

static void check_turn(struct taint_world *t, const struct tw_pod *pod)
{
    uint64_t may_ms = taint_may_ms(t, pod);

    for (size_t i = 0; i < TW_PODS; i++) {
        const struct tw_pod *other = &t->pods[i];

        check_that(t->w, other == pod || other->evicted.is || taint_must_ms(t, other) >= may_ms,
                   "who has been due for longest goes first: pod u%u, due at %" PRIu64
                   ", not u%u, due at %" PRIu64,
                   other->uid, taint_must_ms(t, other), pod->uid, may_ms);
    }
}

static size_t most_by_health(size_t resource)
{
    size_t quarter = taint_resource_devices(resource) / 4;

    return quarter > 0 ? quarter : 1;
}

static void note_emptied(struct taint_world *t, const struct tw_pod *pod)
{
    struct tw_plugin *plugin = &t->plugins[pod->resource];

    count_add(COUNT_TAINT_BY_HEALTH);
    if (!plugin->closed || pod->kind != TW_TOKEN || __builtin_popcount(pod->mask) > 1)
        return;
    plugin->emptied |= pod->mask;
    check_that(t->w, (size_t)__builtin_popcount(plugin->emptied) <= most_by_health(pod->resource),
               "of more that are unhealthy no others are emptied one after the other: %x",
               plugin->emptied);
}

void taint_judge_counts(struct taint_world *t)
{
    t->asked_ms[t->asked_len++ % TW_ASKS] = t->now_ms;
}

static void count_claim(const struct taint_world *t, const struct tw_pod *pod)
{
    bool told = taint_is_told_to_have(t, pod);

    count_add(COUNT_TAINT_CLAIM_ASKED);
    if (taint_may_besides_cluster_ms(t, pod) > t->now_ms)
        count_add(COUNT_TAINT_EXTENDED);
    if (!told)
        count_add(COUNT_TAINT_BY_CONTAINER);
    else if (!pod->user)
        count_add(COUNT_TAINT_BY_RESERVATION);
}

void taint_judge_asked(struct taint_world *t, struct tw_pod *pod, const char *why)
{
    taint_note(t, "pod u%u is to be evicted: %s", pod->uid, why);
    check_that(t->w, taint_may_ms(t, pod) <= t->now_ms,
               "who is evicted has a device whose taint it does not tolerate (any more): u%u, %s",
               pod->uid, why);
    check_that(t->w, !taint_is_doubted(t, pod),
               "nobody is to go by the word of an agent that has gone: u%u", pod->uid);
    check_that(t->w, !pod->evicted.is || pod->unsure.is, "each pod is evicted once: u%u", pod->uid);
    check_that(t->w, strstr(why, "NoExecute") && strstr(why, taint_resource_name(pod->resource)),
               "it is said for which device: %s", why);
    check_that(t->w, !is_full(t), "no more go within a minute than the settings say: %u",
               t->per_minute);
    if (t->per_minute > 0)
        check_turn(t, pod);
    count_add(COUNT_TAINT_ASKED);
    if (pod->kind == TW_CLAIM)
        count_claim(t, pod);
    pod->by_health = pod->kind != TW_CLAIM && taint_may_besides_health_ms(t, pod) > t->now_ms;
    if (pod->by_health)
        note_emptied(t, pod);
    if (pod->tolerations_len > 0)
        count_add(COUNT_TAINT_TOLERATED_FOR_A_TIME);
    if (pod->unsure.is) /* what was sent for the sandbox before is over with it */
        pod->sent = pod->accepted = false;
    pod->evicted.is = true;
    pod->unsure.is = false;
    pod->asked_ms = t->now_ms;
    pod->unasked_ms = 0;
    taint_judge_counts(t);
}

static void call_off(struct tw_pod *pod)
{
    count_add(COUNT_TAINT_CALLED_OFF);
    pod->evicted.is = false;
    pod->accepted = pod->accepted && pod->ended.is; /* another one is another order */
}

void taint_judge_spared(struct taint_world *t, struct tw_pod *pod)
{
    taint_note(t, "pod u%u is not to be evicted any more", pod->uid);
    count_add(COUNT_TAINT_SPARED);
    check_that(t->w, taint_must_ms(t, pod) > t->now_ms, "nobody is let go who is to go: u%u",
               pod->uid);
    check_that(t->w, !pod->adopted || pod->confirmed || pod->unsure.is || !taint_facts_untold(t),
               "nobody is let go before it is known what he was to go for: u%u", pod->uid);
    if (pod->kind == TW_CLAIM) /* who has a claim the shim may not be told any more */
        call_off(pod);
}

/* ---- its end ---- */

void taint_judge_stop(struct taint_world *t, const struct tw_pod *pod, uint64_t grace_ms)
{
    uint64_t most_ms = pod->grace_ms < GRACE_MS_MIN ? GRACE_MS_MIN : pod->grace_ms;

    count_add(COUNT_TAINT_STOPPED);
    check_that(t->w, is_wanted(t, pod), "only containers of pods that are to end are stopped: u%u",
               pod->uid);
    if (!pod->evicted.is || (pod->ended.is && pod->end_grace_ms > most_ms))
        most_ms = pod->end_grace_ms; /* what is under way is not made shorter by the pod's own */
    check_that(t->w, grace_ms >= GRACE_MS_MIN && grace_ms <= most_ms,
               "who is evicted has no more than its own grace: %" PRIu64 " of %" PRIu64 " ms",
               grace_ms, most_ms);
}

void taint_judge_order(struct taint_world *t, const struct tw_pod *pod,
                       const struct devicemgr_eviction *eviction)
{
    uint64_t after_ms = TW_FORCE_AFTER_MS + pod->unasked_ms;

    check_that(t->w, is_wanted(t, pod), "only pods that are to end are evicted: u%u", pod->uid);
    check_that(t->w, pod->ended.is || !taint_is_doubted(t, pod),
               "none is evicted by the word of an agent that has gone: u%u", pod->uid);
    check_that(t->w, !pod->is_static, "a static pod is none that the API server can evict");
    check_that(t->w, !pod->order, "one order for a pod is under way");
    /* with its sandbox its end may be over to the shim, which an operator may ask for anew */
    check_that(t->w, !pod->accepted || pod->unsure.is || (pod->ended.is && !pod->ready),
               "a pod that was deleted is not evicted again: u%u", pod->uid);
    check_that(t->w, pod->ended.is || eviction->own_grace, "who is evicted has its own grace");
    if (!eviction->forced)
        return;
    count_add(COUNT_TAINT_FORCED);
    check_that(t->w,
               t->force && ((pod->evicted.is && t->now_ms >= pod->asked_ms + after_ms) ||
                            (pod->ended.is && t->now_ms >= pod->ended_ms + after_ms)),
               "disruption budgets are kept to as long as the settings say");
}

/* ---- creates ---- */

static unsigned unhealthy(const struct taint_world *t, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < taint_resource_devices(resource); i++)
        mask |= t->plugins[resource].devices[i].said_healthy ? 0 : 1u << i;
    return mask;
}

/* What is in the way of any container of it, taints aside. */
static bool is_excused(const struct taint_world *t, const struct tw_pod *pod)
{
    if (pod->kind == TW_CLAIM)
        return !pod->prepared || !pod->ready || t->store_fails;
    return !t->listed || t->store_fails || !pod->ready || !t->plugins[pod->resource].endpoint ||
           (pod->mask & unhealthy(t, pod->resource)) != 0;
}

/* An annotation is given what is free, healthy and untainted, and waits for that. */
static bool may_have_too_few(const struct taint_world *t, const struct tw_pod *pod)
{
    bool taken = !t->untainted;

    for (size_t i = 0; i < taint_resource_devices(pod->resource); i++)
        taken = taken || taint_may_keep_back(t, pod->resource, i);
    return pod->kind == TW_REQUEST && (taken || is_excused(t, pod));
}

void taint_judge_refused(struct taint_world *t, const struct tw_pod *pod, int code,
                         const char *message)
{
    taint_note(t, "create of u%u is refused %d: %s", pod->uid, code, message);
    if (strstr(message, "is ended on this node")) {
        count_add(COUNT_TAINT_REFUSED_ENDED);
        check_that(t->w, code == CODE_FAILED_PRECONDITION && (pod->evicted.is || pod->ended.is),
                   "only of pods that are to end no container is made: u%u", pod->uid);
    } else if (code == CODE_FAILED_PRECONDITION && strstr(message, "tainted")) {
        count_add(COUNT_TAINT_REFUSED);
        if (pod->kind == TW_CLAIM)
            count_add(COUNT_TAINT_CLAIM_REFUSED);
        check_that(t->w,
                   strstr(message, ":NoExecute") &&
                       taint_may_have(t, pod, pod->kind == TW_REQUEST ? UINT32_MAX : pod->mask,
                                      TW_NO_EXECUTE),
                   "a container is refused only for a NoExecute that its pod does not tolerate: "
                   "u%u: %s",
                   pod->uid, message);
    } else {
        check_that(t->w, is_excused(t, pod) || may_have_too_few(t, pod),
                   "a container of others goes on: u%u: %s", pod->uid, message);
    }
}

void taint_judge_forwarded(struct taint_world *t, const struct tw_pod *pod, unsigned mask)
{
    taint_note(t, "create of u%u is forwarded with %x", pod->uid, mask);
    count_add(pod->kind == TW_CLAIM ? COUNT_TAINT_CLAIM_MADE : COUNT_TAINT_MADE);
    check_that(t->w, mask && (pod->kind == TW_REQUEST || mask == pod->mask),
               "a container gets what it was given");
    check_that(t->w,
               pod->kind == TW_CLAIM ? !pod->no_execute
                                     : !taint_must_have(t, pod, mask, TW_NO_EXECUTE),
               "no container is made with a device that is NoExecute to its pod: u%u", pod->uid);
    check_that(t->w, !((pod->sent || pod->accepted) && !pod->unsure.is && is_wanted(t, pod)),
               "none is made of a pod that is being ended: u%u", pod->uid);
    check_that(t->w,
               pod->kind != TW_REQUEST || pod->first_create < t->tainted ||
                   !taint_must_have(t, pod, mask & ~pod->mask, TW_NO_SCHEDULE),
               "nobody new is given a device that is NoSchedule to it: u%u", pod->uid);
    if (taint_must_have(t, pod, mask, TW_NO_SCHEDULE))
        count_add(COUNT_TAINT_KEPT);
}

/* ---- after each run ---- */

static bool has_stops(const struct taint_world *t, const struct tw_pod *pod)
{
    for (size_t i = 0; i < TW_STOPS; i++) {
        if (t->stops[i].op && t->stops[i].uid == pod->uid)
            return true;
    }
    return false;
}

/* What an earlier life has asked for it may be to go still, as far as this one can know. */
static bool may_be_still(const struct taint_world *t, const struct tw_pod *pod)
{
    if (!pod->adopted || !taint_facts_untold(t))
        return false;
    count_add(COUNT_TAINT_KEPT_UNTOLD);
    return true;
}

void taint_judge_settle(struct taint_world *t, struct tw_pod *pod)
{
    pod->adopted = pod->adopted && (!t->listed || taint_must_ms(t, pod) > t->now_ms);
    pod->confirmed = pod->confirmed ||
                     (t->listed && taint_may_ms(t, pod) <= t->now_ms && !taint_is_doubted(t, pod));
    if (t->listed && pod->evicted.is && taint_may_ms(t, pod) > t->now_ms &&
        !taint_pending(t, pod) && !may_be_still(t, pod)) {
        call_off(pod);
    }
    if (!pod->ready || taint_pending(t, pod) || taint_may_by_known_ms(t, pod) > t->now_ms ||
        (taint_may_besides_health_by_known_ms(t, pod) > t->now_ms &&
         taint_must_ms(t, pod) > t->now_ms))
        pod->unsure.is = pod->evicted.is;
}

/* What nobody wants any more is taken back. */
static void check_taken_back(struct taint_world *t, struct tw_pod *pod)
{
    taint_judge_settle(t, pod);
    if (pod->evicted.is || pod->ended.is)
        return;
    pod->sent = pod->unsure.is = false;
    pod->unasked_ms = 0;
    check_that(t->w, !pod->order, "an eviction ends with its taint: u%u", pod->uid);
    check_that(t->w, !has_stops(t, pod), "and so does what is being stopped: u%u", pod->uid);
}

static void check_nobody_forgotten(struct taint_world *t, const struct tw_pod *pod)
{
    uint64_t must_ms = taint_must_ms(t, pod);

    if (!t->listed || must_ms > t->now_ms || pod->evicted.is)
        return;
    if (is_full(t))
        count_add(COUNT_TAINT_WAITS);
    check_that(t->w, may_be_full(t),
               "who is due goes at once, or in its turn: u%u, due at %" PRIu64, pod->uid, must_ms);
}

/* Of devices that are unhealthy at most a quarter makes pods go, and at least one. Who was asked to
 * go for that may be to go for another taint by now, while its device is healthy again; or, if that
 * was before the shim's start, for none. */
static void check_quarter(struct taint_world *t)
{
    unsigned gone[TW_RESOURCES] = {0};

    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (!pod->there)
            continue;
        pod->by_health = pod->by_health && taint_may_besides_health_ms(t, pod) > t->now_ms;
        if (pod->evicted.is && pod->by_health && pod->kind == TW_TOKEN &&
            (!pod->adopted || pod->confirmed) && __builtin_popcount(pod->mask) == 1)
            gone[pod->resource] |= pod->mask;
    }
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        check_that(t->w, (size_t)__builtin_popcount(gone[r]) <= most_by_health(r),
                   "health empties no more than a quarter: devices %x of resource %zu", gone[r], r);
    }
}

static bool add_acting(void *user, const struct devicemgr_taint_row *row)
{
    unsigned *acting = user;

    if (strcmp(row->source, "health") == 0 && strcmp(row->effect, "NoExecute") == 0)
        *acting |= taint_device_mask(&row->id, 1);
    return true;
}

static void check_closed(const struct taint_world *t, size_t resource, struct tw_plugin *plugin,
                         bool anew)
{
    const struct devicemgr_which which = {.resource = taint_resource_name(resource)};
    unsigned acting = 0;

    devicemgr_taints(t->core, t->now_ms, &which, add_acting, &acting);
    check_that(t->w, anew || !(acting & ~plugin->acting),
               "of more that are unhealthy no others are given up: %x, not %x of resource %zu",
               acting, plugin->acting, resource);
    plugin->acting = acting;
}

/* More than a quarter is unhealthy for so long: it stays with those until none is. */
static void note_closed(const struct taint_world *t, size_t resource, struct tw_plugin *plugin)
{
    bool closed = plugin->closed;
    size_t waiting = 0;

    for (size_t i = 0; i < taint_resource_devices(resource); i++)
        waiting += plugin->devices[i].waits && !plugin->devices[i].said_healthy;
    if (waiting == 0)
        plugin->closed = false;
    if (!plugin->closed && taint_plugin_closes(t, resource)) {
        plugin->closed = true;
        plugin->emptied = 0;
    }
    if (plugin->closed)
        check_closed(t, resource, plugin, !closed);
}

static void check_stops(struct taint_world *t)
{
    for (size_t i = 0; i < TW_STOPS; i++) {
        for (size_t k = 0; t->stops[i].op && k < i; k++)
            check_that(t->w, !t->stops[k].op || t->stops[i].container != t->stops[k].container,
                       "one StopContainer of a container is under way");
    }
}

/* Who is nobody's to evict here, though a device of his claim is NoExecute: not yet, or not at
 * all. */
static void count_left(const struct taint_world *t, const struct tw_pod *pod)
{
    const struct tw_claim *claim = &t->claims[pod->claim];

    if (pod->kind != TW_CLAIM || pod->evicted.is || !pod->known ||
        !taint_may_have(t, pod, pod->mask, TW_NO_EXECUTE))
        return;
    if (t->cluster && !claim->told)
        count_add(COUNT_TAINT_UNTOLD);
    else if (taint_may_ms(t, pod) > t->now_ms)
        count_add(COUNT_TAINT_LEFT);
}

void taint_judge(struct taint_world *t)
{
    taint_plugins_age(t);
    for (size_t i = 0; i < TW_PODS; i++) {
        if (!t->pods[i].there)
            continue;
        count_left(t, &t->pods[i]);
        if (t->pods[i].evicted.is && taint_is_doubted(t, &t->pods[i])) {
            count_add(COUNT_TAINT_DOUBTED);
            check_that(t->w,
                       !t->pods[i].order || t->pods[i].ended.is || taint_pending(t, &t->pods[i]),
                       "what it has told is not sent on: u%u", t->pods[i].uid);
        }
        check_taken_back(t, &t->pods[i]);
        check_nobody_forgotten(t, &t->pods[i]);
    }
    check_quarter(t);
    check_stops(t);
    for (size_t r = 0; r < TW_RESOURCES; r++)
        note_closed(t, r, &t->plugins[r]);
}

/* ---- what the kubelet is shown ---- */

struct seen {
    struct taint_world *t;
    size_t resource;
};

static void see(void *user, const struct devicemgr_shown_device *device)
{
    const struct seen *seen = user;
    struct taint_world *t = seen->t;
    unsigned mask = taint_device_mask(&device->id, 1);
    size_t number = (size_t)__builtin_ctz(mask);
    const struct tw_plugin *plugin = &t->plugins[seen->resource];

    check_that(t->w, !taint_must_keep_back(t, seen->resource, number) || !device->healthy,
               "the kubelet sees a device that is tainted as unhealthy: %s", device->id);
    check_that(t->w,
               device->healthy || taint_may_keep_back(t, seen->resource, number) ||
                   !plugin->devices[number].said_healthy || !plugin->endpoint ||
                   taint_resource_exclusive(seen->resource),
               "and one that is not as it is: %s", device->id);
}

void taint_judge_shown(struct taint_world *t)
{
    for (size_t r = 0; r < TW_RESOURCES; r++) {
        struct seen seen = {t, r};

        devicemgr_shown_devices(t->core, taint_resource_name(r), see, &seen);
    }
}

/* ---- in the end ---- */

void taint_judge_rest(struct taint_world *t)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        const struct tw_pod *pod = &t->pods[i];

        if (!pod->there)
            continue;
        check_that(t->w, !pod->deleting, "a pod that is deleted ends: u%u", pod->uid);
        if (taint_must_ms(t, pod) <= t->now_ms || pod->ended.is) {
            check_that(t->w, !pod->runs, "none runs of a pod that is to have ended: u%u", pod->uid);
            count_add(COUNT_TAINT_GONE);
        } else if (taint_may_ms(t, pod) > t->now_ms && !may_have_too_few(t, pod) &&
                   !is_excused(t, pod) && !taint_may_have(t, pod, pod->mask, TW_NO_EXECUTE)) {
            check_that(t->w, pod->runs, "all others run: u%u", pod->uid);
            count_add(COUNT_TAINT_RUNS);
            if (pod->kind == TW_CLAIM && taint_claim_spares(t, pod))
                count_add(COUNT_TAINT_SPARED_BY_CLAIM);
        }
    }
    if (!t->untainted)
        return;
    for (const struct row *row = t->rows; row; row = row->next)
        check_that(t->w,
                   row->kind != DEVICEMGR_RECORD_ENDING && row->kind != DEVICEMGR_RECORD_ORDER,
                   "what is taken back is kept no more: %s", row->key[0]);
}
