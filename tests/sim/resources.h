/*
 * The resources of the simulated node, in the order of their names, and their devices as bits.
 */
#ifndef TESTS_SIM_RESOURCES_H
#define TESTS_SIM_RESOURCES_H

#include <stddef.h>

#define RESOURCES_LEN 3
#define RESOURCE_BUILTIN 0 /* served by the shim itself */
#define DEVICES_MAX 5

const char *resource_sim_name(size_t resource);
/* RESOURCES_LEN: no such resource. */
size_t resource_sim_find(const char *name);

/* A zeroed struct is an empty list. */
struct id_list {
    char **v;
    size_t len;
};

void id_list_add(struct id_list *ids, const char *id);
void id_list_fini(struct id_list *ids);

/* Ids are chosen to be sorted naturally and quoted. */
const char *device_sim_id(size_t device);
/* DEVICES_MAX: no such device. */
size_t device_sim_find(const char *id);
/* The ids of a mask, sorted; the caller frees them. */
struct id_list device_sim_ids(unsigned mask);
unsigned device_sim_count(unsigned mask);
/* 0 if an id is unknown or named twice. */
unsigned device_sim_mask(const char *const *ids, size_t ids_len);

#endif
