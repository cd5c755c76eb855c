/*
 * Who is to go, and when: by what was said and stored, and what a pod tolerates. In the words of
 * Kubernetes' DeviceTaint and DeviceToleration, without a look at the core.
 */
#include "tests/sim/taint_world.h"

#define KEY_HEALTH TW_KEYS

/* A taint that is in force. */
struct in_force {
    unsigned key, value;
    enum tw_effect effect;
    uint64_t added_ms;
    bool clusters; /* by a slice, or a rule */
};

/* ---- tolerations ---- */

static bool tolerates(const struct tw_toleration *toleration, const struct in_force *taint)
{
    if (toleration->effect >= 0 && (enum tw_effect)toleration->effect != taint->effect)
        return false;
    if (toleration->key >= 0 && (unsigned)toleration->key != taint->key)
        return false;
    /* a device that is unhealthy is tainted without a value, which nobody here writes */
    return toleration->exists || (taint->key != KEY_HEALTH && toleration->value == taint->value);
}

static uint64_t one_until_ms(const struct tw_toleration *toleration, const struct in_force *taint)
{
    if (!toleration->has_seconds || toleration->effect != TW_NO_EXECUTE)
        return TW_NEVER;
    return toleration->seconds <= 0 ? 0 : taint->added_ms + 1000 * (uint64_t)toleration->seconds;
}

/* For how long: 0, not at all; TW_NEVER, for ever. */
struct until {
    uint64_t ms;
    bool found, for_ever;
};

static void add_toleration(struct until *until, const struct tw_toleration *toleration,
                           const struct in_force *taint)
{
    uint64_t one;

    if (!tolerates(toleration, taint))
        return;
    one = one_until_ms(toleration, taint);
    until->for_ever = until->for_ever || one == TW_NEVER;
    until->ms = until->found && until->ms < one ? until->ms : one;
    until->found = true;
}

static uint64_t annotated_ms(const struct tw_pod *pod, const struct in_force *taint)
{
    struct until until = {0};

    for (size_t i = 0; i < pod->tolerations_len; i++)
        add_toleration(&until, &pod->tolerations[i], taint);
    return until.for_ever ? TW_NEVER : until.ms;
}

static uint64_t allocated_ms(const struct tw_claim *claim, size_t device,
                             const struct in_force *taint)
{
    struct until until = {0};

    for (size_t i = 0; i < claim->tolerations_len; i++) {
        if (claim->tolerations[i].device == device)
            add_toleration(&until, &claim->tolerations[i].is, taint);
    }
    return until.for_ever ? TW_NEVER : until.ms;
}

static const struct tw_claim *claim_of(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->kind == TW_CLAIM ? &t->claims[pod->claim] : NULL;
}

/* The longer of what its annotation says, and its claim, as far as that was told. */
static uint64_t until_ms(const struct taint_world *t, const struct tw_pod *pod, size_t device,
                         const struct in_force *taint)
{
    const struct tw_claim *claim = claim_of(t, pod);
    uint64_t ms = annotated_ms(pod, taint), claims_ms = 0;

    if (claim && claim->told && !claim->told_none)
        claims_ms = allocated_ms(claim, device, taint);
    return ms > claims_ms ? ms : claims_ms;
}

/* ---- what is in force on one device ---- */

#define IN_FORCE_MAX                                                                               \
    (2 * TW_KEYS * TW_EFFECTS + TW_SETS_MAX + TW_SLICES * TW_SLICE_TAINTS_MAX + TW_RULES)

struct in_force_list {
    struct in_force v[IN_FORCE_MAX];
    size_t len;
};

enum certainty {
    CERTAIN, /* nobody has asked for anything else */
    STORED,  /* what was, as long as nothing else is stored */
    PERHAPS, /* that, or what is asked for */
};

static void add_version(struct in_force_list *list, const struct taint_world *t,
                        const struct tw_version *version, unsigned key, enum tw_effect effect)
{
    if (version->on && t->now_ms < version->end_ms)
        list->v[list->len++] =
            (struct in_force){key, version->value, effect, version->added_ms, false};
}

