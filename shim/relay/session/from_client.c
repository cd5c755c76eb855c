#include "shim/relay/session/from_client.h"

#include <errno.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/call_message.h"
#include "shim/relay/session/ending.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/relay/session/withheld.h"
#include "shim/rpc/rpc.h"

/* ---- requests ---- */

/* The first message, of `bytes`, is whole, and the stream in DECIDE. */
static void ask_owner(struct session *s, struct stream *st, size_t bytes)
{
    switch (call_message_open(st, &st->queue, bytes, &s->inflated_room)) {
    case RPC_OK:
        stream_tell(s, st);
        return;
    case RPC_RESOURCE_EXHAUSTED:
        ending_refuse(s, st, RPC_RESOURCE_EXHAUSTED, "%s", st->inflated.fault_text);
        return;
    case RPC_UNIMPLEMENTED:
        ending_refuse(s, st, RPC_UNIMPLEMENTED,
                      "of the compressions in grpc-encoding the shim reads only gzip");
        return;
    case RPC_DATA_LOSS:
        ending_refuse(s, st, RPC_INTERNAL, "%s", st->inflated.fault_text);
        return;
    default: /* not readable: the runtime says so */
        call_message_close(st);
        withheld_open(s, st);
        return;
    }
}

void from_client_ask_again(struct session *s)
{
    struct stream *st, *next;
    size_t bytes;

    HASH_ITER(hh, s->streams, st, next) {
        if (st->phase == STREAM_DECIDE && st->owner == STREAM_UNREAD &&
            call_message_measure(&st->queue, &bytes) == CALL_MESSAGE_WHOLE)
            ask_owner(s, st, bytes);
    }
}

/* More of an intercepted request has come. */
static void collect(struct session *s, struct stream *st)
{
    size_t bytes = 0;

    if (st->phase != STREAM_COLLECT)
        return;
    switch (call_message_measure(&st->queue, &bytes)) {
    case CALL_MESSAGE_WHOLE:
        stream_move(st, STREAM_DECIDE);
        ask_owner(s, st, bytes);
        return;
    case CALL_MESSAGE_TOO_LARGE:
        ending_refuse(s, st, RPC_RESOURCE_EXHAUSTED,
                      "message of %zu bytes is larger than the limit of %u", bytes,
                      RELAY_MESSAGE_BYTES_MAX);
        return;
    case CALL_MESSAGE_PARTIAL:
        break;
    }
    if (st->request_end != STREAM_GOES_ON)
        withheld_open(s, st);
}

/* More of a request has passed. A copy is kept of one that the owner was told of, for the owner in
 * the next process (stream_regain()). */
static void observe(struct session *s, struct stream *st, const uint8_t *body, size_t len)
{
    size_t bytes = 0;
    enum call_message_state state;

    if (st->owner != STREAM_UNREAD)
        return;
    state = stream_copy_request(s, st, body, len) < 0 ? CALL_MESSAGE_TOO_LARGE
                                                      : call_message_measure(&st->request, &bytes);
    if (state == CALL_MESSAGE_PARTIAL)
        return;
    if (state == CALL_MESSAGE_WHOLE &&
        call_message_open(st, &st->request, bytes, &s->inflated_room) == RPC_OK)
        stream_tell(s, st);
    else
        stream_untell(s, st);
    call_message_close(st);
}

/* ---- HEADERS ---- */

void from_client_headers_head(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s->streams, stream_id);

    if (stream_id > s->stream_id_max)
        s->stream_id_max = stream_id;
    if (!st || !(stream_is_gated(st) || stream_is_queued(st)))
        return;
    /* Trailers must not overtake their data, nor wait, for every later block needs their HPACK
     * state. No gRPC client sends any; such a call goes on without its message and the runtime
     * refuses it. */
    if (stream_is_gated(st)) {
        stream_untell(s, st);
        stream_drop_queue(s, st);
        stream_move(st, STREAM_OPEN);
    } else {
        stream_drop_queue(s, st);
    }
}

int from_client_headers_end(struct session *s, uint32_t stream_id, bool ends_stream)
{
    const struct header_fields *f = header_listener_fields(s->sides[SESSION_CLIENT].listener);
    struct stream *st = stream_find(s->streams, stream_id);
    struct tally *tally = s->sides[SESSION_CLIENT].lane.tally;

    if (tally)
        tally_begin(tally, stream_id, f->method);
    if (st) {
        if (ends_stream) {
            stream_has_ended(st, STREAM_END_SENT);
            if (st->phase == STREAM_STOPPING)
                ending_client_stopped(s, st->id);
            else if (st->kind == STREAM_PARKED && st->phase == STREAM_OPEN)
                stream_free(s, st);
        }
        return 0;
    }
    if (s->classes[f->method] == CRI_CLASS_RELAYED || ends_stream)
        return 0;
    st = stream_new(s, stream_id, f->method);
    if (!st && s->classes[f->method] == CRI_CLASS_OBSERVED)
        return 0; /* it passes unread, as what is too large to be kept */
    if (!st)
        return session_offend(s, FRAME_ENHANCE_YOUR_CALM, "too many calls on one connection");
    st->encoding = f->encoding;
    st->call.timeout_ms = f->timeout_ms;
    return 0;
}

