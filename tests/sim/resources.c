#include "tests/sim/resources.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/heap.h"

static const char *const NAMES[RESOURCES_LEN] = {"local.dev/kvm", "other.com/nic",
                                                 "vendor.com/gpu"};

static const char *const IDS[DEVICES_MAX] = {"d2", "d10", "d0", "a \"b\"\\c", "\xc3\xa9"};

void id_list_add(struct id_list *ids, const char *id)
{
    ids->v = heap_grow(ids->v, ids->len, sizeof *ids->v);
    ids->v[ids->len++] = heap_strdup(id);
}

void id_list_fini(struct id_list *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        free(ids->v[i]);
    free(ids->v);
    *ids = (struct id_list){0};
}

static int natural_order(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

const char *resource_sim_name(size_t resource)
{
    return NAMES[resource];
}

size_t resource_sim_find(const char *name)
{
    size_t i = 0;

    while (i < RESOURCES_LEN && strcmp(NAMES[i], name) != 0)
        i++;
    return i;
}

const char *device_sim_id(size_t device)
{
    return IDS[device];
}

size_t device_sim_find(const char *id)
{
    size_t i = 0;

    while (i < DEVICES_MAX && strcmp(IDS[i], id) != 0)
        i++;
    return i;
}

struct id_list device_sim_ids(unsigned mask)
{
    struct id_list ids = {0};

    for (size_t i = 0; i < DEVICES_MAX; i++) {
        if (mask & 1u << i)
            id_list_add(&ids, IDS[i]);
    }
    if (ids.len > 1)
        qsort(ids.v, ids.len, sizeof *ids.v, natural_order);
    return ids;
}

unsigned device_sim_count(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

unsigned device_sim_mask(const char *const *ids, size_t ids_len)
{
    unsigned mask = 0;

    for (size_t i = 0; i < ids_len; i++) {
        size_t device = device_sim_find(ids[i]);

        if (device == DEVICES_MAX || mask & 1u << device)
            return 0;
        mask |= 1u << device;
    }
    return mask;
}
