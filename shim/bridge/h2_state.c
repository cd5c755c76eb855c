#include "shim/bridge/h2_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "shim/bridge/h2_put.h"
#include "shim/must.h"

#define WINDOW_DEFAULT 65535
#define WINDOW_MAX INT64_C(0x7fffffff)
/* Granted: bytes are taken as they come, and credited soon. */
#define WINDOW_BYTES (4 * 1024 * 1024)

static const char PREFACE[] = NGHTTP2_CLIENT_MAGIC;
#define PREFACE_BYTES NGHTTP2_CLIENT_MAGIC_LEN

static void copy(void *to_user, const void *from_user)
{
    const struct h2_state *from = from_user;
    struct h2_state *to = to_user;

    memcpy(to, from, offsetof(struct h2_state, words));
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        if (from->streams[i].phase != H2_NONE)
            to->words[i] = from->words[i];
    }
    memcpy(to->held, from->held, from->block_bytes + from->frame_bytes);
}

#define FIELD(tag, kind, field)                                                                    \
    {                                                                                              \
        tag, kind, (uint32_t)offsetof(struct h2_state, field),                                     \
            sizeof(((struct h2_state *)0)->field), 1, 0                                            \
    }
#define ARRAY_FIELD(tag, kind, array, element, field)                                              \
    {                                                                                              \
        tag, kind, (uint32_t)(offsetof(struct h2_state, array) + offsetof(struct element, field)), \
            sizeof(((struct element *)0)->field), H2_STREAMS_MAX, sizeof(struct element)           \
    }
#define STREAMS_FIELD(tag, kind, field) ARRAY_FIELD(tag, kind, streams, h2_stream, field)
#define WORDS_FIELD(tag, kind, field) ARRAY_FIELD(tag, kind, words, h2_words, field)

/* Each of them: what is not here does not go on to another release. */
static const struct kept_field FIELDS[] = {
    FIELD(1, KEPT_NUMBER, preface),
    FIELD(2, KEPT_NUMBER, acked),
    FIELD(3, KEPT_NUMBER, over),
    FIELD(4, KEPT_NUMBER, block_ends),
    FIELD(5, KEPT_NUMBER, block_stream),
    FIELD(6, KEPT_NUMBER, block_bytes),
    FIELD(7, KEPT_NUMBER, frame_bytes),
    FIELD(8, KEPT_NUMBER, last_id),
    FIELD(9, KEPT_NUMBER, received),
    FIELD(10, KEPT_NUMBER, window),
    FIELD(11, KEPT_NUMBER, initial),
    FIELD(12, KEPT_BYTES, held),
    STREAMS_FIELD(32, KEPT_NUMBER, id),
    STREAMS_FIELD(33, KEPT_KEY, phase),
    STREAMS_FIELD(34, KEPT_NUMBER, method),
    STREAMS_FIELD(35, KEPT_NUMBER, encoding),
    STREAMS_FIELD(36, KEPT_NUMBER, place),
    STREAMS_FIELD(37, KEPT_NUMBER, code),
    STREAMS_FIELD(38, KEPT_NUMBER, ended),
    STREAMS_FIELD(39, KEPT_NUMBER, headed),
    STREAMS_FIELD(40, KEPT_NUMBER, request_bytes),
    STREAMS_FIELD(41, KEPT_NUMBER, received),
    STREAMS_FIELD(42, KEPT_NUMBER, message_bytes),
    STREAMS_FIELD(43, KEPT_NUMBER, message_put),
    STREAMS_FIELD(44, KEPT_NUMBER, window),
    WORDS_FIELD(45, KEPT_BYTES, text),
    WORDS_FIELD(46, KEPT_BYTES, note),
};

const struct kept_state H2_KEPT = {.bytes = sizeof(struct h2_state),
                                   .copy = copy,
                                   .fields = FIELDS,
                                   .fields_len = sizeof FIELDS / sizeof FIELDS[0],
                                   .format = H2_FORMAT,
                                   .areas = H2_AREAS,
                                   .area_bytes = H2_MESSAGE_BYTES_MAX};

