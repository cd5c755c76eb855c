/*
 * Which pods are to be evicted, for which taint, and when: each holder of a device that is
 * NoExecute is looked at for itself, so that one of which nothing is known any more is counted, and
 * in nobody's way.
 *
 * Holders are pods that are there: those with an allocation of the device, whoever chose it; those
 * to which the kubelet's checkpoint gives it; and of a claim those whose containers were made with
 * it, and those that have reserved it. For the taints of a ResourceSlice or a DeviceTaintRule the
 * cluster's own controller evicts them, and for those that are published from here (lifted.h) who
 * has the device by a claim; only claims that stand for extended resources it does not see.
 */
#ifndef DEVICEMGR_RULES_EVICTABLE_H
#define DEVICEMGR_RULES_EVICTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/things/taint.h"

struct claim;
struct state;

/* All of it is borrowed until `each` returns. */
struct evictable {
    const char *pod_uid;
    const char *resource; /* or driver */
    const char *id;       /* or "pool/device"; NULL: any that a claim has, of all asked about */
    struct taint taint;
    /* None of its sandboxes is left, as far as that is known, but the runtime knows it yet: it need
     * not go, and what was done for that is not taken back for its sake, since it may have another
     * one made. */
    bool over;
    /* On the core's clock; it may be past. UINT64_MAX: that is not known yet. The taint is not
     * durable yet, or not any more, or the cluster has not told yet what the claim tolerates. */
    uint64_t at_ms;
};

struct evictable_looked {
    size_t stale;  /* holders: no pod of that uid, or sandbox, is known here */
    size_t claims; /* that were looked at: of drivers that may have something tainted */
};

/* Calls `each` for every holder and taint that it does not tolerate for ever. */
struct evictable_looked evictable_each(const struct state *state,
                                       void (*each)(void *user, const struct evictable *evictable),
                                       void *user);
/* Whether all of that is known: with a cluster, and claims, only once it has told the taints of its
 * slices and its rules, and who may use each claim. */
bool evictable_all_known(const struct state *state);
/* Whether who may use the claim goes for a taint that the cluster does not see. */
bool evictable_claim(const struct state *state, const struct claim *claim);
/* Who would be, of one device, or of all of a resource (`id` NULL), if it had this taint and no
 * other; of pods that are not over. */
void evictable_by(const struct state *state, const char *resource, const char *id,
                  const struct taint *taint,
                  void (*each)(void *user, const struct evictable *evictable), void *user);

#endif
