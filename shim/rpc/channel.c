#include "shim/rpc/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/rpc/call.h"
#include "shim/rpc/unix_socket.h"

static struct rpc_channel *channel_of(struct link *link)
{
    return (struct rpc_channel *)((char *)link - offsetof(struct rpc_channel, link));
}

static void on_connected(struct link *link)
{
    struct rpc_channel *channel = channel_of(link);

    if (channel->ops->connected)
        channel->ops->connected(channel, channel->user);
}

static void on_frame(struct link *link, const nghttp2_frame *frame)
{
    struct rpc_channel *channel = channel_of(link);

    if (frame->hd.type != NGHTTP2_GOAWAY)
        call_frame_received(link, frame);
    else if (channel->ops->goes_away)
        channel->ops->goes_away(channel, channel->user);
}

static void on_ended(struct link *link, const char *reason)
{
    struct rpc_channel *channel = channel_of(link);
    char text[LINK_REASON_BYTES_MAX + 32];

    snprintf(text, sizeof text, "connection lost: %s", reason);
    /* Any done() may close the channel; that empties the list. */
    while (!LIST_EMPTY(&channel->calls))
        call_end(LIST_FIRST(&channel->calls), RPC_UNAVAILABLE, text);
    if (link->state == LINK_ENDED && channel->ops->lost)
        channel->ops->lost(channel, reason, channel->user);
}

static void on_gone(struct link *link)
{
    free(channel_of(link));
}

/* A channel that is not connected yet. */
static int channel_new(uv_loop_t *loop, const struct rpc_channel_ops *ops, void *user,
                       struct rpc_channel **out)
{
    static const struct link_ops link_ops = {
        .connected = on_connected,
        .ended = on_ended,
        .gone = on_gone,
        .frame_received = on_frame,
        .frame_sent = call_frame_sent,
        .headers_begin = call_headers_begin,
        .stream_header = call_header,
        .stream_data = call_data,
        .stream_closed = call_stream_closed,
    };
    struct rpc_channel *channel = malloc(sizeof *channel);
    int err;

    if (!channel)
        return UV_ENOMEM;
    err = link_init(&channel->link, loop, LINK_CLIENT, LINK_STREAMS_MAX, &link_ops);
    if (err) {
        free(channel);
        return err;
    }
    channel->ops = ops;
    channel->user = user;
    channel->calls_len = 0;
    LIST_INIT(&channel->calls);
    *out = channel;
    return 0;
}

int rpc_channel_open(uv_loop_t *loop, const char *path, const struct rpc_channel_ops *ops,
                     void *user, struct rpc_channel **out)
{
    int err;

    if (!unix_path_fits(path))
        return path[0] ? UV_ENAMETOOLONG : UV_EINVAL;
    err = channel_new(loop, ops, user, out);
    if (!err)
        link_connect(&(*out)->link, path);
    return err;
}

int rpc_channel_open_fd(uv_loop_t *loop, int fd, const struct rpc_channel_ops *ops, void *user,
                        struct rpc_channel **out)
{
    struct rpc_channel *channel;
    int err = channel_new(loop, ops, user, &channel);

    if (err) {
        close(fd);
        return err;
    }
    err = link_adopt(&channel->link, fd);
    if (err) {
        link_close(&channel->link);
        return err;
    }
    *out = channel;
    return 0;
}

void rpc_channel_set_pings(struct rpc_channel *channel, uint64_t every_ms)
{
    channel->link.pulse.every_ms = every_ms;
}

void rpc_channel_set_budget(struct rpc_channel *channel, struct message_budget *budget)
{
    channel->link.budget = budget;
}

int rpc_channel_fd(const struct rpc_channel *channel)
{
    return link_fd(&channel->link);
}

bool rpc_channel_is_heard(const struct rpc_channel *channel)
{
    return channel->link.heard;
}

bool rpc_channel_takes_calls(const struct rpc_channel *channel)
{
    return link_usable(&channel->link) && channel->calls_len < RPC_CALLS_MAX &&
           nghttp2_session_check_request_allowed(channel->link.session);
}

void rpc_channel_close(struct rpc_channel *channel)
{
    if (!channel)
        return;
    while (!LIST_EMPTY(&channel->calls))
        call_detach(LIST_FIRST(&channel->calls));
    link_close(&channel->link);
}
