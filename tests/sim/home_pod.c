/*
 * The kubelet's pods with claims, each of one container, and the runtime.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/home_world.h"
#include "tests/sim/promise.h"

/* The runtime makes a container within this. */
#define COMES_MS_MAX 6000
#define SLOW_TIMES 5
#define RETRY_MS 10000
/* The shim wants no two lists within this. */
#define LIST_EVERY_MS 1000
#define OLD_PERCENT 45
#define STOPS_ON_PERCENT 90
#define STOPS_SOON_PERCENT 30
#define FORCED_PERCENT 70
#define REALLOCATED_PERCENT 60
#define ROOMS_KEPT 3
#define ASTRAY_PERCENT 30
#define CODE_UNAVAILABLE 14

/* As a StatefulSet's: the next one has the name of the one before, which may run yet. */
static const char *pod_name(unsigned uid)
{
    static const char *const NAMES[] = {"web-0", "web-1"};

    return NAMES[uid % 2];
}

static bool has(const struct hw_pod *pod, size_t claim)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        if (pod->claims[i] == claim)
            return true;
    }
    return false;
}

/* Another pod has the claim, that is not deleted (`any`: or is). */
static bool others_have(const struct home_world *h, const struct hw_pod *pod, size_t claim,
                        bool any)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *other = &h->pods[i];

        if (other->there && other != pod && has(other, claim) && (any || !other->deleting))
            return true;
    }
    return false;
}

/* ---- containers ---- */

/* The runtime has it. */
static void pass_on(struct home_world *h, struct hw_pod *pod,
                    const struct devicemgr_verdict *verdict)
{
    home_names_go_on(h, pod, verdict);
    home_judge_passes(h, pod);
    pod->state = HW_COMES;
    pod->comes_ms = h->now_ms + rng_delay_ms(&h->rng, COMES_MS_MAX) * (h->slow ? SLOW_TIMES : 1);
    pod->passed = 0;
}

static void create(struct home_world *h, struct hw_pod *pod)
{
    static const struct devicemgr_verdict as_it_is;
    char names[HW_NAMES][48], sandbox[16], uid[16];
    const char *cdi[HW_NAMES];
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .sandbox_attempt = pod->attempt,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = pod_name(pod->uid),
                                       .container = "main",
                                       .cdi_devices = cdi,
                                       .deadline_ms = UINT64_MAX};
    enum hw_held must, may;
    size_t claim = 0, may_claim = 0;

    request.cdi_devices_len = home_names(h, pod, names);
    for (size_t i = 0; i < request.cdi_devices_len; i++)
        cdi[i] = names[i];
    snprintf(sandbox, sizeof sandbox, "s%u", pod->sandbox);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    home_note(h, "a container of %s is asked for in %s", uid, sandbox);
    must = home_held(h, pod, false, &claim);
    may = home_held(h, pod, true, &may_claim);
    if (home_names_doubtful(h, pod)) {
        must = HW_FREE;
        may = HW_HELD;
    }
    pod->create = ++h->number;
    pod->stores = false;
    if (!devicemgr_create(h->core, h->now_ms, pod->create, &request)) {
        home_use_note(h, pod);
        pass_on(h, pod, &as_it_is);
        pod->create = 0;
    } else {
        devicemgr_run(h->core); /* which has the verdict */
        pod->stores = pod->create != 0;
        if (pod->stores)
            home_use_note(h, pod);
        else if (pod->state != HW_COMES)
            check_that(h->w, may == HW_HELD,
                       "only what another pod's container may have refuses one: u%u", pod->uid);
    }
    home_shim_run(h); /* which says what it has to */
    if (pod->stores || pod->state == HW_COMES)
        home_judge_create(h, pod, must, claim);
}

void home_pod_passes(struct home_world *h, uint64_t number, const struct devicemgr_verdict *verdict)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        struct hw_pod *pod = &h->pods[i];

        if (!pod->there || pod->create != number)
            continue;
        if (pod->stores)
            count_add(COUNT_HOME_STORED_FIRST);
        else
            home_use_note(h, pod);
        pass_on(h, pod, verdict);
        pod->passed = number;
        pod->create = 0;
    }
}

