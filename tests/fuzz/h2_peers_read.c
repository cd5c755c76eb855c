#include "tests/fuzz/h2_peers_state.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

/* ---- reading ---- */

static void take_field(struct peer *peer, const nghttp2_nv *nv)
{
    if (nv->namelen == 5 && memcmp(nv->name, ":path", 5) == 0)
        snprintf(peer->path, sizeof peer->path, "%.*s", (int)nv->valuelen, (char *)nv->value);
    if (nv->namelen == 11 && memcmp(nv->name, "grpc-status", 11) == 0)
        peer->status = atoi((char *)nv->value);
}

static void decode_block(struct peer *peer)
{
    const uint8_t *at = buffer_data(&peer->block);
    size_t left = buffer_len(&peer->block);

    peer->path[0] = '\0';
    peer->status = -1;
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(peer->inflater, &nv, &flags, at, left, 1);

        FUZZ_CHECK(n >= 0, "a header block of stream %u does not decode: %s",
                   peer->block_head.stream_id, nghttp2_strerror((int)n));
        at += n;
        left -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            take_field(peer, &nv);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
    }
    nghttp2_hd_inflate_end_headers(peer->inflater);
    buffer_fini(&peer->block);
}

/* Compares with what the other end sent of this kind. */
static void expect_verbatim(struct peer *peer, const uint8_t *frame, size_t len)
{
    FUZZ_CHECK(buffer_len(&peer->verbatim) >= len &&
                   memcmp(buffer_data(&peer->verbatim), frame, len) == 0,
               "a frame of type %u nobody sent", frame[3]);
    buffer_consume(&peer->verbatim, len);
}

static void send_ack(struct peers *p, enum session_end end)
{
    struct buffer out = {0};

    peer_put_head(&out, 0, FRAME_SETTINGS, FRAME_FLAG_ACK, 0);
    peers_feed(p, end, &out);
    buffer_fini(&out);
}

static void apply_settings(struct peers *p, enum session_end end, const uint8_t *payload,
                           size_t len)
{
    for (size_t i = 0; i < len; i += 6) {
        unsigned id = (unsigned)payload[i] << 8 | payload[i + 1];
        uint32_t value = frame_read_u32(payload + i + 2);

        if (id == FRAME_SETTING_HEADER_TABLE_SIZE &&
            nghttp2_hd_deflate_change_table_size(p->ends[end].deflater, value) != 0)
            abort();
        if (id == FRAME_SETTING_INITIAL_WINDOW_SIZE && end == SESSION_CLIENT)
            p->client_initial = value;
        if (id == FRAME_SETTING_MAX_FRAME_SIZE && end == SESSION_CLIENT)
            p->client_frame = value;
    }
}

static void read_settings(struct peers *p, enum session_end end, const struct frame_head *h,
                          const uint8_t *frame)
{
    struct peer *peer = &p->ends[end];
    struct peer_settings acked;

    if (!(h->flags & FRAME_FLAG_ACK)) {
        if (h->length > 0) /* an empty one is a barrier of the session's */
            expect_verbatim(peer, frame, FRAME_HEAD_BYTES + h->length);
        apply_settings(p, end, frame + FRAME_HEAD_BYTES, h->length);
        send_ack(p, end);
        return;
    }
    FUZZ_CHECK(peer->unacked_len > 0, "an ACK of nothing to end %d", end);
    acked = peer->unacked[0];
    memmove(peer->unacked, peer->unacked + 1, --peer->unacked_len * sizeof acked);
    if (acked.has_table && nghttp2_hd_inflate_change_table_size(peer->inflater, acked.table) != 0)
        abort();
    if (acked.has_window && end == SESSION_RUNTIME)
        p->runtime_initial = acked.window;
}

/* Of what the runtime has said, the client may still go by the largest. */
static int64_t runtime_initial(const struct peers *p)
{
    const struct peer *peer = &p->ends[SESSION_RUNTIME];
    int64_t initial = p->runtime_initial;

    for (size_t i = 0; i < peer->unacked_len; i++) {
        if (peer->unacked[i].has_window && peer->unacked[i].window > initial)
            initial = peer->unacked[i].window;
    }
    return initial;
}

/* The body of a DATA frame without its padding. */
static const uint8_t *body_of(const struct frame_head *h, const uint8_t *payload, size_t *len)
{
    bool padded = h->flags & FRAME_FLAG_PADDED;

    *len = padded ? h->length - 1 - payload[0] : h->length;
    return padded ? payload + 1 : payload;
}

/* ---- the runtime reads ---- */

/* Compares `len` bytes at `at` of the request as the runtime is to see it; how many of them. */
static size_t expect_part(const struct peer_stream *st, size_t at, const uint8_t *body, size_t len)
{
    size_t changed = buffer_len(&st->rewritten);
    const struct buffer *from = at < changed ? &st->rewritten : &st->body;
    size_t offset = at < changed ? at : at - changed + st->replaced;
    size_t there = at < changed ? changed : st->sent;
    size_t n;

    FUZZ_CHECK(offset < there, "stream %u: byte %zu was never sent", st->id, at);
    n = len < there - offset ? len : there - offset;
    FUZZ_CHECK(memcmp(body, buffer_data(from) + offset, n) == 0, "stream %u: %zu bytes at %zu",
               st->id, n, at);
    return n;
}

