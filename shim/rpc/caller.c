#include "shim/rpc/caller.h"

#include <stdlib.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/rpc/incoming.h"
#include "shim/rpc/unix_socket.h"

static struct caller *caller_of(struct link *link)
{
    return (struct caller *)((char *)link - offsetof(struct caller, link));
}

static int on_headers_begin(struct link *link, const nghttp2_frame *frame)
{
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    return incoming_begin(caller_of(link), frame->hd.stream_id)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_header(void *stream, const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len)
{
    return incoming_header(stream, name, name_len, value, len)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void on_data(void *stream, const uint8_t *data, size_t len)
{
    incoming_data(stream, data, len);
}

static void on_frame_received(struct link *link, const nghttp2_frame *frame)
{
    struct rpc_incoming *call;

    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return;
    call = nghttp2_session_get_stream_user_data(link->session, frame->hd.stream_id);
    if (call)
        incoming_frame(call, frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
}

/* A stranger has been told so. */
static void dismiss(struct link *link)
{
    if (nghttp2_session_terminate_session(link->session, NGHTTP2_NO_ERROR))
        link_break(link, "no memory to end it");
    link_wake(link);
}

/* Tells a client that is still sending that nobody listens to it (RFC 9113 §8.1). */
static void on_frame_sent(struct link *link, const nghttp2_frame *frame)
{
    if (frame->hd.type == NGHTTP2_HEADERS && caller_of(link)->denied)
        dismiss(link);
    else if (frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
             nghttp2_session_get_stream_remote_close(link->session, frame->hd.stream_id) == 0)
        link_reset(link, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

static void on_stream_closed(void *stream, uint32_t error_code)
{
    (void)error_code;
    incoming_cancel(stream);
}

static void on_ended(struct link *link, const char *reason)
{
    struct caller *caller = caller_of(link);

    if (pulse_is_dead(&link->pulse))
        log_warning(
            "%s: process %d hangs: it has not answered for %llu ms; its connection is ended",
            caller->service->name, caller->peer.pid,
            2 * (unsigned long long)caller->service->pings_ms);
    log_debug("%s: connection of pid %d ended: %s", caller->service->name, caller->peer.pid,
              reason);
    /* Any cancelled() may close the server, which empties the list and closes the link. */
    while (!LIST_EMPTY(&caller->calls))
        incoming_cancel(LIST_FIRST(&caller->calls));
    if (link->state == LINK_ENDED)
        link_close(link);
}

static void on_gone(struct link *link)
{
    struct caller *caller = caller_of(link);
    const struct rpc_service *service = caller->service;

    LIST_REMOVE(caller, entry);
    free(caller);
    service->gone(service->gone_user);
}

int caller_new(uv_loop_t *loop, const struct rpc_service *service, struct callers *callers,
               struct caller **out)
{
    static const struct link_ops link_ops = {
        .ended = on_ended,
        .gone = on_gone,
        .frame_received = on_frame_received,
        .frame_sent = on_frame_sent,
        .headers_begin = on_headers_begin,
        .stream_header = on_header,
        .stream_data = on_data,
        .stream_closed = on_stream_closed,
    };
    struct caller *caller = malloc(sizeof *caller);
    int err;

    if (!caller)
        return UV_ENOMEM;
    err = link_init(&caller->link, loop, LINK_SERVER, service->limits.calls, &link_ops);
    if (err) {
        free(caller);
        return err;
    }
    caller->service = service;
    if (caller->link.budget->left > service->limits.request_bytes)
        caller->link.budget->left = service->limits.request_bytes;
    caller->link.pulse.every_ms = service->pings_ms;
    caller->idle_since_ms = uv_now(loop);
    caller->queued = 0;
    caller->denied = false;
    caller->peer = (struct ucred){.uid = (uid_t)-1};
    LIST_INIT(&caller->calls);
    LIST_INSERT_HEAD(callers, caller, entry);
    *out = caller;
    return 0;
}

static bool is_ours(const struct ucred *peer)
{
    return peer->uid == 0 || peer->uid == geteuid();
}

void caller_accept(struct caller *caller, int fd)
{
    int err = link_adopt(&caller->link, fd);

    if (!err)
        err = unix_peer(link_fd(&caller->link), &caller->peer);
    caller->denied = caller->service->limits.private && !is_ours(&caller->peer);
    if (err)
        link_close(&caller->link);
}

void caller_close(struct caller *caller)
{
    while (!LIST_EMPTY(&caller->calls))
        incoming_free(LIST_FIRST(&caller->calls));
    if (caller->link.state != LINK_CLOSED)
        link_close(&caller->link);
}
