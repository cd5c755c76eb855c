/*
 * Taints that the cluster has: of devices in ResourceSlices, and by DeviceTaintRules (taints.h).
 */
#ifndef DEVICEMGR_THINGS_CLUSTER_TAINTS_H
#define DEVICEMGR_THINGS_CLUSTER_TAINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devicemgr/taints.h"
#include "devicemgr/things/mem.h"
#include "devicemgr/things/taint.h"

/* One, with its texts. */
struct cluster_taint {
    char *device; /* of a slice; NULL: of a rule */
    char *key;
    char *value;
    enum taint_effect effect;
    uint64_t added_ms, earlier_ms, added_s;
};

struct tainted_slice {
    char *uid;
    char *driver;
    char *pool;
    int64_t generation;
    struct cluster_taint *taints;
    size_t taints_len;
    UT_hash_handle hh;
};

struct taint_rule {
    char *uid;
    char *name;
    char *driver, *pool, *device; /* NULL: any */
    struct cluster_taint taint;
    bool refused; /* it is for every device there is */
    UT_hash_handle hh;
};

/* A zeroed struct is an empty table. */
struct cluster_taints {
    struct tainted_slice *slices; /* also those without any: they hide older ones of their pool */
    struct taint_rule *rules;
    size_t taints;     /* that may be in force: of all slices, and of rules that are followed; */
    size_t of_slices;  /* how many of those are slices', */
    size_t no_execute; /* and NoExecute */
};

void cluster_taints_fini(struct cluster_taints *table);
/* Whether any may be in force. */
static inline bool cluster_taints_any(const struct cluster_taints *table)
{
    return table->taints > 0;
}
/* Whether any that is NoExecute may be. */
static inline bool cluster_taints_no_execute(const struct cluster_taints *table)
{
    return table->no_execute > 0;
}

/* Likewise on some device of this driver. */
bool cluster_taints_no_execute_of(const struct cluster_taints *table, const char *driver);

/* As devicemgr_slice_taints(). Of taints that are none, those beyond SLICE_TAINTS_MAX, and slices
 * beyond SLICES_MAX nothing is kept. */
void cluster_taints_set_slice(struct cluster_taints *table, uint64_t now_ms, const char *uid,
                              const char *driver, const char *pool, int64_t generation,
                              const struct devicemgr_tainted_device *devices, size_t len);
/* False: it was not there. */
bool cluster_taints_drop_slice(struct cluster_taints *table, const char *uid);
void cluster_taints_drop_slices(struct cluster_taints *table);
/* The rule as it is now; NULL: it is none, or one too many, and is not kept. */
const struct taint_rule *cluster_taints_set_rule(struct cluster_taints *table, uint64_t now_ms,
                                                 const char *uid,
                                                 const struct devicemgr_taint_rule *rule);
const struct taint_rule *cluster_taints_find_rule(const struct cluster_taints *table,
                                                  const char *uid);
bool cluster_taints_drop_rule(struct cluster_taints *table, const char *uid);

/* Calls `each` for every one in force on the device, by slices of the highest generation of its
 * pool, then by rules, until it returns false. Whether it never did. */
bool cluster_taints_each(const struct cluster_taints *table, const char *driver, const char *pool,
                         const char *device, bool (*each)(void *user, const struct taint *taint),
                         void *user);

/* All of them, with the device as "pool/device"; "*" is in the place of what a rule does not name,
 * and its driver is "" then. `refused`: a rule that is not followed. What it is given is borrowed
 * until `each` returns, but for the driver and what the taint points to. */
void cluster_taints_list(const struct cluster_taints *table,
                         void (*each)(void *user, const char *driver, const char *id,
                                      const struct taint *taint, bool refused),
                         void *user);

#endif