struct head {
    uint32_t length;
    uint8_t type;
    uint8_t flags;
    uint32_t stream_id;
};

/* What is made of the bytes of one read. */
struct eating {
    struct kept_socket *kept;
    struct h2_state *state;
    struct h2_reader *reader;
};

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- streams ---- */

static struct h2_stream *stream_find(struct h2_state *state, uint32_t id)
{
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        if (state->streams[i].phase != H2_NONE && state->streams[i].id == id)
            return &state->streams[i];
    }
    return NULL;
}

/* One whose places no stream of before this change uses either: they are written to at once. NULL:
 * none. */
static struct h2_stream *stream_new(struct eating *eating)
{
    const struct h2_state *before = kept_socket_state(eating->kept);

    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        if (eating->state->streams[i].phase == H2_NONE && before->streams[i].phase == H2_NONE)
            return &eating->state->streams[i];
    }
    return NULL;
}

void h2_stream_finish(struct h2_state *state, struct h2_stream *stream, int code, const char *text)
{
    struct h2_words *words = &state->words[stream - state->streams];

    stream->phase = H2_FINISHED;
    stream->code = (uint8_t)code;
    snprintf(words->text, sizeof words->text, "%s", text);
}

/* ---- frames in ----
 *
 * Each returns 0, or the HTTP/2 error that ends the connection. */

/* Without padding, where a frame may have some. */
static bool strip(const struct head *head, const uint8_t **at, size_t *len)
{
    size_t padding = 0, front = 0;

    if (head->flags & NGHTTP2_FLAG_PADDED) {
        if (*len < 1)
            return false;
        padding = (*at)[0];
        front = 1;
    }
    if (head->type == NGHTTP2_HEADERS && head->flags & NGHTTP2_FLAG_PRIORITY)
        front += 5;
    if (*len < front + padding)
        return false;
    *at += front;
    *len -= front + padding;
    return true;
}

static void request_ended(struct h2_stream *stream)
{
    stream->ended = true;
    if (stream->phase == H2_REQUEST)
        stream->phase = H2_ASKED;
}

static uint32_t eat_data(struct eating *eating, const struct head *head, const uint8_t *at)
{
    struct h2_stream *stream = stream_find(eating->state, head->stream_id);
    size_t len = head->length;
    uint8_t *place;

    if (head->stream_id == 0 || head->stream_id > eating->state->last_id || !strip(head, &at, &len))
        return NGHTTP2_PROTOCOL_ERROR;
    eating->state->received += head->length;
    if (!stream || stream->ended)
        return 0; /* it was ended, and the client may not know yet */
    stream->received += head->length;
    if (stream->phase == H2_REQUEST && len > H2_MESSAGE_BYTES_MAX - stream->request_bytes)
        h2_stream_finish(eating->state, stream, RPC_RESOURCE_EXHAUSTED, "the request is too large");
    if (stream->phase == H2_REQUEST && len > 0) {
        place = kept_socket_area(eating->kept, 2 * (size_t)(stream - eating->state->streams));
        if (!place)
            h2_reader_without_memory(eating->reader);
        if (place)
            memcpy(place + stream->request_bytes, at, len);
        else
            h2_stream_finish(eating->state, stream, RPC_RESOURCE_EXHAUSTED,
                             "no memory for the request");
        stream->request_bytes += (uint32_t)len;
    }
    if (head->flags & NGHTTP2_FLAG_END_STREAM)
        request_ended(stream);
    return 0;
}

static void request_begin(struct h2_state *state, struct h2_stream *stream,
                          const struct request_block *block, size_t methods)
{
    stream->phase = H2_REQUEST;
    stream->encoding = (uint8_t)block->encoding;
    if (!block->post || !block->grpc)
        h2_stream_finish(state, stream, RPC_INTERNAL, "no request of gRPC's");
    else if (block->method == methods)
        h2_stream_finish(state, stream, RPC_UNIMPLEMENTED, "unknown method");
    else if (block->encoding == MESSAGE_ENCODING_UNKNOWN)
        h2_stream_finish(state, stream, RPC_UNIMPLEMENTED, "unknown grpc-encoding");
    else
        stream->method = (uint8_t)block->method;
}

