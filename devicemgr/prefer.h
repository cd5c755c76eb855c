/*
 * The kubelet's questions which devices a plugin prefers, passed on to the plugin.
 *
 * Each ends in one answer, at the latest when its time is over: the kubelet asks inside its one
 * sync loop and admits no pod meanwhile. For the same reason a plugin that was late rests for
 * PREFER_REST_MS, or until it registers anew.
 */
#ifndef DEVICEMGR_PREFER_H
#define DEVICEMGR_PREFER_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

struct devicemgr;

/* A call on a plugin is over; false: it is not one of these. */
bool prefers_answered(struct devicemgr *mgr, uint64_t call, int code,
                      const V1beta1__PreferredAllocationResponse *response);
/* The endpoint's connection is over, and the calls on it with it. */
void prefers_drop(struct devicemgr *mgr, uint64_t endpoint);
/* Answers those whose time is over. */
void prefers_tick(struct devicemgr *mgr);
uint64_t prefers_next_ms(const struct devicemgr *mgr);
void prefers_fini(struct devicemgr *mgr);

#endif
