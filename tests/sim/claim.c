#include "tests/sim/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/ports.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

/* What is kept for a time is dropped by the list after it, which comes within 10 s and takes 15. */
#define KEPT_LAG_MS 30000

static struct claim *find(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    for (size_t i = 0; uid && i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (c->uid == uid && c->name == name && c->resource == resource)
            return c;
    }
    return NULL;
}

const struct claim *claims_seek(const struct world *w, unsigned uid, unsigned name, size_t resource)
{
    return find((struct world *)w, uid, name, resource);
}

static struct claim *ensure(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    struct claim *c = find(w, uid, name, resource);

    if (c)
        return c;
    c = w->claims.v;
    while (c < w->claims.v + w->claims.len && c->uid)
        c++;
    if (c == w->claims.v + CLAIMS_MAX)
        abort(); /* the world is too small for its seed */
    if (c == w->claims.v + w->claims.len)
        w->claims.len++;
    *c = (struct claim){.uid = uid, .name = name, .resource = resource, .since_ms = w->now_ms};
    return c;
}

/* ---- what makes and ends them ---- */

static struct claim *find_row(struct world *w, const struct devicemgr_record *record)
{
    return find(w, (unsigned)strtoul(record->key[0] + 1, NULL, 10),
                container_sim_find(record->key[1]), resource_sim_find(record->key[2]));
}

static struct claim *note_row(struct world *w, const struct devicemgr_record *record)
{
    Checkpoint__V1__Allocation *row;
    struct claim *c;

    if (record->kind != DEVICEMGR_RECORD_ALLOCATION || !record->value)
        return NULL;
    row = checkpoint__v1__allocation__unpack(NULL, record->value_bytes, record->value);
    c = ensure(w, (unsigned)strtoul(record->key[0] + 1, NULL, 10),
               container_sim_find(record->key[1]), resource_sim_find(record->key[2]));
    c->former |= c->mask;
    c->mask = device_sim_mask((const char *const *)row->device_ids, row->n_device_ids);
    c->own = row->own_choice;
    checkpoint__v1__allocation__free_unpacked(row, NULL);
    return c;
}

/* What is to be deleted is in force no more, however long the row stays. */
void claims_row_written(struct world *w, const struct devicemgr_record *record)
{
    struct claim *c = note_row(w, record);
    struct claim *dropped =
        record->kind == DEVICEMGR_RECORD_ALLOCATION && !record->value ? find_row(w, record) : NULL;

    if (dropped)
        dropped->kept = false;
    if (c && c->boot == 0)
        c->boot = w->shim.boot; /* a new one; of another the row says nothing of its pod */
}

/* The boot that the row of the pod names. */
static unsigned stored_boot(const struct world *w, const char *uid)
{
    const struct store_row *row = store_find(&w->store, DEVICEMGR_RECORD_POD, uid, "", "");
    Checkpoint__V1__Pod *pod;
    unsigned boot;

    if (!row)
        return w->shim.boot; /* the shim knows no other */
    pod = checkpoint__v1__pod__unpack(NULL, row->record.value_bytes, row->record.value);
    boot = (unsigned)strtoul(pod->boot_id + strcspn(pod->boot_id, "0123456789"), NULL, 10);
    checkpoint__v1__pod__free_unpacked(pod, NULL);
    return boot;
}

void claims_row_restored(struct world *w, const struct devicemgr_record *record)
{
    struct claim *c = note_row(w, record);

    if (c)
        c->boot = stored_boot(w, record->key[0]);
}

void claims_row_durable(struct world *w, const struct devicemgr_record *record)
{
    struct claim *c = record->kind == DEVICEMGR_RECORD_ALLOCATION ? find_row(w, record) : NULL;

    if (c)
        c->former = 0;
}

void claims_row_deleted(struct world *w, const struct devicemgr_record *record)
{
    struct claim *c = record->kind == DEVICEMGR_RECORD_ALLOCATION ? find_row(w, record) : NULL;

    if (c)
        *c = (struct claim){0};
}