static void add_clusters(void *user, const struct tw_cluster_taint *taint)
{
    struct in_force_list *list = user;

    list->v[list->len++] =
        (struct in_force){taint->key, taint->value, taint->effect, taint->added_ms, true};
}

static void in_force(const struct taint_world *t, size_t resource, size_t device,
                     enum certainty certainty, struct in_force_list *list)
{
    list->len = 0; /* the rest is not looked at, and large */
    for (unsigned key = 0; key < TW_KEYS; key++) {
        for (unsigned effect = 0; effect < TW_EFFECTS; effect++) {
            const struct tw_cell *cell = &t->cells[resource][device][key][effect];

            if (!cell->pending || certainty != CERTAIN)
                add_version(list, t, &cell->is, key, (enum tw_effect)effect);
            if (cell->pending && certainty == PERHAPS)
                add_version(list, t, &cell->next, key, (enum tw_effect)effect);
        }
    }
    for (size_t i = 0; i < t->sets_len; i++) {
        const struct tw_set *set = &t->sets[i];

        if (set->resource == resource && (set->device < 0 || (size_t)set->device == device))
            list->v[list->len++] =
                (struct in_force){set->key, set->value, set->effect, set->added_ms, false};
    }
    if (resource == TW_DRIVER)
        taint_facts_each(&t->told, device, add_clusters, list);
}

/* ---- when one is to go ---- */

/* Whether it is for the shim to evict it, as far as that is known: the cluster's controller sees
 * all claims but those of extended resources. */
static bool evicts_here(const struct taint_world *t, const struct tw_pod *pod,
                        const struct in_force *taint)
{
    const struct tw_claim *claim = claim_of(t, pod);

    return taint->effect == TW_NO_EXECUTE && (!claim || !t->cluster || claim->told) &&
           (!taint->clusters || (claim->extended && !claim->told_none));
}

static uint64_t device_ms(const struct taint_world *t, const struct tw_pod *pod, size_t device,
                          enum certainty certainty)
{
    uint64_t first_ms = TW_NEVER;
    struct in_force_list list;

    in_force(t, pod->resource, device, certainty, &list);
    for (size_t i = 0; i < list.len; i++) {
        bool doubted = certainty == CERTAIN && t->doubted && list.v[i].clusters;
        uint64_t ms = evicts_here(t, pod, &list.v[i]) && !doubted
                          ? until_ms(t, pod, device, &list.v[i])
                          : TW_NEVER;

        first_ms = ms < first_ms ? ms : first_ms;
    }
    return first_ms;
}

bool taint_unhealthy_for_long(const struct taint_world *t, const struct tw_plugin *plugin,
                              const struct tw_device *device)
{
    uint64_t from_ms = device->since_ms > plugin->listed_ms ? device->since_ms : plugin->listed_ms;

    return device->since_ms > 0 && t->now_ms >= from_ms + t->unhealthy_after_ms;
}

static uint64_t health_ms(const struct taint_world *t, const struct tw_pod *pod, size_t device,
                          enum certainty certainty)
{
    const struct tw_plugin *plugin = &t->plugins[pod->resource];
    const struct tw_device *is = &plugin->devices[device];
    const struct in_force taint = {.key = KEY_HEALTH,
                                   .effect = TW_NO_EXECUTE,
                                   .added_ms = certainty == CERTAIN ? is->since_ms : is->from_ms};

    if (!is->goes || is->said_healthy || t->unhealthy_after_ms == 0)
        return TW_NEVER;
    if (certainty == CERTAIN &&
        (plugin->storm || !plugin->endpoint || !taint_unhealthy_for_long(t, plugin, is)))
        return TW_NEVER;
    return until_ms(t, pod, device, &taint);
}

static uint64_t pod_ms(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                       enum certainty certainty, bool by_health)
{
    uint64_t first_ms = TW_NEVER;

    by_health = by_health && pod->kind != TW_CLAIM;
    for (size_t i = 0; i < taint_resource_devices(pod->resource); i++) {
        uint64_t ms = mask & 1u << i ? device_ms(t, pod, i, certainty) : TW_NEVER;
        uint64_t sick_ms = mask & 1u << i && by_health ? health_ms(t, pod, i, certainty) : TW_NEVER;

        first_ms = ms < first_ms ? ms : first_ms;
        first_ms = sick_ms < first_ms ? sick_ms : first_ms;
    }
    return first_ms;
}

