/*
 * What the kubelet's checkpoint says that its pods have.
 */
#include <string.h>

#include <utlist.h>

#include "devicemgr/books/facts.h"
#include "devicemgr/books/state.h"
#include "devicemgr/things/limits.h"

/* ---- by pod ---- */

static struct kubelet_pod *pod_find(const struct kubelet_view *kubelet, const char *uid)
{
    struct kubelet_pod *pod;

    HASH_FIND_STR(kubelet->pods, uid, pod);
    return pod;
}

static void pod_set_stale(struct kubelet_view *kubelet, struct kubelet_pod *pod)
{
    if (pod->stale)
        return;
    pod->stale = true;
    DL_APPEND2(kubelet->stale, pod, stale_prev, stale_next);
}

struct kubelet_pod *kubelet_take_stale(struct kubelet_view *kubelet)
{
    struct kubelet_pod *pod = kubelet->stale;

    DL_DELETE2(kubelet->stale, pod, stale_prev, stale_next);
    pod->stale = false;
    return pod;
}

static void pod_add(struct kubelet_view *kubelet, struct kubelet_hold *hold)
{
    struct kubelet_pod *pod = pod_find(kubelet, hold->pod_uid);

    if (!pod) {
        pod = mem_alloc(1, sizeof *pod);
        pod->uid = mem_strdup(hold->pod_uid);
        HASH_ADD_KEYPTR(hh, kubelet->pods, pod->uid, strlen(pod->uid), pod);
    }
    pod->holds = mem_grow(pod->holds, pod->holds_len, sizeof(struct kubelet_hold *));
    pod->holds[pod->holds_len++] = hold;
    pod_set_stale(kubelet, pod);
}

static void pod_remove(struct kubelet_view *kubelet, const struct kubelet_hold *hold)
{
    struct kubelet_pod *pod = pod_find(kubelet, hold->pod_uid);
    size_t at = 0;

    while (pod->holds[at] != hold)
        at++;
    pod->holds[at] = pod->holds[--pod->holds_len];
    if (pod->holds_len > 0)
        return;
    if (pod->stale)
        DL_DELETE2(kubelet->stale, pod, stale_prev, stale_next);
    HASH_DEL(kubelet->pods, pod);
    free(pod->holds);
    free(pod->uid);
    free(pod);
}

const struct kubelet_hold *const *kubelet_holds_of_pod(const struct state *state,
                                                       const char *pod_uid, size_t *holds_len)
{
    const struct kubelet_pod *pod = pod_find(&state->kubelet, pod_uid);

    *holds_len = pod ? pod->holds_len : 0;
    return pod ? (const struct kubelet_hold *const *)pod->holds : NULL;
}

/* ---- the entries ---- */

/* What an entry says, as a key; `sorted` are its ids. The caller frees it. */
static char *key_of(const char *pod_uid, const char *container, const char *resource,
                    const char *const *sorted, size_t ids_len, size_t *key_bytes)
{
    const char **parts = mem_alloc(3 + ids_len, sizeof *parts);
    char *key;

    parts[0] = pod_uid;
    parts[1] = container;
    parts[2] = resource;
    for (size_t i = 0; i < ids_len; i++)
        parts[3 + i] = sorted[i];
    key = mem_key(parts, 3 + ids_len, key_bytes);
    free(parts);
    return key;
}

static struct kubelet_hold *find(const struct kubelet_view *kubelet, const char *key,
                                 size_t key_bytes)
{
    struct kubelet_hold *hold;

    HASH_FIND(hh, kubelet->holds, key, key_bytes, hold);
    return hold;
}

/* Takes `key`. */
static struct kubelet_hold *hold_add(struct kubelet_view *kubelet, char *key, size_t key_bytes,
                                     size_t ids_len)
{
    struct kubelet_hold *hold = mem_alloc(1, sizeof *hold);
    char *at = key + strlen(key) + 1;

    hold->key = key;
    hold->pod_uid = key;
    hold->container = at;
    at += strlen(at) + 1;
    hold->resource = at;
    hold->ids.v = mem_alloc(ids_len, sizeof *hold->ids.v);
    for (; hold->ids.len < ids_len; hold->ids.len++) {
        at += strlen(at) + 1;
        hold->ids.v[hold->ids.len] = at;
    }
    HASH_ADD_KEYPTR(hh, kubelet->holds, hold->key, key_bytes, hold);
    pod_add(kubelet, hold);
    for (size_t i = 0; i < ids_len; i++)
        owners_add(&kubelet->owners, (const char *[]){hold->resource, hold->ids.v[i]}, 2, hold);
    return hold;
}

