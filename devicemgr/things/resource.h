/*
 * A resource: its name, who serves it (a plugin's endpoint, or the shim itself from the config),
 * and its devices.
 */
#ifndef DEVICEMGR_THINGS_RESOURCE_H
#define DEVICEMGR_THINGS_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "devicemgr/things/devices.h"
#include "devicemgr/things/endpoint.h"
#include "devicemgr/things/ids.h"

/* What the kubelet is shown of it (advertise.c). */
struct resource_shown {
    uint64_t version; /* of its list; 0: it is not shown */
    uint64_t base;    /* likewise, but for what allocations and the kubelet contribute */
    uint64_t changes; /* of its devices, see struct devices */
    uint64_t mask_end_ms;
    bool away;     /* its plugin is, and that shows */
    bool assumed;  /* restored, and not listed since: its devices count as healthy */
    bool expected; /* and its plugin is being dialled */
};

/* What its lists have changed since that was logged (plugin.c). */
struct lists_untold {
    size_t lists;
    struct devices_change change; /* of all of them; what counts for nothing, of the last */
    uint64_t paid_ms;             /* the lines there were are paid for by then */
};

/* Until when its plugin, which was late, is not asked what it prefers (prefer.c). A zeroed struct
 * is no rest. */
struct prefer_rest {
    uint64_t until_ms;
    uint64_t generation; /* of the resource: another one is not at rest */
};

/* Written by resource.c, but for what is said to be another's. */
struct resource {
    char *name;
    bool builtin;             /* served by the shim: no endpoint, always usable */
    struct builtin *builtins; /* what stands behind each id then */
    struct endpoint endpoint; /* if not builtin; endpoint.c's */
    uint64_t generation; /* differs for each time the plugin registered, also after the resource
                          * was removed; 0: not since the shim started */
    struct devices devices;
    struct lists_untold untold;     /* plugin.c's */
    struct resource_shown shown;    /* advertise.c's */
    struct prefer_rest prefer_rest; /* prefer.c's */
    bool stored;                    /* the store may have a row of it; checkpoint.c's */
    struct ids no_execute; /* devices that are tainted so by their health, sorted; tainted.c's */
    bool health_closed;    /* no others become so; likewise */
    bool planting_logged;  /* that its plugin's options have annotations of ours */
    bool unread_logged;    /* that the runtime does not read its CDI devices */
    UT_hash_handle hh;
};

/* `table` is a uthash head, NULL when empty. */
/* NULL: there is none. */
const struct resource *resources_find(const struct resource *table, const char *name);
/* The same, to be changed. */
struct resource *resources_edit(struct resource **table, const char *name);
/* One that was found by who could only read the table. Accepts NULL. */
struct resource *resources_mutable(struct resource **table, const struct resource *resource);
struct resource *resources_add(struct resource **table, const char *name);
void resources_remove(struct resource **table, struct resource *resource);
void resources_fini(struct resource **table);
/* The names, sorted. */
void resources_names(const struct resource *table, struct ids *names);

/* Its plugin has registered. */
void resource_set_generation(struct resource *resource, uint64_t generation);
/* That its plugin's options have annotations of ours: true the first time. */
bool resource_planting_once(struct resource *resource);
/* That the runtime does not read its CDI devices: likewise. */
bool resource_unread_once(struct resource *resource);
/* Whether its devices can be used at all, health aside. */
static inline bool resource_usable(const struct resource *resource)
{
    return resource->builtin || resource->endpoint.state == ENDPOINT_ACTIVE;
}

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
