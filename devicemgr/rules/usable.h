/*
 * Whether a container can be made now with the devices that it asks for: whether its sandbox is
 * open, and whether the devices can be used. Who has them is holders.h's.
 */
#ifndef DEVICEMGR_RULES_USABLE_H
#define DEVICEMGR_RULES_USABLE_H

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "devicemgr/rules/look.h"
#include "devicemgr/rules/wanted.h"

/* Whether a container can be made in the sandbox; and whether the demand is of its pod, which is
 * who holds what it gets. That it is not ready may be old news: a runtime that comes back may list
 * it so for a moment. `first` is of the resources that it asks for. */
struct look usable_sandbox(const struct state *state, const struct wanted *first);
/* The second half alone: a sandbox that is not known says nothing. GO or REFUSE. */
struct look usable_pod(const struct state *state, const struct demand *demand);

/* Whether the resource is known, none of the ids tainted NoExecute or kept back by the operator,
 * the endpoint active, the ids listed and healthy. */
struct look usable_ids(const struct state *state, const struct wanted *wanted,
                       const struct ids *ids);

/* Whether the runtime would start the container without what its plugin has given it: where that is
 * nothing but CDI devices. Annotations are something, whatever they name: others than the runtime
 * may read them, as NVIDIA's container runtime does. WAIT: it has not said yet. */
struct look usable_given(const struct state *state, const struct wanted *wanted,
                         const V1beta1__ContainerAllocateResponse *given);
/* Whether the runtime has said that it does not read the CDI devices which plugins give; and
 * whether what a plugin has given is no use, then. */
bool usable_cdi_unread(const struct state *state);
bool usable_unread(const struct state *state, const V1beta1__ContainerAllocateResponse *given);

/* The parts of usable_ids(): refused, or to be waited for. */
struct look usable_unknown(const struct state *state, const struct request_item *want);
struct look usable_away(const struct resource *resource, const struct ids *ids);
/* Too few of its devices are free and healthy, and waiting may help: some are unhealthy. */
struct look usable_too_few(const struct state *state, const struct wanted *wanted, size_t free);

#endif
