#include "tests/sim/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/ports.h"
#include "tests/sim/coming.h"
#include "tests/sim/over.h"
#include "tests/sim/promise.h"
#include "tests/sim/world.h"

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
    if (!c || c->boot != 0)
        return; /* of one that is known the row says nothing of its pod */
    c->boot = w->shim.boot;
    if (w->kubelet.moves && !c->own && !client_find_of(w, c->uid, c->name))
        c->unsure_ms =
            w->now_ms; /* found without a token, by a list of before: it may have ended */
}

void claims_row_restored(struct world *w, const struct devicemgr_record *record)
{
    struct claim *c = note_row(w, record);

    if (c)
        c->boot = coming_row_boot(w, record->key[0]);
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

static bool may_return(const struct world *w, const struct claim *c)
{
    return coming_back(w, c->uid, c->boot);
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

void claims_take(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    find(w, uid, name, resource)->taken_ms = w->now_ms;
}

bool claims_taken(const struct world *w, const struct claim *claim)
{
    if (claim->taken_ms >= w->shim.started_ms)
        return true;
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

unsigned claims_held(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = claims_live(w, uid, name, resource);

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->resource == resource && c->uid != uid &&
            (!over_surely(w, c->uid) || may_return(w, c)))
            mask |= c->mask | c->former;
    }
    return mask | coming_told(w, 0, resource);
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
    return mask | coming_admitted(w, resource);
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
