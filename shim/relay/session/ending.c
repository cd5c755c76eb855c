#include "shim/relay/session/ending.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/relay/session/call_message.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"

#define REFUSAL_BYTES_MAX 192

void ending_stop_runtime(struct session *s, struct stream *st)
{
    struct lane *lane = session_lane_to(s, SESSION_RUNTIME);
    struct settings_sent barrier = {.barrier = st->id};
    int r = settings_queue_push(&s->sides[SESSION_CLIENT].settings, &barrier);

    st->waits |= STREAM_WAIT_RUNTIME;
    if (r == 0)
        r = frame_put_rst_stream(&lane->inject, st->id, FRAME_CANCEL);
    if (r == 0)
        r = frame_put_settings_empty(&lane->inject);
    if (r == -EPROTO)
        session_give_up(s, r, "the runtime does not acknowledge SETTINGS");
    else
        session_must_queue(s, r);
}

void ending_cut_short(struct session *s, struct stream *st, int code, const char *message)
{
    session_count_end(s, st->id, code);
    st->owner = STREAM_UNTOLD;
    st->refusal_code = code;
    st->refusal = message ? strdup(message) : NULL;
    call_message_close(st);
    stream_drop_queue(s, st);
    stream_move(st, STREAM_BARRIER);
    ending_stop_runtime(s, st);
}

void ending_refuse(struct session *s, struct stream *st, int code, const char *format, ...)
{
    char text[REFUSAL_BYTES_MAX];
    va_list args;
    int n = snprintf(text, sizeof text, "%s: ", cri_method_name(st->call.method));

    assert(stream_is_gated(st) || st->phase == STREAM_OPEN);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    ending_cut_short(s, st, code, text);
}

void ending_stop_client(struct session *s, struct stream *st, enum frame_error code)
{
    struct lane *lane = session_lane_to(s, SESSION_CLIENT);
    struct settings_sent barrier = {.barrier = st->id};
    int r = settings_queue_push(&s->sides[SESSION_RUNTIME].settings, &barrier);

    stream_drop_queue(s, st);
    stream_drop_response_copy(s, st);
    stream_move(st, STREAM_STOPPING);
    if (r == -EPROTO) {
        session_offend(s, FRAME_ENHANCE_YOUR_CALM, "too many SETTINGS without an ACK");
        return;
    }
    if (r == 0)
        r = frame_put_rst_stream(&lane->inject, st->id, code);
    if (r == 0)
        r = frame_put_settings_empty(&lane->inject);
    session_must_queue(s, r);
}

/* One that it waited for has stopped. It is kept while anything may come that is for nobody. */
static void stopped(struct session *s, struct stream *st, enum stream_wait who)
{
    st->waits &= ~(unsigned)who;
    if (st->waits == 0)
        stream_free(s, st);
}

void ending_client_stopped(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s->streams, stream_id);

    if (st && st->phase == STREAM_STOPPING)
        stopped(s, st, STREAM_WAIT_CLIENT);
}

/* The client gets the answer that is ours. */
static void give_answer(struct session *s, struct stream *st)
{
    struct session_side *runtime = &s->sides[SESSION_RUNTIME];

    session_must_queue(s, frame_put_status(&session_lane_to(s, SESSION_CLIENT)->inject, st->id,
                                           st->refusal_code,
                                           st->refusal ? st->refusal : "out of memory",
                                           !st->response_begun, runtime->table_size_news));
    runtime->table_size_news = -1;
    if (st->request_end != STREAM_GOES_ON)
        stream_free(s, st);
    else
        ending_stop_client(s, st, FRAME_NO_ERROR);
}

void ending_runtime_stopped(struct session *s, uint32_t stream_id)
{
    struct stream *st = stream_find(s->streams, stream_id);

    if (!st)
        return;                         /* the client reset it */
    if (st->phase == STREAM_STOPPING) { /* the runtime's own answer was whole */
        stopped(s, st, STREAM_WAIT_RUNTIME);
        return;
    }
    if (st->phase != STREAM_BARRIER)
        return; /* another one, of a client that uses a number twice */
    st->waits = 0;
    if (st->refusal_code == ENDING_RESET)
        ending_stop_client(s, st, FRAME_REFUSED_STREAM);
    else
        give_answer(s, st);
}
