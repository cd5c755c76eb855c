/*
 * The list of taints: of two that are in its order, what was set, which is sorted anew for each
 * page, and what comes of health, of which there may be as much as there are devices: that is
 * looked at as far as somebody listens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/rules/evictable.h"
#include "devicemgr/taints.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* One, with what it is sorted by. */
struct entry {
    struct taint taint;
    bool refused;
    const char *resource;
    char *id;   /* owned, with the next, by one of `entries` */
    char *name; /* "key:Effect" */
    const char *key[DEVICEMGR_TAINT_KEY];
};

struct entries {
    const struct state *state;
    const struct devicemgr_which *which;
    struct entry *v;
    size_t len;
};

static void set_key(struct entry *entry)
{
    entry->key[0] = entry->resource;
    entry->key[1] = entry->id;
    entry->key[2] = entry->name;
    entry->key[3] = taint_source_name(entry->taint.source);
    entry->key[4] = entry->taint.words;
}

static bool is_of(const struct devicemgr_which *which, const char *resource)
{
    return !which->resource || strcmp(which->resource, resource) == 0;
}

static bool is_behind(const struct devicemgr_which *which, const struct entry *entry)
{
    return !which->after || meant_order(entry->key, which->after, DEVICEMGR_TAINT_KEY) > 0;
}

static struct entry *add(struct entries *entries, const char *resource, const char *id,
                         const struct taint *taint)
{
    struct entry entry = {.taint = *taint, .resource = resource, .id = mem_strdup(id)};

    if (asprintf(&entry.name, "%s:%s", taint->key, taint_effect_name(taint->effect)) < 0)
        abort(); /* out of memory */
    set_key(&entry);
    if (!is_of(entries->which, resource) || !is_behind(entries->which, &entry)) {
        free(entry.id);
        free(entry.name);
        return NULL;
    }
    entries->v = mem_grow(entries->v, entries->len, sizeof *entries->v);
    entries->v[entries->len] = entry;
    return &entries->v[entries->len++];
}

/* ---- what was set ---- */

static void add_orders(struct entries *entries)
{
    for (const struct order *o = entries->state->orders.by_key; o; o = o->hh.next) {
        if (o->kind == ORDER_TAINT && entries->state->now_ms < order_end_ms(o)) {
            const struct taint taint = tainted_of_order(o);

            add(entries, o->resource, o->device, &taint);
        }
    }
}

static void add_settings(struct entries *entries)
{
    const struct tainted *tainted = &entries->state->tainted;

    for (size_t i = 0; i < tainted->settings_len; i++) {
        const struct taint taint = tainted_of_settings(&tainted->settings[i]);

        add(entries, tainted->settings[i].resource, tainted->settings[i].id, &taint);
    }
}

static void add_of_cluster(void *user, const char *driver, const char *id,
                           const struct taint *taint, bool refused)
{
    struct entry *entry = add(user, driver, id, taint);

    if (entry)
        entry->refused = refused;
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_TAINT_KEY);
}

static void add_all(struct entries *entries)
{
    add_orders(entries);
    add_settings(entries);
    cluster_taints_list(&entries->state->tainted.cluster, add_of_cluster, entries);
    if (entries->len > 1)
        qsort(entries->v, entries->len, sizeof *entries->v, by_key);
}

static void entries_fini(struct entries *entries)
{
    for (size_t i = 0; i < entries->len; i++) {
        free(entries->v[i].id);
        free(entries->v[i].name);
    }
    free(entries->v);
}

/* ---- what comes of health ---- */

/* The unhealthy devices, one by one. */
struct unhealthy {
    const struct state *state;
    const struct devicemgr_which *which;
    struct ids resources; /* sorted */
    size_t resource, at;  /* where it goes on: in these, and in its devices */
    bool there;           /* the next one; its texts are borrowed, and: */
    struct entry entry;
    char name[sizeof TAINT_KEY_UNHEALTHY + 32];
};

static bool note_health(void *user, const struct taint *taint)
{
    struct entry *entry = user;

    if (taint->source == TAINT_BY_HEALTH)
        entry->taint = *taint;
    return true;
}

