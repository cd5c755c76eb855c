#include "shim/relay/session/late_acks.h"

#include "shim/relay/session/ending.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/relay/session/withheld.h"

/* Notes what is parked now; whether there is anything. */
static bool mark_parked(struct session *s)
{
    bool any = false;

    for (struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->kind == STREAM_INTERCEPTED || !stream_is_queued(st))
            continue;
        st->before_ack = buffer_len(&st->queue);
        any = true;
    }
    return any;
}

bool late_acks_take(struct session *s, const struct settings_sent *sent)
{
    struct late_acks *late = &s->late_acks;
    bool lowers = sent->has_window && sent->window < s->windows.acked;

    if (!(lowers && mark_parked(s)) && late->count == 0)
        return false;
    session_lane_to(s, SESSION_RUNTIME)->stepwise = true;
    late->count++;
    late->has_table_size = late->has_table_size || sent->has_table_size;
    if (sent->has_window) {
        late->has_window = true;
        late->window = sent->window;
    }
    return true;
}

static void send_all(struct session *s)
{
    struct lane *lane = session_lane_to(s, SESSION_RUNTIME);
    struct late_acks late = s->late_acks;

    s->late_acks = (struct late_acks){0};
    lane->stepwise = false;
    for (; late.count > 0; late.count--)
        session_must_queue(s, frame_put_settings_ack(&lane->inject));
    if (late.has_window) {
        windows_acknowledged(s, late.window);
        withheld_pump_all(s);
    }
}

void late_acks_look(struct session *s)
{
    for (const struct stream *st = s->streams; st; st = st->hh.next) {
        if (st->before_ack > 0)
            return;
    }
    send_all(s);
}

void late_acks_hurry(struct session *s)
{
    struct stream *st, *next;

    if (!s->late_acks.has_table_size)
        return;
    HASH_ITER(hh, s->streams, st, next) {
        if (st->before_ack == 0)
            continue;
        stream_untell(s, st);
        /* Also of a call that is over: nobody here saw that, and the client's DATA was on its
         * way. */
        ending_cut_short(s, st, ENDING_RESET, NULL);
    }
    send_all(s);
    lane_flush(session_lane_to(s, SESSION_RUNTIME));
}
