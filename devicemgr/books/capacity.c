/*
 * What there is of each resource, for those who publish it, and what there is no more.
 */
#include <string.h>

#include "devicemgr/books/state.h"

/* Index of a removed resource's name; its length if it is not there. */
static size_t removed_find(const struct ids *removed, const char *resource)
{
    size_t i = 0;

    while (i < removed->len && strcmp(removed->v[i], resource) != 0)
        i++;
    return i;
}

static void removed_drop(struct ids *removed, size_t at)
{
    free(removed->v[at]);
    removed->len--;
    memmove(&removed->v[at], &removed->v[at + 1], (removed->len - at) * sizeof *removed->v);
}

void capacity_removed(struct state *state, const char *resource)
{
    if (removed_find(&state->removed, resource) < state->removed.len)
        return;
    if (state->removed.len == RESOURCES_MAX)
        removed_drop(&state->removed, 0);
    ids_add(&state->removed, resource);
}

void capacity_published(struct state *state, const char *resource)
{
    size_t at = removed_find(&state->removed, resource);

    if (at < state->removed.len)
        removed_drop(&state->removed, at);
}

/* Only what is listed counts: anything may be cordoned. */
static void count_kept_back(const struct state *state, const struct resource *resource,
                            struct devicemgr_capacity *capacity)
{
    const struct order *withdrawal = orders_withdrawal(&state->orders, resource->name);
    bool any = tainted_or_ordered(state, resource->name);

    for (size_t i = 0; any && i < resource->devices.len; i++) {
        const struct device *device = &resource->devices.items[i];

        if (!withdrawal && !tainted_or_cordoned(state, resource->name, device->id))
            continue;
        capacity->kept_back++;
        capacity->allocatable -= capacity->healthy > 0 && device->healthy;
    }
}

static struct devicemgr_capacity capacity_of(const struct state *state, const char *name)
{
    const struct resource *resource = resources_find(state->resources, name);
    struct devicemgr_capacity capacity = {.resource = name};

    if (removed_find(&state->removed, name) < state->removed.len) {
        capacity.removed = true; /* even if a plugin has registered it anew: it has to list first */
        return capacity;
    }
    capacity.capacity = resource->devices.len;
    capacity.healthy = resource_usable(resource) ? resource->devices.healthy : 0;
    capacity.allocatable = capacity.healthy;
    count_kept_back(state, resource, &capacity);
    return capacity;
}

void capacity_each(const struct state *state,
                   void (*each)(void *user, const struct devicemgr_capacity *capacity), void *user)
{
    struct ids names = {0};

    for (const struct resource *r = state->resources; r; r = r->hh.next) {
        if ((r->builtin || r->endpoint.socket_good) &&
            removed_find(&state->removed, r->name) == state->removed.len)
            ids_add(&names, r->name);
    }
    for (size_t i = 0; i < state->removed.len; i++)
        ids_add(&names, state->removed.v[i]);
    ids_sort(&names);
    for (size_t i = 0; i < names.len; i++) {
        const struct devicemgr_capacity capacity = capacity_of(state, names.v[i]);

        each(user, &capacity);
    }
    ids_fini(&names);
}
