/*
 * Devices that a claim was given of one driver: as its allocation has them, or as the driver
 * answered.
 */
#ifndef DEVICEMGR_THINGS_GRANTED_H
#define DEVICEMGR_THINGS_GRANTED_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/things/ids.h"

struct granted_device {
    char *pool;
    char *device;
    char *share_id;      /* of one that is shared with others on purpose; NULL: it is not */
    bool admin;          /* it is looked at only, whoever has it */
    struct ids cdi;      /* names by which the runtime knows it */
    struct ids requests; /* of the claim, for which it is; none: for each */
};

/* "pool/device", as people read it; the caller frees it. */
char *granted_device_id(const struct granted_device *device);
/* Whether that is it. */
bool granted_device_is(const struct granted_device *device, const char *id);
/* Whether all its names are among these. The kubelet sends all of each device; one of them alone
 * may be another's, too: a driver may have names for a device whoever has it, and for what all of
 * its devices have in common. */
bool granted_device_named(const struct granted_device *device, const char *const *names,
                          size_t names_len);

/* A zeroed struct is an empty list. */
struct granted {
    struct granted_device *v;
    size_t len;
};

void granted_fini(struct granted *granted);
/* Copied; `share_id` may be NULL. What it returns is valid until the next. */
struct granted_device *granted_add(struct granted *granted, const char *pool, const char *device,
                                   const char *share_id, bool admin);
/* What a driver answered (NodePrepareResourceResponse of dra v1), in place of what there was.
 * False, and nothing has changed: it is no such message, or it has more than CLAIM_DEVICES_MAX. */
bool granted_read(struct granted *granted, const void *response, size_t response_bytes)
    __attribute__((warn_unused_result));
/* The same device in the list; NULL: it is not there. */
const struct granted_device *granted_find(const struct granted *granted,
                                          const struct granted_device *sought);
/* Whether both have the same CDI names, in any order. */
bool granted_named_alike(const struct granted_device *a, const struct granted_device *b);
/* Whether one of the list has the same CDI names as this one. */
bool granted_has_alike(const struct granted *granted, const struct granted_device *device);
/* Whether both are the same devices, in any order. */
bool granted_same(const struct granted *a, const struct granted *b);
/* The first that has the CDI name; NULL: none has. */
const struct granted_device *granted_named(const struct granted *granted, const char *name);
/* Whether some request of the claim has both. */
bool granted_meant_alike(const struct granted_device *a, const struct granted_device *b);
/* Takes from `devices`, which is empty then, what is not in `now` by the same names, to the end of
 * `lapsed`, each once; of more than `most` the oldest go. */
void granted_lapse(struct granted *lapsed, struct granted *devices, const struct granted *now,
                   size_t most);

#endif
