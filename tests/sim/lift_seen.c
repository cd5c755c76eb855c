/*
 * What must hold of what is published of lifted resources, and shown to the kubelet.
 */
#include <stdio.h>
#include <string.h>

#include "shim/hash.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

#define KEY_PREFIX "devices.cri-device-shim/"

/* ---- who has it ---- */

static bool is_of(const struct lift_world *h, const struct lw_pod *pod, size_t container,
                  size_t resource, size_t device)
{
    struct lw_had had[LW_HAD];
    size_t len = lift_pod_had(h, pod, container, had);

    for (size_t i = 0; i < len; i++) {
        if (had[i].resource == resource && had[i].device == device)
            return true;
    }
    return false;
}

/* A container that lives has it, and the shim must know: by claims, or from before. */
static bool is_had(const struct lift_world *h, size_t resource, size_t device, bool by_claims)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && k < pod->containers_len; k++) {
            if (lift_container_lives(&pod->containers[k]) && pod->containers[k].known &&
                lift_pod_by_claims(pod) == by_claims && is_of(h, pod, k, resource, device))
                return true;
        }
    }
    return false;
}

/* ---- what is published, as the core has it ---- */

struct look {
    struct lift_world *h;
    size_t resource;
    uint64_t hash;
    bool published;
    bool seen[LW_DEVICES];
    size_t len;
};

static bool has_taint(const struct devicemgr_lifted_device *device, const char *key)
{
    for (size_t i = 0; i < device->taints_len; i++) {
        if (strcmp(device->taints[i].key + strlen(KEY_PREFIX), key) == 0)
            return true;
    }
    return false;
}

static void judge_taints(struct lift_world *h, size_t r, size_t id,
                         const struct devicemgr_lifted_device *device)
{
    const struct lw_resource *resource = &h->resources[r];
    bool away = resource->endpoint == 0 && h->now_ms > resource->lost_ms + LW_MASK_MS;

    if (resource->listed)
        check_that(h->w, resource->device[id].said_healthy || has_taint(device, "unhealthy"),
                   "a device that is unhealthy is not offered: %s", device->id);
    check_that(h->w, !is_had(h, r, id, false) || has_taint(device, "held"),
               "a device that a pod has from before is not offered: %s", device->id);
    check_that(h->w, !away || has_taint(device, "plugin-away"),
               "a device whose plugin is away is not offered: %s", device->id);
    check_that(h->w, resource->endpoint == 0 || !has_taint(device, "plugin-away"),
               "one whose plugin is there is: %s", device->id);
    if (has_taint(device, "held"))
        count_add(COUNT_LIFT_HELD);
    if (has_taint(device, "unhealthy"))
        count_add(COUNT_LIFT_UNHEALTHY);
    if (has_taint(device, "plugin-away"))
        count_add(COUNT_LIFT_AWAY);
}

static void on_device(void *user, const struct devicemgr_lifted_device *device)
{
    struct look *look = user;
    struct lift_world *h = look->h;
    size_t id = lift_device_find(look->resource, device->id);

    look->hash = hash_text(look->hash, device->name);
    look->len++;
    if (id == LW_DEVICES || !h->resources[look->resource].listed)
        return;
    look->seen[id] = true;
    judge_taints(h, look->resource, id, device);
}

static void on_lifted(void *user, const struct devicemgr_lifted *lifted)
{
    struct look *look = user;

    if (strcmp(lifted->resource, lift_resource_name(look->resource)) == 0)
        look->published = true;
}

static void note_list(struct lift_world *h, const struct look *look)
{
    for (size_t i = 0; i < h->lists_len; i++) {
        if (h->lists[i].resource == look->resource && h->lists[i].hash == look->hash)
            return;
    }
    if (h->lists_len < LW_LISTS)
        h->lists[h->lists_len++] = (struct lw_list){look->resource, look->hash};
}

static void judge_published(struct lift_world *h, size_t r)
{
    const struct lw_resource *resource = &h->resources[r];
    struct look look = {.h = h, .resource = r, .hash = HASH_BEGIN};

    devicemgr_lifted(h->core, on_lifted, &look);
    check_that(h->w, resource->lifted || !look.published,
               "nothing is published that the settings do not say: resource %zu", r);
    if (!look.published)
        return;
    devicemgr_lifted_devices(h->core, lift_resource_name(r), on_device, &look);
    note_list(h, &look);
    for (size_t i = 0; resource->listed && i < resource->devices; i++)
        check_that(h->w, look.seen[i] == resource->device[i].said,
                   "what is published is what the plugin lists: resource %zu, %zu", r, i);
}

/* ---- what the kubelet is shown ---- */

