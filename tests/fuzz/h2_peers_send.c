#include "tests/fuzz/h2_peers_state.h"

#include <string.h>

#include <zlib.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/session_probe.h"

#define GZIP_WINDOW_BITS (15 + 16)
#define PIECES_MAX 7
/* More than the smallest buffer holds. */
#define TAIL_BYTES 300
#define LAYOUT_PADDED 0x08
#define LAYOUT_PRIORITY 0x10
#define STATUS_OF_RUNTIME "0" /* PEER_STATUS */

static enum session_end other_end(enum session_end end)
{
    return end == SESSION_CLIENT ? SESSION_RUNTIME : SESSION_CLIENT;
}

/* ---- frames ---- */

void peers_begin(struct peers *p, enum session_end end)
{
    if (p->ends[end].begun)
        return;
    p->ends[end].begun = true;
    peers_settings(p, end, PEER_UNKNOWN, 0, 0);
}

void peers_send_rest(struct peers *p, enum session_end end)
{
    struct peer *peer = &p->ends[end];

    if (buffer_len(&peer->rest) == 0)
        return;
    run_feed(&p->run, end, buffer_data(&peer->rest), buffer_len(&peer->rest));
    buffer_fini(&peer->rest);
}

void peers_feed(struct peers *p, enum session_end end, const struct buffer *frames)
{
    struct peer *peer = &p->ends[end];
    size_t len = buffer_len(frames);
    size_t now;

    peers_begin(p, end);
    peers_send_rest(p, end);
    now = peer->cut > 0 && peer->cut < len ? peer->cut : len;
    run_feed(&p->run, end, buffer_data(frames), now);
    peer_put(&peer->rest, buffer_data(frames) + now, len - now);
    peer->cut = 0;
    FUZZ_CHECK(p->wild || p->run.error == 0, "%s", session_error(p->run.session));
}

void peer_put_head(struct buffer *out, size_t len, uint8_t type, uint8_t flags, uint32_t stream)
{
    uint8_t head[FRAME_HEAD_BYTES] = {(uint8_t)(len >> 16),
                                      (uint8_t)(len >> 8),
                                      (uint8_t)len,
                                      type,
                                      flags,
                                      (uint8_t)(stream >> 24),
                                      (uint8_t)(stream >> 16),
                                      (uint8_t)(stream >> 8),
                                      (uint8_t)stream};

    peer_put(out, head, sizeof head);
}

void peer_put_u32(struct buffer *out, uint32_t value)
{
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                        (uint8_t)value};

    peer_put(out, bytes, sizeof bytes);
}

/* One frame with padding and priority as the layout says. */
static void put_laid_out(struct buffer *out, uint8_t type, uint8_t flags, uint32_t stream,
                         const uint8_t *body, size_t len, unsigned layout)
{
    static const uint8_t zeros[256];
    uint8_t pad = layout & LAYOUT_PADDED ? (uint8_t)(layout >> 1 & 0x7f) : 0;
    bool priority = type == FRAME_HEADERS && layout & LAYOUT_PRIORITY;
    bool padded = layout & LAYOUT_PADDED && type != FRAME_CONTINUATION;
    size_t extra = (padded ? 1u + pad : 0u) + (priority ? 5u : 0u);

    flags |= (uint8_t)((padded ? FRAME_FLAG_PADDED : 0) | (priority ? FRAME_FLAG_PRIORITY : 0));
    peer_put_head(out, len + extra, type, flags, stream);
    if (padded)
        peer_put(out, &pad, 1);
    if (priority)
        peer_put(out, "\0\0\0\0\7", 5);
    peer_put(out, body, len);
    if (padded)
        peer_put(out, zeros, pad);
}

