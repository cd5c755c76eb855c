/*
 * The kubelet's questions which devices a plugin prefers, passed on to the plugin.
 *
 * Each ends in one answer, at the latest when its time is over: the kubelet asks inside its one
 * sync loop and admits no pod meanwhile. For the same reason a plugin that was late rests for
 * PREFER_REST_MS, or until it registers anew.
 */
#ifndef DEVICEMGR_MACHINES_PREFER_H
#define DEVICEMGR_MACHINES_PREFER_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/deviceplugin_v1beta1.pb-c.h"

struct devicemgr_preference;
struct state;

struct prefers {
    struct state *state;
    struct prefer *by_call; /* on the plugin */
};

/* devicemgr_prefer(), devicemgr_prefer_cancelled() */
void prefers_begin(struct prefers *prefers, uint64_t number,
                   const struct devicemgr_preference *asked);
void prefers_cancelled(struct prefers *prefers, uint64_t number);
/* A call on a plugin is over; false: it is not one of these. */
bool prefers_answered(struct prefers *prefers, uint64_t call, int code,
                      const V1beta1__PreferredAllocationResponse *response);
/* The endpoint's connection is over, and the calls on it with it. */
void prefers_endpoint_ended(struct prefers *prefers, uint64_t endpoint);
/* Answers those whose time is over. */
void prefers_tick(struct prefers *prefers);
uint64_t prefers_next_ms(const struct prefers *prefers);
void prefers_fini(struct prefers *prefers);

#endif
