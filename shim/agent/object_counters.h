/*
 * Of a ResourceSlice: the counters that devices draw on which are made of the same, as partitions
 * are.
 */
#ifndef SHIM_AGENT_OBJECT_COUNTERS_H
#define SHIM_AGENT_OBJECT_COUNTERS_H

#include <stddef.h>

#include <jansson.h>

#include "cri-proto/agent_v1.pb-c.h"

/* Adds those of a ResourceSlice's spec to what is said of it already; none, if that were more than
 * `bytes_max` then. What is no quantity is left out. */
void object_read_counters(const json_t *spec, size_t bytes_max, Agent__V1__Slice *out);

#endif