static void put_block(struct buffer *out, uint32_t stream, bool ends, const uint8_t *block,
                      size_t len, unsigned layout)
{
    unsigned pieces = 1 + (layout & PIECES_MAX);

    for (unsigned i = 0; i < pieces; i++) {
        size_t from = len * i / pieces, to = len * (i + 1) / pieces;
        uint8_t flags = i + 1 == pieces ? FRAME_FLAG_END_HEADERS : 0;

        if (i == 0 && ends)
            flags |= FRAME_FLAG_END_STREAM;
        put_laid_out(out, i == 0 ? FRAME_HEADERS : FRAME_CONTINUATION, flags, stream, block + from,
                     to - from, layout);
    }
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void send_block(struct peers *p, enum session_end end, uint32_t stream, bool ends,
                       const nghttp2_nv *fields, size_t fields_len, unsigned layout)
{
    uint8_t block[1024];
    struct buffer out = {0};
    ssize_t len =
        nghttp2_hd_deflate_hd(p->ends[end].deflater, block, sizeof block, fields, fields_len);

    if (len < 0)
        abort();
    put_block(&out, stream, ends, block, (size_t)len, layout);
    peers_feed(p, end, &out);
    buffer_fini(&out);
}

/* ---- requests ---- */

const char *peer_path(enum peer_kind kind, uint32_t id)
{
    static const char *const observed[] = {
        "/runtime.v1.RuntimeService/RunPodSandbox", "/runtime.v1.RuntimeService/StopPodSandbox",
        "/runtime.v1.RuntimeService/RemovePodSandbox", "/runtime.v1.RuntimeService/RemoveContainer",
        "/runtime.v1.RuntimeService/GetContainerEvents"};

    switch (kind) {
    case PEER_CREATE:
        return "/runtime.v1.RuntimeService/CreateContainer";
    case PEER_OBSERVED:
        return observed[id / 2 % 5];
    case PEER_LIST:
        return "/runtime.v1.RuntimeService/ListContainers";
    case PEER_OTHER:
        break;
    }
    return "/runtime.v1.RuntimeService/Version";
}

void peer_pattern(uint8_t *bytes, size_t len, uint32_t seed)
{
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < 61 ? len - at : 61;
        memset(bytes + at, (int)(seed + at / 61 & 0xff), n);
    }
}

static size_t pack(const uint8_t *plain, size_t len, uint8_t *out, size_t room)
{
    z_stream stream = {.next_in = (uint8_t *)plain, .avail_in = (uInt)len};

    if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&stream);
    return room - stream.avail_out;
}

static void make_body(struct peer_stream *st, unsigned style, size_t bytes)
{
    uint8_t *plain = malloc(2 * bytes + 128);
    uint8_t *packed = plain + bytes;
    uint8_t head[PEER_MESSAGE_HEAD_BYTES] = {0}, tail[TAIL_BYTES];
    const uint8_t *message = plain;
    size_t announced;

    if (!plain)
        abort();
    peer_pattern(plain, bytes, st->id);
    if (style & (PEER_GZIP | PEER_UNREADABLE)) {
        head[0] = 1;
        bytes = pack(plain, bytes, packed, bytes + 128);
        message = packed;
        if (style & PEER_CORRUPT)
            packed[0] ^= 1;
    }
    announced = style & PEER_TOO_LARGE ? SESSION_PROBE_MESSAGE_BYTES_MAX + 1 : bytes;
    head[1] = (uint8_t)(announced >> 24);
    head[2] = (uint8_t)(announced >> 16);
    head[3] = (uint8_t)(announced >> 8);
    head[4] = (uint8_t)announced;
    peer_put(&st->body, head, sizeof head);
    peer_put(&st->body, message, bytes);
    if (style & PEER_TAIL) {
        peer_pattern(tail, sizeof tail, ~st->id);
        peer_put(&st->body, tail, sizeof tail);
    }
    free(plain);
}

