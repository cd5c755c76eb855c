#include "shim/rpc/follower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shim/log.h"
#include "shim/must.h"
#include "shim/pause.h"

enum follower_state {
    FOLLOWER_DOWN,
    FOLLOWER_CALLING,
    FOLLOWER_ALIVE,
};

struct follower {
    uv_loop_t *loop;
    char *path;
    const struct follower_feed *feed;
    const struct follower_ops *ops;
    void *user;
    enum follower_state state;
    struct rpc_channel *channel; /* NULL: to be dialled */
    struct rpc_call *call;
    uv_timer_t timer; /* until it is called again */
    uint64_t again_ms;
    bool put_off;   /* ended() wants it to wait */
    bool told_away; /* that nobody is there */
};

static void set_state(struct follower *follower, enum follower_state state)
{
    static const unsigned from[] = {
        [FOLLOWER_DOWN] = 1u << FOLLOWER_DOWN | 1u << FOLLOWER_CALLING | 1u << FOLLOWER_ALIVE,
        [FOLLOWER_CALLING] = 1u << FOLLOWER_DOWN,
        [FOLLOWER_ALIVE] = 1u << FOLLOWER_CALLING,
    };

    assert(from[state] & 1u << follower->state);
    follower->state = state;
}

bool follower_alive(const struct follower *follower)
{
    return follower->state == FOLLOWER_ALIVE;
}

/* ---- later ---- */

static void dial(uv_timer_t *timer);

static void dial_later(struct follower *follower, uint64_t delay_ms)
{
    set_state(follower, FOLLOWER_DOWN);
    uv_timer_start(&follower->timer, dial, delay_ms, 0);
}

static uint64_t next_delay(struct follower *follower)
{
    uint64_t delay_ms = follower->again_ms;

    follower->again_ms =
        pause_longer(delay_ms, follower->feed->again_ms_min, follower->feed->again_ms_max);
    return delay_ms;
}

/* Not at once: it may be memory that is wanting. */
static void call_anew(struct follower *follower)
{
    rpc_call_cancel(follower->call);
    follower->call = NULL;
    dial_later(follower, follower->feed->again_ms_max);
    follower->ops->lost(follower->user);
}

/* ---- the stream ---- */

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct follower *follower = user;
    bool first = !follower_alive(follower);

    (void)call;
    if (first) {
        set_state(follower, FOLLOWER_ALIVE);
        follower->again_ms = 0;
        follower->told_away = false;
    }
    if (!follower->ops->message(follower->user, message, first))
        call_anew(follower);
}

static void on_done(struct rpc_call *call, const struct rpc_status *status, void *user)
{
    struct follower *follower = user;
    bool was_alive = follower_alive(follower);
    uint64_t wait_ms = follower->ops->ended(follower->user, status, was_alive);

    (void)call;
    follower->call = NULL;
    follower->put_off = wait_ms > 0;
    dial_later(follower, wait_ms > 0 ? wait_ms : next_delay(follower));
    if (was_alive)
        follower->ops->lost(follower->user);
}

static void on_lost(struct rpc_channel *channel, const char *reason, void *user)
{
    struct follower *follower = user;

    if (!follower->told_away)
        log_debug("feed: %s: %s", follower->path, reason);
    follower->told_away = true;
    rpc_channel_close(channel);
    follower->channel = NULL;
    if (follower->put_off) /* the server may be replaced just now */
        dial_later(follower, next_delay(follower));
    follower->put_off = false;
}

static void dial(uv_timer_t *timer)
{
    static const struct rpc_channel_ops channel_ops = {.lost = on_lost};
    static const struct rpc_call_ops ops = {on_message, on_done};
    struct follower *follower = timer->data;
    const struct follower_feed *feed = follower->feed;
    int err = 0;

    follower->put_off = false;
    if (!follower->channel) {
        err = rpc_channel_open(follower->loop, follower->path, &channel_ops, follower,
                               &follower->channel);
        if (!err)
            rpc_channel_set_pings(follower->channel, feed->pings_ms);
    }
    if (!err)
        follower->call = rpc_channel_call(follower->channel, feed->method, feed->request,
                                          feed->response, true, 0, &ops, follower);
    if (follower->call)
        set_state(follower, FOLLOWER_CALLING);
    else
        dial_later(follower, next_delay(follower));
}

struct rpc_call *follower_call(struct follower *follower, const char *path,
                               const ProtobufCMessage *request,
                               const ProtobufCMessageDescriptor *response, bool stream,
                               uint64_t timeout_ms, const struct rpc_call_ops *ops, void *user)
{
    if (follower->state == FOLLOWER_DOWN)
        return NULL;
    return rpc_channel_call(follower->channel, path, request, response, stream, timeout_ms, ops,
                            user);
}

/* ---- life ---- */

struct follower *follower_start(uv_loop_t *loop, const char *path, const struct follower_feed *feed,
                                const struct follower_ops *ops, void *user)
{
    struct follower *follower = must(calloc(1, sizeof *follower));

    follower->loop = loop;
    follower->path = must(strdup(path));
    follower->feed = feed;
    follower->ops = ops;
    follower->user = user;
    uv_timer_init(loop, &follower->timer);
    follower->timer.data = follower;
    dial(&follower->timer);
    return follower;
}

static void on_closed(uv_handle_t *handle)
{
    struct follower *follower = handle->data;

    free(follower->path);
    free(follower);
}

void follower_stop(struct follower *follower)
{
    if (!follower)
        return;
    rpc_channel_close(follower->channel);
    uv_close((uv_handle_t *)&follower->timer, on_closed);
}
