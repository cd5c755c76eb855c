/*
 * The list of allocations.
 */
#include <stdlib.h>
#include <string.h>

#include "devicemgr/lists.h"
#include "devicemgr/rules/holders.h"
#include "devicemgr/things/moment.h"
#include "devicemgr/turn/meant.h"
#include "devicemgr/turn/turn.h"

/* One, with what it is sorted by. */
struct entry {
    const struct allocation *allocation;
    const char *key[DEVICEMGR_ALLOCATION_KEY];
};

static struct entry entry_of(const struct state *state, const struct allocation *a)
{
    struct entry entry = {.allocation = a,
                          .key = {[2] = a->pod_uid, [3] = a->container, [4] = a->resource}};

    meant_names(state, a->pod_uid, &entry.key[0], &entry.key[1]);
    return entry;
}

static bool is_behind(const struct devicemgr_which *which, const struct entry *entry)
{
    int order = which->after ? meant_order(entry->key, which->after, DEVICEMGR_ALLOCATION_KEY) : 1;

    return order > 0 || (order == 0 && which->again);
}

static bool is_meant(const struct devicemgr_which *which, const struct entry *entry)
{
    if (which->resource && strcmp(which->resource, entry->key[4]) != 0)
        return false;
    if (which->pod_namespace && strcmp(which->pod_namespace, entry->key[0]) != 0)
        return false;
    return meant_pod(which->pod, entry->key[2], entry->key[0], entry->key[1]) &&
           is_behind(which, entry);
}

static int by_key(const void *a, const void *b)
{
    return meant_order(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                       DEVICEMGR_ALLOCATION_KEY);
}

static struct devicemgr_allocation row_of(const struct state *state, const struct entry *entry)
{
    const struct allocation *a = entry->allocation;
    unsigned waits = allocation_waits(a);

    return (struct devicemgr_allocation){
        .pod_namespace = entry->key[0],
        .pod_name = entry->key[1],
        .pod_uid = a->pod_uid,
        .container = a->container,
        .resource = a->resource,
        .state = meant_life(state, a),
        .since_ms_ago = ago(state->now_ms, a->known_ms),
        .ids = (const char *const *)a->ids.v,
        .ids_len = a->ids.len,
        .asked = (const char *const *)a->asked.v,
        .asked_len = a->asked.len,
        .own_choice = a->own_choice,
        .claimed = a->claimed,
        .stored = allocation_durable(a),
        .cached = a->options != NULL,
        .waits_store = waits & ALLOCATION_WAITS_STORE,
        .waits_create = waits & ALLOCATION_WAITS_CREATE,
        .waits_check = waits & ALLOCATION_WAITS_CHECK,
        .waits_list = waits & ALLOCATION_WAITS_LIST,
    };
}

void devicemgr_allocations(const struct devicemgr *mgr, uint64_t now_ms,
                           const struct devicemgr_which *which,
                           bool (*each)(void *user, const struct devicemgr_allocation *allocation),
                           void *user)
{
    struct state *state = meant_state(mgr, now_ms);
    struct entry *entries = mem_alloc(HASH_COUNT(state->allocations.by_key) + 1, sizeof *entries);
    size_t len = 0;
    bool more = true;

    for (const struct allocation *a = state->allocations.by_key; a; a = a->hh.next) {
        entries[len] = entry_of(state, a);
        len += is_meant(which, &entries[len]);
    }
    qsort(entries, len, sizeof *entries, by_key);
    for (size_t i = 0; more && i < len; i++) {
        const struct devicemgr_allocation row = row_of(state, &entries[i]);

        more = each(user, &row);
    }
    free(entries);
    free(state);
}

bool devicemgr_allocations_share(const struct devicemgr *mgr, const char *id,
                                 const char *const one[static 3], const char *const other[static 3])
{
    const struct allocations *all = &mgr->state.allocations;
    const struct allocation *a = allocations_find(all, one[0], one[1], one[2]);
    const struct allocation *b = allocations_find(all, other[0], other[1], other[2]);

    return a && b && holders_share(&mgr->state, a, b, id);
}