void peers_open(struct peers *p, enum peer_kind kind, unsigned style, size_t message_bytes,
                unsigned layout)
{
    nghttp2_nv fields[8];
    struct peer_stream *st;
    size_t n = 0;

    if (p->streams_len == PEERS_STREAMS_MAX)
        return;
    if (p->body_bytes + message_bytes > PEER_BODY_BYTES_MAX)
        message_bytes = 0;
    p->body_bytes += message_bytes;
    st = &p->streams[p->streams_len++];
    *st = (struct peer_stream){.id = (uint32_t)(2 * p->streams_len - 1), .kind = kind};
    st->message_bytes = message_bytes;
    make_body(st, style, message_bytes);
    fields[n++] = field(":method", "POST");
    fields[n++] = field(":scheme", "http");
    fields[n++] = field(":path", peer_path(kind, st->id));
    fields[n++] = field(":authority", "localhost");
    fields[n++] = field("content-type", "application/grpc");
    fields[n++] = field("te", "trailers");
    if (style & (PEER_GZIP | PEER_UNREADABLE))
        fields[n++] = field("grpc-encoding", style & PEER_GZIP ? "gzip" : "zstd");
    if (style & PEER_TIMEOUT)
        fields[n++] = field("grpc-timeout", "1999950u");
    send_block(p, SESSION_CLIENT, st->id, false, fields, n, layout);
}

int64_t peers_room(const struct peers *p, const struct peer_stream *st)
{
    int64_t room = p->client_initial + st->credit;

    room = room < p->client_window ? room : p->client_window;
    return room < p->client_frame ? room : p->client_frame;
}

bool peer_may_send(const struct peer_stream *st)
{
    return !st->ended && !st->reset && !st->closed;
}

void peers_send_body(struct peers *p, struct peer_stream *st, size_t bytes, bool end,
                     unsigned layout)
{
    int64_t room = peers_room(p, st);
    size_t left = buffer_len(&st->body) - st->sent;
    struct buffer out = {0};
    size_t payload;

    if (!peer_may_send(st))
        return;
    if (room < 1 + 127)
        layout &= ~(unsigned)LAYOUT_PADDED;
    else if (layout & LAYOUT_PADDED)
        room -= 1 + 127;
    bytes = bytes < left ? bytes : left;
    bytes = (int64_t)bytes <= room ? bytes : room > 0 ? (size_t)room : 0;
    put_laid_out(&out, FRAME_DATA, end ? FRAME_FLAG_END_STREAM : 0, st->id,
                 buffer_data(&st->body) + st->sent, bytes, layout);
    payload = buffer_len(&out) - FRAME_HEAD_BYTES;
    st->sent += bytes;
    st->ended = end;
    st->late = st->late || st->runtime_reset;
    st->credit -= (int64_t)payload;
    p->client_window -= (int64_t)payload;
    peers_feed(p, SESSION_CLIENT, &out);
    buffer_fini(&out);
}

void peers_send_data(struct peers *p, size_t stream, size_t bytes, bool end, unsigned layout)
{
    if (p->streams_len > 0)
        peers_send_body(p, &p->streams[stream % p->streams_len], bytes, end, layout);
}

void peers_send_trailers(struct peers *p, size_t stream, unsigned layout)
{
    struct peer_stream *st = p->streams_len > 0 ? &p->streams[stream % p->streams_len] : NULL;
    nghttp2_nv fields[] = {field("x-client", "done")};

    if (!st || !peer_may_send(st))
        return;
    st->ended = st->trailers = true;
    send_block(p, SESSION_CLIENT, st->id, true, fields, 1, layout);
}

/* ---- answers ---- */

struct peer_stream *peers_answerable(struct peers *p, size_t stream)
{
    struct peer_stream *st = p->streams_len > 0 ? &p->streams[stream % p->streams_len] : NULL;

    return st && st->seen && !st->cancelled && !peers_over(p, st) ? st : NULL;
}

static void answer(struct peers *p, struct peer_stream *st, unsigned layout)
{
    nghttp2_nv fields[] = {field(":status", "200"), field("content-type", "application/grpc"),
                           field("x-runtime", st->id % 4 == 1 ? "one" : "another")};

    st->response_begun = true;
    send_block(p, SESSION_RUNTIME, st->id, false, fields, 3, layout);
}

void peers_answer(struct peers *p, size_t stream, unsigned layout)
{
    struct peer_stream *st = peers_answerable(p, stream);

    if (st && !st->response_begun)
        answer(p, st, layout);
}