/* A new call's. */
static void eat_request(struct eating *eating, uint32_t id, bool ends,
                        const struct request_block *block)
{
    struct h2_stream *stream = stream_new(eating);

    if (!stream || block->malformed) {
        h2_put_number(eating->kept, NGHTTP2_RST_STREAM, id,
                      stream ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_REFUSED_STREAM);
        return;
    }
    *stream = (struct h2_stream){.id = id, .window = eating->state->initial};
    eating->state->words[stream - eating->state->streams] = (struct h2_words){0};
    request_begin(eating->state, stream, block, eating->reader->paths_len);
    if (ends)
        request_ended(stream);
}

/* A whole block is held. */
static uint32_t eat_block(struct eating *eating)
{
    struct h2_state *state = eating->state;
    const struct h2_reader *reader = eating->reader;
    uint32_t id = state->block_stream;
    struct request_block block;
    struct h2_stream *stream;
    int err = request_block_read(reader->early, state->held, state->block_bytes, reader->paths,
                                 reader->paths_len, &block);

    state->block_stream = 0;
    state->block_bytes = 0;
    if (err == -ENOMEM)
        h2_reader_without_memory(reader);
    if (err)
        return err == -EBADMSG ? NGHTTP2_COMPRESSION_ERROR : NGHTTP2_INTERNAL_ERROR;
    if (id > state->last_id) {
        state->last_id = id;
        eat_request(eating, id, state->block_ends, &block);
        return 0;
    }
    stream = stream_find(state, id); /* trailers, which say nothing */
    if (stream && state->block_ends)
        request_ended(stream);
    return 0;
}

/* A piece of a block, which is held behind those before it. */
static uint32_t eat_piece(struct eating *eating, const uint8_t *at, size_t len, bool last)
{
    struct h2_state *state = eating->state;

    if (len > H2_BLOCK_BYTES_MAX - state->block_bytes)
        return NGHTTP2_ENHANCE_YOUR_CALM;
    memmove(state->held + state->block_bytes, at, len);
    state->block_bytes += (uint32_t)len;
    return last ? eat_block(eating) : 0;
}

static uint32_t eat_headers(struct eating *eating, const struct head *head, const uint8_t *at)
{
    size_t len = head->length;

    if (head->stream_id % 2 == 0 || !strip(head, &at, &len))
        return NGHTTP2_PROTOCOL_ERROR;
    eating->state->block_stream = head->stream_id;
    eating->state->block_ends = head->flags & NGHTTP2_FLAG_END_STREAM;
    return eat_piece(eating, at, len, head->flags & NGHTTP2_FLAG_END_HEADERS);
}

static uint32_t eat_reset(struct eating *eating, const struct head *head)
{
    struct h2_stream *stream = stream_find(eating->state, head->stream_id);

    if (head->length != 4)
        return NGHTTP2_FRAME_SIZE_ERROR;
    if (head->stream_id == 0 || head->stream_id > eating->state->last_id)
        return NGHTTP2_PROTOCOL_ERROR;
    if (stream)
        stream->phase = H2_NONE;
    return 0;
}

/* RFC 9113 §6.9.2. */
static uint32_t set_initial(struct h2_state *state, uint32_t value)
{
    int64_t delta = (int64_t)value - state->initial;

    if (value > WINDOW_MAX)
        return NGHTTP2_FLOW_CONTROL_ERROR;
    state->initial = value;
    for (size_t i = 0; i < H2_STREAMS_MAX; i++) {
        if (state->streams[i].phase == H2_NONE)
            continue;
        state->streams[i].window += delta;
        if (state->streams[i].window > WINDOW_MAX)
            return NGHTTP2_FLOW_CONTROL_ERROR;
    }
    return 0;
}

