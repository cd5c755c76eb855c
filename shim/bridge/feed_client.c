#include "shim/bridge/feed_client.h"

#include <stdlib.h>

#include "cri-proto/methods.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/follower.h"

struct feed_client {
    const struct feed_client_ops *ops;
    void *user;
    struct follower *follower;
    struct follower_feed feed;
    Bridge__V1__WatchRequest request;
    bool told_unknown; /* that the daemon does not know this feed */
    struct rpc_call *reporting;
    uv_timer_t report_timer;
    bool report_again; /* it changed while one was under way */
    bool told_report;
};

bool feed_client_alive(const struct feed_client *feed)
{
    return follower_alive(feed->follower);
}

/* ---- Report ---- */

static void send_report(uv_timer_t *timer);

static void on_report_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void on_report_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct feed_client *feed = user;

    (void)call;
    feed->reporting = NULL;
    if (status->code != RPC_OK && status->code != RPC_UNAVAILABLE && !feed->told_report)
        log_warning("feed: Report: %s: %s", rpc_code_name(status->code), status->message);
    feed->told_report = status->code != RPC_OK;
    if (status->code != RPC_OK)
        uv_timer_start(&feed->report_timer, send_report, REPORT_AGAIN_MS, 0);
    else if (feed->report_again)
        uv_timer_start(&feed->report_timer, send_report, 0, 0);
    feed->report_again = false;
}

static void send_report(uv_timer_t *timer)
{
    static const struct rpc_call_ops ops = {on_report_message, on_report_done};
    struct feed_client *feed = timer->data;

    if (!feed_client_alive(feed))
        return;
    feed->reporting = follower_call(
        feed->follower, BRIDGE_REPORT, &feed->ops->report(feed->user)->base,
        &bridge__v1__report_response__descriptor, false, REPORT_TIMEOUT_MS, &ops, feed);
}

void feed_client_report(struct feed_client *feed)
{
    if (!feed_client_alive(feed))
        return;
    if (feed->reporting)
        feed->report_again = true;
    else
        uv_timer_start(&feed->report_timer, send_report, 0, 0);
}

/* ---- Watch ---- */

static bool on_message(void *user, const ProtobufCMessage *message, bool first)
{
    const Bridge__V1__WatchResponse *response = (const Bridge__V1__WatchResponse *)message;
    struct feed_client *feed = user;
    bool taken;

    if (first) {
        feed->told_unknown = false;
        log_info("feed: daemon %s, %zu resources", response->daemon_version, response->n_resources);
    }
    taken = feed->ops->watched(feed->user, response, first);
    if (taken)
        feed_client_report(feed);
    else
        log_warning("feed: not all of it could be taken; asking for it again in %d ms",
                    FEED_AGAIN_MS_MAX);
    return taken;
}

static uint64_t on_ended(void *user, const struct rpc_status *status, bool was_alive)
{
    struct feed_client *feed = user;
    bool unknown = status->code == RPC_UNIMPLEMENTED;

    if (was_alive)
        log_warning("feed: lost: %s: %s; what is shown stays so for bridge.mask",
                    rpc_code_name(status->code), status->message);
    else if (unknown && !feed->told_unknown)
        log_warning("feed: the daemon does not know it (%s); asking again every %d s",
                    status->message, FEED_UNKNOWN_AGAIN_MS / 1000);
    feed->told_unknown |= unknown;
    return unknown ? FEED_UNKNOWN_AGAIN_MS : 0;
}

static void on_lost(void *user)
{
    struct feed_client *feed = user;

    feed->ops->lost(feed->user);
}

struct rpc_call *feed_client_call(struct feed_client *feed, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, bool stream,
                                  uint64_t timeout_ms, const struct rpc_call_ops *ops, void *user)
{
    return follower_call(feed->follower, path, request, response, stream, timeout_ms, ops, user);
}

/* ---- life ---- */

struct feed_client *feed_client_start(uv_loop_t *loop, const char *path,
                                      const struct feed_client_ops *ops, void *user)
{
    static const struct follower_ops follower_ops = {on_message, on_ended, on_lost};
    struct feed_client *feed = must(calloc(1, sizeof *feed));

    feed->ops = ops;
    feed->user = user;
    bridge__v1__watch_request__init(&feed->request);
    feed->request.bridge_version = (char *)SHIM_VERSION;
    feed->request.takes_changes = true;
    feed->feed = (struct follower_feed){.method = BRIDGE_WATCH,
                                        .request = &feed->request.base,
                                        .response = &bridge__v1__watch_response__descriptor,
                                        .pings_ms = FEED_PINGS_MS,
                                        .again_ms_min = FEED_AGAIN_MS_MIN,
                                        .again_ms_max = FEED_AGAIN_MS_MAX};
    uv_timer_init(loop, &feed->report_timer);
    feed->report_timer.data = feed;
    feed->follower = follower_start(loop, path, &feed->feed, &follower_ops, feed);
    return feed;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void feed_client_stop(struct feed_client *feed)
{
    if (!feed)
        return;
    follower_stop(feed->follower);
    uv_close((uv_handle_t *)&feed->report_timer, on_closed);
}
