#include "shim/rpc/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "cri-proto/field_numbers.h"
#include "shim/rpc/rpc.h"

/* A body's buffer starts with this much or less and doubles as bytes really come, so an announced
 * length costs nothing by itself. Larger ones are not kept for the next message. */
#define BODY_ROOM_BYTES 4096

#define ARENA_FACTOR 16
#define ARENA_BYTES_MIN (64 * 1024)
#define ARENA_CHUNK_BYTES_MIN 4096
#define ARENA_CHUNK_BYTES_MAX (1024 * 1024)
#define ARENA_ALIGN _Alignof(max_align_t)

/* zlib: 15 bits of window, plus 16 for a gzip head and nothing else. */
#define GZIP_WINDOW_BITS (15 + 16)

#define INFLATES_TOO_FAR "message inflates to more than 16 MiB"

/* ---- framing ---- */

enum message_encoding message_encoding_parse(const uint8_t *value, size_t len)
{
    if (len == 8 && memcmp(value, "identity", 8) == 0)
        return MESSAGE_IDENTITY;
    if (len == 4 && memcmp(value, "gzip", 4) == 0)
        return MESSAGE_GZIP;
    return MESSAGE_ENCODING_UNKNOWN;
}

void message_reader_init(struct message_reader *reader, struct message_budget *budget)
{
    *reader = (struct message_reader){.budget = budget};
}

static size_t beyond_own(const struct message_budget *budget, size_t taken)
{
    return budget->shared && taken > budget->own ? taken - budget->own : 0;
}

static bool budget_take(struct message_budget *budget, size_t bytes)
{
    size_t more = beyond_own(budget, budget->taken + bytes) - beyond_own(budget, budget->taken);

    if (bytes > budget->left || (more > 0 && more > *budget->shared))
        return false;
    if (more > 0)
        *budget->shared -= more;
    budget->left -= bytes;
    budget->taken += bytes;
    return true;
}

static void budget_give(struct message_budget *budget, size_t bytes)
{
    size_t less = beyond_own(budget, budget->taken) - beyond_own(budget, budget->taken - bytes);

    if (less > 0)
        *budget->shared += less;
    budget->left += bytes;
    budget->taken -= bytes;
}

static void body_release(struct message_reader *reader)
{
    free(reader->body);
    budget_give(reader->budget, reader->body_room);
    reader->body = NULL;
    reader->body_room = 0;
}

void message_reader_fini(struct message_reader *reader)
{
    body_release(reader);
    reader->head_have = 0;
    reader->body_len = 0;
    reader->body_have = 0;
    reader->ready = false;
}

bool message_reader_partial(const struct message_reader *reader)
{
    return reader->head_have > 0 && !reader->ready;
}

static enum message_event fail(struct message_reader *reader, int code, const char *text)
{
    reader->fault_code = code;
    reader->fault_text = text;
    return MESSAGE_FAILED;
}

static enum message_event fail_memory(struct message_reader *reader)
{
    return fail(reader, RPC_RESOURCE_EXHAUSTED, "no memory for the message");
}

static enum message_event fail_room(struct message_reader *reader)
{
    return fail(reader, RPC_RESOURCE_EXHAUSTED, "no room for the message beside others");
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Makes the body's buffer `room` bytes. MESSAGE_READY: the budget and the heap have them. */
static enum message_event body_resize(struct message_reader *reader, size_t room)
{
    size_t more = room - reader->body_room;
    uint8_t *body;

    if (!budget_take(reader->budget, more))
        return fail_room(reader);
    body = realloc(reader->body, room);
    if (!body) {
        budget_give(reader->budget, more);
        return fail_memory(reader);
    }
    reader->body = body;
    reader->body_room = room;
    return MESSAGE_READY;
}

static enum message_event body_grow(struct message_reader *reader, size_t need)
{
    size_t room = reader->body_room ? reader->body_room : BODY_ROOM_BYTES;

