/*
 * The machine's shutdown, between the agent and the core: what logind says goes in with the
 * priorities of the node's pods, what is wanted of it goes out (cri-proto/agent_v1.proto, Shutdown
 * and ShutdownWish). Without rules: those are the core's (devicemgr/shutdown.h).
 */
#ifndef SHIM_CLUSTER_SHUTDOWN_FEED_H
#define SHIM_CLUSTER_SHUTDOWN_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "cri-proto/agent_v1.pb-c.h"
#include "devicemgr/shutdown.h"
#include "shim/core/host.h"
#include "shim/facts.h"

#define SHUTDOWN_TEXT_BYTES_MAX 256

/* What the agent said last; all of it is false, and "", where nothing was said. */
struct shutdown_said {
    bool known; /* logind answers */
    bool under_way;
    bool locked; /* the agent holds logind's lock */
    bool kubelet_locked, kubelet_gone;
    uint64_t since_ms, limit_ms;
    uint64_t heard_ms; /* when something of it was another; boot_now_ms() */
    char trouble[SHUTDOWN_TEXT_BYTES_MAX];
};

struct shutdown_wish {
    bool told; /* else nothing was */
    bool wanted, over;
    uint64_t grace_ms, over_since_ms;
};

struct shutdown_feed {
    struct host *host;
    struct shutdown_said said;
    struct shutdown_wish wish; /* as the agent was told last */
};

/* `host` is borrowed until the end; it is ready. There is nothing to be freed. */
void shutdown_feed_init(struct shutdown_feed *feed, struct host *host);

/* A report was taken, with this (NULL: as it was said before), and with these facts. The core hears
 * of it, and is to be kicked. */
void shutdown_feed_reported(struct shutdown_feed *feed, const Agent__V1__Shutdown *said,
                            const struct facts *facts);
/* What the core would hear of one that came now: calls `told` before return, which borrows it until
 * then; not where nothing was said of it. */
void shutdown_feed_now(const struct shutdown_feed *feed, const struct facts *facts,
                       void (*told)(void *to, const struct devicemgr_shutdown_said *said),
                       void *to);
/* The agent is gone: what it said of its lock is no more, what it said of the machine stays. */
void shutdown_feed_lost(struct shutdown_feed *feed);

/* What is wanted, if the agent was not told so: it is to be. False: *out is as it was. */
bool shutdown_feed_wish(struct shutdown_feed *feed, Agent__V1__ShutdownWish *out);

#endif
