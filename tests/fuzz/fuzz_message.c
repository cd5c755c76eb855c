/*
 * gRPC messages as a peer sends them: the framing with its caps, then protobuf.
 *
 * Input: a byte of choices, a byte for the reader's budget, a byte for the cuts; the rest is the
 * stream, or with CHOICE_WRAP one message's body, framed (and with CHOICE_GZIP packed) here.
 * However the stream is cut, the same messages must come out; the reader never holds more than its
 * budget and gives all of it back; what unpacks must unpack to what protobuf-c alone makes of it,
 * and what protobuf-c cannot pack again must not.
 */
#include <string.h>

#include <zlib.h>

#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/field_numbers.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#define CHOICE_GZIP 0x01
#define CHOICE_WRAP 0x02
#define CHOICE_BYTEWISE 0x04
#define GZIP_WINDOW_BITS (15 + 16)
#define MESSAGES_MAX 64
/* What message_unpack() says it takes at most. */
#define ARENA_FACTOR 16
#define ARENA_BYTES_MIN (64 * 1024)

struct bytes {
    uint8_t *at;
    size_t len;
};

/* What one reading of the stream gave. */
struct reading {
    struct bytes messages[MESSAGES_MAX];
    size_t len;
    enum message_event last;
    int fault_code;
    const char *fault_text;
    bool partial;
};

static void *copy_of(const void *bytes, size_t len)
{
    void *copy = malloc(len + 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, len);
    return copy;
}

static void take_message(struct reading *reading, const struct message_reader *reader)
{
    struct bytes *message = &reading->messages[reading->len++];

    FUZZ_CHECK(reader->body_len <= RPC_MESSAGE_BYTES_MAX, "%zu", reader->body_len);
    message->len = reader->body_len;
    message->at =
        copy_of(reader->body_len > 0 ? reader->body : (const uint8_t *)"", reader->body_len);
}

/* Reads one piece, cut again at each message's end. */
static bool read_piece(struct reading *reading, struct message_reader *reader, const uint8_t *data,
                       size_t len)
{
    do {
        size_t before = len;

        reading->last = message_reader_feed(reader, &data, &len);
        FUZZ_CHECK(len <= before, "%zu, %zu", len, before);
        if (reading->last == MESSAGE_READY)
            take_message(reading, reader);
        if (reading->last == MESSAGE_FAILED || reading->len == MESSAGES_MAX)
            return false;
    } while (reading->last == MESSAGE_READY);
    FUZZ_CHECK(len == 0, "MESSAGE_MORE with %zu bytes left", len);
    return true;
}

/* `cut`: 0 is no cut, 1 every byte, else the seed of lengths. */
static void read_stream(struct reading *reading, struct bytes stream, bool gzip,
                        size_t budget_bytes, unsigned cut)
{
    size_t shared = budget_bytes - budget_bytes / 4;
    struct message_budget budget = {
        .left = SIZE_MAX / 2, .own = budget_bytes / 4, .shared = &shared};
    struct message_reader reader;
    unsigned seed = cut;

    message_reader_init(&reader, &budget);
    reader.encoding = gzip ? MESSAGE_GZIP : MESSAGE_IDENTITY;
    for (size_t at = 0; at < stream.len;) {
        size_t n = cut == 0 ? stream.len : cut == 1 ? 1 : (seed = seed * 1103515245 + 12345) >> 26;

        n = n == 0 ? 1 : n < stream.len - at ? n : stream.len - at;
        if (!read_piece(reading, &reader, stream.at + at, n))
            break;
        FUZZ_CHECK(budget.taken <= budget_bytes, "%zu of %zu taken", budget.taken, budget_bytes);
        at += n;
    }
    reading->partial = message_reader_partial(&reader);
    if (reading->last == MESSAGE_FAILED) {
        reading->fault_code = reader.fault_code;
        reading->fault_text = reader.fault_text;
        FUZZ_CHECK(reader.fault_text && *reader.fault_text, "no fault text");
    }
    message_reader_fini(&reader);
    FUZZ_CHECK(budget.taken == 0 && shared == budget_bytes - budget.own,
               "%zu not given back, %zu shared", budget.taken, shared);
}

static void reading_fini(struct reading *reading)
{
    for (size_t i = 0; i < reading->len; i++)
        free(reading->messages[i].at);
}

static void check_same(const struct reading *a, const struct reading *b)
{
    FUZZ_CHECK(a->len == b->len, "%zu, %zu messages", a->len, b->len);
    FUZZ_CHECK(a->last == b->last && a->partial == b->partial, "ends %d, %d", a->last, b->last);
    FUZZ_CHECK(a->fault_code == b->fault_code && a->fault_text == b->fault_text, "%s, %s",
               a->fault_text, b->fault_text);
    for (size_t i = 0; i < a->len; i++)
        FUZZ_CHECK(a->messages[i].len == b->messages[i].len &&
                       memcmp(a->messages[i].at, b->messages[i].at, a->messages[i].len) == 0,
                   "message %zu", i);
}

/* ---- protobuf ---- */