    if (need <= reader->body_room)
        return MESSAGE_READY;
    while (room < need)
        room *= 2;
    room = min_size(room, reader->body_len);
    return body_resize(reader, room);
}

/* Takes bytes of the head. MESSAGE_READY: the head is whole and right. */
static enum message_event feed_head(struct message_reader *reader, const uint8_t **data,
                                    size_t *len)
{
    const uint8_t *head = reader->head;
    size_t n = min_size(MESSAGE_HEAD_BYTES - reader->head_have, *len);

    memcpy(reader->head + reader->head_have, *data, n);
    reader->head_have += n;
    *data += n;
    *len -= n;
    if (reader->head_have < MESSAGE_HEAD_BYTES)
        return MESSAGE_MORE;
    if (head[0] > 1)
        return fail(reader, RPC_INTERNAL, "bad compressed flag in a message's head");
    if (head[0] == 1 && reader->encoding != MESSAGE_GZIP)
        return fail(reader, RPC_INTERNAL, "compressed message without a known grpc-encoding");
    reader->body_len =
        (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (reader->body_len > RPC_MESSAGE_BYTES_MAX)
        return fail(reader, RPC_RESOURCE_EXHAUSTED, "message is larger than 16 MiB");
    return MESSAGE_READY;
}

static enum message_event feed_body(struct message_reader *reader, const uint8_t **data,
                                    size_t *len)
{
    size_t n = min_size(reader->body_len - reader->body_have, *len);

    if (n > 0) {
        if (body_grow(reader, reader->body_have + n) == MESSAGE_FAILED)
            return MESSAGE_FAILED;
        memcpy(reader->body + reader->body_have, *data, n);
        reader->body_have += n;
        *data += n;
        *len -= n;
    }
    return reader->body_have < reader->body_len ? MESSAGE_MORE : MESSAGE_READY;
}

/* Inflates the whole of `packed` into the reader's empty body, which grows as far as it may. */
static enum message_event inflate_loop(struct message_reader *reader, z_stream *stream)
{
    int rc;

    reader->body_len = RPC_MESSAGE_BYTES_MAX + 1;
    do {
        if (reader->body_have > RPC_MESSAGE_BYTES_MAX)
            return fail(reader, RPC_RESOURCE_EXHAUSTED, INFLATES_TOO_FAR);
        if (body_grow(reader, reader->body_have + 1) == MESSAGE_FAILED)
            return MESSAGE_FAILED;
        stream->next_out = reader->body + reader->body_have;
        stream->avail_out = (uInt)(reader->body_room - reader->body_have);
        rc = inflate(stream, Z_NO_FLUSH);
        reader->body_have = reader->body_room - stream->avail_out;
    } while (rc == Z_OK);
    if (rc == Z_MEM_ERROR)
        return fail_memory(reader);
    if (reader->body_have > RPC_MESSAGE_BYTES_MAX)
        return fail(reader, RPC_RESOURCE_EXHAUSTED, INFLATES_TOO_FAR);
    if (rc != Z_STREAM_END || stream->avail_in > 0)
        return fail(reader, RPC_INTERNAL, "compressed message does not inflate");
    reader->body_len = reader->body_have;
    return MESSAGE_READY;
}

static enum message_event inflate_body(struct message_reader *reader)
{
    z_stream stream = {.next_in = reader->body, .avail_in = (uInt)reader->body_len};
    uint8_t *packed = reader->body;
    size_t packed_room = reader->body_room;
    enum message_event event;

    if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
        return fail_memory(reader);
    reader->body = NULL;
    reader->body_room = 0;
    reader->body_have = 0;
    event = inflate_loop(reader, &stream);
    inflateEnd(&stream);
    free(packed);
    budget_give(reader->budget, packed_room);
    return event;
}

/* Forgets the message that the last feed gave. */
static void next_message(struct message_reader *reader)
{
    if (reader->body_room > BODY_ROOM_BYTES)
        body_release(reader);
    reader->head_have = 0;
    reader->body_len = 0;
    reader->body_have = 0;
    reader->ready = false;
}

enum message_event message_reader_feed(struct message_reader *reader, const uint8_t **data,
                                       size_t *len)
{
    enum message_event event;

    if (reader->ready)
        next_message(reader);
    if (reader->head_have < MESSAGE_HEAD_BYTES) {
        event = feed_head(reader, data, len);
        if (event != MESSAGE_READY)
            return event;
    }
    event = feed_body(reader, data, len);
    if (event == MESSAGE_READY && reader->head[0] == 1)
        event = inflate_body(reader);
    reader->ready = event == MESSAGE_READY;
    return event;
}

/* ---- protobuf ---- */

struct message_chunk {
    struct message_chunk *next;
    size_t used;
    size_t room;
    max_align_t memory[];
};

static bool arena_extend(struct message_arena *arena, size_t size)
{
    size_t room = arena->chunks ? arena->chunks->room * 2 : ARENA_CHUNK_BYTES_MIN;
    struct message_chunk *chunk;

    room = min_size(room, ARENA_CHUNK_BYTES_MAX);
    if (room < size)
        room = size;
    room = min_size(room, arena->left);
    chunk = room < size ? NULL : malloc(sizeof *chunk + room);
    if (!chunk)
        return false;
    chunk->next = arena->chunks;
    chunk->used = 0;
    chunk->room = room;
    arena->chunks = chunk;
    arena->left -= room;
    return true;
}

static void *arena_alloc(void *data, size_t size)
{
    struct message_arena *arena = data;
    struct message_chunk *chunk = arena->chunks;
    void *memory;

    if (size <= SIZE_MAX - ARENA_ALIGN) {
        size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
        if ((chunk && chunk->room - chunk->used >= size) || arena_extend(arena, size)) {
            chunk = arena->chunks;
            memory = (char *)chunk->memory + chunk->used;
            chunk->used += size;
            return memory;
        }
    }
    arena->refused = true;
    return NULL;
}

/* Everything goes at once, in message_arena_fini(). */
static void arena_free(void *data, void *memory)
{
    (void)data;
    (void)memory;
}

void message_arena_fini(struct message_arena *arena)
{
    while (arena->chunks) {
        struct message_chunk *next = arena->chunks->next;

        free(arena->chunks);
        arena->chunks = next;
    }
}

ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
                                 size_t len, struct message_arena *arena, int *code)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
    ProtobufCMessage *message;

