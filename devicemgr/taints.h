/*
 * Taints of devices, as Kubernetes has them for devices of ResourceSlices: what the cluster says of
 * them, told by whoever can see it; and a list of all that are in force. What an operator sets:
 * operator.h.
 *
 * As in devicemgr.h: `now_ms` is a clock that never steps back, and arguments are copied. All of it
 * may be told before devicemgr_restored(). It is not stored: whoever tells it does so anew after a
 * restart.
 */
#ifndef DEVICEMGR_TAINTS_H
#define DEVICEMGR_TAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct devicemgr;

/* ---- what the cluster says ---- */

/* A DeviceTaint. */
struct devicemgr_taint {
    const char *key;
    const char *value;  /* "": none */
    const char *effect; /* one that is not known counts as None */
    uint64_t added_s;   /* timeAdded, seconds since 1970; for people. 0: not known */
    uint64_t age_ms;    /* so long ago, by the clock of who tells it; in the future: 0 */
};

struct devicemgr_tainted_device {
    const char *device;
    struct devicemgr_taint taint;
};

/* The taints of a ResourceSlice of this node, in place of those told before; with none of them,
 * too, since of a pool only slices of the highest generation (spec.pool.generation) count. `uid` is
 * the slice's own, as in devicemgr_slice(), of which this is independent; devicemgr_slice_gone()
 * ends both. */
void devicemgr_slice_taints(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                            const char *driver, const char *pool, int64_t generation,
                            const struct devicemgr_tainted_device *devices, size_t devices_len);

/* A DeviceTaintRule. NULL: any; all that is given must match. One without a selector (absent, not
 * {}) is not told. */
struct devicemgr_taint_rule {
    const char *name;
    const char *driver, *pool, *device;
    struct devicemgr_taint taint;
};
/* As it is now. One that names none of the three would be for every device there is: it is refused,
 * and said so in the log once for each uid. `uid` is the rule's own. */
void devicemgr_taint_rule(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                          const struct devicemgr_taint_rule *rule);
/* It is no more; accepts one that was not told. */
void devicemgr_taint_rule_gone(struct devicemgr *mgr, uint64_t now_ms, const char *uid);

/* All slices of this node and all rules were told since the start, as far as they can be had. With
 * a cluster, and claims, what an earlier process has asked for is not taken back before that, nor
 * before the consumers of all claims were. */
void devicemgr_taints_told(struct devicemgr *mgr, uint64_t now_ms);
/* Who told them has gone: they may be others by now. What was told stands, but nobody is evicted
 * for it before all were told anew, and the orders to do so are taken back; nor is anybody let go
 * before that who may be to go for it. */
void devicemgr_taints_doubted(struct devicemgr *mgr, uint64_t now_ms);

/* A DeviceToleration; texts "": not given. */
struct devicemgr_toleration {
    const char *key;
    const char *op; /* Equal, Exists, "" */
    const char *value;
    const char *effect;
    bool has_seconds;
    int64_t seconds;
};

/* Of a device that is allocated to a claim (status.allocation.devices.results[].tolerations). */
struct devicemgr_claim_toleration {
    const char *driver, *pool, *device;
    struct devicemgr_toleration toleration;
};

/* Who may use a claim, and what they tolerate; beside devicemgr_claim_allocation() (dra.h). */
struct devicemgr_claim_consumers {
    /* It stands for extended resources (annotation resource.kubernetes.io/extended-resource-claim
     * "true"): the cluster's own controller does not evict its pod. */
    bool extended;
    const char *const *reserved_for; /* pods of status.reservedFor, by uid, on whichever node */
    size_t reserved_for_len;
    const struct devicemgr_claim_toleration *tolerations;
    size_t tolerations_len;
};
/* Of the claim of this uid, in place of what was told before, until no driver has anything of it;
 * ignored of one of which none has. NULL: the cluster has no such claim, or does not show it; what
 * it has told of it before stands then, and where it has told nothing that counts 10 s after the
 * first time since it was away (devicemgr_cluster_reached()): it is asked again. With a cluster
 * (devicemgr_settings) nobody is evicted for a claim of which nothing was told yet. */
void devicemgr_claim_consumers(struct devicemgr *mgr, uint64_t now_ms, const char *uid,
                               const struct devicemgr_claim_consumers *consumers);

/* ---- all that are in force, as the lists of lists.h. The key is resource, id, "key:Effect",
 * source, words ---- */

#define DEVICEMGR_TAINT_KEY 5
struct devicemgr_taint_row {
    const char *resource; /* or driver; "": of any, by a rule */
    const char
        *id; /* or "pool/device"; "": of each of it; "*" in a rule's place of any; borrowed until
                           * `each` returns */
    const char *key, *value, *effect;
    const char *source; /* operator, settings, health, slice, rule */
    const char *words;  /* the operator's reason, or the rule's name; "" */
    uint64_t since_ms_ago;
    uint64_t ends_in_ms; /* it ends by itself then; UINT64_MAX: it does not */
    bool held_back;      /* by health: it would be NoExecute, but too many devices are unhealthy */
    bool refused;        /* a rule that is for every device there is: not followed */
    size_t
        pods; /* that have such a device and do not tolerate it for ever: NoExecute evicts them */
};
struct devicemgr_which;
void devicemgr_taints(const struct devicemgr *mgr, uint64_t now_ms,
                      const struct devicemgr_which *which,
                      bool (*each)(void *user, const struct devicemgr_taint_row *taint),
                      void *user);

#endif