void peers_answer_data(struct peers *p, size_t stream, size_t bytes, bool end, unsigned layout)
{
    struct peer_stream *st = peers_answerable(p, stream);
    uint8_t body[PEER_FRAME_PAYLOAD_MAX - 256];
    struct buffer out = {0};

    if (!st || !st->response_begun)
        return;
    bytes = bytes < sizeof body ? bytes : sizeof body;
    peer_pattern(body, bytes, (uint32_t)buffer_len(&st->response));
    peer_put(&st->response, body, bytes);
    put_laid_out(&out, FRAME_DATA, end ? FRAME_FLAG_END_STREAM : 0, st->id, body, bytes, layout);
    st->response_ended = end;
    peers_feed(p, SESSION_RUNTIME, &out);
    buffer_fini(&out);
}

void peers_send_answer_end(struct peers *p, struct peer_stream *st, unsigned layout)
{
    nghttp2_nv trailers[] = {field("grpc-status", STATUS_OF_RUNTIME), field("x-end", "runtime")};
    nghttp2_nv only[] = {field(":status", "200"), field("content-type", "application/grpc"),
                         field("grpc-status", STATUS_OF_RUNTIME), field("x-end", "runtime")};
    bool begun = st->response_begun;

    st->response_begun = st->response_ended = true;
    send_block(p, SESSION_RUNTIME, st->id, true, begun ? trailers : only, begun ? 2 : 4, layout);
}

void peers_answer_end(struct peers *p, size_t stream, unsigned layout)
{
    struct peer_stream *st = peers_answerable(p, stream);

    if (st)
        peers_send_answer_end(p, st, layout);
}

/* ---- other frames ---- */

void peers_send_reset(struct peers *p, enum session_end end, struct peer_stream *st, uint32_t code)
{
    struct buffer out = {0};

    if (end == SESSION_CLIENT)
        st->reset = true;
    else
        st->runtime_reset = true;
    peer_put_head(&out, 4, FRAME_RST_STREAM, 0, st->id);
    peer_put_u32(&out, code);
    peers_feed(p, end, &out);
    buffer_fini(&out);
}

void peers_reset(struct peers *p, enum session_end end, size_t stream, uint32_t code)
{
    struct peer_stream *st = p->streams_len > 0 ? &p->streams[stream % p->streams_len] : NULL;

    if (!st)
        return;
    if (end == SESSION_CLIENT ? !st->reset && !st->closed && !(st->ended && st->answered)
                              : st->seen && !st->cancelled && !st->runtime_reset)
        peers_send_reset(p, end, st, code);
}

void peers_window(struct peers *p, enum session_end end, size_t stream, uint32_t bytes)
{
    struct peer_stream *st = stream < p->streams_len ? &p->streams[stream] : NULL;
    struct buffer out = {0};

    if (bytes == 0 || (stream < PEERS_STREAMS_MAX && !st))
        return;
    if (end == SESSION_RUNTIME && st) {
        if (!st->seen || st->cancelled || st->runtime_reset || st->granted + bytes > INT32_MAX / 4)
            return;
        st->granted += bytes;
    } else if (end == SESSION_RUNTIME) {
        if (p->runtime_window + bytes > INT32_MAX)
            return;
        p->runtime_window += bytes;
    } else if (st && (st->reset || st->closed)) {
        return;
    }
    peer_put_head(&out, 4, FRAME_WINDOW_UPDATE, 0, st ? st->id : 0);
    peer_put_u32(&out, bytes);
    peers_feed(p, end, &out);
    buffer_fini(&out);
}

static void send_verbatim(struct peers *p, enum session_end end, const struct buffer *frame)
{
    peers_begin(p, end);
    peer_put(&p->ends[other_end(end)].verbatim, buffer_data(frame), buffer_len(frame));
    peers_feed(p, end, frame);
}

static void put_setting(struct buffer *out, unsigned id, uint32_t value)
{
    uint8_t bytes[2] = {(uint8_t)(id >> 8), (uint8_t)id};

    peer_put(out, bytes, sizeof bytes);
    peer_put_u32(out, value);
}

