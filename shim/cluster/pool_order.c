#include "shim/cluster/pool_order.h"

#include <stdlib.h>
#include <string.h>

#include "shim/cluster/limits.h"
#include "shim/hash.h"
#include "shim/must.h"

/* ---- what can be held against each other ---- */

static uint64_t hash_taint(uint64_t hash, const Agent__V1__Taint *taint)
{
    hash = hash_text(hash, taint->key);
    hash = hash_text(hash, taint->value);
    return hash_text(hash, taint->effect);
}

bool pool_sum_equal(const struct pool_sum *a, const struct pool_sum *b)
{
    return a->slices == b->slices && a->said == b->said && !a->mixed && !b->mixed;
}

/* Taints are told device by device, in their order. */
void pool_sum_add(struct pool_sum *sum, const Agent__V1__Slice *slice)
{
    uint64_t hash = HASH_BEGIN;
    size_t taint = 0;

    for (size_t i = 0; i < slice->n_devices; i++) {
        hash = hash_text(hash, slice->devices[i]);
        for (; taint < slice->n_taints &&
               strcmp(slice->taints[taint]->device, slice->devices[i]) == 0;
             taint++)
            hash = hash_taint(hash, slice->taints[taint]->taint);
    }
    sum->mixed = sum->mixed || (sum->slices > 0 && slice->generation != sum->generation);
    sum->generation = slice->generation;
    sum->slices++;
    sum->said += hash;
}

static void sum_ordered(struct pool_sum *sum, const Agent__V1__PoolSlice *slice)
{
    uint64_t hash = HASH_BEGIN;

    for (size_t i = 0; i < slice->n_devices; i++) {
        const Agent__V1__PoolDevice *device = slice->devices[i];

        hash = hash_text(hash, device->name);
        for (size_t k = 0; k < device->n_taints; k++)
            hash = hash_taint(hash, device->taints[k]);
    }
    sum->slices++;
    sum->said += hash;
}

/* ---- from the core's values ---- */

struct making {
    struct pool_order *to;
    bool full;
    Agent__V1__PoolDevice *devices[DEVICEMGR_LIFT_SLICE_DEVICES]; /* of the next; owned */
    size_t devices_len;
};

static Agent__V1__Attribute *attribute_new(const struct devicemgr_attribute *from)
{
    Agent__V1__Attribute *to = must(malloc(sizeof *to));

    agent__v1__attribute__init(to);
    to->name = must(strdup(from->name));
    switch (from->kind) {
    case DEVICEMGR_ATTRIBUTE_TEXT:
        to->value_case = AGENT__V1__ATTRIBUTE__VALUE_TEXT;
        to->text = must(strdup(from->text));
        break;
    case DEVICEMGR_ATTRIBUTE_NUMBER:
        to->value_case = AGENT__V1__ATTRIBUTE__VALUE_NUMBER;
        to->number = from->number;
        break;
    case DEVICEMGR_ATTRIBUTE_FLAG:
        to->value_case = AGENT__V1__ATTRIBUTE__VALUE_FLAG;
        to->flag = from->flag;
        break;
    case DEVICEMGR_ATTRIBUTE_VERSION:
        to->value_case = AGENT__V1__ATTRIBUTE__VALUE_VERSION;
        to->version = must(strdup(from->text));
        break;
    }
    return to;
}

static Agent__V1__Taint *taint_new(const struct devicemgr_lifted_taint *from)
{
    Agent__V1__Taint *to = must(malloc(sizeof *to));

    agent__v1__taint__init(to);
    to->key = must(strdup(from->key));
    to->value = must(strdup(from->value));
    to->effect = must(strdup(from->effect));
    return to;
}

static Agent__V1__PoolDevice *device_new(const struct devicemgr_lifted_device *from)
{
    Agent__V1__PoolDevice *to = must(malloc(sizeof *to));

    agent__v1__pool_device__init(to);
    to->name = must(strdup(from->name));
    to->attributes = must(calloc(from->attributes_len + 1, sizeof *to->attributes));
    for (size_t i = 0; i < from->attributes_len; i++)
        to->attributes[to->n_attributes++] = attribute_new(&from->attributes[i]);
    to->taints = must(calloc(from->taints_len + 1, sizeof *to->taints));
    for (size_t i = 0; i < from->taints_len; i++)
        to->taints[to->n_taints++] = taint_new(&from->taints[i]);
    return to;
}

static void add_packed(struct making *making, const Agent__V1__PoolSlice *slice)
{
    Agent__V1__PublishPool *publish = &making->to->publish;
    size_t len = agent__v1__pool_slice__get_packed_size(slice);
    ProtobufCBinaryData *packed;

    making->full = making->full || making->to->bytes + len > CLUSTER_POOL_BYTES_MAX;
    if (making->full) {
        making->to->left_out += slice->n_devices;
        return;
    }
    publish->slices =
        must(reallocarray(publish->slices, publish->n_slices + 1, sizeof *publish->slices));
    packed = &publish->slices[publish->n_slices++];
    packed->data = must(malloc(len + 1));
    packed->len = agent__v1__pool_slice__pack(slice, packed->data);
    making->to->bytes += len;
    making->to->devices += slice->n_devices;
    making->to->sum.all = hash_bytes(making->to->sum.all, packed->data, packed->len);
    sum_ordered(&making->to->sum, slice);
}

static void end_slice(struct making *making)
{
    Agent__V1__PoolSlice slice = AGENT__V1__POOL_SLICE__INIT;

    if (making->devices_len == 0)
        return;
    slice.devices = making->devices;
    slice.n_devices = making->devices_len;
    add_packed(making, &slice);
    while (making->devices_len > 0)
        agent__v1__pool_device__free_unpacked(making->devices[--making->devices_len], NULL);
}

static void on_device(void *user, const struct devicemgr_lifted_device *device)
{
    struct making *making = user;

    making->devices[making->devices_len++] = device_new(device);
    if (making->devices_len == DEVICEMGR_LIFT_SLICE_DEVICES)
        end_slice(making);
}

/* A resource without devices has no slices, as one that is not there. */
void pool_order_init(struct pool_order *order, const char *pool, const struct devicemgr *core,
                     const struct devicemgr_lifted *lifted)
{
    struct making making = {.to = order};

    *order = (struct pool_order){.order = AGENT__V1__ORDER__INIT,
                                 .publish = AGENT__V1__PUBLISH_POOL__INIT,
                                 .sum.all = HASH_BEGIN};
    order->order.what_case = AGENT__V1__ORDER__WHAT_PUBLISH_POOL;
    order->order.publish_pool = &order->publish;
    order->publish.driver = (char *)DEVICEMGR_LIFT_DRIVER;
    order->publish.pool = (char *)(uintptr_t)pool;
    if (!lifted)
        return;
    order->left_out = lifted->left_out;
    devicemgr_lifted_devices(core, lifted->resource, on_device, &making);
    end_slice(&making);
}

void pool_order_fini(struct pool_order *order)
{
    for (size_t i = 0; i < order->publish.n_slices; i++)
        free(order->publish.slices[i].data);
    free(order->publish.slices);
}
