/*
 * Claims of the world of taints: pods that share one, the kubelet that has them prepared, and the
 * driver that does so, which is away at times and loses nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "cri-proto/dra_v1.pb-c.h"
#include "devicemgr/dra.h"
#include "devicemgr/endings.h"
#include "tests/sim/taint_world.h"

/* A container that no list shows may be in the making for so long; then it is not the claim's user
 * any more. */
#define COMES_MS 10000

const char *taint_claim_cdi(const struct tw_claim *claim, size_t device)
{
    static char names[TW_DEVICES_MAX][32];

    snprintf(names[device], sizeof names[device], "example.com/dev=c%u-g%zu", claim->uid, device);
    return names[device];
}

static struct tw_claim *find(struct taint_world *t, const char *uid)
{
    for (size_t i = 0; i < TW_CLAIMS; i++) {
        if (t->claims[i].there && t->claims[i].uid == strtoul(uid + 1, NULL, 10))
            return &t->claims[i];
    }
    return NULL;
}

/* ---- the cluster allocates, and reserves ---- */

static unsigned taken(const struct taint_world *t)
{
    unsigned mask = 0;

    for (size_t i = 0; i < TW_CLAIMS; i++)
        mask |= t->claims[i].there ? t->claims[i].mask : 0;
    return mask;
}

static unsigned draw_devices(struct taint_world *t)
{
    unsigned mask = 0;

    for (size_t i = 0; i < 3; i++) {
        unsigned one = 1u << rng_below(&t->rng, TW_DEVICES_MAX);

        if ((taken(t) & one) == 0 && (mask == 0 || rng_percent(&t->rng, 25)))
            mask |= one;
    }
    return mask;
}

static size_t allocate(struct taint_world *t)
{
    unsigned mask = draw_devices(t);
    struct tw_claim *claim;
    size_t i = 0;

    while (i < TW_CLAIMS && t->claims[i].there)
        i++;
    if (i == TW_CLAIMS || mask == 0)
        return TW_CLAIMS;
    claim = &t->claims[i];
    *claim = (struct tw_claim){
        .there = true, .uid = ++t->last_claim, .mask = mask, .extended = rng_percent(&t->rng, 40)};
    claim->tolerations_len =
        rng_percent(&t->rng, 55) ? 0 : rng_between(&t->rng, 1, TW_TOLERATIONS_MAX);
    for (size_t k = 0; k < claim->tolerations_len; k++)
        claim->tolerations[k] = (struct tw_claim_toleration){(size_t)__builtin_ctz(mask),
                                                             taint_draw_toleration(&t->rng)};
    return i;
}

/* Only one pod has extended resources by a claim. */
static bool may_share(const struct tw_claim *claim)
{
    return claim->there && !claim->extended && !claim->unprepare &&
           claim->reserved_len < TW_RESERVED_MAX;
}

size_t taint_claim_reserve(struct taint_world *t, unsigned pod_uid)
{
    size_t i = rng_below(&t->rng, TW_CLAIMS);
    struct tw_claim *claim;

    if (!may_share(&t->claims[i]))
        i = allocate(t);
    if (i == TW_CLAIMS)
        return i;
    claim = &t->claims[i];
    claim->reserved[claim->reserved_len++] = pod_uid;
    return i;
}

static const struct tw_pod *pod_by_uid(const struct taint_world *t, unsigned uid)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        if (t->pods[i].there && t->pods[i].uid == uid)
            return &t->pods[i];
    }
    return NULL;
}

static void clean(struct taint_world *t, struct tw_claim *claim)
{
    size_t len = 0;

    for (size_t i = 0; i < claim->reserved_len; i++) {
        if (pod_by_uid(t, claim->reserved[i]))
            claim->reserved[len++] = claim->reserved[i];
    }
    claim->reserved_len = len;
    if (len == 0 && !claim->prepared && !claim->kept && !claim->unprepare)
        *claim = (struct tw_claim){0};
}

void taint_claims_clean(struct taint_world *t)
{
    for (size_t i = 0; i < TW_CLAIMS; i++) {
        if (t->claims[i].there)
            clean(t, &t->claims[i]);
    }
}

/* ---- the kubelet ---- */