static void hold_remove(struct kubelet_view *kubelet, struct kubelet_hold *hold)
{
    for (size_t i = 0; i < hold->ids.len; i++)
        owners_remove(&kubelet->owners, (const char *[]){hold->resource, hold->ids.v[i]}, 2, hold);
    pod_remove(kubelet, hold);
    HASH_DEL(kubelet->holds, hold);
    devices_fini(&hold->on_nodes);
    free(hold->ids.v);
    free(hold->key);
    free(hold);
}

void kubelet_fini(struct kubelet_view *kubelet)
{
    while (kubelet->holds)
        hold_remove(kubelet, kubelet->holds);
    *kubelet = (struct kubelet_view){0};
}

/* The pods of other containers that have its devices: who waits with what it had may not keep
 * it. */
static void wake_keepers(struct state *state, const struct kubelet_hold *hold)
{
    for (size_t i = 0; i < hold->ids.len; i++) {
        const struct owners *holders =
            allocations_holders(&state->allocations, hold->resource, hold->ids.v[i]);

        for (size_t h = 0; h < owners_len(holders); h++) {
            const struct allocation *holder = holders->v[h];

            if (strcmp(holder->pod_uid, hold->pod_uid) != 0 ||
                strcmp(holder->container, hold->container) != 0)
                wake_pod(&state->wakes, holder->pod_uid);
        }
    }
}

static void take_nodes(struct state *state, struct kubelet_hold *hold,
                       const struct devicemgr_kubelet_held *held)
{
    struct device_entry *entries = mem_alloc(held->ids_len, sizeof *entries);
    struct devices_change change;
    size_t len = 0;

    for (size_t i = 0; held->numa_nodes && i < held->ids_len; i++) {
        if (held->numa_nodes_len[i] > 0)
            entries[len++] = (struct device_entry){held->ids[i], true, held->numa_nodes[i],
                                                   held->numa_nodes_len[i]};
    }
    devices_update(&hold->on_nodes, state->now_ms, entries, len, &change);
    free(entries);
}

/* Whether it says on which nodes a device is that is shown though its plugin does not list it. */
static bool shows_nodes(const struct state *state, const struct kubelet_hold *hold)
{
    const struct resource *resource = resources_find(state->resources, hold->resource);

    if (!resource || !state->showing.starting)
        return false;
    for (size_t i = 0; i < hold->on_nodes.len; i++) {
        if (!devices_find(&resource->devices, hold->on_nodes.items[i].id))
            return true;
    }
    return false;
}

/* One entry of a reading; one that was there goes on as it was. `room`: for as many ids. */
static void tell(struct state *state, const struct devicemgr_kubelet_held *held, const char **room)
{
    struct kubelet_view *kubelet = &state->kubelet;
    struct kubelet_hold *hold;
    size_t key_bytes;
    char *key;

    for (size_t i = 0; i < held->ids_len; i++)
        room[i] = held->ids[i];
    if (held->ids_len > 1)
        qsort(room, held->ids_len, sizeof *room, ids_order); /* it is compared with allocations */
    key = key_of(held->pod_uid, held->container, held->resource, room, held->ids_len, &key_bytes);
    hold = find(kubelet, key, key_bytes);
    if (hold) {
        free(key);
    } else {
        hold = hold_add(kubelet, key, key_bytes, held->ids_len);
        hold->since_ms = state->now_ms;
        hold->early = kubelet->readings == 1;
        take_nodes(state, hold, held);
        if (shows_nodes(state, hold))
            showing_changed(state, hold->resource);
        wake_keepers(state, hold);
    }
    hold->reading = kubelet->readings;
}

bool kubelet_hold_doubled(const struct state *state, const struct kubelet_hold *hold)
{
    const struct allocation *allocation =
        allocations_find(&state->allocations, hold->pod_uid, hold->container, hold->resource);

    return allocation && allocation->shown == SHOWN_HELD &&
           ids_equal(allocation_asked(allocation), &hold->ids);
}

bool kubelet_hold_replaced(const struct state *state, const struct kubelet_hold *hold)
{
    const struct allocation *allocation =
        allocations_find(&state->allocations, hold->pod_uid, hold->container, hold->resource);

    return allocation && allocation_replaced(allocation) &&
           ids_equal(&allocation->asked, &hold->ids);
}

static void lose(struct state *state, const struct kubelet_hold *old)
{
    const struct pod *pod = pods_find(&state->pods, old->pod_uid);

    wake_choosers(&state->wakes, old->resource);
    if (pod && !pod->newest) /* it was kept for what the kubelet said, and may go with a list */
        listing_soon(state);
    if ((old->shown && !kubelet_hold_doubled(state, old)) || shows_nodes(state, old))
        showing_changed(state, old->resource);
}

