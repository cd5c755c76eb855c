/*
 * Whether a container may be made with the devices of the claims that it names.
 */
#ifndef DEVICEMGR_RULES_CLAIMED_H
#define DEVICEMGR_RULES_CLAIMED_H

#include "devicemgr/rules/look.h"

struct claim;
struct devicemgr_create;
struct granted_device;
struct state;

/*
 * The devices of a claim are named by the CDI names that its driver has answered. REFUSE: the
 * runtime would start it without them; or a container of another pod, which may still run, has one
 * of them by another claim, although neither is shared on purpose, or one that is made of the same,
 * of which there is not enough for both (counters of ResourceSlices). GO with a reason: that may be
 * so, but nobody knows enough of the claims to refuse it; a driver that has the same names for a
 * device in each claim leaves open which it is.
 */
struct look claimed_look(const struct state *state, const struct devicemgr_create *request);
/* Whether the request names this CDI device, from its `first` name on. */
bool claimed_names(const struct devicemgr_create *request, size_t first, const char *name);
/* Whether it names a device of any claim that the runtime is to see: what stands for devices of
 * lifted resources (lift.h) it does not. */
bool claimed_any(const struct state *state, const struct devicemgr_create *request);
/* Whether it names one of this claim, as far as it is not known to have the names by another
 * one. */
bool claimed_by(const struct state *state, const struct claim *claim,
                const struct devicemgr_create *request);
/* Whether the pod, of which a container has the names of this device of the claim, has them by
 * another one, as the cluster says: that is reserved for the pod, and has a device of the same
 * names, while this one is not reserved for it. */
bool claimed_by_another(const struct state *state, const struct claim *claim,
                        const struct granted_device *device, const char *pod_uid);

/* Whether the container is one that may run with any claim, as far as is known. */
bool claimed_used(const struct state *state, const char *sandbox_id, const char *container);
/* Whether it is yet to be stored that the container may run with the claim: who does not find that
 * behind a restart would let another have its devices. */
bool claimed_unstored(const struct state *state, const struct claim *claim, const char *sandbox_id,
                      const char *container);
/* Whether that is so of no claim. */
bool claimed_stored(const struct state *state, const char *sandbox_id, const char *container);

#endif