bool taint_is_told_to_have(const struct taint_world *t, const struct tw_pod *pod)
{
    const struct tw_claim *claim = claim_of(t, pod);

    for (size_t i = 0; claim->told && i < claim->told_reserved_len; i++) {
        if (claim->told_reserved[i] == pod->uid)
            return true;
    }
    return false;
}

/* By the cluster's word, or by its container. */
static bool has_claim(const struct taint_world *t, const struct tw_pod *pod)
{
    const struct tw_claim *claim = claim_of(t, pod);

    return claim->kept && claim->devices && (pod->user || taint_is_told_to_have(t, pod));
}

static bool has_it(const struct taint_world *t, const struct tw_pod *pod)
{
    if (!pod->there || !pod->known || !pod->ready || pod->deleting)
        return false;
    switch (pod->kind) {
    case TW_TOKEN:
        return pod->in_file;
    case TW_REQUEST:
        return pod->runs;
    case TW_CLAIM:
        return has_claim(t, pod);
    }
    return false;
}

uint64_t taint_must_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    return has_it(t, pod) ? pod_ms(t, pod, pod->mask, CERTAIN, true) : TW_NEVER;
}

static unsigned may_have(const struct tw_pod *pod)
{
    return pod->kind == TW_REQUEST ? pod->had : pod->mask;
}

uint64_t taint_may_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->there ? pod_ms(t, pod, may_have(pod), STORED, true) : TW_NEVER;
}

uint64_t taint_may_by_known_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->there ? pod_ms(t, pod, pod->mask, STORED, true) : TW_NEVER;
}

uint64_t taint_may_besides_health_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->there ? pod_ms(t, pod, may_have(pod), STORED, false) : TW_NEVER;
}

uint64_t taint_may_besides_health_by_known_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    return pod->there ? pod_ms(t, pod, pod->mask, STORED, false) : TW_NEVER;
}

bool taint_pending(const struct taint_world *t, const struct tw_pod *pod)
{
    for (size_t d = 0; d < taint_resource_devices(pod->resource); d++) {
        for (unsigned key = 0; may_have(pod) & 1u << d && key < TW_KEYS; key++) {
            if (t->cells[pod->resource][d][key][TW_NO_EXECUTE].pending)
                return true;
        }
    }
    return false;
}

uint64_t taint_may_besides_cluster_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    uint64_t first_ms = TW_NEVER;

    for (size_t d = 0; d < taint_resource_devices(pod->resource); d++) {
        struct in_force_list list;

        if ((pod->mask & 1u << d) == 0)
            continue;
        in_force(t, pod->resource, d, STORED, &list);
        for (size_t i = 0; i < list.len; i++) {
            uint64_t ms = list.v[i].clusters || !evicts_here(t, pod, &list.v[i])
                              ? TW_NEVER
                              : until_ms(t, pod, d, &list.v[i]);

            first_ms = ms < first_ms ? ms : first_ms;
        }
    }
    return first_ms;
}

bool taint_is_the_clusters_too(const struct taint_world *t, const struct tw_pod *pod)
{
    for (size_t d = 0; d < taint_resource_devices(pod->resource); d++) {
        struct in_force_list list;

        if ((pod->mask & 1u << d) == 0)
            continue;
        in_force(t, pod->resource, d, STORED, &list);
        for (size_t i = 0; i < list.len; i++) {
            if (list.v[i].clusters && evicts_here(t, pod, &list.v[i]) &&
                until_ms(t, pod, d, &list.v[i]) != TW_NEVER)
                return true;
        }
    }
    return false;
}

bool taint_is_doubted(const struct taint_world *t, const struct tw_pod *pod)
{
    return t->doubted && pod->kind == TW_CLAIM && taint_may_besides_cluster_ms(t, pod) > t->now_ms;
}

