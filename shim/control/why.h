/*
 * The answer to Why: the device manager's, as a message.
 */
#ifndef SHIM_CONTROL_WHY_H
#define SHIM_CONTROL_WHY_H

#include "cri-proto/control_v1.pb-c.h"
#include "devicemgr/devicemgr.h"
#include "shim/control/list.h"

struct why {
    Control__V1__WhyResponse response;

    /* private */
    bool waiting;    /* only those that wait, or were refused and are not made yet */
    size_t id_bytes; /* of the ids so far */
};

/* Asks; all that it says is a copy. */
void why_init(struct why *why, const struct list_from *from,
              const Control__V1__WhyRequest *request);
void why_fini(struct why *why);

/* ---- for it: why_claims.c, why_endings.c ---- */

Control__V1__Reason *why_reason(const char *word, const char *text, const char *clears);
/* Adds those that are meant to the response, and takes them from it. */
void why_add_claims(struct why *why, const struct list_from *from, const char *pod,
                    const char *container);
void why_free_claims(struct why *why);
/* Likewise; `pod` NULL: any. */
void why_add_endings(struct why *why, const struct devicemgr *core, const char *pod);
void why_free_endings(struct why *why);

#endif
