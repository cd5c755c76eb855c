/*
 * The list of taints.
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
    char *id;   /* owned, with the next */
    char *name; /* "key:Effect" */
    const char *key[DEVICEMGR_TAINT_KEY];
};

struct entries {
    const struct state *state;
    const struct devicemgr_which *which;
    struct entry *v;
    size_t len;
    const char *resource, *id; /* of those that are being added */
};

static struct entry *add(struct entries *entries, const char *resource, const char *id,
                         const struct taint *taint)
{
    struct entry entry = {.taint = *taint, .resource = resource, .id = mem_strdup(id)};

    if (asprintf(&entry.name, "%s:%s", taint->key, taint_effect_name(taint->effect)) < 0)
        abort(); /* out of memory */
    entry.key[0] = entry.resource;
    entry.key[1] = entry.id;
    entry.key[2] = entry.name;
    entry.key[3] = taint_source_name(taint->source);
    entry.key[4] = taint->words;
    if ((entries->which->resource && strcmp(entries->which->resource, resource) != 0) ||
        (entries->which->after &&
         meant_order(entry.key, entries->which->after, DEVICEMGR_TAINT_KEY) <= 0)) {
        free(entry.id);
        free(entry.name);
        return NULL;
    }
    entries->v = mem_grow(entries->v, entries->len, sizeof *entries->v);
    entries->v[entries->len] = entry;
    return &entries->v[entries->len++];
}

/* ---- where they are ---- */

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

static bool add_health(void *user, const struct taint *taint)
{
    struct entries *entries = user;

    if (taint->source == TAINT_BY_HEALTH)
        add(entries, entries->resource, entries->id, taint);
    return true;
}

static void add_unhealthy(struct entries *entries)
{
    for (const struct resource *r = entries->state->resources; r; r = r->hh.next) {
        for (size_t i = 0; r->devices.healthy < r->devices.len && i < r->devices.len; i++) {
            if (r->devices.items[i].healthy)
                continue;
            entries->resource = r->name;
            entries->id = r->devices.items[i].id;
            tainted_each(entries->state, r->name, entries->id, add_health, entries);
        }
    }
}

static void add_of_cluster(void *user, const char *driver, const char *id,
                           const struct taint *taint, bool refused)
{
    struct entry *entry = add(user, driver, id, taint);

    if (entry)
        entry->refused = refused;
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
        .since_ms_ago = ago(state->now_ms, taint->added_ms),
        .ends_in_ms = taint->end_ms == UINT64_MAX ? UINT64_MAX : taint->end_ms - state->now_ms,
        .held_back = taint->held_back,
        .refused = entry->refused,
        .pods = count_pods(state, entry),
    };
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_TAINT_KEY);
}

void devicemgr_taints(const struct devicemgr *mgr, uint64_t now_ms,
                      const struct devicemgr_which *which,
                      bool (*each)(void *user, const struct devicemgr_taint_row *taint), void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct entries entries = {.state = state, .which = which};
    bool more = true;

    add_orders(&entries);
    add_settings(&entries);
    add_unhealthy(&entries);
    cluster_taints_list(&state->tainted.cluster, add_of_cluster, &entries);
    if (entries.len > 1)
        qsort(entries.v, entries.len, sizeof *entries.v, by_key);
    for (size_t i = 0; i < entries.len; i++) {
        if (more) {
            const struct devicemgr_taint_row row = row_of(state, &entries.v[i]);

            more = each(user, &row);
        }
        free(entries.v[i].id);
        free(entries.v[i].name);
    }
    free(entries.v);
    free(state);
}
