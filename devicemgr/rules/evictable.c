#include "devicemgr/rules/evictable.h"

#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/rules/claimed.h"
#include "devicemgr/rules/lifted.h"
#include "devicemgr/rules/tainted.h"
#include "devicemgr/things/moment.h"

#include "devicemgr/rules/rule.h"

/* One walk over holders. */
struct walk {
    const struct state *state;
    const char *resource, *id;   /* of this device only; NULL: of all */
    struct lifted_called called; /* what that is, where it is published */
    const struct taint *taint;   /* as if this were all there is; NULL: those that are in force */
    void (*each)(void *user, const struct evictable *evictable);
    void *user;
    struct evictable_looked looked;
};

/* One that holds one device. */
struct holder {
    struct walk *walk;
    const char *pod_uid;
    const char *resource, *id;
    const struct consumers *consumers; /* of a claim; NULL: nothing is known of them */
    bool published;                    /* the cluster has its taints from here, whoever set them */
    bool over;
    bool untold; /* they will be: what is tolerated is not known yet */
    bool unseen; /* it has no sandbox yet in this boot, which says what it tolerates */
    const struct tolerations *tolerations; /* of a claim, as the cluster has them; NULL: none */
    /* By the names of this device of this claim, which may be another claim's, too; NULL: not
     * so. */
    const struct claim *claim;
    const struct granted_device *device;
};

/* ---- one holder ---- */

/* A taint that is not in force, and only asked about, is nobody's yet. */
static bool is_published(const struct holder *holder)
{
    return holder->published && !holder->walk->taint;
}

static bool is_seen_there(const struct holder *holder)
{
    bool extended = holder->consumers && holder->consumers->extended;

    return !extended && !holder->untold;
}

static bool is_the_clusters(const struct holder *holder, const struct taint *taint)
{
    return (taint_is_the_clusters(taint) || is_published(holder)) && is_seen_there(holder);
}

static bool is_doubted(const struct state *state, const struct taint *taint)
{
    return state->tainted.doubted && taint_is_the_clusters(taint);
}

static bool look_at_taint(void *user, const struct taint *taint)
{
    const struct holder *holder = user;
    struct walk *walk = holder->walk;
    struct evictable evictable = {.pod_uid = holder->pod_uid,
                                  .resource = holder->resource,
                                  .id = holder->id,
                                  .taint = *taint,
                                  .over = holder->over};

    if (taint->effect != TAINT_NO_EXECUTE || is_the_clusters(holder, taint) ||
        (holder->claim &&
         claimed_by_another(walk->state, holder->claim, holder->device, holder->pod_uid)))
        return true;
    evictable.at_ms =
        tolerations_until_ms(tainted_tolerations(walk->state, holder->pod_uid), taint);
    if (holder->tolerations)
        evictable.at_ms = later(evictable.at_ms, tolerations_until_ms(holder->tolerations, taint));
    if (evictable.at_ms == UINT64_MAX)
        return true;
    if (taint->unstored || holder->untold || holder->unseen || is_doubted(walk->state, taint))
        evictable.at_ms = UINT64_MAX;
    walk->each(walk->user, &evictable);
    return true;
}

/* One without a uid is nobody's: a pod that has none either is another one. */
static void look_at(struct holder *holder)
{
    struct walk *walk = holder->walk;
    const struct pod *pod = pods_find(&walk->state->pods, holder->pod_uid);

    holder->over = facts_pod_over(walk->state, holder->pod_uid);
    holder->unseen = pod && !pod->newest;
    if (holder->pod_uid[0] == '\0' || !pod)
        walk->looked.stale += !holder->over;
    else if (walk->taint && !holder->over)
        look_at_taint(holder, walk->taint);
    else if (!walk->taint)
        tainted_each(walk->state, holder->resource, holder->id, look_at_taint, holder);
}

static bool is_meant(const struct walk *walk, const char *resource, const char *id)
{
    return !walk->resource ||
           (strcmp(walk->resource, resource) == 0 && (!walk->id || strcmp(walk->id, id) == 0));
}

