/*
 * What the daemon says by the feed of the health of DRA drivers' devices (WatchHealth). What one
 * that is gone has said is kept while it is fresh: the next one says only what drivers tell it
 * anew.
 */
#ifndef SHIM_BRIDGE_DRA_HEALTH_WATCH_H
#define SHIM_BRIDGE_DRA_HEALTH_WATCH_H

#include <stdbool.h>

#include "shim/bridge/feed_client.h"
#include "shim/health_words.h"

struct health_watch {
    /* the owner's to fill, borrowed */
    struct feed_client *feed;
    void (*changed)(void *user); /* there are words that were not there before */
    void *user;
    /* private, but for `words`, which are to be read */
    struct health_words words;
    struct rpc_call *call;
    bool unknown; /* this daemon does not know it */
};

void health_watch_init(struct health_watch *watch);
void health_watch_fini(struct health_watch *watch);

/* There is a daemon, and there is none any more. */
void health_watch_feed_came(struct health_watch *watch);
void health_watch_feed_lost(struct health_watch *watch);
/* Asks anew for a stream that has ended. To be called about every second while there is a
 * daemon. */
void health_watch_look(struct health_watch *watch);

#endif