void claims_forwarded(struct world *w, unsigned uid, unsigned name, size_t resource, unsigned mask,
                      bool own)
{
    struct claim *c = ensure(w, uid, name, resource);

    c->mask = mask;
    c->own = own;
    c->kept = c->stays = !releaser_takes(w, uid);
    c->contested = false;
    c->back = 0;
    c->boot = w->shim.boot;
    c->told_ms = w->now_ms;
}

void claims_contested(struct world *w, unsigned uid, unsigned name)
{
    for (size_t r = 0; r < RESOURCES_LEN; r++) {
        struct claim *c = find(w, uid, name, r);

        if (c)
            c->contested = true;
    }
}

void claims_answered(struct world *w, unsigned uid, unsigned name)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        if (w->claims.v[i].uid == uid && w->claims.v[i].name == name)
            w->claims.v[i].told_ms = w->now_ms;
    }
}

void claims_rival(struct world *w, unsigned uid, size_t resource, unsigned mask)
{
    ensure(w, uid, POD_CONTAINERS_MAX, resource)->mask = mask;
}

void claims_adopted(struct world *w, unsigned uid, unsigned name, size_t resource, unsigned mask)
{
    struct claim *c = ensure(w, uid, name, resource);

    c->former |= c->mask & ~mask; /* a row's of before */
    c->mask = mask;
    c->unsure_ms = w->now_ms; /* what runs is known by a list of before */
    if (c->boot == 0)
        c->boot = w->shim.boot;
}

void claims_unsure(struct world *w, unsigned uid, unsigned name)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (uid == 0 || (c->uid == uid && c->name == name))
            c->unsure_ms = w->now_ms;
    }
}

/* ---- what the shim must know ---- */

/* When the shim had heard of all that may be there: of the runtime, and of a kubelet, or it had
 * waited long enough for one. UINT64_MAX: not yet. */
uint64_t claims_sources_ms(const struct world *w)
{
    uint64_t ready_ms = w->shim.started_ms + w->shim.settings.kubelet_wait_ms;

    if (w->shim.kubelet_ms > 0 && w->shim.kubelet_ms < ready_ms)
        ready_ms = w->shim.kubelet_ms;
    if (ready_ms < w->shim.listed_ms)
        ready_ms = w->shim.listed_ms;
    return w->shim.listed_ms == 0 || w->now_ms < ready_ms ? UINT64_MAX : ready_ms;
}

/* Whether the shim may never have heard of the pod, in this life: it may be one still to come. */
static bool may_be_new(const struct world *w, unsigned uid)
{
    return w->shim.listed_ms == 0 || runtime_ended_ms(w, uid) <= w->shim.listed_ms;
}

/* The kubelet has promised a device to such a pod. */
static bool may_come(const struct world *w, const struct told *told)
{
    return may_be_new(w, told->uid) &&
           (claims_sources_ms(w) == UINT64_MAX || w->now_ms <= told->since_ms + POD_COMES_MS);
}

/* The kubelet's checkpoint names the pod. */
static bool is_told(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < RESOURCES_LEN * DEVICES_MAX; i++) {
        if (w->bridge.told[i / DEVICES_MAX][i % DEVICES_MAX].uid == uid)
            return true;
    }
    return false;
}

/* A pod of which the runtime knows nothing, and which it last knew in that boot: whether the shim
 * keeps it, since no kubelet has listed, or since it is of an earlier boot. What the file names no
 * more goes with the next list. */
static bool is_kept(const struct world *w, unsigned uid, unsigned boot)
{
    uint64_t ready_ms = claims_sources_ms(w);

    if (ready_ms == UINT64_MAX || w->now_ms <= ready_ms + KEPT_LAG_MS)
        return true;
    if (boot == w->shim.boot)
        return false;
    if (w->bridge.untold_ms > 0 && w->now_ms <= w->bridge.untold_ms + KEPT_LAG_MS)
        return true;
    return w->now_ms <= ready_ms + KEPT_LAG_MS + (is_told(w, uid) ? POD_RETURNS_MS : POD_COMES_MS);
}

static bool may_return(const struct world *w, const struct claim *c)
{
    return is_kept(w, c->uid, c->boot);
}

/* A pod of an earlier boot, by its row, of which there was nothing since: what the kubelet alone has
 * given it is promised as long as it is kept. */