/* ---- devices of plugins ---- */

static void look_at_ids(struct walk *walk, const char *pod_uid, const char *resource,
                        const struct ids *ids)
{
    for (size_t i = 0; i < ids->len; i++) {
        struct holder holder = {
            .walk = walk, .pod_uid = pod_uid, .resource = resource, .id = ids->v[i]};

        if (is_meant(walk, resource, ids->v[i]))
            look_at(&holder);
    }
}

/* The claim that the pod has it by; NULL: none is known. */
static const struct claim *claim_of(const struct state *state, const char *pod_uid,
                                    const char *resource, const char *id,
                                    const struct granted_device **device)
{
    const struct claims_of *of = claims_of(&state->claims, LIFT_DRIVER);
    const struct claim *found = NULL;
    struct lifted_called called;

    lifted_called_init(&called, resource, id);
    for (const struct claim *claim = of ? of->first : NULL; claim; claim = claim->next) {
        const struct consumers *consumers = consumers_find(state->tainted.consumers, claim->uid);

        for (size_t i = 0; i < claim->devices.len; i++) {
            if (!lifted_is_called(&claim->devices.v[i], &called))
                continue;
            *device = &claim->devices.v[i];
            found = claim;
            if (consumers && ids_contain(&consumers->reserved_for, pod_uid))
                return found;
        }
    }
    return found;
}

/* What is published the cluster's controller sees itself, and what its claim tolerates. */
static void look_at_claimed(struct walk *walk, const struct allocation *allocation)
{
    const struct state *state = walk->state;
    const char *resource = allocation->resource;

    for (size_t i = 0; i < allocation->ids.len; i++) {
        const char *id = allocation->ids.v[i];
        const struct granted_device *device = NULL;
        const struct claim *claim;
        struct holder holder = {
            .walk = walk, .pod_uid = allocation->pod_uid, .resource = resource, .id = id};

        if (!is_meant(walk, resource, id))
            continue;
        claim = claim_of(state, allocation->pod_uid, resource, id, &device);
        if (claim) {
            holder.published = true;
            holder.consumers = consumers_find(state->tainted.consumers, claim->uid);
            holder.untold = !holder.consumers;
            holder.tolerations = consumers_tolerations(holder.consumers, claim->driver,
                                                       device->pool, device->device);
        }
        look_at(&holder);
    }
}

static bool is_claimed(const struct state *state, const struct allocation *allocation)
{
    return allocation->claimed && state->settings.cluster &&
           lifted_is(state, resources_find(state->resources, allocation->resource));
}

static bool may_be_tainted(const struct state *state, const char *resource)
{
    const struct resource *is = resources_find(state->resources, resource);

    return (is && is->no_execute.len > 0) || tainted_any(state, resource);
}

static void look_at_allocation(struct walk *walk, const struct allocation *allocation)
{
    if (is_claimed(walk->state, allocation))
        look_at_claimed(walk, allocation);
    else
        look_at_ids(walk, allocation->pod_uid, allocation->resource, &allocation->ids);
}

static void look_at_hold(struct walk *walk, const struct kubelet_hold *hold)
{
    if (kubelet_hold_stands(walk->state, hold) && !kubelet_hold_replaced(walk->state, hold))
        look_at_ids(walk, hold->pod_uid, hold->resource, &hold->ids);
}

/* Of one device: those who have it alone. */
static void look_at_device(struct walk *walk)
{
    const struct state *state = walk->state;
    const struct owners *have = allocations_holders(&state->allocations, walk->resource, walk->id);
    const struct owners *holds = kubelet_holders(state, walk->resource, walk->id);

    for (size_t i = 0; i < owners_len(have); i++)
        look_at_allocation(walk, have->v[i]);
    for (size_t i = 0; i < owners_len(holds); i++)
        look_at_hold(walk, holds->v[i]);
}

