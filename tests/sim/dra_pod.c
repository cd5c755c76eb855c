/*
 * The kubelet's pods with claims, and their containers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/devicemgr.h"
#include "tests/sim/check.h"
#include "tests/sim/dra.h"
#include "tests/sim/world.h"

#define SYNC_MS_MIN 200
#define SYNC_MS_MAX 3000
#define COMES_MS_MAX 6000
#define STOP_MS_MAX 10000
#define LIVE_MAX 8
/* All that there are; more is not asked for beyond. */
#define SANDBOXES_FULL (3 * SANDBOXES_MAX / 4)
/* So long a client waits for a create. */
#define CREATE_MS_MAX 30000
#define CDI_MAX (DRA_POD_CLAIMS_MAX * DRA_DRIVERS * 4)
/* Of the times at which one is looked at: */
#define DELETED_PERCENT 6
#define REMADE_PERCENT 4
#define EXITS_PERCENT 6
#define SHARED_PERCENT 35
#define FORCED_PERCENT 35
#define ASTRAY_PERCENT 20
#define REALLOCATED_PERCENT 80
#define RESTARTED_PERCENT 40

/* ---- tables ---- */

static struct dra_pod *find_pod(struct world *w, unsigned uid)
{
    for (size_t i = 0; uid && i < w->dra.pods_len; i++) {
        if (w->dra.pods[i].uid == uid)
            return &w->dra.pods[i];
    }
    return NULL;
}

static bool has(const struct dra_pod *pod, size_t claim)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        if (pod->claims[i] == claim)
            return true;
    }
    return false;
}

static size_t live(const struct world *w)
{
    size_t len = 0;

    for (size_t i = 0; i < w->dra.pods_len; i++)
        len += w->dra.pods[i].uid != 0;
    return len;
}

/* ---- its containers ---- */

/* The shim is told what became of it, or that nobody hears of that: it may be there from now on. */
static void note_told(struct world *w, uint64_t create)
{
    struct dra_use *use = dra_use_find(w, create);

    if (use)
        use->asked_ms = w->now_ms;
}

static void abandon(struct world *w, struct dra_pod *pod)
{
    if (!pod->create)
        return;
    note_told(w, pod->create);
    if (!pod->stores)
        runtime_create_abandoned(w, pod->create);
    if (pod->kept && w->shim.core)
        devicemgr_create_cancelled(w->shim.core, shim_now_ms(w), pod->create);
    pod->create = 0;
    pod->kept = pod->stores = false;
    shim_run(w);
}

/* What the core has of them goes with the connection to the runtime. */
void dra_pods_runtime_gone(struct world *w)
{
    for (size_t i = 0; i < w->dra.pods_len && w->shim.core; i++) {
        if (w->dra.pods[i].kept)
            abandon(w, &w->dra.pods[i]);
    }
}

size_t dra_creates_open(const struct world *w)
{
    size_t open = 0;

    for (size_t i = 0; i < w->dra.pods_len; i++)
        open += w->dra.pods[i].kept;
    return open;
}

void dra_pods_shim_gone(struct world *w)
{
    for (size_t i = 0; i < w->dra.pods_len; i++) {
        struct dra_pod *pod = &w->dra.pods[i];

        if (!w->shim.resumes || pod->stores)
            pod->create = 0;
        pod->kept = pod->stores = false;
    }
}

/* What is passed to the runtime: names that the kubelet was told, some of them twice. */
struct cdi {
    char names[CDI_MAX][48];
    const char *v[CDI_MAX];
    size_t len;
};

static void add_name(struct cdi *cdi, size_t claim, size_t driver, unsigned version)
{
    cdi->v[cdi->len] = cdi->names[cdi->len];
    dra_cdi_name(claim, driver, version, cdi->names[cdi->len++]);
}

static void add_names(struct world *w, struct cdi *cdi, size_t claim)
{
    const struct dra_claim *is = &w->dra.claims[claim];

    for (size_t d = 0; d < DRA_DRIVERS; d++) {
        if (!is->has[d])
            continue;
        if (is->had[d]) {
            add_name(cdi, claim, d, 0);
            add_name(cdi, claim, d, is->had[d]);
        }
        add_name(cdi, claim, d, 0);
        add_name(cdi, claim, d, is->has[d]);
    }
}

/* The runtime is asked for it. */
static void pass_on(struct world *w, struct dra_pod *pod)
{
    const struct rt_container made = {.sandbox = pod->sandbox,
                                      .uid = pod->uid,
                                      .name = 1,
                                      .attempt = pod->made,
                                      .claimant = pod->create};

    pod->stores = false;
    check_that(w, dra_use_is_stored(w, dra_use_find(w, pod->create)),
               "who is to run with claims is stored before the runtime is asked: u%u", pod->uid);
    runtime_create(w, pod->create, &made);
}

