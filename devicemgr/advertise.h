/*
 * What the kubelet is shown of each resource, and when it differs from before.
 *
 * devicemgr_run() ends with advertise_settle(), which looks at resources, and at the allocations
 * that have changed or whose pods have, writes down in each what it contributes, and gives a new
 * version to what differs from what was written down before. What is shown is made of nothing but
 * that: it cannot differ without its version. One look costs a few words for each resource and each
 * of those allocations, whatever the number of devices.
 */
#ifndef DEVICEMGR_ADVERTISE_H
#define DEVICEMGR_ADVERTISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocation;
struct devicemgr;

struct advertise {
    uint64_t version;
    size_t resources_len; /* how many are shown */
    bool stale;           /* something happened since the last look */
    bool all;             /* something that all allocations and holds depend on */
    uint64_t all_ms;      /* by time alone: then; 0: not so */
    uint64_t looks;       /* at allocations and what the kubelet holds; for tests */
    bool starting;        /* a kubelet was, at the last look */
};

/* If the time of advertise_all_at() has come: all is looked at anew, all creates too, which comes
 * after this. */
void advertise_pass(struct devicemgr *mgr);
void advertise_settle(struct devicemgr *mgr);
/* What all allocations and all that the kubelet holds depend on has changed. */
void advertise_all(struct devicemgr *mgr);
/* It will have at that time, and who may be given a device. */
void advertise_all_at(struct devicemgr *mgr, uint64_t at_ms);
/* Finds out anew when that is next. */
void advertise_times(struct devicemgr *mgr);
/* What is shown of the resource has changed. */
void advertise_changed(struct devicemgr *mgr, const char *resource);
/* When something shown, or who may be given a device, changes by time alone; UINT64_MAX: never. */
uint64_t advertise_next_ms(const struct devicemgr *mgr);

#endif