static void on_shown(void *user, const struct devicemgr_shown_device *is)
{
    const struct look *look = user;
    struct lift_world *h = look->h;
    size_t id = lift_device_find(look->resource, is->id);

    if (id == LW_DEVICES)
        return;
    check_that(h->w, !h->resources[look->resource].lifted || is->held,
               "the kubelet is shown of it what its pods have, and nothing else: %s", is->id);
    /* What is held by its own doing it knows of. */
    check_that(h->w, !is->healthy || is->held || !is_had(h, look->resource, id, true),
               "the kubelet is not offered what a claim's container has: %s", is->id);
}

void lift_judge_seen(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES && !*h->w->broken; r++) {
        struct look look = {.h = h, .resource = r};

        judge_published(h, r);
        devicemgr_shown_devices(h->core, lift_resource_name(r), on_shown, &look);
    }
}

/* ---- in the end ---- */

static const Agent__V1__Attribute *find_attribute(const Agent__V1__PoolDevice *device,
                                                  const char *name)
{
    for (size_t i = 0; i < device->n_attributes; i++) {
        if (strcmp(device->attributes[i]->name, name) == 0)
            return device->attributes[i];
    }
    return NULL;
}

/* A pod has it by a claim, whether or not a container of it lives. */
static bool is_claimed(const struct lift_world *h, size_t resource, size_t device)
{
    for (size_t i = 0; i < LW_PODS; i++) {
        const struct lw_pod *pod = &h->pods[i];

        for (size_t k = 0; pod->there && lift_pod_by_claims(pod) && k < pod->containers_len; k++) {
            if (is_of(h, pod, k, resource, device))
                return true;
        }
    }
    return false;
}

/* All is well: tainted is what pods have from before, and nothing else; but what the kubelet's
 * checkpoint named when it was read last may be a pod's that is gone since. When rows were lost,
 * that a claim's devices are its is known again once the next container with it is made: one that
 * waits keeps what its last one had, whose token does not say by what right. */
static bool is_right(const struct lift_world *h, size_t r, const Agent__V1__PoolDevice *device,
                     bool seen[LW_DEVICES])
{
    const Agent__V1__Attribute *id = find_attribute(device, "id");
    const Agent__V1__Attribute *resource = find_attribute(device, "resource");
    const Agent__V1__Attribute *node = find_attribute(device, "numaNode");
    const Agent__V1__Attribute *model = find_attribute(device, "model");
    size_t at = id ? lift_device_find(r, id->text) : LW_DEVICES;
    const struct lw_device *is;

    if (at == LW_DEVICES || seen[at] || !resource || !model)
        return false;
    seen[at] = true;
    is = &h->resources[r].device[at];
    return is->listed && strcmp(resource->text, lift_resource_name(r)) == 0 &&
           strcmp(model->text, lift_device_model(at)) == 0 &&
           (is->node < 0 ? !node : node && node->number == is->node) &&
           ((device->n_taints > 0) == is_had(h, r, at, false) || is->in_file ||
            (h->rows_lost && is_claimed(h, r, at)));
}

static bool is_pool_of(const struct lw_slice *slice, size_t r)
{
    const Agent__V1__Attribute *is = slice->uid && slice->what->n_devices > 0
                                         ? find_attribute(slice->what->devices[0], "resource")
                                         : NULL;

    return is && strcmp(is->text, lift_resource_name(r)) == 0;
}

static bool is_pool_right(const struct lift_world *h, size_t r)
{
    bool seen[LW_DEVICES] = {false}, right = true;

    for (size_t i = 0; i < LW_SLICES && right; i++) {
        const struct lw_slice *slice = &h->slices[i];
        bool whole;

        if (!is_pool_of(slice, r))
            continue;
        right = h->resources[r].lifted &&
                lift_api_generation(h, slice->pool, &whole) == slice->generation && whole;
        for (size_t k = 0; right && k < slice->what->n_devices; k++)
            right = is_right(h, r, slice->what->devices[k], seen);
    }
    for (size_t i = 0; h->resources[r].lifted && i < h->resources[r].devices; i++)
        right = right && seen[i] == h->resources[r].device[i].listed;
    return right;
}

bool lift_is_published(const struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        if (!is_pool_right(h, r))
            return false;
    }
    return true;
}

void lift_judge_published(struct lift_world *h)
{
    for (size_t r = 0; r < LW_RESOURCES; r++) {
        check_that(h->w, is_pool_right(h, r),
                   "in the end the slices are what the plugin lists, or gone: resource %zu", r);
        if (h->resources[r].lifted)
            count_add(COUNT_LIFT_PUBLISHED);
    }
}