void home_pod_refused(struct home_world *h, uint64_t number, int code, const char *message)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        struct hw_pod *pod = &h->pods[i];

        if (!pod->there || pod->create != number)
            continue;
        home_note(h, "a container of u%u is refused: %d %s", pod->uid, code, message);
        check_that(h->w, code == CODE_UNAVAILABLE, "it is refused for now: %d", code);
        pod->create = 0;
        pod->retry_ms = h->now_ms + RETRY_MS;
        if (pod->stores) {
            check_that(h->w, h->failed_ms == h->now_ms,
                       "one that waits to be stored is refused if that fails: u%u", pod->uid);
            count_add(COUNT_HOME_UNSTORED);
            continue;
        }
        count_add(strstr(message, " on the same counters") ? COUNT_HOME_PART_REFUSED
                                                           : COUNT_HOME_REFUSED);
        if (!h->listing) /* else it may be put off for what the list shows */
            h->list_due_ms = h->now_ms + LIST_EVERY_MS;
    }
}

uint64_t home_pods_next_ms(const struct home_world *h)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *pod = &h->pods[i];

        if (pod->there && pod->state == HW_COMES && pod->comes_ms < next_ms)
            next_ms = pod->comes_ms;
    }
    return next_ms;
}

/* Of whose answer no create of this shim's hears. */
static bool some_come(const struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        if (h->pods[i].there && h->pods[i].state == HW_COMES && !h->pods[i].passed)
            return true;
    }
    return false;
}

/* By the file of a claim that its driver has, or of another one of the same name. */
static bool is_resolved(const struct home_world *h, size_t claim)
{
    const struct hw_claim *is = &h->claims[claim];

    for (size_t i = 0; i < h->claims_len; i++) {
        const struct hw_claim *other = &h->claims[i];

        if (other->taken && !other->file_lost && other->taken_device == is->given &&
            other->driver == is->driver && (i == claim || h->drivers[is->driver].same_names))
            return true;
    }
    return false;
}

/* The first of the pod's claims whose device the runtime does not know, where the shim is to see to
 * that. HW_CLAIMS: there is none. */
static size_t unresolved(const struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; h->loses_files && i < pod->claims_len; i++) {
        if (!is_resolved(h, pod->claims[i]) && home_shim_prepares(h, pod->claims[i]))
            return pod->claims[i];
    }
    return HW_CLAIMS;
}

/* The shim has it prepared anew, and whatever else has the name; the kubelet tries once more. */
static void fail_unresolved(struct home_world *h, struct hw_pod *pod, size_t claim)
{
    const struct hw_claim *is = &h->claims[claim];
    char name[48], words[96];

    count_add(COUNT_HOME_UNRESOLVED);
    home_cdi_name(h, claim, is->given, name);
    snprintf(words, sizeof words, "unresolvable CDI devices %s", name);
    home_note(h, "the container of u%u is not made: %s", pod->uid, words);
    for (size_t i = 0; i < h->claims_len; i++)
        h->claims[i].used_since |= h->claims[i].driver == is->driver && home_may_be_used(h, i) &&
                                   (i == claim || h->drivers[is->driver].same_names);
    pod->state = HW_NOTHING;
    pod->retry_ms = h->now_ms + RETRY_MS;
    devicemgr_create_refused(h->core, h->now_ms, words);
    if (pod->passed)
        devicemgr_create_answered(h->core, h->now_ms, pod->passed, NULL);
    pod->passed = 0;
    home_shim_run(h);
}

void home_pods_due(struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++) {
        struct hw_pod *pod = &h->pods[i];

        if (!pod->there || pod->state != HW_COMES || pod->comes_ms > h->now_ms)
            continue;
        if (unresolved(h, pod) < HW_CLAIMS) {
            fail_unresolved(h, pod, unresolved(h, pod));
            continue;
        }
        pod->state = !h->calm && rng_percent(&h->rng, 10) ? HW_EXITED : HW_RUNS;
        home_note(h, "the container of u%u %s", pod->uid, pod->state == HW_RUNS ? "runs" : "fails");
        if (pod->passed)
            home_use_made(h, pod);
        if (pod->passed)
            devicemgr_create_answered(h->core, h->now_ms, pod->passed, "k");
        pod->passed = 0;
    }
    if (h->earlier_until_ms == UINT64_MAX && !some_come(h)) {
        h->earlier_until_ms = h->now_ms + OUTCOME_MS;
        devicemgr_earlier_creates(h->core, h->now_ms, false);
    }
}

/* ---- sandboxes ---- */

