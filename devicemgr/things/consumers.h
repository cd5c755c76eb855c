/*
 * Who may use a claim, as the cluster says it, and what they tolerate (taints.h).
 */
#ifndef DEVICEMGR_THINGS_CONSUMERS_H
#define DEVICEMGR_THINGS_CONSUMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "devicemgr/taints.h"
#include "devicemgr/things/ids.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/toleration.h"

/* What is tolerated of one device. */
struct consumers_device {
    char *driver, *pool, *device;
    struct tolerations tolerations;
};

struct consumers {
    char *claim; /* its uid */
    bool extended;
    struct ids reserved_for; /* pods, by uid */
    struct consumers_device *devices;
    size_t devices_len;
    UT_hash_handle hh;
};

/* `table` is a uthash head, NULL when empty. */
void consumers_fini(struct consumers **table);
/* NULL: nothing was told of the claim. */
const struct consumers *consumers_find(const struct consumers *table, const char *claim);
/* In place of what was told before; NULL: that there are none, which is known from then on. What is
 * over the bounds is left out, and so are tolerations that are none. */
void consumers_set(struct consumers **table, const char *claim,
                   const struct devicemgr_claim_consumers *is);
/* Nothing is known of the claim any more. */
void consumers_remove(struct consumers **table, const char *claim);
/* What is tolerated of the device; never NULL. Accepts NULL for `consumers`. */
const struct tolerations *consumers_tolerations(const struct consumers *consumers,
                                                const char *driver, const char *pool,
                                                const char *device);

#endif
