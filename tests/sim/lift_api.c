/*
 * The API server's slices, and what the shim is told of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hash.h"
#include "tests/sim/heap.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/world.h"

struct lw_slice *lift_api_find(struct lift_world *h, const char *pool, size_t index)
{
    for (size_t i = 0; i < LW_SLICES; i++) {
        struct lw_slice *slice = &h->slices[i];

        if (slice->uid && slice->index == index && strcmp(slice->pool, pool) == 0)
            return slice;
    }
    return NULL;
}

void lift_api_change(struct lw_slice *slice, const ProtobufCBinaryData *what)
{
    agent__v1__pool_slice__free_unpacked(slice->what, NULL);
    slice->what = agent__v1__pool_slice__unpack(NULL, what->len, what->data);
}

bool lift_api_make(struct lift_world *h, const char *pool, size_t index, int64_t generation,
                   size_t count, const ProtobufCBinaryData *what)
{
    struct lw_slice *slice = h->slices;

    if (lift_api_find(h, pool, index))
        return false;
    while (slice < h->slices + LW_SLICES && slice->uid)
        slice++;
    check_that(h->w, slice < h->slices + LW_SLICES, "there are no more slices than are wanted");
    if (slice == h->slices + LW_SLICES)
        return false;
    *slice = (struct lw_slice){
        .uid = ++h->number, .index = index, .generation = generation, .count = count};
    snprintf(slice->pool, sizeof slice->pool, "%s", pool);
    lift_api_change(slice, what);
    return true;
}

void lift_api_delete(struct lift_world *h, struct lw_slice *slice)
{
    lift_note(h, "slice %zu of %s is deleted", slice->index, slice->pool);
    agent__v1__pool_slice__free_unpacked(slice->what, NULL);
    *slice = (struct lw_slice){0};
}

void lift_api_wipe(struct lift_world *h)
{
    for (size_t i = 0; i < LW_SLICES; i++) {
        if (h->slices[i].uid)
            lift_api_delete(h, &h->slices[i]);
    }
}

void lift_api_fini(struct lift_world *h)
{
    for (size_t i = 0; i < LW_SLICES; i++)
        agent__v1__pool_slice__free_unpacked(h->slices[i].what, NULL);
}

int64_t lift_api_generation(const struct lift_world *h, const char *pool, bool *whole)
{
    int64_t newest = -1;
    size_t len = 0, count = 0;

    for (size_t i = 0; i < LW_SLICES; i++) {
        const struct lw_slice *slice = &h->slices[i];

        if (!slice->uid || strcmp(slice->pool, pool) != 0 || slice->generation < newest)
            continue;
        if (slice->generation > newest)
            len = 0;
        newest = slice->generation;
        count = slice->count;
        len++;
    }
    *whole = len > 0 && len == count;
    return newest;
}

/* ---- what it is told of ---- */

static void pack(const struct lw_slice *slice, Agent__V1__Slice *out)
{
    const Agent__V1__PoolSlice *what = slice->what;
    size_t taints = 0;

    agent__v1__slice__init(out);
    for (size_t i = 0; i < what->n_devices; i++)
        taints += what->devices[i]->n_taints;
    out->driver = heap_strdup(DEVICEMGR_LIFT_DRIVER);
    out->pool = heap_strdup(slice->pool);
    out->generation = slice->generation;
    out->devices = heap_alloc(what->n_devices, sizeof *out->devices);
    out->taints = heap_alloc(taints, sizeof *out->taints);
    for (size_t i = 0; i < what->n_devices; i++) {
        const Agent__V1__PoolDevice *device = what->devices[i];

        out->devices[out->n_devices++] = heap_strdup(device->name);
        for (size_t k = 0; k < device->n_taints; k++) {
            Agent__V1__DeviceTaint *taint = heap_alloc(1, sizeof *taint);

            agent__v1__device_taint__init(taint);
            taint->device = heap_strdup(device->name);
            taint->taint = heap_alloc(1, sizeof *taint->taint);
            agent__v1__taint__init(taint->taint);
            taint->taint->key = heap_strdup(device->taints[k]->key);
            taint->taint->value = heap_strdup(device->taints[k]->value);
            taint->taint->effect = heap_strdup(device->taints[k]->effect);
            out->taints[out->n_taints++] = taint;
        }
    }
}

/* Whether that is new. */
static bool put(struct lift_world *h, const struct lw_slice *slice)
{
    Agent__V1__Slice *is = heap_alloc(1, sizeof *is);
    uint8_t *packed;
    char key[24];
    size_t len;
    bool news;

    pack(slice, is);
    len = agent__v1__slice__get_packed_size(is);
    packed = heap_alloc(len + 1, 1);
    agent__v1__slice__pack(is, packed);
    agent__v1__slice__free_unpacked(is, NULL);
    snprintf(key, sizeof key, "%llu", (unsigned long long)slice->uid);
    news = facts_put(&h->facts, AGENT__V1__KIND__SLICE, key, packed, len) > 0;
    free(packed);
    return news;
}

static void forget(void *user, const struct fact *fact)
{
    (void)user;
    (void)fact;
}

void lift_api_told(struct lift_world *h)
{
    bool news = false;

    facts_list_begin(&h->facts, AGENT__V1__KIND__SLICE);
    for (size_t i = 0; i < LW_SLICES; i++) {
        if (h->slices[i].uid)
            news = put(h, &h->slices[i]) || news;
    }
    news = facts_list_end(&h->facts, AGENT__V1__KIND__SLICE) || news;
    facts_tell(&h->facts, false, forget, NULL);
    if (!h->agent_told || news)
        lift_host_reported(h, !h->agent_told, news);
    lift_host_complete(h, true);
    h->agent_told = true;
}

/* ---- what everybody sees of it ---- */

static bool is_known(const struct lift_world *h, size_t resource, uint64_t hash)
{
    for (size_t i = 0; i < h->lists_len; i++) {
        if (h->lists[i].resource == resource && h->lists[i].hash == hash)
            return true;
    }
    return false;
}

/* Each of its devices once, as they all were to be published at one time. */
static void judge_pool(struct lift_world *h, size_t resource, const char *pool)
{
    bool whole;
    int64_t generation = lift_api_generation(h, pool, &whole);
    uint64_t hash = HASH_BEGIN;

    if (!whole)
        return;
    for (size_t index = 0; index < LW_SLICES; index++) {
        const struct lw_slice *slice = lift_api_find(h, pool, index);

        for (size_t i = 0; slice && slice->generation == generation && i < slice->what->n_devices;
             i++)
            hash = hash_text(hash, slice->what->devices[i]->name);
    }
    check_that(h->w, h->lists_len == LW_LISTS || is_known(h, resource, hash),
               "a pool that is whole has the devices that were to be published at one time: %s",
               pool);
}

void lift_api_judge(struct lift_world *h)
{
    for (size_t i = 0; i < LW_SLICES; i++) {
        const struct lw_slice *slice = &h->slices[i];
        size_t r = 0;

        if (!slice->uid || slice->what->n_devices == 0)
            continue;
        for (size_t k = 0; k < slice->what->devices[0]->n_attributes; k++) {
            const Agent__V1__Attribute *is = slice->what->devices[0]->attributes[k];

            if (strcmp(is->name, "resource") == 0)
                r = lift_resource_find(is->text);
        }
        judge_pool(h, r, slice->pool);
    }
}