static uint64_t ask(struct taint_world *t, const struct tw_claim *claim, bool unprepares)
{
    uint64_t number = ++t->number;
    char uid[16];
    const struct devicemgr_batch alone = {0};
    const struct devicemgr_claim is = {"ns", uid, uid};

    snprintf(uid, sizeof uid, "c%u", claim->uid);
    taint_note(t, "the kubelet asks to %s %s", unprepares ? "unprepare" : "prepare", uid);
    if (unprepares)
        devicemgr_claim_unprepare(t->core, t->now_ms, number, alone, taint_resource_name(TW_DRIVER),
                                  &is);
    else
        devicemgr_claim_prepare(t->core, t->now_ms, number, alone, taint_resource_name(TW_DRIVER),
                                &is);
    return number;
}

bool taint_claim_is_prepared(struct taint_world *t, struct tw_pod *pod)
{
    struct tw_claim *claim = &t->claims[pod->claim];

    if (pod->kind != TW_CLAIM || pod->prepared)
        return true;
    if (pod->prepare || claim->unprepare)
        return false;
    claim->kept = true;
    pod->prepare = ask(t, claim, false);
    taint_shim_run(t);
    return false;
}

static bool is_shared(const struct taint_world *t, const struct tw_pod *pod)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        const struct tw_pod *other = &t->pods[i];

        if (other != pod && other->there && other->kind == TW_CLAIM && other->claim == pod->claim)
            return true;
    }
    return false;
}

bool taint_claim_is_let_go(struct taint_world *t, struct tw_pod *pod)
{
    struct tw_claim *claim = &t->claims[pod->claim];

    if (pod->kind != TW_CLAIM)
        return true;
    if (pod->prepare || claim->unprepare)
        return false;
    if (is_shared(t, pod) || (!claim->kept && !claim->prepared))
        return true;
    claim->unprepare = ask(t, claim, true);
    taint_shim_run(t);
    return false;
}

static void unprepared(struct tw_claim *claim, int code)
{
    claim->unprepare = 0;
    if (code != 0)
        return;
    claim->prepared = claim->kept = claim->devices = false;
    claim->asked = claim->told = claim->told_none = false;
    claim->refused_ms = 0;
}

void taint_claim_done(struct taint_world *t, uint64_t number,
                      const struct devicemgr_claim_done *done)
{
    taint_note(t, "the kubelet is told %d%s%s", done->code, done->message ? ": " : "",
               done->message ? done->message : "");
    for (size_t i = 0; i < TW_CLAIMS; i++) {
        if (t->claims[i].unprepare == number)
            unprepared(&t->claims[i], done->code);
    }
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (!pod->there || pod->prepare != number)
            continue;
        pod->prepare = 0;
        pod->prepared = done->code == 0;
    }
}

/* ---- the driver ---- */

void taint_driver_comes(struct taint_world *t)
{
    static const char *const SERVICES[] = {"v1.DRAPlugin"};
    char endpoint[32];
    struct devicemgr_driver_instance is = {taint_resource_name(TW_DRIVER), endpoint, SERVICES, 1};

    if (t->instance)
        return;
    t->instance = ++t->number;
    snprintf(endpoint, sizeof endpoint, "/x/%llu", (unsigned long long)t->instance);
    taint_note(t, "the driver comes");
    devicemgr_driver_register(t->core, t->now_ms, t->instance, &is);
    taint_shim_run(t);
    devicemgr_driver_connected(t->core, t->now_ms, t->instance);
    taint_shim_run(t);
}

void taint_driver_goes(struct taint_world *t)
{
    uint64_t instance = t->instance;

    if (!instance)
        return;
    count_add(COUNT_TAINT_DRIVER_AWAY);
    taint_note(t, "the driver goes");
    t->instance = 0;
    memset(t->driver_calls, 0, sizeof t->driver_calls);
    devicemgr_driver_deregister(t->core, t->now_ms, instance);
    taint_shim_run(t);
}

void taint_claim_called(struct taint_world *t, uint64_t call, const char *uid, bool unprepares)
{
    const struct tw_claim *claim = find(t, uid);

    check_that(t->w, claim || unprepares, "a claim that is prepared is there: %s", uid);
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->driver_calls[i].number)
            continue;
        t->driver_calls[i] =
            (struct tw_call){.number = call,
                             .claim = claim ? (size_t)(claim - t->claims) : TW_CLAIMS,
                             .unprepares = unprepares};
        return;
    }
    abort();
}

