/*
 * What a plugin lists: its devices, at times some twice, with other things that are odd: ids that
 * are empty, no UTF-8, long or ugly, and crowds of further devices, none of them healthy.
 */
#ifndef TESTS_SIM_DEVICE_LIST_H
#define TESTS_SIM_DEVICE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

struct plugin;
struct rng;

struct device_list {
    V1beta1__ListAndWatchResponse response; /* points into the rest */
    V1beta1__Device *entries;
    V1beta1__TopologyInfo topologies[2];
    V1beta1__NUMANode nodes[2], *node_lists[2];
    char (*names)[32]; /* of the crowd */
    size_t devices;    /* as many as a reader counts */
};

/* Must not be moved before it is freed. */
void device_list_init(const struct plugin *plugin, struct rng *rng, struct device_list *list);
void device_list_fini(struct device_list *list);

#endif
