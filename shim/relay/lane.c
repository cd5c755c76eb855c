#include "shim/relay/lane.h"

#include <errno.h>
#include <string.h>

#define PRIORITY_BYTES 5

void lane_init(struct lane *lane, const struct lane_ops *ops, void *user)
{
    *lane = (struct lane){.ops = ops, .user = user};
}

void lane_fini(struct lane *lane)
{
    buffer_fini(&lane->inject);
}

static void write_pieces(struct lane *lane)
{
    if (lane->pieces_len == 0)
        return;
    lane->ops->write(lane->user, lane, lane->pieces, lane->pieces_len);
    lane->pieces_len = 0;
    lane->spilled = false;
}

static void add_piece(struct lane *lane, const uint8_t *bytes, size_t len)
{
    struct iovec *last = lane->pieces_len > 0 ? &lane->pieces[lane->pieces_len - 1] : NULL;

    if (len == 0)
        return;
    if (last && (const uint8_t *)last->iov_base + last->iov_len == bytes) {
        last->iov_len += len;
        return;
    }
    if (lane->pieces_len == LANE_PIECES_MAX)
        write_pieces(lane);
    lane->pieces[lane->pieces_len++] = (struct iovec){.iov_base = (void *)bytes, .iov_len = len};
}

/* Whether a frame is half written, so that nothing else may come in between. */
static bool half_written(const struct lane *lane)
{
    return lane->within && (lane->how == LANE_PASS || lane->how == LANE_TAP);
}

void lane_flush(struct lane *lane)
{
    struct iovec piece;

    if (buffer_len(&lane->inject) == 0 || !lane->begun || lane->in_block || half_written(lane))
        return;
    write_pieces(lane);
    piece.iov_base = (void *)buffer_data(&lane->inject);
    piece.iov_len = buffer_len(&lane->inject);
    lane->ops->write(lane->user, lane, &piece, 1);
    buffer_fini(&lane->inject);
}

/* The carry may be filled again before this feed ends, so a copy of it passes. One feed completes
 * one carry at most; a second would only cost a write. */
static void pass_carry(struct lane *lane, size_t len)
{
    if (lane->spilled)
        write_pieces(lane);
    memcpy(lane->spill, lane->carry, len);
    lane->spilled = true;
    add_piece(lane, lane->spill, len);
}

void lane_pass_gathered(struct lane *lane, const uint8_t *whole)
{
    size_t len = FRAME_HEAD_BYTES + lane->head.length;

    if (whole == lane->carry)
        pass_carry(lane, len);
    else
        add_piece(lane, whole, len);
}

static void measure_body(struct lane *lane)
{
    const struct frame_head *h = &lane->head;
    bool padded =
        (h->type == FRAME_DATA || h->type == FRAME_HEADERS) && (h->flags & FRAME_FLAG_PADDED);

    lane->pad_unknown = padded;
    lane->skip = padded ? 1 : 0;
    if (h->type == FRAME_HEADERS && (h->flags & FRAME_FLAG_PRIORITY))
        lane->skip += PRIORITY_BYTES;
    lane->body = h->length > lane->skip ? h->length - lane->skip : 0;
}

static int end_frame(struct lane *lane, const uint8_t *whole)
{
    int r;

    if (lane->how != LANE_PASS && lane->pad_unknown)
        return -EMSGSIZE;
    if ((lane->how == LANE_TAP || lane->how == LANE_KEEP) && lane->skip > 0)
        return -EMSGSIZE;
    lane->within = false;
    lane->begun = true;
    r = lane->how == LANE_PASS ? 0 : lane->ops->end(lane->user, lane, whole);
    lane->carry_len = 0;
    if (r == 0 && buffer_len(&lane->inject) > 0)
        lane_flush(lane);
    return r;
}

/* The body's share of a piece; the padding's length is learned on the way. */
static int tap(struct lane *lane, const uint8_t *bytes, size_t n)
{
    size_t wire_bytes = n;
    size_t body;

    if (lane->pad_unknown) {
        uint32_t fixed = lane->skip + bytes[0];

        if (fixed > lane->head.length)
            return -EPROTO;
        lane->body = lane->head.length - fixed;
        lane->pad_unknown = false;
    }
    body = n < lane->skip ? n : lane->skip;
    lane->skip -= (uint32_t)body;
    bytes += body;
    n -= body;
    body = n < lane->body ? n : lane->body;
    lane->body -= (uint32_t)body;
    return lane->ops->piece(lane->user, lane, bytes, body, wire_bytes);
}

/* A frame that passes and has come whole: in one piece, head and all. */
static ssize_t pass_whole(struct lane *lane, const uint8_t *bytes)
{
    size_t n = FRAME_HEAD_BYTES + lane->left;
    int r = 0;

    add_piece(lane, bytes, n);
    if (lane->how == LANE_TAP && lane->left > 0)
        r = tap(lane, bytes + FRAME_HEAD_BYTES, lane->left);
    lane->left = 0;
    if (r == 0)
        r = end_frame(lane, NULL);
    return r < 0 ? r : (ssize_t)n;
}