bool taint_claim_spares(const struct taint_world *t, const struct tw_pod *pod)
{
    for (size_t d = 0; d < taint_resource_devices(pod->resource); d++) {
        struct in_force_list list;

        if ((pod->mask & 1u << d) == 0)
            continue;
        in_force(t, pod->resource, d, CERTAIN, &list);
        for (size_t i = 0; i < list.len; i++) {
            if (evicts_here(t, pod, &list.v[i]) && annotated_ms(pod, &list.v[i]) <= t->now_ms &&
                until_ms(t, pod, d, &list.v[i]) > t->now_ms)
                return true;
        }
    }
    return false;
}

/* ---- the cluster's controller ---- */

struct controlled {
    const struct tw_claim *claim;
    size_t device;
    uint64_t first_ms;
};

/* A toleration of every effect is none to it. */
static void control(void *user, const struct tw_cluster_taint *taint)
{
    const struct in_force is = {taint->key, taint->value, taint->effect, taint->added_ms, true};
    struct controlled *controlled = user;
    uint64_t ms = taint->added_ms;

    if (taint->effect != TW_NO_EXECUTE)
        return;
    for (size_t i = 0; i < controlled->claim->tolerations_len; i++) {
        const struct tw_claim_toleration *one = &controlled->claim->tolerations[i];

        if (one->device == controlled->device && one->is.effect == TW_NO_EXECUTE &&
            tolerates(&one->is, &is))
            ms = allocated_ms(controlled->claim, controlled->device, &is);
    }
    controlled->first_ms = ms < controlled->first_ms ? ms : controlled->first_ms;
}

uint64_t taint_controller_ms(const struct taint_world *t, const struct tw_pod *pod)
{
    struct controlled controlled = {.claim = claim_of(t, pod), .first_ms = TW_NEVER};

    if (!controlled.claim || controlled.claim->extended)
        return TW_NEVER;
    for (controlled.device = 0; controlled.device < TW_DEVICES_MAX; controlled.device++) {
        if (pod->mask & 1u << controlled.device)
            taint_facts_each(&t->facts, controlled.device, control, &controlled);
    }
    return controlled.first_ms;
}

/* ---- what may be made ---- */

/* What the cluster says waits for what the claim tolerates, which it says, too. */
static bool is_untold(const struct taint_world *t, const struct tw_pod *pod,
                      const struct in_force *taint)
{
    const struct tw_claim *claim = claim_of(t, pod);

    return taint->clusters && claim && t->cluster && !claim->told;
}

static bool has(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                enum tw_effect effect, enum certainty certainty)
{
    for (size_t d = 0; d < taint_resource_devices(pod->resource); d++) {
        struct in_force_list list;

        if ((mask & 1u << d) == 0)
            continue;
        in_force(t, pod->resource, d, certainty, &list);
        for (size_t i = 0; i < list.len; i++) {
            if (list.v[i].effect == effect && !is_untold(t, pod, &list.v[i]) &&
                until_ms(t, pod, d, &list.v[i]) <= t->now_ms)
                return true;
        }
    }
    return false;
}

bool taint_must_have(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                     enum tw_effect effect)
{
    return has(t, pod, mask, effect, CERTAIN);
}

bool taint_may_have(const struct taint_world *t, const struct tw_pod *pod, unsigned mask,
                    enum tw_effect effect)
{
    return has(t, pod, mask, effect, PERHAPS);
}

static bool keeps_back(const struct taint_world *t, size_t resource, size_t device,
                       enum certainty certainty)
{
    struct in_force_list list;

    in_force(t, resource, device, certainty, &list);
    for (size_t i = 0; i < list.len; i++) {
        if (list.v[i].effect != TW_NONE)
            return true;
    }
    return false;
}

bool taint_must_keep_back(const struct taint_world *t, size_t resource, size_t device)
{
    return keeps_back(t, resource, device, CERTAIN);
}

bool taint_may_keep_back(const struct taint_world *t, size_t resource, size_t device)
{
    return keeps_back(t, resource, device, PERHAPS);
}
