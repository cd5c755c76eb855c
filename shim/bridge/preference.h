/*
 * One GetPreferredAllocation of the kubelet's under way: passed on to the daemon, container by
 * container, and answered when all are back. A container for which nothing comes back has no
 * preference; the call itself never fails, since the kubelet would fail the pod for good.
 */
#ifndef SHIM_BRIDGE_PREFERENCE_H
#define SHIM_BRIDGE_PREFERENCE_H

#include <stdint.h>
#include <sys/queue.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "shim/bridge/feed_client.h"
#include "shim/bridge/kept_call.h"

struct preference;
LIST_HEAD(preference_list, preference);

/* Answers `call` within `timeout_ms`, from the loop or at once; till then it is in `list`. From
 * inside the call's handler. */
void preference_start(struct preference_list *list, struct feed_client *feed, const char *resource,
                      const V1beta1__PreferredAllocationRequest *request, uint64_t timeout_ms,
                      struct kept_call *call);

/* Forgets all in the list, whose calls are gone. */
void preference_list_clear(struct preference_list *list);

#endif
