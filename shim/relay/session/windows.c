#include "shim/relay/session/windows.h"

#include <assert.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/call_message.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"

#define WINDOW_INITIAL 65535 /* RFC 9113 §6.9.2 */

void windows_init(struct windows *w)
{
    flow_init(&w->flow, WINDOW_INITIAL);
    w->initial = w->acked = WINDOW_INITIAL;
    w->frame_bytes_max = RELAY_FRAME_BYTES_MAX;
}

static void credit(struct session *s, uint32_t stream_id, uint32_t n)
{
    if (n > 0)
        session_must_queue(
            s, frame_put_window_update(&session_lane_to(s, SESSION_CLIENT)->inject, stream_id, n));
}

void windows_credit_connection(struct session *s)
{
    struct flow *f = &s->windows.flow;
    uint32_t n = flow_owed(f);
    uint32_t lag;

    flow_credit(f, n);
    lag = flow_lag(f);
    if (lag > 0 && f->client < RELAY_CREDIT_BELOW_BYTES) {
        flow_credit(f, lag);
        n += lag;
    }
    assert(flow_check(f));
    credit(s, 0, n);
}

static uint32_t missing_window(const struct stream *st)
{
    int64_t missing = (int64_t)call_message_to_come(&st->queue) - st->flow.client;

    if (st->phase != STREAM_COLLECT || buffer_len(&st->queue) == 0 ||
        missing + FRAME_PADDING_BYTES_MAX <= 0)
        return 0;
    /* A client may pad every frame, or wait until a whole one has room. */
    missing += RELAY_FRAME_BYTES_MAX;
    return missing < INT32_MAX ? (uint32_t)missing : INT32_MAX;
}

void windows_credit_stream(struct session *s, struct stream *st)
{
    uint32_t n = flow_owed(&st->flow);
    uint32_t missing;

    if (st->request_end != STREAM_GOES_ON)
        return;
    flow_credit(&st->flow, n);
    missing = missing_window(st);
    flow_credit(&st->flow, missing);
    assert(flow_check(&st->flow));
    credit(s, st->id, n + missing);
}

void windows_set_initial(struct session *s, uint32_t value)
{
    int64_t delta = (int64_t)value - s->windows.initial;
    struct stream *st, *next;

    s->windows.initial = value;
    HASH_ITER(hh, s->streams, st, next) {
        if (st->kind == STREAM_INTERCEPTED)
            flow_shift(&st->flow, delta);
    }
}

void windows_acknowledged(struct session *s, uint32_t value)
{
    s->windows.acked = value;
    windows_set_initial(s, settings_queue_window_min(&s->sides[SESSION_RUNTIME].settings, value));
}
