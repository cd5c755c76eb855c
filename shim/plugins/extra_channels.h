/*
 * A client's connections beside its first: a server that limits how long a connection is used goes
 * on with its calls on the old one, and takes no more on it, until those are through.
 */
#ifndef SHIM_PLUGINS_EXTRA_CHANNELS_H
#define SHIM_PLUGINS_EXTRA_CHANNELS_H

#include <stddef.h>

#include "shim/rpc/rpc.h"

#define EXTRA_CHANNELS_MAX 4

/* Embedded in the client, zeroed at first. */
struct extra_channels {
    struct rpc_channel *v[EXTRA_CHANNELS_MAX]; /* NULL: none */
};

/* Where it is; for NULL, where there is room. NULL: nowhere. */
static inline struct rpc_channel **extra_channels_find(struct extra_channels *extra,
                                                       const struct rpc_channel *channel)
{
    for (size_t i = 0; i < EXTRA_CHANNELS_MAX; i++) {
        if (extra->v[i] == channel)
            return &extra->v[i];
    }
    return NULL;
}

/* One that takes calls; NULL: none does. */
static inline struct rpc_channel *extra_channels_open(const struct extra_channels *extra)
{
    for (size_t i = 0; i < EXTRA_CHANNELS_MAX; i++) {
        if (extra->v[i] && rpc_channel_takes_calls(extra->v[i]))
            return extra->v[i];
    }
    return NULL;
}

#endif
