/*
 * What the kubelet is shown of each resource, and when it differs from before.
 *
 * devicemgr_run() ends with advertise_review(), which looks at resources, and at the allocations
 * that have changed or whose pods have, writes down in each what it contributes, and gives a new
 * version to what differs from what was written down before. What is shown is made of nothing but
 * that: it cannot differ without its version. One look costs a few words for each resource and each
 * of those allocations, whatever the number of devices.
 */
#ifndef DEVICEMGR_MACHINES_ADVERTISE_H
#define DEVICEMGR_MACHINES_ADVERTISE_H

#include <stdint.h>

struct state;

/* When the time of showing_all_at(), showing.all_ms, has come: all is looked at anew, all creates
 * too, which comes after this. */
void advertise_pass(struct state *state);
/* When something may differ: showing.stale. */
void advertise_review(struct state *state);
/* When something shown, or who may be given a device, changes by time alone; UINT64_MAX: never. */
uint64_t advertise_next_ms(const struct state *state);

#endif
