/*
 * What there is of each resource, for those who publish it, and what there is no more.
 */
#include <string.h>

#include "devicemgr/core.h"

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

void capacity_removed(struct devicemgr *mgr, const char *resource)
{
    if (removed_find(&mgr->removed, resource) < mgr->removed.len)
        return;
    if (mgr->removed.len == RESOURCES_MAX)
        removed_drop(&mgr->removed, 0);
    ids_add(&mgr->removed, resource);
}

void capacity_published(struct devicemgr *mgr, const char *resource)
{
    size_t at = removed_find(&mgr->removed, resource);

    if (at < mgr->removed.len)
        removed_drop(&mgr->removed, at);
}

void devicemgr_removed_seen(struct devicemgr *mgr, const char *resource)
{
    capacity_published(mgr, resource);
}

static struct devicemgr_capacity capacity_of(const struct devicemgr *mgr, const char *name)
{
    const struct resource *resource = resources_find(mgr->resources, name);
    struct devicemgr_capacity capacity = {.resource = name};

    if (removed_find(&mgr->removed, name) < mgr->removed.len) {
        capacity.removed = true; /* even if a plugin has registered it anew: it has to list first */
        return capacity;
    }
    capacity.capacity = resource->devices.len;
    capacity.allocatable = resource_usable(resource) ? resource->devices.healthy : 0;
    return capacity;
}

void devicemgr_capacity(const struct devicemgr *mgr,
                        void (*each)(void *user, const struct devicemgr_capacity *capacity),
                        void *user)
{
    struct ids names = {0};

    for (const struct resource *r = mgr->resources; r; r = r->hh.next) {
        if ((r->builtin || r->endpoint.socket_good) &&
            removed_find(&mgr->removed, r->name) == mgr->removed.len)
            ids_add(&names, r->name);
    }
    for (size_t i = 0; i < mgr->removed.len; i++)
        ids_add(&names, mgr->removed.v[i]);
    ids_sort(&names);
    for (size_t i = 0; i < names.len; i++) {
        const struct devicemgr_capacity capacity = capacity_of(mgr, names.v[i]);

        each(user, &capacity);
    }
    ids_fini(&names);
}
