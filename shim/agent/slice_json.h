/*
 * What a ResourceSlice says of its devices, as the API has it, and as the daemon orders it
 * (cri-proto/agent_v1.proto, PoolSlice).
 *
 * The API server adds to a taint when it was added, unless that is said (timeAdded). From then on
 * the seconds of tolerations count, so that who changes a slice leaves it as it is: it is no part
 * of a comparison, and goes over to what is written.
 */
#ifndef SHIM_AGENT_SLICE_JSON_H
#define SHIM_AGENT_SLICE_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "cri-proto/agent_v1.pb-c.h"

/* spec.devices, for json_decref(); NULL: its names are not UTF-8. `basic`: in v1beta1 all but the
 * name of a device is in "basic". */
json_t *slice_json_devices(const Agent__V1__PoolSlice *slice, bool basic);

/* What is said of a device, of spec.devices, under that key; up to v1beta1 it is in "basic". NULL:
 * nothing is. Borrowed, and its name, too. */
json_t *slice_json_said(const json_t *device, const char *key);
const char *slice_json_name(const json_t *device); /* "": it has none */

/* Whether they are the same devices, by name; in any order. */
bool slice_json_named(const json_t *devices, const json_t *others);
/* Whether all that is said of them is the same, in the same order, but for those times. */
bool slice_json_same(const json_t *devices, const json_t *others);
/* Taints of `devices` get the times that the same ones have in `from`. */
void slice_json_keep_times(json_t *devices, const json_t *from);

#endif
