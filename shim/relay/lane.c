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
    lane->looked = true;
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

    if (lane->carry_len > 0)
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

static bool is_watched(const struct lane *lane, uint32_t stream_id)
{
    return lane->watched >> lane_watched_bit(stream_id) & 1;
}

/* Whether frames with such a head pass and nobody looks. */
static bool passes(const struct lane *lane, const struct frame_head *h)
{
    return h->type < 32 && lane->passing >> h->type & 1 &&
           (h->type != FRAME_DATA || (h->stream_id != 0 && !is_watched(lane, h->stream_id)));
}

static void count_passed(struct lane *lane, const struct frame_head *h)
{
    if (h->type == FRAME_DATA)
        lane->data_passed += h->length;
}

/* Whether a frame with such a head is for block(), once it is whole. */
static bool is_block(const struct lane *lane, const struct frame_head *h)
{
    return h->type == FRAME_HEADERS && !lane->stepwise && h->stream_id != 0 &&
           (h->flags & (FRAME_FLAG_END_HEADERS | FRAME_FLAG_PADDED | FRAME_FLAG_PRIORITY)) ==
               FRAME_FLAG_END_HEADERS;
}

static void count_block(struct tally *tally, bool answer, const struct frame_head *h,
                        const struct header_fields *fields)
{
    if (!answer)
        tally_begin(tally, h->stream_id, fields->method);
    else if (h->flags & FRAME_FLAG_END_STREAM)
        tally_end(tally, h->stream_id, fields->grpc_status);
}

/* Whether it passes and nobody looks, either. */
static bool block_passes(struct lane *lane, const struct frame_head *h, const uint8_t *body)
{
    const struct header_memo_entry *e;

    if (!lane->memo || is_watched(lane, h->stream_id))
        return false;
    e = header_memo_find(lane->memo, body, h->length);
    if (!e || !(lane->passing_methods >> e->fields.method & 1))
        return false;
    if (h->stream_id > lane->stream_passed)
        lane->stream_passed = h->stream_id;
    if (lane->tally)
        count_block(lane->tally, lane->answers, h, &e->fields);
    return true;
}

/* What block() is told of must not be behind something that it puts in. */
static int show_block(struct lane *lane, const struct frame_head *h, const uint8_t *body)
{
    int r;

    lane->looked = true;
    lane->head = *h;
    lane->how = LANE_TAP;
    lane->within = true;
    r = lane->ops->block(lane->user, lane, body, h->length);
    lane->within = false;
    return r;
}

/* A head is whole: says how its frame goes on. 0, or a negative code. */
static int begin_frame(struct lane *lane, const uint8_t *head)
{
    int r = 0;

    frame_head_read(head, &lane->head);
    lane->how = LANE_PASS;
    if (lane->in_block || !passes(lane, &lane->head)) {
        lane->looked = true;
        r = lane->ops->head(lane->user, lane, &lane->head, &lane->how);
    } else {
        count_passed(lane, &lane->head);
    }
    if (r < 0)
        return r;
    if (lane->how == LANE_GATHER && lane->head.length > LANE_GATHER_BYTES_MAX)
        return -EPROTO;
    lane->within = true;
    lane->left = lane->head.length;
    if (lane->how != LANE_PASS)
        measure_body(lane);
    return 0;
}

/* The frame's head is done with; its payload may be empty. */
static int end_head(struct lane *lane)
{
    if (lane->left > 0)
        return 0;
    return end_frame(lane, lane->how == LANE_GATHER ? lane->carry : NULL);
}

/* A frame whose head lies in one piece. How many bytes were taken, or a negative code. */
static ssize_t take_head(struct lane *lane, const uint8_t *bytes, size_t len)
{
    int r = begin_frame(lane, bytes);

    if (r < 0)
        return r;
    if (lane->how == LANE_GATHER && len - FRAME_HEAD_BYTES >= lane->left) {
        r = end_frame(lane, bytes);
        return r < 0 ? r : (ssize_t)(FRAME_HEAD_BYTES + lane->left);
    }
    if (lane->how == LANE_GATHER) {
        memcpy(lane->carry, bytes, FRAME_HEAD_BYTES);
        lane->carry_len = FRAME_HEAD_BYTES;
    } else if (lane->how != LANE_KEEP) {
        add_piece(lane, bytes, FRAME_HEAD_BYTES);
    }
    r = end_head(lane);
    return r < 0 ? r : FRAME_HEAD_BYTES;
}