static uint32_t eat_settings(struct eating *eating, const struct head *head, const uint8_t *at)
{
    uint32_t err = 0;

    if (head->stream_id != 0)
        return NGHTTP2_PROTOCOL_ERROR;
    if (head->flags & NGHTTP2_FLAG_ACK) {
        eating->state->acked = true;
        h2_reader_fini(eating->reader);
        return head->length == 0 ? 0 : NGHTTP2_FRAME_SIZE_ERROR;
    }
    if (head->length % 6 != 0)
        return NGHTTP2_FRAME_SIZE_ERROR;
    for (size_t i = 0; i < head->length && !err; i += 6) {
        if (at[i] == 0 && at[i + 1] == NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE)
            err = set_initial(eating->state, read_u32(at + i + 2));
    }
    if (!err)
        h2_put_head(eating->kept, 0, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0);
    return err;
}

static uint32_t eat_ping(struct eating *eating, const struct head *head, const uint8_t *at)
{
    if (head->length != 8)
        return NGHTTP2_FRAME_SIZE_ERROR;
    if (head->stream_id != 0)
        return NGHTTP2_PROTOCOL_ERROR;
    if (head->flags & NGHTTP2_FLAG_ACK)
        return 0;
    h2_put_head(eating->kept, 8, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0);
    kept_socket_put(eating->kept, at, 8);
    return 0;
}

static uint32_t eat_window_update(struct eating *eating, const struct head *head, const uint8_t *at)
{
    struct h2_stream *stream = stream_find(eating->state, head->stream_id);
    int64_t *window = head->stream_id == 0 ? &eating->state->window : NULL;
    uint32_t increment;

    if (head->length != 4)
        return NGHTTP2_FRAME_SIZE_ERROR;
    increment = read_u32(at) & 0x7fffffff;
    if (head->stream_id > eating->state->last_id || increment == 0)
        return NGHTTP2_PROTOCOL_ERROR;
    if (stream)
        window = &stream->window;
    if (!window)
        return 0;
    *window += increment;
    return *window > WINDOW_MAX ? NGHTTP2_FLOW_CONTROL_ERROR : 0;
}

static uint32_t eat_frame(struct eating *eating, const struct head *head, const uint8_t *at)
{
    bool continues = head->type == NGHTTP2_CONTINUATION;

    /* RFC 9113 §6.10: nothing comes between the pieces of a block. */
    if (eating->state->block_stream ? !continues || head->stream_id != eating->state->block_stream
                                    : continues)
        return NGHTTP2_PROTOCOL_ERROR;
    switch (head->type) {
    case NGHTTP2_DATA:
        return eat_data(eating, head, at);
    case NGHTTP2_HEADERS:
        return eat_headers(eating, head, at);
    case NGHTTP2_CONTINUATION:
        return eat_piece(eating, at, head->length, head->flags & NGHTTP2_FLAG_END_HEADERS);
    case NGHTTP2_RST_STREAM:
        return eat_reset(eating, head);
    case NGHTTP2_SETTINGS:
        return eat_settings(eating, head, at);
    case NGHTTP2_PUSH_PROMISE:
        return NGHTTP2_PROTOCOL_ERROR;
    case NGHTTP2_PING:
        return eat_ping(eating, head, at);
    case NGHTTP2_WINDOW_UPDATE:
        return eat_window_update(eating, head, at);
    default: /* PRIORITY, GOAWAY, and what we do not know */
        return 0;
    }
}

static void head_read(const uint8_t *at, struct head *out)
{
    *out = (struct head){.length = read_u32(at) >> 8,
                         .type = at[3],
                         .flags = at[4],
                         .stream_id = read_u32(at + 5) & 0x7fffffff};
}

/* As much of the bytes as makes `wants` of the frame under way; how much that was. */
static size_t gather(struct h2_state *state, size_t wants, const uint8_t *bytes, size_t len)
{
    size_t n = wants - state->frame_bytes;

    if (n > len)
        n = len;
    memcpy(state->held + state->block_bytes + state->frame_bytes, bytes, n);
    state->frame_bytes += (uint32_t)n;
    return n;
}

