#include "shim/bridge/h2_put.h"

#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "shim/bridge/h2_state.h"
#include "shim/rpc/field.h"
#include "shim/rpc/status.h"

static void write_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* ---- frames out ---- */

void h2_put_head(struct kept_socket *kept, size_t length, uint8_t type, uint8_t flags,
                 uint32_t stream_id)
{
    uint8_t head[H2_FRAME_HEAD_BYTES];

    write_u32(head, (uint32_t)length << 8);
    head[3] = type;
    head[4] = flags;
    write_u32(head + 5, stream_id);
    kept_socket_put(kept, head, sizeof head);
}

/* A frame of one number. */
void h2_put_number(struct kept_socket *kept, uint8_t type, uint32_t stream_id, uint32_t number)
{
    uint8_t bytes[4];

    write_u32(bytes, number);
    h2_put_head(kept, sizeof bytes, type, 0, stream_id);
    kept_socket_put(kept, bytes, sizeof bytes);
}

void h2_put_settings(struct kept_socket *kept, const struct h2_setting *settings, size_t len)
{
    uint8_t bytes[6];

    h2_put_head(kept, sizeof bytes * len, NGHTTP2_SETTINGS, 0, 0);
    for (size_t i = 0; i < len; i++) {
        bytes[0] = (uint8_t)(settings[i].id >> 8);
        bytes[1] = (uint8_t)settings[i].id;
        write_u32(bytes + 2, settings[i].value);
        kept_socket_put(kept, bytes, sizeof bytes);
    }
}

void h2_put_goaway(struct kept_socket *kept, uint32_t last_id, uint32_t error)
{
    uint8_t bytes[8];

    write_u32(bytes, last_id);
    write_u32(bytes + 4, error);
    h2_put_head(kept, sizeof bytes, NGHTTP2_GOAWAY, 0, 0);
    kept_socket_put(kept, bytes, sizeof bytes);
}

/* A header block of literals that no table keeps (RFC 7541 §6.2.2). */
struct block {
    uint8_t bytes[STATUS_ENCODED_BYTES_MAX + 128];
    size_t len;
};

/* RFC 7541 §5.1 with a prefix of seven bits, §5.2 without Huffman. */
static void block_text(struct block *block, const char *text)
{
    size_t len = strlen(text), rest = len;

    block->bytes[block->len++] = len < 127 ? (uint8_t)len : 127;
    if (len >= 127) {
        for (rest -= 127; rest >= 0x80; rest >>= 7)
            block->bytes[block->len++] = (uint8_t)(rest | 0x80);
        block->bytes[block->len++] = (uint8_t)rest;
    }
    memcpy(block->bytes + block->len, text, len);
    block->len += len;
}

static void block_field(struct block *block, const char *name, const char *value)
{
    block->bytes[block->len++] = 0;
    block_text(block, name);
    block_text(block, value);
}

/* Each says that the table has no bytes (RFC 7541 §6.3): a client that has lowered its table must
 * be told so in the next block (§4.2), to all others it is as good. So nobody need know who was
 * told. */
static void block_begin(struct block *block)
{
    *block = (struct block){.bytes = {0x20}, .len = 1};
}

static void block_head(struct block *block)
{
    block->bytes[block->len++] = 0x88; /* ":status: 200", of the static table */
    block_field(block, "content-type", FIELD_CONTENT_TYPE);
}

static void block_status(struct block *block, int code, const char *text)
{
    char digits[16], encoded[STATUS_ENCODED_BYTES_MAX];

    snprintf(digits, sizeof digits, "%d", code);
    block_field(block, "grpc-status", digits);
    if (status_encode(text, encoded) > 0)
        block_field(block, "grpc-message", encoded);
}

static void put_block(struct kept_socket *kept, const struct block *block, uint32_t stream_id,
                      uint8_t flags)
{
    h2_put_head(kept, block->len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream_id);
    kept_socket_put(kept, block->bytes, block->len);
}

void h2_put_headers(struct kept_socket *kept, uint32_t stream_id)
{
    struct block block;

    block_begin(&block);
    block_head(&block);
    put_block(kept, &block, stream_id, 0);
}

void h2_put_status(struct kept_socket *kept, uint32_t stream_id, int code, const char *text,
                   bool only)
{
    struct block block;

    block_begin(&block);
    if (only)
        block_head(&block);
    block_status(&block, code, text);
    put_block(kept, &block, stream_id, NGHTTP2_FLAG_END_STREAM);
}
