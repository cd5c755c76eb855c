#include "shim/relay/session/blocks.h"

#include <errno.h>

#include "shim/relay/limits.h"
#include "shim/relay/session/from_client.h"
#include "shim/relay/session/from_runtime.h"
#include "shim/relay/session/inside.h"

bool blocks_broken(const struct session *s, enum session_end from, const struct frame_head *h)
{
    const struct session_side *side = &s->sides[from];

    if (side->lane.in_block)
        return h->type != FRAME_CONTINUATION || h->stream_id != side->block.stream;
    return h->type == FRAME_CONTINUATION;
}

static void begin(struct session *s, enum session_end from, const struct frame_head *h)
{
    struct session_block *block = &s->sides[from].block;

    block->stream = h->stream_id;
    block->ends_stream = h->flags & FRAME_FLAG_END_STREAM;
    if (from == SESSION_CLIENT)
        from_client_headers_head(s, h->stream_id);
}

int blocks_head(struct session *s, enum session_end from, const struct frame_head *h)
{
    struct session_side *side = &s->sides[from];

    if (from == SESSION_CLIENT && h->type == FRAME_HEADERS)
        late_acks_hurry(s);
    side->lane.in_block = true;
    if (h->type == FRAME_HEADERS)
        side->block.bytes = 0;
    side->block.bytes += RELAY_HEADER_FRAME_BYTES + h->length;
    if (side->block.bytes > RELAY_HEADER_BLOCK_BYTES_MAX)
        return from == SESSION_CLIENT
                   ? session_offend(s, FRAME_ENHANCE_YOUR_CALM, "a header block without end")
                   : session_fail(s, -EPROTO, "a header block of the runtime's without end");
    if (h->type == FRAME_HEADERS)
        begin(s, from, h);
    return 0;
}

/* The client may be able to read what our library cannot; only the status of answers is lost to
 * us. */
static void give_up_listening(struct session_side *side)
{
    side->lane.memo = NULL;
    header_listener_free(side->listener);
    side->listener = NULL;
}

int blocks_piece(struct session *s, enum session_end from, const uint8_t *body, size_t len)
{
    struct session_side *side = &s->sides[from];

    if (!side->listener || header_listener_feed(side->listener, body, len, false) == 0)
        return 0;
    if (from == SESSION_CLIENT)
        return session_offend(s, FRAME_COMPRESSION_ERROR, "a header block that is not HPACK");
    give_up_listening(side);
    return 0;
}

/* Its fields are. */
static int known(struct session *s, enum session_end from)
{
    struct session_side *side = &s->sides[from];

    side->table_size_news = -1;
    if (from == SESSION_CLIENT)
        return from_client_headers_end(s, side->block.stream, side->block.ends_stream);
    from_runtime_headers_end(s, side->block.stream, side->block.ends_stream);
    return 0;
}

int blocks_end(struct session *s, enum session_end from)
{
    struct session_side *side = &s->sides[from];

    side->lane.in_block = false;
    if (side->listener && header_listener_feed(side->listener, (const uint8_t *)"", 0, true) < 0) {
        if (from == SESSION_CLIENT)
            return session_offend(s, FRAME_COMPRESSION_ERROR, "a header block that ends too early");
        give_up_listening(side);
    }
    return known(s, from);
}

/* No read is as long as a block without end. */
int blocks_whole(struct session *s, enum session_end from, const struct frame_head *h,
                 const uint8_t *body, size_t len)
{
    struct session_side *side = &s->sides[from];
    int r;

    begin(s, from, h);
    if (side->listener && header_listener_recall(side->listener, body, len))
        return known(s, from);
    r = blocks_piece(s, from, body, len);
    return r < 0 ? r : blocks_end(s, from);
}
