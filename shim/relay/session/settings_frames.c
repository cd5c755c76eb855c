#include "shim/relay/session/settings_frames.h"

#include <errno.h>
#include <string.h>

#include "shim/relay/session/ending.h"
#include "shim/relay/session/inside.h"
#include "shim/relay/session/stream.h"
#include "shim/relay/session/withheld.h"

/* Remembered at its head, since a barrier that is queued from now on goes out behind it. */
int settings_frames_head(struct session *s, enum session_end from)
{
    struct session_side *side = &s->sides[from];
    int r = settings_queue_push(&side->settings, &(struct settings_sent){0});

    if (r == -EPROTO && from == SESSION_CLIENT)
        return session_offend(s, FRAME_ENHANCE_YOUR_CALM, "too many SETTINGS without an ACK");
    if (r < 0)
        return session_fail(s, r, "SETTINGS cannot be kept");
    settings_queue_begin(&side->settings);
    return 0;
}

static void take_table_size(struct settings_queue *q, uint32_t bytes)
{
    struct settings_sent *sent = settings_queue_under_way(q);

    if (!sent)
        return;
    if (!sent->has_table_size || bytes < sent->table_size_min)
        sent->table_size_min = bytes;
    sent->has_table_size = true;
    sent->table_size = bytes;
}

static void take_initial_window(struct session *s, uint32_t value)
{
    struct settings_sent *sent = settings_queue_under_way(&s->sides[SESSION_RUNTIME].settings);

    if (value > INT32_MAX)
        return;
    if (sent) {
        sent->has_window = true;
        sent->window = value;
    }
    if (!sent || value < s->windows.initial)
        windows_set_initial(s, value);
}

static void take_setting(struct session *s, enum session_end from, const uint8_t *entry)
{
    unsigned id = (unsigned)entry[0] << 8 | entry[1];
    uint32_t value = frame_read_u32(entry + 2);

    if (id == FRAME_SETTING_HEADER_TABLE_SIZE)
        take_table_size(&s->sides[from].settings, value);
    if (from != SESSION_RUNTIME)
        return;
    if (id == FRAME_SETTING_MAX_FRAME_SIZE && value > s->windows.frame_bytes_max)
        s->windows.frame_bytes_max = value;
    if (id == FRAME_SETTING_INITIAL_WINDOW_SIZE)
        take_initial_window(s, value);
}

void settings_frames_piece(struct session *s, enum session_end from, const uint8_t *body,
                           size_t len)
{
    struct settings_queue *q = &s->sides[from].settings;

    while (len > 0) {
        size_t n = SETTINGS_ENTRY_BYTES - q->entry_len;

        n = n < len ? n : len;
        memcpy(q->entry + q->entry_len, body, n);
        q->entry_len += n;
        body += n;
        len -= n;
        if (q->entry_len == SETTINGS_ENTRY_BYTES) {
            take_setting(s, from, q->entry);
            q->entry_len = 0;
        }
    }
}

/* The windows of streams may have grown, or shrunk below what a message needs. */
void settings_frames_end(struct session *s, enum session_end from)
{
    struct stream *st, *next;

    if (from != SESSION_RUNTIME)
        return;
    withheld_pump_all(s);
    HASH_ITER(hh, s->streams, st, next) {
        if (st->phase == STREAM_COLLECT)
            windows_credit_stream(s, st);
    }
}

/* ---- ACKs ---- */

static int use_table_size(struct session *s, struct session_side *side,
                          const struct settings_sent *sent)
{
    /* Of several changes the smallest must be said (RFC 7541 §4.2). */
    if (sent->table_size_min < side->table_size &&
        (side->table_size_news < 0 || sent->table_size_min < side->table_size_news))
        side->table_size_news = sent->table_size_min;
    side->table_size = sent->table_size;
    if (side->listener && (header_listener_table_size(side->listener, sent->table_size_min) < 0 ||
                           header_listener_table_size(side->listener, sent->table_size) < 0))
        return session_fail(s, -ENOMEM, "out of memory");
    return 0;
}

int settings_frames_ack(struct session *s, enum session_end from, enum lane_how *how)
{
    struct settings_sent sent;

    if (!settings_queue_pop(&s->sides[session_other(from)].settings, &sent))
        return 0; /* nobody asked: the receiver will say so */
    if (sent.barrier) {
        *how = LANE_KEEP;
        if (from == SESSION_CLIENT)
            ending_client_stopped(s, sent.barrier);
        else
            ending_runtime_stopped(s, sent.barrier);
        return 0;
    }
    if (from == SESSION_CLIENT && late_acks_take(s, &sent)) {
        *how = LANE_KEEP;
    } else if (sent.has_window) {
        windows_acknowledged(s, sent.window);
        withheld_pump_all(s);
    }
    return sent.has_table_size ? use_table_size(s, &s->sides[from], &sent) : 0;
}