static void expect_body(const struct peer_stream *st, const uint8_t *body, size_t len)
{
    for (size_t done = 0; done < len;)
        done += expect_part(st, st->received + done, body + done, len - done);
}

static void runtime_data(struct peers *p, const struct frame_head *h, const uint8_t *payload)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);
    const uint8_t *body;
    size_t len;

    FUZZ_CHECK(st && st->seen, "DATA on stream %u", h->stream_id);
    FUZZ_CHECK(h->length <= p->runtime_window || h->length == 0,
               "%u bytes on a connection with %lld", h->length, (long long)p->runtime_window);
    p->runtime_window -= h->length;
    if (st->id > p->goaway_last)
        return;
    FUZZ_CHECK(!st->cancelled && !st->request_ended, "DATA behind the end of stream %u", st->id);
    if (st->runtime_reset)
        return;
    st->granted -= h->length;
    FUZZ_CHECK(h->length == 0 || st->granted + runtime_initial(p) >= 0,
               "stream %u: %lld over its window", st->id,
               (long long)-(st->granted + runtime_initial(p)));
    if (st->response_ended) /* what comes now is not looked at */
        return;
    body = body_of(h, payload, &len);
    if (!st->trailers)
        expect_body(st, body, len);
    FUZZ_CHECK(!st->refused, "a refused request goes on");
    st->received += len;
    st->request_ended = h->flags & FRAME_FLAG_END_STREAM;
}

static void runtime_headers(struct peers *p, const struct frame_head *h)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);

    FUZZ_CHECK(st, "HEADERS on stream %u", h->stream_id);
    FUZZ_CHECK(!st->seen || st->trailers, "HEADERS twice on stream %u", st->id);
    if (!st->seen)
        FUZZ_CHECK(strcmp(p->ends[SESSION_RUNTIME].path, peer_path(st->kind, st->id)) == 0, "%s",
                   p->ends[SESSION_RUNTIME].path);
    st->seen = true;
    if (h->flags & FRAME_FLAG_END_STREAM)
        st->request_ended = true;
}

static void runtime_frame(struct peers *p, const struct frame_head *h, const uint8_t *frame)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);

    switch (h->type) {
    case FRAME_DATA:
        runtime_data(p, h, frame + FRAME_HEAD_BYTES);
        return;
    case FRAME_RST_STREAM:
        /* After the session's own the client's may come, which does no harm. */
        FUZZ_CHECK(st && st->seen && (!st->cancelled || st->reset), "RST_STREAM on stream %u",
                   h->stream_id);
        st->cancelled = true;
        return;
    case FRAME_WINDOW_UPDATE:
        return;
    default:
        expect_verbatim(&p->ends[SESSION_RUNTIME], frame, FRAME_HEAD_BYTES + h->length);
        return;
    }
}

/* ---- the client reads ---- */

static void client_end(struct peer_stream *st, bool by_status, int status)
{
    FUZZ_CHECK(!st->answered && !st->closed, "stream %u: two ends", st->id);
    st->answered = true;
    if (!by_status || status == PEER_STATUS)
        FUZZ_CHECK(st->response_ended && st->response_read == buffer_len(&st->response),
                   "stream %u: %zu of %zu bytes of the answer", st->id, st->response_read,
                   buffer_len(&st->response));
    else
        FUZZ_CHECK(!st->refused || status == st->code, "stream %u: status %d, not %d", st->id,
                   status, st->code);
}

static void client_headers(struct peers *p, const struct frame_head *h)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);

    FUZZ_CHECK(st, "HEADERS on stream %u", h->stream_id);
    if (st->reset)
        return;
    FUZZ_CHECK(!st->answered && !st->closed, "HEADERS behind the end of stream %u", st->id);
    if (h->flags & FRAME_FLAG_END_STREAM) {
        FUZZ_CHECK(p->ends[SESSION_CLIENT].status >= 0, "stream %u ends without a status", st->id);
        client_end(st, true, p->ends[SESSION_CLIENT].status);
    }
}

static void client_data(struct peers *p, const struct frame_head *h, const uint8_t *payload)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);
    const uint8_t *body;
    size_t len;

    FUZZ_CHECK(st, "DATA on stream %u", h->stream_id);
    if (st->reset)
        return;
    FUZZ_CHECK(!st->answered && !st->closed, "DATA behind the end of stream %u", st->id);
    body = body_of(h, payload, &len);
    FUZZ_CHECK(st->response_read + len <= buffer_len(&st->response), "stream %u", st->id);
    FUZZ_CHECK(len == 0 || memcmp(body, buffer_data(&st->response) + st->response_read, len) == 0,
               "stream %u: other bytes", st->id);
    st->response_read += len;
    if (h->flags & FRAME_FLAG_END_STREAM)
        client_end(st, false, 0);
}