static bool told_may_return(const struct world *w, const struct told *told)
{
    unsigned boot;
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", told->uid);
    boot = stored_boot(w, uid);
    return boot < w->shim.boot && runtime_ended_ms(w, told->uid) <= w->shim.boot_ms &&
           is_kept(w, told->uid, boot);
}

/* Its row is on disk, whose deletion failed, perhaps: a shim that starts has it again. */
static bool is_stored(const struct world *w, const struct claim *c)
{
    char uid[16];

    snprintf(uid, sizeof uid, "u%u", c->uid);
    return c->name < POD_CONTAINERS_MAX &&
           store_find(&w->store, DEVICEMGR_RECORD_ALLOCATION, uid, container_sim_name(c->name),
                      resource_sim_name(c->resource));
}

void claims_listed(struct world *w)
{
    if (w->shim.listed_ms == 0)
        w->shim.listed_ms = w->now_ms;
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (c->uid && !client_find_of(w, c->uid, c->name) &&
            lister_heard_since(w, shim_earlier_until_ms(w)) &&
            lister_heard_since(w, c->unsure_ms + OUTCOME_MS) &&
            lister_heard_since(w, c->told_ms + 1))
            c->unsure_ms = 0;
        if (c->uid && runtime_known(w, c->uid))
            c->boot = w->shim.boot;
        if (c->uid && over_listed_as_ended(w, c->uid) && !runtime_known(w, c->uid) &&
            !may_return(w, c) && !is_stored(w, c))
            *c = (struct claim){0};
    }
}

void claims_forget(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    struct claim *c = find(w, uid, name, resource);

    if (c)
        c->kept = c->stays = false;
}

void claims_forget_all(struct world *w, unsigned uid, size_t resource)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if ((uid == 0 || c->uid == uid) && (resource == RESOURCES_LEN || c->resource == resource)) {
            c->kept = c->stays = false;
            c->back = 0;
        }
    }
}

void claims_sandbox_ends(struct world *w, unsigned uid, bool dead)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (c->uid != uid)
            continue;
        c->kept = false;
        c->back = 0;
        c->stays = c->stays && dead;
    }
}

void claims_lost(struct world *w)
{
    claims_forget_all(w, 0, RESOURCES_LEN);
}

/* A container that is contended may lose its device to another of its pod. */
static bool comes_back(struct world *w, const struct claim *c)
{
    const struct pod_sim *pod = kubelet_find_pod(w, c->uid);

    return c->uid && c->own && (c->kept || c->back) && !c->former && pod && !pod->deleting &&
           is_stored(w, c) && !kubelet_contended(pod, c->resource);
}

void claims_reboot(struct world *w, bool forgets)
{
    unsigned back[CLAIMS_MAX] = {0};

    for (size_t i = 0; i < w->claims.len; i++)
        back[i] = comes_back(w, &w->claims.v[i]) ? w->claims.v[i].mask : 0;
    runtime_reboot(w, forgets);
    for (size_t i = 0; i < w->claims.len; i++)
        w->claims.v[i].back = back[i];
}

/* ---- questions ---- */

/* A container may have it, or its pod may get another that has it. */
static bool may_hold(const struct world *w, const struct claim *c)
{
    return c->unsure_ms > 0 || !over_surely(w, c->uid) || may_return(w, c);
}

unsigned claims_back(struct world *w, unsigned uid, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];
        const struct pod_sim *pod = kubelet_find_pod(w, c->uid);

        if (pod && !pod->deleting && c->uid != uid && c->resource == resource)
            mask |= c->back;
    }
    return mask;
}

unsigned claims_kept(struct world *w, unsigned uid, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];
        const struct pod_sim *pod;

        if (!c->uid || !c->own || c->resource != resource || c->uid == uid ||
            !(c->kept ? kubelet_surely_there(w, c->uid) : c->stays && over_remade(w, c->uid)))
            continue;
        pod = kubelet_find_pod(w, c->uid);
        if (kubelet_contended(pod, resource))
            continue;
        mask |= c->mask;
        if (!c->kept)
            count_add(COUNT_BESIDE_REMADE);
    }
    return mask;
}

unsigned claims_strangers(const struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->name == POD_CONTAINERS_MAX && c->resource == resource)
            mask |= c->mask | c->former;
    }
    return mask;
}

