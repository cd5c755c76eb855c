/*
 * Built-in devices: resources that the shim serves itself, from the configuration.
 */
#include "devicemgr/core.h"
#include "devicemgr/plugin.h"

void builtin_listed(struct devicemgr *mgr, const char *name,
                    const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    struct resource *resource = resources_find(mgr->resources, name);
    bool first = !resource || !resource->builtin;
    struct devices_change change;
    struct text text = {0};

    if (resource && !resource->builtin) {
        text_add(&text, "resource %s is a built-in device now", name);
        registration_answer_all(mgr, &resource->endpoint, CODE_INVALID_ARGUMENT, &text);
        plugin_remove(mgr, resource);
        resource = NULL;
    }
    if (!resource)
        resource = resources_add(&mgr->resources, name);
    capacity_published(mgr, name);
    if (resource_set_builtin(resource, mgr->now_ms, devices, devices_len, &change))
        plugin_log_list(mgr, resource, false, &change);
    if (first)
        outbox_put(&mgr->outbox, OUTBOX_RESOURCE_SERVED, 0, name);
    wake_resource(mgr, name);
}
