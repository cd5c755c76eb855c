/*
 * Built-in devices: resources that the shim serves itself, from the configuration.
 */
#include "devicemgr/books/state.h"
#include "devicemgr/machines/plugin.h"

void builtin_listed(struct state *state, const char *name,
                    const struct devicemgr_builtin_device *devices, size_t devices_len)
{
    struct resource *resource = resources_edit(&state->resources, name);
    bool first = !resource || !resource->builtin;
    struct devices_change change;
    struct text text = {0};

    if (resource && !resource->builtin) {
        text_add(&text, "resource %s is a built-in device now", name);
        plugin_answer_all(state, &resource->endpoint, CODE_INVALID_ARGUMENT, &text);
        plugin_remove(state, resource);
        resource = NULL;
    }
    if (!resource)
        resource = resources_add(&state->resources, name);
    capacity_published(state, name);
    if (resource_set_builtin(resource, state->now_ms, devices, devices_len, &change))
        plugin_log_list(state, resource, false, &change);
    if (first)
        outbox_put(&state->outbox, OUTBOX_RESOURCE_SERVED, 0, name);
    wake_resource(&state->wakes, name);
}
