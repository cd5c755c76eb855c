/*
 * HTTP/2 frame heads and the few frames the relay makes itself (RFC 9113 §4.1, §6).
 */
#ifndef SHIM_RELAY_FRAME_H
#define SHIM_RELAY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/relay/buffer.h"

#define FRAME_HEAD_BYTES 9
/* The length byte and what it can count (RFC 9113 §6.1). */
#define FRAME_PADDING_BYTES_MAX 256
#define FRAME_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAME_PREFACE_BYTES 24
#define FRAME_STREAM_ID_MAX 0x7fffffff
/* Of a payload, as its head can say. */
#define FRAME_BYTES_MAX 0xffffff

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_PRIORITY = 2,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PUSH_PROMISE = 5,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8,
    FRAME_CONTINUATION = 9,
};

enum frame_flag {
    FRAME_FLAG_ACK = 0x01,
    FRAME_FLAG_END_STREAM = 0x01,
    FRAME_FLAG_END_HEADERS = 0x04,
    FRAME_FLAG_PADDED = 0x08,
    FRAME_FLAG_PRIORITY = 0x20,
};

enum frame_setting {
    FRAME_SETTING_HEADER_TABLE_SIZE = 1,
    FRAME_SETTING_INITIAL_WINDOW_SIZE = 4,
    FRAME_SETTING_MAX_FRAME_SIZE = 5,
};

/* Error codes (RFC 9113 §7). */
enum frame_error {
    FRAME_NO_ERROR = 0,
    FRAME_PROTOCOL_ERROR = 1,
    FRAME_INTERNAL_ERROR = 2,
    FRAME_FLOW_CONTROL_ERROR = 3,
    FRAME_SIZE_ERROR = 6,
    FRAME_REFUSED_STREAM = 7,
    FRAME_CANCEL = 8,
    FRAME_COMPRESSION_ERROR = 9,
    FRAME_ENHANCE_YOUR_CALM = 11,
};

struct frame_head {
    uint32_t length; /* of the payload, bytes */
    uint8_t type;
    uint8_t flags;
    uint32_t stream_id;
};

static inline uint32_t frame_read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads FRAME_HEAD_BYTES; the reserved bit is ignored. */
static inline void frame_head_read(const uint8_t *bytes, struct frame_head *out)
{
    out->length = frame_read_u32(bytes) >> 8;
    out->type = bytes[3];
    out->flags = bytes[4];
    out->stream_id = frame_read_u32(bytes + 5) & FRAME_STREAM_ID_MAX;
}

/* Append one whole frame to `out`. 0 or -ENOMEM, then `out` is as before. */
int frame_put_data(struct buffer *out, uint32_t stream_id, const uint8_t *data, size_t bytes,
                   bool end_stream) __attribute__((warn_unused_result));
int frame_put_rst_stream(struct buffer *out, uint32_t stream_id, enum frame_error code)
    __attribute__((warn_unused_result));
int frame_put_settings_empty(struct buffer *out) __attribute__((warn_unused_result));
int frame_put_settings_ack(struct buffer *out) __attribute__((warn_unused_result));
int frame_put_window_update(struct buffer *out, uint32_t stream_id, uint32_t increment)
    __attribute__((warn_unused_result));
int frame_put_goaway(struct buffer *out, uint32_t last_stream_id, enum frame_error code)
    __attribute__((warn_unused_result));

/*
 * The HEADERS frame that ends a gRPC call with an error: trailers-only when `only`, else the
 * trailers after headers that have passed. All fields are literals without indexing or fully
 * static, so that the peer's HPACK table does not change (RFC 7541 §6.2.2). `message` is cut to
 * RPC_STATUS_TEXT_BYTES_MAX and percent-encoded. `table_size`, unless negative, is put in front as
 * a dynamic table size update (RFC 7541 §4.2, §6.3).
 */
int frame_put_status(struct buffer *out, uint32_t stream_id, int code, const char *message,
                     bool only, int64_t table_size) __attribute__((warn_unused_result));

#endif
