#include "devicemgr/rules/usable.h"

#include <string.h>

#include "devicemgr/rules/ended.h"
#include "devicemgr/rules/kept_back.h"
#include "devicemgr/rules/tainted.h"

#include "devicemgr/rules/rule.h"

/* ---- the sandbox ---- */

/* A client may leave the uid out, or name another pod's; runtimes do not look at it. */
static struct look look_at_pod(const struct demand *demand, const struct sandbox *sandbox)
{
    struct look look = {0};

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

struct look usable_pod(const struct state *state, const struct demand *demand)
{
    return look_at_pod(demand, pods_find_sandbox(&state->pods, demand->sandbox_id));
}

struct look usable_sandbox(const struct state *state, const struct wanted *first)
{
    const struct demand *demand = first->demand;
    const struct sandbox *sandbox = pods_find_sandbox(&state->pods, demand->sandbox_id);
    struct look look = ended_sandbox(state, demand->pod_uid, sandbox);

    look.reason.resource = first->want->resource;
    if (look.step != LOOK_GO)
        return look;
    if (sandbox->dead) {
        look.step = LOOK_WAIT;
        look.reason.kind = REASON_SANDBOX_NOT_READY;
        look.hold_ms = first->settings->hold_ms;
    } else {
        look = look_at_pod(demand, sandbox); /* the runtime may have told since whose it is */
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

static void add_unhealthy(struct reason *reason, const struct device *device)
{
    ids_add(&reason->ids, device->id);
    if (device->since_ms < reason->since_ms)
        reason->since_ms = device->since_ms;
}

struct look usable_too_few(const struct state *state, const struct wanted *wanted, size_t free)
{
    const struct devices *devices = &wanted->resource->devices;
    struct look look = {.step = LOOK_WAIT,
                        .reason = {.kind = REASON_TOO_FEW_ARE_HEALTHY,
                                   .resource = wanted->want->resource,
                                   .since_ms = state->now_ms,
                                   .asked = wanted->want->count,
                                   .free = free}};

    for (size_t i = 0; i < devices->len; i++) {
        if (!devices->items[i].healthy)
            add_unhealthy(&look.reason, &devices->items[i]);
    }
    return look;
}

struct look usable_ids(const struct state *state, const struct wanted *wanted,
                       const struct ids *ids)
{
    const struct resource *resource = wanted->resource;
    struct look look = {0};

    if (!resource)
        return usable_unknown(state, wanted->want);
    if (wanted->tainted)
        look = tainted_of_ids(state, wanted, ids);
    if (look.step == LOOK_GO && wanted->orders)
        look = kept_back_of_ids(state, wanted, ids);
    if (look.step != LOOK_GO)
        return look;
    if (!resource_usable(resource))
        return usable_away(resource, ids);
    look = (struct look){.step = LOOK_WAIT,
                         .reason = {.kind = REASON_DEVICES_UNHEALTHY,
                                    .resource = resource->name,
                                    .since_ms = state->now_ms}};
    for (size_t i = 0; i < ids->len; i++) {
        const struct device *device = devices_find(&resource->devices, ids->v[i]);

        if (!device)
            ids_add(&look.reason.missing, ids->v[i]);
        else if (!device->healthy)
            add_unhealthy(&look.reason, device);
    }
    if (look.reason.missing.len + look.reason.ids.len > 0)
        return look;
    return (struct look){0};
}

/* ---- what it was given ---- */

bool usable_cdi_unread(const struct state *state)
{
    return state->cdi == DEVICEMGR_CDI_NONE || state->cdi == DEVICEMGR_CDI_ANNOTATED;
}

static bool is_cdi_alone(const V1beta1__ContainerAllocateResponse *given)
{
    return given->n_cdi_devices > 0 &&
           given->n_envs + given->n_mounts + given->n_devices + given->n_annotations == 0;
}

bool usable_unread(const struct state *state, const V1beta1__ContainerAllocateResponse *given)
{
    return usable_cdi_unread(state) && is_cdi_alone(given);
}

struct look usable_given(const struct state *state, const struct wanted *wanted,
                         const V1beta1__ContainerAllocateResponse *given)
{
    bool unheard = state->cdi == DEVICEMGR_CDI_UNHEARD;
    struct look look = {0};

    if (!is_cdi_alone(given) || (!unheard && !usable_cdi_unread(state)))
        return look;
    look.step = unheard ? LOOK_WAIT : LOOK_REFUSE;
    look.reason = (struct reason){.kind = unheard ? REASON_CDI_UNHEARD : REASON_CDI_NOT_READ,
                                  .resource = wanted->want->resource};
    ids_copy(&look.reason.ids, wanted->has->ids.v, wanted->has->ids.len);
    return look;
}
