/*
 * What whoever asks means: pods, and places in a list.
 */
#ifndef DEVICEMGR_TURN_MEANT_H
#define DEVICEMGR_TURN_MEANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/devicemgr.h"

struct allocation;
struct claim;
struct claim_user;
struct state;

/* The state as it is, with the time of the question if that is later. The caller frees it, nothing
 * that is in it. */
struct state *meant_state(const struct devicemgr *mgr, uint64_t now_ms);

/* Whether `pod` is this one: its uid, "namespace/name", its name; NULL: any. */
bool meant_pod(const char *pod, const char *uid, const char *pod_namespace, const char *name);
/* Its pod's uid: its sandbox's, or while that is not known, as after a restart, what is stored of
 * it; "": not known. */
const char *meant_user_uid(const struct state *state, const struct claim_user *user);
/* Whether a container of the pod may run with the claim: this one, or (NULL) any. */
bool meant_uses(const struct state *state, const char *pod, const char *container,
                const struct claim *claim);
/* Namespace and name; "" each: they are not known. */
void meant_names(const struct state *state, const char *uid, const char **pod_namespace,
                 const char **name);

/* Compares the parts of two keys, one after the other, in their natural order. */
int meant_order(const char *const *a, const char *const *b, size_t parts);

/* What is said of an allocation's containers (devicemgr/lists.h). */
const char *meant_life(const struct state *state, const struct allocation *allocation);

#endif
