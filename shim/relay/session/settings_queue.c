#include "shim/relay/session/settings_queue.h"

#include <errno.h>
#include <string.h>

#include "shim/relay/limits.h"

void settings_queue_fini(struct settings_queue *q)
{
    buffer_fini(&q->unacked);
}

int settings_queue_push(struct settings_queue *q, const struct settings_sent *sent)
{
    size_t barriers = (size_t)(q->pushed - q->popped) - q->own;

    if (sent->barrier ? barriers == RELAY_STREAMS_MAX : q->own == RELAY_SETTINGS_PENDING_MAX)
        return -EPROTO;
    if (buffer_put(&q->unacked, sent, sizeof *sent) < 0)
        return -ENOMEM;
    q->own += !sent->barrier;
    q->pushed++;
    return 0;
}

bool settings_queue_pop(struct settings_queue *q, struct settings_sent *out)
{
    if (buffer_len(&q->unacked) == 0)
        return false;
    memcpy(out, buffer_data(&q->unacked), sizeof *out);
    buffer_consume(&q->unacked, sizeof *out);
    q->own -= !out->barrier;
    q->popped++;
    return true;
}

void settings_queue_begin(struct settings_queue *q)
{
    q->under_way = q->pushed - 1;
    q->entry_len = 0;
}

struct settings_sent *settings_queue_under_way(struct settings_queue *q)
{
    if (q->under_way < q->popped)
        return NULL;
    return (struct settings_sent *)(q->unacked.bytes + q->unacked.start) +
           (q->under_way - q->popped);
}

uint32_t settings_queue_window_min(const struct settings_queue *q, uint32_t window)
{
    for (size_t at = 0; at < buffer_len(&q->unacked); at += sizeof(struct settings_sent)) {
        struct settings_sent sent;

        memcpy(&sent, buffer_data(&q->unacked) + at, sizeof sent);
        if (sent.has_window && sent.window < window)
            window = sent.window;
    }
    return window;
}
