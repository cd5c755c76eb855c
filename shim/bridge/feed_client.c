#include "shim/bridge/feed_client.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/bridge/limits.h"
#include "shim/log.h"
#include "shim/must.h"

enum feed_state {
    FEED_DOWN,
    FEED_CALLING,
    FEED_ALIVE,
};

struct feed_client {
    uv_loop_t *loop;
    char *path;
    const struct feed_client_ops *ops;
    void *user;
    enum feed_state state;
    struct rpc_channel *channel; /* NULL: to be dialled */
    struct rpc_call *watch;
    uv_timer_t dial_timer;
    uint64_t again_ms;
    bool told_unknown; /* that the daemon does not know this feed */
    bool told_away;    /* that nobody is there */
    struct rpc_call *reporting;
    uv_timer_t report_timer;
    bool report_again; /* it changed while one was under way */
    bool told_report;
    unsigned handles;
};

static void feed_set_state(struct feed_client *feed, enum feed_state state)
{
    static const unsigned from[] = {
        [FEED_DOWN] = 1u << FEED_DOWN | 1u << FEED_CALLING | 1u << FEED_ALIVE,
        [FEED_CALLING] = 1u << FEED_DOWN,
        [FEED_ALIVE] = 1u << FEED_CALLING,
    };

    assert(from[state] & 1u << feed->state);
    feed->state = state;
}

bool feed_client_alive(const struct feed_client *feed)
{
    return feed->state == FEED_ALIVE;
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
    feed->reporting = rpc_channel_call(
        feed->channel, BRIDGE_REPORT, &feed->ops->report(feed->user)->base,
        &bridge__v1__report_response__descriptor, 0, REPORT_TIMEOUT_MS, &ops, feed);
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

static void dial(uv_timer_t *timer);

static void dial_later(struct feed_client *feed, uint64_t delay_ms)
{
    feed_set_state(feed, FEED_DOWN);
    uv_timer_start(&feed->dial_timer, dial, delay_ms, 0);
}

/* At once after a feed that worked, then doubling. */
static uint64_t next_delay(struct feed_client *feed)
{
    uint64_t delay_ms = feed->again_ms;

    feed->again_ms = delay_ms == 0 ? FEED_AGAIN_MS_MIN : delay_ms * 2;
    if (feed->again_ms > FEED_AGAIN_MS_MAX)
        feed->again_ms = FEED_AGAIN_MS_MAX;
    return delay_ms;
}

/* Not at once: it may be memory that is wanting. */
static void watch_anew(struct feed_client *feed)
{
    log_warning("feed: not all of it could be taken; asking for it again in %d ms", FEED_ANEW_MS);
    rpc_call_cancel(feed->watch);
    feed->watch = NULL;
    dial_later(feed, FEED_ANEW_MS);
    feed->ops->lost(feed->user);
}

static void on_watch_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Bridge__V1__WatchResponse *response = (const Bridge__V1__WatchResponse *)message;
    struct feed_client *feed = user;
    bool first = !feed_client_alive(feed);

    (void)call;
    if (first) {
        feed_set_state(feed, FEED_ALIVE);
        feed->again_ms = 0;
        feed->told_unknown = false;
        feed->told_away = false;
        log_info("feed: daemon %s, %zu resources", response->daemon_version, response->n_resources);
    }
    if (feed->ops->watched(feed->user, response, first))
        feed_client_report(feed);
    else
        watch_anew(feed);
}

static void on_watch_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct feed_client *feed = user;
    bool was_alive = feed_client_alive(feed), unknown = status->code == RPC_UNIMPLEMENTED;

    (void)call;
    feed->watch = NULL;
    if (was_alive)
        log_warning("feed: lost: %s: %s; what is shown stays so for bridge.mask",
                    rpc_code_name(status->code), status->message);
    else if (unknown && !feed->told_unknown)
        log_warning("feed: the daemon does not know it (%s); asking again every %d s",
                    status->message, FEED_UNKNOWN_AGAIN_MS / 1000);
    feed->told_unknown |= unknown;
    dial_later(feed, unknown ? FEED_UNKNOWN_AGAIN_MS : next_delay(feed));
    if (was_alive)
        feed->ops->lost(feed->user);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct feed_client *feed = user;

    if (!feed->told_away)
        log_debug("feed: %s: %s", feed->path, reason);
    feed->told_away = true;
    rpc_channel_close(channel);
    feed->channel = NULL;
    if (feed->told_unknown) /* it may be replaced just now */
        dial_later(feed, next_delay(feed));
}

static void dial(uv_timer_t *timer)
{
    static const struct rpc_channel_ops channel_ops = {.lost = on_lost};
    static const struct rpc_call_ops ops = {on_watch_message, on_watch_done};
    struct feed_client *feed = timer->data;
    Bridge__V1__WatchRequest request = BRIDGE__V1__WATCH_REQUEST__INIT;
    int err = 0;

    request.bridge_version = (char *)SHIM_VERSION;
    request.takes_changes = true;
    if (!feed->channel) {
        err = rpc_channel_open(feed->loop, feed->path, &channel_ops, feed, &feed->channel);
        if (!err)
            rpc_channel_set_pings(feed->channel, FEED_PINGS_MS);
    }
    if (!err)
        feed->watch = rpc_channel_call(feed->channel, BRIDGE_WATCH, &request.base,
                                       &bridge__v1__watch_response__descriptor, 1, 0, &ops, feed);
    if (feed->watch)
        feed_set_state(feed, FEED_CALLING);
    else
        dial_later(feed, next_delay(feed));
}

struct rpc_call *feed_client_call(struct feed_client *feed, const char *path,
                                  const ProtobufCMessage *request,
                                  const ProtobufCMessageDescriptor *response, bool stream,
                                  uint64_t timeout_ms, const struct rpc_call_ops *ops, void *user)
{
    if (feed->state == FEED_DOWN)
        return NULL;
    return rpc_channel_call(feed->channel, path, request, response, stream, timeout_ms, ops, user);
}

/* ---- life ---- */

struct feed_client *feed_client_start(uv_loop_t *loop, const char *path,
                                      const struct feed_client_ops *ops, void *user)
{
    struct feed_client *feed = must(calloc(1, sizeof *feed));

    feed->loop = loop;
    feed->path = must(strdup(path));
    feed->ops = ops;
    feed->user = user;
    uv_timer_init(loop, &feed->dial_timer);
    uv_timer_init(loop, &feed->report_timer);
    feed->dial_timer.data = feed;
    feed->report_timer.data = feed;
    feed->handles = 2;
    dial(&feed->dial_timer);
    return feed;
}

static void on_closed(uv_handle_t *handle)
{
    struct feed_client *feed = handle->data;

    if (--feed->handles > 0)
        return;
    free(feed->path);
    free(feed);
}

void feed_client_stop(struct feed_client *feed)
{
    if (!feed)
        return;
    rpc_channel_close(feed->channel);
    uv_close((uv_handle_t *)&feed->dial_timer, on_closed);
    uv_close((uv_handle_t *)&feed->report_timer, on_closed);
}