static void run_sandbox(struct home_world *h, struct hw_pod *pod)
{
    char id[16], uid[16];
    const struct devicemgr_sandbox sandbox = {.id = id,
                                              .pod_uid = uid,
                                              .pod_namespace = "ns",
                                              .pod_name = pod_name(pod->uid),
                                              .attempt = ++pod->attempt,
                                              .ready = true};

    pod->sandbox = ++h->last_sandbox;
    pod->ready = true;
    pod->state = HW_NOTHING;
    snprintf(id, sizeof id, "s%u", pod->sandbox);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    home_note(h, "sandbox %s of %s runs", id, uid);
    devicemgr_sandbox_ran(h->core, h->now_ms, &sandbox);
    home_shim_run(h);
}

/* Its containers have ended; the shim is told, unless it had died before, which a kubelet leaves at
 * that. */
static void end_sandbox(struct home_world *h, struct hw_pod *pod)
{
    unsigned sandbox = pod->sandbox;
    bool told = pod->ready;
    char id[16];

    if (!sandbox)
        return;
    snprintf(id, sizeof id, "s%u", sandbox);
    pod->sandbox = 0;
    pod->ready = false;
    pod->state = HW_NOTHING;
    home_note(h, "sandbox %s has ended%s", id, told ? "" : ", as it had before");
    if (!told)
        return;
    devicemgr_sandbox_stopping(h->core, h->now_ms, id);
    devicemgr_sandbox_stopped(h->core, h->now_ms, id);
    home_uses_ended(h, sandbox);
    home_shim_run(h);
}

/* ---- there is another one ---- */

static void add(struct home_world *h, const size_t *claims, size_t claims_len)
{
    size_t slot = 0;

    while (slot < HW_PODS && h->pods[slot].there)
        slot++;
    if (slot == HW_PODS)
        return;
    h->pods[slot] = (struct hw_pod){.there = true, .uid = ++h->last_uid, .claims_len = claims_len};
    memcpy(h->pods[slot].claims, claims, claims_len * sizeof *claims);
    home_note(h, "pod u%u comes, with %zu claims from c%zu on", h->last_uid, claims_len, claims[0]);
}

static size_t rooms(const struct home_world *h)
{
    size_t len = 0;

    for (size_t i = 0; i < HW_PODS; i++)
        len += !h->pods[i].there;
    return len;
}

/* ---- one step of a pod ---- */

/* Whether the kubelet remembers all its claims as prepared; else it asks. */
static bool prepare(struct home_world *h, const struct hw_pod *pod)
{
    size_t claims[HW_POD_CLAIMS], len = 0;
    bool done = true;

    for (size_t i = 0; i < pod->claims_len; i++) {
        if (!h->claims[pod->claims[i]].prepared)
            claims[len++] = pod->claims[i];
    }
    if (len > 0)
        home_ask(h, claims, len, true);
    for (size_t i = 0; i < pod->claims_len; i++)
        done = done && h->claims[pod->claims[i]].prepared;
    return done;
}

/* Another pod comes for what a kubelet up to 1.36.2 takes for prepared until it is unprepared. Not
 * where it may be asked for elsewhere. */
static void join(struct home_world *h, size_t claim)
{
    struct hw_claim *is = &h->claims[claim];

    if (!h->joined || h->calm || is->life != HW_LEAVING || !is->prepared || !is->asked ||
        !is->allocated || !h->drivers[is->driver].stays || rooms(h) == 0)
        return;
    count_add(COUNT_HOME_JOINED);
    is->life = HW_WANTED;
    is->let_go = true;
    add(h, &claim, 1);
}

/* Whether the claims of which it is the last are unprepared. */
static bool unprepare(struct home_world *h, const struct hw_pod *pod)
{
    size_t claims[HW_POD_CLAIMS], len = 0;
    bool done = true;

    for (size_t i = 0; i < pod->claims_len && !*h->w->broken; i++) {
        struct hw_claim *claim = &h->claims[pod->claims[i]];

        if (others_have(h, pod, pod->claims[i], true))
            continue;
        if (claim->life == HW_WANTED) {
            home_give_up(h, pod->claims[i]);
            claim->life = claim->in_books ? HW_LEAVING : HW_GONE;
            claim->allocated = claim->allocated && claim->in_books;
        }
        if (claim->life == HW_LEAVING)
            claims[len++] = pod->claims[i];
    }
    if (len > 0 && !*h->w->broken)
        home_ask(h, claims, len, false);
    for (size_t i = 0; i < len; i++) {
        join(h, claims[i]);
        done = done && h->claims[claims[i]].life == HW_GONE;
    }
    return done;
}

