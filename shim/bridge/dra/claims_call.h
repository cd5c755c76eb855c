/*
 * The kubelet's NodePrepareResources and NodeUnprepareResources under way: each is passed on to the
 * daemon, and answered claim by claim with what that says. While the daemon is away it waits, for
 * the kubelet would try an error again only after more than a minute (pkg/kubelet/pod_workers.go);
 * what was asked of a daemon that died is asked of the next one, which the daemon allows.
 */
#ifndef SHIM_BRIDGE_DRA_CLAIMS_CALL_H
#define SHIM_BRIDGE_DRA_CLAIMS_CALL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "cri-proto/dra_v1.pb-c.h"
#include "shim/bridge/feed_client.h"
#include "shim/bridge/kept_call.h"

struct claims_call;
LIST_HEAD(claims_call_list, claims_call);

/* Those of one driver. */
struct claims_calls {
    /* the owner's to fill, borrowed */
    const char *driver;
    struct feed_client *feed;
    uv_loop_t *loop;
    /* private; empty at first */
    struct claims_call_list list;
};

/* Answers `call`, from the loop or at once, within the time that the kubelet waits (45 s). From
 * inside the call's handler; the claims are copied. */
void claims_call_start(struct claims_calls *calls, bool prepare, Dra__V1__Claim *const *claims,
                       size_t claims_len, struct kept_call *call);

/* Asks again for those that wait for a daemon, and gives up on those that have waited too long. To
 * be called when there is one, and about every second. */
void claims_calls_look(struct claims_calls *calls);

/* Forgets all, whose calls of the kubelet's are gone; before the feed's end. */
void claims_calls_clear(struct claims_calls *calls);

#endif
