/*
 * Which devices the shim chooses for a container, where nothing but the rules decides: it is the
 * only create of the resource, and its pod had none of it. Preferences and NUMA nodes.
 */
#ifndef TESTS_SIM_CHOICE_H
#define TESTS_SIM_CHOICE_H

#include <stddef.h>

struct plugin_call;
struct world;

/* The NUMA node of a device; -1: none. */
int choice_node(size_t device);
/* The plugin is asked for its preference among `available`, or has answered, or will not. */
void choice_asked(struct world *w, size_t resource, const struct plugin_call *call);
void choice_answered(struct world *w, const struct plugin_call *call, unsigned preferred);
/* The plugin is asked for options of these devices: they were chosen in this moment, or before. */
void choice_check(struct world *w, size_t resource, unsigned ids);

#endif