static size_t response_of(const struct tw_claim *claim, uint8_t bytes[512])
{
    Dra__V1__NodePrepareResourceResponse message = DRA__V1__NODE_PREPARE_RESOURCE_RESPONSE__INIT;
    Dra__V1__Device devices[TW_DEVICES_MAX], *v[TW_DEVICES_MAX];
    char pools[TW_DEVICES_MAX][8], *names[TW_DEVICES_MAX];

    for (size_t d = 0; d < TW_DEVICES_MAX; d++) {
        if ((claim->mask & 1u << d) == 0)
            continue;
        dra__v1__device__init(&devices[d]);
        snprintf(pools[d], sizeof pools[d], "p%zu", d / TW_POOL_DEVICES);
        names[d] = (char *)(uintptr_t)taint_claim_cdi(claim, d);
        devices[d].pool_name = pools[d];
        devices[d].device_name = (char *)(uintptr_t)taint_device_id(0, d % TW_POOL_DEVICES);
        devices[d].cdi_device_ids = &names[d];
        devices[d].n_cdi_device_ids = 1;
        v[message.n_devices++] = &devices[d];
    }
    message.devices = v;
    return dra__v1__node_prepare_resource_response__pack(&message, bytes);
}

static void answer(struct taint_world *t, struct tw_call *slot)
{
    struct tw_call call = *slot;
    struct tw_claim *claim = call.claim < TW_CLAIMS ? &t->claims[call.claim] : NULL;
    uint8_t bytes[512];
    size_t len = 0;

    *slot = (struct tw_call){0};
    if (!call.unprepares) {
        len = response_of(claim, bytes);
        claim->prepared = claim->devices = true;
    }
    devicemgr_claim_answered(t->core, t->now_ms, call.number, 0, NULL, len ? bytes : NULL, len);
    taint_shim_run(t);
}

void taint_driver_proceeds(struct taint_world *t)
{
    for (size_t i = 0; i < TW_CALLS; i++) {
        if (t->driver_calls[i].number)
            answer(t, &t->driver_calls[i]);
    }
}

/* ---- what the shim knows ---- */

void taint_claim_wanted(struct taint_world *t, const char *uid)
{
    struct tw_claim *claim = find(t, uid);

    taint_note(t, "the shim wants to know of %s", uid);
    if (claim)
        claim->asked = true;
}

/* One that it keeps from coming back, in a sandbox that is there. */
static bool is_kept_away(const struct taint_world *t, const struct tw_pod *pod,
                         const struct tw_pod *was)
{
    struct devicemgr_refusal refusal;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", pod->uid);
    return pod->evicted.is && was->ready && devicemgr_sandbox_refused(t->core, uid, &refusal);
}

/* Whom no list shows, long after he was asked for, it forgets; unless he was stopped, which may be
 * for what he has. */
void taint_claims_listed(struct taint_world *t)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];
        const struct tw_pod *was = &t->snapshot[i];
        bool listed = was->there && was->uid == pod->uid && was->sandbox == pod->sandbox;

        pod->user = pod->user && ((listed && (was->runs || is_kept_away(t, pod, was))) ||
                                  t->list_ms < pod->user_ms + COMES_MS);
    }
}

void taint_claims_shim_ended(struct taint_world *t)
{
    memset(t->driver_calls, 0, sizeof t->driver_calls);
    t->instance = 0;
    for (size_t i = 0; i < TW_CLAIMS; i++) {
        struct tw_claim *claim = &t->claims[i];

        claim->unprepare = 0;
        claim->asked = claim->told = claim->told_none = false;
        claim->refused_ms = 0;
        claim->kept = claim->devices = false;
    }
}

static void note_user(struct taint_world *t, const struct tw_claim *claim, const char *sandbox)
{
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        if (!pod->there || pod->kind != TW_CLAIM || &t->claims[pod->claim] != claim ||
            pod->sandbox != strtoul(sandbox + 1, NULL, 10))
            continue;
        pod->user = true;
        pod->user_ms = t->now_ms;
    }
}

void taint_claims_shim_started(struct taint_world *t)
{
    for (const struct row *row = t->rows; row; row = row->next) {
        struct tw_claim *claim = row->kind == DEVICEMGR_RECORD_CLAIM ? find(t, row->key[0]) : NULL;
        Checkpoint__V1__Claim *is =
            claim ? checkpoint__v1__claim__unpack(NULL, row->bytes, row->value) : NULL;

        if (!is)
            continue;
        claim->kept = strcmp(is->state, "owed") != 0;
        claim->devices = is->has_response;
        for (size_t i = 0; i < is->n_users; i++)
            note_user(t, claim, is->users[i]->sandbox_id);
        checkpoint__v1__claim__free_unpacked(is, NULL);
    }
}