/* ---- DATA ---- */

/* It may take the last of a window that the runtime, which has not got what is withheld, need not
 * open again yet. */
static void passes(struct session *s, uint32_t bytes)
{
    flow_passed(&s->windows.flow, bytes);
    windows_credit_connection(s);
}

int from_client_data_head(struct session *s, const struct frame_head *h, enum lane_how *how)
{
    struct flow *flow = &s->windows.flow;
    struct stream *st = stream_find(s->streams, h->stream_id);
    bool no_window =
        windows_outgrown(flow, h->length) || (st && windows_outgrown(&st->flow, h->length));

    /* On a stream that never began DATA must not make it known: its HEADERS may still come. */
    if (!st && no_window && h->stream_id <= s->stream_id_max) {
        st = stream_new(s, h->stream_id, CRI_OTHER);
        if (!st)
            return session_offend(s, FRAME_ENHANCE_YOUR_CALM,
                                  "too many streams wait for the runtime's window");
    }
    if (!st) {
        *how = LANE_PASS;
        passes(s, h->length);
        return 0;
    }
    if (st->phase == STREAM_OPEN && buffer_len(&st->queue) == 0 && !no_window) {
        *how = LANE_TAP;
        passes(s, h->length);
        flow_passed(&st->flow, h->length);
        return 0;
    }
    /* What passes the runtime judges; what we keep must have a bound (RFC 9113 §6.9.1). */
    if (h->length > s->windows.frame_bytes_max)
        return session_offend(s, FRAME_SIZE_ERROR, "a frame larger than the runtime allows");
    if ((int64_t)h->length > flow->client)
        return session_offend(s, FRAME_FLOW_CONTROL_ERROR,
                              "more DATA than the connection's window");
    *how = LANE_KEEP;
    return 0;
}

int from_client_data_piece(struct session *s, const struct lane *lane, const uint8_t *body,
                           size_t body_bytes, size_t wire_bytes)
{
    struct stream *st = stream_find(s->streams, lane->head.stream_id);
    bool keeps = st && (stream_is_gated(st) || st->phase == STREAM_OPEN);

    if (lane->how == LANE_TAP) {
        if (st)
            observe(s, st, body, body_bytes);
        return 0;
    }
    if (keeps) {
        if (withheld_put(s, st, body, body_bytes, wire_bytes) < 0)
            return session_fail(s, -ENOMEM, "out of memory");
        if (st->phase == STREAM_OPEN)
            observe(s, st, body, body_bytes);
    }
    flow_withheld(&s->windows.flow, (uint32_t)wire_bytes, keeps ? (uint32_t)body_bytes : 0);
    return 0;
}

/* Also of a call that was let go, if there is more to come: its stream's window is for the client
 * to keep to, and the connection's grows as the runtime says, who sees nothing of this. */
static bool holds_too_much(const struct session *s, const struct stream *st)
{
    bool goes_on = st->kind == STREAM_INTERCEPTED && st->phase == STREAM_OPEN &&
                   st->request_end == STREAM_GOES_ON;

    return (stream_is_gated(st) || goes_on) &&
           s->windows.flow.pending > (int64_t)RELAY_HELD_BYTES_MAX;
}

/* A frame for the stream's queue, or for nobody any more, is whole. */
static void data_kept(struct session *s, struct stream *st)
{
    if (holds_too_much(s, st)) {
        stream_untell(s, st);
        ending_refuse(s, st, RPC_RESOURCE_EXHAUSTED, "too many bytes are held on this connection");
        return;
    }
    if (st->phase == STREAM_OPEN) {
        windows_credit_stream(s, st);
        withheld_pump(s, st);
        return;
    }
    collect(s, st);
    if (stream_is_gated(st))
        windows_credit_stream(s, st);
}

void from_client_data_end(struct session *s, const struct lane *lane)
{
    struct stream *st = stream_find(s->streams, lane->head.stream_id);
    bool ends = lane->head.flags & FRAME_FLAG_END_STREAM;

    if (st && ends)
        stream_has_ended(st, lane->how == LANE_TAP ? STREAM_END_SENT : STREAM_ENDED);
    if (lane->how != LANE_KEEP)
        return;
    if (st && st->phase == STREAM_STOPPING && ends)
        ending_client_stopped(s, st->id);
    else if (st)
        data_kept(s, st);
    windows_credit_connection(s);
}

/* ---- RST_STREAM ---- */

void from_client_reset(struct session *s, uint32_t stream_id, enum lane_how *how)
{
    struct stream *st = stream_find(s->streams, stream_id);

    session_count_end(s, stream_id, RPC_CANCELLED);
    if (!st)
        return;
    if (st->phase == STREAM_BARRIER || st->phase == STREAM_STOPPING)
        *how = LANE_KEEP; /* the runtime's side is reset already */
    stream_free(s, st);
}
