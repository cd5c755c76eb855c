/*
 * What the cluster of the world of taints has of the driver's devices: ResourceSlices with taints,
 * DeviceTaintRules, allocations; its own controller, which deletes pods for them
 * (pkg/controller/devicetainteviction); and the agent, which tells the shim of all that when it
 * can, in any order.
 */
#include <stdio.h>
#include <string.h>

#include "devicemgr/dra.h"
#include "devicemgr/endings.h"
#include "devicemgr/taints.h"
#include "tests/sim/taint_world.h"

#define AGE_MS_MAX 60000
/* Of the claims that it is to look at, an agent may not see so many. */
#define HIDDEN_PERCENT 8
/* What has been refused for so long is a word. */
#define REFUSED_MS 10000

static const char *const KEYS[TW_KEYS] = {"k0", "k1"}, *const VALUES[] = {"v0", "v1"};
static const char *const EFFECTS[TW_EFFECTS] = {"None", "NoSchedule", "NoExecute"};
static const char *const POOLS[TW_POOLS] = {"p0", "p1"};

/* ---- what there is ---- */

static struct tw_cluster_taint draw_taint(struct taint_world *t, size_t pool)
{
    uint64_t of = rng_below(&t->rng, 10);

    return (struct tw_cluster_taint){.device = pool * TW_POOL_DEVICES +
                                               rng_below(&t->rng, TW_POOL_DEVICES),
                                     .key = (unsigned)rng_below(&t->rng, TW_KEYS),
                                     .value = (unsigned)rng_below(&t->rng, 2),
                                     .effect = of < 7   ? TW_NO_EXECUTE
                                               : of < 9 ? TW_NO_SCHEDULE
                                                        : TW_NONE,
                                     .added_ms = t->now_ms - rng_below(&t->rng, AGE_MS_MAX)};
}

/* The driver publishes a pool anew, in another slice. */
static void publish(struct taint_world *t, size_t i)
{
    struct tw_slice *slice = &t->facts.slices[i];
    const struct tw_slice *other = &t->facts.slices[i ^ 1];

    *slice = (struct tw_slice){.there = true,
                               .uid = ++t->last_fact,
                               .version = t->last_fact,
                               .pool = i / 2,
                               .generation = other->there ? other->generation + 1 : 1,
                               .taints_len = rng_below(&t->rng, TW_SLICE_TAINTS_MAX + 1)};
    for (size_t k = 0; k < slice->taints_len; k++)
        slice->taints[k] = draw_taint(t, slice->pool);
    taint_note(t, "slice r%u of %s, generation %d, has %zu taints", slice->uid, POOLS[slice->pool],
               (int)slice->generation, slice->taints_len);
}

static void change_slice(struct taint_world *t)
{
    size_t i = rng_below(&t->rng, TW_SLICES);
    struct tw_slice *slice = &t->facts.slices[i];
    bool newest =
        !t->facts.slices[i ^ 1].there || t->facts.slices[i ^ 1].generation < slice->generation;

    slice->version = ++t->last_fact;
    if (!slice->there) {
        publish(t, i);
    } else if (rng_percent(&t->rng, newest ? 30 : 70)) { /* all of it while the driver is away */
        slice->there = false;
    } else if (slice->taints_len > 0) {
        slice->taints_len--;
    } else {
        slice->taints[slice->taints_len++] = draw_taint(t, slice->pool);
    }
}

static void change_rule(struct taint_world *t)
{
    struct tw_rule *rule = &t->facts.rules[rng_below(&t->rng, TW_RULES)];

    t->last_fact++;
    if (rule->there && rng_percent(&t->rng, 60)) {
        rule->there = false;
        return;
    }
    *rule = (struct tw_rule){
        .there = true,
        .uid = rule->there ? rule->uid : t->last_fact,
        .version = t->last_fact,
        .driver = (enum tw_selected)(rng_percent(&t->rng, 70) ? TW_OURS : rng_below(&t->rng, 3)),
        .pool = (int)rng_below(&t->rng, TW_POOLS + 1) - 1,
        .device = rng_percent(&t->rng, 30) ? -1 : (int)rng_below(&t->rng, TW_POOL_DEVICES),
        .taint = draw_taint(t, 0)};
    taint_note(t, "rule r%u: driver %d, pool %d, device %d k%u=v%u:%s", rule->uid,
               (int)rule->driver, rule->pool, rule->device, rule->taint.key, rule->taint.value,
               EFFECTS[rule->taint.effect]);
}

