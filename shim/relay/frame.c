#include "shim/relay/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shim/relay/hpack.h"
#include "shim/relay/limits.h"
#include "shim/rpc/status.h"

/* Entries of HPACK's static table (RFC 7541, appendix A). */
#define STATIC_STATUS_200 8
#define STATIC_CONTENT_TYPE 31

/* Trailers-only block: fixed fields and a percent-encoded text. */
#define STATUS_BLOCK_BYTES_MAX (128 + STATUS_ENCODED_BYTES_MAX)
_Static_assert(STATUS_BLOCK_BYTES_MAX <= RELAY_FRAME_BYTES_MAX, "a refusal fits one frame");

static void write_u32(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)(value >> 24);
    bytes[1] = (uint8_t)(value >> 16);
    bytes[2] = (uint8_t)(value >> 8);
    bytes[3] = (uint8_t)value;
}

static int put_frame(struct buffer *out, enum frame_type type, uint8_t flags, uint32_t stream_id,
                     const void *payload, size_t bytes)
{
    uint8_t head[FRAME_HEAD_BYTES] = {(uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8), (uint8_t)bytes,
                                      (uint8_t)type, flags};

    write_u32(head + 5, stream_id);
    if (buffer_reserve(out, sizeof head + bytes) < 0)
        return -ENOMEM;
    return buffer_put(out, head, sizeof head) < 0 || buffer_put(out, payload, bytes) < 0 ? -ENOMEM
                                                                                         : 0;
}

int frame_put_data(struct buffer *out, uint32_t stream_id, const uint8_t *data, size_t bytes,
                   bool end_stream)
{
    return put_frame(out, FRAME_DATA, end_stream ? FRAME_FLAG_END_STREAM : 0, stream_id, data,
                     bytes);
}

int frame_put_rst_stream(struct buffer *out, uint32_t stream_id, enum frame_error code)
{
    uint8_t payload[4];

    write_u32(payload, code);
    return put_frame(out, FRAME_RST_STREAM, 0, stream_id, payload, sizeof payload);
}

int frame_put_settings_empty(struct buffer *out)
{
    return put_frame(out, FRAME_SETTINGS, 0, 0, NULL, 0);
}

int frame_put_settings_ack(struct buffer *out)
{
    return put_frame(out, FRAME_SETTINGS, FRAME_FLAG_ACK, 0, NULL, 0);
}

int frame_put_window_update(struct buffer *out, uint32_t stream_id, uint32_t increment)
{
    uint8_t payload[4];

    write_u32(payload, increment);
    return put_frame(out, FRAME_WINDOW_UPDATE, 0, stream_id, payload, sizeof payload);
}

int frame_put_goaway(struct buffer *out, uint32_t last_stream_id, enum frame_error code)
{
    uint8_t payload[8];

    write_u32(payload, last_stream_id);
    write_u32(payload + 4, code);
    return put_frame(out, FRAME_GOAWAY, 0, 0, payload, sizeof payload);
}

static size_t write_string(uint8_t *at, const char *text)
{
    size_t bytes = strlen(text);
    size_t n = hpack_put_integer(at, 0, 7, bytes);

    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the length is before it */
    memcpy(at + n, text, bytes);
    return n + bytes;
}

static size_t write_field(uint8_t *at, const char *name, const char *value)
{
    size_t n = 0;

    at[n++] = HPACK_LITERAL;
    n += write_string(at + n, name);
    return n + write_string(at + n, value);
}

int frame_put_status(struct buffer *out, uint32_t stream_id, int code, const char *message,
                     bool only, int64_t table_size)
{
    uint8_t block[STATUS_BLOCK_BYTES_MAX];
    char text[STATUS_ENCODED_BYTES_MAX];
    char number[12];
    size_t n = 0;

    if (table_size >= 0)
        n += hpack_put_integer(block + n, HPACK_TABLE_SIZE, 5, (uint64_t)table_size);
    if (only) {
        block[n++] = HPACK_INDEXED | STATIC_STATUS_200;
        n += hpack_put_integer(block + n, HPACK_LITERAL, 4, STATIC_CONTENT_TYPE);
        n += write_string(block + n, "application/grpc");
    }
    snprintf(number, sizeof number, "%d", code);
    n += write_field(block + n, "grpc-status", number);
    status_encode(message, text);
    n += write_field(block + n, "grpc-message", text);
    return put_frame(out, FRAME_HEADERS, FRAME_FLAG_END_HEADERS | FRAME_FLAG_END_STREAM, stream_id,
                     block, n);
}
