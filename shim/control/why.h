/*
 * The answer to Why: the device manager's, as a message.
 */
#ifndef SHIM_CONTROL_WHY_H
#define SHIM_CONTROL_WHY_H

#include "cri-proto/control_v1.pb-c.h"
#include "devicemgr/devicemgr.h"

struct why {
    Control__V1__WhyResponse response;

    /* private */
    bool waiting;    /* only those that wait, or were refused */
    size_t id_bytes; /* of the ids so far */
};

/* Asks; all that it says is a copy. */
void why_init(struct why *why, const struct devicemgr *core,
              const Control__V1__WhyRequest *request);
void why_fini(struct why *why);

#endif
