#include "devicemgr/rules/usable.h"

#include <string.h>

#include "devicemgr/rules/rule.h"

/* ---- the sandbox ---- */

struct look usable_pod(const struct state *state, const struct demand *demand)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, demand->sandbox_id);
    struct look look = {0};

    /* A client may leave the uid out, or name another pod's; runtimes do not look at it. */
    if (demand->pod_uid[0] == '\0') {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_NO_POD_UID;
    } else if (sandbox && strcmp(sandbox->pod->uid, demand->pod_uid) != 0) {
        look.step = LOOK_REFUSE;
        look.reason.kind = REASON_OTHER_PODS_SANDBOX;
        look.reason.words = sandbox->pod->uid;
    }
    return look;
}

struct look usable_sandbox(const struct state *state, const struct demand *demand)
{
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, demand->sandbox_id);
    const char *resource = demand->request.items[0].resource;
    struct look look = {.reason.resource = resource};

    if (!sandbox || sandbox->state != SANDBOX_OPEN) {
        look.step = LOOK_REFUSE;
        look.reason.kind = sandbox ? REASON_SANDBOX_STOPS : REASON_SANDBOX_REMOVED;
    } else if (sandbox->dead) {
        look.step = LOOK_WAIT;
        look.reason.kind = REASON_SANDBOX_NOT_READY;
        look.hold_ms = state_settings_of(state, resource)->hold_ms;
    } else {
        look = usable_pod(state, demand); /* the runtime may have told since whose it is */
    }
    return look;
}

/* ---- the devices ---- */

struct look usable_unknown(const struct state *state, const struct request_item *want)
{
    struct look look = {.step = LOOK_REFUSE,
                        .reason = {.kind = REASON_RESOURCE_UNKNOWN,
                                   .resource = want->resource,
                                   .by_token = want->token}};

    resources_names(state->resources, &look.reason.ids);
    return look;
}

struct look usable_away(const struct resource *resource, const struct ids *ids)
{
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.kind = REASON_PLUGIN_AWAY, .resource = resource->name}};

    ids_copy(&look.reason.ids, ids->v, ids->len);
    return look;
}

struct look usable_unhealthy(const struct state *state, const struct resource *resource,
                             const struct ids *ids)
{
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.kind = REASON_DEVICES_UNHEALTHY,
                                   .resource = resource->name,
                                   .since_ms = state->now_ms}};
    struct reason *reason = &look.reason;

    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (!device) {
            ids_add(&reason->missing, ids->v[i]);
        } else if (!device->healthy) {
            ids_add(&reason->ids, ids->v[i]);
            if (device->since_ms < reason->since_ms)
                reason->since_ms = device->since_ms;
        }
    }
    return look;
}

struct look usable_ids(const struct state *state, const struct request_item *want,
                       const struct ids *ids)
{
    const struct resource *resource = resources_find(state->resources, want->resource);

    if (!resource)
        return usable_unknown(state, want);
    if (!resource_usable(resource))
        return usable_away(resource, ids);
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (!device || !device->healthy)
            return usable_unhealthy(state, resource, ids);
    }
    return (struct look){0};
}