static void create(struct world *w, struct dra_pod *pod, const struct rt_sandbox *s,
                   unsigned attempt)
{
    uint64_t number = ++w->client.last_create;
    char sandbox[16], uid[16];
    struct cdi cdi = {.len = 0};
    struct devicemgr_create request = {.sandbox_id = sandbox,
                                       .sandbox_attempt = s->attempt,
                                       .pod_uid = uid,
                                       .pod_namespace = "ns",
                                       .pod_name = uid,
                                       .container = container_sim_name(1),
                                       .attempt = attempt,
                                       .cdi_devices = cdi.v,
                                       .deadline_ms = shim_now_ms(w) + CREATE_MS_MAX};

    for (size_t i = 0; i < pod->claims_len; i++)
        add_names(w, &cdi, pod->claims[i]);
    request.cdi_devices_len = cdi.len;
    snprintf(sandbox, sizeof sandbox, "s%u", s->id);
    snprintf(uid, sizeof uid, "u%u", pod->uid);
    world_note(w, "kubelet: create %u of u%u with claims, attempt %u in s%u", (unsigned)number,
               pod->uid, attempt, s->id);
    dra_use_note(w, pod, s->id, number);
    pod->create = number;
    pod->create_ms = w->now_ms;
    pod->sandbox = s->id;
    pod->made = attempt;
    count_add(COUNT_DRA_CREATES);
    pod->kept = pod->stores = true;
    if (!devicemgr_create(w->shim.core, shim_now_ms(w), number, &request)) {
        pod->kept = false;
        pass_on(w, pod);
    }
    shim_run(w);
}

static bool is_over(struct world *w, unsigned sandbox)
{
    const struct rt_sandbox *s = runtime_find_sandbox(w, sandbox);

    return !s || s->stop_asked;
}

bool dra_verdict(struct world *w, uint64_t number, const struct devicemgr_verdict *verdict)
{
    const struct dra_use *use = dra_use_find(w, number);
    struct dra_pod *pod = use ? find_pod(w, use->uid) : NULL;

    if (!pod || pod->create != number)
        return false;
    world_note(w, "shim: verdict on create %u with claims: %d %s", (unsigned)number, verdict->code,
               verdict->message ? verdict->message : "forward");
    if (verdict->code == 0) {
        count_add(COUNT_DRA_STORED_FIRST);
        pass_on(w, pod);
        return true;
    }
    check_that(
        w, dra_may_be_held(w, use) || w->store.fails || is_over(w, use->sandbox),
        "a create with claims is refused for what a container of another pod has, or as that "
        "it has them cannot be stored, or as its sandbox is over");
    pod->create = 0;
    pod->kept = pod->stores = false;
    return true;
}

void dra_answered(struct world *w, uint64_t number, unsigned container)
{
    const struct dra_use *use = dra_use_find(w, number);
    struct dra_pod *pod = use ? find_pod(w, use->uid) : NULL;

    if (!pod || pod->create != number)
        return;
    if (pod->kept) {
        char id[16];

        snprintf(id, sizeof id, "c%u", container);
        note_told(w, number);
        devicemgr_create_answered(w->shim.core, shim_now_ms(w), number, container ? id : NULL);
    }
    pod->create = 0;
    pod->kept = false;
    if (container)
        runtime_start(w, container);
}

/* ---- one step of a pod ---- */

/* Whether all its claims are prepared, as far as the kubelet remembers. */
static bool prepare(struct world *w, const struct dra_pod *pod)
{
    bool done = true;

    for (size_t i = 0; i < pod->claims_len; i++)
        done = dra_ask(w, pod->claims[i]) && done;
    return done && w->shim.core;
}

static struct rt_sandbox *sandbox_of(struct world *w, unsigned uid, bool told)
{
    for (size_t i = 0; i < w->runtime.sandboxes_end; i++) {
        struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->stop_told == told)
            return s;
    }
    return NULL;
}

static bool has_room(const struct world *w)
{
    size_t len = 0;

    for (size_t i = 0; i < w->runtime.sandboxes_end; i++)
        len += w->runtime.sandboxes[i].id != 0;
    return len < SANDBOXES_FULL;
}

/* A new sandbox; what is left of the old one is stopped first. */
static void sandbox_step(struct world *w, struct dra_pod *pod)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (left)
        runtime_stop_sandbox(w, left, true);
    else if (prepare(w, pod) && has_room(w))
        runtime_run_sandbox(w, pod->uid, pod->attempt++);
}