static void look_at_plugins(struct walk *walk)
{
    const struct state *state = walk->state;

    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        if (walk->taint || may_be_tainted(state, a->resource))
            look_at_allocation(walk, a);
    }
    for (const struct kubelet_hold *hold = state->kubelet.holds; hold; hold = hold->hh.next) {
        if (walk->taint || may_be_tainted(state, hold->resource))
            look_at_hold(walk, hold);
    }
}

/* ---- claims ---- */

/* `former`: the claim had the device before, as who runs with it since then has it still; but not
 * who has reserved the claim. */
static void look_at_users(struct holder *holder, const struct claim *claim,
                          const struct granted_device *device, bool former)
{
    const struct pods *pods = &holder->walk->state->pods;

    holder->claim = claim;
    holder->device = device;
    for (size_t i = 0; i < claim->users_len; i++) {
        const struct sandbox *sandbox = pods_find_sandbox(pods, claim->users[i].sandbox_id);

        if (claim->users[i].former != former)
            continue;
        holder->pod_uid = sandbox ? sandbox->pod->uid : claim->users[i].pod_uid;
        look_at(holder);
    }
    holder->claim = NULL;
    if (former)
        return;
    for (size_t i = 0; holder->consumers && i < holder->consumers->reserved_for.len; i++) {
        holder->pod_uid = holder->consumers->reserved_for.v[i];
        look_at(holder);
    }
}

static void look_at_granted(struct holder *holder, const struct claim *claim,
                            const struct granted *granted)
{
    for (size_t i = 0; i < granted->len; i++) {
        const struct granted_device *device = &granted->v[i];
        char *id;

        if (holder->walk->id && !granted_device_is(device, holder->walk->id))
            continue;
        id = granted_device_id(device);
        holder->id = id;
        holder->tolerations =
            consumers_tolerations(holder->consumers, claim->driver, device->pool, device->device);
        look_at_users(holder, claim, device, granted == &claim->former);
        free(id);
    }
}

static const struct granted *devices_of(const struct claim *claim)
{
    return claim->devices.len > 0 ? &claim->devices : &claim->allocation;
}

static void look_at_claim(struct walk *walk, const struct claim *claim)
{
    struct holder holder = {.walk = walk,
                            .resource = claim->driver,
                            .consumers =
                                consumers_find(walk->state->tainted.consumers, claim->uid)};

    walk->looked.claims++;
    holder.untold = walk->state->settings.cluster && !holder.consumers;
    look_at_granted(&holder, claim, devices_of(claim));
    look_at_granted(&holder, claim, &claim->former);
}

/* One that is owed the kubelet takes for unprepared: nobody has it until it is asked for again. */
static bool may_be_held(const struct claim *claim)
{
    return claim_state_kept(claim->state) && claim->state != CLAIM_OWED;
}

/* Whether any device of the driver may be meant. */
static bool may_be_meant(const struct walk *walk, const char *driver)
{
    const struct state *state = walk->state;

    if (walk->resource)
        return strcmp(walk->resource, driver) == 0;
    return tainted_any(state, driver) ||
           cluster_taints_no_execute_of(&state->tainted.cluster, driver);
}

static void look_at_claims(struct walk *walk)
{
    for (const struct claims_of *of = walk->state->claims.by_driver; of; of = of->hh.next) {
        const struct claim *claim = may_be_meant(walk, of->driver) ? of->first : NULL;

        for (; claim; claim = claim->next) {
            if (may_be_held(claim))
                look_at_claim(walk, claim);
        }
    }
}

/* Which device it is here; false: nobody is to go for it. One that is asked about is found by what
 * it is called: what each of the others is here takes as long as there are devices. */
static bool find_lifted(struct holder *holder, const struct granted_device *device)
{
    const struct walk *walk = holder->walk;
    const struct state *state = walk->state;
    const char *resource = walk->resource;

    if (resource && !lifted_is_called(device, &walk->called))
        return false;
    if (!resource)
        resource = lifted_resource(state, device);
    if (!resource || !(walk->taint || may_be_tainted(state, resource)))
        return false;
    holder->published =
        state->settings.cluster && lifted_is(state, resources_find(state->resources, resource));
    if (is_published(holder) && is_seen_there(holder))
        return false;
    holder->resource = resource;
    holder->id = walk->resource ? walk->id : lifted_id(state, device, resource);
    return true;
}