/* Its books have a pod that was deleted by force no more: it asks, each minute, to unprepare what
 * that had, while its container runs yet. Not where the driver's names leave open by which claim,
 * nor where the driver may be asked elsewhere. */
static void ask_astray(struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < pod->claims_len && !*h->w->broken; i++) {
        const struct hw_claim *claim = &h->claims[pod->claims[i]];
        const struct hw_driver *d = &h->drivers[claim->driver];

        if (!claim->allocated && claim->life == HW_WANTED && claim->has && !claim->asked &&
            d->stays && !d->same_names && !d->with_kubelet &&
            !others_have(h, pod, pod->claims[i], true) && rng_percent(&h->rng, ASTRAY_PERCENT)) {
            count_add(COUNT_HOME_ASTRAY);
            h->claims[pod->claims[i]].let_go = true;
            home_ask(h, &pod->claims[i], 1, false);
        }
    }
}

/* A container that is started once more takes what the kubelet was told: it asks for no claim. What
 * was unprepared since its pod came is asked for once that kubelet is another one. */
static void go_on(struct home_world *h, struct hw_pod *pod)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        if (h->claims[pod->claims[i]].has)
            continue;
        if (h->joined)
            (void)prepare(h, pod);
        return;
    }
    create(h, pod);
}

void home_pod_proceeds(struct home_world *h, struct hw_pod *pod)
{
    if (!pod->there || pod->create || pod->state == HW_COMES)
        return;
    if (pod->deleting) {
        if (pod->sandbox && !h->calm &&
            rng_percent(&h->rng, h->lossy ? STOPS_SOON_PERCENT : STOPS_ON_PERCENT)) {
            ask_astray(h, pod);
            return; /* it has its grace period yet */
        }
        end_sandbox(h, pod);
        if (!*h->w->broken && unprepare(h, pod))
            pod->there = false;
        return;
    }
    if (pod->sandbox && !pod->ready)
        end_sandbox(h, pod);
    else if (!pod->sandbox && prepare(h, pod))
        run_sandbox(h, pod);
    else if (pod->sandbox && pod->state != HW_RUNS && h->now_ms >= pod->retry_ms)
        go_on(h, pod);
}

void home_pods_come_first(struct home_world *h, size_t claim)
{
    for (size_t i = 0; i < HW_PODS && !*h->w->broken; i++) {
        struct hw_pod *pod = &h->pods[i];

        if (pod->there && !pod->deleting && has(pod, claim) && rng_percent(&h->rng, 90))
            home_pod_proceeds(h, pod);
    }
}

/* ---- they come and go ---- */

/* One that some pod has, or had. */
static bool pick_old(struct home_world *h, size_t *claim)
{
    struct hw_claim *is;

    *claim = rng_below(&h->rng, h->claims_len);
    is = &h->claims[*claim];
    if (is->life == HW_GONE && home_allocate(h, *claim))
        is->life = HW_WANTED;
    return is->life == HW_WANTED && is->allocated;
}

/* Or a new one. False: there is none. */
static bool pick_claim(struct home_world *h, size_t *claim)
{
    if (h->claims_len > 0 && rng_percent(&h->rng, OLD_PERCENT))
        return pick_old(h, claim);
    if (h->claims_len == HW_CLAIMS)
        return false;
    *claim = h->claims_len;
    home_claim_begins(h, *claim);
    if (!home_allocate(h, *claim))
        return false;
    h->claims[*claim].life = HW_WANTED;
    h->claims_len++;
    return true;
}

void home_pod_comes(struct home_world *h)
{
    size_t claims[HW_POD_CLAIMS], len = 0;

    if (h->lossy && rooms(h) < ROOMS_KEPT)
        return; /* they are for claims that are allocated anew */
    for (uint64_t left = rng_between(&h->rng, 1, HW_POD_CLAIMS); left > 0; left--) {
        if (pick_claim(h, &claims[len]) && (len == 0 || claims[0] != claims[len]))
            len++;
    }
    if (len > 0)
        add(h, claims, len);
}

/* Another pod has a part of what is free by now. */
static void come_for_a_part(struct home_world *h, size_t driver)
{
    size_t claim = h->claims_len;

    if (rooms(h) == 0 || claim == HW_CLAIMS)
        return;
    home_claim_begins(h, claim);
    h->claims[claim].driver = driver;
    if (!home_allocate(h, claim))
        return;
    h->claims[claim].life = HW_WANTED;
    h->claims_len++;
    add(h, &claim, 1);
}