static const ProtobufCMessageDescriptor *const DESCRIPTORS[] = {
    &runtime__v1__create_container_request__descriptor,
    &runtime__v1__run_pod_sandbox_request__descriptor,
    &runtime__v1__list_containers_response__descriptor,
    &runtime__v1__container_event_response__descriptor,
    &v1beta1__list_and_watch_response__descriptor,
    &v1beta1__allocate_response__descriptor,
    &v1beta1__register_request__descriptor,
};

#define DESCRIPTORS_LEN (sizeof DESCRIPTORS / sizeof DESCRIPTORS[0])

static struct bytes pack(const ProtobufCMessage *message)
{
    struct bytes out = {.len = protobuf_c_message_get_packed_size(message)};

    out.at = copy_of("", 0);
    out.at = realloc(out.at, out.len + 1);
    if (!out.at)
        abort();
    protobuf_c_message_pack(message, out.at);
    return out;
}

/* Framed by message_pack(), read again: the same bytes. */
static void check_pack(const ProtobufCMessage *message, struct bytes packed)
{
    struct reading reading = {0};
    struct bytes framed;

    FUZZ_CHECK(message_pack(message, &framed.at, &framed.len) == 0, "%zu", packed.len);
    read_stream(&reading, framed, false, SIZE_MAX / 2, 0);
    FUZZ_CHECK(reading.len == 1 && reading.messages[0].len == packed.len &&
                   memcmp(reading.messages[0].at, packed.at, packed.len) == 0,
               "%zu messages", reading.len);
    reading_fini(&reading);
    free(framed.at);
}

static void check_unpack(const ProtobufCMessageDescriptor *descriptor, struct bytes body)
{
    ProtobufCMessage *plain = protobuf_c_message_unpack(descriptor, NULL, body.len, body.at);
    struct message_arena arena = {0};
    int code = RPC_OK;
    ProtobufCMessage *ours = message_unpack(descriptor, body.at, body.len, &arena, &code);
    bool valid = plain && field_numbers_valid(plain);

    FUZZ_CHECK(arena.left <= ARENA_FACTOR * body.len + ARENA_BYTES_MIN, "%zu left", arena.left);
    FUZZ_CHECK(ours || code == RPC_RESOURCE_EXHAUSTED || (code == RPC_INTERNAL && !valid),
               "%s: code %d", descriptor->name, code);
    FUZZ_CHECK(!ours || valid, "%s: only ours parses", descriptor->name);
    if (ours) {
        struct bytes a = pack(ours), b = pack(plain);

        FUZZ_CHECK(a.len == b.len && memcmp(a.at, b.at, a.len) == 0, "%s", descriptor->name);
        check_pack(ours, a);
        free(a.at);
        free(b.at);
    }
    message_arena_fini(&arena);
    if (plain)
        protobuf_c_message_free_unpacked(plain, NULL);
}

/* ---- the stream ---- */

static struct bytes gzip(struct bytes body)
{
    z_stream stream = {.next_in = body.at, .avail_in = (uInt)body.len};
    struct bytes out;

    if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    out.len = deflateBound(&stream, body.len);
    out.at = malloc(out.len);
    if (!out.at)
        abort();
    stream.next_out = out.at;
    stream.avail_out = (uInt)out.len;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    out.len -= stream.avail_out;
    deflateEnd(&stream);
    return out;
}

static struct bytes wrap(struct fuzz_input in, bool packed)
{
    struct bytes body = {copy_of(in.bytes, in.len), in.len};
    struct bytes out;

    if (packed) {
        struct bytes small = gzip(body);

        free(body.at);
        body = small;
    }
    out.len = MESSAGE_HEAD_BYTES + body.len;
    out.at = copy_of("", 0);
    out.at = realloc(out.at, out.len);
    if (!out.at)
        abort();
    out.at[0] = packed;
    out.at[1] = (uint8_t)(body.len >> 24);
    out.at[2] = (uint8_t)(body.len >> 16);
    out.at[3] = (uint8_t)(body.len >> 8);
    out.at[4] = (uint8_t)body.len;
    memcpy(out.at + MESSAGE_HEAD_BYTES, body.at, body.len);
    free(body.at);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint8_t choice = fuzz_u8(&in);
    uint8_t budget = fuzz_u8(&in);
    uint8_t seed = fuzz_u8(&in);
    size_t budget_bytes = budget == 255 ? SIZE_MAX / 2 : (size_t)budget * budget * 4;
    struct reading whole = {0}, cut = {0};
    struct bytes stream;

    if (choice & CHOICE_WRAP)
        stream = wrap(in, choice & CHOICE_GZIP);
    else
        stream = (struct bytes){copy_of(in.bytes, in.len), in.len};
    read_stream(&whole, stream, choice & CHOICE_GZIP, budget_bytes, 0);
    read_stream(&cut, stream, choice & CHOICE_GZIP, budget_bytes,
                choice & CHOICE_BYTEWISE ? 1 : 2u + seed);
    check_same(&whole, &cut);
    for (size_t i = 0; i < whole.len; i++)
        check_unpack(DESCRIPTORS[(seed + i) % DESCRIPTORS_LEN], whole.messages[i]);
    reading_fini(&whole);
    reading_fini(&cut);
    free(stream.at);
    return 0;
}