void taint_facts_change(struct taint_world *t)
{
    if (rng_percent(&t->rng, 65))
        change_slice(t);
    else
        change_rule(t);
}

void taint_facts_heal(struct taint_world *t)
{
    for (size_t i = 0; i < TW_SLICES; i++) {
        t->facts.slices[i].taints_len = 0;
        t->facts.slices[i].version = ++t->last_fact;
    }
    for (size_t i = 0; i < TW_RULES; i++)
        t->facts.rules[i].there = false;
}

/* ---- which of it counts ---- */

static bool is_newest(const struct tw_facts *facts, const struct tw_slice *slice)
{
    for (size_t i = 0; i < TW_SLICES; i++) {
        const struct tw_slice *other = &facts->slices[i];

        if (other->there && other->pool == slice->pool && other->generation > slice->generation)
            return false;
    }
    return true;
}

static bool selects(const struct tw_rule *rule, size_t device)
{
    return (rule->driver == TW_ANY || rule->driver == TW_OURS) &&
           (rule->pool < 0 || (size_t)rule->pool == device / TW_POOL_DEVICES) &&
           (rule->device < 0 || (size_t)rule->device == device % TW_POOL_DEVICES);
}

/* It would be for every device in the cluster. */
static bool is_empty(const struct tw_rule *rule)
{
    return rule->driver == TW_ANY && rule->pool < 0 && rule->device < 0;
}

void taint_facts_each(const struct tw_facts *facts, size_t device,
                      void (*each)(void *user, const struct tw_cluster_taint *taint), void *user)
{
    for (size_t i = 0; i < TW_SLICES; i++) {
        const struct tw_slice *slice = &facts->slices[i];

        for (size_t k = 0; slice->there && k < slice->taints_len; k++) {
            if (slice->taints[k].device != device)
                continue;
            if (is_newest(facts, slice))
                each(user, &slice->taints[k]);
            else
                count_add(COUNT_TAINT_OUTDATED);
        }
    }
    for (size_t i = 0; i < TW_RULES; i++) {
        const struct tw_rule *rule = &facts->rules[i];

        if (!rule->there || !selects(rule, device))
            continue;
        if (is_empty(rule))
            count_add(COUNT_TAINT_RULE_FOR_ALL);
        else
            each(user, &rule->taint);
    }
}

/* ---- the agent ---- */

static struct devicemgr_taint told_taint(const struct taint_world *t,
                                         const struct tw_cluster_taint *taint)
{
    return (struct devicemgr_taint){.key = KEYS[taint->key],
                                    .value = VALUES[taint->value],
                                    .effect = EFFECTS[taint->effect],
                                    .age_ms = t->now_ms - taint->added_ms};
}

static void tell_slice(struct taint_world *t, size_t i)
{
    static const char *const DEVICES[TW_POOL_DEVICES] = {"g0", "g1", "g2", "g3"};
    const struct tw_slice *slice = &t->facts.slices[i], *was = &t->told.slices[i];
    struct devicemgr_tainted_device devices[TW_SLICE_TAINTS_MAX];
    const char *driver = taint_resource_name(TW_DRIVER);
    char uid[16];

    if (was->there && (!slice->there || slice->uid != was->uid)) {
        snprintf(uid, sizeof uid, "r%u", was->uid);
        taint_note(t, "the shim is told that slice %s is gone", uid);
        t->told.slices[i].there = false;
        devicemgr_slice_gone(t->core, t->now_ms, uid);
        return;
    }
    snprintf(uid, sizeof uid, "r%u", slice->uid);
    for (size_t k = 0; k < slice->taints_len; k++)
        devices[k] = (struct devicemgr_tainted_device){
            DEVICES[slice->taints[k].device % TW_POOL_DEVICES], told_taint(t, &slice->taints[k])};
    taint_note(t, "the shim is told of slice %s", uid);
    t->told.slices[i] = *slice;
    devicemgr_slice(t->core, t->now_ms,
                    &(struct devicemgr_slice){.uid = uid,
                                              .driver = driver,
                                              .pool = POOLS[slice->pool],
                                              .devices = DEVICES,
                                              .devices_len = TW_POOL_DEVICES});
    devicemgr_slice_taints(t->core, t->now_ms, uid, driver, POOLS[slice->pool], slice->generation,
                           devices, slice->taints_len);
}

