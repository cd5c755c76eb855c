#include "shim/relay/session/from_runtime.h"

#include <string.h>

#include "shim/relay/session/call_message.h"
#include "shim/relay/session/ending.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/relay/session/withheld.h"
#include "shim/rpc/rpc.h"

/* ---- answers ---- */

static void tell_answer(struct session *s, struct stream *st, int status, const char *text)
{
    size_t bytes = 0;
    bool whole;

    call_message_close(st);
    whole = !st->response_dropped &&
            call_message_measure(&st->response, &bytes) == CALL_MESSAGE_WHOLE &&
            call_message_open(st, &st->response, bytes, &s->answer_room) == RPC_OK;
    if (status < 0) /* none was seen: a message means success for a unary call */
        status = whole ? RPC_OK : RPC_UNKNOWN;
    st->call.status_text = status == RPC_OK ? NULL : text;
    session_tells(s);
    s->owner.ops->answered(s->owner.user, &st->call, status, whole ? st->call.message : NULL,
                           whole ? st->call.message_bytes : 0);
    st->call.status_text = NULL;
    call_message_close(st);
}

/* Whether the rest of a request cannot simply pass: part of it is withheld, or the client was
 * credited for it. */
static bool is_altered(const struct session *s, const struct stream *st)
{
    return stream_is_gated(st) || buffer_len(&st->queue) > 0 || withheld_frame(s, st) ||
           st->flow.surplus > 0;
}

/* Whether the client's END_STREAM has come, or will with the frame that is withheld now. */
static bool client_ends(const struct session *s, const struct stream *st)
{
    const struct frame_head *under_way = &s->sides[SESSION_CLIENT].lane.head;

    return st->request_end != STREAM_GOES_ON ||
           (withheld_frame(s, st) && under_way->flags & FRAME_FLAG_END_STREAM);
}

/* The runtime has answered in full, perhaps before the request was through; `status` < 0: it could
 * not be read. `text`: of an error; NULL: none. */
static void answered(struct session *s, struct stream *st, int status, const char *text)
{
    bool ends = client_ends(s, st);
    bool sent = st->request_end == STREAM_END_SENT;
    bool rest = st->phase == STREAM_BARRIER || (!sent && is_altered(s, st));

    if (st->phase == STREAM_STOPPING)
        return; /* a second answer: the client's end is still to come */
    if (st->owner == STREAM_TOLD)
        tell_answer(s, st, status, text);
    /* It must not wait for the rest (RFC 9113 §8.1), which is for nobody now. */
    if (ends && !sent && st->phase != STREAM_BARRIER)
        session_must_queue(s, frame_put_rst_stream(&session_lane_to(s, SESSION_RUNTIME)->inject,
                                                   st->id, FRAME_CANCEL));
    if (ends || !rest) {
        stream_free(s, st);
        return;
    }
    if (st->phase != STREAM_BARRIER)
        ending_stop_runtime(s, st);
    ending_stop_client(s, st, FRAME_NO_ERROR);
    stream_untell(s, st);
    call_message_close(st);
}

void from_runtime_headers_end(struct session *s, uint32_t stream_id, bool ends_stream)
{
    const struct header_listener *listener = s->sides[SESSION_RUNTIME].listener;
    struct stream *st = stream_find(s->streams, stream_id);

    if (ends_stream)
        session_count_end(s, stream_id,
                          listener ? header_listener_fields(listener)->grpc_status : -1);
    if (!st)
        return;
    if (!st->response_begun && !stream_is_gated(st) && listener)
        st->encoding = header_listener_fields(listener)->encoding; /* the request is read */
    st->response_begun = true;
    if (ends_stream)
        answered(s, st, listener ? header_listener_fields(listener)->grpc_status : -1,
                 listener ? header_listener_message(listener) : NULL);
}

void from_runtime_data_piece(struct session *s, uint32_t stream_id, const uint8_t *body, size_t len)
{
    struct stream *st = stream_find(s->streams, stream_id);

    if (!st || st->owner != STREAM_TOLD || st->response_dropped)
        return;
    if (stream_copy_response(s, st, body, len) < 0) {
        st->response_dropped = true;
        stream_drop_response_copy(s, st);
    }
}

void from_runtime_data_ended(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s->streams, stream_id);

    if (st)
        answered(s, st, -1, NULL);
}

/* ---- all else ---- */

void from_runtime_reset(struct session *s, uint32_t stream_id, enum lane_how *how)
{
    struct stream *st = stream_find(s->streams, stream_id);

    session_count_end(s, stream_id, RPC_UNKNOWN);
    if (!st)
        return;
    if (st->phase == STREAM_BARRIER || st->phase == STREAM_STOPPING)
        *how = LANE_KEEP; /* the answer is ours now */
    else
        stream_free(s, st);
}

/* The ledger of a window; NULL: it has none. */
static struct flow *ledger_of(struct session *s, struct stream *st, uint32_t stream_id)
{
    if (stream_id == 0)
        return &s->windows.flow;
    return st && st->kind == STREAM_INTERCEPTED ? &st->flow : NULL;
}

void from_runtime_window_update(struct session *s, const struct frame_head *h, const uint8_t *whole)
{
    struct lane *lane = &s->sides[SESSION_RUNTIME].lane;
    struct stream *st = h->stream_id ? stream_find(s->streams, h->stream_id) : NULL;
    struct flow *flow = ledger_of(s, st, h->stream_id);
    uint32_t increment = frame_read_u32(whole + FRAME_HEAD_BYTES) & FRAME_STREAM_ID_MAX;
    uint32_t told = flow ? flow_update(flow, increment) : increment;

    if (told == increment)
        lane_pass_gathered(lane, whole);
    else if (told > 0)
        session_must_queue(s, frame_put_window_update(&lane->inject, h->stream_id, told));
    if (h->stream_id == 0) {
        withheld_pump_all(s);
        windows_credit_connection(s); /* what was swallowed for held bytes others may need now */
    } else if (st) {
        withheld_pump(s, st);
    }
}

void from_runtime_goaway_head(struct session *s)
{
    s->goaway_len = 0;
    s->runtime_goes = true;
}

void from_runtime_goaway_piece(struct session *s, const uint8_t *body, size_t len)
{
    size_t n = sizeof s->goaway - s->goaway_len;

    n = n < len ? n : len;
    memcpy(s->goaway + s->goaway_len, body, n);
    s->goaway_len += n;
}

void from_runtime_goaway_end(struct session *s)
{
    uint32_t last = frame_read_u32(s->goaway) & FRAME_STREAM_ID_MAX;
    struct stream *st, *next;

    if (s->goaway_len < sizeof s->goaway)
        return;
    if (last < s->goaway_last)
        s->goaway_last = last;
    HASH_ITER(hh, s->streams, st, next) {
        if (st->id > last)
            stream_free(s, st);
    }
}
