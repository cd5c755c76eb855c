/*
 * What is to be in the place of what the kubelet gave a container, and is lost: until the kubelet
 * has let go of it.
 *
 * The kubelet may be giving the same devices to another pod at this moment. They are shown to it as
 * taken from here on; once its own checkpoint, written since it was shown that, neither counts them
 * among the healthy nor gives them to anybody, it will not any more (devicemgr_kubelet_took()).
 * Nothing of this is stored: a shim that starts begins anew, and they are shown as before.
 */
#ifndef DEVICEMGR_BOOKS_REPLACING_H
#define DEVICEMGR_BOOKS_REPLACING_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"

struct demand;
struct state;

/* Of one resource of one container. */
struct replacing {
    const char *pod_uid, *container, *resource; /* within `key` */
    struct ids ids;                             /* sorted */
    bool confirmed;    /* the kubelet will give none of them away any more, if it has not by then */
    uint64_t until_ms; /* it is over then, unless the container is asked for again before; and with
                        * its pod */
    char *key;
    size_t key_bytes;
    UT_hash_handle hh;
};

struct replacings {
    struct replacing *by_key;
    struct owners *devices; /* by resource and id */
};

/* Accepts a zeroed struct. */
void replacings_fini(struct replacings *replacings);
/* NULL: nothing is. */
const struct replacing *replacings_find(const struct replacings *replacings,
                                        const struct demand *demand, const char *resource);
/* For whom the device is meant; NULL: for nobody. */
const struct replacing *replacings_meant(const struct replacings *replacings, const char *resource,
                                         const char *id);
/* These are to be, which nobody has; copied and sorted. The same as before go on as they were. */
void replacing_set(struct state *state, const struct demand *demand, const char *resource,
                   const struct ids *ids);
/* Nothing is to be any more. */
void replacing_forget(struct state *state, const struct demand *demand, const char *resource);
/* devicemgr_kubelet_took() */
void replacing_took(struct state *state, const char *resource);
/* What is known of the pod has changed: nothing is to be any more if it is over, or `gone`. */
void replacing_pod_changed(struct state *state, const char *pod_uid, bool gone);
/* Those whose time is over, or whose pod is by now, are no more. */
void replacing_expire(struct state *state);

#endif
