#include "shim/agent/daemon_feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/methods.h"
#include "shim/agent/limits.h"
#include "shim/log.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

enum feed_state {
    FEED_DOWN,
    FEED_CALLING,
    FEED_ALIVE,
};

struct daemon_feed {
    uv_loop_t *loop;
    char *path;
    const struct daemon_feed_ops *ops;
    void *user;
    enum feed_state state;
    struct rpc_channel *channel; /* NULL: to be dialled */
    struct rpc_call *watch, *report;
    uv_timer_t timer; /* until it is called again */
    uint64_t again_ms;
};

static void set_state(struct daemon_feed *feed, enum feed_state state)
{
    static const unsigned from[] = {
        [FEED_DOWN] = 1u << FEED_DOWN | 1u << FEED_CALLING | 1u << FEED_ALIVE,
        [FEED_CALLING] = 1u << FEED_DOWN,
        [FEED_ALIVE] = 1u << FEED_CALLING,
    };

    assert(from[state] & 1u << feed->state);
    feed->state = state;
}

bool daemon_feed_alive(const struct daemon_feed *feed)
{
    return feed->state == FEED_ALIVE;
}

static void no_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

/* ---- Report, Answer ---- */

static void on_report_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct daemon_feed *feed = user;

    (void)call;
    feed->report = NULL;
    if (status->code != RPC_OK)
        log_debug("feed: Report: %s: %s", rpc_code_name(status->code), status->message);
    if (daemon_feed_alive(feed))
        feed->ops->reported(feed->user, status->code == RPC_OK);
}

bool daemon_feed_report(struct daemon_feed *feed, const Agent__V1__ReportRequest *report)
{
    static const struct rpc_call_ops ops = {no_message, on_report_done};

    if (!daemon_feed_alive(feed) || feed->report)
        return false;
    feed->report =
        rpc_channel_call(feed->channel, AGENT_REPORT, &report->base,
                         &agent__v1__report_response__descriptor, 0, REPORT_TIMEOUT_MS, &ops, feed);
    return feed->report != NULL;
}

static void on_answer_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    (void)call;
    (void)user;
    if (status->code != RPC_OK)
        log_debug("feed: Answer: %s: %s", rpc_code_name(status->code), status->message);
}

void daemon_feed_answer(struct daemon_feed *feed, const Agent__V1__AnswerRequest *answer)
{
    static const struct rpc_call_ops ops = {no_message, on_answer_done};

    if (daemon_feed_alive(feed))
        rpc_channel_call(feed->channel, AGENT_ANSWER, &answer->base,
                         &agent__v1__answer_response__descriptor, 0, REPORT_TIMEOUT_MS, &ops, feed);
}

/* ---- Watch ---- */

static void call(uv_timer_t *timer);

/* At once after a feed that worked, then doubling. */
static void call_later(struct daemon_feed *feed)
{
    set_state(feed, FEED_DOWN);
    uv_timer_start(&feed->timer, call, feed->again_ms, 0);
    feed->again_ms = feed->again_ms == 0 ? FEED_AGAIN_MS_MIN : feed->again_ms * 2;
    if (feed->again_ms > FEED_AGAIN_MS_MAX)
        feed->again_ms = FEED_AGAIN_MS_MAX;
}

static void on_watch_message(struct rpc_call *watch, const ProtobufCMessage *message, void *user)
{
    const Agent__V1__WatchResponse *response = (const Agent__V1__WatchResponse *)message;
    struct daemon_feed *feed = user;
    bool first = !daemon_feed_alive(feed);

    (void)watch;
    if (first) {
        set_state(feed, FEED_ALIVE);
        feed->again_ms = 0;
        log_info("feed: daemon %s", response->daemon_version);
    }
    feed->ops->watched(feed->user, response, first);
}

static void on_watch_done(struct rpc_call *watch, const struct rpc_status *status, void *user)
{
    struct daemon_feed *feed = user;
    bool was_alive = daemon_feed_alive(feed);

    (void)watch;
    feed->watch = NULL;
    if (was_alive)
        log_warning("feed: lost: %s: %s", rpc_code_name(status->code), status->message);
    else if (status->code != RPC_UNAVAILABLE)
        log_debug("feed: %s: %s", rpc_code_name(status->code), status->message);
    if (status->code == RPC_ABORTED)
        feed->again_ms = FEED_AGAIN_MS_MAX; /* another agent has come: not to and fro */
    call_later(feed);
    if (was_alive)
        feed->ops->lost(feed->user);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct daemon_feed *feed = user;

    log_debug("feed: %s: %s", feed->path, reason);
    rpc_channel_close(channel);
    feed->channel = NULL;
}

static void call(uv_timer_t *timer)
{
    static const struct rpc_channel_ops channel_ops = {.lost = on_lost};
    static const struct rpc_call_ops ops = {on_watch_message, on_watch_done};
    Agent__V1__WatchRequest request = AGENT__V1__WATCH_REQUEST__INIT;
    struct daemon_feed *feed = timer->data;
    int err = 0;

    request.agent_version = (char *)SHIM_VERSION;
    if (!feed->channel) {
        err = rpc_channel_open(feed->loop, feed->path, &channel_ops, feed, &feed->channel);
        if (!err)
            rpc_channel_set_pings(feed->channel, FEED_PINGS_MS);
    }
    if (!err)
        feed->watch = rpc_channel_call(feed->channel, AGENT_WATCH, &request.base,
                                       &agent__v1__watch_response__descriptor, 1, 0, &ops, feed);
    if (feed->watch)
        set_state(feed, FEED_CALLING);
    else
        call_later(feed);
}

/* ---- life ---- */

struct daemon_feed *daemon_feed_start(uv_loop_t *loop, const char *path,
                                      const struct daemon_feed_ops *ops, void *user)
{
    struct daemon_feed *feed = must(calloc(1, sizeof *feed));

    feed->loop = loop;
    feed->path = must(strdup(path));
    feed->ops = ops;
    feed->user = user;
    uv_timer_init(loop, &feed->timer);
    feed->timer.data = feed;
    call(&feed->timer);
    return feed;
}

static void on_closed(uv_handle_t *handle)
{
    struct daemon_feed *feed = handle->data;

    free(feed->path);
    free(feed);
}

void daemon_feed_stop(struct daemon_feed *feed)
{
    if (!feed)
        return;
    rpc_channel_close(feed->channel);
    uv_close((uv_handle_t *)&feed->timer, on_closed);
}