/* The kubelet has restarted: it does not know what is prepared. */
static void forget_prepared(struct world *w, const struct dra_pod *pod)
{
    for (size_t i = 0; i < pod->claims_len; i++)
        memset(w->dra.claims[pod->claims[i]].done, 0, sizeof w->dra.claims[0].done);
}

static void container_step(struct world *w, struct dra_pod *pod, const struct rt_sandbox *s,
                           struct rng *rng)
{
    struct rt_container *newest = runtime_newest(w, s->id, 1);

    if (pod->create && w->now_ms >= pod->create_ms + CREATE_MS_MAX)
        abandon(w, pod);
    if (pod->create)
        return;
    if (newest && newest->state == CONTAINER_RUNNING) {
        if (w->faults && rng_percent(rng, EXITS_PERCENT))
            runtime_exit(w, newest, "exits");
        return;
    }
    if (newest && newest->state == CONTAINER_CREATED && newest->starting)
        return;
    if (newest && newest->state == CONTAINER_CREATED)
        newest->abandoned = true;
    else if (newest && rng_percent(rng, 30)) {
        runtime_remove_container(w, newest);
        return;
    }
    if (prepare(w, pod)) /* or what was unprepared astray is prepared anew first */
        create(w, pod, s, newest ? newest->attempt + 1 : 0);
}

static void advance(struct world *w, struct dra_pod *pod, struct rng *rng)
{
    struct rt_sandbox *s = runtime_ready_sandbox(w, pod->uid);
    const struct rt_sandbox *old = sandbox_of(w, pod->uid, true);

    if (!s) {
        sandbox_step(w, pod);
    } else if (old && rng_percent(rng, 30)) {
        runtime_remove_sandbox(w, old);
    } else if (s->doomed || (w->faults && rng_percent(rng, REMADE_PERCENT))) {
        if (rng_percent(rng, RESTARTED_PERCENT))
            forget_prepared(w, pod);
        runtime_stop_sandbox(w, s, true);
    } else {
        container_step(w, pod, s, rng);
    }
}

/* Another pod has the claim, that is not deleted (`any`: or is). */
static bool others_have(struct world *w, const struct dra_pod *pod, size_t claim, bool any)
{
    for (size_t i = 0; i < w->dra.pods_len; i++) {
        const struct dra_pod *other = &w->dra.pods[i];

        if (other->uid && other != pod && has(other, claim) && (any || !other->deleting))
            return true;
    }
    return false;
}

/* Whether the claims of which it is the last are unprepared. */
static bool unprepare(struct world *w, struct dra_pod *pod, struct rng *rng)
{
    bool done = true;

    for (size_t i = 0; i < pod->claims_len && w->shim.core; i++) {
        size_t id = pod->claims[i];
        struct dra_claim *claim = &w->dra.claims[id];

        if (others_have(w, pod, id, true)) {
            if (w->faults && rng_percent(rng, ASTRAY_PERCENT))
                dra_ask_astray(w, id);
            continue;
        }
        if (claim->life == DRA_WANTED) {
            dra_give_up(w, id);
            dra_set_life(w, id, DRA_LEAVING);
        }
        if (claim->life == DRA_LEAVING && dra_ask(w, id)) {
            claim->life = DRA_GONE;
            dra_deallocate(w, id);
        }
        done = done && claim->life == DRA_GONE;
    }
    return done && w->shim.core;
}

static void teardown(struct world *w, struct dra_pod *pod, struct rng *rng)
{
    struct rt_sandbox *left = sandbox_of(w, pod->uid, false);

    if (w->now_ms < pod->stop_ms)
        return;
    abandon(w, pod);
    if (left) {
        runtime_stop_sandbox(w, left, true);
        return;
    }
    if (!unprepare(w, pod, rng))
        return;
    left = sandbox_of(w, pod->uid, true);
    if (left)
        runtime_remove_sandbox(w, left);
    else
        pod->uid = 0;
}

/* ---- they come and go ---- */

static void pod_new(struct world *w, const size_t *claims, size_t claims_len);

/* By force: the cluster gives its devices away, and perhaps others to a claim that outlives it. */
static void force(struct world *w, struct dra_pod *pod, struct rng *rng)
{
    for (size_t i = 0; i < pod->claims_len; i++) {
        size_t id = pod->claims[i];

        if (others_have(w, pod, id, false) || w->dra.claims[id].life != DRA_WANTED)
            continue;
        dra_deallocate(w, id);
        if (!rng_percent(rng, REALLOCATED_PERCENT) || live(w) >= LIVE_MAX || !dra_allocate(w, id))
            continue;
        dra_give_up(w, id);
        dra_set_life(w, id, DRA_WANTED);
        pod_new(w, &id, 1);
    }
}

