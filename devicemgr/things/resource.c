#include "devicemgr/things/resource.h"

#include <string.h>

#include "devicemgr/things/options.h"

#define HEALTHY "Healthy"

struct builtin {
    char *id;
    V1beta1__ContainerAllocateResponse *options;
    UT_hash_handle hh;
};

static void builtins_clear(struct resource *resource)
{
    struct builtin *builtin, *next;

    HASH_ITER(hh, resource->builtins, builtin, next) {
        HASH_DEL(resource->builtins, builtin);
        free(builtin->id);
        options_free(builtin->options);
        free(builtin);
    }
}

const struct resource *resources_find(const struct resource *table, const char *name)
{
    const struct resource *resource;

    HASH_FIND_STR(table, name, resource);
    return resource;
}

struct resource *resources_edit(struct resource **table, const char *name)
{
    return resources_mutable(table, resources_find(*table, name));
}

struct resource *resources_mutable(struct resource **table, const struct resource *resource)
{
    (void)table;
    return (struct resource *)resource;
}

struct resource *resources_add(struct resource **table, const char *name)
{
    struct resource *resource = mem_alloc(1, sizeof *resource);

    resource->name = mem_strdup(name);
    HASH_ADD_KEYPTR(hh, *table, resource->name, strlen(resource->name), resource);
    return resource;
}

void resources_remove(struct resource **table, struct resource *resource)
{
    HASH_DEL(*table, resource);
    builtins_clear(resource);
    endpoint_fini(&resource->endpoint);
    devices_fini(&resource->devices);
    ids_fini(&resource->no_execute);
    free(resource->name);
    free(resource);
}

void resources_fini(struct resource **table)
{
    while (*table)
        resources_remove(table, *table);
}

void resources_names(const struct resource *table, struct ids *names)
{
    for (const struct resource *r = table; r; r = r->hh.next)
        ids_add(names, r->name);
    ids_sort(names);
}

void resource_set_generation(struct resource *resource, uint64_t generation)
{
    resource->generation = generation;
}

bool resource_planting_once(struct resource *resource)
{
    bool once = !resource->planting_logged;

    resource->planting_logged = true;
    return once;
}

bool resource_unread_once(struct resource *resource)
{
    bool once = !resource->unread_logged;

    resource->unread_logged = true;
    return once;
}

static size_t list_nodes(const V1beta1__ListAndWatchResponse *list)
{
    size_t len = 0;

    for (size_t i = 0; i < list->n_devices; i++)
        len += list->devices[i]->topology ? list->devices[i]->topology->n_nodes : 0;
    return len;
}

bool resource_list(struct resource *resource, uint64_t now_ms,
                   const V1beta1__ListAndWatchResponse *list, struct devices_change *change)
{
    struct device_entry *entries = mem_alloc(list->n_devices, sizeof *entries);
    int64_t *nodes = mem_alloc(list_nodes(list), sizeof *nodes);
    int64_t *next = nodes;
    bool changed;

    for (size_t i = 0; i < list->n_devices; i++) {
        const V1beta1__Device *device = list->devices[i];
        const V1beta1__TopologyInfo *topology = device->topology;

        entries[i].id = device->id;
        entries[i].healthy = strcmp(device->health, HEALTHY) == 0;
        entries[i].nodes = next;
        entries[i].nodes_len = topology ? topology->n_nodes : 0;
        for (size_t n = 0; n < entries[i].nodes_len; n++)
            *next++ = topology->nodes[n]->id;
    }
    changed = devices_update(&resource->devices, now_ms, entries, list->n_devices, change);
    free(nodes);
    free(entries);
    return changed;
}

static void builtins_add(struct resource *resource, const struct devicemgr_builtin_device *device)
{
    struct builtin *builtin;

    HASH_FIND_STR(resource->builtins, device->id, builtin);
    if (builtin)
        return;
    builtin = mem_alloc(1, sizeof *builtin);
    builtin->id = mem_strdup(device->id);
    builtin->options = device->more ? options_copy(device->more) : options_new();
    options_add_device(builtin->options, device->container_path, device->host_path,
                       device->permissions);
    HASH_ADD_KEYPTR(hh, resource->builtins, builtin->id, strlen(builtin->id), builtin);
}

bool resource_set_builtin(struct resource *resource, uint64_t now_ms,
                          const struct devicemgr_builtin_device *devices, size_t devices_len,
                          struct devices_change *change)
{
    struct device_entry *entries = mem_alloc(devices_len, sizeof *entries);
    bool changed;

    resource->builtin = true;
    builtins_clear(resource);
    for (size_t i = 0; i < devices_len; i++) {
        entries[i].id = devices[i].id;
        entries[i].healthy = devices[i].healthy;
        builtins_add(resource, &devices[i]);
    }
    changed = devices_update(&resource->devices, now_ms, entries, devices_len, change);
    free(entries);
    return changed;
}

V1beta1__ContainerAllocateResponse *resource_builtin_options(const struct resource *resource,
                                                             const struct ids *ids)
{
    V1beta1__ContainerAllocateResponse *options;
    struct options_merge merge;

    options_merge_init(&merge);
    for (size_t i = 0; i < ids->len; i++) {
        const struct builtin *builtin;

        HASH_FIND_STR(resource->builtins, ids->v[i], builtin);
        if (builtin)
            options_merge_add(&merge, builtin->options); /* several share mounts and envs */
    }
    options = options_merge_take(&merge);
    options_merge_fini(&merge);
    return options;
}