static void tell_rule(struct taint_world *t, size_t i)
{
    static const char *const DRIVERS[] = {NULL, "acc.example.com", "another.example.com"};
    const struct tw_rule *rule = &t->facts.rules[i], *was = &t->told.rules[i];
    struct devicemgr_taint_rule is = {.name = "rule"};
    char uid[16];

    if (was->there && (!rule->there || rule->uid != was->uid)) {
        snprintf(uid, sizeof uid, "r%u", was->uid);
        taint_note(t, "the shim is told that rule %s is gone", uid);
        t->told.rules[i].there = false;
        devicemgr_taint_rule_gone(t->core, t->now_ms, uid);
        return;
    }
    snprintf(uid, sizeof uid, "r%u", rule->uid);
    is.driver = DRIVERS[rule->driver];
    is.pool = rule->pool < 0 ? NULL : POOLS[rule->pool];
    is.device = rule->device < 0 ? NULL : taint_device_id(0, (size_t)rule->device);
    is.taint = told_taint(t, &rule->taint);
    taint_note(t, "the shim is told of rule %s", uid);
    t->told.rules[i] = *rule;
    devicemgr_taint_rule(t->core, t->now_ms, uid, &is);
}

/* Whatever was changed has another version. */
static bool slice_is_news(const struct taint_world *t, size_t i)
{
    const struct tw_slice *is = &t->facts.slices[i], *was = &t->told.slices[i];

    return is->there != was->there || (is->there && is->version != was->version);
}

static bool rule_is_news(const struct taint_world *t, size_t i)
{
    const struct tw_rule *is = &t->facts.rules[i], *was = &t->told.rules[i];

    return is->there != was->there || (is->there && is->version != was->version);
}

/* Whether what is refused may be told soon: an API server that has just started knows nothing. */
static bool is_passing(const struct taint_world *t, struct tw_claim *claim)
{
    if (claim->refused_ms <= t->away_ms)
        claim->refused_ms = t->now_ms;
    return t->now_ms < claim->refused_ms + REFUSED_MS;
}

static void tell_claim(struct taint_world *t, struct tw_claim *claim)
{
    static const char *const OPS[] = {"Equal", "Exists"};
    struct devicemgr_claim_toleration tolerations[TW_TOLERATIONS_MAX];
    bool hidden = rng_percent(&t->rng, HIDDEN_PERCENT) && !t->calm, again = claim->told;
    char uid[16], names[TW_RESERVED_MAX][16];
    const char *uids[TW_RESERVED_MAX];
    struct devicemgr_claim_consumers is = {.extended = claim->extended,
                                           .reserved_for = uids,
                                           .reserved_for_len = claim->reserved_len,
                                           .tolerations = tolerations,
                                           .tolerations_len = claim->tolerations_len};

    claim->asked = false;
    claim->told = again || !hidden || !is_passing(t, claim);
    if (claim->told && (!hidden || !again)) { /* else what was told stands */
        claim->told_none = hidden;
        claim->told_reserved_len = hidden ? 0 : claim->reserved_len;
        memcpy(claim->told_reserved, claim->reserved, sizeof claim->reserved);
    }
    snprintf(uid, sizeof uid, "c%u", claim->uid);
    for (size_t i = 0; i < claim->reserved_len; i++) {
        snprintf(names[i], sizeof names[i], "u%u", claim->reserved[i]);
        uids[i] = names[i];
    }
    for (size_t i = 0; i < claim->tolerations_len; i++) {
        const struct tw_claim_toleration *one = &claim->tolerations[i];

        tolerations[i] = (struct devicemgr_claim_toleration){
            .driver = taint_resource_name(TW_DRIVER),
            .pool = POOLS[one->device / TW_POOL_DEVICES],
            .device = taint_device_id(0, one->device % TW_POOL_DEVICES),
            .toleration = {.key = one->is.key < 0          ? ""
                                  : one->is.key == TW_KEYS ? "devices.cri-device-shim/unhealthy"
                                                           : KEYS[one->is.key],
                           .op = OPS[one->is.exists],
                           .value = one->is.exists ? "" : VALUES[one->is.value],
                           .effect = one->is.effect < 0 ? "" : EFFECTS[one->is.effect],
                           .has_seconds = one->is.has_seconds,
                           .seconds = one->is.seconds}};
    }
    taint_note(t, "the shim is told of claim %s%s", uid, hidden ? ", nothing" : "");
    devicemgr_claim_consumers(t->core, t->now_ms, uid, hidden ? NULL : &is);
}

