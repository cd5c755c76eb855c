/*
 * The kubelet's streams of one driver's health: each gets what is known of the driver's devices,
 * and then what changes. They stay open while there is nothing to say: the kubelet of 1.36 opens
 * one to every driver, and again and again to one that ends it
 * (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).
 */
#ifndef SHIM_BRIDGE_DRA_HEALTH_STREAMS_H
#define SHIM_BRIDGE_DRA_HEALTH_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "shim/bridge/kept_call.h"
#include "shim/health_words.h"

/* Those of one driver. */
struct health_streams {
    /* the owner's to fill, borrowed */
    const char *driver;
    const struct health_words *words;
    /* private; empty at first */
    LIST_HEAD(, kubelet_stream) list;
    size_t len;
};

/* From inside the call's handler; also for one that a process before had, `resumed`, which begins
 * anew, but may have been told what holds no longer. Where there are STAND_IN_STREAMS_MAX already,
 * the oldest ends of the process that has most. */
void health_streams_add(struct health_streams *streams, struct kept_call *call, bool resumed);

/* Sends each what it has not got. One that has not taken the message before gets the newest with
 * the next look: to be called about every second, and when there is something new. */
void health_streams_look(struct health_streams *streams);

/* Ends all, by a word that is no fault. */
void health_streams_end(struct health_streams *streams);

/* Forgets all, whose calls are gone. */
void health_streams_clear(struct health_streams *streams);

#endif
