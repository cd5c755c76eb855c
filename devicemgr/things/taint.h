/*
 * A taint of a device: why nobody new is to get it, or nobody at all, unless a pod tolerates it.
 * Words and rules are those of Kubernetes' DeviceTaint (resource.k8s.io): a key, perhaps a value,
 * an effect, and when it was added.
 *
 * A device of a plugin is named by resource and id, one of a DRA driver by the driver's name and
 * "pool/device": a driver's name has no slash, and a resource's has one.
 */
#ifndef DEVICEMGR_THINGS_TAINT_H
#define DEVICEMGR_THINGS_TAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cri-proto/kube_name.h"

/* The later ones are stronger. */
enum taint_effect {
    TAINT_NONE,        /* says who would go, and does nothing */
    TAINT_NO_SCHEDULE, /* nobody new gets the device */
    TAINT_NO_EXECUTE,  /* nor is a container made with it, and who has it is evicted */
    TAINT_EFFECTS,
};

enum taint_source {
    TAINT_BY_OPERATOR,
    TAINT_BY_SETTINGS,
    TAINT_BY_HEALTH, /* its plugin says that it is unhealthy */
    TAINT_BY_SLICE,  /* its driver does, in a ResourceSlice; who has it is the cluster's to evict */
    TAINT_BY_RULE,   /* a DeviceTaintRule of the cluster; likewise */
    TAINT_SOURCES,
};

/* The key of those by health. */
#define TAINT_KEY_UNHEALTHY "devices.cri-device-shim/unhealthy"

/* As it is in force; its texts are those of whoever has it, and count until that changes. */
struct taint {
    enum taint_source source;
    enum taint_effect effect;
    const char *key;
    const char *value;   /* "": none */
    const char *words;   /* the operator's reason, or the rule's name; "": none */
    uint64_t added_ms;   /* on the core's clock: from then on the seconds of tolerations count */
    uint64_t earlier_ms; /* or so long before that, which is when the clock began */
    uint64_t added_s;    /* for people, since 1970, by the clock of who added it; 0: not known */
    uint64_t end_ms;     /* it ends by itself then; UINT64_MAX: it does not */
    bool unstored;       /* it is in force, but nobody is evicted for it before it is durable */
    bool held_back;      /* by health: it would be NoExecute, but too many devices are unhealthy */
};

/* "None", "NoSchedule", "NoExecute"; static. */
const char *taint_effect_name(enum taint_effect effect);
/* False: there is none of that name. */
bool taint_effect_find(const char *name, enum taint_effect *out);
/* "operator", "settings", "health", "slice", "rule"; static. */
const char *taint_source_name(enum taint_source source);

/* Whether the cluster has said so. */
static inline bool taint_is_the_clusters(const struct taint *taint)
{
    return taint->source == TAINT_BY_SLICE || taint->source == TAINT_BY_RULE;
}

/* What an operator writes, "key[=value]:Effect"; to take it back also "key[:Effect]". */
struct taint_said {
    char key[KUBE_QUALIFIED_BYTES_MAX + 1];
    char value[KUBE_LABEL_VALUE_BYTES_MAX + 1];
    enum taint_effect effect;
    bool any_effect; /* none is written */
};
/* NULL: it is one; else what is wrong with it, static. */
const char *taint_said_read(struct taint_said *said, const char *text);

/* The last slash of "pool/device"; NULL: `id` names no device of a driver. */
const char *taint_device_of(const char *resource, const char *id);

#endif