void peers_settings(struct peers *p, enum session_end end, unsigned which, uint32_t table_bytes,
                    uint32_t window_bytes)
{
    struct peer *peer = &p->ends[end];
    struct peer_settings settings = {which & PEER_TABLE, which & PEER_WINDOW, table_bytes,
                                     window_bytes};
    struct buffer entries = {0}, out = {0};

    peers_begin(p, end);
    if (which & PEER_UNKNOWN)
        put_setting(&entries, 0xf00d, window_bytes);
    if ((which & (PEER_TABLE | PEER_TABLE_EMPTIED)) == (PEER_TABLE | PEER_TABLE_EMPTIED))
        put_setting(&entries, FRAME_SETTING_HEADER_TABLE_SIZE, 0);
    if (which & PEER_TABLE)
        put_setting(&entries, FRAME_SETTING_HEADER_TABLE_SIZE, table_bytes);
    if (which & PEER_WINDOW)
        put_setting(&entries, FRAME_SETTING_INITIAL_WINDOW_SIZE, window_bytes);
    if (which & PEER_FRAMES)
        put_setting(&entries, FRAME_SETTING_MAX_FRAME_SIZE,
                    table_bytes > PEER_FRAME_PAYLOAD_MAX ? table_bytes : PEER_FRAME_PAYLOAD_MAX);
    if (buffer_len(&entries) > 0 && peer->unacked_len < PEER_SETTINGS_MAX) {
        peer->unacked[peer->unacked_len++] = settings;
        peer_put_head(&out, buffer_len(&entries), FRAME_SETTINGS, 0, 0);
        peer_put(&out, buffer_data(&entries), buffer_len(&entries));
        send_verbatim(p, end, &out);
    }
    buffer_fini(&entries);
    buffer_fini(&out);
}

void peers_extra(struct peers *p, enum session_end end, unsigned type, size_t bytes)
{
    static const uint8_t zeros[64];
    struct buffer out = {0};

    switch (type % 3) {
    case 0:
        peer_put_head(&out, 8, FRAME_PING, 0, 0);
        peer_put_u32(&out, 0);
        peer_put_u32(&out, ++p->pings);
        break;
    case 1:
        peer_put_head(&out, 5, FRAME_PRIORITY, 0, (uint32_t)(1 + bytes % 7));
        peer_put(&out, zeros, 5);
        break;
    default:
        peer_put_head(&out, bytes % sizeof zeros, (uint8_t)(0x10 | type), (uint8_t)bytes,
                      (uint32_t)(bytes % 5));
        peer_put(&out, zeros, bytes % sizeof zeros);
        break;
    }
    send_verbatim(p, end, &out);
    buffer_fini(&out);
}

void peers_goaway(struct peers *p)
{
    struct buffer out = {0};
    uint32_t last = 0;

    for (size_t i = 0; i < p->streams_len; i++)
        last = p->streams[i].seen ? p->streams[i].id : last;
    if (last >= p->goaway_last)
        return;
    p->goaway_last = last;
    peer_put_head(&out, 8 + 3, FRAME_GOAWAY, 0, 0);
    peer_put_u32(&out, last);
    peer_put_u32(&out, FRAME_NO_ERROR);
    peer_put(&out, "bye", 3);
    send_verbatim(p, SESSION_RUNTIME, &out);
    buffer_fini(&out);
}

void peers_set_class(struct peers *p, enum peer_kind kind, enum cri_method_class class)
{
    run_set_class(&p->run, kind == PEER_LIST ? CRI_LIST_CONTAINERS : CRI_VERSION, class);
}

void peers_drain(struct peers *p)
{
    p->drains += run_drain(&p->run);
}

void peers_send_raw(struct peers *p, enum session_end end, const uint8_t *bytes, size_t len)
{
    p->wild = true;
    peers_send_rest(p, end);
    run_feed(&p->run, end, bytes, len);
}

void peers_cut(struct peers *p, enum session_end end, size_t bytes)
{
    p->ends[end].cut = bytes;
}
