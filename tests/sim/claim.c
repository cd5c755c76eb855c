#include "tests/sim/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "devicemgr/limits.h"
#include "devicemgr/ports.h"
#include "tests/sim/world.h"

/* What is kept for a time is dropped by the list after it. */
#define KEPT_LAG_MS 120000

static struct claim *find(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    for (size_t i = 0; uid && i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (c->uid == uid && c->name == name && c->resource == resource)
            return c;
    }
    return NULL;
}

const struct claim *claims_find(const struct world *w, unsigned uid, unsigned name, size_t resource)
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
    *c = (struct claim){.uid = uid, .name = name, .resource = resource};
    return c;
}

/* ---- what makes and ends them ---- */

static struct claim *find_row(struct world *w, const struct devicemgr_record *record)
{
    return find(w, (unsigned)strtoul(record->key[0] + 1, NULL, 10),
                container_sim_find(record->key[1]), resource_sim_find(record->key[2]));
}

void claims_row_written(struct world *w, const struct devicemgr_record *record)
{
    Checkpoint__V1__Allocation *row;
    struct claim *c;

    if (record->kind != DEVICEMGR_RECORD_ALLOCATION || !record->value)
        return;
    row = checkpoint__v1__allocation__unpack(NULL, record->value_bytes, record->value);
    c = ensure(w, (unsigned)strtoul(record->key[0] + 1, NULL, 10),
               container_sim_find(record->key[1]), resource_sim_find(record->key[2]));
    c->former |= c->mask;
    c->mask = device_sim_mask((const char *const *)row->device_ids, row->n_device_ids);
    c->own = row->own_choice;
    c->boot = w->shim.boot;
    checkpoint__v1__allocation__free_unpacked(row, NULL);
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
    c->kept = true;
    c->boot = w->shim.boot;
    c->told_ms = w->now_ms;
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

void claims_unsure(struct world *w, unsigned uid, unsigned name)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if (uid == 0 || (c->uid == uid && c->name == name))
            c->unsure_ms = w->now_ms;
    }
}

/* ---- what the shim must know ---- */

/* A list of the runtime that was asked for from then on has come, in this life of the shim. */
static bool heard_since(const struct world *w, uint64_t ms)
{
    return w->lister.heard_ms > 0 && w->lister.heard_ms >= ms;
}

/* Its sandboxes were stopped, none of its containers runs, and the shim must know. */
static bool pod_over(const struct world *w, unsigned uid)
{
    return heard_since(w, runtime_ended_ms(w, uid) + 1) && !runtime_alive(w, uid);
}

/* The shim was told, in this life, that each sandbox of the pod was stopped. */
static bool stop_told(const struct world *w, unsigned uid)
{
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        const struct rt_sandbox *s = &w->runtime.sandboxes[i];

        if (s->id && s->uid == uid && s->stopped_in != w->shim.incarnation)
            return false;
    }
    return true;
}

/* To the shim, too. A sandbox that was not ready may be stopped for nobody, and one that was dead
 * before its stop may be followed by another. */
static bool surely_over(const struct world *w, unsigned uid)
{
    return pod_over(w, uid) && stop_told(w, uid) &&
           (!runtime_known(w, uid) || w->now_ms > runtime_ended_ms(w, uid) + SANDBOX_REMADE_MS);
}

/* A pod of which the runtime knows nothing: whether the shim keeps it, since no kubelet has listed,
 * or since it is of an earlier boot. */
static bool may_return(const struct world *w, const struct claim *c)
{
    uint64_t wait_ms = w->shim.started_ms + w->shim.settings.kubelet_wait_ms;
    uint64_t ready_ms =
        w->shim.kubelet_ms > 0 && w->shim.kubelet_ms < wait_ms ? w->shim.kubelet_ms : wait_ms;

    if (ready_ms < w->shim.listed_ms)
        ready_ms = w->shim.listed_ms;
    ready_ms += KEPT_LAG_MS;
    if (w->shim.listed_ms == 0 || w->now_ms <= ready_ms)
        return true;
    return c->boot < w->shim.boot && w->now_ms <= ready_ms + POD_COMES_MS;
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
            heard_since(w, c->unsure_ms + OUTCOME_MS) && heard_since(w, c->told_ms + 1))
            c->unsure_ms = 0;
        if (c->uid && runtime_ready_sandbox(w, c->uid))
            c->boot = w->shim.boot;
        if (c->uid && pod_over(w, c->uid) && !runtime_known(w, c->uid) && !may_return(w, c) &&
            !is_stored(w, c))
            *c = (struct claim){0};
    }
}

void claims_forget(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    struct claim *c = find(w, uid, name, resource);

    if (c)
        c->kept = false;
}

void claims_forget_all(struct world *w, unsigned uid, size_t resource)
{
    for (size_t i = 0; i < w->claims.len; i++) {
        struct claim *c = &w->claims.v[i];

        if ((uid == 0 || c->uid == uid) && (resource == RESOURCES_LEN || c->resource == resource))
            c->kept = false;
    }
}

void claims_lost(struct world *w)
{
    claims_forget_all(w, 0, RESOURCES_LEN);
}

/* ---- questions ---- */

unsigned claims_kept(struct world *w, unsigned uid, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];
        const struct pod_sim *pod;

        if (!c->uid || !c->kept || !c->own || c->resource != resource || c->uid == uid ||
            !kubelet_surely_there(w, c->uid))
            continue;
        pod = kubelet_find_pod(w, c->uid);
        if (!kubelet_contended(pod, resource))
            mask |= c->mask;
    }
    return mask;
}

unsigned claims_own(struct world *w, size_t resource)
{
    unsigned mask = 0;

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->own && c->resource == resource)
            mask |= c->mask | c->former;
    }
    return mask;
}

unsigned claims_held(struct world *w, unsigned uid, unsigned name, size_t resource)
{
    unsigned mask = claims_live(w, uid, name, resource);

    for (size_t i = 0; i < w->claims.len; i++) {
        const struct claim *c = &w->claims.v[i];

        if (c->uid && c->resource == resource && c->uid != uid &&
            (!surely_over(w, c->uid) || may_return(w, c)))
            mask |= c->mask | c->former;
    }
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        unsigned told = w->bridge.told[resource][i];

        if (told && (kubelet_find_pod(w, told) || !surely_over(w, told)))
            mask |= 1u << i; /* the kubelet has promised it, maybe to a pod still to come */
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

    for (size_t i = 0; i < CONTAINERS_MAX; i++) {
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
    return mask;
}