static void client_window(struct peers *p, const struct frame_head *h, const uint8_t *payload)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);
    uint32_t bytes = frame_read_u32(payload);

    FUZZ_CHECK(bytes > 0 && bytes <= INT32_MAX, "an update of %u", bytes);
    if (h->stream_id == 0) {
        p->client_window += bytes;
        FUZZ_CHECK(p->client_window <= INT32_MAX, "the connection's window overflows");
        return;
    }
    FUZZ_CHECK(st, "WINDOW_UPDATE on stream %u", h->stream_id);
    st->credit += bytes;
    FUZZ_CHECK(st->credit + p->client_initial <= INT32_MAX, "the window of stream %u overflows",
               st->id);
}

static void client_frame(struct peers *p, const struct frame_head *h, const uint8_t *frame)
{
    struct peer_stream *st = peers_stream(p, h->stream_id);

    switch (h->type) {
    case FRAME_DATA:
        client_data(p, h, frame + FRAME_HEAD_BYTES);
        return;
    case FRAME_RST_STREAM:
        FUZZ_CHECK(st, "RST_STREAM on stream %u", h->stream_id);
        /* Late DATA may be answered by another one (RFC 9113 §5.4.2). */
        FUZZ_CHECK(st->reset || !st->closed || st->late, "two RST_STREAM on stream %u",
                   h->stream_id);
        st->late = st->late && !st->closed;
        st->closed = true;
        return;
    case FRAME_WINDOW_UPDATE:
        client_window(p, h, frame + FRAME_HEAD_BYTES);
        return;
    case FRAME_GOAWAY:
        FUZZ_CHECK(frame_read_u32(frame + FRAME_HEAD_BYTES) <= p->goaway_read,
                   "a GOAWAY's last stream rises");
        p->goaway_read = frame_read_u32(frame + FRAME_HEAD_BYTES);
        if (p->drains > 0 && h->length == 8) { /* the runtime's are longer */
            p->drains--;
            return;
        }
        expect_verbatim(&p->ends[SESSION_CLIENT], frame, FRAME_HEAD_BYTES + h->length);
        return;
    default:
        expect_verbatim(&p->ends[SESSION_CLIENT], frame, FRAME_HEAD_BYTES + h->length);
        return;
    }
}

/* ---- reading a frame ---- */

static void read_block(struct peers *p, enum session_end end, const struct frame_head *h,
                       const uint8_t *payload)
{
    struct peer *peer = &p->ends[end];
    size_t skip = 0, pad = 0;

    if (h->type == FRAME_HEADERS) {
        peer->block_head = *h;
        skip = (h->flags & FRAME_FLAG_PADDED ? 1 : 0) + (h->flags & FRAME_FLAG_PRIORITY ? 5 : 0);
        pad = h->flags & FRAME_FLAG_PADDED ? payload[0] : 0;
    }
    peer_put(&peer->block, payload + skip, h->length - skip - pad);
    if (!(h->flags & FRAME_FLAG_END_HEADERS))
        return;
    decode_block(peer);
    if (end == SESSION_CLIENT)
        client_headers(p, &peer->block_head);
    else
        runtime_headers(p, &peer->block_head);
}

static bool read_frame(struct peers *p, enum session_end end)
{
    struct peer *peer = &p->ends[end];
    size_t len = buffer_len(&p->run.out[end]);
    struct frame_head h;
    uint8_t *frame;

    if (end == SESSION_RUNTIME && peer->read == 0) {
        if (len < FRAME_PREFACE_BYTES)
            return false;
        peer->read = FRAME_PREFACE_BYTES;
    }
    if (len - peer->read < FRAME_HEAD_BYTES)
        return false;
    frame_head_read(buffer_data(&p->run.out[end]) + peer->read, &h);
    if (len - peer->read < FRAME_HEAD_BYTES + h.length)
        return false;
    /* A copy: what is sent meanwhile may move the output. */
    frame = malloc(FRAME_HEAD_BYTES + h.length);
    if (!frame)
        abort();
    memcpy(frame, buffer_data(&p->run.out[end]) + peer->read, FRAME_HEAD_BYTES + h.length);
    FUZZ_CHECK(peer->heard || (h.type == FRAME_SETTINGS && !(h.flags & FRAME_FLAG_ACK)),
               "the first frame to end %d is of type %u", end, h.type);
    peer->heard = true;
    peer->read += FRAME_HEAD_BYTES + h.length;
    if (h.type == FRAME_HEADERS || h.type == FRAME_CONTINUATION)
        read_block(p, end, &h, frame + FRAME_HEAD_BYTES);
    else if (h.type == FRAME_SETTINGS)
        read_settings(p, end, &h, frame);
    else if (end == SESSION_CLIENT)
        client_frame(p, &h, frame);
    else
        runtime_frame(p, &h, frame);
    free(frame);
    return true;
}

void peers_read(struct peers *p, enum session_end end, size_t frames)
{
    while (frames-- > 0 && !p->wild && read_frame(p, end))
        ;
}
