/*
 * Whether devices that a container is to have are lost, and what it may have in their place
 * (settings.replace; README.md, "Allocation").
 *
 * Lost is what a plugin that serves does not list, or says to be unhealthy, for
 * settings.replace_after_ms. One that is away says nothing of its devices; one that is back, or has
 * taken devices from its list, is heard for as long before what is not there counts as lost.
 *
 * Of a resource that is published (lift.h) nothing counts as lost: the scheduler may have given
 * what is free to claims.
 *
 * Lost is also, at once, what a container of another runs with in the place of what that has lost:
 * the kubelet gave it away in that moment (README.md).
 */
#ifndef DEVICEMGR_RULES_REPLACEABLE_H
#define DEVICEMGR_RULES_REPLACEABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "devicemgr/rules/wanted.h"
#include "devicemgr/things/ids.h"

/* From when on those of `ids` that cannot be used are lost, all of them; UINT64_MAX: they never
 * are, or the settings do not say that others may be in their place. */
uint64_t replaceable_from_ms(const struct state *state, const struct wanted *wanted,
                             const struct ids *ids);

/* What may be had instead of `ids`: those of them that are not lost, be they another's for now, and
 * others that are free for the pod. Added to `out`, sorted; false: too few are free, and nothing is
 * added. */
bool replaceable_choose(const struct state *state, const struct wanted *wanted,
                        const struct ids *ids, struct ids *out);

#endif
