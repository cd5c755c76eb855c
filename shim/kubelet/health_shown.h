/*
 * The health of DRA drivers' devices that the bridge is told of (WatchHealth): what is known, then
 * each word as a driver says it. Of a stream that does not take them as fast, each device's newest.
 */
#ifndef SHIM_KUBELET_HEALTH_SHOWN_H
#define SHIM_KUBELET_HEALTH_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/health_words.h"
#include "shim/kubelet/open_streams.h"
#include "shim/rpc/rpc.h"

/* Words in one message; the last may exceed it by HEALTH_WORD_BYTES_MAX. */
#define HEALTH_SHOWN_MESSAGE_BYTES (64u * 1024)
/* A stream with more than this on the way gets no further message: so 16 streams hold some 3
 * MiB. */
#define HEALTH_SHOWN_QUEUED_BYTES_MAX (128u * 1024)

/* Embedded in its owner; private. */
struct health_shown {
    struct health_words words;
    struct open_streams streams;
};

void health_shown_init(struct health_shown *shown);
/* What a driver's instance says; NULL: it is not connected any more, and what it has said is
 * forgotten. */
void health_shown_say(struct health_shown *shown, const char *driver, uint64_t instance,
                      const DraHealth__V1alpha1__NodeWatchResourcesResponse *health);
/* A call of BRIDGE_WATCH_HEALTH. False: it is refused. */
bool health_shown_add(struct health_shown *shown, struct rpc_incoming *call);
/* Sends each what it has not got. False: one does not take it now; to be tried again. */
bool health_shown_update(struct health_shown *shown);
/* The server must be closed: the calls are gone. */
void health_shown_fini(struct health_shown *shown);

#endif