/* Whether the frame passes and nobody looks. */
static bool is_passing(const struct lane *lane)
{
    return !lane->in_block && lane->head.type < 32 && lane->passing >> lane->head.type & 1;
}

/* Whether the frame, whose head is read, is for block(). */
static bool is_block(const struct lane *lane)
{
    const struct frame_head *h = &lane->head;

    return h->type == FRAME_HEADERS && !lane->in_block && !lane->stepwise && h->stream_id != 0 &&
           (h->flags & (FRAME_FLAG_END_HEADERS | FRAME_FLAG_PADDED | FRAME_FLAG_PRIORITY)) ==
               FRAME_FLAG_END_HEADERS;
}

static ssize_t take_block(struct lane *lane, const uint8_t *bytes)
{
    size_t n = FRAME_HEAD_BYTES + lane->head.length;
    int r;

    lane->how = LANE_TAP;
    lane->within = true; /* so that nothing is put in */
    add_piece(lane, bytes, n);
    r = lane->ops->block(lane->user, lane, bytes + FRAME_HEAD_BYTES, lane->head.length);
    lane->within = false;
    lane->begun = true;
    if (r < 0)
        return r;
    if (buffer_len(&lane->inject) > 0)
        lane_flush(lane);
    return (ssize_t)n;
}

/* Takes a head; how many bytes it used, or a negative code. */
static ssize_t take_head(struct lane *lane, const uint8_t *bytes, size_t len)
{
    const uint8_t *head = bytes;
    size_t used = FRAME_HEAD_BYTES - lane->carry_len;
    int r;

    if (len < used)
        used = len;
    if (lane->carry_len > 0 || len < FRAME_HEAD_BYTES) {
        memcpy(lane->carry + lane->carry_len, bytes, used);
        lane->carry_len += used;
        if (lane->carry_len < FRAME_HEAD_BYTES)
            return (ssize_t)used;
        head = lane->carry;
    }
    frame_head_read(head, &lane->head);
    if (head == bytes && len - FRAME_HEAD_BYTES >= lane->head.length && is_block(lane))
        return take_block(lane, bytes);
    lane->how = LANE_PASS;
    r = is_passing(lane) ? 0 : lane->ops->head(lane->user, lane, &lane->head, &lane->how);
    if (r < 0)
        return r;
    if (lane->how == LANE_GATHER && lane->head.length > LANE_GATHER_BYTES_MAX)
        return -EPROTO;
    lane->within = true;
    lane->left = lane->head.length;
    if (lane->how != LANE_PASS)
        measure_body(lane);
    if (half_written(lane) && head == bytes && len - FRAME_HEAD_BYTES >= lane->left)
        return pass_whole(lane, bytes);
    if (lane->how == LANE_GATHER) {
        if (head == bytes && len - FRAME_HEAD_BYTES >= lane->left) {
            r = end_frame(lane, bytes);
            return r < 0 ? r : (ssize_t)(FRAME_HEAD_BYTES + lane->left);
        }
        memmove(lane->carry, head, FRAME_HEAD_BYTES);
        lane->carry_len = FRAME_HEAD_BYTES;
    } else {
        if (lane->how != LANE_KEEP) {
            if (head == lane->carry)
                pass_carry(lane, FRAME_HEAD_BYTES);
            else
                add_piece(lane, head, FRAME_HEAD_BYTES);
        }
        lane->carry_len = 0;
    }
    if (lane->left == 0) {
        r = end_frame(lane, lane->how == LANE_GATHER ? lane->carry : NULL);
        if (r < 0)
            return r;
    }
    return (ssize_t)used;
}

static ssize_t take_payload(struct lane *lane, const uint8_t *bytes, size_t len)
{
    size_t n = len < lane->left ? len : lane->left;
    int r = 0;

    switch (lane->how) {
    case LANE_TAP:
        add_piece(lane, bytes, n);
        r = tap(lane, bytes, n);
        break;
    case LANE_KEEP:
        r = tap(lane, bytes, n);
        break;
    case LANE_PASS:
        add_piece(lane, bytes, n);
        break;
    case LANE_GATHER:
        memcpy(lane->carry + lane->carry_len, bytes, n);
        lane->carry_len += n;
        break;
    }
    lane->left -= (uint32_t)n;
    if (r == 0 && lane->left == 0)
        r = end_frame(lane, lane->how == LANE_GATHER ? lane->carry : NULL);
    return r < 0 ? r : (ssize_t)n;
}

int lane_feed(struct lane *lane, const uint8_t *bytes, size_t len)
{
    ssize_t n = 0;

    while (len > 0) {
        n = lane->within ? take_payload(lane, bytes, len) : take_head(lane, bytes, len);
        if (n < 0)
            break;
        bytes += n;
        len -= (size_t)n;
    }
    write_pieces(lane);
    return n < 0 ? (int)n : 0;
}
