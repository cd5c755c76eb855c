/*
 * The bridge's side of the feed (cri-proto/bridge_v1.proto): Watch for ever (rpc/follower.h),
 * Report what changed, other calls on demand. The daemon may come, go, hang and be another version
 * at any time.
 */
#ifndef SHIM_BRIDGE_FEED_CLIENT_H
#define SHIM_BRIDGE_FEED_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/rpc/rpc.h"

struct feed_client;

struct feed_client_ops {
    /* A message of Watch, borrowed until return; `first` of a new stream. False: it could not be
     * taken as a whole, and all is to be sent again: lost() follows, and a new stream in a
     * while. */
    bool (*watched)(void *user, const Bridge__V1__WatchResponse *message, bool first);
    /* No more until the next `first`. */
    void (*lost)(void *user);
    /* What to report now: the whole, borrowed until the loop's next turn. */
    const Bridge__V1__ReportRequest *(*report)(void *user);
};

/* Dials at once; callbacks run from the loop. `ops` and `user` are borrowed until the end, `path`
 * is copied. */
struct feed_client *feed_client_start(uv_loop_t *loop, const char *path,
                                      const struct feed_client_ops *ops, void *user);

/* Frees it; no callback runs any more, also none of calls under way. Accepts NULL. */
void feed_client_stop(struct feed_client *feed);

bool feed_client_alive(const struct feed_client *feed);

/* The report has changed: it is asked for and sent soon, one at a time. Nothing while not alive;
 * then the first message brings a report. */
void feed_client_report(struct feed_client *feed);

/* Calls a method of the feed that answers once, or `stream`; see rpc_channel_call(). It waits for a
 * daemon that is called, and may be just starting. NULL while DOWN. */
struct rpc_call *feed_client_call(struct feed_client *feed, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, bool stream,
                                  uint64_t timeout_ms, const struct rpc_call_ops *ops, void *user);

#endif