/* Whoever does not stand in this reading is lost, and its resource is another. */
static void lose_untold(struct state *state)
{
    struct kubelet_view *kubelet = &state->kubelet;
    struct kubelet_hold *hold, *next;

    HASH_ITER(hh, kubelet->holds, hold, next) {
        if (hold->reading == kubelet->readings)
            continue;
        lose(state, hold);
        hold_remove(kubelet, hold);
    }
}

void kubelet_take_holds(struct state *state, const struct devicemgr_kubelet_held *held,
                        size_t held_len)
{
    const char **room;
    size_t most = 0;

    state->kubelet.readings++;
    for (size_t i = 0; i < held_len; i++)
        most = held[i].ids_len > most ? held[i].ids_len : most;
    room = mem_alloc(most, sizeof *room);
    for (size_t i = 0; i < held_len; i++)
        tell(state, &held[i], room);
    free(room);
    lose_untold(state);
}

/* ---- what they mean ---- */

const struct device *kubelet_device_on_nodes(const struct state *state, const char *resource,
                                             const char *id)
{
    const struct owners *holders = kubelet_holders(state, resource, id);
    const struct device *device = NULL;

    for (size_t i = 0; i < owners_len(holders) && !device; i++)
        device = devices_find(&((const struct kubelet_hold *)holders->v[i])->on_nodes, id);
    return device;
}

const struct kubelet_hold *kubelet_hold_of(const struct state *state,
                                           const struct allocation *allocation)
{
    const struct ids *ids = allocation_asked(allocation);
    const struct kubelet_hold *hold;
    size_t key_bytes;
    char *key;

    if (!state->kubelet.holds)
        return NULL;
    key = key_of(allocation->pod_uid, allocation->container, allocation->resource,
                 (const char *const *)ids->v, ids->len, &key_bytes);
    hold = find(&state->kubelet, key, key_bytes);
    free(key);
    return hold;
}

bool kubelet_gave(const struct state *state, const struct allocation *allocation)
{
    return kubelet_hold_of(state, allocation) != NULL;
}

bool kubelet_names_pod(const struct state *state, const char *pod_uid)
{
    return pod_find(&state->kubelet, pod_uid) != NULL;
}

/* Its pod is not known: whether its first sandbox may still be to come. */
static bool is_young(const struct state *state, const struct kubelet_hold *hold)
{
    return !state->kubelet.ready || state->now_ms < hold->since_ms + POD_COMES_MS;
}

bool kubelet_hold_counts(const struct state *state, const struct kubelet_hold *hold)
{
    if (facts_pod_over(state, hold->pod_uid))
        return false;
    if (pods_find(&state->pods, hold->pod_uid) || !state->kubelet.ready)
        return true;
    return hold->early ? state->kubelet.new_boot : is_young(state, hold);
}

void kubelet_pod_changed(struct state *state, const char *pod_uid, bool wakes)
{
    struct kubelet_pod *pod = pod_find(&state->kubelet, pod_uid);

    if (!pod)
        return;
    for (size_t i = 0; wakes && i < pod->holds_len; i++)
        wake_choosers(&state->wakes, pod->holds[i]->resource);
    pod_set_stale(&state->kubelet, pod);
}

const struct owners *kubelet_holders(const struct state *state, const char *resource,
                                     const char *id)
{
    return owners_find(state->kubelet.owners, (const char *[]){resource, id}, 2);
}

/* Nobody else is given its devices. */
static bool is_promised(const struct state *state, const struct kubelet_hold *hold)
{
    return !facts_pod_over(state, hold->pod_uid) &&
           (pods_find(&state->pods, hold->pod_uid) || is_young(state, hold));
}

bool kubelet_hold_stands(const struct state *state, const struct kubelet_hold *hold)
{
    return is_promised(state, hold) || kubelet_hold_counts(state, hold);
}

/* Whether its container has another in the place of the device, and so that is not waited for. */
static bool has_another(const struct state *state, const struct kubelet_hold *hold, const char *id)
{
    const struct allocation *allocation =
        allocations_find(&state->allocations, hold->pod_uid, hold->container, hold->resource);

    return allocation && allocation_replaced(allocation) &&
           ids_contain_sorted(&allocation->asked, id) && !ids_contain_sorted(&allocation->ids, id);
}

bool kubelet_promised(const struct state *state, const char *resource, const char *id,
                      const char *pod_uid, const char *container)
{
    const struct owners *owners = kubelet_holders(state, resource, id);

    for (size_t i = 0; i < owners_len(owners); i++) {
        const struct kubelet_hold *hold = owners->v[i];

        if (strcmp(hold->pod_uid, pod_uid) == 0 &&
            (!container || strcmp(hold->container, container) == 0))
            continue;
        if (is_promised(state, hold) && !has_another(state, hold, id))
            return true;
    }
    return false;
}
