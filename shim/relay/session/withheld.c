#include "shim/relay/session/withheld.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/call_message.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"

int withheld_put(struct session *s, struct stream *st, const uint8_t *body, size_t body_bytes,
                 size_t wire_bytes)
{
    bool was_queued = stream_is_queued(st);

    if (buffer_put(&st->queue, body, body_bytes) < 0)
        return -ENOMEM;
    call_message_moved(st);
    if (!was_queued && stream_is_queued(st))
        s->queued++;
    flow_withheld(&st->flow, (uint32_t)wire_bytes, (uint32_t)body_bytes);
    return 0;
}

int withheld_replace(struct session *s, struct stream *st, const void *fragment,
                     size_t fragment_bytes, const void *message, size_t message_bytes)
{
    size_t old_bytes = buffer_len(&st->queue);
    size_t wire = frame_read_u32(buffer_data(&st->queue) + 1) + (size_t)MESSAGE_HEAD_BYTES;
    size_t total = fragment_bytes + message_bytes, tail = old_bytes - wire;
    uint8_t head[MESSAGE_HEAD_BYTES] = {0, (uint8_t)(total >> 24), (uint8_t)(total >> 16),
                                        (uint8_t)(total >> 8), (uint8_t)total};
    struct buffer changed = {0};

    if (buffer_reserve(&changed, sizeof head + total + tail) < 0)
        return -ENOMEM;
    if (buffer_put(&changed, head, sizeof head) < 0 ||
        buffer_put(&changed, fragment, fragment_bytes) < 0 ||
        buffer_put(&changed, message, message_bytes) < 0 ||
        buffer_put(&changed, buffer_data(&st->queue) + wire, tail) < 0)
        abort(); /* room was made above */
    flow_added(&s->windows.flow, buffer_len(&changed));
    flow_added(&st->flow, buffer_len(&changed));
    flow_dropped(&s->windows.flow, old_bytes);
    flow_dropped(&st->flow, old_bytes);
    buffer_fini(&st->queue);
    st->queue = changed;
    return 0;
}

bool withheld_frame(const struct session *s, const struct stream *st)
{
    const struct lane *lane = &s->sides[SESSION_CLIENT].lane;

    return lane->within && lane->how == LANE_KEEP && lane->head.stream_id == st->id;
}

/* How much of the queue may go in one frame; 0 or less: nothing. */
static int64_t frame_room(const struct session *s, const struct stream *st)
{
    int64_t n = (int64_t)buffer_len(&st->queue);

    n = n < RELAY_FRAME_BYTES_MAX ? n : RELAY_FRAME_BYTES_MAX;
    n = n < s->windows.flow.send ? n : s->windows.flow.send;
    return n < st->flow.send ? n : st->flow.send;
}

static void send_frame(struct session *s, struct stream *st, size_t n)
{
    struct lane *lane = session_lane_to(s, SESSION_RUNTIME);
    bool last = st->request_end != STREAM_GOES_ON && n == buffer_len(&st->queue);

    session_must_queue(s, frame_put_data(&lane->inject, st->id, buffer_data(&st->queue), n, last));
    buffer_consume(&st->queue, n);
    st->before_ack -= st->before_ack < n ? st->before_ack : n;
    flow_sent(&s->windows.flow, n);
    flow_sent(&st->flow, n);
    if (last)
        stream_has_ended(st, STREAM_END_SENT);
}

void withheld_pump(struct session *s, struct stream *st)
{
    bool was_queued = stream_is_queued(st);
    int64_t n;

    if (st->phase != STREAM_OPEN)
        return;
    while (!s->error && (n = frame_room(s, st)) > 0)
        send_frame(s, st, (size_t)n);
    if (was_queued && buffer_len(&st->queue) == 0)
        s->queued--;
    if (buffer_len(&st->queue) > 0)
        return;
    buffer_fini(&st->queue);
    if (st->request_end == STREAM_ENDED) {
        session_must_queue(
            s, frame_put_data(&session_lane_to(s, SESSION_RUNTIME)->inject, st->id, NULL, 0, true));
        stream_has_ended(st, STREAM_END_SENT);
    }
    if (st->kind == STREAM_PARKED && !withheld_frame(s, st))
        stream_free(s, st);
}

void withheld_pump_all(struct session *s)
{
    struct stream *st, *next;

    if (s->queued == 0)
        return;
    HASH_ITER(hh, s->streams, st, next) {
        if (stream_is_queued(st))
            withheld_pump(s, st);
    }
}

void withheld_open(struct session *s, struct stream *st)
{
    assert(stream_is_gated(st));
    if (st->owner == STREAM_UNREAD)
        stream_untell(s, st);
    stream_move(st, STREAM_OPEN);
    if (stream_is_queued(st))
        s->queued++;
    withheld_pump(s, st);
}