static uint32_t eat_frames(struct eating *eating, const uint8_t *bytes, size_t len)
{
    struct h2_state *state = eating->state;
    uint32_t err = 0;

    while (len > 0 && !err) {
        const uint8_t *frame = state->held + state->block_bytes;
        struct head head = {0};
        size_t n;

        if (state->frame_bytes >= H2_FRAME_HEAD_BYTES)
            head_read(frame, &head);
        n = gather(state, H2_FRAME_HEAD_BYTES + head.length, bytes, len);
        bytes += n;
        len -= n;
        if (state->frame_bytes < H2_FRAME_HEAD_BYTES)
            break;
        head_read(frame, &head);
        if (head.length > H2_FRAME_BYTES_MAX)
            return NGHTTP2_FRAME_SIZE_ERROR;
        if (state->frame_bytes < H2_FRAME_HEAD_BYTES + head.length)
            continue;
        state->frame_bytes = 0;
        err = eat_frame(eating, &head, frame + H2_FRAME_HEAD_BYTES);
    }
    return err;
}

void h2_eat(struct kept_socket *kept, void *user, const uint8_t *bytes, size_t len, void *reader)
{
    struct h2_state *state = user;
    struct eating eating = {.kept = kept, .state = state, .reader = reader};
    uint32_t err = 0;

    for (; len > 0 && state->preface < PREFACE_BYTES && !err; bytes++, len--)
        err = *bytes == (uint8_t)PREFACE[state->preface++] ? 0 : NGHTTP2_PROTOCOL_ERROR;
    if (!err && !state->over)
        err = eat_frames(&eating, bytes, len);
    if (!err)
        return;
    h2_put_goaway(kept, state->last_id, err);
    state->over = true;
}

/* ---- life ---- */

int h2_reader_init(struct h2_reader *reader, const char *const *paths, size_t paths_len)
{
    *reader = (struct h2_reader){.paths = paths, .paths_len = paths_len};
    return nghttp2_hd_inflate_new(&reader->early) ? -ENOMEM : 0;
}

void h2_reader_fini(struct h2_reader *reader)
{
    if (reader->early)
        nghttp2_hd_inflate_del(reader->early);
    reader->early = NULL;
}

void h2_reader_without_memory(const struct h2_reader *reader)
{
    if (reader->kept && !reader->early)
        must(NULL);
}

void h2_begin(struct kept_socket *kept)
{
    static const struct h2_setting SETTINGS[] = {
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
    };
    struct h2_state *state = kept_socket_edit(kept);

    state->window = WINDOW_DEFAULT;
    state->initial = WINDOW_DEFAULT;
    h2_put_settings(kept, SETTINGS, sizeof SETTINGS / sizeof SETTINGS[0]);
    h2_put_number(kept, NGHTTP2_WINDOW_UPDATE, 0, 4 * WINDOW_BYTES - WINDOW_DEFAULT);
    kept_socket_commit(kept);
}

static bool stream_sound(const struct h2_stream *stream, const struct h2_words *words,
                         size_t methods)
{
    return stream->phase == H2_NONE ||
           (stream->phase <= H2_FINISHED && stream->method < methods && stream->place <= 1 &&
            stream->request_bytes <= H2_MESSAGE_BYTES_MAX &&
            stream->message_bytes <= H2_MESSAGE_BYTES_MAX &&
            stream->message_put <= stream->message_bytes &&
            memchr(words->text, '\0', sizeof words->text));
}

bool h2_can_go_on(const struct kept_socket *kept, size_t methods)
{
    const struct h2_state *state = kept_socket_state(kept);
    bool sound = state->acked && !state->over && state->preface == PREFACE_BYTES &&
                 state->block_bytes <= H2_BLOCK_BYTES_MAX &&
                 state->frame_bytes < H2_FRAME_HEAD_BYTES + H2_FRAME_BYTES_MAX;

    for (size_t i = 0; i < H2_STREAMS_MAX; i++)
        sound = sound && stream_sound(&state->streams[i], &state->words[i], methods);
    return sound;
}