static void unhealthy_set(struct unhealthy *unhealthy, const char *resource,
                          const struct device *device)
{
    struct entry *entry = &unhealthy->entry;

    *entry = (struct entry){.resource = resource, .id = device->id, .name = unhealthy->name};
    tainted_each(unhealthy->state, resource, device->id, note_health, entry);
    snprintf(unhealthy->name, sizeof unhealthy->name, "%s:%s", entry->taint.key,
             taint_effect_name(entry->taint.effect));
    set_key(entry);
}

static void unhealthy_go_on(struct unhealthy *unhealthy)
{
    const struct ids *names = &unhealthy->resources;

    unhealthy->there = false;
    for (; unhealthy->resource < names->len; unhealthy->resource++, unhealthy->at = 0) {
        const struct resource *resource =
            resources_find(unhealthy->state->resources, names->v[unhealthy->resource]);
        const struct devices *devices = &resource->devices;

        if (!is_of(unhealthy->which, resource->name) || devices->healthy == devices->len)
            continue;
        while (unhealthy->at < devices->len) {
            const struct device *device = &devices->items[unhealthy->at++];

            if (device->healthy)
                continue;
            unhealthy_set(unhealthy, resource->name, device);
            unhealthy->there = is_behind(unhealthy->which, &unhealthy->entry);
            if (unhealthy->there)
                return;
        }
    }
}

/* At the first one that may be meant. */
static void unhealthy_init(struct unhealthy *unhealthy, const struct state *state,
                           const struct devicemgr_which *which)
{
    const struct resource *resource;

    *unhealthy = (struct unhealthy){.state = state, .which = which};
    resources_names(state->resources, &unhealthy->resources);
    while (which->after && unhealthy->resource < unhealthy->resources.len &&
           strverscmp(unhealthy->resources.v[unhealthy->resource], which->after[0]) < 0)
        unhealthy->resource++;
    resource = which->after ? resources_find(state->resources, which->after[0]) : NULL;
    unhealthy->at = resource ? devices_place(&resource->devices, which->after[1], false) : 0;
    unhealthy_go_on(unhealthy);
}

/* ---- telling ---- */

static void note_pod(void *user, const struct evictable *evictable)
{
    ids_add_new(user, evictable->pod_uid);
}

/* A rule is of devices that are not named one by one. */
static size_t count_pods(const struct state *state, const struct entry *entry)
{
    struct taint taint = entry->taint;
    struct ids pods = {0};
    size_t len;

    if (entry->refused || strchr(entry->id, '*'))
        return 0;
    taint.effect = TAINT_NO_EXECUTE;
    evictable_by(state, entry->resource, entry->id[0] != '\0' ? entry->id : NULL, &taint, note_pod,
                 &pods);
    len = pods.len;
    ids_fini(&pods);
    return len;
}

static struct devicemgr_taint_row row_of(const struct state *state, const struct entry *entry)
{
    const struct taint *taint = &entry->taint;

    return (struct devicemgr_taint_row){
        .resource = entry->resource,
        .id = entry->id,
        .key = taint->key,
        .value = taint->value,
        .effect = taint_effect_name(taint->effect),
        .source = taint_source_name(taint->source),
        .words = taint->words,
        .since_ms_ago = later_by(ago(state->now_ms, taint->added_ms), taint->earlier_ms),
        .ends_in_ms = taint->end_ms == UINT64_MAX ? UINT64_MAX : taint->end_ms - state->now_ms,
        .held_back = taint->held_back,
        .refused = entry->refused,
        .pods = count_pods(state, entry),
    };
}

void devicemgr_taints(const struct devicemgr *mgr, uint64_t now_ms,
                      const struct devicemgr_which *which,
                      bool (*each)(void *user, const struct devicemgr_taint_row *taint), void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct entries set = {.state = state, .which = which};
    struct unhealthy unhealthy;
    bool more = true;
    size_t at = 0;

    add_all(&set);
    unhealthy_init(&unhealthy, state, which);
    while (more && (at < set.len || unhealthy.there)) {
        bool is_set =
            at < set.len && (!unhealthy.there || by_key(&set.v[at], &unhealthy.entry) < 0);
        const struct devicemgr_taint_row row =
            row_of(state, is_set ? &set.v[at] : &unhealthy.entry);

        more = each(user, &row);
        if (is_set)
            at++;
        else
            unhealthy_go_on(&unhealthy);
    }
    ids_fini(&unhealthy.resources);
    entries_fini(&set);
    free(state);
}