static void delete (struct world *w, struct dra_pod *pod, struct rng *rng)
{
    bool forced = w->faults && rng_percent(rng, FORCED_PERCENT);

    pod->deleting = true;
    pod->stop_ms = w->now_ms + rng_delay_ms(rng, STOP_MS_MAX);
    world_note(w, "kubelet: pod u%u with claims is deleted%s", pod->uid, forced ? " by force" : "");
    if (forced)
        force(w, pod, rng);
}

static void sync(struct world *w, uint64_t uid, uint64_t unused)
{
    struct rng rng = world_draw(w, DRAW_DRA_POD, uid, 0);
    struct dra_pod *pod = find_pod(w, (unsigned)uid);

    (void)unused;
    if (!pod)
        return;
    world_after(w, &rng, rng_between(&rng, SYNC_MS_MIN, SYNC_MS_MAX), sync, uid, 0);
    if (!w->shim.core || w->kubelet.down || w->runtime.down || runtime_busy(w, pod->uid))
        return;
    if (!pod->deleting && (w->dra.over || (w->faults && rng_percent(&rng, DELETED_PERCENT))))
        delete (w, pod, &rng);
    if (!w->shim.core)
        return;
    if (pod->deleting)
        teardown(w, pod, &rng);
    else
        advance(w, pod, &rng);
}

static void pod_new(struct world *w, const size_t *claims, size_t claims_len)
{
    struct dra_pod *pod = &w->dra.pods[w->dra.pods_len];
    struct rng rng;

    if (w->dra.pods_len == DRA_PODS_MAX)
        return;
    *pod = (struct dra_pod){.uid = DRA_UID_FIRST + (unsigned)w->dra.pods_len++,
                            .claims_len = claims_len};
    memcpy(pod->claims, claims, claims_len * sizeof *claims);
    rng = world_draw(w, DRAW_DRA_POD, pod->uid, 1);
    world_note(w, "kubelet: pod u%u with %zu claims from c%zu on is admitted", pod->uid, claims_len,
               claims[0]);
    world_after(w, &rng, rng_delay_ms(&rng, SYNC_MS_MAX), sync, pod->uid, 0);
}

/* One that some pod has, or a new one. False: there is none. */
static bool pick_claim(struct world *w, struct rng *rng, size_t *claim)
{
    size_t id = w->dra.claims_len;

    if (id > 0 && rng_percent(rng, SHARED_PERCENT)) {
        *claim = rng_below(rng, id);
        return w->dra.claims[*claim].life == DRA_WANTED && w->dra.claims[*claim].allocated;
    }
    if (id == DRA_CLAIMS_MAX || !dra_allocate(w, id))
        return false;
    w->dra.claims_len++;
    w->dra.claims[id].life = DRA_WANTED;
    *claim = id;
    return true;
}

/* The kubelet has lost count: it asks once more for what is unprepared. */
static void ask_once_more(struct world *w, struct rng *rng)
{
    size_t claim = w->dra.claims_len > 0 ? rng_below(rng, w->dra.claims_len) : DRA_CLAIMS_MAX;

    if (claim < DRA_CLAIMS_MAX && w->dra.claims[claim].life == DRA_GONE)
        dra_ask_astray(w, claim);
}

static void comes(struct world *w, uint64_t a, uint64_t b)
{
    struct rng rng = world_draw(w, DRAW_DRA_COMES, 0, 0);
    size_t claims[DRA_POD_CLAIMS_MAX], claims_len = 0, wanted;

    (void)a;
    (void)b;
    if (!w->faults || w->dra.pods_len == DRA_PODS_MAX)
        return;
    world_after(w, &rng, rng_between(&rng, 1, COMES_MS_MAX), comes, 0, 0);
    ask_once_more(w, &rng);
    wanted = rng_between(&rng, 1, DRA_POD_CLAIMS_MAX);
    while (live(w) < LIVE_MAX && wanted > 0) {
        bool again = false;

        if (pick_claim(w, &rng, &claims[claims_len])) {
            for (size_t i = 0; i < claims_len; i++)
                again = again || claims[i] == claims[claims_len];
            claims_len += !again;
        }
        wanted--;
    }
    if (claims_len > 0)
        pod_new(w, claims, claims_len);
}

void dra_pods_init(struct world *w)
{
    struct rng rng = world_draw(w, DRAW_DRA_COMES, 0, 1);

    world_after(w, &rng, 1, comes, 0, 0);
}
