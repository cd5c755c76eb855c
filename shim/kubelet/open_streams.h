/*
 * The open streams of one method of the feed, each with how much of what there is to tell it has
 * got.
 */
#ifndef SHIM_KUBELET_OPEN_STREAMS_H
#define SHIM_KUBELET_OPEN_STREAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "shim/rpc/rpc.h"

/* One of the bridge's, and a few for an upgrade and for whoever looks on. */
#define OPEN_STREAMS_MAX 16

struct open_stream {
    LIST_ENTRY(open_stream) entry;
    struct open_streams *streams;
    struct rpc_incoming *call;
    uint64_t sent; /* the owner's: a version or number of what it got last; 0 at first */
};

/* Embedded in its owner, who walks the list; zeroed it has none. */
struct open_streams {
    LIST_HEAD(, open_stream) list;
    unsigned len;
};

/* One more, until it is cancelled. False: it is refused, since there are too many. */
bool open_streams_add(struct open_streams *streams, struct rpc_incoming *call);
/* The server must be closed: the calls are gone. */
void open_streams_fini(struct open_streams *streams);

#endif
