/*
 * Which taints a pod tolerates, and for how long: as Kubernetes' DeviceToleration
 * (resource.k8s.io). A pod says it in its annotation devices.cri-device-shim/tolerations, a list in
 * JSON of objects with the API's own fields:
 *
 *   [{"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute",
 *   "tolerationSeconds": 60}]
 *
 * `key`: "", or none: every key, with Exists only. `operator`: Equal, which is meant where none is
 * said, or Exists. `value`: with Equal. `effect`: "", or none: each. `tolerationSeconds`: none: for
 * ever; 0 and less: not at all; not looked at unless the effect is NoExecute. At most
 * TOLERATIONS_MAX.
 */
#ifndef DEVICEMGR_THINGS_TOLERATION_H
#define DEVICEMGR_THINGS_TOLERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/taints.h"
#include "devicemgr/things/taint.h"
#include "devicemgr/things/text.h"

struct toleration {
    char *key;   /* "": every key */
    char *value; /* not with `exists` */
    bool exists;
    bool any_effect;
    enum taint_effect effect;
    bool for_ever;
    int64_t seconds;
};

/* A zeroed struct tolerates nothing. */
struct tolerations {
    struct toleration *v;
    size_t len;
};

void tolerations_fini(struct tolerations *tolerations);
/* Whether the pod's annotation of this key and value is the list of its tolerations; else it may be
 * what the container called "tolerations" asks for. */
bool tolerations_is_annotation(const char *key, const char *value);
/* Reads the annotation in place of what there was. -1, and nothing has changed: what is wrong is
 * added to `error`. */
int tolerations_read(struct tolerations *tolerations, const char *json, struct text *error)
    __attribute__((warn_unused_result));
/* Adds one, as the cluster has it. False, and nothing has changed: it is none, or one too many. */
bool tolerations_add(struct tolerations *tolerations, const struct devicemgr_toleration *is);

/* Whether the toleration is for such a taint, seconds aside
 * (staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/devicetoleration.go). */
bool toleration_matches(const struct toleration *toleration, const struct taint *taint);
/* Until when the taint is tolerated, on the core's clock: 0, not at all; UINT64_MAX, for ever. Of
 * several tolerations that match the shortest time counts, and one without seconds is for ever,
 * whatever others say. */
uint64_t tolerations_until_ms(const struct tolerations *tolerations, const struct taint *taint);

#endif
