/*
 * A resource: its name, who serves it (a plugin's endpoint, or the shim itself from the config),
 * and its devices.
 */
#ifndef DEVICEMGR_RESOURCE_H
#define DEVICEMGR_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/advertise.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/devices.h"
#include "devicemgr/endpoint.h"
#include "devicemgr/ids.h"
#include "devicemgr/prefer.h"

struct resource {
    char *name;
    bool builtin;             /* served by the shim: no endpoint, always usable */
    struct builtin *builtins; /* what stands behind each id then */
    struct endpoint endpoint; /* if not builtin */
    uint64_t generation; /* differs for each time the plugin registered, also after the resource
                          * was removed; 0: not since the shim started */
    struct devices devices;
    struct advertise_resource shown; /* what advertise.c has made of it */
    struct prefer_rest prefer_rest;
    bool stored;          /* the store may have a row of it (checkpoint.c) */
    bool planting_logged; /* that its plugin's options have annotations of ours */
    UT_hash_handle hh;
};

/* `table` is a uthash head, NULL when empty. */
struct resource *resources_find(struct resource *table, const char *name);
struct resource *resources_add(struct resource **table, const char *name);
void resources_remove(struct resource **table, struct resource *resource);
/* The names, sorted. */
void resources_names(const struct resource *table, struct ids *names);

/* Whether its devices can be used at all, health aside. */
bool resource_usable(const struct resource *resource);

/* Takes over a plugin's list; see devices_update(). */
bool resource_list(struct resource *resource, uint64_t now_ms,
                   const V1beta1__ListAndWatchResponse *list, struct devices_change *change);
/* Takes over the configured list, and makes it a built-in one. */
bool resource_set_builtin(struct resource *resource, uint64_t now_ms,
                          const struct devicemgr_builtin_device *devices, size_t devices_len,
                          struct devices_change *change);
/* The runtime options of built-in devices; ids that are not listed are left out. The caller frees
 * them. */
V1beta1__ContainerAllocateResponse *resource_builtin_options(const struct resource *resource,
                                                             const struct ids *ids);

#endif