/* The cluster gives its devices away, and perhaps others to a claim that outlives it, which another
 * pod has then, and the kubelet asks for anew. */
static void force(struct home_world *h, const struct hw_pod *pod)
{
    for (size_t i = 0; i < pod->claims_len && !*h->w->broken; i++) {
        size_t id = pod->claims[i];
        struct hw_claim *claim = &h->claims[id];

        if (others_have(h, pod, id, false) || claim->life != HW_WANTED)
            continue;
        claim->allocated = false;
        h->drivers[claim->driver].freed = claim->device;
        if (h->drivers[claim->driver].parted)
            come_for_a_part(h, claim->driver);
        if (!rng_percent(&h->rng, REALLOCATED_PERCENT) || rooms(h) == 0 || !home_allocate(h, id))
            continue;
        home_give_up(h, id);
        claim->prepared = claim->has = claim->by_shim = false;
        add(h, &id, 1);
    }
}

void home_pod_deleted(struct home_world *h, struct hw_pod *pod, bool forced)
{
    pod->deleting = true;
    home_note(h, "pod u%u is deleted%s", pod->uid, forced ? " by force" : "");
    if (forced)
        force(h, pod);
}

void home_pod_trouble(struct home_world *h, struct hw_pod *pod)
{
    if (!pod->there)
        return;
    switch (rng_below(&h->rng, 6)) {
    case 0:
        if (pod->state == HW_RUNS)
            pod->state = HW_EXITED;
        break;
    case 1: /* it dies, and nobody is told */
        if (pod->state == HW_RUNS)
            pod->state = HW_EXITED;
        if (pod->state != HW_COMES)
            pod->ready = false;
        break;
    default:
        if (!pod->deleting)
            home_pod_deleted(h, pod, rng_percent(&h->rng, FORCED_PERCENT));
        break;
    }
}

/* ---- the shim, and lists ---- */

/* What it held is asked for anew. */
void home_pods_shim_started(struct home_world *h)
{
    for (size_t i = 0; i < HW_PODS; i++)
        h->pods[i].create = h->pods[i].passed = 0;
    h->earlier_until_ms = some_come(h) ? UINT64_MAX : 0;
    if (some_come(h))
        devicemgr_earlier_creates(h->core, h->now_ms, true);
}

void home_list_begins(struct home_world *h)
{
    if (h->listing)
        return;
    h->listing = true;
    h->list_wanted = false;
    h->listed_from_ms = h->now_ms;
    h->list_due_ms = 0;
    devicemgr_tick(h->core, h->now_ms);
    home_shim_run(h);
    devicemgr_runtime_listing(h->core);
    memcpy(h->snapshot, h->pods, sizeof h->snapshot);
}

void home_list_ends(struct home_world *h)
{
    struct devicemgr_sandbox sandboxes[HW_PODS];
    struct devicemgr_container containers[HW_PODS];
    char ids[HW_PODS][16], uids[HW_PODS][16], names[HW_PODS][16];
    size_t len = 0, containers_len = 0;

    if (!h->listing)
        return;
    h->listing = false;
    home_note(h, "the runtime is listed");
    for (size_t i = 0; i < HW_PODS; i++) {
        const struct hw_pod *pod = &h->snapshot[i];

        if (!pod->there || !pod->sandbox)
            continue;
        snprintf(ids[len], sizeof ids[len], "s%u", pod->sandbox);
        snprintf(uids[len], sizeof uids[len], "u%u", pod->uid);
        snprintf(names[len], sizeof names[len], "k%u", pod->sandbox);
        sandboxes[len] = (struct devicemgr_sandbox){.id = ids[len],
                                                    .pod_uid = uids[len],
                                                    .pod_namespace = "ns",
                                                    .pod_name = pod_name(pod->uid),
                                                    .attempt = pod->attempt,
                                                    .ready = pod->ready};
        if (pod->state == HW_RUNS || pod->state == HW_EXITED)
            containers[containers_len++] =
                (struct devicemgr_container){.id = names[len],
                                             .sandbox_id = ids[len],
                                             .name = "main",
                                             .running = pod->state == HW_RUNS};
        len++;
    }
    devicemgr_runtime_listed(h->core, h->now_ms, sandboxes, len, containers, containers_len);
    home_uses_listed(h);
    home_shim_run(h);
}