unsigned claims_own(struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->own && c->resource == resource && may_hold(w, c))
            mask |= c->mask | c->former;
    }
    return mask;
}

bool claims_taken(const struct world *w, const struct claim *claim)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->uid != claim->uid && c->resource == claim->resource &&
            c->mask & claim->mask && c->told_ms >= w->shim.started_ms)
            return true;
    }
    return false;
}

bool claims_returning(struct world *w)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->boot < w->shim.boot && !kubelet_find_pod(w, c->uid) && may_return(w, c))
            return true;
    }
    return false;
}

bool claims_coming(struct world *w)
{
    for (size_t i = 0; i < RESOURCES_LEN * DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[i / DEVICES_MAX][i % DEVICES_MAX];

        if (told->uid && told->late && !kubelet_find_pod(w, told->uid) &&
            !runtime_known(w, told->uid) && may_come(w, told))
            return true;
    }
    return false;
}

unsigned claims_told(struct world *w, unsigned uid, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[resource][i];

        if (told->uid && told->uid != uid &&
            (kubelet_find_pod(w, told->uid) || !over_surely(w, told->uid) || may_come(w, told) ||
             told_may_return(w, told)))
            mask |= 1u << i;
    }
    return mask;
}

unsigned claims_held(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = claims_live(w, uid, name, resource);

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->resource == resource && c->uid != uid &&
            (!over_surely(w, c->uid) || may_return(w, c)))
            mask |= c->mask | c->former;
    }
    return mask | claims_told(w, 0, resource);
}

/* Whether an entry of the kubelet's checkpoint may be of a pod that can still be admitted. */
static bool told_counts(struct world *w, const struct told *told)
{
    if (kubelet_find_pod(w, told->uid) || !over_surely(w, told->uid))
        return true;
    if (claims_sources_ms(w) == UINT64_MAX)
        return true; /* no pod that a list has no more is dropped before */
    return (told->early && may_be_new(w, told->uid) && w->shim.boot > 1) ||
           (told->late && may_come(w, told));
}

unsigned claims_kubelets(struct world *w, size_t resource)
{
    unsigned mask = claims_live(w, 0, 0, resource);

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && !c->own && c->resource == resource &&
            (!over_surely(w, c->uid) || may_return(w, c)))
            mask |= c->mask | c->former;
    }
    for (size_t i = 0; i < CREATES_SIM_MAX; i++) {
        if (w->client.creates[i].number)
            mask |= w->client.creates[i].ids[resource];
    }
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        if (w->bridge.told[resource][i].uid && told_counts(w, &w->bridge.told[resource][i]))
            mask |= 1u << i;
    }
    return mask;
}

unsigned claims_promised(struct world *w, unsigned uid, size_t resource, uint64_t before_ms)
{
    unsigned mask = 0;

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        const struct told *told = &w->bridge.told[resource][i];
        const struct pod_sim *pod = kubelet_find_pod(w, told->uid);

        if (pod && told->uid != uid && told->since_ms < before_ms && !pod->released &&
            kubelet_surely_there(w, told->uid))
            mask |= 1u << i;
    }
    return mask;
}

unsigned claims_of_pod(const struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid == uid && c->resource == resource && c->name != name)
            mask |= c->mask | c->former;
    }
    return mask;
}

unsigned claims_live(const struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->runtime.containers_end; i++) {
        const struct rt_container *c = &w->runtime.containers[i];

        if (runtime_live(c) && (c->uid != uid || c->name != name))
            mask |= c->held[resource] | c->noted[resource];
    }
    return mask;
}

unsigned claims_unknown(const struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->resource == resource && c->unsure_ms > 0 &&
            (c->uid != uid || c->name != name))
            mask |= c->mask | c->former;
    }
    for (size_t i = 0; i < BARES_MAX; i++) { /* passed untouched; what became of it was not heard */
        const struct bare_create *bare = &w->runtime.bares[i];

        if (bare->uid && !lister_heard_since(w, bare->sent_ms + OUTCOME_MS) &&
            (bare->uid != uid || bare->name != name))
            mask |= bare->ids[resource];
    }
    return mask;
}