/* The same of a head that comes in parts. */
static ssize_t carry_head(struct lane *lane, const uint8_t *bytes, size_t len)
{
    size_t n = FRAME_HEAD_BYTES - lane->carry_len;
    int r;

    n = n < len ? n : len;
    memcpy(lane->carry + lane->carry_len, bytes, n);
    lane->carry_len += n;
    if (lane->carry_len < FRAME_HEAD_BYTES)
        return (ssize_t)n;
    r = begin_frame(lane, lane->carry);
    if (r < 0)
        return r;
    if (lane->how == LANE_PASS || lane->how == LANE_TAP)
        pass_carry(lane, FRAME_HEAD_BYTES);
    if (lane->how != LANE_GATHER)
        lane->carry_len = 0;
    r = end_head(lane);
    return r < 0 ? r : (ssize_t)n;
}

/* Walks over whole frames as long as they pass and nobody looks, or only at a block, and takes the
 * head at which that ends. How many bytes were taken, or a negative code. */
static ssize_t take_run(struct lane *lane, const uint8_t *bytes, size_t len)
{
    const uint8_t *at = bytes, *end = bytes + len;
    bool on = lane->begun && !lane->in_block && buffer_len(&lane->inject) == 0;
    bool at_head = !on;
    ssize_t r = 0;

    while (on && (size_t)(end - at) >= FRAME_HEAD_BYTES) {
        const uint8_t *body = at + FRAME_HEAD_BYTES;
        struct frame_head h;

        frame_head_read(at, &h);
        at_head = h.length > (size_t)(end - body);
        if (at_head)
            break;
        if (passes(lane, &h)) {
            count_passed(lane, &h);
        } else if (!is_block(lane, &h)) {
            at_head = true;
            break;
        } else if (!block_passes(lane, &h, body)) {
            r = show_block(lane, &h, body);
            on = r == 0 && buffer_len(&lane->inject) == 0;
        }
        at = body + h.length;
    }
    add_piece(lane, bytes, (size_t)(at - bytes));
    if (r == 0)
        lane_flush(lane);
    if (r == 0 && at_head)
        r = take_head(lane, at, (size_t)(end - at));
    return r < 0 ? r : at - bytes + r;
}

static ssize_t take_frames(struct lane *lane, const uint8_t *bytes, size_t len)
{
    return lane->carry_len > 0 || len < FRAME_HEAD_BYTES ? carry_head(lane, bytes, len)
                                                         : take_run(lane, bytes, len);
}

static ssize_t take_payload(struct lane *lane, const uint8_t *bytes, size_t len)
{
    size_t n = len < lane->left ? len : lane->left;
    int r = 0;

    lane->looked = lane->looked || lane->how != LANE_PASS;
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

    lane->looked = lane->looked || !lane->begun;
    while (len > 0) {
        n = lane->within ? take_payload(lane, bytes, len) : take_frames(lane, bytes, len);
        if (n < 0)
            break;
        bytes += n;
        len -= (size_t)n;
    }
    write_pieces(lane);
    return n < 0 ? (int)n : 0;
}

struct lane_place lane_place(const struct lane *lane)
{
    struct lane_place place = {.left = lane->left,
                               .head = lane->head,
                               .how = (uint8_t)lane->how,
                               .within = lane->within,
                               .carry_len = (uint8_t)lane->carry_len};

    memcpy(place.carry, lane->carry, sizeof place.carry);
    return place;
}

int lane_put(struct lane *lane, const struct lane_place *place)
{
    if (!lane->begun || (lane->in_block && place->within) ||
        (lane->within && lane->how != LANE_PASS))
        return -EPROTO;
    if (place->how > LANE_GATHER || place->within > 1 || place->carry_len >= FRAME_HEAD_BYTES ||
        place->head.stream_id > FRAME_STREAM_ID_MAX)
        return -EPROTO;
    if (place->within && (place->how != LANE_PASS || place->carry_len > 0 || place->left == 0 ||
                          place->left > place->head.length || place->head.length > FRAME_BYTES_MAX))
        return -EPROTO;
    lane->left = place->left;
    lane->head = place->head;
    lane->how = (enum lane_how)place->how;
    lane->within = place->within;
    lane->carry_len = place->carry_len;
    memcpy(lane->carry, place->carry, sizeof place->carry);
    return 0;
}