static void look_at_lifted_claim(struct walk *walk, const struct claim *claim)
{
    const struct granted *granted = devices_of(claim);
    struct holder holder = {
        .walk = walk, .consumers = consumers_find(walk->state->tainted.consumers, claim->uid)};

    walk->looked.claims++;
    holder.untold = walk->state->settings.cluster && !holder.consumers;
    for (size_t i = 0; i < granted->len; i++) {
        const struct granted_device *device = &granted->v[i];

        if (!find_lifted(&holder, device))
            continue;
        holder.tolerations =
            consumers_tolerations(holder.consumers, claim->driver, device->pool, device->device);
        look_at_users(&holder, claim, device, false);
    }
}

/* Whether any resource that may be lifted, or was, may be tainted. */
static bool any_may_be_tainted(const struct state *state)
{
    for (size_t i = 0; i < state->settings.resources_len; i++) {
        if (may_be_tainted(state, state->settings.resources[i].name))
            return true;
    }
    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if (may_be_tainted(state, r->name))
            return true;
    }
    return false;
}

/* What is of a lifted resource is tainted as that is: who has a container with it has an allocation
 * of it, too, but not who is still to have one. */
static void look_at_lifted(struct walk *walk)
{
    const struct claims_of *of = claims_of(&walk->state->claims, LIFT_DRIVER);

    if (!of || !(walk->taint || any_may_be_tainted(walk->state)))
        return;
    for (const struct claim *claim = of->first; claim; claim = claim->next) {
        if (may_be_held(claim))
            look_at_lifted_claim(walk, claim);
    }
}

/* ---- all of them ---- */

struct evictable_looked evictable_each(const struct state *state,
                                       void (*each)(void *user, const struct evictable *evictable),
                                       void *user)
{
    struct walk walk = {.state = state, .each = each, .user = user};

    if (!tainted_no_execute(&state->tainted, &state->orders))
        return walk.looked;
    look_at_plugins(&walk);
    look_at_claims(&walk);
    look_at_lifted(&walk);
    return walk.looked;
}

bool evictable_all_known(const struct state *state)
{
    bool any = false;

    for (const struct claim *claim = state->settings.cluster ? state->claims.by_key : NULL; claim;
         claim = claim->hh.next) {
        if (!may_be_held(claim))
            continue;
        if (!consumers_find(state->tainted.consumers, claim->uid))
            return false;
        any = true;
    }
    return !any || (state->tainted.told && !state->tainted.doubted);
}

static bool is_from_elsewhere(void *user, const struct taint *taint)
{
    (void)user;
    return taint->effect != TAINT_NO_EXECUTE || taint_is_the_clusters(taint);
}

bool evictable_claim(const struct state *state, const struct claim *claim)
{
    const struct granted *granted = devices_of(claim);
    bool is = false;

    for (size_t i = 0; may_be_held(claim) && !is && i < granted->len; i++) {
        char *id = granted_device_id(&granted->v[i]);

        is = !tainted_each(state, claim->driver, id, is_from_elsewhere, NULL);
        free(id);
    }
    return is;
}

void evictable_by(const struct state *state, const char *resource, const char *id,
                  const struct taint *taint,
                  void (*each)(void *user, const struct evictable *evictable), void *user)
{
    struct walk walk = {
        .state = state, .resource = resource, .id = id, .taint = taint, .each = each, .user = user};

    if (id)
        look_at_device(&walk);
    else
        look_at_plugins(&walk);
    look_at_claims(&walk);
    if (!lifted_resource_known(state, resource))
        return;
    lifted_called_init(&walk.called, resource, id);
    look_at_lifted(&walk);
}