static size_t news(const struct taint_world *t)
{
    size_t len = 0;

    for (size_t i = 0; i < TW_SLICES; i++)
        len += slice_is_news(t, i);
    for (size_t i = 0; i < TW_RULES; i++)
        len += rule_is_news(t, i);
    return len;
}

/* The n-th. */
static void tell_fact(struct taint_world *t, size_t n)
{
    for (size_t i = 0; i < TW_SLICES; i++) {
        if (slice_is_news(t, i) && n-- == 0) {
            tell_slice(t, i);
            return;
        }
    }
    for (size_t i = 0; i < TW_RULES; i++) {
        if (rule_is_news(t, i) && n-- == 0) {
            tell_rule(t, i);
            return;
        }
    }
}

static void count_stale(const struct taint_world *t)
{
    struct devicemgr_evictions evictions;

    devicemgr_evictions(t->core, &evictions);
    if (evictions.stale > 0)
        count_add(COUNT_TAINT_STALE);
}

bool taint_agent_tells(struct taint_world *t)
{
    size_t len = news(t), claim = 0;

    while (claim < TW_CLAIMS && !t->claims[claim].asked)
        claim++;
    if (!t->cluster || t->api_away || (len == 0 && claim == TW_CLAIMS && t->told_all))
        return false;
    if (claim < TW_CLAIMS && (len == 0 || rng_percent(&t->rng, 40))) {
        tell_claim(t, &t->claims[claim]);
    } else if (len > 0) {
        tell_fact(t, rng_below(&t->rng, len));
    } else {
        t->told_all = true;
        t->doubted = false;
        devicemgr_taints_told(t->core, t->now_ms);
    }
    taint_shim_run(t);
    count_stale(t);
    return true;
}

void taint_agent_shim_started(struct taint_world *t)
{
    memset(&t->told, 0, sizeof t->told);
    t->told_all = t->doubted = false;
    t->away_ms = 0;
}

void taint_agent_goes(struct taint_world *t)
{
    t->leaves = false;
    if (!t->cluster)
        return;
    taint_note(t, "the agent is another one");
    count_add(COUNT_TAINT_AGENT_GOES);
    t->told_all = false;
    t->doubted = true;
    for (size_t i = 0; i < TW_PODS; i++) {
        struct tw_pod *pod = &t->pods[i];

        pod->adopted = pod->evicted.is && (pod->adopted || taint_is_the_clusters_too(t, pod));
        pod->confirmed = false;
    }
    devicemgr_taints_doubted(t->core, t->now_ms);
    taint_shim_run(t);
}

bool taint_facts_untold(const struct taint_world *t)
{
    bool untold = !t->told_all, any = false;

    for (size_t i = 0; i < TW_CLAIMS; i++) {
        const struct tw_claim *claim = &t->claims[i];

        untold = untold || claim->asked || (claim->refused_ms > 0 && !claim->told);
        any = any || t->claims[i].kept;
    }
    return t->cluster && any && untold;
}

/* ---- the controller ---- */

void taint_controller_looks(struct taint_world *t, struct tw_pod *pod)
{
    if (!pod->there || pod->deleting || taint_controller_ms(t, pod) > t->now_ms)
        return;
    count_add(COUNT_TAINT_BY_CLUSTER);
    taint_note(t, "the cluster's controller deletes u%u", pod->uid);
    taint_pod_deleted(t, pod);
}