    arena->left = arena->most > 0 ? arena->most : ARENA_FACTOR * len + ARENA_BYTES_MIN;
    message = protobuf_c_message_unpack(descriptor, &allocator, len, data);
    if (message && field_numbers_valid(message))
        return message;
    *code = arena->refused ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL;
    return NULL;
}

void message_put_head(uint8_t *head, size_t len)
{
    head[0] = 0;
    head[1] = (uint8_t)(len >> 24);
    head[2] = (uint8_t)(len >> 16);
    head[3] = (uint8_t)(len >> 8);
    head[4] = (uint8_t)len;
}

/* A head, and room behind it for the message. */
static int make_frame(size_t body_len, uint8_t **out, size_t *len)
{
    uint8_t *bytes;

    if (body_len > RPC_MESSAGE_BYTES_MAX)
        return -EMSGSIZE;
    bytes = malloc(MESSAGE_HEAD_BYTES + body_len);
    if (!bytes)
        return -ENOMEM;
    message_put_head(bytes, body_len);
    *out = bytes;
    *len = MESSAGE_HEAD_BYTES + body_len;
    return 0;
}

int message_pack(const ProtobufCMessage *message, uint8_t **out, size_t *len)
{
    int err = make_frame(protobuf_c_message_get_packed_size(message), out, len);

    if (!err)
        protobuf_c_message_pack(message, *out + MESSAGE_HEAD_BYTES);
    return err;
}

/* protobuf-c has no copy, but the wire form is one. */
ProtobufCMessage *message_copy(const ProtobufCMessage *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    uint8_t *packed = malloc(bytes + 1);
    ProtobufCMessage *copy;

    if (!packed)
        return NULL;
    protobuf_c_message_pack(message, packed);
    copy = protobuf_c_message_unpack(message->descriptor, NULL, bytes, packed);
    free(packed);
    return copy;
}
