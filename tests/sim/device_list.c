#include "tests/sim/device_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/choice.h"
#include "tests/sim/heap.h"
#include "tests/sim/plugin.h"

#define TWICE_PERCENT 2

/* Devices like others, but for their ids. */
static const char *const UGLY[] = {
    "two\nlines",
    "\xe2\x80\xae"
    "backwards",
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000"};
#define UGLY_LEN (sizeof UGLY / sizeof UGLY[0])

/* No devices. They count for nothing, whatever their health. */
static const char *const NONE[] = {"", "\xff\xfe", ""};
#define NONE_LEN (sizeof NONE / sizeof NONE[0])

static void add(struct device_list *list, const char *id, bool healthy)
{
    V1beta1__Device *entry = &list->entries[list->response.n_devices];

    v1beta1__device__init(entry);
    entry->id = (char *)id;
    entry->health = (char *)(healthy ? "Healthy" : "Unhealthy");
    list->response.devices[list->response.n_devices++] = entry;
}

static void add_devices(const struct plugin *plugin, struct rng *rng, struct device_list *list)
{
    for (size_t i = 0; i < DEVICES_MAX; i++) {
        bool healthy = plugin->healthy & 1u << i;

        if (!(plugin->listed & 1u << i))
            continue;
        if (rng_percent(rng, TWICE_PERCENT))
            add(list, device_sim_id(i), !healthy);
        add(list, device_sim_id(i), healthy);
        if (choice_node(i) >= 0)
            list->entries[list->response.n_devices - 1].topology =
                &list->topologies[choice_node(i)];
        list->devices++;
    }
}

static void add_odd(struct device_list *list)
{
    for (size_t i = 0; i < NONE_LEN; i++)
        add(list, NONE[i], true);
    for (size_t i = 0; i < UGLY_LEN; i++)
        add(list, UGLY[i], false);
    list->devices += UGLY_LEN;
}

static void add_crowd(struct device_list *list, size_t crowd)
{
    list->names = heap_alloc(crowd, sizeof *list->names);
    for (size_t i = 0; i < crowd; i++) {
        snprintf(list->names[i], sizeof list->names[i], "crowd-%zu", i);
        add(list, list->names[i], false);
    }
    list->devices += crowd;
}

void device_list_init(const struct plugin *plugin, struct rng *rng, struct device_list *list)
{
    size_t max = 2 * DEVICES_MAX + NONE_LEN + UGLY_LEN + plugin->crowd;

    *list = (struct device_list){0};
    v1beta1__list_and_watch_response__init(&list->response);
    for (int i = 0; i < 2; i++) {
        v1beta1__topology_info__init(&list->topologies[i]);
        v1beta1__numanode__init(&list->nodes[i]);
        list->nodes[i].id = i;
        list->node_lists[i] = &list->nodes[i];
        list->topologies[i].nodes = &list->node_lists[i];
        list->topologies[i].n_nodes = 1;
    }
    list->entries = heap_alloc(max, sizeof *list->entries);
    list->response.devices = heap_alloc(max, sizeof *list->response.devices);
    add_devices(plugin, rng, list);
    if (plugin->odd)
        add_odd(list);
    add_crowd(list, plugin->crowd);
}

void device_list_fini(struct device_list *list)
{
    free(list->response.devices);
    free(list->entries);
    free(list->names);
}
