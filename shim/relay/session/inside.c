#include "shim/relay/session/inside.h"

#include <errno.h>

int session_fail(struct session *s, int error, const char *text)
{
    if (s->error == 0) {
        s->error = error;
        s->error_text = text;
    }
    return s->error;
}

void session_give_up(struct session *s, int error, const char *text)
{
    if (s->error)
        return;
    session_fail(s, error, text);
    if (!s->feeding)
        s->ops->failed(s->user);
}

void session_must_queue(struct session *s, int r)
{
    if (r < 0)
        session_give_up(s, r, "out of memory");
}

int session_offend(struct session *s, enum frame_error code, const char *text)
{
    struct lane *lane = session_lane_to(s, SESSION_CLIENT);
    uint32_t last = s->stream_id_max < s->goaway_last ? s->stream_id_max : s->goaway_last;

    session_must_queue(s, frame_put_goaway(&lane->inject, last, code));
    lane_flush(lane);
    session_give_up(s, -EPROTO, text);
    return s->error;
}

void session_flush(struct session *s)
{
    if (s->error)
        return; /* what must not be missing may be */
    lane_flush(&s->sides[SESSION_CLIENT].lane);
    lane_flush(&s->sides[SESSION_RUNTIME].lane);
}
