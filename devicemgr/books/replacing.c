#include "devicemgr/books/replacing.h"

#include <string.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/demand.h"
#include "devicemgr/things/limits.h"
#include "devicemgr/things/moment.h"

static struct replacing *find(const struct replacings *replacings, const struct demand *demand,
                              const char *resource)
{
    const char *parts[] = {demand->pod_uid, demand->container, resource};
    struct replacing *found;
    struct mem_sought sought;

    if (!replacings->by_key)
        return NULL;
    mem_seek(&sought, parts, 3);
    HASH_FIND(hh, replacings->by_key, sought.key, sought.key_bytes, found);
    mem_sought_drop(&sought);
    return found;
}

const struct replacing *replacings_find(const struct replacings *replacings,
                                        const struct demand *demand, const char *resource)
{
    return find(replacings, demand, resource);
}

const struct replacing *replacings_meant(const struct replacings *replacings, const char *resource,
                                         const char *id)
{
    const struct owners *owners = NULL;

    if (replacings->devices)
        owners = owners_find(replacings->devices, (const char *[]){resource, id}, 2);
    return owners ? owners->v[0] : NULL;
}

static void let_go(struct replacings *replacings, struct replacing *replacing)
{
    for (size_t i = 0; i < replacing->ids.len; i++)
        owners_remove(&replacings->devices,
                      (const char *[]){replacing->resource, replacing->ids.v[i]}, 2, replacing);
    HASH_DEL(replacings->by_key, replacing);
    ids_fini(&replacing->ids);
    free(replacing->key);
    free(replacing);
}

void replacings_fini(struct replacings *replacings)
{
    while (replacings->by_key)
        let_go(replacings, replacings->by_key);
}

/* Its devices may be chosen for others, and are shown as they are. */
static void end(struct state *state, struct replacing *replacing)
{
    showing_changed(state, replacing->resource);
    wake_choosers(&state->wakes, replacing->resource);
    let_go(&state->replacings, replacing);
}

static struct replacing *add(struct state *state, const struct demand *demand, const char *resource,
                             const struct ids *ids)
{
    struct replacing *replacing = mem_alloc(1, sizeof *replacing);
    const char *parts[] = {demand->pod_uid, demand->container, resource};

    replacing->key = mem_key(parts, 3, &replacing->key_bytes);
    mem_parts(replacing->key, parts, 3);
    replacing->pod_uid = parts[0];
    replacing->container = parts[1];
    replacing->resource = parts[2];
    ids_copy(&replacing->ids, ids->v, ids->len);
    ids_sort(&replacing->ids);
    HASH_ADD_KEYPTR(hh, state->replacings.by_key, replacing->key, replacing->key_bytes, replacing);
    for (size_t i = 0; i < ids->len; i++)
        owners_add(&state->replacings.devices, (const char *[]){resource, replacing->ids.v[i]}, 2,
                   replacing);
    showing_changed(state, resource);
    return replacing;
}

void replacing_set(struct state *state, const struct demand *demand, const char *resource,
                   const struct ids *ids)
{
    struct replacing *replacing = find(&state->replacings, demand, resource);

    if (replacing && !ids_equal(&replacing->ids, ids)) {
        end(state, replacing);
        replacing = NULL;
    }
    if (!replacing)
        replacing = add(state, demand, resource, ids);
    replacing->until_ms = state->now_ms + REPLACING_MS;
    showing_all_at(state, replacing->until_ms);
}

void replacing_forget(struct state *state, const struct demand *demand, const char *resource)
{
    struct replacing *replacing = find(&state->replacings, demand, resource);

    if (replacing)
        end(state, replacing);
}

/* What it gave away before it took the list is no candidate any more: others are chosen then. */
void replacing_took(struct state *state, const char *resource)
{
    for (struct replacing *r = state->replacings.by_key; r; r = r->hh.next) {
        if (strcmp(r->resource, resource) != 0 || r->confirmed)
            continue;
        r->confirmed = true;
        wake_pod(&state->wakes, r->pod_uid);
    }
}

void replacing_pod_changed(struct state *state, const char *pod_uid, bool gone)
{
    struct replacing *replacing, *next;

    HASH_ITER(hh, state->replacings.by_key, replacing, next) {
        if (strcmp(replacing->pod_uid, pod_uid) == 0 && (gone || facts_pod_over(state, pod_uid)))
            end(state, replacing);
    }
}

void replacing_expire(struct state *state)
{
    struct replacing *replacing, *next;

    HASH_ITER(hh, state->replacings.by_key, replacing, next) {
        if (state->now_ms >= replacing->until_ms || facts_pod_over(state, replacing->pod_uid))
            end(state, replacing);
    }
}
