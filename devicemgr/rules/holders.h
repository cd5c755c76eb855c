/*
 * Who has a device, and whether a container of theirs may run with it.
 */
#ifndef DEVICEMGR_RULES_HOLDERS_H
#define DEVICEMGR_RULES_HOLDERS_H

#include <stdbool.h>

#include "devicemgr/rules/look.h"
#include "devicemgr/things/demand.h"

struct allocation;
struct resource;

bool holders_same_pod(const struct demand *demand, const struct allocation *holder);

/* Whether the holder of the device `id` is in the way. GO: no container of it can be running. With
 * REASON_HOLDER_ASKED the runtime is to be asked about it, unless it is being asked already, or
 * did not answer a moment ago: then at `again_ms`. */
struct look holders_look_at(const struct state *state, const struct demand *demand,
                            const struct allocation *holder, const char *id);

/* Whether a later container of the pod runs with one of the devices of `held`. */
bool holders_handed_on(const struct state *state, const struct demand *demand,
                       const struct allocation *held);

/* Whether the device is free for this pod, `gone` not counted; sets `reused` if an earlier
 * container of it had it. */
bool holders_none(const struct state *state, const struct demand *demand, const char *resource,
                  const char *id, const struct allocation *gone, bool *reused);

/* Containers that the checkpoint does not know of may run, until the runtime has listed all of
 * them: nothing new is given out before (the kubelet, too, waits for its sources to be ready). If
 * rows of it are lost, they may also be in the making, and a later list is waited for. GO or WAIT.
 */
struct look holders_listed(const struct state *state, const char *resource);

#endif
